#include "transport/dcqcn.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"

namespace weft::transport {
namespace {

constexpr Ps us = 1'000'000;
constexpr double line = 50e9;  // 400 Gbps

// The same machine, event by event: every expiry of every timer is an event of its own.
class EventByEvent {
 public:
  explicit EventByEvent(const DcqcnParameters& p) : p_(p) {}

  void run_until(Ps now) {
    while (!events_.empty() && events_.begin()->first <= now) {
      const auto [at, timer] = *events_.begin();
      events_.erase(events_.begin());
      if (timer == alpha_expiry) {
        alpha = (1 - p_.gain) * alpha + (cnp_for_alpha_ ? p_.gain : 0);
        if (alpha < 0x1p-64) alpha = 0;
        cnp_for_alpha_ = false;
        events_.insert({at + p_.alpha_timer, alpha_expiry});
      } else if (timer == decrease_expiry) {
        if (cnp_for_cut_) cut(at);
        events_.insert({at + p_.decrease_timer, decrease_expiry});
      } else {
        events_.insert({at + p_.increase_timer, increase_expiry});
        increase(t);
      }
    }
  }

  void on_cnp(Ps now) {
    run_until(now);
    cnp_for_cut_ = true;
    if (active) {
      cnp_for_alpha_ = true;
      return;
    }
    active = true;
    alpha = 1;
    rate = target = p_.line;
    cut(now);
    events_.insert({now + p_.alpha_timer, alpha_expiry});
    events_.insert({now + p_.decrease_timer, decrease_expiry});
  }

  void on_sent(std::uint64_t bytes, Ps now) {
    run_until(now);
    for (std::uint64_t i = 0; i < bytes && active && p_.byte_counter > 0; ++i) {
      if (++bytes_ % p_.byte_counter == 0) increase(b);
    }
  }

  bool active = false;
  double rate = 0, target = 0, alpha = 0;
  std::uint32_t t = 0, b = 0;

 private:
  enum Timer { alpha_expiry, decrease_expiry, increase_expiry };

  void cut(Ps at) {
    if (p_.retarget == DcqcnParameters::Retarget::always || t != 0 || b != 0) target = rate;
    rate = std::max(p_.minimum, rate * (1 - alpha / 2));
    t = b = 0;
    bytes_ = 0;
    cnp_for_cut_ = false;
    std::erase_if(events_, [](const auto& event) { return event.second == increase_expiry; });
    events_.insert({at + p_.increase_timer, increase_expiry});
  }

  void increase(std::uint32_t& stage) {
    const std::uint32_t other = p_.byte_counter > 0 ? b : t;
    if (std::min(t, other) > p_.stages) {
      target += p_.hyper;
    } else if (std::max(t, other) >= p_.stages) {
      target += p_.additive;
    }
    target = std::min(target, p_.line);
    rate = (rate + target) / 2;
    ++stage;
    if (rate < p_.line * (1 - 1.0 / 1024) || cnp_for_cut_) return;
    events_.clear();
    *this = EventByEvent(p_);
  }

  DcqcnParameters p_;
  std::multiset<std::pair<Ps, Timer>> events_;
  bool cnp_for_alpha_ = false, cnp_for_cut_ = false;
  std::uint64_t bytes_ = 0;
};

void check_same(DcqcnSender& sender, const DcqcnParameters& p, const EventByEvent& truth, Ps now) {
  const double rate = sender.rate(p, now);
  REQUIRE(sender.idle() == !truth.active);
  REQUIRE(rate == (truth.active ? truth.rate : p.line));
  if (!truth.active) return;
  REQUIRE(sender.alpha(p, now) == truth.alpha);
  REQUIRE(sender.target() == truth.target);
  REQUIRE(sender.time_stage() == truth.t);
  REQUIRE(sender.byte_stage() == truth.b);
}

DcqcnParameters random_parameters(Rng& rng) {
  DcqcnParameters p = dcqcn_reference(400_Gbps);
  const auto timer = [&](std::uint64_t most) { return (1 + rng.below(most)) * us; };
  p.gain = 1.0 / static_cast<double>(1 + rng.below(256));
  p.alpha_timer = timer(60);
  p.decrease_timer = timer(60);
  p.increase_timer = timer(300);
  p.stages = static_cast<std::uint32_t>(rng.below(7));
  p.byte_counter = rng.below(2) == 0 ? 0 : 1000 + rng.below(20'000);
  using enum DcqcnParameters::Retarget;
  p.retarget = rng.below(2) == 0 ? always : after_increase;
  p.additive *= static_cast<double>(1 + rng.below(20));
  p.hyper *= static_cast<double>(1 + rng.below(5));
  return p;
}

// Quiet, CNPs in bursts and sending alternate; times fall on expiries often, as all are whole us.
TEST_CASE("equal to the machine that is run event by event") {
  Rng rng(4);
  int recoveries = 0, starts = 0;
  for (std::uint64_t run = 0; run < test_effort(300); ++run) {
    const DcqcnParameters p = random_parameters(rng);
    REQUIRE(check(p).has_value());
    DcqcnSender seen, unseen;  // the second is looked at only when something happens to it
    EventByEvent truth(p);
    Ps now = 0;
    bool quiet = false;
    for (int step = 0; step < 400; ++step) {
      if (rng.below(20) == 0) quiet = !quiet;
      now += rng.below(quiet ? 400 : 8) * us;
      const bool was_active = truth.active;
      truth.run_until(now);
      recoveries += was_active && !truth.active ? 1 : 0;
      const std::uint64_t what = rng.below(3);
      if (what == 0 && !quiet) {
        starts += truth.active ? 0 : 1;
        truth.on_cnp(now);
        seen.on_cnp(p, now);
        unseen.on_cnp(p, now);
      } else if (what == 1) {
        truth.on_sent(4096, now);
        seen.on_sent(p, 4096, now);
        unseen.on_sent(p, 4096, now);
      }
      check_same(seen, p, truth, now);
    }
    check_same(unseen, p, truth, now);
  }
  CHECK(static_cast<std::uint64_t>(recoveries) > test_effort(100));
  CHECK(static_cast<std::uint64_t>(starts) > test_effort(100));
}

TEST_CASE("a queue pair without CNPs sends at line rate and stays idle") {
  const DcqcnParameters p = dcqcn_reference(400_Gbps);
  DcqcnSender sender;
  sender.on_sent(p, 1 << 30, 5);
  CHECK(sender.rate(p, 1'000'000 * us) == line);
  CHECK(sender.idle());
}

// Expected values by hand: alpha 1 at the start, (1 - g) each expiry, + g for the one after a CNP.
TEST_CASE("trace of alpha") {
  const DcqcnParameters p = dcqcn_reference(400_Gbps);
  constexpr double g = 1.0 / 256;
  DcqcnSender sender;
  sender.on_cnp(p, 10 * us);
  CHECK(sender.alpha(p, 10 * us) == 1);
  CHECK(sender.alpha(p, 11 * us - 1) == 1);
  CHECK(sender.alpha(p, 11 * us) == 1 - g);
  CHECK(sender.alpha(p, 13 * us) == (1 - g) * (1 - g) * (1 - g));
  sender.on_cnp(p, 13 * us);  // on an expiry: counts for the next
  sender.on_cnp(p, 13 * us + 5);
  const double a3 = (1 - g) * (1 - g) * (1 - g);
  CHECK(sender.alpha(p, 14 * us) == (1 - g) * a3 + g);
  CHECK(sender.alpha(p, 15 * us) == (1 - g) * ((1 - g) * a3 + g));
  CHECK(sender.alpha(p, 115 * us) ==
        approx(((1 - g) * a3 + g) * std::pow(1 - g, 101)).epsilon(1e-12));
}

TEST_CASE("the first cut halves the rate at once, the second waits for its timer") {
  const DcqcnParameters p = dcqcn_reference(400_Gbps);
  DcqcnSender sender;
  sender.on_cnp(p, 0);
  CHECK(sender.rate(p, 0) == line / 2);
  sender.on_cnp(p, 1 * us);
  CHECK(sender.rate(p, 4 * us - 1) == line / 2);
  const double alpha = sender.alpha(p, 4 * us);
  CHECK(sender.rate(p, 4 * us) == line / 2 * (1 - alpha / 2));
  CHECK(sender.target() == line);  // no increase between: the target is kept
  CHECK(sender.rate(p, 100 * us) == sender.rate(p, 4 * us));
}

TEST_CASE("targets follow every cut where they are told to") {
  const DcqcnParameters p = dcqcn_paper(400_Gbps);
  DcqcnSender sender;
  sender.on_cnp(p, 0);
  sender.on_cnp(p, 10 * us);
  CHECK(sender.rate(p, 50 * us) < line / 2);
  CHECK(sender.target() == line / 2);
}

TEST_CASE("no cut goes below the minimum") {
  const DcqcnParameters p = dcqcn_reference(400_Gbps);
  DcqcnSender sender;
  for (Ps now = 0; now < 1000 * us; now += us) sender.on_cnp(p, now);
  CHECK(sender.rate(p, 1000 * us) == p.minimum);
}

// Two starts leave the target at half of the line: 5 steps towards it, one additive, then hyper.
TEST_CASE("recovery: fast, additive, hyper") {
  DcqcnParameters p = dcqcn_paper(400_Gbps);
  p.byte_counter = 0;
  DcqcnSender sender;
  sender.on_cnp(p, 0);
  sender.on_cnp(p, 1);
  Ps at = 50 * us;
  double rate = sender.rate(p, at);
  double target = line / 2;
  for (std::uint32_t stage = 0; stage < 9; ++stage) {
    CAPTURE(stage);
    CHECK(sender.time_stage() == stage);
    at += 55 * us;
    target += stage < 5 ? 0 : stage == 5 ? p.additive : p.hyper;
    rate = (rate + target) / 2;
    CHECK(sender.rate(p, at) == rate);
    CHECK(sender.target() == target);
  }
}

// With both counters hyper increase needs both beyond F, and either at F ends fast recovery.
TEST_CASE("recovery by the byte counter") {
  const DcqcnParameters p = dcqcn_paper(400_Gbps);
  DcqcnSender sender;
  sender.on_cnp(p, 0);
  sender.on_cnp(p, 1);
  double rate = sender.rate(p, 50 * us);
  double target = line / 2;
  for (std::uint32_t stage = 0; stage < 9; ++stage) {
    CAPTURE(stage);
    CHECK(sender.byte_stage() == stage);
    for (int part = 0; part < 4; ++part) sender.on_sent(p, 2'500'000, 51 * us);
    target += stage < 5 ? 0 : p.additive;
    rate = (rate + target) / 2;
    CHECK(sender.rate(p, 51 * us) == rate);
  }
}

TEST_CASE("a recovered queue pair is idle, and its next CNP a first one") {
  const DcqcnParameters p = dcqcn_reference(400_Gbps);
  DcqcnSender sender;
  sender.on_cnp(p, 0);
  // Half of the line is missing, then a quarter, ...: 9 steps of 300 us to 1/1024.
  CHECK(sender.rate(p, 2700 * us - 1) < line);
  CHECK_FALSE(sender.idle());
  CHECK(sender.rate(p, 2700 * us) == line);
  CHECK(sender.idle());
  sender.on_cnp(p, 5000 * us);
  CHECK(sender.rate(p, 5000 * us) == line / 2);
}

TEST_CASE("steps scale with the line") {
  for (const DcqcnParameters& p : {dcqcn_paper(25_Gbps), dcqcn_reference(25_Gbps)}) {
    CHECK(p.additive * 8 == 5e6);
    CHECK(p.hyper * 8 == 50e6);
  }
  CHECK(dcqcn_reference(400_Gbps).additive * 8 == 80e6);
  CHECK(dcqcn_reference(400_Gbps).line == line);
  CHECK(dcqcn_paper(Rate{500'000'000}).minimum == 62.5e6);  // slower than the usual minimum
  CHECK(check(dcqcn_paper(Rate{500'000'000})).has_value());
}

TEST_CASE("at most one CNP per interval") {
  const DcqcnParameters paper = dcqcn_paper(400_Gbps);
  DcqcnReceiver receiver;
  int sent = 0;
  for (Ps now = 0; now < 1000 * us; now += us) sent += receiver.on_marked(paper, now) ? 1 : 0;
  CHECK(sent == 20);
  CHECK(receiver.on_marked(paper, 5000 * us));
  CHECK_FALSE(receiver.on_marked(paper, 5050 * us - 1));
  CHECK(receiver.on_marked(paper, 5050 * us));

  const DcqcnParameters reference = dcqcn_reference(400_Gbps);
  DcqcnReceiver eager;
  CHECK(eager.on_marked(reference, 7));
  CHECK(eager.on_marked(reference, 7));
}

TEST_CASE("going on at a rate: it holds until the next increase, and recovers from there") {
  const DcqcnParameters p = dcqcn_reference(400_Gbps);
  DcqcnSender sender;
  const Ps begin = 5'000'000'000;
  sender.start_at(p, 10e9, begin);
  CHECK(sender.rate(p, begin) == 10e9);
  CHECK(sender.rate(p, begin + p.increase_timer - 1) == 10e9);
  CHECK(sender.rate(p, begin + p.increase_timer) == 10e9);  // fast recovery, to the target
  CHECK(sender.rate(p, begin + 2 * p.increase_timer) == 10e9 + p.additive / 2);
  DcqcnSender full;
  full.start_at(p, p.line, begin);
  CHECK(full.idle());
}

TEST_CASE("parameters that cannot work are refused") {
  const auto refused = [](auto change) {
    DcqcnParameters p = dcqcn_reference(400_Gbps);
    change(p);
    return !check(p).has_value();
  };
  CHECK_FALSE(refused([](DcqcnParameters&) {}));
  CHECK(refused([](DcqcnParameters& p) { p.gain = 0; }));
  CHECK(refused([](DcqcnParameters& p) { p.gain = 1.5; }));
  CHECK(refused([](DcqcnParameters& p) { p.gain = NAN; }));
  CHECK(refused([](DcqcnParameters& p) { p.alpha_timer = 999; }));
  CHECK(refused([](DcqcnParameters& p) { p.decrease_timer = 0; }));
  CHECK(refused([](DcqcnParameters& p) { p.increase_timer = never; }));
  CHECK(refused([](DcqcnParameters& p) { p.cnp_interval = never; }));
  CHECK(refused([](DcqcnParameters& p) { p.byte_counter = 1; }));
  CHECK(refused([](DcqcnParameters& p) { p.stages = 100'000; }));
  CHECK(refused([](DcqcnParameters& p) { p.minimum = 0; }));
  CHECK(refused([](DcqcnParameters& p) { p.minimum = 2 * p.line; }));
  CHECK(refused([](DcqcnParameters& p) { p.additive = 0; }));
  CHECK(refused([](DcqcnParameters& p) { p.hyper = -1; }));
}

}  // namespace
}  // namespace weft::transport
