#include "engine/fluid/hops.hpp"

#include <doctest/doctest.h>

#include <map>

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

}  // namespace
}  // namespace weft::engine::fluid
