#include "transport/red.hpp"

#include <doctest/doctest.h>

#include "base/test_approx.hpp"

namespace weft::transport {
namespace {

TEST_CASE("marking rises from kmin to pmax at kmax, then everything is marked") {
  const auto p = [](Bytes queue) { return mark_probability(queue, 5'000_B, 200'000_B, 0.01); };
  CHECK(p(0_B) == 0);
  CHECK(p(5'000_B) == 0);
  CHECK(p(5'195_B) == approx(1e-5));
  CHECK(p(102'500_B) == approx(0.005));
  CHECK(p(200'000_B) == approx(0.01));
  CHECK(p(200'001_B) == 1);
  for (Bytes queue; queue < 210'000_B; queue.count += 997) CHECK(p(queue) <= p(queue + 997_B));
}

TEST_CASE("equal thresholds are a step") {
  CHECK(mark_probability(1000_B, 1000_B, 1000_B, 0.5) == 0);
  CHECK(mark_probability(1001_B, 1000_B, 1000_B, 0.5) == 1);
}

}  // namespace
}  // namespace weft::transport
