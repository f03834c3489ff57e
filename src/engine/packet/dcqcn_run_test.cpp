// DCQCN in a network: its state machine packet by packet, shares, and what it does to pauses.
#include <deque>

#include "base/test_approx.hpp"
#include "engine/packet/test_kit.hpp"
#include "transport/dcqcn.hpp"

namespace weft::engine::packet::testing {
namespace {

Options dcqcn(DcqcnOptions::Preset preset, std::int64_t kmin, std::int64_t kmax, double pmax) {
  Options options;
  options.congestion = Congestion::dcqcn;
  options.dcqcn.preset = preset;
  options.ecn = {.on = true, .kmin = packets_of(kmin), .kmax = packets_of(kmax), .pmax = pmax};
  return options;
}

// nic:0 --400--> s:0 --100--> nic:1: one flow, every packet beyond `kmax` marked. What the engine
// does with its wheel is here one loop over packets.
struct OneFlow {
  transport::DcqcnParameters parameters;
  std::uint64_t kmax = 0;
  std::uint64_t marks = 0, cnps = 0;
  double alpha_first = 0, slowest = 1;

  // When the last packet is at the receiver.
  Ps run(std::uint64_t packets) {
    transport::DcqcnSender sender;
    transport::DcqcnReceiver receiver;
    std::deque<Ps> waiting, on_way;  // starts at s:0; CNPs on their way
    Ps free = 0, next_ok = 0, slow_free = 0, arrived = 0;
    for (std::uint64_t k = 0; k < packets; ++k) {
      const Ps start = std::max(free, next_ok);
      for (; !on_way.empty() && on_way.front() <= start; on_way.pop_front()) {
        sender.on_cnp(parameters, on_way.front());
        if (alpha_first == 0) alpha_first = sender.alpha(parameters, on_way.front());
      }
      free = start + full;
      if (!sender.idle()) {
        sender.on_sent(parameters, full_bytes, start);
        const double rate = sender.rate(parameters, start);
        slowest = std::min(slowest, rate / parameters.line);
        next_ok = start + static_cast<Ps>(full_bytes * 1e12 / rate);
      }
      const Ps at_switch = free + us;
      while (!waiting.empty() && waiting.front() <= at_switch) waiting.pop_front();
      const bool marked = waiting.size() * full_bytes > kmax;
      const Ps leaves = std::max(at_switch, slow_free);
      if (leaves > at_switch) waiting.push_back(leaves);
      slow_free = leaves + 4 * full;
      arrived = slow_free + us;
      marks += marked ? 1 : 0;
      if (!marked || !receiver.on_marked(parameters, arrived)) continue;
      ++cnps;
      on_way.push_back(arrived + 5'120 + us + 1'280 + us);
    }
    return arrived;
  }
};

TEST_CASE("one flow: every packet and every CNP as the state machine has it") {
  const Fabric fabric = chain({400_Gbps, 100_Gbps});
  for (const auto preset : {DcqcnOptions::Preset::paper, DcqcnOptions::Preset::reference})
    for (const std::uint64_t packets : {100u, 1000u, 20'000u}) {
      CAPTURE(packets);
      OneFlow expected;
      expected.parameters = preset == DcqcnOptions::Preset::paper
                                ? transport::dcqcn_paper(100_Gbps)
                                : transport::dcqcn_reference(100_Gbps);
      expected.kmax = 40 * full_bytes;
      const Ps arrived = expected.run(packets);
      const PacketRunResult result =
          run(fabric, Load{}.add(fabric, 0, 1, packets * payload), dcqcn(preset, 40, 40, 1));
      CHECK(result.complete);
      CHECK(result.messages[0].arrived == arrived);
      CHECK(result.counters.ecn_marks == expected.marks);
      CHECK(result.counters.cnps == expected.cnps);
      if (packets > 100) CHECK(expected.alpha_first == 1);
      if (packets == 20'000) CHECK(expected.slowest < 0.5);
    }
}

// Mean rates of both flows over the last fifth of `end`, as shares of the link.
std::array<double, 2> last_shares(const Options& base, Ps second_start, Ps end) {
  const Fabric fabric = star(equal(3, 100_Gbps));
  Options options = base;
  options.end = end;
  options.series = {.interval = 100_us, .flows = {"0", "1"}};
  const std::uint64_t plenty = 4'000'000'000;
  const PacketRunResult result = run(
      fabric, Load{}.add(fabric, 0, 2, plenty).add(fabric, 1, 2, plenty, second_start), options);
  CHECK(result.counters.drops == 0);
  std::array<double, 2> shares{};
  for (std::size_t f = 0; f < 2; ++f) {
    const std::vector<double>& rate = result.series[f].value;
    const std::size_t first = rate.size() * 4 / 5;
    for (std::size_t i = first; i < rate.size(); ++i)
      shares[f] += rate[i] / static_cast<double>(rate.size() - first);
    shares[f] /= (100_Gbps).bytes_per_s() * payload / full_bytes;
  }
  return shares;
}

TEST_CASE("two flows over one link come to share it evenly, though one starts late") {
  for (const Ps late : {Ps{0}, 3'000 * us}) {
    CAPTURE(late);
    // Steps of 1/250 of the line, so that 160 ms are enough to recover from the first cuts.
    Options options = dcqcn(DcqcnOptions::Preset::paper, 25, 100, 0.1);
    options.dcqcn.additive = Rate{400'000'000};
    options.dcqcn.hyper = Rate{2'000'000'000};
    const auto [a, b] = last_shares(options, late, 160'000 * us);
    CHECK(a == approx(b).epsilon(0.1));
    CHECK(a + b > 0.9);
    CHECK(a + b <= 1.001);
  }
}

TEST_CASE("incast: DCQCN takes most of the pauses away") {
  const Fabric fabric = star(equal(17));
  const Load load = incast(fabric, 16, 2000 * payload);
  Options only_pfc;
  only_pfc.pfc = fixed_pfc(60, 50);
  const PacketRunResult paused = run(fabric, load, only_pfc);
  Options both = dcqcn(DcqcnOptions::Preset::reference, 50, 200, 0.2);
  both.pfc = only_pfc.pfc;
  const PacketRunResult marked = run(fabric, load, both);
  CHECK(paused.complete);
  CHECK(marked.complete);
  CHECK(paused.counters.drops + marked.counters.drops == 0);
  CHECK(marked.counters.cnps > 0);
  CHECK(marked.counters.pause_frames * 2 < paused.counters.pause_frames);
  // PFC alone never leaves the link idle.
  CHECK(paused.end <= marked.end);
}

TEST_CASE("ring all-reduce at 400G: PFC alone is at least as fast as DCQCN with default marking") {
  const Fabric fabric = fat_tree();
  const Load load = ring(fabric, 30, 64 * payload);
  Options only_pfc;
  only_pfc.pfc = fixed_pfc(60, 50);
  const PacketRunResult paused = run(fabric, load, only_pfc);
  Options both = only_pfc;
  both.congestion = Congestion::dcqcn;
  both.ecn.on = true;
  const PacketRunResult marked = run(fabric, load, both);
  both.ecn.kmin = packets_of(5);
  both.ecn.kmax = packets_of(20);
  const PacketRunResult tight = run(fabric, load, both);
  CHECK(paused.complete);
  CHECK(paused.end <= marked.end);
  CHECK(marked.end <= tight.end);
  CHECK(paused.counters.drops + tight.counters.drops == 0);
}

}  // namespace
}  // namespace weft::engine::packet::testing
