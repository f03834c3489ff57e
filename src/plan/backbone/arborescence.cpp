#include "plan/backbone/arborescence.hpp"

#include <algorithm>
#include <cstddef>

namespace weft::plan::backbone {
namespace {

constexpr std::uint32_t no_arc = UINT32_MAX;

// The cheapest arc into every site; none where one has none.
std::optional<std::vector<std::uint32_t>> cheapest_into(std::uint32_t sites, std::uint32_t root,
                                                        const std::vector<Arc>& arcs) {
  std::vector<std::uint32_t> into(sites, no_arc);
  for (std::uint32_t a = 0; a < arcs.size(); ++a) {
    std::uint32_t& best = into[arcs[a].to];
    if (arcs[a].from != arcs[a].to && (best == no_arc || arcs[a].cost < arcs[best].cost)) best = a;
  }
  into[root] = no_arc;
  for (std::uint32_t site = 0; site < sites; ++site)
    if (site != root && into[site] == no_arc) return std::nullopt;
  return into;
}

// Sites of one cycle of these arcs get one number, all others one of their own.
struct Contraction {
  std::vector<std::uint32_t> number;
  std::uint32_t count = 0;
  std::vector<bool> is_in_cycle;
};

Contraction contract_cycles(std::uint32_t root, const std::vector<Arc>& arcs,
                            const std::vector<std::uint32_t>& into) {
  const auto sites = static_cast<std::uint32_t>(into.size());
  Contraction out{.number = std::vector(sites, no_arc), .is_in_cycle = std::vector(sites, false)};
  std::vector<std::uint32_t> seen_from(sites, no_arc);
  for (std::uint32_t start = 0; start < sites; ++start) {
    std::uint32_t site = start;
    while (site != root && seen_from[site] == no_arc) {
      seen_from[site] = start;
      site = arcs[into[site]].from;
    }
    if (site == root || seen_from[site] != start || out.number[site] != no_arc) continue;
    for (std::uint32_t at = site; out.number[at] == no_arc; at = arcs[into[at]].from) {
      out.number[at] = out.count;
      out.is_in_cycle[at] = true;
    }
    ++out.count;
  }
  for (std::uint32_t& number : out.number)
    if (number == no_arc) number = out.count++;
  return out;
}

}  // namespace

std::optional<std::vector<std::uint32_t>> cheapest_arborescence(std::uint32_t sites,
                                                                std::uint32_t root,
                                                                std::vector<Arc> arcs) {
  const auto into = cheapest_into(sites, root, arcs);
  if (!into) return std::nullopt;
  const Contraction contracted = contract_cycles(root, arcs, *into);
  std::vector<std::uint32_t> out;
  std::vector<bool> replaced(sites, false);
  if (contracted.count < sites) {
    // An arc into a cycle costs what it adds to the cycle's own arc.
    std::vector<Arc> between;
    for (std::uint32_t a = 0; a < arcs.size(); ++a) {
      const Arc& arc = arcs[a];
      const std::uint32_t from = contracted.number[arc.from], to = contracted.number[arc.to];
      if (from == to) continue;
      const double saved = contracted.is_in_cycle[arc.to] ? arcs[(*into)[arc.to]].cost : 0;
      between.push_back({from, to, arc.cost - saved, a});
    }
    const auto chosen = cheapest_arborescence(contracted.count, contracted.number[root], between);
    if (!chosen) return std::nullopt;
    for (const std::uint32_t a : *chosen) {
      out.push_back(arcs[a].name);
      replaced[arcs[a].to] = true;
    }
    for (std::uint32_t site = 0; site < sites; ++site)
      if (contracted.is_in_cycle[site] && !replaced[site]) out.push_back(arcs[(*into)[site]].name);
  } else {
    for (std::uint32_t site = 0; site < sites; ++site)
      if (site != root) out.push_back(arcs[(*into)[site]].name);
  }
  std::ranges::sort(out);
  return out;
}

}  // namespace weft::plan::backbone
