// What targets know of their neighbours: OpenConfig's LLDP, or BGP with the addresses of
// interfaces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "adapt/gnmi/leaf.hpp"
#include "adapt/gnmi/subscriber.hpp"
#include "model/formats/neighbours.hpp"

namespace weft::adapt::gnmi {

// What a target is asked for.
std::vector<Subscription> neighbour_subscriptions(model::NeighbourProtocol by);

// Takes leaves of many targets, in any order. A port of an LLDP neighbour is called by its id where
// that is an interface name, or has no description; else by its description. Addresses are of their
// interface, whatever its subinterface; those of IPv6 on one link only (fe80::) are left out.
// From: OpenConfig, release/models: openconfig-lldp, openconfig-if-ip, openconfig-bgp-neighbor.
class NeighbourReader {
 public:
  static constexpr std::size_t rows_max = 65'536;  // of one device and kind

  void take(std::string_view device, const Leaf& leaf);
  // Ascending by device; those that sent nothing are not there.
  std::vector<model::Neighbours> finish() const;
  // Leaves of rows beyond rows_max.
  std::uint64_t left_out() const { return left_out_; }

 private:
  struct Row {
    std::string system, chassis, port, port_kind, port_description;
  };
  struct Device {
    std::string system_name;
    std::map<std::pair<std::string, std::string>, Row> lldp;            // by port and neighbour
    std::map<std::string, bool> sessions;                               // by peer: established
    std::map<std::pair<std::string, std::string>, unsigned> addresses;  // by port and address
  };
  // The row of `key`, made where there is none; nullptr, and counted, where there are too many.
  template <class Map>
  typename Map::mapped_type* row_of(Map& map, const typename Map::key_type& key);
  void take_lldp(Device& of, const Leaf& leaf, std::string_view name, std::string_view text);

  std::map<std::string, Device, std::less<>> devices_;
  std::uint64_t left_out_ = 0;
};

}  // namespace weft::adapt::gnmi
