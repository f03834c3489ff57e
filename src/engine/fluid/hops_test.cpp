#include "engine/fluid/hops.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "base/rng.hpp"

namespace weft::engine::fluid {
namespace {

// Lengths on both sides of the change from insertion to sorting, with repeats and shares of 0.
TEST_CASE("merged hops are those of a map, shares added up in the order given") {
  Rng rng(3);
  HopMerger merger;
  std::vector<Hop> out{{LinkId(9), 1}};  // of an earlier call
  for (int round = 0; round < 500; ++round) {
    std::vector<Hop> hops(rng.below(round % 10 == 0 ? 200 : 12));
    for (Hop& hop : hops) hop = {LinkId(rng.below(20)), static_cast<double>(rng.below(4)) / 3};
    std::map<LinkId, double> want;
    for (const Hop& hop : hops) want[hop.link] += hop.share;
    std::erase_if(want, [](const auto& entry) { return entry.second <= 0; });
    merger.merge(hops, out);
    CHECK(is_merged(out));
    REQUIRE(out.size() == want.size());
    for (const Hop& hop : out) CHECK(hop.share == want.at(hop.link));
  }
}

TEST_CASE("kept paths come back as they were, with shares that differ from hop to hop") {
  Rng rng(4);
  PathStore store;
  for (int round = 0; round < 3; ++round) {
    struct Kept {
      std::uint32_t first;
      std::vector<Hop> path;
    };
    std::vector<Kept> kept;
    for (int p = 0; p < 200; ++p) {
      std::vector<Hop> path(rng.below(p % 20 == 0 ? 300 : 8));
      std::uint32_t link = 0;
      for (Hop& hop : path) {
        link += 1 + static_cast<std::uint32_t>(rng.below(1000));
        // Mostly 1; some that come again, some that do not.
        const std::uint64_t kind = rng.below(4);
        hop = {LinkId(link), kind < 2    ? 1
                             : kind == 2 ? static_cast<double>(1 + rng.below(5)) / 3
                                         : rng.uniform()};
      }
      kept.push_back({store.add(path), path});
    }
    for (const Kept& one : kept) {
      std::vector<Hop> out;
      store.for_each_hop(one.first, static_cast<std::uint32_t>(one.path.size()),
                         [&](const Hop& hop) { out.push_back(hop); });
      CHECK(std::ranges::equal(out, one.path, [](const Hop& a, const Hop& b) {
        return a.link == b.link && a.share == b.share;
      }));
    }
    store.clear();
  }
}

}  // namespace
}  // namespace weft::engine::fluid
