#include "base/ip_prefix.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace weft {
namespace {

constexpr std::array<std::uint8_t, 12> mapped_ipv4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

bool ip_bit(const std::array<std::uint8_t, 16>& bytes, unsigned at) {
  return (bytes[at / 8] >> (7 - at % 8) & 1) != 0;
}

std::unexpected<Error> no_prefix(const Token& token) {
  return fail(Errc::value, token.where,
              fmt::format("{} is neither an address nor a prefix", quote(token.text)),
              "write 10.20.0.0/24 or fd00:20::/64");
}

std::string address_text(const IpPrefix& of) {
  std::array<char, INET6_ADDRSTRLEN> out{};
  const int family = of.family == IpFamily::ipv4 ? AF_INET : AF_INET6;
  ::inet_ntop(family, of.bytes.data(), out.data(), out.size());
  return out.data();
}

}  // namespace

bool IpPrefix::covers(const IpPrefix& other) const {
  if (family != other.family || other.length < length) return false;
  for (unsigned i = 0; i < length; ++i)
    if (ip_bit(bytes, i) != ip_bit(other.bytes, i)) return false;
  return true;
}

std::string IpPrefix::text() const {
  const std::string address = address_text(*this);
  return length == bits() ? address : fmt::format("{}/{}", address, length);
}

Result<IpPrefix> parse_ip_prefix(const Token& token) {
  const std::size_t slash = token.text.find('/');
  const std::string address(token.text.substr(0, slash));
  IpPrefix out;
  if (::inet_pton(AF_INET, address.c_str(), out.bytes.data()) != 1) {
    out.family = IpFamily::ipv6;
    if (::inet_pton(AF_INET6, address.c_str(), out.bytes.data()) != 1) return no_prefix(token);
    if (std::ranges::equal(mapped_ipv4, std::span(out.bytes).first(mapped_ipv4.size())))
      return fail(Errc::value, token.where,
                  fmt::format("{} is IPv4 written as IPv6", quote(token.text)), "write it as IPv4");
  }
  out.length = out.bits();
  if (slash != std::string::npos) {
    const char *from = token.text.data() + slash + 1, *end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(from, end, out.length);
    if (from == end || error != std::errc() || stop != end || out.length > out.bits())
      return no_prefix(token);
  }
  const std::string said = address_text(out);
  for (unsigned i = out.length; i < out.bits(); ++i)
    if (ip_bit(out.bytes, i)) {
      for (unsigned k = i; k < out.bits(); ++k)
        out.bytes[k / 8] = static_cast<std::uint8_t>(out.bytes[k / 8] & ~(0x80U >> (k % 8)));
      return fail(Errc::value, token.where,
                  fmt::format("{} has bits set behind its length", quote(token.text)),
                  fmt::format("write {}, or {} for the one address", out.text(), said));
    }
  return out;
}

}  // namespace weft
