// Tenants that share edge hosts, and who of them may reach whom. Everything that is not allowed is
// refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/ip_prefix.hpp"
#include "base/result.hpp"

namespace weft::operate::tenants {

// "443/tcp", "8000-8100/udp", "icmp" (echo, of both families), "all".
struct Ports {
  enum class Protocol : std::uint8_t { tcp, udp, icmp, all } protocol = Protocol::all;
  std::uint16_t first = 0, last = 0;  // of tcp and udp

  bool operator==(const Ports&) const = default;
  std::string text() const;
};

// Of one party, about another one; `ports` is never empty.
struct Permit {
  std::string party;
  std::vector<Ports> ports;
};

struct Identity {
  std::string spiffe_id;
  std::vector<std::string> roles;  // of the API
};

struct Party {
  std::string name;
  bool is_tenant = false;  // else a shared service
  std::vector<IpPrefix> addresses;
  std::vector<std::string> interfaces;  // of the hosts, "tap-shop-*"; of tenants alone
  std::vector<Permit> allow, accept;    // what it may open, and what may be opened to it
  std::vector<Identity> identities;
};

// Whatever has an address of nobody.
inline constexpr std::string_view outside = "outside";

struct Policy {
  std::vector<Party> parties;  // tenants first, in the order of the file
  std::vector<Ports> host;     // of the host itself, which all tenants may reach
  std::optional<std::uint16_t>
      nflog;  // the group that refusals are told to; none: the kernel's log

  const Party* find(std::string_view name) const;
  const Party* owner(const IpPrefix& address) const;  // nullptr: outside
};

// YAML: tenants: [{name, addresses, interfaces, allow: [{to, ports}], accept: [{from, ports}],
// identities: [{id, roles}]}], shared: [{name, addresses}], host: {ports}, log: {nflog}.
// At most 1,000 parties and 20,000 prefixes. Fails with all that is wrong: Errc::value for names,
// ports, prefixes and interfaces that are none or belong to two parties, Errc::unknown for parties
// that are not there, Errc::infeasible for what one tenant allows and the other does not accept.
Result<Policy> read_policy(const Config& config);

// What `from` may open to `to`, by name, or `outside`. Between tenants both must say so; a shared
// service takes whatever a tenant is allowed, and opens what that tenant accepts. Inside a tenant:
// all.
std::vector<Ports> reach(const Policy& policy, std::string_view from, std::string_view to);

struct Flow {
  IpPrefix source, target;  // addresses
  Ports port;               // one
};
struct Judgement {
  bool is_allowed = false;
  std::string from, to;  // parties
};
Judgement judge(const Policy& policy, const Flow& flow);

// "443/tcp, icmp"; "-" for none.
std::string text_of(const std::vector<Ports>& ports);
Result<Ports> parse_ports(const Token& token);

// The policy as an nftables table `inet weft_tenants` that replaces the one that is there, whole or
// not at all (nft -f). The same for all hosts. Answers to what was opened pass; the first packets
// of all else are judged, so that a flow that is no longer allowed ends at once. Traffic that
// neither comes from nor goes to an interface of a tenant is not touched.
std::string to_nftables(const Policy& policy);

}  // namespace weft::operate::tenants
