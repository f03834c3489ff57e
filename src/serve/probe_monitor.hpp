// What probes met lately, and which parts are to blame: the localiser run over a sliding window.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/events/evidence.hpp"
#include "observe/localise/localise.hpp"
#include "port/actuator.hpp"
#include "route/path_age.hpp"
#include "serve/views.hpp"

namespace weft::serve {

struct ProbeMonitorSettings {
  std::int64_t keep_ns = 10'000'000'000;  // rows whose window began so long ago are looked at
  std::int64_t every_ns = 1'000'000'000;  // how often
  double probability = 0.9;               // verdicts of less are not told
  std::uint32_t card_ports = 0;           // as observe::localise::Options
  double delay_us = 1000;                 // the same
  std::size_t rows_max = 2'000'000;       // the oldest go first, and are counted
};

class ProbeMonitor {
 public:
  struct Counts {
    std::uint64_t rows = 0, dropped = 0, runs = 0, verdicts = 0;
    std::uint64_t old_paths = 0;  // rows whose path was no longer the way
  };

  // `fabric` must outlive it.
  ProbeMonitor(const model::Fabric& fabric, const ProbeMonitorSettings& settings);

  void add(const model::EvidenceSet& rows);
  // What is out of service from `now` on. Where that is a change, what was seen so far speaks of
  // the past only: rows of windows that began before are dropped, also those that are still on
  // their way; and routes change. As long as drains and returns are under way, routes may be those
  // of `out` or those of `or_only`; else they are equal.
  void set_out_of_service(const model::State& out, const model::State& or_only, Timestamp now);
  void set_out_of_service(const model::State& out, Timestamp now) {
    set_out_of_service(out, out, now);
  }
  // The links over which devices say that no route leads, from `now` on. Where that is a change,
  // routes change.
  //
  // A row whose path was found out before routes changed keeps it only while it holds
  // (route/path_age), whichever routes they may be, and only if it also held whatever changed in
  // the sweep_ns that finding it out may have taken.
  void set_down(const std::set<model::LinkId>& links, Timestamp now);
  static constexpr std::int64_t sweep_ns = 5'000'000'000;

  // When it is time and rows have come since: a record of each verdict as a JSON line, for the
  // feed "record". Its time is `now`, its id the same for the same verdict at the same time.
  // Parts that lose are probe_loss, those that damage payloads probe_corruption, that double
  // answers probe_duplicates, that take longer than queues do probe_delay; switches that do not
  // forward to one destination (attribute "to") probe_route; hosts that answer nobody probe_host,
  // congestion probe_latency; starved hosts and links without traffic are kind info. Of loss and
  // corruption, attribute "flows" names flows that suffered there (failing_flows.hpp). Rows over
  // what is out of service blame nobody; those whose path is old, and those without one whose
  // prober has paths for others, say only that an end answers nobody, where that is so. Cost: that
  // of Localiser::run over the rows kept.
  std::vector<std::string> look(Timestamp now);

  // The rows of the last `keep_ns`, as look() takes them.
  model::EvidenceSet recent() const;
  // What the rows of the last `keep_ns` say of racks and links. Cost: O(links of their paths).
  ProbeView view(Timestamp now) const;

  // When look() has something to do; none: not before more rows come.
  std::optional<Timestamp> next_due() const {
    return has_new_ ? std::optional(next_) : std::nullopt;
  }
  const Counts& counts() const { return counts_; }

 private:
  struct Row {
    model::Evidence evidence;
    std::vector<model::LinkId> path;
    bool lost_its_path = false;  // it was old
  };
  // What routes avoided since when, or else avoided; the last one is now.
  struct Epoch {
    // Of paths that were learned by the first number of `routes`, by those of this epoch.
    using Pair = std::pair<std::size_t, std::size_t>;
    Timestamp since;
    std::vector<model::State> routes;  // one or two
    // By the number of the same or a later epoch; made when a row asks.
    std::map<std::pair<std::uint64_t, Pair>, route::PathAge> ages;
  };
  // Whether the row's path was learned in an earlier epoch, or in one of several routes, and may
  // not have been the way all the time since its window began.
  bool is_old(const Row& row);
  bool holds(Epoch& then, std::size_t later, std::span<const model::LinkId> path);
  void drop_old_paths();
  void note_routes(Timestamp now);
  std::vector<port::Flow> failing(const observe::localise::Entity& entity) const;
  std::string line(const observe::localise::Verdict& verdict,
                   const observe::localise::Report& report, Timestamp now) const;

  const model::Fabric& fabric_;
  ProbeMonitorSettings settings_;
  observe::localise::Localiser localiser_;
  std::vector<std::string> classes_;
  std::deque<Row> rows_;
  model::State out_, or_only_;
  std::set<model::LinkId> down_;
  Timestamp out_since_{INT64_MIN};
  std::deque<Epoch> epochs_;
  std::uint64_t epochs_gone_ = 0;  // the number of the first one that is kept
  Timestamp next_;
  bool has_new_ = false;
  Counts counts_;
};

}  // namespace weft::serve
