// What ICMP errors quote of a datagram.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "port/probe_io.hpp"

namespace weft::observe::probe {

// From a whole IPv4 packet: ICMP time exceeded or destination unreachable that quotes a UDP
// datagram by its IP header and at least its own 8 bytes, which is all that routers must quote
// (RFC 792). `when` is left at 0. Nothing for anything else, however mangled.
std::optional<port::Complaint> read_complaint(std::span<const std::byte> packet);

}  // namespace weft::observe::probe
