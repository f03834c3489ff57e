#include "adapt/linux_switch/main_table.hpp"

#include <algorithm>
#include <utility>

namespace weft::adapt {
inline namespace linux_switch {
namespace {

Ipv4 network_of(Ipv4 address, std::size_t length) {
  return length == 0 ? 0 : address & ~Ipv4{0} << (32 - length);
}

}  // namespace

MainTable::MainTable(std::vector<KernelRoute> routes) : routes_(std::move(routes)) {
  for (std::size_t i = 0; i < routes_.size(); ++i)
    if (routes_[i].prefix_length < by_prefix_.size())
      by_prefix_[routes_[i].prefix_length].emplace(
          network_of(routes_[i].destination, routes_[i].prefix_length), i);
}

bool MainTable::leads(Ipv4 to, std::uint32_t interface) const {
  for (std::size_t length = by_prefix_.size(); length-- > 0;) {
    const auto found = by_prefix_[length].find(network_of(to, length));
    if (found == by_prefix_[length].end()) continue;
    return std::ranges::find(routes_[found->second].hops, interface, &NextHop::interface) !=
           routes_[found->second].hops.end();
  }
  return false;
}

Ipv4 MainTable::neighbour(std::uint32_t interface) const {
  std::map<Ipv4, std::size_t> gateways;
  Ipv4 other = 0;
  for (const KernelRoute& route : routes_)
    for (const NextHop& hop : route.hops) {
      if (hop.interface != interface) continue;
      if (hop.gateway != 0)
        ++gateways[hop.gateway];
      else if (route.source != 0 && route.prefix_length == 31)
        other = route.source ^ 1;
      else if (route.source != 0 && route.prefix_length == 30)
        other = route.source ^ 3;
    }
  if (gateways.empty()) return other;
  return std::ranges::max_element(gateways, {}, [](const auto& one) { return one.second; })->first;
}

}  // namespace linux_switch
}  // namespace weft::adapt
