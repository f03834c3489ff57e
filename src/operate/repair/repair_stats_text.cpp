// The ledger as JSON and as tables, and read back from an audit log.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "base/text.hpp"
#include "operate/repair/audit.hpp"
#include "operate/repair/repair_stats.hpp"

namespace weft::operate::repair {
namespace {

using nlohmann::ordered_json;

ordered_json spread_json(const Spread& s) {
  return {{"count", s.count},
          {"mean_s", s.mean_s},
          {"p50_s", s.p50_s},
          {"p90_s", s.p90_s},
          {"max_s", s.max_s}};
}

ordered_json problem_json(const ProblemAccount& p) {
  ordered_json out{{"kind", to_text(p.kind)},
                   {"repairs", p.repairs},
                   {"under_way", p.under_way},
                   {"drained", p.drained},
                   {"rollbacks", p.rollbacks}};
  for (std::size_t i = 1; i < resolution_count; ++i)
    out["resolutions"][std::string(to_text(static_cast<Resolution>(i)))] = p.resolutions[i];
  out["time_to_repair"] = spread_json(p.whole);
  out["healed"] = spread_json(p.healed);
  for (std::size_t i = 0; i < ttr_part_count; ++i) {
    ordered_json part = spread_json(p.parts[i]);
    part["slo_s"] = static_cast<double>(p.slo_ns[i]) / 1e9;
    part["attained"] = p.attained[i];
    out["parts"][std::string(to_text(static_cast<TtrPart>(i)))] = std::move(part);
  }
  return out;
}

std::string percent(std::uint64_t some, std::uint64_t all) {
  if (all == 0) return "-";
  return fmt::format("{:.1f} %", 100 * static_cast<double>(some) / static_cast<double>(all));
}

std::string time_text(const Spread& s, double value) {
  return s.count == 0 ? "-" : human_seconds(value);
}

// What an entry says of its repair.
class Replay {
 public:
  // Fails when the entry's detail is none of its action.
  Status take(const port::AuditEntry& entry) {
    if (entry.action != "opened" && entry.action != "stage") return {};
    WEFT_TRY(const JsonLine line, JsonLine::parse(entry.detail, {}));
    Errors errors;
    const std::string repair = line.text("repair", {}, errors);
    Opening opening;
    StageChange change;
    if (entry.action == "opened")
      read_fields(line, opening, errors);
    else
      read_fields(line, change, errors);
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
    Story& story = stories_[repair];
    if (entry.action == "opened")
      open(entry, repair, opening, story);
    else
      advance(entry, change, story);
    return {};
  }
  std::vector<RepairRow> rows() && {
    std::vector<RepairRow> out;
    for (auto& [id, story] : stories_) out.push_back(std::move(story.row));
    std::ranges::sort(out, {}, [](const RepairRow& r) { return std::tie(r.opened, r.repair); });
    return out;
  }

 private:
  struct Story {
    RepairRow row;
    Timestamp since;
    Ticket ticket;  // only whether it has a part
  };
  static void describe(const Subject& subject, Story& story) {
    story.row.kind = subject.kind;
    story.row.has_part = !subject.part.empty();
    story.row.entity = subject.part.empty() ? subject.root : subject.part;
    story.ticket.part.kind =
        subject.part.empty() ? model::EntityKind::none : model::EntityKind::cable;
  }
  static void open(const port::AuditEntry& entry, const std::string& repair, const Opening& opening,
                   Story& story) {
    describe(opening.subject, story);
    RepairRow& row = story.row;
    row.repair = repair;
    row.case_id = repair.substr(0, repair.rfind('/'));
    row.opened = opening.opened;
    story.since = entry.t;
    row.spent_ns[static_cast<std::size_t>(TtrPart::detect)] =
        std::max<std::int64_t>(0, entry.t.ns - opening.opened.ns);
  }
  static void advance(const port::AuditEntry& entry, const StageChange& change, Story& story) {
    describe(change.subject, story);
    RepairRow& row = story.row;
    if (const auto part = ttr_part(story.ticket, change.from, change.to))
      row.spent_ns[static_cast<std::size_t>(*part)] += entry.t.ns - story.since.ns;
    story.since = entry.t;
    row.stage = change.to;
    row.resolution = change.resolution;
    row.rollbacks = change.rollbacks;
    row.is_offender = change.is_offender;
    row.was_drained = row.was_drained || row.stage == Stage::drained;
    if (is_over(row.stage)) row.ended = entry.t;
  }

  std::map<std::string, Story> stories_;
};

Table problem_table(const RepairStats& ledger) {
  using enum Table::Align;
  Table table({{"problem", left},
               {"repairs"},
               {"in progress"},
               {"drained"},
               {"rolled back"},
               {"no fault found"},
               {"healed"},
               {"mean time to repair"},
               {"p90"}});
  for (const ProblemAccount& p : ledger.problems)
    table.add({std::string(to_text(p.kind)), fmt::to_string(p.repairs), fmt::to_string(p.under_way),
               fmt::to_string(p.drained), fmt::to_string(p.rollbacks),
               fmt::to_string(p.resolutions[static_cast<std::size_t>(Resolution::no_fault_found)]),
               fmt::to_string(p.healed.count), time_text(p.whole, p.whole.mean_s),
               time_text(p.whole, p.whole.p90_s)});
  return table;
}

Table part_table(const RepairStats& ledger) {
  using enum Table::Align;
  Table table({{"problem", left},
               {"part", left},
               {"count"},
               {"mean"},
               {"p50"},
               {"p90"},
               {"max"},
               {"objective"},
               {"attained"}});
  for (const ProblemAccount& p : ledger.problems)
    for (std::size_t i = 0; i < ttr_part_count; ++i) {
      const Spread& s = p.parts[i];
      if (s.count == 0) continue;
      table.add({std::string(to_text(p.kind)), std::string(to_text(static_cast<TtrPart>(i))),
                 fmt::to_string(s.count), time_text(s, s.mean_s), time_text(s, s.p50_s),
                 time_text(s, s.p90_s), time_text(s, s.max_s),
                 human_seconds(static_cast<double>(p.slo_ns[i]) * 1e-9),
                 percent(p.attained[i], s.count)});
    }
  return table;
}

Table offender_table(const RepairStats& ledger) {
  using enum Table::Align;
  Table table({{"part", left}, {"drains"}, {"no fault found"}, {"first", left}, {"last", left}});
  for (const Offender& o : ledger.offenders)
    table.add({o.entity, fmt::to_string(o.repairs), fmt::to_string(o.no_fault_found),
               to_text(o.first), to_text(o.last)});
  return table;
}

}  // namespace

Result<std::vector<RepairRow>> ledger_rows(std::span<const port::AuditEntry> audit) {
  Replay replay;
  for (const port::AuditEntry& entry : audit) {
    if (const Status done = replay.take(entry); !done)
      return fail(Errc::parse, {},
                  fmt::format("audit entry {} cannot be read: {}", entry.seq, done.error().what),
                  "it is damaged, or was written by another version");
  }
  return std::move(replay).rows();
}

std::string to_json(const RepairStats& ledger) {
  ordered_json out{{"problems", ordered_json::array()},
                   {"returned", ledger.returned},
                   {"no_fault_found", ledger.no_fault_found},
                   {"no_fault_found_ratio", ledger.no_fault_found_ratio()},
                   {"offenders", ordered_json::array()}};
  for (const ProblemAccount& p : ledger.problems) out["problems"].push_back(problem_json(p));
  for (const Offender& o : ledger.offenders)
    out["offenders"].push_back({{"entity", o.entity},
                                {"drains", o.repairs},
                                {"no_fault_found", o.no_fault_found},
                                {"first", weft::to_text(o.first)},
                                {"last", weft::to_text(o.last)}});
  return out.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

std::string to_table(const RepairStats& ledger) {
  std::string out = problem_table(ledger).text() + "\n" + part_table(ledger).text();
  out += fmt::format("\nNo fault was found in {} of {} returned components ({}).\n",
                     ledger.no_fault_found, ledger.returned,
                     percent(ledger.no_fault_found, ledger.returned));
  if (!ledger.offenders.empty()) out += "\n" + offender_table(ledger).text();
  return out;
}

}  // namespace weft::operate::repair
