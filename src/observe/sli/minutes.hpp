// Counts per minute, scope and class, and the verdict on each minute.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/sli/causes.hpp"
#include "observe/sli/objectives.hpp"

namespace weft::observe::sli {

// Thresholds at which every minute can be judged: half, as asked for, twice; in percent.
inline constexpr std::array<int, 3> scale_percents{50, 100, 200};
inline constexpr std::size_t as_asked = 1;

// Probes of one scope and class that were sent in one minute. A probe that is told of by two rows,
// one for the way there and one for the way back, counts once: those who entered the way back are
// those who entered the way there less those who were lost on it.
struct Cell {
  std::uint32_t from_there = 0;  // round trips, and probes that entered the way there
  std::uint32_t from_back = 0;   // round trips, lost on the way there, entered the way back
  std::uint32_t lost = 0, damaged = 0;
  // Counted on each leg, a round trip twice.
  std::uint32_t late_legs = 0, timed_legs = 0;
  // Of the timed ones, those certainly slower than the threshold, for each of scale_percents.
  std::array<std::uint32_t, 3> slow_legs{};

  std::uint32_t probes() const { return from_there > from_back ? from_there : from_back; }
};

enum class Verdict : std::uint8_t { no_data, good, bad_loss, bad_corruption, bad_latency };
constexpr bool is_bad(Verdict v) { return v >= Verdict::bad_loss; }

// bad_loss: more is lost than the threshold, and the exact interval of the loss rate lies above it.
// bad_corruption: else, the same of damaged probes, however few probes there are.
// bad_latency: else, when more than 1 % of the replies are certainly slower than the threshold.
// no_data: fewer probes than needed, and none of the above shown by at least `losses_needed` lost
// or slow ones. good: the rest.
Verdict judge(const Cell& cell, const Objective& objective, double confidence,
              std::size_t scale = as_asked);

// A share of a minute's losses, damaged probes and slow replies that an episode accounts for.
struct Blame {
  std::uint64_t lost = 0, damaged = 0, slow_legs = 0;  // in units of 1 / blame_units
};
inline constexpr std::uint64_t blame_units = 720'720;  // divides by all numbers to 16

// All minutes of one objective, class and entity: one rack, one zone, or all.
struct Series {
  std::size_t objective = 0;
  std::uint16_t traffic_class = 0;  // index in MinuteCounters::classes()
  model::ScopeId entity;            // none: all probes of the objective
  std::map<std::int64_t, std::unique_ptr<std::array<Cell, 60>>> hours;
  std::map<std::pair<std::int64_t, EpisodeIndex>, Blame> blames;  // by minute

  // nullptr: nothing is known of that hour.
  const Cell* find(std::int64_t minute) const;
};

// Takes evidence in any order; the same rows give the same book. Rows are not kept.
// Memory: 36 bytes a minute of the hours in which a series has probes, at most `cells_max`.
class MinuteCounters {
 public:
  struct Options {
    std::int64_t first_minute = std::numeric_limits<std::int64_t>::min();  // what lies outside is
    std::int64_t last_minute = std::numeric_limits<std::int64_t>::max();   // counted, not used
    std::int64_t settle_minutes = 5;  // a minute is settled when a newer one by more has come
    // Rows that come more than this behind the newest are counted, not used. Then the order of
    // arrival matters.
    std::int64_t lateness_minutes = std::numeric_limits<std::int64_t>::max();
    std::size_t cells_max = std::size_t{1} << 26;
  };
  // All three must outlive the book.
  MinuteCounters(const model::Fabric& fabric, const Settings& settings, const Causes& causes);
  MinuteCounters(const model::Fabric& fabric, const Settings& settings, const Causes& causes,
                 Options options);

  // Fails: Errc::infeasible when `cells_max` or 4 billion probes in a minute are exceeded, or more
  // than 256 classes come; the book is of no use then.
  // Cost: some 0.2 us a row and objective where rows come roughly in order of time.
  Status add(const model::EvidenceSet& set);

  struct Counts {
    std::uint64_t rows = 0;
    std::uint64_t outside = 0;   // of the first and last minute
    std::uint64_t too_late = 0;  // behind the lateness
    std::uint64_t no_scope = 0;  // that no objective speaks of
    std::uint64_t late = 0;      // used, for minutes that had been settled
  };
  const Counts& counts() const { return counts_; }
  const std::vector<std::string>& classes() const { return classes_; }
  // In no particular order; `by_name` sorts by objective, class name and entity.
  std::span<const Series> series() const { return series_; }
  std::vector<const Series*> by_name() const;
  // First and last minute with a row that was used; first > last when there is none.
  std::pair<std::int64_t, std::int64_t> span() const { return {oldest_, newest_}; }

  // Minutes whose verdict late rows changed after they had settled; it depends on the order of
  // arrival. At most 100,000 minutes are watched.
  struct Revision {
    const Series* series;
    std::int64_t minute;
    Verdict before, after;
  };
  std::vector<Revision> revisions() const;

  const model::Fabric& fabric() const { return fabric_; }
  const Settings& settings() const { return settings_; }
  const Causes& causes() const { return causes_; }

 private:
  enum Level : std::uint8_t { rack, pod, zone };
  using Scopes = std::array<model::ScopeId, 3>;
  struct Row;

  bool is_wanted(std::int64_t minute);
  Status add_row(const Row& row);
  Status add_to(Series& series, const Row& row);
  Result<std::uint16_t> class_index(const std::string& name);
  Result<Series*> series_of(std::size_t objective, std::uint16_t traffic_class,
                            model::ScopeId entity);
  Result<Cell*> cell_of(Series& series, std::int64_t minute);
  void blame(Series& series, const Row& row, std::uint32_t slow_legs);
  // The entities of the span whose probes are those between the two; false when it has none.
  bool find_entities(Span span, const Scopes& src, const Scopes& dst);

  const model::Fabric& fabric_;
  const Settings& settings_;
  const Causes& causes_;
  Options options_;
  Counts counts_;
  Column<model::NodeId, Scopes> scopes_;
  std::size_t zone_count_ = 0;
  double latency_least_us_ = std::numeric_limits<double>::infinity();  // of the thresholds
  std::vector<std::string> classes_;
  std::vector<Series> series_;
  // By objective and class, then by entity + 1: the index in series_ + 1.
  std::map<std::pair<std::size_t, std::uint16_t>, std::vector<std::uint32_t>> slots_;
  std::size_t cell_count_ = 0;
  std::int64_t oldest_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t newest_ = std::numeric_limits<std::int64_t>::min();
  // What a settled minute was before late rows came, by series and minute.
  std::map<std::pair<std::size_t, std::int64_t>, Cell> settled_;
  std::vector<model::ScopeId> entities_;   // of the row at hand
  std::vector<EpisodeIndex> explanation_;  // the same
};

}  // namespace weft::observe::sli
