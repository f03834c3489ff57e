// weft tenants: who of those that share edge hosts may reach whom.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "operate/tenants/tenants.hpp"
#include "serve/auth.hpp"

namespace weft::cli {
namespace {

namespace tenants = operate::tenants;

struct TenantsArgs {
  std::string file, to = "table", flow;
};

// All pairs between which something is open, but for those inside a tenant.
template <class Tell>
void for_each_pair(const tenants::Policy& policy, const Tell& tell) {
  std::vector<std::string> names;
  for (const tenants::Party& party : policy.parties) names.push_back(party.name);
  names.emplace_back(tenants::outside);
  for (const std::string& from : names)
    for (const std::string& to : names) {
      const std::vector<tenants::Ports> ports = tenants::reach(policy, from, to);
      if (from != to && !ports.empty()) tell(from, to, ports);
    }
}

std::string table_of(const tenants::Policy& policy) {
  using Align = Table::Align;
  Table out({{"from", Align::left}, {"to", Align::left}, {"may open", Align::left}});
  for_each_pair(policy, [&](const std::string& from, const std::string& to, const auto& ports) {
    out.add({from, to, tenants::text_of(ports)});
  });
  return out.text() +
         "\nAll else between tenants is refused and logged; inside a tenant all is open.\n";
}

std::string json_of(const tenants::Policy& policy) {
  JsonList pairs;
  for_each_pair(policy, [&](const std::string& from, const std::string& to, const auto& ports) {
    std::vector<std::string> words;
    for (const tenants::Ports& one : ports) words.push_back(one.text());
    pairs.add(JsonObject().add("from", from).add("to", to).add("ports", words));
  });
  return JsonObject().add("pairs", pairs).text() + "\n";
}

// Lines for --tokens of weft serve and weft autoscale, as these read them; none without identities.
Result<std::string> tokens_of(const tenants::Policy& policy, const std::string& file) {
  std::string out;
  for (const tenants::Party& party : policy.parties)
    for (const tenants::Identity& identity : party.identities)
      out += fmt::format("{} {} svid tenant={}\n", identity.spiffe_id,
                         fmt::join(identity.roles, ","), party.name);
  if (out.empty()) return out;
  if (auto read = serve::Tokens::parse(out, file + ", identities"); !read)
    return std::unexpected(std::move(read).error());
  return out;
}

Result<tenants::Flow> parse_flow(const std::string& text) {
  const std::vector<std::string_view> parts = split(text, ',');
  if (parts.size() != 3)
    return fail(Errc::value, {"--flow"}, fmt::format("{} is not a flow", quote(text)),
                "write SOURCE,TARGET,PORT, as in 10.20.0.5,10.30.0.9,443/tcp");
  const auto token = [&](std::size_t i) { return Token{trim(parts[i]), {"--flow"}}; };
  WEFT_TRY(const IpPrefix source, parse_ip_prefix(token(0)));
  WEFT_TRY(const IpPrefix target, parse_ip_prefix(token(1)));
  WEFT_TRY(const tenants::Ports port, tenants::parse_ports(token(2)));
  if (source.family != target.family)
    return fail(Errc::value, {"--flow"}, "a flow has two addresses of one family",
                "write two IPv4 or two IPv6 addresses");
  return tenants::Flow{.source = source, .target = target, .port = port};
}

Result<bool> show(const Common& common, const TenantsArgs& args) {
  WEFT_TRY(const Config yaml, load_yaml(args.file));
  WEFT_TRY(const tenants::Policy policy, tenants::read_policy(yaml));
  WEFT_TRY(const std::string tokens, tokens_of(policy, args.file));
  if (args.to == "tokens" && tokens.empty())
    return fail(Errc::infeasible, {args.file, 0, 0}, "no tenant has identities",
                "add identities: [{id, roles}] to a tenant");
  if (!args.flow.empty()) {
    WEFT_TRY(const tenants::Flow flow, parse_flow(args.flow));
    const auto of_tenant = [&](const IpPrefix& address) {
      const tenants::Party* owner = policy.owner(address);
      return owner != nullptr && owner->is_tenant;
    };
    if (!of_tenant(flow.source) && !of_tenant(flow.target))
      return fail(Errc::value, {"--flow"},
                  "neither end belongs to a tenant, so that no rule applies",
                  "give the address of a tenant");
    const tenants::Judgement found = tenants::judge(policy, flow);
    if (common.json)
      fmt::print("{}\n", JsonObject()
                             .add("allowed", found.is_allowed)
                             .add("from", found.from)
                             .add("to", found.to)
                             .text());
    else
      fmt::print("{}: {} to {}, {}; open is {}\n", found.is_allowed ? "allowed" : "refused",
                 found.from, found.to, flow.port.text(),
                 tenants::text_of(tenants::reach(policy, found.from, found.to)));
    return found.is_allowed;
  }
  if (args.to == "nftables")
    fmt::print("{}", tenants::to_nftables(policy));
  else if (args.to == "tokens")
    fmt::print("{}", tokens);
  else
    fmt::print("{}", common.json ? json_of(policy) : table_of(policy));
  return true;
}

int run_tenants(const Common& common, const TenantsArgs& args) {
  const auto shown = show(common, args);
  if (!shown) return report(shown.error());
  return *shown ? done : work_failed;
}

}  // namespace

void add_tenants(Commands& commands) {
  const auto [c, args] = commands.add<TenantsArgs>(
      "tenants", "Tenants of edge hosts: who may reach whom, as table, nftables and API access",
      run_tenants);
  c.add_option("file", args.file, "YAML file with tenants: and shared:")->required();
  c.add_option("--to", args.to, "table, nftables: rules of a host, or tokens: lines for --tokens")
      ->check(CLI::IsMember({"table", "nftables", "tokens"}));
  c.add_option("--flow", args.flow, "Judge one flow: SOURCE,TARGET,PORT; status 1 if refused");
}

}  // namespace weft::cli
