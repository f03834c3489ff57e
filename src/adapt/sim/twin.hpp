// A fabric whose faults are known: it answers probes as the real one would.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "base/rng.hpp"
#include "base/timestamp.hpp"
#include "base/units.hpp"
#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/localise/counters.hpp"
#include "observe/probe/targets.hpp"

namespace weft::adapt::sim {

using model::EvidenceSet;
using model::Fabric;
using model::LinkId;
using model::NodeId;
using observe::localise::LinkCounters;

// Probes with one 5-tuple and class.
struct TwinFlow {
  NodeId src, dst;  // NICs
  std::uint16_t sport = 0, dport = observe::probe::default_port;
  std::uint8_t traffic_class = 0;                   // in TwinPlan::classes
  std::uint32_t forward_first = 0, back_first = 0;  // paths, in TwinPlan::links
  std::uint16_t forward_size = 0, back_size = 0;    // back_size 0: nobody answers (one-way)
  double per_s = 0;
};

struct TwinPlan {
  std::vector<TwinFlow> flows;
  std::vector<LinkId> links;
  std::vector<std::string> classes{"0"};

  std::span<const LinkId> forward(const TwinFlow& flow) const {
    return {links.data() + flow.forward_first, flow.forward_size};
  }
  std::span<const LinkId> back(const TwinFlow& flow) const {
    return {links.data() + flow.back_first, flow.back_size};
  }
};

// Loses some 5-tuples on some links: those whose hash falls into one of `buckets`.
struct TupleFault {
  std::vector<LinkId> links;  // ascending
  std::uint64_t salt = 0;
  std::uint32_t buckets = 64;
  double loss = 1;
};

// A host that now and then does nothing for a while.
struct Stalls {
  double per_s = 0;
  Duration length = 50'000_us;
  double late_share = 0;  // of the probes that meet a stall: answered late rather than lost
};

// A queue that overflows now and then, in one class.
struct Bursts {
  LinkId link;
  std::uint8_t traffic_class = 0;
  double per_s = 0;
  Duration length = 50'000_us;
  double loss = 0.1;  // while it lasts
};

struct Observation {
  EvidenceSet evidence;                // two rows a flow (one, where nobody answers), in order
  std::vector<LinkCounters> counters;  // where asked for
};

enum class Counters : std::uint8_t { none, all_links };

// Probes are lost independently, each with the chance that its links and hosts give it; the counts
// are drawn exactly. What is not modelled: which moment of a window a probe is sent at.
class Twin {
 public:
  // `fabric` must outlive the twin.
  Twin(const Fabric& fabric, std::size_t class_count, std::uint64_t seed);

  // `loss` in [0, 1]; replaces what was set before.
  void set_loss(LinkId link, double loss);
  void set_loss(LinkId link, std::uint8_t traffic_class, double loss);
  // Share of what is not lost on the link that comes with a wrong payload, in [0, 1]; 0: none
  // again.
  void set_damage(LinkId link, double share);
  // The same of what comes once more.
  void set_duplicates(LinkId link, double share);
  double loss(LinkId link, std::uint8_t traffic_class) const;
  void add(TupleFault fault) { tuple_faults_.push_back(std::move(fault)); }
  void add(const Bursts& bursts) { bursts_.push_back(bursts); }
  void set_stalls(NodeId host, const Stalls& stalls) { stalls_[host] = stalls; }
  void kill(NodeId host) { set_dead(host, true); }
  void set_dead(NodeId host, bool is_dead) { dead_[host] = is_dead; }
  void set_black_holes(std::vector<Operations::BlackHole> holes) { holes_ = std::move(holes); }
  bool is_dead(NodeId host) const { return dead_[host]; }
  const std::map<NodeId, Stalls>& stalls() const { return stalls_; }

  // The window [t, t + length). The plan has as many classes as the twin. Dead hosts send nothing.
  // Cost: O(flows x hops + lost probes).
  Observation observe(const TwinPlan& plan, Timestamp t, Duration length,
                      Counters counters = Counters::none);

 private:
  struct Window;

  void begin(Window& window);
  void probe(const TwinPlan& plan, const TwinFlow& flow, Window& window, Observation& out);
  double leg_loss(std::span<const LinkId> path, const TwinFlow& flow, const Window& window) const;
  // By link: -log(1 - share).
  using Shares = std::map<LinkId, double>;
  static void set_share(Shares& shares, LinkId link, double share);
  static double share_over(const Shares& shares, std::span<const LinkId> path);
  bool is_eaten(std::span<const LinkId> path) const;
  bool hits(const TupleFault& fault, std::span<const LinkId> path, const TwinFlow& flow) const;
  void count(const TwinPlan& plan, const Window& window, Observation& out);

  const Fabric& fabric_;
  std::size_t class_count_;
  Rng rng_;
  std::vector<double> intensity_;  // -log(1 - loss), by class, then link
  Shares damage_, duplicates_;
  std::vector<TupleFault> tuple_faults_;
  std::vector<Bursts> bursts_;
  std::vector<Operations::BlackHole> holes_;
  std::map<NodeId, Stalls> stalls_;
  Column<NodeId, bool> dead_;
};

}  // namespace weft::adapt::sim
