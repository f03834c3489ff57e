#include "observe/probe/sweep.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "base/rng.hpp"
#include "observe/probe/quote.hpp"
#include "observe/probe/test_net.hpp"

namespace weft::observe::probe {
namespace {

using testing::far_end;
using testing::key;
using testing::TestClock;

// prober -- hop 1 -- hop 2 -- hop 3 -- target; routers quote the UDP header alone.
class HopNet : public port::ProbeIo {
 public:
  std::uint32_t hops = 3;
  std::function<bool(std::uint32_t hop)> lost_at = [](std::uint32_t) { return false; };
  std::function<bool(std::uint32_t hop)> complains = [](std::uint32_t) { return true; };
  bool responds = true;

  explicit HopNet(TestClock& clock) : clock_(clock) {}
  port::SendResult send(std::span<const port::Outgoing> batch) override {
    for (const port::Outgoing& out : batch) carry(out);
    return {batch.size(), 0};
  }
  std::size_t receive(std::span<port::Incoming> batch) override { return take(answers_, batch); }
  std::size_t complaints(std::span<port::Complaint> batch) override {
    return take(complaints_, batch);
  }
  std::size_t send_stamps(std::span<port::SendStamp>) override { return 0; }
  port::Stamp stamping() const override { return port::Stamp::none; }
  std::uint64_t dropped() override { return 0; }
  void wait(port::Instant until, port::Wake) override { clock_.set(until.ns); }

 private:
  template <class T>
  static std::size_t take(std::vector<T>& from, std::span<T> into) {
    const std::size_t count = std::min(from.size(), into.size());
    std::copy_n(from.begin(), count, into.begin());
    from.erase(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }
  void carry(const port::Outgoing& out) {
    for (std::uint32_t hop = 1; hop <= hops + 1; ++hop) {
      if (lost_at(hop)) return;
      const port::Complaint complaint{
          .from = 0x0b000000 + hop,
          .to = out.to,
          .source_port = 50'000,
          .udp_length = static_cast<std::uint16_t>(out.payload.size() + 8)};
      if (hop <= hops && hop == out.ttl && complains(hop)) complaints_.push_back(complaint);
      if (hop == out.ttl && hop <= hops) return;
    }
    answer(out);
  }
  void answer(const port::Outgoing& out) {
    if (!responds) {
      complaints_.push_back({.kind = port::Complaint::Kind::unreachable,
                             .from = out.to.address,
                             .to = out.to,
                             .source_port = 50'000,
                             .udp_length = static_cast<std::uint16_t>(out.payload.size() + 8)});
      return;
    }
    Message message;
    REQUIRE(decode(out.payload, key, message) == Fault::none);
    message.kind = Kind::reply;
    port::Incoming in;
    WireBytes bytes;
    encode(message, key, bytes);
    in.from = out.to;
    in.size = wire_bytes;
    std::ranges::copy(bytes, in.bytes.begin());
    answers_.push_back(in);
  }

  TestClock& clock_;
  std::vector<port::Incoming> answers_;
  std::vector<port::Complaint> complaints_;
};

SweptFlow swept(HopNet& net, TestClock& clock, std::uint32_t rounds = 16) {
  const std::array<std::uint16_t, 1> ports{50'000};
  Sweep sweep({.key = key, .session = 5, .ttl_max = 8, .rounds = rounds}, {{.target = far_end}},
              ports, net, clock);
  for (int i = 0; i < 100'000 && !sweep.done(); ++i) {
    sweep.step();
    net.wait(sweep.wake_at(), port::Wake::timer);
  }
  REQUIRE(sweep.done());
  return sweep.results().front();
}

TEST_CASE("every time to live and round has a length of its own, and is read back") {
  std::vector<bool> used(2'000, false);
  for (std::uint32_t round = 0; round < sweep_rounds_max; ++round)
    for (std::uint8_t ttl = 1; ttl <= sweep_ttl_max; ++ttl) {
      const std::size_t bytes = sweep_bytes(ttl, round);
      REQUIRE(bytes <= request_bytes_max);
      CHECK_FALSE(used[bytes]);
      used[bytes] = true;
      const auto mark = sweep_mark(static_cast<std::uint16_t>(bytes + 8));
      REQUIRE(mark.has_value());
      CHECK(mark->ttl == ttl);
      CHECK(mark->round == round);
    }
  CHECK_FALSE(sweep_mark(8).has_value());
  CHECK_FALSE(sweep_mark(UINT16_MAX).has_value());
}

TEST_CASE("a clean path: hops in order, the target last") {
  for (const bool responds : {true, false}) {
    TestClock clock;
    HopNet net(clock);
    net.responds = responds;
    const SweptFlow flow = swept(net, clock);
    REQUIRE(flow.reached);
    REQUIRE(flow.hops.size() == 4);
    for (std::uint32_t hop = 1; hop <= 3; ++hop) {
      CHECK(flow.hops[hop - 1].address == 0x0b000000 + hop);
      CHECK(flow.hops[hop - 1].answered == 16);
    }
    CHECK(flow.hops[3].address == far_end.address);
    CHECK(flow.suspect == 0);
  }
}

TEST_CASE("loss counts from the hop on from which all farther ones lose as well") {
  TestClock clock;
  HopNet net(clock);
  Rng rng(2);
  net.lost_at = [&](std::uint32_t hop) { return hop == 3 && rng.below(2) == 0; };
  CHECK(swept(net, clock).suspect == 3);
}

TEST_CASE("a router that complains seldom is not a lossy link") {
  TestClock clock;
  HopNet net(clock);
  Rng rng(2);
  net.complains = [&](std::uint32_t hop) { return hop != 2 || rng.below(3) == 0; };
  const SweptFlow flow = swept(net, clock);
  CHECK(flow.hops[1].answered < 12);
  CHECK(flow.suspect == 0);
}

TEST_CASE("where the way ends early the hops that answered are shown") {
  TestClock clock;
  HopNet net(clock);
  net.lost_at = [](std::uint32_t hop) { return hop == 3; };
  const SweptFlow flow = swept(net, clock);
  CHECK_FALSE(flow.reached);
  CHECK(flow.hops.size() == 2);
}

// An ICMP time exceeded from 192.0.2.1 that quotes UDP 50000 -> 10.0.0.2:8620, length 104.
std::vector<std::byte> complaint_packet() {
  std::vector<unsigned> bytes{0x45, 0, 0,  56,  0, 0, 0,    0,    64,   1,    0, 0,   192, 0,
                              2,    1, 10, 0,   0, 1, 11,   0,    0,    0,    0, 0,   0,   0,
                              0x45, 0, 0,  124, 0, 0, 0,    0,    1,    17,   0, 0,   10,  0,
                              0,    1, 10, 0,   0, 2, 0xc3, 0x50, 0x21, 0xac, 0, 104, 0,   0};
  std::vector<std::byte> out;
  for (const unsigned byte : bytes) out.push_back(static_cast<std::byte>(byte));
  return out;
}

TEST_CASE("complaints are read from eight quoted bytes, and from nothing less") {
  const std::vector<std::byte> packet = complaint_packet();
  const auto complaint = read_complaint(packet);
  REQUIRE(complaint.has_value());
  CHECK(complaint->kind == port::Complaint::Kind::ttl_exceeded);
  CHECK(complaint->from == 0xc0000201);
  CHECK(complaint->to == port::Endpoint{0x0a000002, 8620});
  CHECK(complaint->source_port == 50'000);
  CHECK(complaint->udp_length == 104);
  for (std::size_t size = 0; size < packet.size(); ++size)
    CHECK_FALSE(read_complaint(std::span(packet).first(size)).has_value());
  // Version, protocol, type, and again inside.
  for (const std::size_t at : {0u, 9u, 20u, 28u, 37u}) {
    std::vector<std::byte> bad = packet;
    bad[at] = std::byte{0x60};
    CHECK_FALSE(read_complaint(bad).has_value());
  }
}

}  // namespace
}  // namespace weft::observe::probe
