#include "transport/hpcc.hpp"

#include <doctest/doctest.h>

#include <array>
#include <span>
#include <vector>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "transport/toy_link.hpp"

namespace weft::transport {
namespace {

using test::ToyFeedback;
using test::ToyLink;
using test::ToyOutcome;

constexpr double line_rate = 50e9;  // 400 Gbps
constexpr Ps rtt = 12'000'000;
constexpr double bdp = 600'000;

constexpr HpccParameters parameters() {
  return {.eta = 0.95,
          .max_stage = 5,
          .additive_bytes = bdp * 0.05 / 100,
          .base_rtt = rtt,
          .window_init = bdp};
}

// One link that is told what it did since `at` = 0.
IntHop hop_at(Ps at, double utilisation, std::uint32_t queue) {
  return {.at = at,
          .tx_bytes =
              static_cast<std::uint64_t>(utilisation * line_rate * static_cast<double>(at) / 1e12),
          .queue_bytes = queue,
          .bytes_per_s = line_rate};
}

TEST_CASE("the first report only starts the measurement") {
  HpccSender sender(parameters());
  const IntHop hop = hop_at(0, 1, 0);
  CHECK(sender.on_ack(parameters(), {&hop, 1}, 0, 10) == bdp);
  CHECK(sender.rate(parameters()) == approx(line_rate));
}

// After one T of full rate and a queue of one bdp, U = 2 and the window goes to eta / 2.
TEST_CASE("multiplicative decrease by the queue") {
  const HpccParameters p = parameters();
  HpccSender sender(p);
  IntHop hop = hop_at(0, 1, 600'000);
  sender.on_ack(p, {&hop, 1}, 0, 10);
  hop = hop_at(rtt, 1, 600'000);
  const double window = sender.on_ack(p, {&hop, 1}, 10, 20);
  CHECK(sender.utilisation() == approx(2));
  CHECK(window == approx(bdp * 0.95 / 2 + p.additive_bytes));

  // More reports of the same round are answered from the same reference window.
  hop = hop_at(rtt + 1, 1, 600'000);
  const double again = sender.on_ack(p, {&hop, 1}, 15, 25);
  CHECK(again == approx(window * 0.95 / 2 + p.additive_bytes).epsilon(1e-3));
  hop = hop_at(rtt + 2, 1, 600'000);
  CHECK(sender.on_ack(p, {&hop, 1}, 16, 25) == approx(again).epsilon(1e-3));
}

TEST_CASE("the lower of two queues counts, and the busiest of several hops") {
  const HpccParameters p = parameters();
  HpccSender sender(p);
  std::vector<IntHop> hops{hop_at(0, 0.5, 300'000), hop_at(0, 0.9, 0)};
  sender.on_ack(p, hops, 0, 10);
  hops = {hop_at(rtt, 0.5, 60'000), hop_at(rtt, 0.9, 500'000)};
  sender.on_ack(p, hops, 1, 10);
  CHECK(sender.utilisation() == approx(0.9));  // against 0.5 + 0.1
}

TEST_CASE("additive increase for max_stage rounds, then a multiplicative one") {
  const HpccParameters p = parameters();
  HpccSender sender(p);
  IntHop hop = hop_at(0, 0.5, 600'000);
  sender.on_ack(p, {&hop, 1}, 0, 1);
  std::uint32_t psn = 1;
  Ps at = 0;
  const auto round = [&](double utilisation, std::uint32_t queue) {
    IntHop next = hop;
    at += rtt;
    next.at = at;
    next.tx_bytes += static_cast<std::uint64_t>(utilisation * bdp);
    next.queue_bytes = queue;
    hop = next;
    const double window = sender.on_ack(p, {&hop, 1}, psn, psn + 1);
    ++psn;
    return window;
  };
  double window = round(1, 600'000);  // U = 2
  window = round(1, 0);               // U = 1
  for (int stage = 0; stage < 5; ++stage) {
    const double before = window;
    window = round(0.5, 0);
    CHECK(window == approx(before + p.additive_bytes));
  }
  const double before = window;
  window = round(0.5, 0);
  CHECK(window == approx(std::min(bdp, before * 0.95 / 0.5 + p.additive_bytes)));
}

TEST_CASE("reports that overtook each other and new paths are no measurement") {
  const HpccParameters p = parameters();
  HpccSender sender(p);
  std::vector<IntHop> hops{hop_at(rtt, 1, 0)};
  sender.on_ack(p, hops, 0, 10);
  hops = {hop_at(rtt / 2, 1, 0)};
  sender.on_ack(p, hops, 1, 10);
  CHECK(sender.utilisation() == 1);
  hops = {hop_at(2 * rtt, 0.1, 0), hop_at(2 * rtt, 0.1, 0)};
  const double window = sender.window();
  CHECK(sender.on_ack(p, hops, 20, 30) == window);
  CHECK(sender.on_ack(p, {}, 21, 30) == window);
  CHECK(sender.utilisation() == 1);
}

struct HpccFlow {
  HpccParameters p = parameters();
  HpccSender sender{p};
  double window() const { return sender.window(); }
  void on_feedback(const ToyFeedback& f) { sender.on_ack(p, {&f.hop, 1}, f.psn, f.next_psn); }
};

TEST_CASE("closed loop: eta of the link is used, the queue is empty, flows share") {
  constexpr Ps ms = 1'000'000'000;
  constexpr std::array<std::size_t, 3> counts{8, 1, 2};
  for (const std::size_t count : std::span(counts).first(test_effort(counts.size()))) {
    CAPTURE(count);
    std::vector<HpccFlow> flows(count);
    const ToyLink link{.rate = 400_Gbps, .base_rtt = rtt};
    const ToyOutcome out = test::ToyRun<HpccFlow>(link, flows).run(20 * ms, 30 * ms);
    INFO("n ", count, " busy ", out.busy, " queue ", out.queue_mean, " jain ", out.jain());
    CHECK(out.busy == approx(0.95).epsilon(0.03));
    CHECK(out.queue_mean < 0.1 * bdp);
    CHECK(out.jain() > 0.95);
  }
}

}  // namespace
}  // namespace weft::transport
