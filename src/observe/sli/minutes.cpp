#include "observe/sli/minutes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/check.hpp"
#include "observe/sli/binomial.hpp"

namespace weft::observe::sli {
namespace {

using model::Leg;
using model::NodeId;
using model::ScopeId;

constexpr std::size_t classes_max = 256;
constexpr std::size_t watched_max = 100'000;
constexpr std::uint64_t slow_replies_needed = losses_needed * 100;  // 10 are 1 % of them

std::size_t minute_in_hour(std::int64_t minute) {
  return static_cast<std::size_t>(minute - hour_of(minute) * minutes_per_hour);
}

bool is_shown(std::uint32_t count, std::uint32_t sent, double threshold, double confidence) {
  if (count <= threshold * sent) return false;
  return upper_tail(count, sent, threshold) <= (1 - confidence) / 2;
}

bool is_slow(const Cell& cell, std::size_t scale) {
  return std::uint64_t{cell.slow_legs[scale]} * 100 > cell.timed_legs;
}

// By nearest rank, a quantile of `replies` values above the threshold has at least so many of them
// above it, itself among them.
std::uint64_t at_least_above(std::uint64_t replies, std::uint64_t percent) {
  return replies == 0 ? 0 : replies - (replies * percent + 99) / 100 + 1;
}

bool add_up(std::uint32_t& sum, std::uint64_t more) {
  if (more > std::numeric_limits<std::uint32_t>::max() - sum) return false;
  sum += static_cast<std::uint32_t>(more);
  return true;
}

}  // namespace

struct MinuteCounters::Row {
  const model::Evidence& row;
  std::span<const model::LinkId> path;
  std::int64_t minute;
  std::uint16_t traffic_class;

  std::uint64_t legs() const { return row.leg == Leg::round_trip ? 2 : 1; }
  std::uint64_t on_time() const {
    return std::uint64_t{row.sent} - row.lost - row.late - row.damaged;
  }
  // Those on time count when they were measured, late ones always.
  std::uint64_t timed_legs() const {
    return legs() * (row.late + (row.rtt_p99_us >= 0 ? on_time() : 0));
  }
  std::uint64_t slow_legs(double threshold_us) const {
    std::uint64_t slow = row.late;
    if (row.rtt_p50_us > threshold_us)
      slow += at_least_above(on_time(), 50);
    else if (row.rtt_p99_us > threshold_us)
      slow += at_least_above(on_time(), 99);
    return legs() * slow;
  }
};

Verdict judge(const Cell& cell, const Objective& objective, double confidence, std::size_t scale) {
  const double factor = scale_percents[scale] / 100.0;
  const bool enough = cell.probes() >= probes_needed(objective, scale_percents[scale]);
  if ((enough || cell.lost >= losses_needed) &&
      is_shown(cell.lost, cell.probes(), std::min(objective.loss.value() * factor, 1.0),
               confidence))
    return Verdict::bad_loss;
  if (is_shown(cell.damaged, cell.probes(), std::min(objective.corruption.value() * factor, 1.0),
               confidence))
    return Verdict::bad_corruption;
  if (objective.latency_p99_us > 0) {
    const bool enough_timed = cell.timed_legs >= 2 * slow_replies_needed;
    if ((enough_timed || cell.slow_legs[scale] >= 2 * losses_needed) && is_slow(cell, scale))
      return Verdict::bad_latency;
  }
  return enough ? Verdict::good : Verdict::no_data;
}

const Cell* Series::find(std::int64_t minute) const {
  const auto hour = hours.find(hour_of(minute));
  return hour == hours.end() ? nullptr : &(*hour->second)[minute_in_hour(minute)];
}

MinuteCounters::MinuteCounters(const model::Fabric& fabric, const Settings& settings,
                               const Causes& causes)
    : MinuteCounters(fabric, settings, causes, Options{}) {}

MinuteCounters::MinuteCounters(const model::Fabric& fabric, const Settings& settings,
                               const Causes& causes, Options options)
    : fabric_(fabric), settings_(settings), causes_(causes), options_(options) {
  scopes_.resize(fabric.node_count());
  for (const NodeId node : fabric.nodes())
    scopes_[node] = {fabric.enclosing(node, model::ScopeKind::rack),
                     fabric.enclosing(node, model::ScopeKind::pod),
                     fabric.enclosing(node, model::ScopeKind::zone)};
  for (const auto& scope : fabric.scopes())
    if (scope.kind == model::ScopeKind::zone) ++zone_count_;
  for (const Objective& objective : settings.objectives)
    if (objective.latency_p99_us > 0)
      latency_least_us_ = std::min(latency_least_us_, objective.latency_p99_us);
}

Status MinuteCounters::add(const model::EvidenceSet& set) {
  std::vector<std::uint16_t> class_of;
  for (const std::string& name : set.classes) {
    WEFT_TRY(const std::uint16_t index, class_index(name));
    class_of.push_back(index);
  }
  for (const model::Evidence& row : set.rows) {
    ++counts_.rows;
    const std::int64_t minute = minute_of(row.t);
    if (!is_wanted(minute)) continue;
    WEFT_TRY_STATUS(add_row({row, set.path(row), minute, class_of[row.traffic_class]}));
  }
  return {};
}

bool MinuteCounters::is_wanted(std::int64_t minute) {
  if (minute < options_.first_minute || minute > options_.last_minute) {
    ++counts_.outside;
    return false;
  }
  const std::int64_t behind = newest_ > minute && oldest_ <= newest_ ? newest_ - minute : 0;
  if (behind > options_.lateness_minutes) {
    ++counts_.too_late;
    return false;
  }
  if (behind > options_.settle_minutes) ++counts_.late;
  return true;
}

Status MinuteCounters::add_row(const Row& row) {
  const Scopes &src = scopes_[row.row.src], &dst = scopes_[row.row.dst];
  explanation_.clear();
  if (row.row.lost > 0 || row.row.damaged > 0 || row.row.late > 0 ||
      row.row.rtt_p99_us > latency_least_us_)
    causes_.explain(row.row, row.path, explanation_);
  bool used = false;
  for (std::size_t i = 0; i < settings_.objectives.size(); ++i) {
    const Objective& objective = settings_.objectives[i];
    if (!objective.traffic_class.empty() && objective.traffic_class != classes_[row.traffic_class])
      continue;
    if (!find_entities(objective.span, src, dst)) continue;
    used = true;
    for (const ScopeId entity : entities_) {
      WEFT_TRY(Series * series, series_of(i, row.traffic_class, entity));
      WEFT_TRY_STATUS(add_to(*series, row));
    }
  }
  if (!used) ++counts_.no_scope;
  oldest_ = std::min(oldest_, row.minute);
  newest_ = std::max(newest_, row.minute);
  return {};
}

Status MinuteCounters::add_to(Series& series, const Row& row) {
  WEFT_TRY(Cell * cell, cell_of(series, row.minute));
  const model::Evidence& e = row.row;
  const double threshold_us = settings_.objectives[series.objective].latency_p99_us;
  if (newest_ > row.minute && newest_ - row.minute > options_.settle_minutes &&
      settled_.size() < watched_max)
    settled_.emplace(std::pair(static_cast<std::size_t>(&series - series_.data()), row.minute),
                     *cell);
  const bool there = e.leg != Leg::back;
  bool fits = add_up(cell->from_there, there ? e.sent : 0) && add_up(cell->lost, e.lost) &&
              add_up(cell->damaged, e.damaged) && add_up(cell->late_legs, row.legs() * e.late) &&
              add_up(cell->timed_legs, row.timed_legs()) &&
              add_up(cell->from_back, e.leg == Leg::forward ? e.lost + e.damaged : e.sent);
  for (std::size_t i = 0; threshold_us > 0 && i < scale_percents.size(); ++i)
    fits =
        fits && add_up(cell->slow_legs[i], row.slow_legs(threshold_us * scale_percents[i] / 100));
  if (!fits)
    return fail(Errc::infeasible, {},
                fmt::format("more than {} probes in the minute of {}",
                            std::numeric_limits<std::uint32_t>::max(), to_text(e.t)),
                "check \"sent\" in the rows of that minute");
  if (!explanation_.empty())
    blame(series, row,
          threshold_us > 0 ? static_cast<std::uint32_t>(row.slow_legs(threshold_us)) : 0);
  return {};
}

// Equal parts to all that explain the row; what does not divide goes to the first.
void MinuteCounters::blame(Series& series, const Row& row, std::uint32_t slow_legs) {
  if (row.row.lost == 0 && row.row.damaged == 0 && slow_legs == 0) return;
  const std::uint64_t n = explanation_.size();
  WEFT_CHECK(n > 0);
  const std::uint64_t lost = row.row.lost * blame_units, slow = slow_legs * blame_units,
                      damaged = row.row.damaged * blame_units;
  for (std::size_t i = 0; i < n; ++i) {
    Blame& part = series.blames[{row.minute, explanation_[i]}];
    part.lost += lost / n + (i == 0 ? lost % n : 0);
    part.damaged += damaged / n + (i == 0 ? damaged % n : 0);
    part.slow_legs += slow / n + (i == 0 ? slow % n : 0);
  }
}

Result<std::uint16_t> MinuteCounters::class_index(const std::string& name) {
  const auto known = std::ranges::find(classes_, name);
  if (known != classes_.end()) return static_cast<std::uint16_t>(known - classes_.begin());
  if (classes_.size() == classes_max)
    return fail(Errc::infeasible, {}, fmt::format("more than {} classes", classes_max),
                "name the classes by their DSCP");
  classes_.push_back(name);
  return static_cast<std::uint16_t>(classes_.size() - 1);
}

bool MinuteCounters::find_entities(Span span, const Scopes& src, const Scopes& dst) {
  entities_.assign(1, ScopeId{});
  const auto inside = [&](Level level) {
    if (!src[level].valid() || src[level] != dst[level]) return false;
    entities_.push_back(src[level]);
    return true;
  };
  const auto across = [&](Level level) {
    if (!src[level].valid() || !dst[level].valid() || src[level] == dst[level]) return false;
    entities_.insert(entities_.end(), {src[level], dst[level]});
    return true;
  };
  // Also per zone, where there are several.
  const auto of_one_zone = [&] {
    if (src[zone] != dst[zone]) return false;
    if (zone_count_ > 1 && src[zone].valid()) entities_.push_back(src[zone]);
    return true;
  };
  switch (span) {
    case Span::rack_internal:
      return inside(rack) && of_one_zone();
    case Span::cross_rack:
      return across(rack) && of_one_zone();
    case Span::pod:
      return inside(pod) && of_one_zone();
    case Span::cross_pod:
      return across(pod) && of_one_zone();
    case Span::zone:
      return inside(zone);
    case Span::cross_zone:
      return across(zone);
    case Span::all:
      break;
  }
  return true;
}

Result<Series*> MinuteCounters::series_of(std::size_t objective, std::uint16_t traffic_class,
                                          ScopeId entity) {
  WEFT_CHECK(objective < settings_.objectives.size() && traffic_class < classes_.size());
  std::vector<std::uint32_t>& slots = slots_[{objective, traffic_class}];
  if (slots.empty()) slots.assign(fabric_.scopes().size() + 1, 0);
  std::uint32_t& slot = slots[entity.valid() ? entity.index() + 1 : 0];
  if (slot == 0) {
    Series& fresh = series_.emplace_back();
    fresh.objective = objective;
    fresh.traffic_class = traffic_class;
    fresh.entity = entity;
    slot = static_cast<std::uint32_t>(series_.size());
  }
  return &series_[slot - 1];
}

Result<Cell*> MinuteCounters::cell_of(Series& series, std::int64_t minute) {
  std::unique_ptr<std::array<Cell, 60>>& hour = series.hours[hour_of(minute)];
  if (hour == nullptr) {
    cell_count_ += minutes_per_hour;
    if (cell_count_ > options_.cells_max)
      return fail(Errc::infeasible, {},
                  fmt::format("more than {} minutes of scopes and classes", options_.cells_max),
                  "use fewer objectives, or a shorter time range with --from and --to");
    hour = std::make_unique<std::array<Cell, 60>>();
  }
  return &(*hour)[minute_in_hour(minute)];
}

std::vector<const Series*> MinuteCounters::by_name() const {
  std::vector<const Series*> out;
  out.reserve(series_.size());
  for (const Series& series : series_) out.push_back(&series);
  std::ranges::sort(out, {}, [&](const Series* s) {
    // All of them before each single one.
    const std::uint64_t entity = s->entity.valid() ? std::uint64_t{s->entity.value} + 1 : 0;
    return std::tuple<std::size_t, std::string_view, std::uint64_t>(
        s->objective, classes_[s->traffic_class], entity);
  });
  return out;
}

std::vector<MinuteCounters::Revision> MinuteCounters::revisions() const {
  std::vector<Revision> out;
  for (const auto& [at, cell] : settled_) {
    WEFT_CHECK(at.first < series_.size() && series_[at.first].find(at.second) != nullptr);
    const Series& series = series_[at.first];
    const Objective& objective = settings_.objectives[series.objective];
    const Verdict before = judge(cell, objective, settings_.confidence);
    const Verdict after = judge(*series.find(at.second), objective, settings_.confidence);
    if (before != after) out.push_back({&series, at.second, before, after});
  }
  return out;
}

}  // namespace weft::observe::sli
