// The BGP sessions of a switch, as its daemon tells.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string_view>

#include "adapt/lab/lab.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

enum class Session : std::uint8_t {
  established,
  down,
  shut,  // by configuration, on this side
};

// By the neighbour's address. Fails: Errc::io where bgpd does not answer within `patience`,
// Errc::parse on an answer that is none.
Result<std::map<Ipv4, Session>> read_sessions(const Lab& lab, LabNodeId node,
                                              std::chrono::milliseconds patience);
// The answer of "show bgp ipv4 unicast summary json".
Result<std::map<Ipv4, Session>> parse_sessions(std::string_view json);

}  // namespace weft::adapt::lab
