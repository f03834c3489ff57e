// What the agent on a switch and the controller of traffic engineering say to each other: one JSON
// object each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::operate::te {

// A mark as a switch knows it. Addresses are IPv4, in host byte order.
struct SwitchMark {
  std::uint32_t src = 0, dst = 0;
  std::uint16_t port = 0;  // UDP source port
  std::string uplink;      // the link's name, "rtsw:0->ctsw:1"; "": no mark any more
  friend auto operator<=>(const SwitchMark&, const SwitchMark&) = default;
};

// The place in a service's orders to one switch. A service that is started anew has another epoch.
struct OrderPlace {
  std::string epoch;
  std::uint64_t version = 0;
  friend bool operator==(const OrderPlace&, const OrderPlace&) = default;
};

struct SwitchReport {
  // One of the switch's cables to other switches, by the link that leaves it.
  struct Port {
    std::string link;
    bool carrier = false;
    bool next_hop = false;  // packets can be sent over it: the neighbour's address is known
    friend bool operator==(const Port&, const Port&) = default;
  };
  // Which racks packets would not reach over a link by the routes beneath, of SwitchOrders::watch.
  struct Routes {
    std::string link;
    std::vector<std::string> missing;
    friend bool operator==(const Routes&, const Routes&) = default;
  };
  std::string agent;         // another one after each start
  std::uint64_t serial = 0;  // of what follows: an older report that comes later says nothing
  std::vector<Port> ports;
  std::vector<Routes> routes;
  // Who also asks for orders says which were carried out last; nothing: news alone.
  std::optional<OrderPlace> done;
  std::optional<std::vector<SwitchMark>> marks;  // all that are installed, where that was asked for
  std::string trouble;                           // why the last orders were not carried out
};

struct SwitchOrders {
  OrderPlace place;                 // of the switch when they are carried out
  std::vector<SwitchMark> changes;  // to be made at once, or not at all
  bool wants_marks = false;         // all that are installed are to be reported; nothing else holds
  std::uint64_t renewals = 0;       // another number than before: the marks hold for another lease
  std::vector<std::string> watch;   // links whose routes the controller waits for
};

std::string to_json(const SwitchReport& report);
std::string to_json(const SwitchOrders& orders);
// Fails: Errc::parse and Errc::value with every error found; lists are at most 1,000,000 long.
Result<SwitchReport> parse_report(std::string_view text, const std::string& from);
Result<SwitchOrders> parse_orders(std::string_view text, const std::string& from);

}  // namespace weft::operate::te
