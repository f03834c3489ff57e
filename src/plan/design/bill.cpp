#include "plan/design/bill.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

#include "base/fields.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"

namespace weft::plan {

using namespace model;

template <class Archive, Of<Bill::Switches> T>
void fields(Archive& ar, T& s) {
  ar("role", s.role);
  ar("type", s.type);
  ar("count", s.count);
  ar("ports_used", s.ports_used);
  ar("watts", s.watts);
  ar("price", s.price);
}

template <class Archive, Of<Bill::Links> T>
void fields(Archive& ar, T& l) {
  ar("tier", l.tier);
  ar("rate_bps", l.rate.bps);
  ar("span", l.span);
  ar("metres", l.metres);
  ar("type", l.type);
  ar("count", l.count);
  ar("bundle", l.bundle);
  ar("transceivers", l.transceivers);
  ar("fibre_m", l.fibre_m);
  ar("watts", l.watts);
  ar("price", l.price);
}

template <class Archive, Of<Bill::Nics> T>
void fields(Archive& ar, T& n) {
  ar("role", n.role);
  ar("rate_bps", n.rate.bps);
  ar("count", n.count);
  ar("watts", n.watts);
  ar("price", n.price);
}

template <class Archive, Of<Bill> T>
void fields(Archive& ar, T& b) {
  ar("prices", b.prices);
  ar("currency", b.currency);
  ar("switches", b.switches);
  ar("links", b.links);
  ar("nics", b.nics);
  ar("switch_count", b.switch_count);
  ar("link_count", b.link_count);
  ar("transceivers", b.transceivers);
  ar("nic_count", b.nic_count);
  ar("fibre_m", b.fibre_m);
  ar("watts", b.watts);
  ar("price", b.price);
}

namespace {

using Align = Table::Align;
using PortCounts = std::vector<std::pair<Rate, std::int64_t>>;

// How far the ends of a cable are apart, in hosts under the smallest scope that holds both.
class Floor {
 public:
  explicit Floor(const Fabric& fabric)
      : fabric_(fabric), hosts_(fabric.scopes().size()), depth_(fabric.scopes().size()) {
    for (const ScopeId scope : ids<ScopeId>(fabric.scopes().size()))
      for (ScopeId at = parent(scope); at.valid(); at = parent(at)) ++depth_[scope];
    for (const NodeId node : fabric.nodes())
      if (fabric.kind(node) == NodeKind::host)
        for (ScopeId at = fabric.scope(node); at.valid(); at = parent(at)) ++hosts_[at];
  }
  std::int64_t hosts_around(NodeId one, NodeId other) const {
    ScopeId a = fabric_.scope(one), b = fabric_.scope(other);
    while (a.valid() && b.valid() && a != b)
      (depth_[a] >= depth_[b] ? a : b) = parent_of_deeper(a, b);
    return a.valid() && a == b ? hosts_[a] : 0;
  }

 private:
  ScopeId parent(ScopeId scope) const { return fabric_.scopes()[scope].parent; }
  ScopeId parent_of_deeper(ScopeId a, ScopeId b) const {
    return parent(depth_[a] >= depth_[b] ? a : b);
  }

  const Fabric& fabric_;
  Column<ScopeId, std::int64_t> hosts_;
  Column<ScopeId, std::uint32_t> depth_;
};

// Links of a node to the network, by rate, ascending.
PortCounts ports_of(const Fabric& fabric, NodeId node) {
  std::map<Rate, std::int64_t> counts;
  for (const LinkId link : fabric.out(node))
    if (fabric.on_wire(link)) ++counts[fabric.rate(link)];
  return {counts.begin(), counts.end()};
}

std::string describe(const PortCounts& cables) {
  std::string out;
  for (const auto& [rate, count] : cables)
    out += fmt::format("{}{} x {}", out.empty() ? "" : " + ", count, to_text(rate));
  return out.empty() ? "no cables" : out;
}

struct Shop {
  const Prices& prices;
  const Floor& floor;
  Errors errors;

  Span span(const Fabric& fabric, LinkId link) const {
    return prices.span(floor.hosts_around(fabric.from(link), fabric.to(link)));
  }
  // On a node, of all its links to the network, by rate, ascending.
  PortCounts cables_on(const Fabric& fabric, NodeId node) const {
    std::map<Rate, std::int64_t> counts;
    for (const LinkId link : fabric.out(node)) {
      if (!fabric.on_wire(link)) continue;
      const auto [cables, each] =
          prices.bundle(fabric.rate(link), prices.metres_of(span(fabric, link)));
      counts[each] += cables;
    }
    return {counts.begin(), counts.end()};
  }
  void lacks(std::string what, std::string hint) {
    errors.push_back({Errc::unknown, {.file = prices.file}, std::move(what), std::move(hint), {}});
  }
};

void bill_switches(const Fabric& fabric, Shop& shop, Bill& bill) {
  for (const Fabric::Role& role : fabric.roles()) {
    if (role.kind != NodeKind::fabric_switch) continue;
    std::map<PortCounts, std::size_t> alike;
    for (const NodeId node : role.nodes) ++alike[shop.cables_on(fabric, node)];
    for (const auto& [cables, count] : alike) {
      const Prices::Switch* found = shop.prices.find_switch(cables);
      if (found == nullptr) {
        shop.lacks(
            fmt::format("no switch for {} \"{}\" with {}", count, role.name, describe(cables)),
            "add one to \"switches\"");
        continue;
      }
      std::int64_t used = 0;
      for (const auto& [rate, cables_of_rate] : cables) used += cables_of_rate;
      const auto n = static_cast<double>(count);
      bill.switches.push_back(
          {role.name, found->text(), count, used, n * found->watts, n * found->price});
      bill.switch_count += count;
    }
  }
}

void bill_links(const Fabric& fabric, Shop& shop, Bill& bill) {
  std::map<std::tuple<RoleId, RoleId, Rate, Span>, std::size_t> counts;
  for (const CableId cable : ids<CableId>(fabric.cable_count())) {
    const LinkId link = forward(cable);
    if (!fabric.on_wire(link)) continue;
    ++counts[{fabric.role_id(fabric.from(link)), fabric.role_id(fabric.to(link)), fabric.rate(link),
              shop.span(fabric, link)}];
  }
  for (const auto& [key, count] : counts) {
    const auto& [from, to, rate, span] = key;
    const double metres = shop.prices.metres_of(span);
    const std::string tier = fabric.role(from).name + "--" + fabric.role(to).name;
    const auto [cables, each] = shop.prices.bundle(rate, metres);
    const Prices::Medium* found = shop.prices.find_medium(each, metres);
    if (found == nullptr) {
      shop.lacks(fmt::format("nothing carries {} over {} m for {} cables {} ({})", to_text(each),
                             metres, count * static_cast<std::size_t>(cables), tier, to_text(span)),
                 "add it to \"cables\" or \"optics\"");
      continue;
    }
    const std::size_t all = count * static_cast<std::size_t>(cables);
    const auto n = static_cast<double>(all);
    bill.links.push_back({tier, rate, span, metres, found->type, count, cables,
                          found->is_optics ? 2 * all : 0, found->is_optics ? n * metres : 0,
                          n * found->link_watts(), n * found->link_price(metres)});
    bill.link_count += count;
    bill.transceivers += bill.links.back().transceivers;
    bill.fibre_m += bill.links.back().fibre_m;
  }
}

void bill_nics(const Fabric& fabric, Shop& shop, Bill& bill) {
  for (const Fabric::Role& role : fabric.roles()) {
    if (role.kind != NodeKind::nic) continue;
    std::map<Rate, std::size_t> counts;
    for (const NodeId node : role.nodes) {
      Rate sum;
      for (const auto& [rate, count] : ports_of(fabric, node))  // stays at the top, as in explain()
        sum.bps = rate.bps > (INT64_MAX - sum.bps) / count ? INT64_MAX : sum.bps + rate.bps * count;
      if (sum.bps > 0) ++counts[sum];
    }
    for (const auto& [rate, count] : counts) {
      const Prices::Nic* found = shop.prices.find_nic(rate);
      if (found == nullptr) {
        shop.lacks(fmt::format("no NIC for {} \"{}\" of {}", count, role.name, to_text(rate)),
                   "add one to \"nics\"");
        continue;
      }
      const auto n = static_cast<double>(count);
      bill.nics.push_back({role.name, rate, count, n * found->watts, n * found->price});
      bill.nic_count += count;
    }
  }
}

template <class Rows>
void sum_up(const Rows& rows, Bill& bill) {
  for (const auto& row : rows) {
    bill.watts += row.watts;
    bill.price += row.price;
  }
}

std::string kilo(double watts) { return fmt::format("{:.1f}", watts / 1000); }
std::string money(double price) { return fmt::format("{:.0f}", price); }
std::string whole(auto count) { return fmt::format("{}", count); }

}  // namespace

Result<Bill> bill_of(const Fabric& fabric, const Prices& prices) {
  Bill bill;
  bill.prices = prices.file;
  bill.currency = prices.currency;
  const Floor floor(fabric);
  Shop shop{prices, floor, {}};
  bill_switches(fabric, shop, bill);
  bill_links(fabric, shop, bill);
  bill_nics(fabric, shop, bill);
  if (!shop.errors.empty()) return std::unexpected(combine(std::move(shop.errors)));
  sum_up(bill.switches, bill);
  sum_up(bill.links, bill);
  sum_up(bill.nics, bill);
  return bill;
}

std::string to_table(const Bill& bill) {
  const std::string cost = "cost " + bill.currency;
  Table switches(
      {{"switch", Align::left}, {"type", Align::left}, {"count"}, {"cables"}, {"kW"}, {cost}});
  for (const auto& s : bill.switches)
    switches.add(
        {s.role, s.type, whole(s.count), whole(s.ports_used), kilo(s.watts), money(s.price)});
  Table links({{"link", Align::left},
               {"rate"},
               {"span", Align::left},
               {"m"},
               {"type", Align::left},
               {"count"},
               {"transceivers"},
               {"fibre m"},
               {"kW"},
               {cost}});
  for (const auto& l : bill.links)
    links.add({l.tier, to_text(l.rate), std::string(to_text(l.span)), fmt::format("{:g}", l.metres),
               l.bundle == 1 ? l.type : fmt::format("{} x {}", l.bundle, l.type), whole(l.count),
               whole(l.transceivers), fmt::format("{:.0f}", l.fibre_m), kilo(l.watts),
               money(l.price)});
  Table nics({{"NIC", Align::left}, {"rate"}, {"count"}, {"kW"}, {cost}});
  for (const auto& n : bill.nics)
    nics.add({n.role, to_text(n.rate), whole(n.count), kilo(n.watts), money(n.price)});
  return fmt::format(
      "bill of materials, prices of {}\n{}\n{}\n{}\n"
      "total: {}, {}, {}, {:.0f} m of fibre, {}; {} kW, {} {}\n",
      bill.prices, switches.text(), links.text(), nics.text(), counted(bill.switch_count, "switch"),
      counted(bill.link_count, "link"), counted(bill.transceivers, "transceiver"), bill.fibre_m,
      counted(bill.nic_count, "NIC"), kilo(bill.watts), bill.currency, money(bill.price));
}

std::string to_json(const Bill& bill) { return write_fields(bill); }

}  // namespace weft::plan
