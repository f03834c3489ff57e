#include "app/rehearse/outcomes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "model/events/case.hpp"
#include "serve/listing.hpp"

namespace weft::app {
namespace {

namespace sim = adapt::sim;
using model::Entity;
using Fault = sim::Operations::Fault;

constexpr std::int64_t late_ns = 120 * ns_per_minute;  // words about what is over
constexpr std::size_t page = 10'000;

struct SeenCase {
  std::string id, kind, root;
  Entity entity;
  Timestamp declared;
  bool stands = true;
};

class Matcher {
 public:
  Matcher(const model::Fabric& fabric, const sim::Operations& net) : fabric_(fabric), net_(net) {}

  Entity entity(std::string_view name) const {
    return model::find_entity(fabric_, {name, {}}).value_or(Entity{});
  }
  bool is_then(const Fault& fault, Timestamp t) const {
    return t >= fault.start && (!fault.end || t.ns <= fault.end->ns + late_ns);
  }
  // The part itself, or the single cable that it is or has.
  bool is_same(const Fault& fault, const Entity& root) const {
    if (root == fault.part) return true;
    const auto a = net_.cables_of(fault.part), b = net_.cables_of(root);
    return a.size() == 1 && a == b;
  }
  bool touches(const Fault& fault, const Entity& root) const {
    const auto cables = net_.cables_of(fault.part);
    return std::ranges::any_of(net_.cables_of(root), [&](model::CableId cable) {
      return std::ranges::find(cables, cable) != cables.end();
    });
  }
  // Whether a cable of the fault ends at the switch or in the rack.
  bool reaches(const Fault& fault, const Entity& at) const {
    const auto is_at = [&](model::NodeId end) {
      if (at.kind != model::EntityKind::scope) return at == model::entity(end);
      const model::ScopeId scope(at.id);
      return fabric_.enclosing(end, fabric_.scopes()[scope].kind) == scope;
    };
    return std::ranges::any_of(net_.cables_of(fault.part), [&](model::CableId cable) {
      const model::LinkId link = model::forward(cable);
      return is_at(fabric_.from(link)) || is_at(fabric_.to(link));
    });
  }

 private:
  const model::Fabric& fabric_;
  const sim::Operations& net_;
};

Result<std::vector<SeenCase>> read_cases(const Matcher& matcher, port::Store& store) {
  std::map<std::string, Timestamp> declared;
  for (std::uint64_t next = 1;;) {
    WEFT_TRY(const auto audit, store.audit(next, "", page));
    if (audit.empty()) break;
    next = audit.back().seq + 1;
    for (const port::AuditEntry& entry : audit)
      if (entry.action.starts_with("case_")) declared.emplace(entry.subject, entry.t);
  }
  WEFT_TRY(const auto documents,
           store.documents(serve::case_kind, end_of_time, std::size_t{1} << 20));
  std::vector<SeenCase> out;
  for (const port::Document& document : documents) {
    WEFT_TRY(const JsonLine line, JsonLine::parse(document.body, {"case " + document.id, 0, 0}));
    Errors errors;
    const auto cause = line.object("cause", errors);
    const std::string standing = line.text("standing", "", errors);
    SeenCase seen{.id = document.id};
    if (cause) {
      seen.kind = cause->text("kind", "", errors);
      seen.root = cause->text("entity", "", errors);
    }
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
    seen.entity = matcher.entity(seen.root);
    seen.stands = standing != "withdrawn" && standing != "superseded";
    const auto at = declared.find(document.id);
    if (at != declared.end()) seen.declared = at->second;
    out.push_back(std::move(seen));
  }
  std::ranges::sort(out, [](const SeenCase& a, const SeenCase& b) {
    return std::pair(a.declared, std::string_view(a.id)) <
           std::pair(b.declared, std::string_view(b.id));
  });
  return out;
}

FaultOutcome outcome_of(const model::Fabric& fabric, const Matcher& matcher, const Fault& fault,
                        const std::vector<SeenCase>& cases,
                        const std::vector<sim::Operations::Effect>& effects) {
  const model::FaultEntry& entry = catalogued(fault.kind);
  const auto causes = split(entry.cause, ' ');
  FaultOutcome out{.kind = std::string(entry.name), .part = model::name(fabric, fault.part)};
  out.start = fault.start;
  out.end = fault.end;
  out.needs_case = !entry.cause.empty();
  for (const SeenCase& seen : cases) {
    if (!matcher.is_then(fault, seen.declared) || !matcher.touches(fault, seen.entity)) continue;
    if (!out.case_ns) out.case_ns = seen.declared.ns - fault.start.ns;
    const bool is_right = seen.stands && matcher.is_same(fault, seen.entity) &&
                          std::ranges::find(causes, seen.kind) != causes.end();
    if (out.is_right || (!is_right && !out.root.empty() && !seen.stands)) continue;
    out.is_right = is_right;
    out.cause = seen.kind;
    out.root = seen.root;
  }
  std::string drained;
  for (const sim::Operations::Effect& effect : effects) {
    const std::string& part = effect.action.entity;
    if (!matcher.is_then(fault, effect.t) || !matcher.touches(fault, matcher.entity(part)))
      continue;
    const bool is_drain = effect.action.kind == port::ActionKind::drain;
    if (is_drain && !out.drain_ns) {
      out.drain_ns = effect.t.ns - fault.start.ns;
      drained = part;
    } else if (!is_drain && part == drained) {
      out.return_ns = effect.t.ns - fault.start.ns;
    }
  }
  return out;
}

std::string span(const std::optional<std::int64_t>& ns) {
  return ns ? fmt::format("{:.1f}", static_cast<double>(*ns) / 1e9) : "-";
}

}  // namespace

Result<Outcomes> outcomes(const model::Fabric& fabric, const sim::Operations& net,
                          port::Store& store) {
  const Matcher matcher(fabric, net);
  WEFT_TRY(const std::vector<SeenCase> cases, read_cases(matcher, store));
  Outcomes out;
  for (const Fault& fault : net.faults())
    out.faults.push_back(outcome_of(fabric, matcher, fault, cases, net.effects()));
  const auto is_about_a_fault = [&](Timestamp t, const Entity& part) {
    return std::ranges::any_of(net.faults(), [&](const Fault& fault) {
      return matcher.is_then(fault, t) && matcher.touches(fault, part);
    });
  };
  // What a rack lacks is about several faults, each of which reaches it.
  const auto is_about_faults = [&](const SeenCase& seen) {
    return std::ranges::count_if(net.faults(), [&](const Fault& fault) {
             return matcher.is_then(fault, seen.declared) && matcher.reaches(fault, seen.entity);
           }) >= 2;
  };
  for (const SeenCase& seen : cases) {
    if (!seen.stands) continue;
    ++out.cases;
    const bool is_true = seen.kind == to_text(model::CauseKind::capacity)
                             ? is_about_faults(seen)
                             : is_about_a_fault(seen.declared, seen.entity);
    if (!is_true) ++out.cases_false;
  }
  for (const sim::Operations::Effect& effect : net.effects()) {
    if (effect.action.kind != port::ActionKind::drain) continue;
    ++out.drains;
    if (!is_about_a_fault(effect.t, matcher.entity(effect.action.entity))) ++out.drains_healthy;
  }
  out.still_drained = net.drained().size();
  return out;
}

std::string to_table(const Outcomes& outcomes) {
  using enum Table::Align;
  Table table({{"fault", left},
               {"part", left},
               {"case s"},
               {"drain s"},
               {"back s"},
               {"cause", left},
               {"root", left},
               {"right", left}});
  for (const FaultOutcome& row : outcomes.faults)
    table.add({row.kind, row.part, span(row.case_ns), span(row.drain_ns), span(row.return_ns),
               row.cause.empty() ? "-" : row.cause, row.root.empty() ? "-" : row.root,
               row.needs_case ? (row.is_right ? "yes" : "no") : (row.case_ns ? "no" : "yes")});
  const auto count = [](std::size_t n, std::string_view what) { return counted(n, what); };
  return fmt::format("{}\n{}, {} about no fault; {}, {} of healthy parts; {} still drained\n",
                     table.text(), count(outcomes.cases, "case"), outcomes.cases_false,
                     count(outcomes.drains, "drain"), outcomes.drains_healthy,
                     count(outcomes.still_drained, "part"));
}

JsonObject to_json(const Outcomes& outcomes) {
  const auto seconds = [](const std::optional<std::int64_t>& ns) {
    return ns ? std::optional(static_cast<double>(*ns) / 1e9) : std::nullopt;
  };
  JsonList rows;
  for (const FaultOutcome& row : outcomes.faults)
    rows.add(JsonObject()
                 .add("kind", row.kind)
                 .add("part", row.part)
                 .add("start", row.start)
                 .add("end", row.end)
                 .add("case_s", seconds(row.case_ns))
                 .add("drain_s", seconds(row.drain_ns))
                 .add("return_s", seconds(row.return_ns))
                 .add("cause", row.cause)
                 .add("root", row.root)
                 .add("right", row.needs_case ? row.is_right : !row.case_ns));
  JsonObject out;
  out.add("faults", rows)
      .add("cases", outcomes.cases)
      .add("cases_false", outcomes.cases_false)
      .add("drains", outcomes.drains)
      .add("drains_healthy", outcomes.drains_healthy)
      .add("still_drained", outcomes.still_drained);
  return out;
}

}  // namespace weft::app
