#include "adapt/linux_switch/switch_overlay.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt {
inline namespace linux_switch {
namespace {

constexpr std::string_view overlay_table = "weft_te";
constexpr std::uint32_t overlay_mark_base = 0x7e000001;  // of the first uplink
constexpr std::uint32_t overlay_table_base = 20'000;
constexpr std::uint32_t overlay_priority = 1'000;  // before the main table's 32,766
constexpr std::uint8_t overlay_protocol = 0x58;
constexpr std::uint16_t renewal_port = 4'797;  // of the switch's loopback alone

std::uint32_t mark_of(std::size_t uplink) {
  return overlay_mark_base + static_cast<std::uint32_t>(uplink);
}
std::uint32_t table_of(std::size_t uplink) {
  return overlay_table_base + static_cast<std::uint32_t>(uplink);
}

// Of unnumbered BGP: a neighbour's address that is of no network of the interface.
bool is_link_local(Ipv4 address) { return address >> 16 == 0xa9fe; }

enum class RuleWrite : std::uint8_t { add, remove };
Status write_rules(Netlink& netlink, std::size_t uplinks, RuleWrite write) {
  for (std::size_t i = 0; i < uplinks; ++i)
    WEFT_TRY_STATUS(write == RuleWrite::add
                        ? netlink.add_mark_rule(mark_of(i), table_of(i), overlay_priority)
                        : netlink.delete_mark_rule(mark_of(i), table_of(i), overlay_priority));
  return netlink.flush();
}

Result<Fd> renewal_socket(const std::string& where) {
  Fd out(::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(renewal_port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (!out.valid() || ::connect(out.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0)
    return system_failure(where, errno);
  return out;
}

// "10.0.0.1 . 10.0.0.9 . 49152"
std::string key_text(const FlowKey& flow) {
  return fmt::format("{} . {} . {}", ipv4_text(flow.src), ipv4_text(flow.dst), flow.port);
}

std::optional<FlowKey> parse_key(std::string_view text) {
  const std::vector<std::string_view> pieces = split(text, '.');
  if (pieces.size() != 9) return std::nullopt;
  std::array<std::uint32_t, 9> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::string_view digits = trim(pieces[i]);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), numbers[i]);
    if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  }
  const auto address = [&](std::size_t from) {
    return numbers[from] << 24 | numbers[from + 1] << 16 | numbers[from + 2] << 8 |
           numbers[from + 3];
  };
  return FlowKey{address(0), address(4), static_cast<std::uint16_t>(numbers[8])};
}

// What nft lists: "elements = { 10.0.0.1 . 10.0.0.9 . 49152 : 0x7e000001, ... }". Fails: Errc::io
// with the element that is none of ours.
Result<std::map<FlowKey, std::uint32_t>> listed_marks(std::string_view text, std::size_t uplinks,
                                                      const std::string& where) {
  std::map<FlowKey, std::uint32_t> out;
  constexpr std::string_view head = "elements = {", colon = " : 0x";
  const std::size_t from = text.find(head);
  if (from == std::string_view::npos) return out;
  text = text.substr(from + head.size());
  for (const std::string_view entry : split(text.substr(0, text.find('}')), ',')) {
    const std::string_view element = trim(entry);
    const std::size_t at = element.find(colon);
    const auto key = parse_key(element.substr(0, at));
    std::uint32_t mark = 0;
    if (at != std::string_view::npos)
      std::from_chars(element.data() + at + colon.size(), element.data() + element.size(), mark,
                      16);
    if (!key || mark < overlay_mark_base || mark - overlay_mark_base >= uplinks)
      return fail(
          Errc::io, {},
          fmt::format("{}: the nft table {} holds {}, which is not a mark of this switch", where,
                      overlay_table, quote(element)),
          fmt::format("remove it (nft delete table ip {}), then start again", overlay_table));
    out.emplace(*key, mark - overlay_mark_base);
  }
  return out;
}

// The lease holds 0, the mark that packets come with, while somebody renews it. Packets do that,
// since a transaction would make those of apply() wait for it.
std::string table_text() {
  return fmt::format(
      "table ip {} {{\n"
      " map paths {{ type ipv4_addr . ipv4_addr . inet_service : mark; }}\n"
      " set lease {{ type mark; flags dynamic, timeout; size 16; }}\n"
      " chain choose {{ type filter hook prerouting priority mangle; policy accept;\n"
      "  meta mark @lease meta mark set ip saddr . ip daddr . udp sport map @paths; }}\n"
      " chain renew {{ type filter hook input priority filter; policy accept;\n"
      "  iifname lo udp dport {} update @lease {{ meta mark timeout {}s }} drop; }}\n}}\n",
      overlay_table, renewal_port, overlay_lease.ps / (1'000 * ps_per_ms));
}

}  // namespace

// The nft table is made last, so that where it stands the rest does too.
Result<SwitchOverlay> SwitchOverlay::open(const std::string& where,
                                          std::vector<OverlayUplink> uplinks) {
  WEFT_TRY(Netlink netlink, Netlink::open(where));
  WEFT_TRY(Nft nft, Nft::here());
  WEFT_TRY(Fd renewal, renewal_socket(where));
  SwitchOverlay out(where, std::move(uplinks), std::move(netlink), std::move(nft),
                    std::move(renewal));
  if (const auto read = out.reread(); !read) return std::unexpected(read.error());
  WEFT_TRY_STATUS(out.write_routes());
  return out;
}

Result<bool> SwitchOverlay::reread() {
  std::map<FlowKey, std::uint32_t> there;
  const auto listed = nft_.run(fmt::format("list map ip {} paths\n", overlay_table));
  if (listed) {
    WEFT_TRY(there, listed_marks(*listed, uplinks_.size(), where_));
  } else {
    // Remains of a killed one.
    static_cast<void>(write_rules(netlink_, uplinks_.size(), RuleWrite::remove));
    WEFT_TRY_STATUS(write_rules(netlink_, uplinks_.size(), RuleWrite::add));
    WEFT_TRY_STATUS(nft_.run(
        fmt::format("add table ip {0}\ndelete table ip {0}\n{1}", overlay_table, table_text())));
  }
  const bool is_same = there == marks_;
  marks_ = std::move(there);
  return is_same;
}

Status SwitchOverlay::write_routes() {
  WEFT_TRY(const auto interfaces, netlink_.links());
  for (std::size_t i = 0; i < uplinks_.size(); ++i) {
    const auto found = std::ranges::find(interfaces, uplinks_[i].interface, &LinkState::name);
    if (found == interfaces.end() || !found->up || uplinks_[i].gateway == 0) continue;
    const NextHop hop{.interface = found->index, .gateway = uplinks_[i].gateway};
    WEFT_TRY_STATUS(netlink_.add_route({.prefix_length = 0,
                                        .hops = {hop},
                                        .protocol = overlay_protocol,
                                        .table = table_of(i),
                                        .onlink = is_link_local(hop.gateway)},
                                       RouteWrite::replace));
  }
  return netlink_.flush();
}

Status SwitchOverlay::renew() {
  if (::send(renewal_.get(), "", 0, 0) < 0) return system_failure(where_, errno);
  return {};
}

Status SwitchOverlay::apply(std::span<const FlowMark> changes) {
  std::map<FlowKey, std::uint32_t> after = marks_;
  std::string gone, added;
  for (const FlowMark& change : changes) {
    const std::string key = key_text(change.flow);
    if (after.erase(change.flow) > 0) gone += fmt::format("{}{}", gone.empty() ? "" : ", ", key);
    if (!change.uplink) continue;
    if (*change.uplink >= uplinks_.size())
      return fail(Errc::unknown, {},
                  fmt::format("{} has {} uplinks, and none of place {}", where_, uplinks_.size(),
                              *change.uplink));
    added += fmt::format("{}{} : {:#x}", added.empty() ? "" : ", ", key, mark_of(*change.uplink));
    after[change.flow] = *change.uplink;
  }
  std::string commands;
  if (!gone.empty())
    commands += fmt::format("delete element ip {} paths {{ {} }}\n", overlay_table, gone);
  if (!added.empty())
    commands += fmt::format("add element ip {} paths {{ {} }}\n", overlay_table, added);
  if (commands.empty()) return {};
  if (const auto done = nft_.run(commands); !done) {
    Error error = done.error();
    error.what = where_ + ": " + error.what;
    return std::unexpected(std::move(error));
  }
  marks_ = std::move(after);
  return {};
}

Status SwitchOverlay::remove(const std::string& where, std::size_t uplinks) {
  WEFT_TRY(Nft nft, Nft::here());
  WEFT_TRY_STATUS(nft.run(fmt::format("add table ip {0}\ndelete table ip {0}\n", overlay_table)));
  WEFT_TRY(Netlink netlink, Netlink::open(where));
  static_cast<void>(write_rules(netlink, uplinks, RuleWrite::remove));  // those that are there
  return {};
}

}  // namespace linux_switch
}  // namespace weft::adapt
