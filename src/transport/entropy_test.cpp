#include "transport/entropy.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "base/test_approx.hpp"

namespace weft::transport {
namespace {

TEST_CASE("fresh entropies are even, within the count and the same every time") {
  for (const std::uint32_t count : {1u, 7u, 128u}) {
    std::vector<double> seen(count);
    for (std::uint64_t i = 0; i < std::uint64_t{10'000} * count; ++i) {
      const Entropy e = fresh_entropy({.seed = 5, .counter = i, .count = count});
      REQUIRE(e < count);
      REQUIRE(e == fresh_entropy({.seed = 5, .counter = i, .count = count}));
      ++seen[e];
    }
    for (const double n : seen) CHECK(n == approx(10'000).epsilon(0.05));
  }
  int high = 0, same = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    high += fresh_entropy({.seed = 1, .counter = i}) >= 32'768 ? 1 : 0;
    same += fresh_entropy({.seed = 1, .counter = i}) == fresh_entropy({.seed = 2, .counter = i});
  }
  CHECK(high > 400);
  CHECK(high < 600);
  CHECK(same < 5);
}

TEST_CASE("a fresh entropy leads by the port that is asked for, where each has one") {
  for (const std::uint32_t count : {4u, 6u, 128u, entropy_count_max})
    for (const std::uint32_t ports : {2u, 3u, 4u})
      for (std::uint64_t i = 0; i < 1000; ++i) {
        const auto port = static_cast<std::uint32_t>(i % ports);
        const Entropy entropy =
            fresh_entropy({.seed = 7, .counter = i, .count = count, .ports = ports, .port = port});
        REQUIRE(entropy < count);
        REQUIRE(port_of(entropy, ports) == port);
      }
  CHECK(fresh_entropy({.counter = 5, .count = 3, .ports = 4, .port = 3}) ==
        fresh_entropy({.counter = 5, .count = 3}));
}

TEST_CASE("unmarked entropies come back, each once and in their order") {
  EntropyCache cache;
  const EntropyDraw draw{.seed = 9, .counter = 3};
  CHECK(cache.next(draw) == fresh_entropy(draw));
  cache.on_ack(11, Mark::clear);
  cache.on_ack(12, Mark::congested);
  cache.on_ack(13, Mark::clear);
  CHECK(cache.size() == 2);
  CHECK(cache.next(draw) == 11);
  CHECK(cache.next(draw) == 13);
  CHECK(cache.next(draw) == fresh_entropy(draw));
}

TEST_CASE("with several ports the oldest whose port is free first comes back") {
  EntropyCache cache;
  for (const Entropy e : std::to_array<Entropy>({4, 6, 5, 7, 9})) cache.on_ack(e, Mark::clear);
  const auto next = [&](std::array<int, 2> free_at) {
    return cache.next({.ports = 2, .port = 1}, [&](Entropy e) { return free_at[port_of(e, 2)]; });
  };
  CHECK(next({3, 2}) == 5);
  CHECK(next({3, 2}) == 7);
  CHECK(next({2, 2}) == 4);
  CHECK(next({2, 3}) == 6);
  CHECK(next({2, 3}) == 9);
  CHECK(port_of(next({2, 3}), 2) == 1);  // a fresh one
}

TEST_CASE("a full cache drops its oldest") {
  EntropyCache cache;
  for (Entropy e = 0; e < 20; ++e) cache.on_ack(e, Mark::clear);
  CHECK(cache.size() == EntropyCache::capacity);
  for (Entropy e = 4; e < 20; ++e) CHECK(cache.next({}) == e);
  CHECK(cache.size() == 0);
}

// Two of 8 paths mark all. Sent is one packet per ACK; the bad paths are left after one round.
TEST_CASE("congested paths are left") {
  EntropyCache cache;
  std::vector<Entropy> window;
  std::uint64_t counter = 0;
  const auto send = [&] { return cache.next({.seed = 2, .counter = counter++, .count = 8}); };
  for (int i = 0; i < 12; ++i) window.push_back(send());
  int bad = 0;
  for (int round = 0; round < 100; ++round) {
    for (Entropy& e : window) {
      const bool congested = e < 2;
      if (round >= 20 && congested) ++bad;
      cache.on_ack(e, congested ? Mark::congested : Mark::clear);
      e = send();
    }
  }
  CHECK(bad == 0);
}

TEST_CASE("flowlets end with a gap") {
  using enum FlowletEntry::Choice;
  FlowletEntry flow;
  CHECK(flow.on_packet(100, 0) == anew);
  CHECK(flow.on_packet(100, 100) == keep);
  CHECK(flow.on_packet(100, 150) == keep);
  CHECK(flow.on_packet(100, 251) == anew);
  CHECK(flow.on_packet(100, 251) == keep);
}

}  // namespace
}  // namespace weft::transport
