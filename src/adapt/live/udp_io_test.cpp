// Real sockets, on loopback alone and for a second or two.
#include "adapt/live/udp_io.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "adapt/live/system_clock.hpp"
#include "base/test_skip.hpp"
#include "observe/probe/probe_server.hpp"
#include "observe/probe/prober.hpp"
#include "observe/probe/targets.hpp"

namespace weft::adapt::live {
namespace {

namespace probe = observe::probe;

constexpr probe::Key key{11, 13};
constexpr std::uint32_t loopback_v4 = 0x7f000001;

UdpIo open_io(SystemClock& clock, std::vector<port::Endpoint> ports) {
  auto io = UdpIo::open({.ports = std::move(ports), .queue_bytes = 1 << 20}, clock);
  if (!io) FAIL(io.error().text());
  return *std::move(io);
}

struct Outcome {
  probe::FlowCounts counts;
  probe::ProberCounts around;
};

// Prober and responder in one thread. `answer_from` is the address that the responder listens on.
Outcome run(probe::ProberOptions options, std::uint32_t listen, std::uint8_t dscp) {
  SystemClock clock;
  UdpIo near = open_io(clock, {{loopback_v4, 0}, {loopback_v4, 0}});
  UdpIo far = open_io(clock, {{listen, 0}});
  probe::Responder responder({.key = key});
  probe::ProbeServer server(responder, far, clock);
  const port::Endpoint target{loopback_v4, far.ports()[0].port};
  options.key = key;
  options.session = 3;
  probe::Prober prober(
      options,
      {{.port = 0, .target = target, .dscp = dscp}, {.port = 1, .target = target, .dscp = dscp}},
      near, clock);
  Outcome out;
  const port::Instant end = clock.now() + 20 * ns_per_s;
  while (!prober.done() && clock.now() < end) {
    prober.step();
    server.step();
    near.wait(std::min(prober.wake_at(), clock.now() + 1'000'000), port::Wake::timer);
  }
  REQUIRE(prober.done());
  while (const auto report = prober.take_report())
    for (const probe::FlowCounts& counts : report->flows) out.counts.merge(counts);
  out.around = prober.counts();
  return out;
}

TEST_CASE("probes over loopback: all answered, stamped by the kernel, in their class") {
  for (const std::uint32_t listen : {loopback_v4, 0u}) {
    const Outcome outcome = run({.rate = 2'000, .count = 500}, listen, 26);
    CHECK(outcome.counts.sent == 1000);
    CHECK(outcome.counts.answered == 1000);
    CHECK(outcome.counts.lost == 0);
    CHECK(outcome.counts.remarked == 0);
    CHECK(outcome.counts.rtt.total() >= 990);
    // The server sleeps up to a millisecond; that is its own time, not the network's.
    CHECK(outcome.counts.rtt.quantile_ns(0.5) < 200'000);
    CHECK(outcome.around.implausible == 0);
  }
}

TEST_CASE("one-way over loopback") {
  const Outcome outcome =
      run({.direction = probe::Direction::one_way, .rate = 2'000, .count = 300}, loopback_v4, 0);
  CHECK(outcome.counts.sent == 600);
  CHECK(outcome.counts.lost == 0);
  CHECK(outcome.counts.unknown == 0);
}

TEST_CASE("a port that is taken, and an address that is not ours, are said") {
  SystemClock clock;
  const UdpIo first = open_io(clock, {{loopback_v4, 0}});
  const auto second = UdpIo::open({.ports = {first.ports()[0]}}, clock);
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == Errc::io);
  CHECK(second.error().text().find(probe::to_text(first.ports()[0])) != std::string::npos);
  CHECK(second.error().text().find("another program is using it") != std::string::npos);
  const auto foreign = UdpIo::open({.ports = {{0xc0000201, 0}}}, clock);
  REQUIRE_FALSE(foreign.has_value());
  CHECK(foreign.error().text().find("of this host") != std::string::npos);
}

TEST_SUITE("needs raw") {
  TEST_CASE("with the right to, datagrams leave from a port that another socket holds") {
    SystemClock clock;
    UdpIo holder = open_io(clock, {{loopback_v4, 0}});
    UdpIo target = open_io(clock, {{loopback_v4, 0}});
    auto raw = UdpIo::open({.ports = holder.ports(), .use = UdpIoOptions::Ports::raw}, clock);
    if (!raw) {
      CHECK(raw.error().text().find("cap_net_raw") != std::string::npos);
      return skip_test("needs CAP_NET_RAW");
    }
    const std::array<std::byte, 300> payload{std::byte{7}};
    const port::Outgoing out{.to = target.ports()[0], .dscp = 26, .ttl = 9, .payload = payload};
    REQUIRE(raw->send({&out, 1}).sent == 1);
    std::vector<port::Incoming> got(2);
    std::size_t count = 0;
    for (const port::Instant end = clock.now() + ns_per_s; count == 0 && clock.now() < end;)
      count = target.receive(got);
    REQUIRE(count == 1);
    CHECK(got[0].from == holder.ports()[0]);
    CHECK(got[0].size == payload.size());
    CHECK(std::ranges::equal(got[0].payload(), payload));
    CHECK(got[0].dscp == 26);
    CHECK(raw->receive(got) == 0);
  }
}

TEST_CASE("a flood of garbage is counted and not answered, and costs little") {
  SystemClock clock;
  UdpIo near = open_io(clock, {{loopback_v4, 0}});
  UdpIo far = open_io(clock, {{loopback_v4, 0}});
  probe::Responder responder({.key = key});
  probe::ProbeServer server(responder, far, clock);
  std::array<std::byte, 200> garbage{};
  constexpr std::uint64_t floods = 200;
  std::uint64_t sent = 0;
  for (std::uint64_t i = 0; i < floods; ++i) {
    std::vector<port::Outgoing> batch;
    for (std::size_t n = 0; n < port::batch_max; ++n)
      batch.push_back({.to = far.ports()[0], .payload = std::span(garbage).first(n * 3)});
    sent += near.send(batch).sent;
    while (server.step() > 0) {
    }
  }
  CHECK(sent == floods * port::batch_max);
  CHECK(responder.count(probe::Verdict::answered) == 0);
  CHECK(responder.count(probe::Verdict::truncated) + responder.count(probe::Verdict::foreign) +
            far.dropped() ==
        sent);
  std::vector<port::Incoming> answers(4);
  CHECK(near.receive(answers) == 0);
}

// Monotonic time that advances by itself, and a time of day that tests step.
class SteppingClock : public port::Clock {
 public:
  port::Instant now() override { return {now_ += 20}; }
  Timestamp wall() override { return {(now_ += 20) + offset}; }
  std::int64_t offset = 1'000'000'000'000;

 private:
  std::int64_t now_ = 5'000;
};

TEST_CASE("stamps survive a step of the clock, or are not given") {
  SteppingClock clock;
  StampReader reader(clock);
  const auto stamp_now = [&] { return Timestamp{clock.now().ns + clock.offset}; };
  const auto error_of = [&](Timestamp stamp) {
    const auto when = reader.instant(stamp);
    REQUIRE(when.has_value());
    return std::abs(when->ns - (stamp.ns - clock.offset));
  };
  reader.check();
  CHECK(error_of(stamp_now()) <= 100);
  const Timestamp before = stamp_now();
  for (const long step : {-7'000'000'000L, 5'000'000L, 3'600'000'000'000L}) {
    clock.offset += step;
    reader.check();
    CHECK_FALSE(reader.instant(before).has_value());
    CHECK_FALSE(reader.instant(stamp_now()).has_value());  // may be of either time
    reader.drained();
    CHECK(error_of(stamp_now()) <= 100);
  }
  CHECK(reader.steps() == 3);
  CHECK_FALSE(reader.instant({0}).has_value());
}

}  // namespace
}  // namespace weft::adapt::live
