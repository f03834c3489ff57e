#include "transport/headroom.hpp"

#include <doctest/doctest.h>

#include <array>

#include "base/rng.hpp"
#include "base/test_approx.hpp"

namespace weft::transport {
namespace {

// Sends packets back to back over a link of `parts` until the pause comes, and counts what arrives
// after the decision, in ps and bit by bit of the rule: the decision falls when a packet has come
// in; the pause waits for the packet that this end began `mine` ago.
//
//   here: [packet_here ... | pause]---latency--->  there: [packet_there goes on to its end]
//   here <---------------------latency--------------------
Bytes arrives_after_decision(const HeadroomParts& parts, Duration mine) {
  const Duration slot = parts.packet_there / parts.rate;
  Duration pause_waits = parts.packet_here / parts.rate - mine;
  if (pause_waits.ps < 0) pause_waits = {};
  const Duration heard = pause_waits + parts.pause / parts.rate + parts.latency + parts.response;
  // At the decision (time 0) a packet has just arrived, so the other end began one at -latency.
  Bytes out;
  for (Duration begin = Duration{} - parts.latency; begin < heard; begin = begin + slot)
    out = out + parts.packet_there;
  return out;
}

TEST_CASE("covers all that comes in, and at most a packet more than the worst case") {
  Rng rng(30);
  for (int run = 0; run < 2000; ++run) {
    // A byte takes a whole number of ps.
    const Rate rate = std::array{10_Gbps, 25_Gbps, 100_Gbps, 400_Gbps, 800_Gbps}[rng.below(5)];
    const auto up_to = [&](std::uint64_t n) { return static_cast<std::int64_t>(rng.below(n)); };
    const HeadroomParts parts{.rate = rate,
                              .latency = {up_to(5'000'000)},
                              .packet_here = {64 + up_to(9'000)},
                              .packet_there = {64 + up_to(9'000)},
                              .response = {up_to(2'000'000)}};
    const Bytes headroom = standard_headroom(parts);
    const Duration slot = parts.packet_here / parts.rate;
    for (const Duration mine : {Duration{}, Duration{slot.ps / 2}, slot})
      REQUIRE(arrives_after_decision(parts, mine) <= headroom);
    REQUIRE(headroom <= arrives_after_decision(parts, Duration{}) + parts.packet_there + 1_B);
  }
}

// 10 Gbps, 100 m of 5 ns/m, a response of 60 quanta: the parts of the vendors' form.
TEST_CASE("the vendors' form has the same parts") {
  const Bytes ours = standard_headroom({.rate = 10_Gbps,
                                        .latency = 500_ns,
                                        .packet_here = 9'216_B,
                                        .packet_there = 9'216_B,
                                        .pause = 0_B,
                                        .response = 3'840_B / 10_Gbps});
  const Bytes vendors = 9'216_B + 9'216_B + 3'840_B + 130_B * 10;
  CHECK(static_cast<double>(ours.count) ==
        approx(static_cast<double>(vendors.count)).epsilon(0.005));
}

TEST_CASE("by hand: 400 Gbps, 1 us") {
  CHECK(standard_headroom({.rate = 400_Gbps, .latency = 1_us}) ==
        4160_B + 64_B + 4160_B + 100'000_B);
  CHECK(standard_headroom({.rate = 400_Gbps}) == 4160_B + 64_B + 4160_B);
  CHECK(simulator_headroom(400_Gbps, 1_us) == 150'000_B);
}

}  // namespace
}  // namespace weft::transport
