// What failures within a run did to flows, until routing led round them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "model/fabric/faults.hpp"
#include "model/work/outcome.hpp"

namespace weft::engine {

using model::Fabric;
using model::LinkId;
using model::NodeId;

// The failures of a run, one for each time at which links between NICs and switches die, and what
// has been found out about them. Runs of which an engine makes several add to the same log.
class FailureLog {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  // `changes` ascend in time; what is dead at the start is no failure. `fabric` must outlive this.
  // Cost: O(links) a change.
  FailureLog(const Fabric& fabric, std::span<const model::FaultTimeline::Snapshot> changes);

  // In order of time.
  std::vector<model::FailureOutcome> take_outcomes();

 private:
  friend class FailureWatch;
  struct Turn {  // of a link, at a time
    Time at;
    LinkId link;
    std::uint32_t failure;  // that it died of; `none`: it is back
  };
  struct Tally {
    model::FailureOutcome outcome;
    std::vector<double> again_s;
  };
  void add_failure(Time at, std::span<const LinkId> died, const model::State& state);

  const Fabric& fabric_;
  std::vector<Turn> turns_;  // by time
  std::vector<Tally> failures_;
};

// One simulation as it goes, from `start` of the run on. At each change of the fabric's state:
// pass(), hit() for every flow whose path meets is_down(), and, once paths are new, settle().
class FailureWatch {
 public:
  // `packets_lost(link)`: by the simulation so far; null in an engine without packets. `log` must
  // outlive this.
  FailureWatch(FailureLog& log, Time start,
               std::function<std::uint64_t(LinkId)> packets_lost = nullptr);

  // Links die and come back that do so until `at`, of the run.
  void pass(Time at);
  bool any_down() const { return down_count_ > 0; }
  bool is_down(LinkId link) const { return failure_of_[link.index()] != FailureLog::none; }

  struct Flow {
    std::uint64_t key = 0;  // the simulation's name for it
    NodeId from, to;
    std::uint32_t qp = 0;
    double bytes_per_s = 0;  // before; fluid engine
    double lost_bytes = 0;   // on the way; fluid engine
  };
  // A flow under way whose path crosses `dead`, a link that is down. Known ones stay as they are.
  void hit(const Flow& flow, LinkId dead);
  // `has_path(key)`: whether it leads over no dead link now. Cost: O(flows hit).
  void settle(Time at, const std::function<bool(std::uint64_t key)>& has_path);
  // At the end, `at` of the run; `is_busy(key)`: the flow has not got through.
  void finish(Time at, const std::function<bool(std::uint64_t key)>& is_busy);

 private:
  struct Hit {
    Flow flow;
    std::uint32_t failure;
  };
  void count_packets(LinkId link);
  void close(const Hit& hit, double again_s);

  FailureLog& log_;
  std::function<std::uint64_t(LinkId)> packets_lost_;
  std::size_t next_turn_ = 0;
  std::size_t down_count_ = 0;
  std::vector<std::uint32_t> failure_of_;        // by link
  std::map<LinkId, std::uint64_t> lost_before_;  // of links that are down
  std::map<std::uint64_t, Hit> hits_;            // without a path, by key
};

}  // namespace weft::engine
