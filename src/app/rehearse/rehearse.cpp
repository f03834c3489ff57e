#include "app/rehearse/rehearse.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "adapt/sim/memory_store.hpp"
#include "app/rehearse/minutes.hpp"
#include "app/rehearse/plan.hpp"
#include "base/json_line.hpp"
#include "base/text.hpp"
#include "operate/repair/reserve.hpp"
#include "operate/triage/rules.hpp"
#include "serve/controller.hpp"

namespace weft::app {
namespace {

namespace repair = operate::repair;
namespace sim = adapt::sim;
using model::Entity;
using repair::OrderKind;
using sim::FaultKind;

constexpr Timestamp start = rehearse_start;
constexpr std::int64_t service_turn_ns = ns_per_s / 10;  // the service turns no more often
constexpr std::size_t faults_max = 2'000'000;            // of one rehearsal

// Turns happen on a grid, so that what else goes on does not move the one that a fault is seen in.
Timestamp next_turn(Timestamp t) {
  return {start.ns + (t.ns - start.ns + service_turn_ns - 1) / service_turn_ns * service_turn_ns};
}

bool is_blip(const sim::Operations::Fault& fault) {
  return fault.kind == FaultKind::flap && fault.lasts_ns > 0;
}

class Rehearsal {
 public:
  Rehearsal(const model::Fabric& fabric, const RehearseOptions& options)
      : fabric_(fabric),
        options_(options),
        parts_(fabric, options.model.operations.ports_per_card),
        inventory_(fabric),
        catalogue_(observe::telemetry::Catalogue::built_in()),
        settled_(fabric, operate::triage::default_rules()),
        provisional_(fabric, serve::provisional_rules(operate::triage::default_rules(), {})),
        reserve_(fabric),
        net_(fabric, seeded(options), start),
        people_(net_, {.seed = options.seed, .approve_mean_ns = options.model.approve_ns}),
        controller_({fabric, inventory_, catalogue_, settled_, provisional_}, {}, options.policy,
                    store_) {}

  Result<RehearseReport> run(const RehearseProgress& progress) {
    WEFT_TRY_STATUS(controller_.restore(start));
    const std::vector<PlannedFault> plan = plan_faults(fabric_, parts_, options_);
    const Timestamp end{start.ns + options_.days * rehearse_day_ns};
    std::size_t next = 0;
    while (now_ < end) {
      const Timestamp to = earliest(next < plan.size() ? std::min(end, plan[next].t) : end);
      now_ = std::min(end, next_turn(std::max(to, {now_.ns + 1})));
      for (; next < plan.size() && plan[next].t <= now_; ++next)
        net_.begin_at(plan[next].t, plan[next].start);
      net_.advance(now_);
      WEFT_TRY_STATUS(turn());
      progress(static_cast<double>(now_.ns - start.ns) / static_cast<double>(rehearse_day_ns));
    }
    return report();
  }

 private:
  static sim::OperationsSettings seeded(const RehearseOptions& options) {
    sim::OperationsSettings out = options.model.operations;
    out.seed = options.seed;
    return out;
  }
  Timestamp earliest(Timestamp t) const {
    for (const auto& due : {net_.next_due(), controller_.next_due(), people_.next_due()})
      if (due && *due < t) t = *due;
    return t;
  }
  Status turn() {
    ++report_.ticks;
    std::vector<std::string> lines;
    for (auto& line : net_.lines()) lines.push_back(std::move(line.text));
    report_.lines += lines.size();
    if (!lines.empty()) {
      const serve::Controller::Batch batch{serve::Feed::record, std::move(lines), ""};
      WEFT_TRY(const auto receipts, controller_.accept({&batch, 1}, now_));
      static_cast<void>(receipts);
    }
    for (sim::People::Word& word : people_.words())
      static_cast<void>(controller_.command(command_of(std::move(word)), now_));
    WEFT_TRY(const auto orders, controller_.tick(now_));
    for (const repair::Order& order : orders) controller_.outcome(perform(order), now_);
    static_cast<void>(controller_.announcements());
    return {};
  }

  repair::Outcome perform(const repair::Order& order) {
    repair::Outcome out{.order = order.id};
    const auto set = [&](auto result, auto& to) {
      if (result)
        to = *result;
      else
        out.error = result.error();
    };
    switch (order.kind) {
      case OrderKind::act:
        if (!controller_.may_act(order, now_))
          out.error =
              Error{Errc::infeasible, {}, "cancelled: a guard now forbids this action", "", {}};
        else if (const Status done = net_.act(order.action); !done)
          out.error = done.error();
        break;
      case OrderKind::look:
        set(net_.state(order.entity), out.service);
        break;
      case OrderKind::check:
        set(net_.check(order.entity), out.check);
        break;
      case OrderKind::forecast:
        out.forecast = forecast(order);
        break;
      case OrderKind::notify:
        if (const Status heard = people_.notify(order.notice); !heard) out.error = heard.error();
        break;
      case OrderKind::snapshot:
        break;
    }
    return out;
  }

  // All NICs send to other racks as fast as they can, and uplinks are shared ideally: the rack with
  // the least left upwards is slowed down by what it lacks.
  repair::Forecast forecast(const repair::Order& order) const {
    repair::Gone gone(fabric_);
    const auto slowdown = [&] {
      double worst = 1;
      for (const repair::Uplinks& row : reserve_.uplinks(gone))
        if (row.live_bps > 0 && row.nic_bps > 0)
          worst = std::max(worst, std::min(row.nic_bps, row.whole_bps) / row.live_bps);
      return worst;
    };
    const auto add = [&](const std::string& name) {
      if (const auto part = model::find_entity(fabric_, {name, {}})) gone.add(*part);
    };
    for (const std::string& out : order.out) add(out);
    const double before = slowdown();
    add(order.entity);
    return {.jobs = 1, .slowdown_max = slowdown() / before, .worst = "all racks"};
  }

  // ---- what it came to ----

  Result<RehearseReport> report() {
    RehearseReport& out = report_;
    out.days = options_.days;
    out.seed = options_.seed;
    WEFT_TRY(const auto audit, store_.audit(1, "", SIZE_MAX));
    // Not from the tickets: those of long ago are forgotten.
    WEFT_TRY(const auto rows, repair::ledger_rows(audit));
    out.ledger = repair::repair_stats(without_blips(rows), options_.policy, start, now_);
    WEFT_TRY(const std::vector<Seen> seen, read_audit(audit));
    std::vector<bool> found(net_.faults().size());
    count_faults(seen, found);
    const Minutes minutes(fabric_, parts_.rack_switches, net_, start, now_);
    out.rack_minutes = minutes.count();
    for (const Minutes::Bad& bad : minutes.bad(options_.model.bad_loss)) {
      RehearseReport::Problem& problem = out.problems[type_of(bad.fault)];
      ++(bad.is_across ? problem.bad_across : problem.bad_inside);
      out.bad_known += found[bad.fault] ? 1 : 0;
    }
    count_offenders(rows);
    count_cost();
    return std::move(report_);
  }

  struct Seen {
    Timestamp t;
    std::string kind;
    Entity root;
  };
  // By cable: which faults held or hurt it.
  std::map<model::CableId, std::vector<std::uint32_t>> faults_by_cable() const {
    std::map<model::CableId, std::vector<std::uint32_t>> out;
    for (std::uint32_t i = 0; i < net_.faults().size(); ++i)
      for (const model::CableId cable : net_.cables_of(net_.faults()[i].part))
        out[cable].push_back(i);
    return out;
  }
  // Rows but for those about a single cable of which nothing was wrong but a blip.
  std::vector<repair::RepairRow> without_blips(const std::vector<repair::RepairRow>& rows) {
    constexpr std::int64_t late_ns = 2 * ns_per_minute;  // words about what is over
    const auto by_cable = faults_by_cable();
    std::vector<repair::RepairRow> out;
    for (const repair::RepairRow& row : rows) {
      const auto part = model::find_entity(fabric_, {row.entity, {}});
      const auto cables = part ? net_.cables_of(*part) : std::vector<model::CableId>();
      const auto known = cables.size() == 1 ? by_cable.find(cables.front()) : by_cable.end();
      bool has_blip = false, has_fault = false;
      if (known != by_cable.end())
        for (const std::uint32_t index : known->second) {
          const sim::Operations::Fault& fault = net_.faults()[index];
          const bool is_then = fault.start <= row.ended.value_or(now_) &&
                               (!fault.end || fault.end->ns + late_ns >= row.opened.ns);
          if (is_then) (is_blip(fault) ? has_blip : has_fault) = true;
        }
      if (has_blip && !has_fault) {
        ++report_.blip_repairs;
        report_.blip_drains += row.was_drained ? 1 : 0;
      } else {
        out.push_back(row);
      }
    }
    return out;
  }
  // Cases as they were declared, and the drains that guards refused.
  Result<std::vector<Seen>> read_audit(const std::vector<port::AuditEntry>& audit) {
    std::vector<Seen> out;
    std::set<std::string, std::less<>> known;
    for (const port::AuditEntry& entry : audit) {
      const bool is_case = entry.action == "case_open" || entry.action == "case_closed";
      if (!is_case && entry.action != "refused") continue;
      if (is_case && !known.insert(entry.subject).second) continue;
      Errors errors;
      WEFT_TRY(const JsonLine detail,
               JsonLine::parse(entry.detail, {"audit", static_cast<std::uint32_t>(entry.seq), 0}));
      if (is_case) {
        const std::string root = detail.text("entity", {}, errors);
        out.push_back({entry.t, detail.text("kind", {}, errors),
                       model::find_entity(fabric_, {root, {}}).value_or(Entity{})});
      } else {
        ++report_.refused[detail.text("guard", {}, errors)];
      }
      if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
    }
    return out;
  }
  std::string type_of(std::uint32_t index) const {
    const sim::Operations::Fault& fault = net_.faults()[index];
    if (is_blip(fault)) return "blip";
    const bool is_rack =
        fault.kind == FaultKind::device &&
        std::ranges::find(parts_.rack_switches, fault.part) != parts_.rack_switches.end();
    const auto causes = split(catalogued(fault.kind).cause, ' ');  // of a switch: two
    return std::string(is_rack ? causes.back() : causes.front());
  }
  bool is_about(const sim::Operations::Fault& fault, const Seen& seen) const {
    constexpr std::int64_t late_ns = 120 * ns_per_minute;
    if (seen.t < fault.start || (fault.end && seen.t.ns > fault.end->ns + late_ns)) return false;
    if (seen.root == fault.part) return true;
    if (seen.root.kind == model::EntityKind::none) return false;
    const bool is_part = fault.part.kind == model::EntityKind::card &&
                         seen.root.kind == model::EntityKind::node && seen.root.id == fault.part.id;
    // The cable of a NIC, or the NIC of a cable; the cable said as a link.
    const auto a = net_.cables_of(fault.part), b = net_.cables_of(seen.root);
    return is_part || (a.size() == 1 && a == b);
  }
  void count_faults(const std::vector<Seen>& seen, std::vector<bool>& found) {
    report_.cases = seen.size();
    std::vector<bool> is_true(seen.size());
    const auto& faults = net_.faults();
    for (std::uint32_t i = 0; i < faults.size(); ++i) {
      bool is_named = false;
      for (std::size_t k = 0; k < seen.size(); ++k) {
        if (!is_about(faults[i], seen[k])) continue;
        found[i] = is_true[k] = true;
        is_named = is_named || seen[k].kind == type_of(i);
      }
      report_.blips += is_blip(faults[i]) ? 1 : 0;
      if (is_blip(faults[i])) continue;
      RehearseReport::Problem& problem = report_.problems[type_of(i)];
      ++problem.faults;
      problem.found += found[i] ? 1 : 0;
      problem.named += is_named ? 1 : 0;
    }
    report_.cases_false = static_cast<std::uint64_t>(std::ranges::count(is_true, false));
  }
  // Parts with two repairs at least that found something: returns after nothing was found, and
  // rollbacks of one repair, make no offender.
  void count_offenders(const std::vector<repair::RepairRow>& rows) {
    std::set<std::string, std::less<>> lemons;
    for (const sim::Operations::Fault& fault : net_.faults())
      if (fault.is_lemon) lemons.insert(model::name(fabric_, fault.part));
    report_.lemons = lemons.size();
    std::map<std::string, int> repairs;
    for (const repair::RepairRow& row : rows)
      if (row.was_drained && (row.resolution == repair::Resolution::repaired ||
                              row.resolution == repair::Resolution::replaced))
        ++repairs[row.entity];
    for (const auto& [part, count] : repairs) {
      if (count < 2) continue;
      ++report_.offenders;
      report_.lemons_found += lemons.contains(part) ? 1 : 0;
    }
    report_.replaced = people_.replaced().size();
  }
  void count_cost() {
    report_.visits = net_.visit_count();
    std::map<std::string, Timestamp> since;
    const auto add = [&](const std::string& name, Timestamp from, Timestamp to) {
      const auto part = model::find_entity(fabric_, {name, {}});
      const std::size_t cables = part ? net_.cables_of(*part).size() : 0;
      report_.drained_cable_hours +=
          static_cast<double>(to.ns - from.ns) / 3.6e12 * static_cast<double>(cables);
    };
    for (const sim::Operations::Effect& effect : net_.effects()) {
      if (effect.action.kind == port::ActionKind::drain) {
        ++report_.drains;
        since[effect.action.entity] = effect.t;
      } else if (const auto at = since.find(effect.action.entity); at != since.end()) {
        add(at->first, at->second, effect.t);
        since.erase(at);
      }
    }
    for (const auto& [name, from] : since) add(name, from, now_);
  }

  const model::Fabric& fabric_;
  const RehearseOptions& options_;
  RehearseParts parts_;
  observe::telemetry::Inventory inventory_;
  observe::telemetry::Catalogue catalogue_;
  operate::triage::Context settled_, provisional_;
  repair::Reserve reserve_;
  sim::Operations net_;
  sim::People people_;
  sim::MemoryStore store_;
  serve::Controller controller_;
  Timestamp now_ = start;
  RehearseReport report_;
};

}  // namespace

serve::Command command_of(adapt::sim::People::Word word) {
  const bool approves = word.kind == adapt::sim::People::Word::Kind::approve;
  return {.kind = approves ? serve::Command::Kind::approve : serve::Command::Kind::repaired,
          .case_id = std::move(word.repair),
          .who = approves ? "operator" : "technician",
          .reason = {},
          .until = {}};
}

Result<RehearseReport> rehearse(const model::Fabric& fabric, const RehearseOptions& options,
                                const RehearseProgress& progress) {
  if (fabric.nics().empty())
    return fail(Errc::infeasible, {},
                "the fabric has no racks with NICs for which to judge minutes",
                "use a fabric with hosts");
  if (const double faults = expected_faults(fabric, options); faults > faults_max)
    return fail(
        Errc::infeasible, {},
        fmt::format("the model gives about {:.0f} faults in {} days; at most {} are possible",
                    faults, options.days, faults_max),
        "use fewer days, or reduce the rates");
  return std::make_unique<Rehearsal>(fabric, options)->run(progress);
}

}  // namespace weft::app
