// The routes beneath: what the main table of a switch does with packets.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "adapt/linux_switch/netlink.hpp"

namespace weft::adapt {
inline namespace linux_switch {

class MainTable {
 public:
  // `routes` in the kernel's order, as Netlink::routes() has them.
  explicit MainTable(std::vector<KernelRoute> routes);

  // Whether some packets to that address leave by the interface of this index: a next hop of the
  // longest prefix. Cost: O(32 log routes).
  bool leads(Ipv4 to, std::uint32_t interface) const;
  // The address of the neighbour at the other end of a cable: what most routes over the interface
  // have for a next hop, else the other address of its /30 or /31. 0: neither is there.
  // Cost: O(routes).
  Ipv4 neighbour(std::uint32_t interface) const;

 private:
  std::vector<KernelRoute> routes_;
  std::array<std::map<Ipv4, std::size_t>, 33> by_prefix_;  // by length: network -> row
};

}  // namespace linux_switch
}  // namespace weft::adapt
