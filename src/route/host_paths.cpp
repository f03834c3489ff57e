#include "route/host_paths.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::route {
namespace {

using model::NodeKind;

bool is_inside_host(const Fabric& fabric, LinkId link) {
  const auto outside = [&](NodeId node) {
    return fabric.is_switch(node) || fabric.kind(node) == NodeKind::nic;
  };
  return !outside(fabric.from(link)) || !outside(fabric.to(link));
}

}  // namespace

bool InnerSearch::search(NodeId from, NodeId to, Medium medium) {
  if (marks_.empty()) marks_.resize(fabric_.node_count());
  ++round_;
  queue_.assign(1, to);
  marks_[to] = {round_, 0};
  for (std::size_t i = 0; i < queue_.size() && !is_known(from); ++i) {
    const NodeId at = queue_[i];
    for (const LinkId out : fabric_.out(at)) {
      const NodeId before = fabric_.to(out);
      const bool joins = before == from || medium_of(fabric_.kind(before)) == medium;
      if (!joins || is_known(before) || !live_.usable(reverse(out))) continue;
      marks_[before] = {round_, marks_[at].distance + 1};
      queue_.push_back(before);
    }
  }
  return is_known(from);
}

Choices InnerSearch::next(NodeId at, NodeId) {
  links_.clear();
  for (const LinkId link : fabric_.out(at)) {
    const NodeId to = fabric_.to(link);
    if (live_.usable(link) && is_known(to) && marks_[to].distance + 1 == marks_[at].distance)
      links_.push_back(link);
  }
  return {links_};
}

HostPaths::HostPaths(const Fabric& fabric, const LiveLinks& live, const Domains& domains)
    : fabric_(fabric),
      live_(live),
      domains_(domains),
      search_(fabric, live),
      dag_(fabric, search_),
      ways_(fabric.gpus().size()) {}

void HostPaths::on_change(std::span<const LinkChange> changes) {
  const bool inside = std::ranges::any_of(
      changes, [&](const LinkChange& change) { return is_inside_host(fabric_, change.link); });
  if (!inside) return;
  ways_.assign(ways_.size(), {});
  hops_.clear();
}

Medium HostPaths::medium_between(NodeId a, NodeId b) const {
  if (domains_.connected(a, b, Medium::nvlink)) return Medium::nvlink;
  const bool one_host = fabric_.host_of(a).valid() && fabric_.host_of(a) == fabric_.host_of(b);
  return one_host && domains_.connected(a, b, Medium::pcie) ? Medium::pcie : Medium::none;
}

bool HostPaths::append_search(NodeId from, NodeId to, Medium medium, std::vector<Hop>& out) {
  if (!search_.search(from, to, medium)) return false;
  dag_.start(from);
  while (!dag_.done(to))
    dag_.step(to, [&](LinkId link, double share) { out.push_back({link, share}); });
  return true;
}

bool HostPaths::append_between(NodeId a, NodeId b, Medium medium, std::vector<Hop>& out) {
  return append_search(a, b, medium, out);
}

Duration HostPaths::latency(NodeId from, NodeId to) {
  const Medium medium = from == to ? Medium::none : medium_between(from, to);
  Duration sum;
  if (medium == Medium::none) return sum;
  if (!search_.search(from, to, medium)) return duration_max;
  for (NodeId at = from; at != to;) {
    const LinkId link = search_.next(at, to).links.front();
    sum = sum + fabric_.latency(link);
    at = fabric_.to(link);
  }
  return sum;
}

bool HostPaths::append_to_nic(NodeId gpu, std::vector<Hop>& out) {
  return append_cached(gpu, Way::to_nic, out);
}
bool HostPaths::append_from_nic(NodeId gpu, std::vector<Hop>& out) {
  return append_cached(gpu, Way::from_nic, out);
}

bool HostPaths::append_cached(NodeId gpu, Way way, std::vector<Hop>& out) {
  Range& range = ways_[fabric_.role_index(gpu)].of(way);
  if (range.count == unknown) {
    range = {0, 0};  // of a GPU in no host
    if (const NodeId host = fabric_.host_of(gpu); host.valid()) find_host(host, way);
  }
  if (range.count == 0) return true;
  if (range.count == broken) return false;
  const auto first = hops_.begin() + range.first;
  out.insert(out.end(), first, first + range.count);
  return true;
}

// All GPUs of a host at once, as whether a link limits depends on all that use it.
void HostPaths::find_host(NodeId host, Way way) {
  std::vector<Hop> path;
  std::vector<Use> uses;
  std::vector<std::size_t> ends;
  for (const NodeId gpu : fabric_.gpus_of(host)) {
    Range& range = ways_[fabric_.role_index(gpu)].of(way);
    range = {0, 0};
    const NodeId nic = fabric_.nic_of(gpu);
    if (nic.valid() && domains_.connected(gpu, nic, Medium::pcie)) {
      const std::size_t start = path.size();
      const bool found = way == Way::to_nic ? append_search(gpu, nic, Medium::pcie, path)
                                            : append_search(nic, gpu, Medium::pcie, path);
      if (!found) range.count = broken;
      for (std::size_t i = start; i < path.size(); ++i) uses.push_back({path[i].link, nic});
    }
    ends.push_back(path.size());
  }
  const std::vector<LinkId> limiting = limiting_links(host, way, uses);
  std::size_t at = 0;
  WEFT_CHECK(ends.size() == fabric_.gpus_of(host).size());
  for (std::size_t i = 0; i < ends.size(); ++i) {
    Range& range = ways_[fabric_.role_index(fabric_.gpus_of(host)[i])].of(way);
    range.first = static_cast<std::uint32_t>(hops_.size());
    for (; at < ends[i]; ++at)
      if (std::ranges::binary_search(limiting, path[at].link)) {
        hops_.push_back(path[at]);
        ++range.count;
      }
  }
}

// Sorted. Links that limit nobody are found with the NICs' nominal rates, which none exceeds.
std::vector<LinkId> HostPaths::limiting_links(NodeId host, Way way, std::vector<Use>& uses) const {
  std::ranges::sort(uses);
  const auto repeats = std::ranges::unique(uses);
  uses.erase(repeats.begin(), repeats.end());
  const bool shared = shares_pcie(host);
  std::vector<LinkId> limiting;
  for (std::size_t i = 0; i < uses.size();) {
    const LinkId link = uses[i].link;
    double wanted = 0;
    for (; i < uses.size() && uses[i].link == link; ++i)
      wanted += nic_bytes_per_s(uses[i].nic, way);
    if (shared || live_.bytes_per_s(link) < wanted) limiting.push_back(link);
  }
  return limiting;
}

double HostPaths::nic_bytes_per_s(NodeId nic, Way way) const {
  double sum = 0;
  for (const LinkId link : fabric_.out(nic))
    if (!is_inside_host(fabric_, link))
      sum += fabric_.rate(way == Way::to_nic ? link : reverse(link)).bytes_per_s();
  return sum;
}

// Whether GPUs of the host use PCIe to reach each other.
bool HostPaths::shares_pcie(NodeId host) const {
  const std::span<const NodeId> gpus = fabric_.gpus_of(host);
  for (const NodeId a : gpus)
    for (const NodeId b : gpus)
      if (a < b && medium_between(a, b) == Medium::pcie) return true;
  return false;
}

}  // namespace weft::route
