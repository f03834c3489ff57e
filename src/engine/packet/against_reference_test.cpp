// The engine against the plain simulator: random small runs, equal to the picosecond.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "engine/packet/random_case.hpp"
#include "engine/packet/reference.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet {
namespace {

struct Both {
  PacketRunResult plain, fast;
};

// What is added to a random case.
struct Unreliable {
  Reliability reliability = Reliability::goback_n;
  std::vector<double> loss;  // by link, or none
  std::uint32_t gap = 1;     // of selective repeat
  Scheduler scheduler = {};  // of the engine alone: the plain simulator has one class
};

bool accounts(const RandomCase& random) {
  return random.options.pfc.on || !random.options.buffers.empty();
}

Both run_both(const RandomCase& random, std::uint32_t threads, const Unreliable& unreliable) {
  const MessageSet set = make_messages(random.connections, random.drafts);
  const auto make_router = [&] {
    auto router = route::Router::create(random.fabric, random.routing, random.routing_seed);
    REQUIRE_MESSAGE(router.has_value(), (router ? "" : router.error().text()));
    return *std::move(router);
  };
  route::Router for_plain = make_router(), for_fast = make_router();
  Options options = random.options;
  options.threads = threads;
  options.reliability = unreliable.reliability;
  options.retransmit_gap = unreliable.gap;
  options.scheduler = unreliable.scheduler;
  options.class_counters = true;  // counts nothing where there is one class
  StateChange state{{0}, {}};
  for (std::size_t l = 0; l < unreliable.loss.size(); ++l)
    if (unreliable.loss[l] > 0) state.state.set(LinkId(l), {.loss = unreliable.loss[l]});
  Progress progress("", 0, Progress::Show::never);
  Options plain = options;
  plain.scheduler = {};
  Both both{run_reference(set, for_plain, plain, unreliable.loss), {}};
  auto fast = run_messages(set, for_fast, std::span(&state, 1), options, progress);
  REQUIRE_MESSAGE(fast.has_value(), random.text, "\n", fast.error().text());
  both.fast = *std::move(fast);
  return both;
}

class Differences {
 public:
  // `accounts`: switches have an account of their memory.
  Differences(const Both& both, bool accounts) {
    const PacketRunResult &plain = both.plain, &fast = both.fast;
    for (std::size_t m = 0; m < plain.messages.size(); ++m) {
      const std::string name = fmt::format("message {}", m);
      compare(name + " start", plain.messages[m].start, fast.messages[m].start);
      compare(name + " arrived", plain.messages[m].arrived, fast.messages[m].arrived);
      compare(name + " end", plain.messages[m].end, fast.messages[m].end);
    }
    const Counters &a = plain.counters, &b = fast.counters;
    compare("hops", a.hops, b.hops);
    compare("frames", a.pause_frames, b.pause_frames);
    compare("marks", a.ecn_marks, b.ecn_marks);
    compare("drops", a.drops, b.drops);
    compare("drops beyond the headroom", a.drops_headroom, b.drops_headroom);
    compare("timeouts", a.timeouts, b.timeouts);
    compare("packets retransmitted", a.retransmissions, b.retransmissions);
    if (accounts) compare("fullest switch", a.buffer_max, b.buffer_max);
    compare("complete", plain.complete ? 1 : 0, fast.complete ? 1 : 0);
    compare("payload sent", plain.conservation.sent, fast.conservation.sent);
    compare("payload received", plain.conservation.received, fast.conservation.received);
    compare("payload dropped", plain.conservation.dropped, fast.conservation.dropped);
    compare("payload in flight", plain.conservation.in_flight, fast.conservation.in_flight);
    for (std::size_t l = 0; l < plain.links.size(); ++l)
      compare_link(l, plain.links[l], fast.links[l]);
  }
  const std::string& text() const { return text_; }

 private:
  void compare_link(std::size_t l, const LinkCounters& a, const LinkCounters& b) {
    const std::string name = fmt::format("link {} ", l);
    compare(name + "packets", a.packets, b.packets);
    compare(name + "control", a.control, b.control);
    compare(name + "bytes", a.bytes, b.bytes);
    compare(name + "marked", a.ecn_marked, b.ecn_marked);
    compare(name + "dropped", a.dropped, b.dropped);
    compare(name + "pauses", a.pauses, b.pauses);
    compare(name + "time paused", a.paused_ps, b.paused_ps);
    compare(name + "queue", a.queue_max, b.queue_max);
  }
  void compare(const std::string& what, std::uint64_t plain, std::uint64_t fast) {
    constexpr int shown = 12;
    if (plain != fast && ++count_ <= shown)
      text_ += fmt::format("{}: {} plain, {} fast\n", what, static_cast<std::int64_t>(plain),
                           static_cast<std::int64_t>(fast));
  }

  std::string text_;
  int count_ = 0;
};

// The case without message `gone`: what waited for it does not.
RandomCase without(const RandomCase& random, std::uint32_t gone) {
  RandomCase smaller = random;
  smaller.drafts.erase(smaller.drafts.begin() + gone);
  for (MessageDraft& draft : smaller.drafts) {
    std::erase_if(draft.waits, [&](const auto& wait) { return wait.message == gone; });
    for (MessageDraft::Wait& wait : draft.waits)
      if (wait.message > gone) --wait.message;
    if (draft.waits.empty()) draft.delay_ns = 0;  // a delay after nothing
  }
  return smaller;
}

std::string describe(const RandomCase& random, const std::string& differences) {
  std::string out = random.text + "\n";
  for (std::size_t m = 0; m < random.drafts.size(); ++m) {
    const MessageDraft& draft = random.drafts[m];
    const Connection& c = random.connections[draft.connection];
    out += fmt::format("message {}: connection {} from {} to {}, {} B at {} ps, waits for {}\n", m,
                       draft.connection, random.fabric.name(c.src), random.fabric.name(c.dst),
                       draft.bytes, draft.not_before_ps, draft.waits.size());
  }
  return out + differences;
}

// Drops messages, and shortens those that are left, while there is a difference.
std::string smallest(RandomCase random, std::uint32_t threads, const Unreliable& unreliable) {
  const auto differs = [&](const RandomCase& c) {
    return !Differences(run_both(c, threads, unreliable), accounts(c)).text().empty();
  };
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (auto m = static_cast<std::uint32_t>(random.drafts.size()); m-- > 0;) {
      RandomCase next = without(random, m);
      if (!next.drafts.empty() && differs(next)) {
        random = std::move(next);
        smaller = true;
        continue;
      }
      next = random;
      next.drafts[m].bytes /= 2;
      if (next.drafts[m].bytes == 0 || !differs(next)) continue;
      random = std::move(next);
      smaller = true;
    }
  }
  return describe(random,
                  Differences(run_both(random, threads, unreliable), accounts(random)).text());
}

// Losses by chance on some links, in every other case.
std::vector<double> any_losses(std::uint64_t seed, std::size_t links) {
  Rng rng = Rng(seed).stream("losses");
  std::vector<double> loss(rng.below(2) * links);
  const std::uint64_t lossy = 1 + rng.below(4);  // one in so many
  const double most = rng.below(2) == 0 ? 0.02 : 0.2;
  for (double& share : loss)
    if (rng.below(lossy) == 0) share = most * rng.uniform();
  return loss;
}

void hold_against_plain(std::uint64_t cases, std::uint32_t threads,
                        Reliability reliability = Reliability::goback_n) {
  int different = 0;
  std::uint64_t again = 0, timeouts = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const RandomCase random = random_case(seed);
    Unreliable unreliable{.reliability = reliability, .loss = {}};
    if (reliability == Reliability::selective) {
      // One path between any two: the engine hashes, the plain simulator asks the router.
      if (random.fabric.node_count() != random.fabric.nics().size() + 1) continue;
      unreliable.loss = any_losses(seed, random.fabric.link_count());
      unreliable.gap = 1 + seed % 4;
    }
    const Both both = run_both(random, threads, unreliable);
    again += both.fast.counters.retransmissions;
    timeouts += both.fast.counters.timeouts;
    const Differences differences(both, accounts(random));
    if (differences.text().empty()) continue;
    constexpr int shown = 3;
    if (++different <= shown)
      FAIL_CHECK("" << random.text << "\n"
                    << differences.text() << "\nat the least:\n"
                    << smallest(random, threads, unreliable));
  }
  CHECK_MESSAGE(different == 0, different, " of ", cases, " cases differ");
  CHECK(again > cases);
  CHECK(timeouts > cases / 10);
}

// Packets, pause frames and acknowledgements take 100 ns each, and so does a tenth of a cable: all
// that happens falls on one grid, and much of it on one time.
RandomCase case_on_a_grid(std::uint64_t seed) {
  constexpr Ps step = 100'000;
  Rng rng(seed);
  RandomCase random;
  random.text = fmt::format("grid {}", seed);
  random.fabric = testing::leaf_spine(3, 3, 2, Rate{332'800'000'000});
  Options& options = random.options;
  options.wire.pause = options.wire.control = testing::packets_of(1);
  options.pfc = testing::fixed_pfc(2 + static_cast<std::int64_t>(rng.below(8)), 1);
  if (rng.below(2) == 0) {
    options.pfc = {.on = true, .alpha = 0.03};
    options.buffers[""].shared = 1'000'000_B;
  }
  const std::span<const NodeId> nics = random.fabric.nics();
  for (std::uint32_t c = 0; c < 20; ++c) {
    const std::size_t src = rng.below(nics.size());
    const std::size_t dst = (src + 1 + rng.below(nics.size() - 1)) % nics.size();
    random.connections.push_back({.src = nics[src], .dst = nics[dst], .qp = c});
    random.drafts.push_back({.connection = c,
                             .bytes = (1 + rng.below(60)) * testing::payload,
                             .not_before_ps = rng.below(100) * step});
  }
  return random;
}

// The plain simulator knows no classes. Where all is sent in one of two, what it counts of a port
// is that class's, but for pause frames, which are of none.
TEST_CASE("classes count what their ports count, where nothing is sent in the others") {
  std::uint64_t frames = 0, pauses = 0, dropped = 0;
  for (std::uint64_t seed = 0; seed < 120; ++seed) {
    const RandomCase random = random_case(seed);
    if (random.options.pfc.reserve.count > 0) continue;  // kept for each class
    const Both both = run_both(
        random, 1 + static_cast<std::uint32_t>(seed % 2),
        {.loss = {},
         .scheduler = {
             .weights = {4160, 4160}, .data_class = 1, .ack_class = 1, .control_class = 1}});
    const Differences differences(both, accounts(random));
    CHECK_MESSAGE(differences.text().empty(), random.text, "\n", differences.text());
    REQUIRE(both.fast.class_links.size() == 2 * both.plain.links.size());
    for (std::size_t l = 0; l < both.plain.links.size(); ++l) {
      const LinkCounters& port = both.plain.links[l];
      LinkCounters of_class = both.fast.class_links[2 * l + 1];
      CHECK(both.fast.class_links[2 * l] == LinkCounters{});
      const std::uint64_t more = port.control - of_class.control;
      const auto size = static_cast<std::uint64_t>(random.options.wire.pause.count);
      CHECK(port.bytes - of_class.bytes == more * size);
      frames += more;
      of_class.control = port.control;
      of_class.bytes = port.bytes;
      CHECK(of_class == port);
      pauses += of_class.pauses;
      dropped += of_class.dropped;
    }
    frames -= both.plain.counters.pause_frames;
    CHECK(frames == 0);
  }
  CHECK(pauses > 100);
  CHECK_MESSAGE(dropped > 20, dropped, " ", pauses);
}

TEST_CASE("runs in which many things happen at one time are equal, too") {
  std::uint64_t frames = 0;
  for (std::uint64_t seed = 0; seed < test_effort(100); ++seed) {
    const RandomCase random = case_on_a_grid(seed);
    for (const std::uint32_t threads : {1u, 2u}) {
      const Both both = run_both(random, threads, {});
      const Differences differences(both, true);
      CHECK_MESSAGE(differences.text().empty(), random.text, "\n", differences.text());
      frames += both.fast.counters.pause_frames;
    }
  }
  CHECK(frames > test_effort(2'000));
}

TEST_CASE("random runs are equal to the picosecond and the packet") {
  hold_against_plain(test_effort(800), 1);
}

TEST_CASE("so they are in partitions") { hold_against_plain(test_effort(400), 2); }

TEST_CASE("random runs with selective repeat are equal to the picosecond and the packet") {
  hold_against_plain(test_effort(3000), 1, Reliability::selective);
}

TEST_CASE("so they are with selective repeat in partitions") {
  hold_against_plain(200, 2, Reliability::selective);
}

}  // namespace
}  // namespace weft::engine::packet
