#include "model/fabric/goback_n.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"

namespace weft::model {
namespace {

// Slot by slot: one packet a slot; `window` slots later the sender knows what became of it.
//
//   slot      0  1  2  3  4  5  6        window 3, packet 1 lost in slot 1
//   sent      0  1* 2  3  1  2  3        slot 4: the sender goes back to packet 1
//   taken     0           1  2  3        2 and 3 were discarded the first time
double simulated_share(double loss, std::size_t window, std::size_t slots, Rng rng) {
  struct Sent {
    std::uint64_t packet;
    bool taken;
  };
  std::vector<Sent> log;
  std::uint64_t next = 0, acknowledged = 0, expected = 0;
  for (std::size_t slot = 0; slot < slots; ++slot) {
    if (slot >= window) {
      const Sent& known = log[slot - window];
      if (known.taken) {
        acknowledged = known.packet + 1;
      } else if (known.packet == acknowledged) {
        next = known.packet;
      }
    }
    const bool arrives = rng.uniform() >= loss;
    const bool taken = arrives && next == expected;
    if (taken) ++expected;
    log.push_back({next, taken});
    ++next;
  }
  return static_cast<double>(expected) / static_cast<double>(slots);
}

TEST_CASE("go-back-N: closed form against a slotted simulation") {
  const std::uint64_t slots = std::max<std::uint64_t>(test_effort(1'000'000), 200'000);
  for (const double loss : {0.0, 0.001, 0.01, 0.1, 0.5})
    for (const std::size_t window : {1u, 2u, 7u, 60u}) {
      CAPTURE(loss);
      CAPTURE(window);
      const double expected = goodput_share(loss, static_cast<double>(window));
      const double got = simulated_share(loss, window, slots, Rng(7).stream(window));
      CHECK(got == approx(expected).epsilon(0.05));
    }
}

TEST_CASE("go-back-N: what is known without a formula") {
  CHECK(goodput_share(0, 1000) == 1);
  CHECK(goodput_share(0.25, 1) == 0.75);    // each packet for itself
  CHECK(goodput_share(0.25, 0.1) == 0.75);  // never less than the packet's own time
  // 400 Gbps x 8 us / 4096 B = 97.7 packets: one loss in 1,000 costs 9 % of the rate.
  CHECK(goodput_share(1e-3, 400e9 / 8 * 8e-6 / 4096) == approx(0.911).epsilon(0.001));
  double last = 1;
  for (double loss = 0.01; loss < 1; loss += 0.01) {
    const double share = goodput_share(loss, 50);
    CHECK(share < last);
    CHECK(share > 0);
    CHECK(goodput_share(loss, 51) < share);
    last = share;
  }
}

}  // namespace
}  // namespace weft::model
