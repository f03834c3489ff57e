#include "plan/backbone/entitle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "base/parallel.hpp"
#include "plan/backbone/arborescence.hpp"
#include "plan/backbone/paths.hpp"
#include "saddle/saddle.hpp"

namespace weft::plan::backbone {
namespace {

constexpr double gap_first = 2e-3, gap_last = 5e-5;
constexpr double full = 1 + 1e-4;  // use of the worst link that still fits
constexpr std::uint32_t rounds_max = 400, no_link = UINT32_MAX;

using Links = std::vector<std::uint32_t>;

// The network of one scenario, and the cheapest way of a contract by prices of its links.
class Surviving {
 public:
  Surviving(const Wan& wan, const std::vector<char>& dead) : wan_(wan), dead_(dead), finder_(wan) {}

  bool is_dead(std::uint32_t link) const { return dead_[link / 2] != 0; }

  // Links that would hold the contract's rate; no way costs less than `least`. None: some site
  // cannot be reached.
  struct Way {
    Links links;
    double least = 0;
  };
  std::optional<Way> cheapest(const Contract& contract, const std::vector<double>& price) const {
    Way out;
    if (contract.is_hose && contract.peers.size() + 1 == wan_.sites.size()) {
      auto tree = spanning(contract, price);
      if (!tree) return std::nullopt;
      out.links = *std::move(tree);
      for (const std::uint32_t l : out.links) out.least += price[l];
      return out;
    }
    // Into a site: the same on links that are turned round.
    std::vector<double> own(price.size());
    for (std::uint32_t l = 0; l < price.size(); ++l)
      own[l] =
          is_dead(l) ? std::numeric_limits<double>::infinity() : price[contract.into ? l ^ 1 : l];
    for (const std::uint32_t peer : contract.peers) {
      const Links path = finder_.cheapest_path(contract.site, peer, own);
      if (path.empty() || std::ranges::any_of(path, [&](auto l) { return is_dead(l); }))
        return std::nullopt;
      double length = 0;
      for (const std::uint32_t l : path) {
        length += own[l];
        out.links.push_back(contract.into ? l ^ 1 : l);
      }
      out.least = std::max(out.least, length);
    }
    std::ranges::sort(out.links);
    const auto repeats = std::ranges::unique(out.links);
    out.links.erase(repeats.begin(), repeats.end());
    return out;
  }

 private:
  std::optional<Links> spanning(const Contract& contract, const std::vector<double>& price) const {
    std::vector<Arc> arcs;
    for (std::uint32_t l = 0; l < price.size(); ++l)
      if (!is_dead(l))
        arcs.push_back(contract.into ? Arc{wan_.to(l), wan_.from(l), price[l], l}
                                     : Arc{wan_.from(l), wan_.to(l), price[l], l});
    return cheapest_arborescence(static_cast<std::uint32_t>(wan_.sites.size()), contract.site,
                                 std::move(arcs));
  }

  const Wan& wan_;
  const std::vector<char>& dead_;
  PathFinder finder_;
};

// The least use of the worst link, by columns that are added while some way is cheaper than those
// that are there.
class Program {
 public:
  Program(const Wan& wan, const std::vector<Contract>& contracts,
          const std::vector<std::uint32_t>& which, const std::vector<char>& dead)
      : wan_(wan), contracts_(contracts), which_(which), network_(wan, dead) {}

  Fit solve() {
    if (which_.empty()) return {.fits = true};
    std::vector<double> price(wan_.link_count());
    for (std::uint32_t l = 0; l < price.size(); ++l) price[l] = 1 / wan_.gbps(l);
    ways_.resize(which_.size());
    for (std::size_t i = 0; i < which_.size(); ++i) {
      auto way = network_.cheapest(contracts_[which_[i]], price);
      if (!way) return {};
      ways_[i].insert(std::move(way->links));
    }
    double gap = gap_first;
    std::uint32_t worst = 0;
    for (std::uint32_t round = 0; round < rounds_max; ++round) {
      const saddle::Answer answer = saddle::solve(problem(), {.gap = gap});
      if (answer.value <= full) return {.fits = true};
      worst = static_cast<std::uint32_t>(std::ranges::max_element(answer.y) - answer.y.begin());
      for (std::uint32_t l = 0; l < price.size(); ++l) price[l] = answer.y[l] / wan_.gbps(l);
      const auto [bound, is_new] = add_ways(price);
      if (bound > 1) return {.fits = false, .link = worst};
      if (is_new) continue;
      if (gap <= gap_last) return {.fits = false, .link = worst};
      gap /= 4;
    }
    return {.fits = false, .link = worst};
  }

 private:
  // What no split over any ways can go below, and whether one of them was not there.
  std::pair<double, bool> add_ways(const std::vector<double>& price) {
    // Links without a price are all alike; a little of one keeps ways short.
    const double total = std::accumulate(price.begin(), price.end(), 0.0);
    std::vector<double> tilted = price;
    for (double& p : tilted) p += 1e-9 * total / static_cast<double>(price.size());
    double bound = 0;
    bool is_new = false;
    for (std::size_t i = 0; i < which_.size(); ++i) {
      const Contract& contract = contracts_[which_[i]];
      auto way = network_.cheapest(contract, tilted);
      bound += contract.gbps * way->least * (1 - 1e-6);
      is_new |= ways_[i].insert(std::move(way->links)).second;
    }
    return {bound, is_new};
  }
  saddle::Problem problem() const {
    saddle::Problem p;
    for (std::uint32_t l = 0; l < wan_.link_count(); ++l) {
      p.scale.push_back(1 / wan_.gbps(l));
      p.offset.push_back(0);
    }
    p.row_blocks.push_back({0, 1, 1, 0});
    p.entry_begin.push_back(0);
    for (std::size_t i = 0; i < which_.size(); ++i) {
      p.column_blocks.push_back(
          {static_cast<std::uint32_t>(p.cost.size()), contracts_[which_[i]].gbps});
      for (const Links& links : ways_[i]) {
        p.entries.insert(p.entries.end(), links.begin(), links.end());
        p.entry_begin.push_back(static_cast<std::uint32_t>(p.entries.size()));
        p.cost.push_back(0);
      }
    }
    return p;
  }

  const Wan& wan_;
  const std::vector<Contract>& contracts_;
  const std::vector<std::uint32_t>& which_;
  Surviving network_;
  std::vector<std::set<Links>> ways_;  // of each contract
};

struct Risk {
  std::string name;
  std::vector<std::uint32_t> cables;
  double unavailability = 0;
};

std::vector<Risk> risks_of(const Wan& wan, double otherwise) {
  std::map<std::string, std::size_t> groups;
  std::vector<Risk> out;
  for (std::uint32_t c = 0; c < wan.cables.size(); ++c) {
    const Cable& cable = wan.cables[c];
    const double own = cable.unavailability.value_or(otherwise);
    const std::string name = cable.group.empty()
                                 ? fmt::format("{}--{}", wan.sites[cable.a], wan.sites[cable.b])
                                 : cable.group;
    const auto known = cable.group.empty() ? groups.end() : groups.find(cable.group);
    if (known == groups.end()) {
      if (!cable.group.empty()) groups.emplace(cable.group, out.size());
      out.push_back({name, {c}, own});
    } else {
      Risk& risk = out[known->second];
      risk.cables.push_back(c);
      risk.unavailability = std::max(risk.unavailability, own);
    }
  }
  return out;
}

struct Scenario {
  std::vector<std::uint32_t> down;  // risks
  double share = 0;                 // of the time
};

// C(n, 0) + ... + C(n, order), or above the limit.
std::uint64_t scenario_count(std::uint64_t risks, std::uint32_t order) {
  double count = 1, choose = 1;
  for (std::uint32_t k = 1; k <= order && k <= risks; ++k) {
    choose *= static_cast<double>(risks - k + 1) / k;
    count += choose;
  }
  return count > 1e15 ? UINT64_MAX : static_cast<std::uint64_t>(std::llround(count));
}

std::vector<Scenario> scenarios_of(const std::vector<Risk>& risks, std::uint32_t order) {
  double all_up = 1;
  for (const Risk& risk : risks) all_up *= 1 - risk.unavailability;
  std::vector<Scenario> out{{{}, all_up}};
  // Each with one more risk, of a higher number than those that are down.
  for (std::size_t first = 0, k = 0; k < order; ++k) {
    const std::size_t last = out.size();
    for (std::size_t i = first; i < last; ++i)
      for (std::uint32_t r = out[i].down.empty() ? 0 : out[i].down.back() + 1; r < risks.size();
           ++r) {
        const double q = risks[r].unavailability;
        if (q <= 0) continue;
        Scenario more{out[i].down, out[i].share * q / (1 - q)};
        more.down.push_back(r);
        out.push_back(std::move(more));
      }
    first = last;
  }
  return out;
}

// Sites with the same number reach each other.
std::vector<std::uint32_t> parts_of(const Wan& wan, const std::vector<char>& dead) {
  std::vector<std::uint32_t> part(wan.sites.size());
  std::iota(part.begin(), part.end(), 0);
  const auto root = [&](std::uint32_t site) {
    while (part[site] != site) site = part[site] = part[part[site]];
    return site;
  };
  for (std::uint32_t c = 0; c < wan.cables.size(); ++c)
    if (dead[c] == 0) part[root(wan.cables[c].a)] = root(wan.cables[c].b);
  for (std::uint32_t site = 0; site < part.size(); ++site) part[site] = root(site);
  return part;
}

class Promises {
 public:
  Promises(const Wan& wan, const std::vector<Contract>& contracts, const EntitleOptions& options)
      : wan_(wan),
        contracts_(contracts),
        options_(options),
        risks_(risks_of(wan, options.unavailability)),
        scenarios_(scenarios_of(risks_, options.order)),
        place_(contracts.size()),
        missing_(scenarios_.size()),
        cut_off_(scenarios_.size()) {
    out_.order.resize(contracts.size());
    std::iota(out_.order.begin(), out_.order.end(), 0);
    std::ranges::stable_sort(out_.order, {},
                             [&](std::uint32_t c) { return contracts[c].priority; });
    out_.verdicts.resize(contracts.size());
    out_.scenarios = scenarios_.size();
    for (const Scenario& one : scenarios_) out_.covered += one.share;
    candidates_ = out_.order;
    for (std::uint32_t i = 0; i < out_.order.size(); ++i) place_[out_.order[i]] = i;
  }

  Entitlements run() && {
    std::vector<std::size_t> stale(scenarios_.size());
    std::iota(stale.begin(), stale.end(), 0);
    std::optional<std::uint32_t> refused;
    while (true) {
      parallel_for(stale.size(), options_.threads,
                   [&](std::size_t i) { look_at(stale[i], refused); });
      refused = first_short();
      if (!refused) break;
      stale = affected_by(*refused);
      std::erase(candidates_, *refused);
      for (std::vector<Missing>& missing : missing_)
        std::erase_if(missing, [&](const Missing& m) { return m.contract == *refused; });
    }
    for (const std::uint32_t c : candidates_) {
      out_.verdicts[c].granted = true;
      out_.verdicts[c].availability = availability(c);
    }
    out_.programs = programs_;
    return std::move(out_);
  }

 private:
  struct Missing {
    std::uint32_t contract, link;
  };

  // Contracts that do not fit in the scenario beside those before them, in order. With one that was
  // refused since, nothing changes before the first one behind it that was short.
  void look_at(std::size_t scenario, std::optional<std::uint32_t> refused) {
    std::vector<char> dead(wan_.cables.size(), 0);
    for (const std::uint32_t r : scenarios_[scenario].down)
      for (const std::uint32_t c : risks_[r].cables) dead[c] = 1;
    const std::vector<std::uint32_t> left = not_cut_off(scenario, dead);
    std::vector<Missing>& missing = missing_[scenario];
    std::vector<std::uint32_t> kept;
    std::size_t next = 0;
    if (refused) {
      const auto again = std::ranges::upper_bound(
          missing, place_[*refused], {}, [&](const Missing& m) { return place_[m.contract]; });
      for (; left[next] != again->contract; ++next)
        if (missing_in(scenario, left[next]) == nullptr) kept.push_back(left[next]);
      missing.erase(again, missing.end());
    }
    const auto with = [&](std::size_t count) {
      std::vector<std::uint32_t> which = kept;
      which.insert(which.end(), left.begin() + static_cast<std::ptrdiff_t>(next),
                   left.begin() + static_cast<std::ptrdiff_t>(next + count));
      ++programs_;
      return backbone::fits(wan_, contracts_, which, dead);
    };
    if (!refused && with(left.size()).fits) return;
    while (next < left.size()) {
      // As many more as fit: `low` do, `high` do not. Where one is short others often are.
      std::size_t low = 0, high = 1;
      Fit short_of = with(high);
      while (short_of.fits) {
        low = high;
        if (high == left.size() - next) return;
        high = std::min(2 * high, left.size() - next);
        short_of = with(high);
      }
      while (high - low > 1) {
        const std::size_t middle = low + (high - low) / 2;
        const Fit fit = with(middle);
        if (!fit.fits) short_of = fit;
        (fit.fits ? low : high) = middle;
      }
      missing.push_back({left[next + low], short_of.link});
      kept.insert(kept.end(), left.begin() + static_cast<std::ptrdiff_t>(next),
                  left.begin() + static_cast<std::ptrdiff_t>(next + low));
      next += low + 1;
    }
  }
  // Candidates whose sites reach each other; the others are noted.
  std::vector<std::uint32_t> not_cut_off(std::size_t scenario, const std::vector<char>& dead) {
    const std::vector<std::uint32_t> part = parts_of(wan_, dead);
    std::vector<std::uint32_t> out;
    cut_off_[scenario].clear();
    for (const std::uint32_t c : candidates_) {
      const auto is_away = [&](std::uint32_t peer) {
        return part[peer] != part[contracts_[c].site];
      };
      if (std::ranges::any_of(contracts_[c].peers, is_away))
        cut_off_[scenario].push_back({c, no_link});
      else
        out.push_back(c);
    }
    return out;
  }

  const Missing* missing_in(std::size_t scenario, std::uint32_t contract) const {
    for (const auto* list : {&missing_[scenario], &cut_off_[scenario]}) {
      const auto at = std::ranges::find(*list, contract, &Missing::contract);
      if (at != list->end()) return &*at;
    }
    return nullptr;
  }
  double availability(std::uint32_t contract) const {
    double out = 0;
    for (std::size_t s = 0; s < scenarios_.size(); ++s)
      if (missing_in(s, contract) == nullptr) out += scenarios_[s].share;
    return out;
  }
  // The first candidate that is not promised what it asks for; its verdict is written.
  std::optional<std::uint32_t> first_short() {
    for (const std::uint32_t c : candidates_) {
      const double have = availability(c);
      // Sums of thousands of shares.
      if (have >= contracts_[c].availability - 1e-12) continue;
      Verdict& verdict = out_.verdicts[c];
      verdict.availability = have;
      explain(c, verdict);
      return c;
    }
    return std::nullopt;
  }
  void explain(std::uint32_t contract, Verdict& verdict) const {
    for (std::size_t s = 0; s < scenarios_.size(); ++s) {
      const Missing* const missing = missing_in(s, contract);
      if (missing == nullptr || scenarios_[s].share <= verdict.scenario_share) continue;
      verdict.scenario_share = scenarios_[s].share;
      std::vector<std::string> names;
      for (const std::uint32_t r : scenarios_[s].down) names.push_back(risks_[r].name);
      verdict.scenario =
          names.empty() ? "nothing down" : fmt::format("{} down", fmt::join(names, " and "));
      verdict.link = missing->link == no_link
                         ? ""
                         : fmt::format("{}>{}", wan_.sites[wan_.from(missing->link)],
                                       wan_.sites[wan_.to(missing->link)]);
    }
    if (verdict.scenario.empty())
      verdict.scenario = fmt::format("more than {} risks down", options_.order);
  }
  // Where it takes room from one that comes after it.
  std::vector<std::size_t> affected_by(std::uint32_t refused) const {
    std::vector<std::size_t> out;
    for (std::size_t s = 0; s < scenarios_.size(); ++s)
      if (!missing_[s].empty() && place_[missing_[s].back().contract] > place_[refused] &&
          missing_in(s, refused) == nullptr)
        out.push_back(s);
    return out;
  }

  const Wan& wan_;
  const std::vector<Contract>& contracts_;
  const EntitleOptions& options_;
  std::vector<Risk> risks_;
  std::vector<Scenario> scenarios_;
  std::vector<std::uint32_t> place_;  // of each contract in the order
  // Of each scenario: contracts that do not fit, in order, and those whose sites are cut off.
  std::vector<std::vector<Missing>> missing_, cut_off_;
  std::vector<std::uint32_t> candidates_;  // not refused, in order
  std::atomic<std::uint64_t> programs_ = 0;
  Entitlements out_;
};

}  // namespace

Fit fits(const Wan& wan, const std::vector<Contract>& contracts,
         const std::vector<std::uint32_t>& which, const std::vector<char>& dead) {
  return Program(wan, contracts, which, dead).solve();
}

Result<Entitlements> entitle(const Wan& wan, const std::vector<Contract>& contracts,
                             const EntitleOptions& options) {
  const std::vector<Risk> risks = risks_of(wan, options.unavailability);
  for (const Risk& risk : risks)
    if (risk.unavailability >= 1)
      return fail(Errc::value, {}, fmt::format("{} is down all of the time", risk.name),
                  "leave it out of the topology, or state a smaller unavailability");
  if (scenario_count(risks.size(), options.order) > scenarios_max)
    return fail(Errc::value, {"--order", 0, 0},
                fmt::format("{} risks, {} at a time, make more than {} scenarios", risks.size(),
                            options.order, scenarios_max),
                "look at fewer at a time, or group cables that share a risk");
  return Promises(wan, contracts, options).run();
}

}  // namespace weft::plan::backbone
