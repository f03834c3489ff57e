#include "operate/tenants/tenants.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <tuple>

namespace weft::operate::tenants {
namespace {

constexpr std::size_t parties_max = 1'000, prefixes_max = 20'000;
constexpr std::size_t name_max = 32, interface_max = 15;  // the kernel's IFNAMSIZ

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= name_max && text[0] >= 'a' && text[0] <= 'z' &&
         std::ranges::all_of(text, fits) && text != outside;
}

std::string_view stem_of(std::string_view interface) {
  return interface.substr(0, interface.size() - (interface.ends_with('*') ? 1 : 0));
}

bool is_interface(std::string_view text) {
  const std::string_view name = stem_of(text);
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= interface_max && std::ranges::all_of(name, fits);
}

// Whether some interface has both names.
bool meet(std::string_view a, std::string_view b) {
  if (!a.ends_with('*') && !b.ends_with('*')) return a == b;
  if (!a.ends_with('*')) return a.starts_with(stem_of(b));
  if (!b.ends_with('*')) return b.starts_with(stem_of(a));
  return stem_of(a).starts_with(stem_of(b)) || stem_of(b).starts_with(stem_of(a));
}

std::vector<Ports> read_ports(Reader& reader, std::string_view key) {
  std::vector<Ports> out;
  for (const Token& token : reader.texts(key)) {
    auto ports = parse_ports(token);
    if (!ports)
      reader.error(std::move(ports).error());
    else
      out.push_back(*ports);
  }
  return out;
}

std::vector<IpPrefix> read_addresses(Reader& reader) {
  std::vector<IpPrefix> out;
  for (const Token& token : reader.texts("addresses")) {
    auto prefix = parse_ip_prefix(token);
    if (!prefix)
      reader.error(std::move(prefix).error());
    else
      out.push_back(*prefix);
  }
  if (out.empty())
    reader.error(Errc::value, reader.where("addresses"), "addresses is missing or empty",
                 "write addresses: [10.20.0.0/24, \"fd00:20::/64\"]");
  return out;
}

// Where each name stands, for messages once all parties are known.
struct Named {
  std::string party;
  Where where;
};

class PolicyReader {
 public:
  Result<Policy> read(const Config& config) {
    Reader reader(config, "tenants", errors_);
    for (const std::string_view key : {"tenants", "shared"})
      if (const Config* list = reader.child(key))
        for (const Config& item : list->items) read_party(item, key == "tenants");
    if (const Config* host = reader.child("host")) {
      Reader inner(*host, "host", errors_);
      out_.host = read_ports(inner, "ports");
      inner.finish();
    }
    if (const Config* log = reader.child("log")) {
      Reader inner(*log, "log", errors_);
      out_.nflog = static_cast<std::uint16_t>(inner.count("nflog", std::nullopt, 0, 65'535));
      inner.finish();
    }
    reader.finish();
    if (out_.parties.empty() || !out_.parties[0].is_tenant)
      reader.error(
          Errc::value, reader.where("tenants"), "there is no tenant",
          "write tenants: [{name: shop, addresses: [10.20.0.0/24], interfaces: [tap-shop-*]}]");
    if (out_.parties.size() > parties_max)
      reader.error(
          Errc::value, reader.where("tenants"),
          fmt::format("there are {} parties, more than {}", out_.parties.size(), parties_max));
    check_addresses(reader);
    check_interfaces(reader);
    if (errors_.empty()) check_permits(reader);
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(out_);
  }

 private:
  void read_party(const Config& config, bool is_tenant) {
    Reader reader(config, is_tenant ? "tenant" : "shared service", errors_);
    Party out{.name = reader.text("name", std::nullopt), .is_tenant = is_tenant};
    if (!is_name(out.name))
      reader.error(Errc::value, reader.where("name"),
                   fmt::format("{} is not a name", quote(out.name)),
                   fmt::format("use a-z, 0-9 and -, up to {}, a letter first; {} is taken",
                               name_max, outside));
    else if (out_.find(out.name) != nullptr)
      reader.error(Errc::value, reader.where("name"), fmt::format("{} is there twice", out.name),
                   "give each its own name");
    out.addresses = read_addresses(reader);
    if (is_tenant) {
      for (const Token& token : reader.texts("interfaces")) {
        if (is_interface(token.text))
          out.interfaces.emplace_back(token.text);
        else
          reader.error(
              Errc::value, token.where,
              fmt::format("{} is not the name of an interface", quote(token.text)),
              "up to 15 letters, digits, - _ and ., or the beginning of one with * behind it");
      }
      if (out.interfaces.empty())
        reader.error(Errc::value, reader.where("interfaces"), "interfaces is missing or empty",
                     "name what the tenant's workloads hang on: interfaces: [tap-shop-*]");
      out.allow = read_permits(reader, "allow", "to");
      out.accept = read_permits(reader, "accept", "from");
      read_identities(reader, out);
    }
    reader.finish();
    out_.parties.push_back(std::move(out));
  }

  std::vector<Permit> read_permits(Reader& reader, std::string_view key, std::string_view party) {
    std::vector<Permit> out;
    const Config* list = reader.child(key);
    if (list == nullptr) return out;
    if (list->kind != Config::Kind::list) {
      reader.error(Errc::value, list->where, fmt::format("{} is not a list", key),
                   fmt::format("write {}: [{{{}: dns, ports: [53/udp]}}]", key, party));
      return out;
    }
    for (const Config& item : list->items) {
      Reader inner(item, std::string(key), errors_);
      Permit permit{.party = inner.text(party, std::nullopt), .ports = read_ports(inner, "ports")};
      named_.push_back({permit.party, inner.where(party)});
      if (!inner.has("ports"))
        inner.error(Errc::value, inner.where(), "ports is missing",
                    "write ports: [443/tcp], or [all]; ports that are not listed are closed");
      inner.finish();
      out.push_back(std::move(permit));
    }
    return out;
  }

  void read_identities(Reader& reader, Party& out) {
    const Config* list = reader.child("identities");
    if (list == nullptr) return;
    for (const Config& item : list->items) {
      Reader inner(item, "identity", errors_);
      Identity identity{.spiffe_id = inner.text("id", std::nullopt), .roles = {}};
      for (const Token& role : inner.texts("roles")) identity.roles.emplace_back(role.text);
      if (identity.roles.empty())
        inner.error(Errc::value, inner.where("roles"), "roles is missing or empty",
                    "write roles: [read], or [read, ingest]");
      inner.finish();
      out.identities.push_back(std::move(identity));
    }
  }

  // In order, what lies in a prefix follows it at once: what is between two such lies in the first
  // as well.
  void check_addresses(Reader& reader) {
    std::vector<std::pair<IpPrefix, const Party*>> all;
    for (const Party& party : out_.parties)
      for (const IpPrefix& prefix : party.addresses) all.emplace_back(prefix, &party);
    if (all.size() > prefixes_max)
      return reader.error(
          Errc::value, reader.where("tenants"),
          fmt::format("there are {} prefixes, more than {}", all.size(), prefixes_max));
    std::ranges::sort(all, {}, [](const auto& one) {
      return std::tuple(one.first.family, one.first.bytes, one.first.length);
    });
    for (std::size_t i = 1; i < all.size(); ++i)
      if (all[i - 1].first.covers(all[i].first))
        reader.error(
            Errc::value, reader.where("tenants"),
            fmt::format("{} of {} lies in {} of {}", all[i].first.text(), all[i].second->name,
                        all[i - 1].first.text(), all[i - 1].second->name),
            "list each address once, under one party");
  }

  void check_interfaces(Reader& reader) {
    std::vector<std::pair<std::string_view, const Party*>> all;
    for (const Party& party : out_.parties)
      for (const std::string& interface : party.interfaces) all.emplace_back(interface, &party);
    std::ranges::sort(all);  // names that begin alike stand side by side
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t k = i + 1; k < all.size(); ++k) {
        const auto& [a, first] = all[i];
        const auto& [b, second] = all[k];
        if (!b.starts_with(stem_of(a))) break;  // '*' comes before all that a name may hold
        if (meet(a, b))
          reader.error(Errc::value, reader.where("tenants"),
                       fmt::format("interfaces {} of {} and {} of {} can be the same", a,
                                   first->name, b, second->name),
                       "an interface belongs to one tenant");
      }
  }

  // A permit that opens nothing, because the other side does not agree, is a mistake of somebody.
  void check_permits(Reader& reader) {
    for (const Named& named : named_)
      if (named.party != outside && out_.find(named.party) == nullptr)
        reader.error(Errc::unknown, named.where, fmt::format("there is no {}", quote(named.party)),
                     fmt::format("name a tenant, a shared service, or {}", outside));
    if (!errors_.empty()) return;
    for (const Party& from : out_.parties)
      for (const Permit& permit : from.allow) {
        const Party* to = out_.find(permit.party);
        if (to == nullptr || !to->is_tenant || to == &from) continue;
        if (!reach(out_, from.name, to->name).empty()) continue;
        reader.error(
            Errc::infeasible, reader.where("tenants"),
            fmt::format("{} allows itself {} to {}, which accepts none of it", from.name,
                        text_of(permit.ports), to->name),
            fmt::format("write accept: [{{from: {}, ports: [...]}}] at {}, or leave it out",
                        from.name, to->name));
      }
  }

  Errors errors_;
  Policy out_;
  std::vector<Named> named_;
};

// What is in both.
std::optional<Ports> common(const Ports& a, const Ports& b) {
  if (a.protocol == Ports::Protocol::all) return b;
  if (b.protocol == Ports::Protocol::all) return a;
  if (a.protocol != b.protocol) return std::nullopt;
  const Ports out{a.protocol, std::max(a.first, b.first), std::min(a.last, b.last)};
  if (out.first > out.last) return std::nullopt;
  return out;
}

std::vector<Ports> ports_of(const std::vector<Permit>& permits, std::string_view party) {
  std::vector<Ports> out;
  for (const Permit& permit : permits)
    if (permit.party == party) out.insert(out.end(), permit.ports.begin(), permit.ports.end());
  return out;
}

// In order, what lies in others left out.
std::vector<Ports> tidy(std::vector<Ports> ports) {
  std::ranges::sort(ports, {},
                    [](const Ports& p) { return std::tuple(p.protocol, p.first, -int{p.last}); });
  std::vector<Ports> out;
  for (const Ports& one : ports) {
    const auto has = [&](const Ports& other) { return common(one, other) == one; };
    if (std::ranges::none_of(out, has)) out.push_back(one);
  }
  const auto all = std::ranges::find(out, Ports::Protocol::all, &Ports::protocol);
  if (all != out.end()) return {*all};
  return out;
}

}  // namespace

std::string Ports::text() const {
  if (protocol == Protocol::all) return "all";
  if (protocol == Protocol::icmp) return "icmp";
  const std::string_view name = protocol == Protocol::tcp ? "tcp" : "udp";
  return first == last ? fmt::format("{}/{}", first, name)
                       : fmt::format("{}-{}/{}", first, last, name);
}

std::string text_of(const std::vector<Ports>& ports) {
  std::vector<std::string> words;
  for (const Ports& one : ports) words.push_back(one.text());
  return words.empty() ? "-" : fmt::format("{}", fmt::join(words, ", "));
}

Result<Ports> parse_ports(const Token& token) {
  const std::string_view text = token.text;
  if (text == "all") return Ports{};
  if (text == "icmp") return Ports{.protocol = Ports::Protocol::icmp};
  const auto wrong = [&] {
    return fail(Errc::value, token.where, fmt::format("{} names no ports", quote(text)),
                "write 443/tcp, 8000-8100/udp, icmp or all");
  };
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return wrong();
  Ports out;
  if (text.substr(slash) == "/tcp")
    out.protocol = Ports::Protocol::tcp;
  else if (text.substr(slash) == "/udp")
    out.protocol = Ports::Protocol::udp;
  else
    return wrong();
  const char *at = text.data(), *end = text.data() + slash;
  const auto first = std::from_chars(at, end, out.first);
  if (first.ec != std::errc()) return wrong();
  out.last = out.first;
  if (first.ptr != end) {
    if (*first.ptr != '-') return wrong();
    const auto last = std::from_chars(first.ptr + 1, end, out.last);
    if (last.ec != std::errc() || last.ptr != end) return wrong();
  }
  if (out.first == 0 || out.first > out.last) return wrong();
  return out;
}

const Party* Policy::find(std::string_view name) const {
  const auto found = std::ranges::find(parties, name, &Party::name);
  return found == parties.end() ? nullptr : &*found;
}

const Party* Policy::owner(const IpPrefix& address) const {
  for (const Party& party : parties)
    for (const IpPrefix& prefix : party.addresses)
      if (prefix.covers(address)) return &party;
  return nullptr;
}

Result<Policy> read_policy(const Config& config) { return PolicyReader().read(config); }

std::vector<Ports> reach(const Policy& policy, std::string_view from, std::string_view to) {
  const Party *source = policy.find(from), *target = policy.find(to);
  const bool is_from = source != nullptr && source->is_tenant;
  const bool is_to = target != nullptr && target->is_tenant;
  if (is_from && source == target) return {Ports{}};
  if (!is_from && !is_to) return {};
  if (!is_to) return tidy(ports_of(source->allow, to));
  const std::vector<Ports> accepted = ports_of(target->accept, from);
  if (!is_from) return tidy(accepted);
  std::vector<Ports> out;
  for (const Ports& mine : ports_of(source->allow, to))
    for (const Ports& theirs : accepted)
      if (const auto both = common(mine, theirs)) out.push_back(*both);
  return tidy(std::move(out));
}

Judgement judge(const Policy& policy, const Flow& flow) {
  const Party *from = policy.owner(flow.source), *to = policy.owner(flow.target);
  Judgement out{.from = std::string(from != nullptr ? from->name : outside),
                .to = std::string(to != nullptr ? to->name : outside)};
  for (const Ports& open : reach(policy, out.from, out.to))
    out.is_allowed = out.is_allowed || common(open, flow.port) == flow.port;
  return out;
}

}  // namespace weft::operate::tenants
