#include <doctest/doctest.h>

#include <map>
#include <numeric>

#include "base/test_approx.hpp"
#include "route/test_net.hpp"

namespace weft::route {
namespace {

using namespace testing;

// Seconds of the worst link, with the shares that the router gives or with equal ones.
double worst_link_s(Router& router, std::span<const Demand> demands, bool weighed) {
  std::map<LinkId, double> bytes;
  for (const Demand& d : demands) {
    const std::span<const double> given = router.qp_shares(d.from, d.to);
    const std::vector<double> shares(given.begin(), given.end());
    for (std::uint32_t qp = 0; qp < router.stream_count(); ++qp)
      for (const LinkId link : path_of(router, {d.from, d.to, qp}))
        bytes[link] +=
            d.bytes * (weighed && !shares.empty() ? shares[qp] : 1.0 / router.stream_count());
  }
  double most = 0;
  for (const auto& [link, sum] : bytes) most = std::max(most, sum / router.capacity(link));
  return most;
}

TEST_CASE("QP weights: two ways of unequal rate carry in proportion, a change is followed") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 2, spines: 2}");
  const NodeId from = fabric.nics()[0], to = fabric.nics()[16];
  Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 8, .weigh_qps = true});
  CHECK(router.qp_shares(from, to).empty());  // nobody said that it sends
  const std::vector<Demand> demands{{from, to, 1e9}};
  router.declare(demands);
  CHECK(router.qp_shares(from, to).empty());  // its NIC alone limits
  State slow;
  const LinkId by[] = {link(fabric, "rtsw:0->ctsw:0"), link(fabric, "rtsw:0->ctsw:1")};
  slow.set(by[0], {.rate_factor = 0.5});
  slow.set(by[1], {.rate_factor = 0.25});
  router.set_state(slow);
  const auto given = router.qp_shares(from, to);
  const std::vector<double> shares(given.begin(), given.end());
  REQUIRE(shares.size() == 8);
  double first = 0;
  for (std::uint32_t qp = 0; qp < 8; ++qp)
    if (path_of(router, {from, to, qp})[1] == by[0]) first += shares[qp];
  CHECK(std::accumulate(shares.begin(), shares.end(), 0.0) == approx(1));
  CHECK(first == approx(2.0 / 3).epsilon(0.01));
  router.set_state({});
  CHECK(router.qp_shares(from, to).empty());
  Router plain = make_router(fabric, {.scheme = "e_ecmp", .qps = 8});
  plain.declare(demands);
  plain.set_state(slow);
  CHECK(plain.qp_shares(from, to).empty());
  Router turns = make_router(
      fabric,
      {.scheme = "e_ecmp", .qps = 8, .message_mode = MessageMode::round_robin, .weigh_qps = true});
  turns.declare(demands);
  turns.set_state(slow);
  CHECK(turns.qp_shares(from, to).empty());
}

TEST_CASE("QP weights: no kind's worst link gets more, also where kinds share pairs") {
  const Fabric fabric = make_fabric("{generator: ai_zone, racks: 6, spines: 5}");
  const std::size_t n = fabric.nics().size();
  double best = 1;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    Rng rng(seed);
    Router router = make_router(fabric, {.scheme = "e_ecmp", .qps = 4, .weigh_qps = true});
    std::vector<std::vector<Demand>> kinds(3);
    for (std::vector<Demand>& kind : kinds) {
      for (int i = 0; i < 40; ++i) {
        const std::size_t from = rng.below(n), to = rng.below(n);
        if (from != to)
          kind.push_back({fabric.nics()[from], fabric.nics()[to], 1e6 + 1e9 * rng.uniform()});
      }
      // Pairs of the first kind, with other sizes.
      if (&kind != &kinds[0])
        for (int i = 0; i < 20; ++i) {
          kind.push_back(kinds[0][rng.below(kinds[0].size())]);
          kind.back().bytes *= rng.uniform();
        }
      router.declare(kind);
    }
    State bad;
    for (int i = 0; i < 4; ++i)
      bad.set(LinkId(static_cast<std::uint32_t>(rng.below(fabric.link_count()))),
              {.rate_factor = 0.1 + 0.8 * rng.uniform()});
    router.set_state(bad);
    for (const std::vector<Demand>& kind : kinds) {
      const double equal = worst_link_s(router, kind, false);
      const double weighed = worst_link_s(router, kind, true);
      CHECK(weighed <= equal * (1 + 1e-6));
      best = std::min(best, weighed / equal);
    }
  }
  CHECK(best < 0.9);
}

}  // namespace
}  // namespace weft::route
