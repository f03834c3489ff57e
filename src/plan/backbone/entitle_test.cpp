#include "plan/backbone/entitle.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/test_skip.hpp"
#include "plan/backbone/arborescence.hpp"
#include "plan/backbone/test_wan.hpp"
#include "saddle/test_clp.hpp"

namespace weft::plan::backbone {
namespace {

//   a --1-- b        two ways from a to d, of 1 and 2 Gbit/s
//   2       1
//   c --2-- d
const Wan ring_of_four{.sites = {"a", "b", "c", "d"},
                       .cables = {{0, 1, 1, {}}, {0, 2, 2, {}}, {1, 3, 1, {}}, {2, 3, 2, {}}}};

std::vector<Contract> contracts_of(const Wan& wan, const std::string& rows) {
  auto out = read_contracts("name,src,dst,rate,availability,class\n" + rows, "c.csv", wan);
  if (!out) FAIL(out.error().text());
  return *std::move(out);
}

Entitlements promised(const Wan& wan, const std::vector<Contract>& contracts,
                      const EntitleOptions& options) {
  auto out = entitle(wan, contracts, options);
  if (!out) FAIL(out.error().text());
  return *std::move(out);
}

// The least use of the worst link over all routings, written down from nodes and links for CLP: a
// pipe is a flow; a hose is a flow to each peer, which its share of a link covers one by one.
// (That is as good as trees where a hose reaches all sites: Edmonds 1973.)
std::string mps_of_set(const Wan& wan, const std::vector<Contract>& contracts,
                       const std::vector<std::uint32_t>& which, const std::vector<char>& dead) {
  std::string rows = "NAME t\nROWS\n N obj\n", columns = "COLUMNS\n u obj 1\n", rhs = "RHS\n";
  const std::size_t links = wan.link_count();
  for (std::size_t l = 0; l < links; ++l) {
    rows += fmt::format(" L l{}\n", l);
    columns += fmt::format(" u l{} -{}\n", l, wan.gbps(l));
  }
  for (const std::uint32_t c : which) {
    const Contract& contract = contracts[c];
    for (std::size_t l = 0; l < links; ++l)
      columns += fmt::format(" y{}_{} l{} {:.17g}\n", c, l, l, contract.gbps);
    for (const std::uint32_t peer : contract.peers) {
      const std::uint32_t from = contract.into ? peer : contract.site;
      const std::uint32_t to = contract.into ? contract.site : peer;
      for (std::uint32_t site = 0; site < wan.sites.size(); ++site) {
        rows += fmt::format(" E n{}_{}_{}\n", c, peer, site);
        const int out = (site == from ? 1 : 0) - (site == to ? 1 : 0);
        rhs += fmt::format(" s n{}_{}_{} {}\n", c, peer, site, out);
      }
      for (std::uint32_t l = 0; l < links; ++l) {
        if (dead[l / 2] != 0) continue;
        rows += fmt::format(" L c{}_{}_{}\n", c, peer, l);
        columns += fmt::format(" f{0}_{1}_{2} n{0}_{1}_{3} 1\n f{0}_{1}_{2} n{0}_{1}_{4} -1\n", c,
                               peer, l, wan.from(l), wan.to(l));
        columns += fmt::format(" f{0}_{1}_{2} c{0}_{1}_{2} 1\n", c, peer, l);
      }
    }
  }
  // Columns of one variable have to stand together.
  for (const std::uint32_t c : which)
    for (std::uint32_t l = 0; l < links; ++l) {
      const std::string own = fmt::format(" y{}_{} ", c, l);
      std::string more;
      for (const std::uint32_t peer : contracts[c].peers)
        if (dead[l / 2] == 0) more += fmt::format("{}c{}_{}_{} -1\n", own, c, peer, l);
      const std::size_t at = columns.find(own);
      columns.insert(columns.find('\n', at) + 1, more);
    }
  return rows + columns + rhs + "ENDATA\n";
}

std::vector<Contract> random_contracts(const Wan& wan, Rng& rng, std::size_t count) {
  std::vector<Contract> out;
  const auto sites = static_cast<std::uint32_t>(wan.sites.size());
  for (std::size_t i = 0; i < count; ++i) {
    Contract one{.name = "c" + std::to_string(i), .peers = {}};
    one.site = static_cast<std::uint32_t>(rng.below(sites));
    one.is_hose = rng.below(3) == 0;
    one.into = one.is_hose && rng.below(2) == 0;
    for (std::uint32_t s = 0; s < sites; ++s)
      if (s != one.site) one.peers.push_back(s);
    if (!one.is_hose) one.peers = {one.peers[rng.below(one.peers.size())]};
    one.gbps = 0.0973 + 0.1731 * static_cast<double>(rng.below(10));
    one.availability = std::vector{0.9, 0.99, 0.999}[rng.below(3)];
    one.priority = static_cast<std::uint8_t>(rng.below(3));
    out.push_back(std::move(one));
  }
  return out;
}

TEST_CASE("cheapest trees: equal to all trees of small graphs") {
  Rng rng(4);
  for (int round = 0; round < 300; ++round) {
    const auto sites = static_cast<std::uint32_t>(2 + rng.below(4));
    std::vector<Arc> arcs;
    for (std::uint32_t a = 0; a < 3 * sites; ++a)
      arcs.push_back({static_cast<std::uint32_t>(rng.below(sites)),
                      static_cast<std::uint32_t>(rng.below(sites)),
                      static_cast<double>(rng.below(20)), a});
    // Every choice of one arc into every site but the root, that leads there from the root.
    std::optional<double> best;
    std::vector<std::uint32_t> choice(sites, 0);
    const auto count = static_cast<std::uint32_t>(arcs.size());
    for (bool more = true; more;) {
      double cost = 0;
      bool leads = true;
      for (std::uint32_t s = 1; s < sites && leads; ++s) {
        cost += arcs[choice[s]].cost;
        std::uint32_t at = s;
        for (std::uint32_t step = 0; step < sites && at != 0 && leads; ++step) {
          leads = arcs[choice[at]].to == at;
          at = arcs[choice[at]].from;
        }
        leads = leads && at == 0;
      }
      if (leads && (!best || cost < *best)) best = cost;
      more = false;
      for (std::uint32_t s = 1; s < sites && !more; ++s) {
        more = ++choice[s] < count;
        if (!more) choice[s] = 0;
      }
      if (sites == 5 && count > 12) break;  // too many; smaller ones show it
    }
    if (sites == 5) continue;
    const auto tree = cheapest_arborescence(sites, 0, arcs);
    REQUIRE(tree.has_value() == best.has_value());
    if (!tree) continue;
    double cost = 0;
    for (const std::uint32_t a : *tree) cost += arcs[a].cost;
    CHECK(tree->size() == sites - 1);
    CHECK(cost == *best);
  }
}

TEST_CASE("what fits: by hand") {
  const auto fit = [](const std::string& rows, const std::vector<char>& dead = {0, 0, 0, 0}) {
    const auto contracts = contracts_of(ring_of_four, rows);
    std::vector<std::uint32_t> all(contracts.size());
    for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
    return fits(ring_of_four, contracts, all, dead).fits;
  };
  CHECK(fit("p,a,d,2999 Mbps,99 %,\n"));
  CHECK(!fit("p,a,d,3001 Mbps,99 %,\n"));
  CHECK(fit("p,a,d,1 Gbps,99 %,\n", {0, 1, 0, 0}));
  CHECK(!fit("p,a,d,1.1 Gbps,99 %,\n", {0, 1, 0, 0}));
  // Out of a: 3 Gbit/s leave it, but b is reached by two cables of 1, and only half of a share
  // that goes to b over c and d has another way.
  CHECK(fit("h,a,*,1999 Mbps,99 %,\n"));
  CHECK(!fit("h,a,*,2001 Mbps,99 %,\n"));
  CHECK(fit("h,*,a,1999 Mbps,99 %,\n"));
  CHECK(fit("h,a,c;d,2 Gbps,99 %,\n"));
  CHECK(!fit("h,a,c;b,1 Gbps,99 %,\n", {1, 0, 1, 0}));  // b cannot be reached
}

TEST_CASE("a refusal names what fails and the link that is short") {
  const auto contracts = contracts_of(ring_of_four,
                                      "late,a,d,500 Mbps,0.99,2\nfirst,a,d,1 Gbps,99.7 %,1\n"
                                      "more,a,d,900 Mbps,99.95 %,1\nall,a,*,3 Gbps,50 %,3\n");
  const Entitlements answer = promised(ring_of_four, contracts, {.unavailability = 0.001});
  CHECK(answer.order == std::vector<std::uint32_t>{1, 2, 0, 3});
  CHECK(answer.scenarios == 1 + 4 + 6);
  // One of four cables down at a time: `first` fits beside each; with two down on both ways not.
  const double up = std::pow(0.999, 4), one = up * 0.001 / 0.999, two = one * 0.001 / 0.999;
  CHECK(answer.verdicts[1].granted);
  CHECK(answer.verdicts[1].availability == approx(up + 4 * one + 2 * two).epsilon(1e-12));
  // `more` needs the wide way.
  CHECK(!answer.verdicts[2].granted);
  CHECK(answer.verdicts[2].availability == approx(up + 2 * one + two).epsilon(1e-12));
  CHECK(answer.verdicts[2].scenario == "a--c down");
  CHECK(answer.verdicts[2].scenario_share == approx(one));
  CHECK((answer.verdicts[2].link == "a>b" || answer.verdicts[2].link == "b>d"));
  CHECK(answer.verdicts[0].granted);
  CHECK(!answer.verdicts[3].granted);
  CHECK(answer.verdicts[3].scenario == "nothing down");
  const std::string table = to_table(ring_of_four, contracts, answer);
  CHECK(table.find("REFUSED: a--c down (0.0997 %), ") != std::string::npos);
  CHECK(table.find("a>*") != std::string::npos);
}

TEST_CASE("groups fail together, and cables may state how often") {
  auto file = read_wan(
      "src,dst,capacity,group,unavailability\na,b,1 Gbps,hill,1 %\nb,c,1 Gbps,,0\n"
      "a,c,1 Gbps,hill,2 %\n",
      "w.csv");
  REQUIRE(file.has_value());
  const auto contracts = contracts_of(file->wan, "p,a,b,1 Gbps,97 %,\nq,a,b,1 Gbps,97 %,\n");
  const Entitlements answer = promised(file->wan, contracts, {.unavailability = 0.5});
  CHECK(answer.covered == approx(1));
  CHECK(answer.verdicts[0].granted);
  CHECK(answer.verdicts[0].availability == approx(0.98));
  CHECK(answer.verdicts[1].granted);
  const auto bad = read_wan("src,dst,capacity,unavailability\na,b,1 Gbps,101 %\n", "w.csv");
  REQUIRE(!bad.has_value());
  CHECK(bad.error().text() ==
        "w.csv:2:12: \"101 %\" is not a valid share of the time; write e.g. 99.9 %, or 0.999");
}

TEST_CASE("contracts that make no sense") {
  const auto refused = [](const std::string& rows) {
    const auto out =
        read_contracts("name,src,dst,rate,availability\n" + rows, "c.csv", ring_of_four);
    return out ? "none" : out.error().text();
  };
  CHECK(refused("") == "c.csv: no contracts; list at least one");
  CHECK(refused("x,a,a,1 Gbps,99 %\n") ==
        "c.csv:2:5: a contract from a site to itself; name other sites");
  CHECK(refused("x,a;b,c;d,1 Gbps,99 %\n") ==
        "c.csv:2:3: several sites on both sides; write a hose out of each site, and one into each");
  CHECK(refused("x,a,e,1 Gbps,0\nx,a,b,0,99 %\n") ==
        "c.csv:2:5: no site \"e\" (did you mean \"a\"?); use a site of the topology\n"
        "c.csv:2:14: an availability of 0 promises nothing; write e.g. 99.9 %\n"
        "c.csv:3:1: \"x\" is listed twice; give every contract a name of its own");
}

TEST_CASE("many refusals: equal to contracts one by one in every scenario") {
  Rng rng(8);
  std::size_t refused = 0;
  for (std::uint64_t round = 0; round < 5; ++round) {
    const Wan wan = random_wan(5, 3, round + 1);
    std::vector<Contract> contracts = random_contracts(wan, rng, 30);
    for (Contract& one : contracts) one.gbps *= 0.3;
    const double q = 0.01;
    const auto cables = static_cast<std::uint32_t>(wan.cables.size());
    const Entitlements ours = promised(wan, contracts, {.unavailability = q, .order = 2});
    // Sets of up to two dead cables, and what was promised there so far.
    struct There {
      std::vector<char> dead;
      double share = 0;
      std::vector<std::uint32_t> kept;
    };
    std::vector<There> theres;
    for (std::uint32_t a = 0; a < cables; ++a)
      for (std::uint32_t b = a; b <= cables; ++b) {
        There one{.dead = std::vector<char>(cables, 0)};
        if (a == b && a > 0) continue;  // none at all, once
        if (a != b) one.dead[a] = 1;
        if (a != b && b < cables) one.dead[b] = 1;
        const auto down = std::ranges::count(one.dead, 1);
        one.share = std::pow(q, down) * std::pow(1 - q, cables - down);
        theres.push_back(std::move(one));
      }
    CHECK(theres.size() == ours.scenarios);
    for (const std::uint32_t c : ours.order) {
      double share = 0;
      std::vector<There*> fitting;
      for (There& one : theres) {
        std::vector<std::uint32_t> which = one.kept;
        which.push_back(c);
        if (!fits(wan, contracts, which, one.dead).fits) continue;
        share += one.share;
        fitting.push_back(&one);
      }
      const bool is_granted = share >= contracts[c].availability;
      CHECK(ours.verdicts[c].granted == is_granted);
      CHECK(ours.verdicts[c].availability == approx(share).epsilon(1e-9));
      refused += is_granted ? 0 : 1;
      for (There* one : fitting)
        if (is_granted) one->kept.push_back(c);
    }
  }
  CHECK(refused > 10);
}

TEST_SUITE("needs clp") {
  TEST_CASE("promises: equal to every set of failures, decided by CLP") {
    if (!saddle::has_clp()) return skip_test("CLP is not installed (apt-get install coinor-clp)");
    const TestFolder folder;
    Rng rng(11);
    std::size_t refused = 0, granted = 0, hoses = 0;
    const std::uint64_t rounds = test_effort(3);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const Wan wan = random_wan(4, 2, round + 1);
      const std::vector<Contract> contracts = random_contracts(wan, rng, 5);
      const double q = 0.02;
      const auto cables = static_cast<std::uint32_t>(wan.cables.size());
      const Entitlements ours = promised(wan, contracts, {.unavailability = q, .order = cables});
      CHECK(ours.covered == approx(1).epsilon(1e-12));
      // One after the other, in all 2^cables scenarios: the set of those that fit there so far.
      std::vector<std::vector<std::uint32_t>> there(1U << cables);
      for (const std::uint32_t c : ours.order) {
        double share = 0;
        std::vector<bool> fits_in(there.size());
        for (std::uint32_t s = 0; s < there.size(); ++s) {
          std::vector<char> dead(cables);
          double p = 1;
          for (std::uint32_t k = 0; k < cables; ++k) {
            dead[k] = (s >> k & 1) != 0 ? 1 : 0;
            p *= dead[k] != 0 ? q : 1 - q;
          }
          std::vector<std::uint32_t> which = there[s];
          which.push_back(c);
          const auto use = saddle::clp_optimum(mps_of_set(wan, contracts, which, dead), folder);
          if (use) CHECK(std::abs(*use - 1) > 2e-4);  // else chance decides
          fits_in[s] = use && *use <= 1;
          if (fits_in[s]) share += p;
        }
        const bool is_granted = share >= contracts[c].availability;
        CHECK(ours.verdicts[c].granted == is_granted);
        CHECK(ours.verdicts[c].availability == approx(share).epsilon(1e-9));
        (is_granted ? granted : refused) += 1;
        hoses += contracts[c].is_hose ? 1 : 0;
        for (std::uint32_t s = 0; s < there.size() && is_granted; ++s)
          if (fits_in[s]) there[s].push_back(c);
      }
    }
    const std::size_t few = rounds < 3 ? 0 : 3;
    CHECK(refused > few);
    CHECK(granted > few);
    CHECK(hoses > few);
  }
}

}  // namespace
}  // namespace weft::plan::backbone
