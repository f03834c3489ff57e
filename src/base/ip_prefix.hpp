// Addresses and prefixes of IPv4 and IPv6.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft {

enum class IpFamily : std::uint8_t { ipv4, ipv6 };

struct IpPrefix {
  IpFamily family = IpFamily::ipv4;
  std::array<std::uint8_t, 16> bytes{};  // of IPv4 the first four
  unsigned length = 0;

  unsigned bits() const { return family == IpFamily::ipv4 ? 32 : 128; }
  // Whether `other`, which may be a single address, lies in it. Bits behind the length do not
  // count.
  bool covers(const IpPrefix& other) const;
  std::string text() const;  // a single address without its length
};

// "10.20.0.0/24", "fd00:20::/64", or an address. Fails: Errc::value for what is none, has bits set
// behind its length, or is IPv4 written as IPv6.
Result<IpPrefix> parse_ip_prefix(const Token& token);

}  // namespace weft
