#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "operate/tenants/tenants.hpp"

namespace weft::operate::tenants {
namespace {

constexpr std::string_view log_limit = "limit rate 10/second burst 20 packets";

// nftables knows no '-' in names.
std::string word_of(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '-', '_');
  return out;
}

std::vector<std::string> prefixes_of(const Party& party, IpFamily family) {
  std::vector<std::string> out;
  for (const IpPrefix& prefix : party.addresses)
    if (prefix.family == family) out.push_back(prefix.text());
  return out;
}

class Rules {
 public:
  explicit Rules(const Policy& policy) : policy_(policy) {}

  std::string text() {
    out_ =
        "table inet weft_tenants {}\ndelete table inet weft_tenants\ntable inet weft_tenants {\n";
    add_sets();
    add_entry();
    for (const Party& party : policy_.parties) {
      if (!party.is_tenant) continue;
      add_outgoing(party);
      add_incoming(party);
      add_host(party);
      add_refusals(party);
    }
    return out_ + "}\n";
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...) + '\n';
  }

  bool has(const Party& party, IpFamily family) const {
    return std::ranges::find(party.addresses, family, &IpPrefix::family) != party.addresses.end();
  }

  void add_set(std::string_view name, IpFamily family, const std::vector<std::string>& prefixes) {
    line("  set {}_{} {{ type {}; flags interval;{} }}", name, family == IpFamily::ipv4 ? 4 : 6,
         family == IpFamily::ipv4 ? "ipv4_addr" : "ipv6_addr",
         prefixes.empty() ? "" : fmt::format(" elements = {{ {} }}", fmt::join(prefixes, ", ")));
  }

  void add_sets() {
    for (const IpFamily family : {IpFamily::ipv4, IpFamily::ipv6}) {
      std::vector<std::string> all;
      for (const Party& party : policy_.parties) {
        const std::vector<std::string> prefixes = prefixes_of(party, family);
        all.insert(all.end(), prefixes.begin(), prefixes.end());
        add_set("net_" + word_of(party.name), family, prefixes);
      }
      add_set("known", family, all);
    }
  }

  // "iifname "tap-shop-*" goto from_shop", for each interface of each tenant.
  void add_jumps(std::string_view key, std::string_view chain) {
    for (const Party& party : policy_.parties)
      for (const std::string& interface : party.interfaces)
        line("    {} \"{}\" goto {}_{}", key, interface, chain, word_of(party.name));
  }

  // What answers, and what reports an error of what passed, is part of what was allowed.
  void add_entry() {
    line("  chain forward {{ type filter hook forward priority filter; policy accept;");
    line("    ct direction reply ct state established accept");
    line("    meta l4proto {{ icmp, ipv6-icmp }} ct state related accept");
    add_jumps("iifname", "from");
    add_jumps("oifname", "to");
    line("  }}");
    line("  chain input {{ type filter hook input priority filter; policy accept;");
    line("    ct direction reply ct state established accept");
    line("    meta l4proto {{ icmp, ipv6-icmp }} ct state related accept");
    add_jumps("iifname", "host");
    line("  }}");
  }

  // `where` and ports, of both families.
  void add_accepts(std::string_view address, const Party* party, const std::vector<Ports>& ports) {
    for (const IpFamily family : {IpFamily::ipv4, IpFamily::ipv6}) {
      if (party != nullptr && !has(*party, family)) continue;
      const std::string set = party == nullptr ? "!= @known" : "@net_" + word_of(party->name);
      const std::string where =
          fmt::format("    {} {} {}_{}", family == IpFamily::ipv4 ? "ip" : "ip6", address, set,
                      family == IpFamily::ipv4 ? 4 : 6);
      for (const Ports& one : ports) line("{}{} accept", where, match_of(one, family));
    }
  }

  static std::string match_of(const Ports& ports, IpFamily family) {
    using enum Ports::Protocol;
    if (ports.protocol == all) return "";
    if (ports.protocol == icmp)
      return family == IpFamily::ipv4 ? " icmp type echo-request" : " icmpv6 type echo-request";
    const std::string_view name = ports.protocol == tcp ? "tcp" : "udp";
    return ports.first == ports.last
               ? fmt::format(" {} dport {}", name, ports.first)
               : fmt::format(" {} dport {}-{}", name, ports.first, ports.last);
  }

  void refuse_foreign_sources(const Party& party) {
    const std::string word = word_of(party.name);
    line("    ip saddr != @net_{}_4 goto spoofed_{}", word, word);
    line("    ip6 saddr != @net_{}_6 goto spoofed_{}", word, word);
  }

  // Of its own interfaces.
  void add_outgoing(const Party& party) {
    const std::string word = word_of(party.name);
    line("  chain from_{} {{", word);
    refuse_foreign_sources(party);
    for (const Party& to : policy_.parties)
      add_accepts("daddr", &to, reach(policy_, party.name, to.name));
    add_accepts("daddr", nullptr, reach(policy_, party.name, outside));
    line("    goto refused_{}", word);
    line("  }}");
  }

  // Of interfaces of nobody: other hosts, and the world.
  void add_incoming(const Party& party) {
    line("  chain to_{} {{", word_of(party.name));
    for (const Party& from : policy_.parties)
      add_accepts("saddr", &from, reach(policy_, from.name, party.name));
    add_accepts("saddr", nullptr, reach(policy_, outside, party.name));
    line("    goto refused_{}", word_of(party.name));
    line("  }}");
  }

  // To the host itself: neighbours are found, addresses given out, and what the policy names.
  void add_host(const Party& party) {
    line("  chain host_{} {{", word_of(party.name));
    line("    icmpv6 type {{ nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert }} accept");
    const auto offers = [&](std::uint16_t port) {
      return std::ranges::find(policy_.host, Ports{Ports::Protocol::udp, port, port}) !=
             policy_.host.end();
    };
    if (offers(67)) line("    udp sport 68 udp dport 67 accept");
    if (offers(547)) line("    ip6 saddr fe80::/10 udp dport 547 accept");
    refuse_foreign_sources(party);
    for (const IpFamily family : {IpFamily::ipv4, IpFamily::ipv6})
      for (const Ports& one : policy_.host)
        line("    meta nfproto {}{} accept", family == IpFamily::ipv4 ? "ipv4" : "ipv6",
             match_of(one, family));
    line("    goto refused_{}", word_of(party.name));
    line("  }}");
  }

  void add_refusals(const Party& party) {
    for (const std::string_view what : {"refused", "spoofed"}) {
      const std::string name = fmt::format("{}_{}", what, word_of(party.name));
      const std::string to =
          policy_.nflog ? fmt::format(" group {}", *policy_.nflog) : std::string();
      line("  counter {} {{ }}", name);
      line("  chain {} {{", name);
      line("    counter name {}", name);
      line("    {} log prefix \"weft {} {}: \"{}", log_limit, what, party.name, to);
      line("    {}", what == "refused" ? "reject with icmpx type admin-prohibited" : "drop");
      line("  }}");
    }
  }

  const Policy& policy_;
  std::string out_;
};

}  // namespace

std::string to_nftables(const Policy& policy) { return Rules(policy).text(); }

}  // namespace weft::operate::tenants
