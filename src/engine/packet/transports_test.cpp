// Every sensible combination of reliability, congestion control, admission and load balancing, on
// every kind of load: all of it arrives, nothing is lost from the books, and the result does not
// depend on the number of threads, nor does it where packets get lost. Also run under
// ThreadSanitizer.
#include <algorithm>
#include <array>
#include <span>

#include "base/test_effort.hpp"
#include "engine/packet/test_kit.hpp"

namespace weft::engine::packet::testing {
namespace {

struct Combination {
  std::string name;
  Options options;
};

Options goback_n(Congestion congestion, Balance balance = Balance::path) {
  Options options;
  options.pfc = fixed_pfc();
  options.congestion = congestion;
  options.ecn.on = congestion == Congestion::dcqcn;
  options.ecn.kmin = packets_of(5);
  options.ecn.kmax = packets_of(20);
  options.balance = balance;
  options.flowlet_gap = 2_us;
  return options;
}

// Lossless for the window; ports are deep enough for all that comes.
Options selective(Congestion congestion, Balance balance) {
  Options options;
  options.reliability = Reliability::selective;
  options.congestion = congestion;
  options.balance = balance;
  options.window = packets_of(64);
  options.ecn = {.on = true, .kmin = packets_of(5), .kmax = packets_of(20), .pmax = 1};
  return options;
}

Options pull(Balance balance) {
  Options options = selective(Congestion::none, balance);
  options.admission = Admission::pull;
  options.overflow = Overflow::trim;
  options.buffers[""] = {.per_port = packets_of(12)};
  options.scheduler = {.weights = {4160, 0}, .ack_class = 1, .control_class = 1};
  return options;
}

Options trimmed(Congestion congestion, Balance balance) {
  Options options = selective(congestion, balance);
  options.overflow = Overflow::trim;
  options.buffers[""] = {.per_port = packets_of(30)};
  return options;
}

Options cts(CtsOptions::Queue queue) {
  Options options = goback_n(Congestion::none);
  options.admission = Admission::cts;
  options.cts = {.channel_buffer = packets_of(8), .channels = 2, .queue = queue};
  options.cts.proxy_delay = 300_ns;
  if (queue == CtsOptions::Queue::high)
    options.scheduler = {.weights = {4160, 0}, .control_class = 1};
  return options;
}

// Receivers answer several packets at once.
Options gathered(Options options, std::uint32_t every) {
  options.ack_every = every;
  options.ack_delay = 5_us;
  return options;
}

std::vector<Combination> combinations() {
  return {{"go-back-N, gathered", gathered(goback_n(Congestion::none), 256)},
          {"DCQCN, gathered", gathered(goback_n(Congestion::dcqcn), 16)},
          {"CTS, gathered", gathered(cts(CtsOptions::Queue::high), 256)},
          {"selective, gathered", gathered(selective(Congestion::none, Balance::path), 4)},
          {"NSCC, gathered", gathered(trimmed(Congestion::nscc, Balance::spray), 4)},
          {"NSCC, adaptive, gathered", gathered(selective(Congestion::nscc, Balance::adaptive), 9)},
          {"NSCC, reps, gathered", gathered(selective(Congestion::nscc, Balance::reps), 4)},
          {"pull, gathered", gathered(pull(Balance::spray), 4)},
          {"go-back-N, PFC", goback_n(Congestion::none)},
          {"go-back-N, DCQCN", goback_n(Congestion::dcqcn)},
          {"go-back-N, HPCC", goback_n(Congestion::hpcc)},
          {"go-back-N, multipath", goback_n(Congestion::none, Balance::multipath)},
          {"go-back-N, flowlet", goback_n(Congestion::none, Balance::flowlet)},
          {"DCQCN, flowlet", goback_n(Congestion::dcqcn, Balance::flowlet)},
          {"CTS, high", cts(CtsOptions::Queue::high)},
          {"CTS, data", cts(CtsOptions::Queue::data)},
          {"selective, path", selective(Congestion::none, Balance::path)},
          {"selective, spray", selective(Congestion::none, Balance::spray)},
          {"selective, adaptive", selective(Congestion::none, Balance::adaptive)},
          {"selective, reps", selective(Congestion::none, Balance::reps)},
          {"NSCC, path", selective(Congestion::nscc, Balance::path)},
          {"NSCC, spray", selective(Congestion::nscc, Balance::spray)},
          {"NSCC, reps", selective(Congestion::nscc, Balance::reps)},
          {"NSCC, adaptive", selective(Congestion::nscc, Balance::adaptive)},
          {"NSCC, spray, trim", trimmed(Congestion::nscc, Balance::spray)},
          {"NSCC, reps, trim", trimmed(Congestion::nscc, Balance::reps)},
          {"pull, spray, trim", pull(Balance::spray)},
          {"pull, reps, trim", pull(Balance::reps)},
          {"pull, adaptive, trim", pull(Balance::adaptive)}};
}

void check_all_threads(const Fabric& fabric, const Load& load, Options options) {
  std::uint64_t bytes = 0;
  for (const MessageDraft& draft : load.drafts) bytes += draft.bytes;
  std::string digest;
  for (const std::uint32_t threads : {1u, load.drafts.size() > 100 ? 3u : 2u}) {
    CAPTURE(threads);
    options.threads = threads;
    const PacketRunResult result = run(fabric, load, options);
    CHECK(result.complete);
    CHECK(result.conservation.received >= bytes);
    CHECK(result.conservation.sent <= 3 * bytes);
    CHECK(result.counters.drops == 0);
    CHECK(result.counters.timeouts == 0);
    if (digest.empty()) digest = result.digest;
    CHECK(result.digest == digest);
  }
}

TEST_CASE("every transport completes every load, equally on any number of threads") {
  const Fabric fabric = fat_tree();
  for (const Combination& c : combinations()) {
    CAPTURE(c.name);
    {
      INFO("permutation");
      check_all_threads(fabric, permutation(fabric, 60 * payload, 5), c.options);
    }
    {
      INFO("slow receivers");
      Options slow = c.options;
      slow.receive_rate = 0.5;
      check_all_threads(fabric, permutation(fabric, 60 * payload, 5), slow);
    }
    {
      INFO("incast");
      check_all_threads(fabric, incast(fabric, 8, 40 * payload), c.options);
    }
    {
      INFO("all-to-all");
      check_all_threads(fabric, all_to_all(fabric, 6 * payload + 1), c.options);
    }
    {
      INFO("ring");
      check_all_threads(fabric, ring(fabric, 4, 10 * payload), c.options);
    }
  }
}

TEST_CASE("NICs of two ports: spread packets use both, equally on any number of threads") {
  const Fabric fabric = multi_plane(2, 4, 4, 2);
  for (const Combination& c : combinations()) {
    if (!is_by_packet(c.options.balance)) continue;
    CAPTURE(c.name);
    check_all_threads(fabric, permutation(fabric, 60 * payload, 5), c.options);
    check_all_threads(fabric, all_to_all(fabric, 6 * payload + 1), c.options);
  }
}

void check_losses(const Fabric& fabric, bool all_balances, std::uint64_t drops_min) {
  const Load load = all_to_all(fabric, 40 * payload);
  const std::array cables{"leaf:0->spine:0", "spine:0->leaf:0", "leaf:3->spine:1",
                          "spine:2->leaf:5", "nic:7->leaf:1",   "leaf:2->nic:9"};
  std::vector<Options> all;
  for (const Balance balance : {Balance::path, Balance::spray, Balance::reps, Balance::flowlet,
                                Balance::adaptive, Balance::multipath})
    all.push_back(selective(Congestion::none, balance));
  all.push_back(selective(Congestion::nscc, Balance::spray));
  all.push_back(selective(Congestion::none, Balance::spray));
  all.back().admission = Admission::pull;
  all.back().overflow = Overflow::trim;
  for (std::size_t i = 0, plain = all.size(); i < plain; ++i) all.push_back(gathered(all[i], 4));
  for (Options& options : all) {
    if (!all_balances && !is_by_packet(options.balance)) continue;
    CAPTURE(static_cast<int>(options.balance));
    options.window = packets_of(16);
    options.buffers[""] = {.per_port = packets_of(40)};
    options.ack_timeout = 200_us;
    StateChange before{{0}, {}};
    for (const char* cable : cables) before.state.set(link(fabric, cable), {.loss = 0.02});
    StateChange after = before;
    after.at = {60'000'000};
    after.state.set(node(fabric, "spine:3"), {.health = Health::down});
    std::string digest;
    Counters counters;
    constexpr std::array<std::uint32_t, 4> counts{1, 3, 2, 8};
    for (const std::uint32_t threads :
         std::span(counts).first(std::max<std::uint64_t>(test_effort(counts.size()), 2))) {
      CAPTURE(threads);
      options.threads = threads;
      const PacketRunResult result =
          run(fabric, load, {.options = options, .changes = {before, after}});
      CHECK(result.complete);
      if (digest.empty()) {
        digest = result.digest;
        counters = result.counters;
        CHECK(counters.drops > drops_min);
      }
      CHECK(result.digest == digest);
      CHECK(result.counters.retransmissions == counters.retransmissions);
      CHECK(result.counters.timeouts == counters.timeouts);
    }
  }
}

TEST_CASE("losses of all kinds: the same on any number of threads") {
  check_losses(leaf_spine(8, 4, 4), true, 300);
}

TEST_CASE("losses of all kinds, NICs of two ports: the same on any number of threads") {
  check_losses(multi_plane(2, 8, 4, 4), false, 50);
}

}  // namespace
}  // namespace weft::engine::packet::testing
