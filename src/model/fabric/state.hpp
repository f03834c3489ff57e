// What changes in time about a fabric: links and switches that are down, draining or degraded.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "model/fabric/fabric.hpp"

namespace weft::model {

// Draining: carries what cannot go elsewhere, attracts nothing new (BGP graceful shutdown).
enum class Health : std::uint8_t { up, draining, down };

struct Condition {
  Health health = Health::up;
  double rate_factor = 1;  // share of the nominal rate that is left, in (0, 1]
  double loss = 0;         // share of packets lost, in [0, 1)
  // How many times as long a GPU computes, at least 1; of a host: each of its GPUs. Links do not
  // feel it.
  double slowdown = 1;
  friend bool operator==(const Condition&, const Condition&) = default;
};

// Only exceptions are stored: copying costs the number of troubled links, not of links.
// Each change advances the version, so that caches know when they are stale.
class State {
 public:
  std::uint64_t version() const { return version_; }
  bool healthy() const { return links_.empty() && nodes_.empty(); }

  Condition link(LinkId link) const;
  Condition node(NodeId node) const;
  // How many times as long `gpu` computes: its own slowdown and that of its host, multiplied.
  double slowdown(const Fabric& fabric, NodeId gpu) const;
  void set(LinkId link, Condition condition);
  void set(NodeId node, Condition condition);

  // What a central controller takes the state to be, what the routes of all switches were made for,
  // and what each switch has noticed of its own links: this state, unless they hear late.
  const State& seen() const { return seen_ ? *seen_ : *this; }
  const State& routed() const { return routed_ ? *routed_ : *this; }
  const State& noticed() const { return noticed_ ? *noticed_ : *this; }
  void set_seen(std::shared_ptr<const State> seen) { seen_ = std::move(seen); }
  void set_routed(std::shared_ptr<const State> routed) { routed_ = std::move(routed); }
  void set_noticed(std::shared_ptr<const State> noticed) { noticed_ = std::move(noticed); }
  bool is_settled() const { return !seen_ && !routed_ && !noticed_; }  // all have heard of it
  // Nobody has renewed what a central controller installed for so long that switches ignore it.
  bool marks_lapsed() const { return marks_lapsed_; }
  void lapse_marks() { marks_lapsed_ = true; }

  // Exceptions in id order.
  const std::map<LinkId, Condition>& troubled_links() const { return links_; }
  const std::map<NodeId, Condition>& troubled_nodes() const { return nodes_; }

 private:
  std::uint64_t version_ = 0;
  bool marks_lapsed_ = false;
  std::map<LinkId, Condition> links_;
  std::map<NodeId, Condition> nodes_;
  std::shared_ptr<const State> seen_, routed_, noticed_;
};

// A State spread over all links, for inner loops: a link is down when it or one of its ends is.
struct LiveView {
  LiveView(const Fabric& fabric, const State& state);
  std::vector<Health> health;       // by LinkId
  std::vector<double> bytes_per_s;  // by LinkId; 0 when down, nominal x factor(s) otherwise
  bool usable(LinkId link) const { return health[link.index()] != Health::down; }
};

}  // namespace weft::model
