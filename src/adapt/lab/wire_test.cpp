#include "adapt/lab/wire.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "adapt/lab/fault_test_net.hpp"

namespace weft::adapt::lab {
namespace {

using testing::exchange;
using testing::Heard;
using testing::is_about;
using testing::nearest_to;
using testing::TestNet;
using testing::Traffic;

constexpr Duration ms(std::int64_t n) { return {n * 1'000'000'000}; }

WireSpec spec_on(const TestNet& net, const WireModel& model, std::uint8_t index = 1) {
  return {.netns = net.a(),
          .interface = "a0",
          .node = "a",
          .name = fmt::format("weft-w{}", index),
          .index = index,
          .count_file = fmt::format("{}/wire-{}", net.directory(), index),
          .model = model};
}

LabProcess start(const TestNet& net, const WireSpec& spec) {
  const auto wire = start_wire(spec, net.journal());
  REQUIRE_MESSAGE(wire.has_value(), (wire ? "" : wire.error().text()));
  return *wire;
}

void end(const LabProcess& wire) {
  const auto ended = end_processes(std::span(&wire, 1), std::chrono::seconds(2));
  REQUIRE_MESSAGE(ended.has_value(), (ended ? "" : ended.error().text()));
}

WireCount count_of(const WireSpec& spec) {
  const auto count = read_wire_count(spec.count_file);
  REQUIRE(count.has_value());
  return *count;
}

TEST_SUITE_BEGIN("needs namespaces");

TEST_CASE("a wire delays one direction, and its end leaves the kernel as it was") {
  WEFT_TEST_NET(net);
  const std::string before = TestNet::kernel_state(net.a());
  const WireSpec spec = spec_on(net, {.delay = ms(5), .jitter = ms(1)});
  const LabProcess wire = start(net, spec);
  CHECK(TestNet::kernel_state(net.a()) != before);
  std::uint64_t sent = 0;
  const double there =
      nearest_to(5'500, 0.05, net, {.count = 1'000, .gap_us = 1'000}, [&](const Heard& heard) {
        sent += heard.total();
        CHECK(heard.total() == 1'000);
        MESSAGE("5 ms + U(0, 1 ms): min ", heard.latency(0), " p50 ", heard.latency(0.5), " p90 ",
                heard.latency(0.9), " max ", heard.latency(1), " us");
        CHECK(heard.latency(0) >= 4'990);
        return heard.latency(0.5);
      });
  CHECK_MESSAGE(is_about(there, 5'500, 0.05), there);
  const Heard back = exchange(net, {.reverse = true, .count = 200, .gap_us = 1'000});
  CHECK(back.total() == 200);
  CHECK(back.latency(0.5) < 2'000);
  end(wire);
  CHECK(TestNet::kernel_state(net.a()) == before);
  CHECK(count_of(spec).sent == sent);
  CHECK(exchange(net, {.count = 100}).total() == 100);
}

TEST_CASE("what a wire corrupts is dropped by checksums, and nothing else") {
  WEFT_TEST_NET(net);
  const WireSpec spec = spec_on(net, {.corrupt = 0.1, .seed = 7});
  const LabProcess wire = start(net, spec);
  const Heard heard = exchange(net, {.count = 5'000, .gap_us = 20, .bytes = 512});
  end(wire);
  const WireCount count = count_of(spec);
  CHECK(count.received == 5'000);
  CHECK(std::abs(static_cast<double>(count.corrupted) - 500) < 5 * std::sqrt(450.0));
  CHECK(heard.total() + count.corrupted == 5'000);
  CHECK(heard.wrong == 0);
}

TEST_CASE("a wire reorders and duplicates") {
  WEFT_TEST_NET(net);
  const WireSpec reorder = spec_on(net, {.reorder = 0.05, .hold = ms(2)});
  const LabProcess first = start(net, reorder);
  const Heard heard = exchange(net, {.count = 2'000, .gap_us = 200});
  end(first);
  CHECK(heard.total() == 2'000);
  std::uint32_t overtaken = 0;
  std::uint32_t highest = 0;
  for (const std::uint32_t sequence : heard.sequence) {
    overtaken += sequence < highest ? 1 : 0;
    highest = std::max(highest, sequence);
  }
  const auto held = static_cast<std::uint32_t>(count_of(reorder).reordered);
  CHECK(std::abs(static_cast<double>(held) - 100) < 5 * std::sqrt(95.0));
  CHECK(overtaken <= held);
  CHECK(overtaken + 12 >= held);  // the last ones have nobody behind them

  const WireSpec duplicate = spec_on(net, {.duplicate = 0.5});
  const LabProcess second = start(net, duplicate);
  const Heard twice = exchange(net, {.count = 2'000, .gap_us = 20});
  end(second);
  CHECK(twice.total() == 2'000 + count_of(duplicate).duplicated);
  CHECK(std::set(twice.sequence.begin(), twice.sequence.end()).size() == 2'000);
}

TEST_CASE("a slow wire keeps its rate, bounds its queue and marks before it drops") {
  WEFT_TEST_NET(net);
  // 500 frames of 1,042 bytes at 20 Mbit/s: 208 ms; all are sent at once.
  const WireSpec marking =
      spec_on(net, {.rate = {20'000'000}, .queue = {1 << 20}, .ecn = {50'000}});
  const LabProcess first = start(net, marking);
  std::uint32_t ce = 0;  // how many depends on how fast they were sent
  const double seconds =
      nearest_to(0.208, 0.03, net, {.count = 500, .tos = 2, .bytes = 1'000, .linger_ms = 2'000},
                 [&](const Heard& heard) {
                   CHECK(heard.total() == 500);
                   CHECK(heard.ce > 0);
                   ce += heard.ce;
                   return heard.seconds();
                 });
  end(first);
  CHECK_MESSAGE(is_about(seconds, 0.208, 0.03), seconds);
  CHECK(ce == count_of(marking).marked);

  const WireSpec dropping = spec_on(net, {.rate = {20'000'000}, .queue = {100'000}});
  const LabProcess second = start(net, dropping);
  const Heard rest = exchange(net, {.count = 500, .bytes = 1'000, .linger_ms = 2'000});
  end(second);
  CHECK(rest.total() < 500);
  const WireCount count = count_of(dropping);
  CAPTURE(count.unread);
  CAPTURE(count.overflowed);
  CHECK(count.received + count.unread == 500);
  CHECK(count.sent + count.overflowed + count.unsent == count.received);
  CHECK(rest.total() == count.sent);
}

TEST_CASE("wires stand in line, filters see each frame once, and each goes alone") {
  WEFT_TEST_NET(net);
  const std::string before = TestNet::kernel_state(net.a());
  const std::vector<std::string> interfaces{"a0"};
  REQUIRE(add_filter(net.a(), "weft_loss", interfaces, {.share = 0.2}).has_value());
  const WireSpec spec_1 = spec_on(net, {.delay = ms(3)}, 1);
  const WireSpec spec_2 = spec_on(net, {.delay = ms(4)}, 2);
  const LabProcess wire_1 = start(net, spec_1);
  const LabProcess wire_2 = start(net, spec_2);
  std::uint64_t heard_by_both = 0, sent = 0;
  const double both =
      nearest_to(7'050, 0.05, net, {.count = 1'000, .gap_us = 200}, [&](const Heard& heard) {
        sent += 1'000;
        heard_by_both += heard.total();
        CHECK(heard.latency(0) >= 7'000 - 2 * 10);  // as above, 10 us of each wire
        return heard.latency(0.5);
      });
  const auto lost = filter_count(net.a(), "weft_loss");
  REQUIRE(lost.has_value());
  CHECK(heard_by_both + lost->packets == sent);
  const auto all = static_cast<double>(sent);
  CHECK(std::abs(static_cast<double>(lost->packets) - 0.2 * all) < 5 * std::sqrt(0.16 * all));
  CHECK_MESSAGE(is_about(both, 7'050, 0.05), both);
  REQUIRE(remove_filter(net.a(), "weft_loss").has_value());
  end(wire_1);
  const double second =
      nearest_to(4'050, 0.1, net, {.count = 500, .gap_us = 200}, [](const Heard& heard) {
        CHECK(heard.total() == 500);
        return heard.latency(0.5);
      });
  CHECK_MESSAGE(is_about(second, 4'050, 0.1), second);
  end(wire_2);
  CHECK(TestNet::kernel_state(net.a()) == before);
}

TEST_CASE("a wire that crashes takes all of itself with it, and the link works") {
  WEFT_TEST_NET(net);
  const std::string before = TestNet::kernel_state(net.a());
  const LabProcess wire = start(net, spec_on(net, {.delay = ms(50)}));
  REQUIRE(end_processes(std::span(&wire, 1), std::chrono::milliseconds(0)).has_value());  // SIGKILL
  std::string after;
  for (int i = 0; i < 200 && after != before; ++i) {  // the kernel tidies up behind
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    after = TestNet::kernel_state(net.a());
  }
  CHECK(after == before);
  const Heard heard = exchange(net, {.count = 100, .gap_us = 100});
  CHECK(heard.total() == 100);
  CHECK(heard.latency(0.5) < 10'000);
}

TEST_CASE("a wire that ends lets go of what waits in it") {
  WEFT_TEST_NET(net);
  const WireSpec spec = spec_on(net, {.delay = {10'000'000'000'000}});
  const LabProcess wire = start(net, spec);
  testing::Exchange traffic(net, {.count = 50, .linger_ms = 500});
  std::thread ender([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    static_cast<void>(end_processes(std::span(&wire, 1), std::chrono::seconds(2)));
  });
  const Heard heard = traffic.run();
  ender.join();
  CHECK(heard.total() == 50);
  CHECK(std::ranges::is_sorted(heard.sequence));
}

TEST_CASE("a wire carries a busy link") {
  WEFT_TEST_NET(net);
  const WireSpec spec = spec_on(net, {.delay = ms(1)});
  const LabProcess wire = start(net, spec);
#ifdef WEFT_SANITIZED  // what carries it is ten times slower
  constexpr std::uint32_t packets = 5'000, gap_us = 200;
#else
  constexpr int packets = 50'000, gap_us = 20;
#endif
  const Heard heard = exchange(net, {.count = packets, .flows = 8, .gap_us = gap_us, .bytes = 100});
  end(wire);
  const WireCount count = count_of(spec);
  MESSAGE("heard ", heard.total(), " of ", packets, ", p50 ", heard.latency(0.5), " p99 ",
          heard.latency(0.99), " us; unread ", count.unread, ", latest ",
          static_cast<double>(count.late_ns_max) * 1e-3, " us");
  CHECK(heard.total() + count.unread + count.unsent == packets);
  CHECK(heard.total() > 0.9 * packets);
  CHECK(heard.latency(0) >= 1'000 - 10);  // also what arrives while others are read
}

TEST_CASE("segmented and checksummed by the kernel: a stream passes a wire unharmed") {
  WEFT_TEST_NET(net);
  const LabProcess wire = start(net, spec_on(net, {.delay = ms(1)}));
  auto listener = socket_in_netns(net.b(), AF_INET, SOCK_STREAM, 0);
  auto caller = socket_in_netns(net.a(), AF_INET, SOCK_STREAM, 0);
  REQUIRE(listener.has_value());
  REQUIRE(caller.has_value());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9'001);
  address.sin_addr.s_addr = htonl(TestNet::address_b);
  const auto* const name = reinterpret_cast<const sockaddr*>(&address);
  REQUIRE(::bind(listener->get(), name, sizeof address) == 0);
  REQUIRE(::listen(listener->get(), 1) == 0);
  REQUIRE(::connect(caller->get(), name, sizeof address) == 0);
  const Fd server(::accept(listener->get(), nullptr, nullptr));
  constexpr std::size_t total = 8u << 20;
  std::vector<std::uint8_t> sent(total);
  Rng rng(3);
  for (std::uint8_t& byte : sent) byte = static_cast<std::uint8_t>(rng.next());
  std::thread sender([&] {
    for (std::size_t at = 0; at < total;) {
      const ssize_t n = ::send(caller->get(), sent.data() + at, total - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
    ::shutdown(caller->get(), SHUT_WR);
  });
  std::vector<std::uint8_t> heard(total + 1);
  std::size_t at = 0;
  for (ssize_t n = 1; n > 0 && at < heard.size();) {
    n = ::recv(server.get(), heard.data() + at, heard.size() - at, 0);
    if (n > 0) at += static_cast<std::size_t>(n);
  }
  sender.join();
  heard.resize(at);
  CHECK(heard == sent);
  end(wire);
}

TEST_CASE("a wire that cannot start says why and leaves nothing") {
  WEFT_TEST_NET(net);
  const std::string before = TestNet::kernel_state(net.a());
  WireSpec spec = spec_on(net, {});
  spec.interface = "nowhere";
  const auto wire = start_wire(spec, net.journal());
  REQUIRE_FALSE(wire.has_value());
  CHECK(wire.error().text().find("nowhere") != std::string::npos);
  spec.netns = "weft-no-such-namespace";
  CHECK_FALSE(start_wire(spec, net.journal()).has_value());
  CHECK(TestNet::kernel_state(net.a()) == before);
  for (const LabProcess& process : read_journal(net.journal())) CHECK_FALSE(is_alive(process.id));
}

TEST_SUITE_END();

}  // namespace
}  // namespace weft::adapt::lab
