#include "adapt/lab/injector.hpp"

#include <fmt/format.h>
#include <linux/if.h>
#include <linux/rtnetlink.h>
#include <netlink/netlink.h>
#include <netlink/route/link.h>
#include <netlink/route/qdisc.h>
#include <netlink/route/qdisc/tbf.h>
#include <netlink/route/route.h>
#include <netlink/route/tc.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "adapt/lab/netns.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::lab {
namespace {

constexpr std::uint32_t share_steps = 1'000'000'000;
constexpr std::uint8_t route_protocol = 0x57;  // of routes that faults add
constexpr Rate tbf_rate_max{16'000'000'000};   // its rate is 31 bits of bytes per second

template <class T, void (*release)(T*)>
struct Releaser {
  void operator()(T* object) const { release(object); }
};
using NlSocket = std::unique_ptr<nl_sock, Releaser<nl_sock, nl_socket_free>>;
using NlCache = std::unique_ptr<nl_cache, Releaser<nl_cache, nl_cache_free>>;
using NlLink = std::unique_ptr<rtnl_link, Releaser<rtnl_link, rtnl_link_put>>;
using NlQdisc = std::unique_ptr<rtnl_qdisc, Releaser<rtnl_qdisc, rtnl_qdisc_put>>;
using NlRoute = std::unique_ptr<rtnl_route, Releaser<rtnl_route, rtnl_route_put>>;
using NlAddress = std::unique_ptr<nl_addr, Releaser<nl_addr, nl_addr_put>>;

std::unexpected<Error> netlink_failure(const std::string& what, int error, Errc code = Errc::io) {
  return fail(code, {}, fmt::format("{}: {}", what, nl_geterror(error)));
}

Result<NlSocket> route_socket(const std::string& netns) {
  WEFT_TRY(const InNetns inside, InNetns::enter(netns));
  NlSocket socket(nl_socket_alloc());
  if (!socket) return fail(Errc::io, {}, "no memory for a netlink socket");
  if (const int error = nl_connect(socket.get(), NETLINK_ROUTE); error < 0)
    return netlink_failure(fmt::format("netlink socket in {}", netns), error);
  return socket;
}

Result<int> interface_index(nl_sock* socket, const std::string& netns,
                            const std::string& interface) {
  rtnl_link* found = nullptr;
  const int error = rtnl_link_get_kernel(socket, 0, interface.c_str(), &found);
  if (error < 0) return netlink_failure(fmt::format("interface {} of {}", interface, netns), error);
  return rtnl_link_get_ifindex(NlLink(found).get());
}

// What a packet must look like, first the cheap tests. `family` is "ip" or "ip6".
std::string tuple_match(const FilterSpec& spec, std::string_view family) {
  std::string match;
  if (spec.bucket)
    match += fmt::format(
        "meta protocol {0} meta l4proto {{ tcp, udp }} jhash {0} saddr . {0} daddr . {0} {1} . "
        "th sport . th dport mod {2} seed {3:#x} < {4} ",
        family, family == "ip" ? "protocol" : "nexthdr", spec.bucket->of,
        static_cast<std::uint32_t>(mix64(spec.seed)) | 1u, spec.bucket->hit);
  if (spec.dscp) match += fmt::format("{} dscp {} ", family, *spec.dscp);
  if (spec.action == FilterSpec::Action::mark_ce)
    match += fmt::format("{} ecn {{ 1, 2 }} ", family);
  return match;
}

std::string rule(const FilterSpec& spec, std::string_view family) {
  std::string text = tuple_match(spec, family);
  const auto steps = static_cast<std::uint32_t>(std::llround(spec.share * share_steps));
  if (steps < share_steps)
    text += fmt::format("numgen random mod {} < {} ", share_steps, std::max(steps, 1u));
  text += "counter name \"hit\" ";
  text += spec.action == FilterSpec::Action::drop ? std::string("drop")
                                                  : fmt::format("{} ecn set ce", family);
  return text;
}

std::string chain(std::string_view hook, std::string_view devices, const FilterSpec& spec) {
  std::string text = fmt::format(
      " chain {0} {{\n  type filter hook {0} devices = {{ {1} }} priority 0; policy accept;\n",
      hook, devices);
  if (hook == "egress")
    text += fmt::format("  meta mark {:#x}-{:#x} accept\n", wire_mark_base, wire_mark_last);
  text += fmt::format("  {}\n", rule(spec, "ip"));
  // A match that looks into the packet is written once per family; one that does not, once.
  if (!tuple_match(spec, "ip").empty()) text += fmt::format("  {}\n", rule(spec, "ip6"));
  return text + " }\n";
}

// "packets 3 bytes 270" behind `word`.
std::uint64_t number_behind(std::string_view text, std::string_view word) {
  std::uint64_t value = 0;
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) return 0;
  text.remove_prefix(at + word.size());
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

Result<Nft> open_nft(const std::string& netns) {
  WEFT_TRY(const InNetns inside, InNetns::enter(netns));
  return Nft::here();
}

std::string filter_table(const std::string& table, std::span<const std::string> interfaces,
                         const FilterSpec& spec) {
  std::string devices;
  for (const std::string& interface : interfaces)
    devices += fmt::format("{}\"{}\"", devices.empty() ? "" : ", ", interface);
  std::string text = fmt::format("table netdev {} {{\n counter hit {{ }}\n", table);
  text += chain("egress", devices, spec);
  if (spec.directions == FilterSpec::Directions::both) text += chain("ingress", devices, spec);
  return text + "}\n";
}

Status add_filter(const std::string& netns, const std::string& table,
                  std::span<const std::string> interfaces, const FilterSpec& spec) {
  WEFT_TRY(Nft nft, open_nft(netns));
  // "create" fails where the table exists, so that two faults never share one.
  WEFT_TRY_STATUS(nft.run(
      fmt::format("create table netdev {}\n{}", table, filter_table(table, interfaces, spec))));
  return {};
}

Result<FilterCount> filter_count(const std::string& netns, const std::string& table) {
  WEFT_TRY(Nft nft, open_nft(netns));
  WEFT_TRY(const std::string text, nft.run(fmt::format("list counter netdev {} hit\n", table)));
  return FilterCount{number_behind(text, "packets "), number_behind(text, "bytes ")};
}

Status remove_filter(const std::string& netns, const std::string& table) {
  WEFT_TRY(Nft nft, open_nft(netns));
  // Adding what may be there makes the deletion succeed either way, in one transaction.
  WEFT_TRY_STATUS(nft.run(fmt::format("add table netdev {0}\ndelete table netdev {0}\n", table)));
  return {};
}

namespace {

// The root queue of an interface that is not the kernel's default, or null.
Result<NlQdisc> root_queue(nl_sock* socket, int index) {
  nl_cache* filled = nullptr;
  if (const int error = rtnl_qdisc_alloc_cache(socket, &filled); error < 0)
    return netlink_failure("list of queues", error);
  const NlCache cache(filled);
  NlQdisc root(rtnl_qdisc_get_by_parent(cache.get(), index, TC_H_ROOT));
  if (root && rtnl_tc_get_handle(TC_CAST(root.get())) == 0) root.reset();
  return root;
}

// Majors from 0x8000 on are the kernel's to give.
std::uint32_t limit_handle(std::uint32_t number) { return (0x1000 + number % 0x7000) << 16; }

bool is_limit(const NlQdisc& queue, std::uint32_t number) {
  return queue && rtnl_tc_get_handle(TC_CAST(queue.get())) == limit_handle(number) &&
         std::string_view(rtnl_tc_get_kind(TC_CAST(queue.get()))) == "tbf";
}

}  // namespace

Status add_rate_limit(const std::string& netns, const std::string& interface, std::uint32_t number,
                      Rate rate, Bytes queue) {
  if (rate > tbf_rate_max)
    return fail(Errc::unsupported, {}, fmt::format("{} is too fast to shape", to_text(rate)),
                fmt::format("the kernel's token bucket goes to {}", to_text(tbf_rate_max)));
  WEFT_TRY(const NlSocket socket, route_socket(netns));
  WEFT_TRY(const int index, interface_index(socket.get(), netns, interface));
  WEFT_TRY(const NlQdisc present, root_queue(socket.get(), index));
  if (present)
    return fail(Errc::infeasible, {},
                fmt::format("interface {} of {} already has a {} queue", interface, netns,
                            rtnl_tc_get_kind(TC_CAST(present.get()))),
                "heal the other rate fault first, or use --ecn, which shapes in user space");
  // A bucket of 2 ms, or two of the largest frames of a GSO-less sender, keeps the mean exact.
  const std::int64_t burst = std::max<std::int64_t>(rate.bps / 8 / 500, 4'000);
  const NlQdisc limit(rtnl_qdisc_alloc());
  if (!limit) return fail(Errc::io, {}, "no memory for a queue");
  rtnl_tc_set_ifindex(TC_CAST(limit.get()), index);
  rtnl_tc_set_parent(TC_CAST(limit.get()), TC_H_ROOT);
  rtnl_tc_set_handle(TC_CAST(limit.get()), limit_handle(number));
  if (const int error = rtnl_tc_set_kind(TC_CAST(limit.get()), "tbf"); error < 0)
    return netlink_failure("queue \"tbf\"", error);
  rtnl_qdisc_tbf_set_rate(limit.get(), static_cast<int>(rate.bps / 8), static_cast<int>(burst), 0);
  rtnl_qdisc_tbf_set_limit(limit.get(), static_cast<int>(queue.count));
  const int error = rtnl_qdisc_add(socket.get(), limit.get(), NLM_F_CREATE | NLM_F_EXCL);
  if (error < 0)
    return netlink_failure(fmt::format("rate limit on {} of {}", interface, netns), error,
                           Errc::unsupported);
  return {};
}

Result<std::uint64_t> rate_limit_drops(const std::string& netns, const std::string& interface,
                                       std::uint32_t number) {
  WEFT_TRY(const NlSocket socket, route_socket(netns));
  WEFT_TRY(const int index, interface_index(socket.get(), netns, interface));
  WEFT_TRY(const NlQdisc present, root_queue(socket.get(), index));
  if (!is_limit(present, number))
    return fail(Errc::io, {}, fmt::format("{} of {} has no rate limit", interface, netns));
  return rtnl_tc_get_stat(TC_CAST(present.get()), RTNL_TC_DROPS);
}

Status remove_rate_limit(const std::string& netns, const std::string& interface,
                         std::uint32_t number) {
  WEFT_TRY(const NlSocket socket, route_socket(netns));
  WEFT_TRY(const int index, interface_index(socket.get(), netns, interface));
  WEFT_TRY(const NlQdisc present, root_queue(socket.get(), index));
  if (!is_limit(present, number)) return {};
  if (const int error = rtnl_qdisc_delete(socket.get(), present.get()); error < 0)
    return netlink_failure(fmt::format("rate limit of {} of {}", interface, netns), error);
  return {};
}

Status set_link(const std::string& netns, const std::string& interface, AdminState state) {
  WEFT_TRY(const Fd socket, socket_in_netns(netns, AF_INET, SOCK_DGRAM, 0));
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0)
    return system_failure(fmt::format("interface {} of {}", interface, netns), errno);
  const auto flags = static_cast<unsigned short>(request.ifr_flags);
  const unsigned wanted = state == AdminState::up ? flags | IFF_UP : flags & ~unsigned{IFF_UP};
  request.ifr_flags = static_cast<short>(wanted);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0)
    return system_failure(fmt::format("interface {} of {}", interface, netns), errno);
  return {};
}

namespace {

Result<NlRoute> blackhole_route(Ipv4 destination, std::uint8_t prefix_length) {
  NlRoute route(rtnl_route_alloc());
  const std::uint32_t bytes = htonl(destination);
  const NlAddress prefix(nl_addr_build(AF_INET, &bytes, sizeof bytes));
  if (!route || !prefix) return fail(Errc::io, {}, "no memory for a route");
  nl_addr_set_prefixlen(prefix.get(), prefix_length);
  rtnl_route_set_family(route.get(), AF_INET);
  rtnl_route_set_dst(route.get(), prefix.get());
  rtnl_route_set_type(route.get(), RTN_BLACKHOLE);
  rtnl_route_set_table(route.get(), RT_TABLE_MAIN);
  rtnl_route_set_scope(route.get(), RT_SCOPE_UNIVERSE);
  rtnl_route_set_protocol(route.get(), route_protocol);
  rtnl_route_set_priority(route.get(), 0);
  return route;
}

}  // namespace

Status add_blackhole(const std::string& netns, Ipv4 destination, std::uint8_t prefix_length) {
  WEFT_TRY(const NlSocket socket, route_socket(netns));
  WEFT_TRY(const NlRoute route, blackhole_route(destination, prefix_length));
  // Appended rather than exclusive, a prefix may have a black hole and a route of equal metric;
  // the kernel prefers the first, so that ours has to be put in front.
  const int error = rtnl_route_add(socket.get(), route.get(), NLM_F_CREATE);
  if (error < 0)
    return netlink_failure(
        fmt::format("black hole for {}/{} in {}", ipv4_text(destination), prefix_length, netns),
        error);
  return {};
}

Status remove_blackhole(const std::string& netns, Ipv4 destination, std::uint8_t prefix_length) {
  WEFT_TRY(const NlSocket socket, route_socket(netns));
  WEFT_TRY(const NlRoute route, blackhole_route(destination, prefix_length));
  const int error = rtnl_route_delete(socket.get(), route.get(), 0);
  if (error < 0 && error != -NLE_OBJ_NOTFOUND)
    return netlink_failure(
        fmt::format("black hole for {}/{} in {}", ipv4_text(destination), prefix_length, netns),
        error);
  return {};
}

Result<IcmpLimit> icmp_limit(const std::string& netns) {
  WEFT_TRY(const InNetns inside, InNetns::enter(netns));
  IcmpLimit limit;
  WEFT_TRY(limit.mask, read_sysctl("net/ipv4/icmp_ratemask"));
  WEFT_TRY(limit.interval, read_sysctl("net/ipv4/icmp_ratelimit"));
  return limit;
}

Status set_icmp_limit(const std::string& netns, const IcmpLimit& limit) {
  WEFT_TRY(const InNetns inside, InNetns::enter(netns));
  WEFT_TRY_STATUS(write_sysctl("net/ipv4/icmp_ratemask", limit.mask));
  return write_sysctl("net/ipv4/icmp_ratelimit", limit.interval);
}

}  // namespace weft::adapt::lab
