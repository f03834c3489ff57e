#include "engine/packet/phases.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "engine/packet/packet_run.hpp"
#include "engine/packet/random_case.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet {
namespace {

struct PhasedCase {
  RandomCase random;
  MessageSet set;
  std::vector<Phase> phases;
};

// The messages of a random case, dealt to at most three phases, several times: each time after a
// pause that is short, long, or none, all at once or one after the other.
PhasedCase phased_case(std::uint64_t seed) {
  PhasedCase out{.random = random_case(seed), .set = {}, .phases = {}};
  Rng rng(seed + 77);
  const std::vector<MessageDraft>& drafts = out.random.drafts;
  const auto count = static_cast<std::uint32_t>(drafts.size());
  const std::uint32_t kinds = std::min(count, 1 + static_cast<std::uint32_t>(rng.below(3)));
  const std::uint32_t rounds = 2 + static_cast<std::uint32_t>(rng.below(3));
  const bool regular = rng.below(2) == 0;
  std::vector<MessageDraft> all{{.not_before_ps = 12'345}};
  std::uint32_t before = 0;  // a join
  std::vector<std::uint32_t> delay_of(kinds, 0);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<MessageDraft::Wait> ends;
    for (std::uint32_t k = 0; k < kinds; ++k) {
      constexpr std::uint32_t pauses[] = {0, 1'777, 60'013};
      if (round == 0 || !regular)
        delay_of[k] = pauses[rng.below(3)] + static_cast<std::uint32_t>(rng.below(2'000));
      const auto begin = static_cast<std::uint32_t>(all.size());
      all.push_back({.delay_ns = delay_of[k], .waits = {{before}}});
      const std::uint32_t first = count * k / kinds, last = count * (k + 1) / kinds;
      const auto base = static_cast<std::uint32_t>(all.size());
      for (std::uint32_t d = first; d < last; ++d) {
        MessageDraft draft = drafts[d];
        draft.not_before_ps = 0;
        std::erase_if(draft.waits, [&](const auto& wait) { return wait.message < first; });
        for (MessageDraft::Wait& wait : draft.waits) wait.message += base - first;
        if (draft.waits.empty()) draft.waits.push_back({begin});
        ends.push_back({static_cast<std::uint32_t>(all.size()),
                        d % 2 == 0 ? Dependent::When::arrived : Dependent::When::acknowledged});
        all.push_back(std::move(draft));
      }
      out.phases.push_back({base, static_cast<std::uint32_t>(all.size())});
    }
    before = static_cast<std::uint32_t>(all.size());
    all.push_back({.waits = std::move(ends)});
  }
  out.set = make_messages(out.random.connections, all);
  return out;
}

std::optional<PacketRunResult> run(const PhasedCase& c, Repeat repeat, PhaseCounts& counts) {
  auto router = route::Router::create(c.random.fabric, c.random.routing, c.random.routing_seed);
  REQUIRE(router.has_value());
  Progress progress("", 0, Progress::Show::never);
  auto result =
      run_phases(c.set, c.phases, *router, {}, c.random.options, repeat, progress, counts);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  return *std::move(result);
}

PacketRunResult run_as_one(const PhasedCase& c) {
  auto router = route::Router::create(c.random.fabric, c.random.routing, c.random.routing_seed);
  REQUIRE(router.has_value());
  Progress progress("", 0, Progress::Show::never);
  auto result = run_messages(c.set, *router, {}, c.random.options, progress);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  return *std::move(result);
}

bool by_chance(const Options& o) {
  return o.congestion != Congestion::none || o.balance != Balance::path || o.ecn.on;
}

void compare(const PacketRunResult& a, const PacketRunResult& b, const std::string& text) {
  INFO(text);
  std::size_t differ = 0;
  for (std::size_t m = 0; m < a.messages.size(); ++m)
    differ += a.messages[m].start != b.messages[m].start ||
              a.messages[m].arrived != b.messages[m].arrived ||
              a.messages[m].end != b.messages[m].end;
  CHECK(differ == 0);
  CHECK(a.counters.hops == b.counters.hops);
  CHECK(a.counters.ecn_marks == b.counters.ecn_marks);
  CHECK(a.counters.retransmissions == b.counters.retransmissions);
  CHECK(a.counters.pause_frames == b.counters.pause_frames);
  CHECK(a.counters.buffer_max == b.counters.buffer_max);
  CHECK(a.storms == b.storms);
  CHECK(a.digest == b.digest);
}

// Bytes of a link up to `at`, even within intervals.
double carried(const LinkLoads& loads, std::uint32_t link, double at) {
  const auto k =
      static_cast<std::size_t>(std::ranges::find(loads.links, link) - loads.links.begin());
  const auto width = static_cast<double>(loads.width);
  double sum = 0;
  for (std::size_t i = 0; i < loads.bytes.size(); ++i)
    if (k < loads.bytes[i].size())
      sum += static_cast<double>(loads.bytes[i][k]) *
             std::clamp(at / width - static_cast<double>(i), 0.0, 1.0);
  return sum;
}

// Of each link, in all and up to any time; `late`: by how much one may be off.
void compare_loads(const PacketRunResult& a, const PacketRunResult& b, Ps late) {
  const auto end = static_cast<double>(std::max(a.end, b.end)) * 2;
  std::size_t differ = 0;
  for (std::uint32_t id = 0; id < a.links.size(); ++id) {
    if (a.links[id].bytes == 0) continue;
    const auto all = static_cast<double>(a.links[id].bytes), rounding = 1e-5 * all;
    differ += std::abs(carried(a.loads, id, end) - all) > rounding ? 1 : 0;
    differ += std::abs(carried(b.loads, id, end) - all) > rounding ? 1 : 0;
    for (std::size_t i = 0; i <= a.loads.bytes.size(); ++i) {
      const auto at = static_cast<double>(a.loads.width * i), off = static_cast<double>(late);
      const double here = carried(b.loads, id, at);
      differ += here > carried(a.loads, id, at + off) + rounding ? 1 : 0;
      differ += here < carried(a.loads, id, at - off) - rounding ? 1 : 0;
    }
  }
  CHECK(differ == 0);
}

TEST_CASE("random runs in phases: what is replayed is what would have been simulated") {
  std::uint64_t repeated = 0, phases = 0, applied = 0, chancy = 0, overlapped = 0;
  for (std::uint64_t seed = 1; seed <= 240; ++seed) {
    PhasedCase c = phased_case(seed);
    if (!phases_apply(c.random.options, {})) continue;
    PhaseCounts simulated_counts, counts;
    const auto unseen = run(c, Repeat::replayed, counts);
    c.random.options.load_windows = 16;
    const auto simulated = run(c, Repeat::simulated, simulated_counts);
    const auto replayed = run(c, Repeat::replayed, counts);
    REQUIRE(simulated.has_value() == replayed.has_value());
    if (!simulated) continue;
    ++applied;
    CHECK(simulated_counts.repeated == 0);
    CHECK(simulated_counts.hops_simulated >= simulated->counters.hops);
    compare(*simulated, *replayed, c.random.text);
    CHECK(unseen->digest == replayed->digest);  // looking on changes nothing
    compare_loads(*simulated, *replayed, 0);
    repeated += counts.repeated;
    phases += counts.phases;
    chancy += by_chance(c.random.options) && counts.repeated > 0 ? 1 : 0;
    overlapped += counts.hops_simulated > simulated->counters.hops ? 1 : 0;
  }
  MESSAGE(applied << " cases, " << repeated << " of " << phases << " phases repeat; in " << chancy
                  << " cases chance recurs, in " << overlapped << " something was simulated twice");
  CHECK(applied >= 100);
  CHECK(repeated >= phases / 5);
  CHECK(chancy >= 10);
}

// The same fabric, but with two cables to every NIC.
Fabric with_two_ports(const Fabric& fabric) {
  model::FabricBuilder out;
  for (const NodeId node : fabric.nodes())
    out.add_node({fabric.kind(node), fabric.role_name(node), {}});
  for (std::uint32_t id = 0; id < fabric.link_count(); id += 2) {
    const LinkId link(id);
    const NodeId from = fabric.from(link), to = fabric.to(link);
    const bool to_nic = !fabric.is_switch(from) || !fabric.is_switch(to);
    for (int port = 0; port < (to_nic ? 2 : 1); ++port)
      out.add_circuit(from, to, {.rate = fabric.rate(link), .latency = fabric.latency(link)});
  }
  return out.freeze();
}

TEST_CASE("random runs in phases, sprayed over two ports: what is replayed would have been so") {
  std::uint64_t repeated = 0, applied = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    PhasedCase c = phased_case(seed);
    Options& options = c.random.options;
    options.reliability = Reliability::selective;
    options.balance = seed % 3 == 0 ? Balance::reps : Balance::spray;
    if (options.pfc.on) options.buffers.clear();  // more ports would need more of it
    if (!phases_apply(options, {})) continue;
    c.random.fabric = with_two_ports(c.random.fabric);
    PhaseCounts simulated_counts, counts;
    const auto simulated = run(c, Repeat::simulated, simulated_counts);
    const auto replayed = run(c, Repeat::replayed, counts);
    REQUIRE(simulated.has_value() == replayed.has_value());
    if (!simulated) continue;
    ++applied;
    repeated += counts.repeated;
    compare(*simulated, *replayed, c.random.text);
    std::size_t used = 0;
    for (std::uint32_t id = 0; id < simulated->links.size(); ++id)
      if (c.random.fabric.kind(c.random.fabric.from(LinkId(id))) == model::NodeKind::nic)
        used += simulated->links[id].packets > 0 ? 1 : 0;
    CHECK(used > 1);
  }
  MESSAGE(applied << " cases, " << repeated << " phases repeat");
  CHECK(applied >= 50);
  CHECK(repeated >= 20);
}

// Three phases on cables of their own; a fourth that shares one with each, so that two of the three
// groups are merged into the third, one by way of the other; a fifth that meets only the one which
// went that way.
TEST_CASE("a phase that brings three groups together: none of their cables is left behind") {
  const Fabric fabric = testing::star(testing::equal(8));
  const auto between = [](std::uint32_t src, std::uint32_t dst) {
    return Connection{.src = NodeId(1 + src), .dst = NodeId(1 + dst)};  // 0 is the switch
  };
  struct Flow {
    std::uint32_t phase, src, dst;
  };
  const Flow flows[] = {{0, 4, 5}, {1, 2, 3}, {2, 0, 1}, {3, 0, 2}, {3, 4, 2}, {4, 6, 1}};
  std::vector<Connection> connections;
  std::vector<MessageDraft> drafts;
  for (std::uint32_t phase = 0; phase < 5; ++phase)  // a phase begins 1 us after the one before
    drafts.push_back({.not_before_ps = phase * testing::us + 1});
  PhasedCase c{.random = {.text = "three groups", .fabric = fabric}, .set = {}, .phases = {}};
  for (const Flow& flow : flows) {
    const auto id = static_cast<std::uint32_t>(drafts.size());
    if (c.phases.size() == flow.phase) c.phases.push_back({id, id});
    c.phases.back().last = id + 1;
    drafts.push_back({.connection = static_cast<std::uint32_t>(connections.size()),
                      .bytes = 1000 * testing::payload,
                      .waits = {{flow.phase}}});
    connections.push_back(between(flow.src, flow.dst));
  }
  c.set = make_messages(connections, drafts);
  PhaseCounts counts;
  const auto simulated = run(c, Repeat::simulated, counts);
  const auto replayed = run(c, Repeat::replayed, counts);
  REQUIRE((simulated && replayed));
  compare(*simulated, *replayed, c.random.text);
  compare(run_as_one(c), *replayed, c.random.text);
}

TEST_CASE("phases that never end: nothing is returned, whether loads are recorded or not") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    PhasedCase c = phased_case(seed);
    if (!phases_apply(c.random.options, {})) continue;
    std::vector<StateChange> dead(1);
    for (const LinkId link : c.random.fabric.links())
      dead[0].state.set(link, {.health = model::Health::down});
    for (const std::size_t windows : {0u, 16u}) {
      c.random.options.load_windows = windows;
      auto router = route::Router::create(c.random.fabric, c.random.routing, c.random.routing_seed);
      REQUIRE(router.has_value());
      Progress progress("", 0, Progress::Show::never);
      PhaseCounts counts;
      const auto result = run_phases(c.set, c.phases, *router, dead, c.random.options,
                                     Repeat::replayed, progress, counts);
      REQUIRE(result.has_value());
      CHECK_FALSE(result->has_value());
    }
  }
}

// Without chance and congestion control a phase that begins on an idle fabric has nothing to
// forget.
TEST_CASE("random runs in phases without chance are as in one run") {
  const std::uint64_t seeds = std::max<std::uint64_t>(test_effort(400), 100);
  std::uint64_t applied = 0, repeated = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    PhasedCase c = phased_case(seed);
    Options& options = c.random.options;
    options.congestion = Congestion::none;
    options.balance = Balance::path;
    options.ecn.on = false;
    options.load_windows = 64;
    if (!phases_apply(options, {})) continue;
    PhaseCounts counts;
    const auto replayed = run(c, Repeat::replayed, counts);
    if (!replayed) continue;
    const PacketRunResult whole = run_as_one(c);
    if (whole.counters.retransmissions > 0) continue;  // timers of queue pairs outlast phases
    ++applied;
    repeated += counts.repeated;
    compare(whole, *replayed, c.random.text);
    // Intervals of groups are half as long as those of the run, at most.
    compare_loads(whole, *replayed, whole.loads.width + replayed->loads.width);
  }
  MESSAGE(applied << " cases, " << repeated << " phases repeat");
  CHECK(applied >= seeds / 4);
  CHECK(repeated >= seeds / 4);
}

}  // namespace
}  // namespace weft::engine::packet
