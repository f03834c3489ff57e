#include "transport/nscc.hpp"

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

constexpr Duration base_rtt = 12_us;
constexpr Bytes mtu = 4160_B;
constexpr Ps ms = 1'000'000'000;

constexpr double packet = 4160, nscc_payload = 4096;

// 400 Gbps and 12 us: four times the product of the reference, a target of three quarters.
NsccParameters usual_nscc() {
  return nscc_parameters(
      {.line = 400_Gbps, .round_trip = base_rtt, .packet = mtu, .payload = 4096_B}, base_rtt);
}

struct NsccFlow {
  NsccParameters p = usual_nscc();
  NsccSender sender{p};

  double window() const { return sender.window(); }
  void on_feedback(const ToyFeedback& f) {
    const double in_flight = (f.next_psn - f.psn) * packet;
    if (f.trimmed) return sender.on_loss(p, packet, in_flight, f.at);
    sender.on_ack(p, packet, f.mark, f.rtt, in_flight, f.at);
  }
};

ToyLink link_with_marks() {
  return {.rate = 400_Gbps,
          .base_rtt = ps_of(base_rtt) - ps_of(mtu / 400_Gbps),
          .kmin = 120'000_B,
          .kmax = 480'000_B,
          .pmax = 1,
          .room = 600'000};  // one bandwidth-delay product: beyond, packets are trimmed
}

ToyOutcome run_flows(std::size_t count, const ToyLink& link, Ps warm, Ps end) {
  std::vector<NsccFlow> flows(count);
  return test::ToyRun<NsccFlow>(link, flows).run(warm, end);
}

// A sender with half a bandwidth-delay product, 300 kB.
NsccSender half(const NsccParameters& p) {
  NsccSender sender(p);
  sender.start_at(p, 25e9);
  return sender;
}

TEST_CASE("parameters follow the product of bandwidth and round trip") {
  const NsccParameters p = usual_nscc();
  CHECK(p.target_delay == ps_of(9_us));
  CHECK(p.window_first == 900'000);
  CHECK(p.window_max == 900'000);
  CHECK(p.fair == 5 * nscc_payload * 4);
  CHECK(p.steady == approx(0.15 * nscc_payload * 4));
  CHECK(p.fast == 1);
  // Drops are told later than trims: a longer target. A short path has a small window.
  const NsccParameters near = nscc_parameters(
      {.line = 400_Gbps, .round_trip = base_rtt, .packet = mtu, .payload = 4096_B, .trims = false},
      4_us);
  CHECK(near.target_delay == ps_of(base_rtt));
  CHECK(near.window_max == 300'000);
  CHECK(near.window_first == 900'000);
}

// Twelve packets, four to an answer: growth is added once more than eight have been acknowledged.
TEST_CASE("the four cases") {
  const NsccParameters p = usual_nscc();
  const auto change = [&](Mark mark, Ps delay) {
    NsccSender sender = half(p);
    for (int i = 0; i < 12; ++i) sender.on_ack(p, packet, mark, p.base_rtt + delay, 0, 1);
    return sender.window() - 300'000;
  };
  const double shares = 12 * packet / 300'000;  // of a window
  CHECK(change(Mark::clear, 0) == approx(4 * nscc_payload * 4 * 0.75 * shares));
  CHECK(change(Mark::clear, p.target_delay / 2) == approx(2 * nscc_payload * 4 * 0.75 * shares));
  CHECK(change(Mark::clear, p.target_delay) == approx(5 * nscc_payload * 4 * shares));
  CHECK(change(Mark::clear, 5 * p.target_delay) == approx(5 * nscc_payload * 4 * shares));
  CHECK(change(Mark::congested, 0) == 0);
  CHECK(change(Mark::congested, p.target_delay - 1) == 0);
  CHECK(change(Mark::congested, p.target_delay) == 0);  // the mean delay is still small
}

TEST_CASE("a mean delay beyond the target shrinks the window, once a round trip") {
  const NsccParameters p = usual_nscc();
  NsccSender sender = half(p);
  double mean = 0, window = 300'000 + p.steady;  // grown before
  const double before = window;
  const double target = 9e6, delay = 3.5 * target;
  Ps now = 2 * p.base_rtt;
  for (int i = 0; i < 60; ++i) {
    mean = (1 - 0.0125) * mean + 0.0125 * delay;
    sender.on_ack(p, packet, Mark::congested, p.base_rtt + static_cast<Ps>(delay), 0, now + 1);
    if (mean > target && window == before) window *= 1 - 0.8 * (mean - target) / mean;
  }
  CHECK(window < before);
  CHECK(sender.window() == approx(window));
}

TEST_CASE("a window without any delay grows by what is acknowledged") {
  const NsccParameters p = usual_nscc();
  NsccSender sender = half(p);
  for (double acked = 0; acked + packet <= sender.window(); acked += packet)
    sender.on_ack(p, packet, Mark::clear, p.base_rtt, 0, 1);
  const double slow = sender.window();
  CHECK(slow < 400'000);
  for (int i = 0; i < 50; ++i) sender.on_ack(p, packet, Mark::clear, p.base_rtt, 0, 1);
  CHECK(sender.window() > slow + 40 * packet);
  sender.on_ack(p, packet, Mark::clear, p.base_rtt + 2'000'000, 0, 1);  // no more
  const double fast = sender.window();
  sender.on_ack(p, packet, Mark::clear, p.base_rtt, 0, 1);
  CHECK(sender.window() == fast);
}

TEST_CASE("going on at a rate: the window of one base round trip at it") {
  const NsccParameters p = usual_nscc();
  NsccSender sender(p);
  sender.start_at(p, 10e9);
  CHECK(sender.window() == approx(10e9 * 12e-6));
  sender.start_at(p, 1);
  CHECK(sender.window() == p.packet);
}

TEST_CASE("the window stays within one packet and its maximum") {
  const NsccParameters p = usual_nscc();
  NsccSender sender(p);
  for (int i = 0; i < 1000; ++i) sender.on_ack(p, packet, Mark::clear, p.base_rtt / 2, 0, 1);
  CHECK(sender.window() == p.window_max);
  for (int i = 0; i < 10000; ++i) sender.on_loss(p, packet, 0, 1);
  CHECK(sender.window() == p.packet);
  sender = NsccSender(p);
  sender.on_timeout(p);
  CHECK(sender.window() == p.packet);
}

TEST_CASE(
    "quick adaption: the window is what got through, and in-flight packets change it no more") {
  const NsccParameters p = usual_nscc();
  const Ps round = p.base_rtt + p.target_delay;
  NsccSender sender(p);
  const auto ack = [&](Mark mark, Ps now) {
    sender.on_ack(p, packet, mark, p.base_rtt + p.target_delay - 1, 600'000, now);
  };
  ack(Mark::congested, 100);  // starts a round
  for (Ps now = 201; now < 208; ++now) ack(Mark::congested, now);
  CHECK(sender.window() == 900'000);
  sender.on_loss(p, packet, 600'000, 101 + round);
  CHECK(sender.window() == 7 * packet);  // those before belong to the round that then began
  // What was in flight tells of the time before.
  for (int i = 0; i < 100; ++i) sender.on_loss(p, packet, 0, 102 + round);
  CHECK(sender.window() == 7 * packet);
  // Much got through: no reason to adapt, and a loss takes a packet.
  NsccSender busy(p);
  busy.on_ack(p, packet, Mark::congested, p.base_rtt, 0, 100);
  for (int i = 0; i < 40; ++i) busy.on_ack(p, packet, Mark::congested, p.base_rtt, 0, 200);
  busy.on_loss(p, packet, 0, 101 + round);
  CHECK(busy.window() == 900'000 - packet);
}

TEST_CASE("one flow keeps the link busy, with a bounded queue") {
  const ToyOutcome out = run_flows(1, link_with_marks(), 1 * ms, 5 * ms);
  INFO("busy ", out.busy, " queue ", out.queue_mean, " max ", out.queue_max);
  CHECK(out.busy > 0.95);
  CHECK(out.queue_max < usual_nscc().window_max + packet);
}

TEST_CASE("flows that start together share, and keep the queue near the target") {
  const double target_bytes = 50e9 * 9e-6;
  constexpr std::array<std::size_t, 3> counts{8, 2, 64};
  for (const std::size_t count : std::span(counts).first(test_effort(counts.size()))) {
    CAPTURE(count);
    const ToyOutcome out = run_flows(count, link_with_marks(), 5 * ms, 15 * ms);
    INFO("n ", count, " busy ", out.busy, " queue ", out.queue_mean / target_bytes, " max ",
         out.queue_max / target_bytes, " jain ", out.jain());
    CHECK(out.busy > 0.95);
    CHECK(out.jain() > 0.95);
    CHECK(out.queue_mean < 1.5 * target_bytes);
    CHECK(out.queue_mean > 0.3 * target_bytes);
  }
}

// Flow 0 begins with all of the link, the other with one packet.
TEST_CASE("an unequal start becomes equal") {
  std::vector<NsccFlow> flows(2);
  flows[1].sender.on_timeout(flows[1].p);
  test::ToyRun<NsccFlow> run(link_with_marks(), flows);
  const ToyOutcome out = run.run(20 * ms, 30 * ms);
  INFO("jain ", out.jain(), " busy ", out.busy);
  CHECK(out.jain() > 0.95);
  CHECK(out.busy > 0.95);
}

TEST_CASE("incast into a shallow buffer: trims at the start, then none to speak of") {
  const ToyLink link = link_with_marks();
  const ToyOutcome first = run_flows(64, link, 0, 1 * ms);
  const ToyOutcome later = run_flows(64, link, 1 * ms, 6 * ms);
  INFO("trims ", first.trimmed, " then ", later.trimmed - first.trimmed, " busy ", later.busy,
       " jain ", later.jain());
  CHECK(first.trimmed > 64 * 100);
  CHECK(later.trimmed - first.trimmed < 500);
  CHECK(later.busy > 0.95);
  CHECK(later.jain() > 0.95);
}

}  // namespace
}  // namespace weft::transport
