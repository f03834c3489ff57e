// Dragonfly: minimal, Valiant and UGAL routing, decided per stream.
#include <fmt/format.h>

#include <algorithm>

#include "route/dag.hpp"
#include "route/scheme.hpp"

namespace weft::route {
namespace {

// Groups are the scopes of kind pod.
struct Groups {
  std::vector<std::vector<NodeId>> routers;  // by group
  Column<NodeId, std::uint32_t> of;          // of a switch
  static constexpr std::uint32_t none = UINT32_MAX;
};

std::unexpected<Error> not_a_dragonfly(std::string what) {
  return fail(Errc::unsupported, {}, fmt::format("this fabric is not a dragonfly: {}", what),
              "choose e_ecmp or spray, which work on any fabric");
}

// A dragonfly is: every switch in a pod, two or more pods, a cable between every two of them.
Result<Groups> find_groups(const Fabric& fabric) {
  Groups groups{{}, Column<NodeId, std::uint32_t>(fabric.node_count(), Groups::none)};
  Column<model::ScopeId, std::uint32_t> group_of_scope(fabric.scopes().size(), Groups::none);
  for (const NodeId node : fabric.nodes()) {
    if (!fabric.is_switch(node)) continue;
    const model::ScopeId pod = fabric.enclosing(node, model::ScopeKind::pod);
    if (!pod.valid()) return not_a_dragonfly(fabric.name(node) + " is in no pod (group)");
    std::uint32_t& group = group_of_scope[pod];
    if (group == Groups::none) {
      group = static_cast<std::uint32_t>(groups.routers.size());
      groups.routers.emplace_back();
    }
    groups.of[node] = group;
    groups.routers[group].push_back(node);
  }
  const std::size_t count = groups.routers.size();
  if (count < 2) return not_a_dragonfly(fmt::format("it has {} pods (groups)", count));
  for (std::uint32_t g = 0; g < count; ++g) {
    std::vector<bool> joined(count, false);
    joined[g] = true;
    for (const NodeId router : groups.routers[g])
      for (const LinkId link : fabric.out(router))
        if (fabric.is_switch(fabric.to(link))) joined[groups.of[fabric.to(link)]] = true;
    const auto gap = std::ranges::find(joined, false);
    if (gap != joined.end())
      return not_a_dragonfly(fmt::format(
          "no cable connects the pods of {} and {}", fabric.name(groups.routers[g][0]),
          fabric.name(groups.routers[static_cast<std::size_t>(gap - joined.begin())][0])));
  }
  return groups;
}

std::vector<bool> global_links(const Fabric& fabric, const Groups& groups) {
  std::vector<bool> global(fabric.link_count(), false);
  for (const LinkId link : fabric.links()) {
    const std::uint32_t from = groups.of[fabric.from(link)], to = groups.of[fabric.to(link)];
    global[link.index()] = from != to && from != Groups::none && to != Groups::none;
  }
  return global;
}

enum class Mode : std::uint8_t { minimal, valiant, ugal_local, ugal_global };

// Minimal: the fewest global links, then the fewest links; a hash chooses among equals. Valiant:
// minimally to a group that a hash chooses (neither the first nor the last), from where it arrives
// there minimally on. From: Kim, Dally, Scott, Abts, "Technology-Driven, Highly-Scalable Dragonfly
// Topology", ISCA 2008.
//
// UGAL there compares queue x hops of both ways per packet. Here, per stream: the queue of a link
// is the number of streams that were routed over it since the last change of state; UGAL-L (ugal)
// looks at the first link between switches of each way, as a router sees its own queues, and UGAL-G
// (ugal_g) at the fullest link of each way. Ties go to the minimal way. So the answer depends on
// the order in which streams are asked for, and a stream asked for twice counts twice.
class Dragonfly : public Scheme {
 public:
  Dragonfly(Parts& parts, Groups groups, Mode mode)
      : parts_(parts),
        mode_(mode),
        groups_(std::move(groups)),
        next_hops_(parts.fabric, parts.live,
                   parts.config.weighted ? Weighting::capacity : Weighting::equal,
                   global_links(parts.fabric, groups_)),
        dag_(parts.fabric, next_hops_),
        queue_(
            mode == Mode::ugal_local || mode == Mode::ugal_global ? parts.fabric.link_count() : 0,
            0) {}

  bool append_leg(const Stream& stream, NodeId from, NodeId to, std::vector<Hop>& out) override {
    const std::uint64_t digest = parts_.hasher.digest(stream, QpField::hashed);
    if (mode_ == Mode::minimal) return append_minimal(digest, from, to, out);
    if (mode_ == Mode::valiant) return append_valiant(digest, from, to, out);
    return append_ugal(digest, from, to, out);
  }

  void append_usable_leg(NodeId from, NodeId to, std::vector<LinkId>& out) override {
    append_all({&from, 1}, next_hops_.goal(to), out);
    if (mode_ == Mode::minimal) return;
    const auto [first, last] = end_groups(from, to);
    for (std::uint32_t g = 0; g < groups_.routers.size(); ++g) {
      if (g == first || g == last) continue;
      const std::vector<NodeId> arrived =
          append_all({&from, 1}, next_hops_.goal_any(groups_.routers[g]), out);
      append_all(arrived, next_hops_.goal(to), out);
    }
  }

  void append_ways(std::uint64_t digest, NodeId from, NodeId to, std::vector<Hop>& minimal,
                   std::vector<Hop>& detour) override {
    if (!append_minimal(digest, from, to, minimal)) minimal.clear();
    if (minimal.empty() || !append_valiant(digest, from, to, detour)) detour.clear();
  }

  bool may_repeat() const override { return mode_ != Mode::minimal; }
  void on_change(std::span<const LinkChange> changes) override {
    next_hops_.on_change(changes);
    std::ranges::fill(queue_.raw(), 0);
  }
  void trim() override { next_hops_.trim(); }

 private:
  // Groups of both ends; of a NIC, that of its first switch.
  std::pair<std::uint32_t, std::uint32_t> end_groups(NodeId from, NodeId to) const {
    const auto group_of = [&](NodeId end) {
      if (groups_.of[end] != Groups::none) return groups_.of[end];
      for (const LinkId link : parts_.fabric.out(end))
        if (const std::uint32_t g = groups_.of[parts_.fabric.to(link)]; g != Groups::none) return g;
      return Groups::none;
    };
    return {group_of(from), group_of(to)};
  }

  NodeId walk_to(std::uint64_t digest, NodeId from, const Goal& goal, std::vector<Hop>& out) {
    const auto choose = [&](NodeId at, const Choices& choices) {
      return parts_.hasher.choose(at, digest, choices);
    };
    return walk(parts_.fabric, next_hops_, from, goal, choose, out);
  }

  bool append_minimal(std::uint64_t digest, NodeId from, NodeId to, std::vector<Hop>& out) {
    return walk_to(digest, from, next_hops_.goal(to), out).valid();
  }

  // Minimal where there is no third group, or none that can be reached.
  bool append_valiant(std::uint64_t digest, NodeId from, NodeId to, std::vector<Hop>& out) {
    const auto [first, last] = end_groups(from, to);
    const std::size_t start = out.size();
    const std::size_t count = groups_.routers.size();
    const std::size_t others = count - (first == last ? 1 : 2);
    for (std::size_t attempt = 0; attempt < others; ++attempt) {
      const std::size_t middle =
          (scale(mix64(digest ^ hash_text("valiant")), others) + attempt) % others;
      const Goal goal = next_hops_.goal_any(groups_.routers[nth_other(middle, first, last)]);
      const NodeId arrived = walk_to(digest, from, goal, out);
      // The second half hashes as another flow would, or it would lean on the first one's choices.
      if (arrived.valid() && append_minimal(mix64(digest), arrived, to, out)) return true;
      out.resize(start);
    }
    return append_minimal(digest, from, to, out);
  }

  // The index-th group that is neither of two.
  static std::uint32_t nth_other(std::size_t index, std::uint32_t a, std::uint32_t b) {
    auto group = static_cast<std::uint32_t>(index);
    const auto [low, high] = std::minmax({a, b});
    if (group >= low) ++group;
    if (group >= high && high != low) ++group;
    return group;
  }

  bool append_ugal(std::uint64_t digest, NodeId from, NodeId to, std::vector<Hop>& out) {
    const std::size_t start = out.size();
    if (!append_minimal(digest, from, to, out)) return false;
    detour_.clear();
    if (append_valiant(digest, from, to, detour_)) {
      if (delay_on(std::span<const Hop>(out).subspan(start)) > delay_on(detour_)) {
        out.resize(start);
        out.insert(out.end(), detour_.begin(), detour_.end());
      }
    }
    if (!parts_.counts) return true;
    for (std::size_t i = start; i < out.size(); ++i) ++queue_[out[i].link];
    return true;
  }

  // Queue x hops between switches.
  std::size_t delay_on(std::span<const Hop> path) const {
    std::size_t queue = 0, hops = 0;
    for (const auto& [link, share] : path) {
      if (!next_hops_.is_switch(parts_.fabric.from(link)) ||
          !next_hops_.is_switch(parts_.fabric.to(link)))
        continue;
      ++hops;
      if (mode_ == Mode::ugal_global || hops == 1)
        queue = std::max<std::size_t>(queue, queue_[link]);
    }
    return queue * hops;
  }

  // All links of the shortest paths; returns where they end.
  std::vector<NodeId> append_all(std::span<const NodeId> from, const Goal& goal,
                                 std::vector<LinkId>& out) {
    std::vector<NodeId> ends;
    for (const NodeId start : from) {
      dag_.start(start);
      while (!dag_.done(goal))
        if (!dag_.step(goal, [&](LinkId link, double) { out.push_back(link); })) break;
      if (dag_.done(goal)) dag_.for_each_node([&](NodeId node) { ends.push_back(node); });
    }
    std::ranges::sort(ends);
    const auto repeats = std::ranges::unique(ends);
    ends.erase(repeats.begin(), repeats.end());
    return ends;
  }

  Parts& parts_;
  Mode mode_;
  Groups groups_;
  NextHops next_hops_;
  Dag<NextHops> dag_;
  Column<LinkId, std::uint32_t> queue_;
  std::vector<Hop> detour_;
};

Result<std::unique_ptr<Scheme>> make(Parts& parts, Mode mode) {
  WEFT_TRY(Groups groups, find_groups(parts.fabric));
  return std::make_unique<Dragonfly>(parts, std::move(groups), mode);
}

}  // namespace

Result<std::unique_ptr<Scheme>> make_minimal(Parts& parts) { return make(parts, Mode::minimal); }
Result<std::unique_ptr<Scheme>> make_valiant(Parts& parts) { return make(parts, Mode::valiant); }
Result<std::unique_ptr<Scheme>> make_ugal(Parts& parts) { return make(parts, Mode::ugal_local); }
Result<std::unique_ptr<Scheme>> make_ugal_g(Parts& parts) { return make(parts, Mode::ugal_global); }

}  // namespace weft::route
