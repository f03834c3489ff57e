// The engine against the plain simulator: random small runs, equal to the picosecond.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "engine/packet/random_case.hpp"
#include "engine/packet/reference.hpp"

namespace weft::engine::packet {
namespace {

struct Both {
  PacketRunResult plain, fast;
};

Both run_both(const RandomCase& random, std::uint32_t threads) {
  const MessageSet set = make_messages(random.connections, random.drafts);
  const auto make_router = [&] {
    auto router = route::Router::create(random.fabric, random.routing, random.routing_seed);
    REQUIRE_MESSAGE(router.has_value(), router.error().text());
    return *std::move(router);
  };
  route::Router for_plain = make_router(), for_fast = make_router();
  Options options = random.options;
  options.threads = threads;
  Progress progress("", 0, Progress::Show::never);
  Both both{run_reference(set, for_plain, random.options), {}};
  auto fast = run_messages(set, for_fast, {}, options, progress);
  REQUIRE_MESSAGE(fast.has_value(), random.text, "\n", fast.error().text());
  both.fast = *std::move(fast);
  return both;
}

class Differences {
 public:
  explicit Differences(const Both& both) {
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
    compare("packets sent again", a.retransmissions, b.retransmissions);
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
std::string smallest(RandomCase random, std::uint32_t threads) {
  const auto differs = [&](const RandomCase& c) {
    return !Differences(run_both(c, threads)).text().empty();
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
  return describe(random, Differences(run_both(random, threads)).text());
}

void hold_against_plain(std::uint64_t cases, std::uint32_t threads) {
  int different = 0;
  for (std::uint64_t seed = 0; seed < cases; ++seed) {
    const RandomCase random = random_case(seed);
    const Differences differences(run_both(random, threads));
    if (differences.text().empty()) continue;
    constexpr int shown = 3;
    if (++different <= shown)
      FAIL_CHECK("" << random.text << "\n"
                    << differences.text() << "\nat the least:\n"
                    << smallest(random, threads));
  }
  CHECK_MESSAGE(different == 0, different, " of ", cases, " cases differ");
}

TEST_CASE("random runs are equal to the picosecond and the packet") { hold_against_plain(800, 1); }

TEST_CASE("so they are in partitions") { hold_against_plain(200, 2); }

}  // namespace
}  // namespace weft::engine::packet
