#include "engine/packet/phase_classes.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::engine::packet {
namespace {

void sort_unique(std::vector<std::uint32_t>& values) {
  std::ranges::sort(values);
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
}

}  // namespace

PhaseClasses::PhaseClasses(const World& world, std::span<const Phase> phases)
    : world_(world),
      set_(world.set),
      phases_(phases),
      cables_(static_cast<std::uint32_t>(world.fabric.link_count()) / 2),
      phase_of_(world.set.size(), none),
      class_of_(phases.size()) {
  for (std::uint32_t p = 0; p < phases.size(); ++p)
    for (std::uint32_t m = phases[p].first; m < phases[p].last; ++m) phase_of_[m] = p;
  for (std::uint32_t m = 0; m < set_.size(); ++m)
    WEFT_CHECK(phase_of_[m] == none
                   ? set_.messages[m].bytes == 0
                   : set_.messages[m].waits > 0 && set_.messages[m].not_before_ps == 0);
  std::unordered_multimap<std::uint64_t, std::uint32_t> known;  // classes by hash
  for (std::uint32_t p = 0; p < phases.size(); ++p) {
    const std::uint64_t hash = hash_of(phases[p]);
    const auto [from, to] = known.equal_range(hash);
    const auto same = std::find_if(from, to, [&](const auto& entry) {
      return alike(phases_[classes_[entry.second].exemplar], phases[p]);
    });
    if (same != to) {
      class_of_[p] = same->second;
      continue;
    }
    class_of_[p] = static_cast<std::uint32_t>(classes_.size());
    known.emplace(hash, class_of_[p]);
    add_class(p);
  }
}

std::uint64_t PhaseClasses::hash_of(const Phase& phase) const {
  std::uint64_t hash = phase.last - phase.first;
  for (std::uint32_t m = phase.first; m < phase.last; ++m) {
    const Message& message = set_.messages[m];
    hash = mix64(hash ^ message.bytes) + message.connection;
    hash = mix64(hash + (std::uint64_t{message.delay_ns} << 32 | message.waits));
  }
  return hash;
}

bool PhaseClasses::alike(const Phase& a, const Phase& b) const {
  if (a.last - a.first != b.last - b.first) return false;
  const auto is_in = [](const Phase& phase, const Dependent& d) {
    return d.message >= phase.first && d.message < phase.last;
  };
  for (std::uint32_t i = 0; i < a.last - a.first; ++i) {
    const Message &x = set_.messages[a.first + i], &y = set_.messages[b.first + i];
    if (x.connection != y.connection || x.bytes != y.bytes || x.delay_ns != y.delay_ns ||
        x.waits != y.waits)
      return false;
    // Those inside in order; of those outside only whether there are any.
    std::vector<std::uint64_t> inside[2];
    std::uint32_t outside[2] = {0, 0};
    for (const int side : {0, 1}) {
      const Phase& phase = side == 0 ? a : b;
      for (const Dependent d : set_.dependents_of(phase.first + i)) {
        if (is_in(phase, d)) {
          inside[side].push_back(std::uint64_t{d.message - phase.first} << 1 | d.when);
        } else {
          outside[side] |= 1u << d.when;
        }
      }
    }
    if (inside[0] != inside[1] || outside[0] != outside[1]) return false;
  }
  return true;
}

// All links by which packets may go from one node to another, by table.
void PhaseClasses::add_ways(std::uint32_t from, std::uint32_t to, std::uint32_t target,
                            std::vector<std::uint32_t>& links) const {
  std::vector<std::uint32_t> nodes{from}, seen{from};
  while (!nodes.empty()) {
    const std::uint32_t at = nodes.back();
    nodes.pop_back();
    if (at == to) continue;
    for (const LinkId link : world_.protocols.fib->next(NodeId(at), target)) {
      links.push_back(link.value);
      const std::uint32_t next = world_.links[link.index()].to;
      if (std::ranges::find(seen, next) != seen.end()) continue;
      seen.push_back(next);
      nodes.push_back(next);
    }
  }
}

void PhaseClasses::add_links(std::uint32_t connection, std::vector<std::uint32_t>& links) const {
  const Sender& sender = world_.senders[connection];
  if (sender.source == none) return;
  if (sender.path != none) {
    const auto path = world_.links_of(sender.path);
    links.insert(links.end(), path.begin(), path.end());
    return;
  }
  const Ends& ends = world_.protocols.ends[connection];
  if (world_.protocols.next_entropy.empty()) {
    const std::uint32_t first = world_.sources[sender.source].link;
    links.push_back(first);
    add_ways(world_.links[first].to, ends.dst, ends.dst_target, links);
  } else {
    add_ways(ends.src, ends.dst, ends.dst_target, links);
  }
  add_ways(ends.dst, ends.src, ends.src_target, links);
}

void PhaseClasses::add_class(std::uint32_t phase) {
  Class& added = classes_.emplace_back();
  added.exemplar = phase;
  for (std::uint32_t m = phases_[phase].first; m < phases_[phase].last; ++m)
    if (set_.messages[m].bytes > 0) added.connections.push_back(set_.messages[m].connection);
  sort_unique(added.connections);
  std::vector<std::uint32_t> links;
  for (const std::uint32_t c : added.connections) add_links(c, links);
  for (const std::uint32_t link : links) {
    added.resources.push_back(link / 2);
    if (!world_.accounts) continue;
    for (const NodeId node : {world_.fabric.from(LinkId(link)), world_.fabric.to(LinkId(link))})
      if (world_.fabric.is_switch(node)) added.resources.push_back(cables_ + node.value);
  }
  sort_unique(added.resources);
}

}  // namespace weft::engine::packet
