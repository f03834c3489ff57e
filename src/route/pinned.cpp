// Path pinning: the way depends on the destination alone, on which slice of its rack it is.
#include "route/shortest_path_scheme.hpp"

namespace weft::route {
namespace {

// The slice of a NIC is its place among the NIC ports of its first switch. With n next hops to
// choose from, slice s takes number s mod n; so a whole rack that sends to all slices of other
// racks loads every uplink alike (Meta: "RDMA over Ethernet for Distributed AI Training at Meta
// Scale", SIGCOMM 2024, which describes racks under one layer of spines). Further up, where slices
// would all come out at the same place, the number of the destination's switch takes the turn,
// digit by digit, as in D-mod-k routing (Zahavi, "Fat-trees routing and node ordering providing
// contention free traffic for MPI global collectives", JPDC 2012); that extension is ours.
//
// The list of next hops is that of the healthy fabric, so that a failure moves only what it hits:
// to the next live one in the list.
class Pinned : public ShortestPathScheme {
 public:
  explicit Pinned(Parts& parts) : ShortestPathScheme(parts), slice_(parts.fabric.node_count(), 0) {
    for (const NodeId node : parts.fabric.nodes())
      if (parts.fabric.is_switch(node)) number_slices(node);
  }

  bool append_leg(const Stream&, NodeId from, NodeId to, std::vector<Hop>& out) override {
    const Goal goal = parts_.next_hops.goal(to);
    NextHops* healthy = healthy_next_hops();
    const Goal healthy_goal = healthy == nullptr ? Goal{} : healthy->goal(to);
    Digits digits = digits_of(from, to);
    const auto choose = [&](NodeId at, const Choices& live) {
      if (healthy == nullptr) return live.links[take_digit(digits, at, goal, live.links.size())];
      const Choices all = healthy->next(at, healthy_goal);
      const std::size_t count = all.links.size();
      const std::size_t digit = take_digit(digits, at, goal, count);
      for (std::size_t i = 0; i < count; ++i) {
        const LinkId link = all.links[(digit + i) % count];
        if (std::ranges::find(live.links, link) != live.links.end()) return link;
      }
      return live.links[digit % live.links.size()];
    };
    return walk(parts_.fabric, parts_.next_hops, from, goal, choose, out).valid();
  }

  void trim() override {
    if (healthy_) healthy_->next_hops.trim();
  }

 private:
  struct Healthy {
    explicit Healthy(const Fabric& fabric)
        : links(fabric), next_hops(fabric, links, Weighting::equal) {}
    LiveLinks links;
    NextHops next_hops;
  };
  struct Digits {
    NodeId first_switch;  // not valid while the path is still at a NIC
    std::size_t slice;    // what is left of it after the choice of the NIC's port
    std::size_t number;   // of the destination's switch, less the digits used
  };

  // nullptr as long as the live fabric is the healthy one.
  NextHops* healthy_next_hops() {
    if (parts_.live.state().healthy()) return nullptr;
    if (!healthy_) healthy_ = std::make_unique<Healthy>(parts_.fabric);
    return &healthy_->next_hops;
  }

  // A NIC with several ports goes by its first.
  void number_slices(NodeId at) {
    std::uint32_t next = 0;
    for (const LinkId link : parts_.fabric.out(at)) {
      const NodeId nic = parts_.fabric.to(link);
      if (parts_.fabric.kind(nic) != model::NodeKind::nic) continue;
      if (first_port(nic) == reverse(link)) slice_[nic] = next;
      ++next;
    }
  }

  LinkId first_port(NodeId nic) const {
    for (const LinkId link : parts_.fabric.out(nic))
      if (parts_.fabric.is_switch(parts_.fabric.to(link))) return link;
    return LinkId{};
  }

  Digits digits_of(NodeId from, NodeId to) const {
    const bool is_switch = parts_.fabric.is_switch(to);
    const LinkId port = is_switch ? LinkId{} : first_port(to);
    const NodeId last = port.valid() ? parts_.fabric.to(port) : to;
    const std::size_t number = parts_.fabric.role_index(last);
    return {parts_.fabric.is_switch(from) ? from : NodeId{}, is_switch ? number : slice_[to],
            number};
  }

  // The index of the next hop at `at`, of `count`.
  std::size_t take_digit(Digits& digits, NodeId at, const Goal& goal, std::size_t count) const {
    if (!parts_.fabric.is_switch(at)) {
      const std::size_t digit = digits.slice % count;
      digits.slice /= count;
      return digit;
    }
    if (!digits.first_switch.valid()) digits.first_switch = at;
    if (at == digits.first_switch || parts_.next_hops.arrives(at, goal))
      return digits.slice % count;
    const std::size_t digit = digits.number % count;
    digits.number /= count;
    return digit;
  }

  std::unique_ptr<Healthy> healthy_;
  Column<NodeId, std::uint32_t> slice_;  // of NICs
};

}  // namespace

Result<std::unique_ptr<Scheme>> make_pinned(Parts& parts) {
  if (parts.config.weighted)
    return fail(Errc::infeasible, {},
                "\"pinned\" chooses by position, so \"weighted\" has no effect",
                "remove routing.weighted, or choose e_ecmp");
  return std::make_unique<Pinned>(parts);
}

}  // namespace weft::route
