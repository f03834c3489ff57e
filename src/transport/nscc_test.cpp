#include "transport/nscc.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "transport/toy_link.hpp"

namespace weft::transport {
namespace {

using test::ToyFeedback;
using test::ToyLink;
using test::ToyOutcome;

constexpr Duration base_rtt = 12_us;
constexpr Bytes mtu = 4160_B;
constexpr Ps ms = 1'000'000'000;

NsccParameters usual_nscc() { return nscc_parameters(400_Gbps, base_rtt, {}, mtu); }

struct NsccFlow {
  NsccParameters p = usual_nscc();
  NsccSender sender{p};

  double window() const { return sender.window(); }
  void on_feedback(const ToyFeedback& f) {
    if (f.trimmed) return sender.on_loss(p, f.at);
    sender.on_ack(p, 4160, f.mark, f.rtt, f.at);
  }
};

// Marks from 40 to 160 % of the target's queue.
ToyLink link_with_marks() {
  return {.rate = 400_Gbps,
          .base_rtt = ps_of(base_rtt) - ps_of(mtu / 400_Gbps),
          .kmin = 120'000_B,
          .kmax = 480'000_B};
}

ToyOutcome run_flows(std::size_t count, const ToyLink& link, Ps warm, Ps end) {
  std::vector<NsccFlow> flows(count);
  return test::ToyRun<NsccFlow>(link, flows).run(warm, end);
}

TEST_CASE("the four cases") {
  const NsccParameters p = usual_nscc();
  const auto change = [&](Mark mark, Ps delay) {
    NsccSender sender(p);
    sender.on_ack(p, 4160, mark, p.base_rtt + delay, 1);
    return sender.window() - p.bdp;
  };
  const double fair = p.fair_step * 4160 / p.bdp;
  CHECK(change(Mark::clear, 0) == doctest::Approx(p.grow * 4160 + fair));
  CHECK(change(Mark::clear, p.target_delay / 2) == doctest::Approx(p.grow * 4160 / 2 + fair));
  CHECK(change(Mark::clear, p.target_delay) == doctest::Approx(fair));
  CHECK(change(Mark::clear, 5 * p.target_delay) == doctest::Approx(fair));
  CHECK(change(Mark::congested, 0) == 0);
  CHECK(change(Mark::congested, p.target_delay - 1) == 0);
  CHECK(change(Mark::congested, 2 * p.target_delay) == doctest::Approx(-p.shrink * 4160 / 2));
}

TEST_CASE("acknowledging packets together or one by one is nearly the same") {
  const NsccParameters p = usual_nscc();
  NsccSender one(p), four(p);
  for (int i = 0; i < 4; ++i) one.on_ack(p, 4160, Mark::congested, 3 * p.base_rtt, 1);
  four.on_ack(p, 16'640, Mark::congested, 3 * p.base_rtt, 1);
  CHECK(one.window() == doctest::Approx(four.window()).epsilon(1e-3));
}

TEST_CASE("going on at a rate: the window of one base round trip at it") {
  const NsccParameters p = usual_nscc();
  NsccSender sender(p);
  sender.start_at(p, 10e9);
  CHECK(sender.window() == doctest::Approx(10e9 * 12e-6));
  sender.start_at(p, 1);
  CHECK(sender.window() == p.mtu);
}

TEST_CASE("the window stays within one packet and its maximum") {
  const NsccParameters p = usual_nscc();
  NsccSender sender(p);
  for (int i = 0; i < 1000; ++i) sender.on_ack(p, 4160, Mark::clear, p.base_rtt / 2, 1);
  CHECK(sender.window() == p.window_max);
  for (int i = 0; i < 10000; ++i) sender.on_ack(p, 4160, Mark::congested, 9 * p.base_rtt, 1);
  CHECK(sender.window() == p.mtu);
  sender = NsccSender(p);
  sender.on_timeout(p);
  CHECK(sender.window() == p.mtu);
}

TEST_CASE("quick adaption: after a loss the window is what got through in the round") {
  const NsccParameters p = usual_nscc();
  const Ps round = p.base_rtt + p.target_delay;
  NsccSender sender(p);
  const auto clear_ack = [&](Ps now) {  // at the target, so that the window only creeps
    sender.on_ack(p, 4160, Mark::clear, p.base_rtt + p.target_delay, now);
  };
  clear_ack(100);  // starts a round
  sender.on_loss(p, 200);
  for (Ps now = 201; now < 208; ++now) clear_ack(now);
  CHECK(sender.window() > p.bdp);
  clear_ack(100 + round);
  CHECK(sender.window() == 8 * 4160);

  // The next round's losses were sent before; those of the one after count.
  sender.on_loss(p, 101 + round);
  for (Ps now = 0; now < 3; ++now) clear_ack(102 + round + now);
  const double before = sender.window();
  clear_ack(100 + 2 * round);
  CHECK(sender.window() >= before);
  sender.on_loss(p, 101 + 2 * round);
  clear_ack(100 + 3 * round);
  CHECK(sender.window() == 4160);
}

TEST_CASE("one flow keeps the link busy, with a bounded queue") {
  const ToyOutcome out = run_flows(1, link_with_marks(), 1 * ms, 5 * ms);
  INFO("busy ", out.busy, " queue ", out.queue_mean, " max ", out.queue_max);
  CHECK(out.busy > 0.95);
  CHECK(out.queue_max < usual_nscc().window_max);
}

TEST_CASE("flows that start together share, and keep the queue near the target") {
  const double target_bytes = 50e9 * 6e-6;
  for (const std::size_t count : {2u, 8u, 64u}) {
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
  ToyLink link = link_with_marks();
  link.room = 600'000;
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
