// The exact maximum of what waits, from departures that become known late and in no order.
#include "engine/packet/occupancy.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

#include "base/rng.hpp"

namespace weft::engine::packet {
namespace {

struct Entry {
  Ps t;
  std::uint32_t size;
};

TEST_CASE("a departure precedes entries of its time, unless it is postponed") {
  OccupancyBatch batch(4);
  batch.enter(10, 100, 100);
  batch.enter(20, 200, 100);
  batch.leave(20, 100);
  CHECK(batch.close() == 100);
  batch.enter(30, 200, 100);  // 100 of them before
  batch.enter(40, 300, 100);
  batch.leave(40, 100);
  batch.postpone(40, 100);
  CHECK(batch.close() == 300);
}

TEST_CASE("departures found out between two entries count from the second on") {
  OccupancyBatch batch(4);
  batch.enter(10, 100, 100);
  batch.leave(11, 100);
  batch.enter(12, 100, 100);
  batch.enter(13, 200, 100);
  CHECK_FALSE(batch.full());
  batch.enter(14, 300, 50);
  CHECK(batch.full());
  CHECK(batch.close() == 250);
}

TEST_CASE("random entries and departures, these told in any order: the maximum of plain sums") {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed);
    std::vector<Entry> entries, departures;
    Ps t = 100;
    for (int i = 0; i < 60; ++i) {
      entries.push_back({t, static_cast<std::uint32_t>(1 + rng.below(4000))});
      departures.push_back({t + 1 + rng.below(400), entries.back().size});
      t += rng.below(30);
    }
    std::int64_t most = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      std::int64_t waiting = 0;
      for (std::size_t j = 0; j <= i; ++j)
        waiting += departures[j].t > entries[i].t ? entries[j].size : 0;
      most = std::max(most, waiting);
    }
    OccupancyBatch batch(1000);
    rng.shuffle(std::span(departures));
    std::uint64_t bound = 0;
    std::vector<bool> told(departures.size(), false);
    const auto tell = [&](std::size_t d) {
      told[d] = true;
      bound -= departures[d].size;
      batch.leave(departures[d].t, departures[d].size);
    };
    for (const Entry& entry : entries) {
      bound += entry.size;
      batch.enter(entry.t, bound, entry.size);
      for (std::size_t d = 0; d < departures.size(); ++d)
        if (!told[d] && departures[d].t <= entry.t && rng.below(4) == 0) tell(d);
    }
    for (std::size_t d = 0; d < departures.size(); ++d)
      if (!told[d]) tell(d);
    CHECK(batch.close() == static_cast<std::uint64_t>(most));
  }
}

}  // namespace
}  // namespace weft::engine::packet
