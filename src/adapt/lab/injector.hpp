// Faults that the kernel itself plays: nftables filters, a slower queue, links, routes, sysctls.
//
// Each call works on one namespace, from wherever the caller is. Everything that is put in carries
// a name or number of its own, so that taking it out removes exactly that; taking out what is not
// there is no failure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "adapt/lab/fault_spec.hpp"
#include "adapt/linux_switch/nft.hpp"
#include "base/result.hpp"
#include "base/units.hpp"

namespace weft::adapt::lab {

// Marks of packets that a wire has already passed on: filters leave them alone, for they have seen
// them before. The last eight bits are the wire's place in line on its interface.
inline constexpr std::uint32_t wire_mark_base = 0x57460000;
inline constexpr std::uint32_t wire_mark_last = 0x574600ff;

// Of that namespace. Fails: as InNetns and Nft::here().
Result<Nft> open_nft(const std::string& netns);

struct FilterSpec {
  enum class Action : std::uint8_t { drop, mark_ce };
  enum class Directions : std::uint8_t { egress, both };
  Action action = Action::drop;
  Directions directions = Directions::egress;
  double share = 1;  // steps of 1e-9
  std::optional<TupleBucket> bucket;
  std::optional<std::uint8_t> dscp;
  std::uint64_t seed = 1;  // of the bucket's hash
};
// Packets (a GSO packet counts once) and bytes that a filter has hit since it was put in.
struct FilterCount {
  std::uint64_t packets = 0, bytes = 0;
};

// The nft table of a filter, as text.
std::string filter_table(const std::string& table, std::span<const std::string> interfaces,
                         const FilterSpec& spec);
// Puts a filter on interfaces of one namespace, as a netdev table of that name. Filters stack.
// Fails: Errc::io, also when there is such a table. Cost: about a millisecond.
Status add_filter(const std::string& netns, const std::string& table,
                  std::span<const std::string> interfaces, const FilterSpec& spec);
// The exact truth of what a filter hit. Fails: Errc::io where there is none of that name.
Result<FilterCount> filter_count(const std::string& netns, const std::string& table);
Status remove_filter(const std::string& netns, const std::string& table);

// Slows an interface's egress by a token bucket as its root queue, which drops above `queue`.
// `number` tells it from others' (mod 28,672).
// Fails: Errc::unsupported above 16 Gbps or without tbf, Errc::infeasible where the interface
// already has a root queue.
Status add_rate_limit(const std::string& netns, const std::string& interface, std::uint32_t number,
                      Rate rate, Bytes queue);
// Packets dropped by the limit. Fails: Errc::io where there is none of ours.
Result<std::uint64_t> rate_limit_drops(const std::string& netns, const std::string& interface,
                                       std::uint32_t number);
Status remove_rate_limit(const std::string& netns, const std::string& interface,
                         std::uint32_t number);

enum class AdminState : std::uint8_t { up, down };
// Sets an interface up or down. Down, its neighbour sees the carrier go; the kernel forgets the
// permanent neighbours and single routes of the interface: see restore_interface().
Status set_link(const std::string& netns, const std::string& interface, AdminState state);

// A black-hole route of the main table, preferred to any other of the same prefix.
// Fails: Errc::infeasible where there is one already.
Status add_blackhole(const std::string& netns, Ipv4 destination, std::uint8_t prefix_length);
Status remove_blackhole(const std::string& netns, Ipv4 destination, std::uint8_t prefix_length);

// How a namespace limits its ICMP errors: bits of limited types, ms between two to one asker.
struct IcmpLimit {
  std::string mask, interval;
};
Result<IcmpLimit> icmp_limit(const std::string& netns);
Status set_icmp_limit(const std::string& netns, const IcmpLimit& limit);

}  // namespace weft::adapt::lab
