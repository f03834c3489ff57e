#include "operate/repair/repair_stats.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>

#include "base/percentile.hpp"

namespace weft::operate::repair {
namespace {

double seconds(std::int64_t ns) { return static_cast<double>(ns) / 1e9; }

Spread spread_of(std::vector<std::int64_t> ns) {
  Spread out{.count = ns.size()};
  if (ns.empty()) return out;
  std::ranges::sort(ns);
  const auto rank = [&](double percent) {
    return seconds(percentile(std::span<const std::int64_t>(ns), percent));
  };
  double sum = 0;
  for (const std::int64_t value : ns) sum += seconds(value);
  out.mean_s = sum / static_cast<double>(ns.size());
  out.p50_s = rank(50);
  out.p90_s = rank(90);
  out.max_s = seconds(ns.back());
  return out;
}

// Whether a part of the time to repair took place at all: what was not drained has no drain.
bool took_place(const RepairRow& row, TtrPart part) {
  if (part == TtrPart::detect || part == TtrPart::triage) return true;
  if (part == TtrPart::drain) return row.was_drained;
  if (part == TtrPart::rma) return row.spent_ns[static_cast<std::size_t>(part)] > 0;
  return row.was_drained || row.resolution == Resolution::repaired;
}

// What was only watched, healed by itself, or turned out to be another part, nobody repaired.
bool is_counted(const RepairRow& row) {
  return is_over(row.stage) && row.resolution != Resolution::observed &&
         row.resolution != Resolution::healed && row.resolution != Resolution::moved;
}

ProblemAccount account(CauseKind kind, std::span<const RepairRow> rows, const Policy& policy) {
  ProblemAccount out{.kind = kind, .slo_ns = policy.problem(kind).slo_ns};
  std::array<std::vector<std::int64_t>, ttr_part_count> times;
  std::vector<std::int64_t> whole, healed;
  for (const RepairRow& row : rows) {
    if (row.kind != kind) continue;
    ++out.repairs;
    out.drained += row.was_drained ? 1 : 0;
    out.rollbacks += row.rollbacks;
    if (!is_over(row.stage)) ++out.under_way;
    if (is_over(row.stage)) ++out.resolutions[static_cast<std::size_t>(row.resolution)];
    const auto spent = std::accumulate(row.spent_ns.begin(), row.spent_ns.end(), std::int64_t{0});
    if (row.resolution == Resolution::healed) healed.push_back(spent);
    if (!is_counted(row)) continue;
    whole.push_back(spent);
    for (std::size_t i = 0; i < ttr_part_count; ++i) {
      if (!took_place(row, static_cast<TtrPart>(i))) continue;
      times[i].push_back(row.spent_ns[i]);
      if (row.spent_ns[i] <= out.slo_ns[i]) ++out.attained[i];
    }
  }
  for (std::size_t i = 0; i < ttr_part_count; ++i) out.parts[i] = spread_of(std::move(times[i]));
  out.whole = spread_of(std::move(whole));
  out.healed = spread_of(std::move(healed));
  return out;
}

std::vector<Offender> find_offenders(std::span<const RepairRow> rows) {
  std::map<std::string, Offender> by_entity;
  for (const RepairRow& row : rows) {
    if (!row.was_drained) continue;
    Offender& offender = by_entity[row.entity];
    if (offender.repairs == 0) offender.first = row.opened;
    offender.entity = row.entity;
    offender.repairs += 1 + row.rollbacks;
    offender.no_fault_found += row.resolution == Resolution::no_fault_found ? 1 : 0;
    offender.last = std::max(offender.last, row.opened);
  }
  std::vector<Offender> out;
  for (auto& [entity, offender] : by_entity)
    if (offender.repairs >= 2) out.push_back(std::move(offender));
  std::ranges::stable_sort(out, std::greater{}, &Offender::repairs);
  return out;
}

}  // namespace

std::vector<RepairRow> ledger_rows(const model::Fabric& fabric,
                                   const std::map<std::string, Ticket, std::less<>>& tickets) {
  std::vector<RepairRow> out;
  for (const auto& [id, t] : tickets) {
    RepairRow row{.repair = id, .case_id = t.cases.front().id, .kind = t.kind};
    if (t.key().kind != model::EntityKind::none) row.entity = name(fabric, t.key());
    row.has_part = t.has_part();
    row.opened = t.opened;
    row.ended = t.ended;
    row.stage = t.stage;
    row.resolution = t.resolution;
    row.was_drained = t.was_drained;
    row.is_offender = t.is_offender;
    row.rollbacks = t.rollbacks;
    row.spent_ns = t.spent_ns;
    out.push_back(std::move(row));
  }
  std::ranges::sort(out, {}, [](const RepairRow& r) { return std::tie(r.opened, r.repair); });
  return out;
}

RepairStats repair_stats(std::span<const RepairRow> rows, const Policy& policy, Timestamp from,
                         Timestamp until) {
  std::vector<RepairRow> inside;
  std::ranges::copy_if(rows, std::back_inserter(inside), [&](const RepairRow& row) {
    return from <= row.opened && row.opened < until;
  });
  RepairStats out;
  for (std::size_t k = 0; k < model::cause_kind_count; ++k) {
    const ProblemAccount problem = account(static_cast<CauseKind>(k), inside, policy);
    if (problem.repairs > 0) out.problems.push_back(problem);
  }
  out.offenders = find_offenders(inside);
  for (const RepairRow& row : inside) {
    if (row.stage != Stage::returned || !row.was_drained) continue;
    ++out.returned;
    out.no_fault_found += row.resolution == Resolution::no_fault_found ? 1 : 0;
  }
  return out;
}

std::vector<model::Episode> episodes_of(const model::Fabric& fabric, const Ticket& t) {
  if (t.key().kind == model::EntityKind::none) return {};
  const std::vector<std::pair<std::string, std::string>> attrs{
      {"repair", t.id},
      {"resolution", std::string(to_text(t.resolution))},
      {"stage", std::string(to_text(t.stage))}};
  const auto end = [&](Timestamp start, std::optional<Timestamp> first,
                       std::optional<Timestamp> second) {
    const Timestamp at = first ? *first : second.value_or(model::still_open);
    return std::max(at, start);
  };
  std::vector<model::Episode> out;
  const auto add = [&](std::string id, std::string kind, Timestamp start, Timestamp until) {
    out.push_back({.id = std::move(id),
                   .kind = std::move(kind),
                   .entities = {name(fabric, t.key())},
                   .start = start,
                   .end = until,
                   .attrs = attrs});
  };
  add(t.id, std::string(to_text(t.kind)), t.opened, end(t.opened, t.returned_at, t.ended));
  if (t.drained_at)
    add(t.id + "/drain", "drain", *t.drained_at, end(*t.drained_at, t.returned_at, t.ended));
  return out;
}

}  // namespace weft::operate::repair
