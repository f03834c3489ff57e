#include "observe/probe/responder.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "observe/probe/test_net.hpp"

namespace weft::observe::probe {
namespace {

using testing::key;

constexpr Timestamp wall{1'700'000'000 * ns_per_s};
constexpr port::Instant start{5 * ns_per_s};

port::Incoming datagram(const Message& message, std::uint32_t address = 1) {
  port::Incoming in;
  WireBytes bytes;
  encode(message, key, bytes);
  in.from = {address, 50'000};
  in.size = wire_bytes;
  std::ranges::copy(bytes, in.bytes.begin());
  return in;
}
Message request(std::uint64_t sequence, std::uint32_t flow = 0) {
  return {.dscp = 26,
          .session = 9,
          .flow = flow,
          .sequence = sequence,
          .probe = sequence,
          .sent = wall.ns};
}
Verdict take(Responder& responder, const Message& message, std::uint32_t address = 1) {
  Message reply;
  return responder.take(datagram(message, address), start, wall, reply);
}

TEST_CASE("answers repeat the request and count the flow's numbers") {
  Responder responder({.key = key});
  Message reply;
  port::Incoming in = datagram(request(1));
  in.dscp = 10;
  in.dropped = 3;
  in.when = start;
  REQUIRE(responder.take(in, start, wall, reply) == Verdict::answered);
  Responder::stamp(reply, in, start + 700, wall);
  CHECK(reply.kind == Kind::reply);
  CHECK(reply.dscp == 26);
  CHECK(reply.dscp_seen == 10);
  CHECK(reply.overflows == 3);
  CHECK(reply.responded - reply.received == 700);
  in = datagram(request(4));
  REQUIRE(responder.take(in, start, wall, reply) == Verdict::answered);
  CHECK(reply.highest == 4);
  CHECK(reply.count == 2);
}

TEST_CASE("what is no request is counted and not answered") {
  Responder responder({.key = key});
  Message reply;
  port::Incoming in = datagram(request(1));
  in.size = wire_bytes - 1;
  CHECK(responder.take(in, start, wall, reply) == Verdict::truncated);
  in.size = 9'000;
  CHECK(responder.take(in, start, wall, reply) == Verdict::oversized);
  in = datagram(request(1));
  WireBytes forged;
  encode(request(1), Key{1, 1}, forged);
  std::ranges::copy(forged, in.bytes.begin());
  CHECK(responder.take(in, start, wall, reply) == Verdict::forged);
  in.bytes[40] ^= std::byte{1};
  CHECK(responder.take(in, start, wall, reply) == Verdict::damaged);
  in.bytes[0] ^= std::byte{1};
  CHECK(responder.take(in, start, wall, reply) == Verdict::foreign);
  Message own = request(1);
  own.kind = Kind::reply;  // two responders must not play ball
  CHECK(take(responder, own) == Verdict::reply);
  for (const Verdict verdict : {Verdict::truncated, Verdict::oversized, Verdict::forged,
                                Verdict::damaged, Verdict::foreign, Verdict::reply})
    CHECK(responder.count(verdict) == 1);
  CHECK(responder.count(Verdict::answered) == 0);
}

TEST_CASE("damaged requests are counted for the flow that they come from, and tell no other") {
  Responder responder({.key = key});
  const auto damaged = [&](std::uint32_t flow, std::uint32_t address) {
    port::Incoming in = datagram(request(2, flow), address);
    in.bytes[130] ^= std::byte{1};
    Message reply;
    CHECK(responder.take(in, start, wall, reply) == Verdict::damaged);
  };
  const auto told = [&](std::uint64_t sequence, std::uint32_t flow) {
    Message reply;
    CHECK(responder.take(datagram(request(sequence, flow)), start, wall, reply) ==
          Verdict::answered);
    CHECK(reply.count == sequence);
    return reply.damaged;
  };
  damaged(0, 1);  // of a flow that nobody knows
  CHECK(told(1, 0) == 0);
  damaged(0, 1);
  damaged(0, 2);  // from elsewhere
  damaged(0, 1);
  CHECK(told(2, 0) == 2);
  CHECK(told(1, 1) == 0);
}

TEST_CASE("a flood of garbage is refused, all of it") {
  Responder responder({.key = key});
  Rng rng(3);
  Message reply;
  port::Incoming in;
  for (int i = 0; i < 100'000; ++i) {
    in.size = static_cast<std::uint32_t>(rng.below(port::datagram_bytes_max));
    for (std::size_t at = 0; at < 128; ++at) in.bytes[at] = static_cast<std::byte>(rng.next());
    if (i % 2 == 0) {  // as near to a request as one comes without the key
      WireBytes bytes;
      encode(request(1), Key{rng.next(), rng.next()}, bytes);
      std::ranges::copy(bytes, in.bytes.begin());
      in.size = wire_bytes;
    }
    const Verdict verdict = responder.take(in, start, wall, reply);
    REQUIRE(verdict != Verdict::answered);
    REQUIRE(verdict != Verdict::counted);
  }
  CHECK(responder.count(Verdict::forged) >= 50'000);
}

TEST_CASE("replays: the same number twice, too old a number, from another address") {
  Responder responder({.key = key});
  CHECK(take(responder, request(100)) == Verdict::answered);
  CHECK(take(responder, request(100)) == Verdict::replayed);
  CHECK(take(responder, request(99)) == Verdict::answered);  // overtaken on the way
  CHECK(take(responder, request(99)) == Verdict::replayed);
  CHECK(take(responder, request(36)) == Verdict::replayed);
  CHECK(take(responder, request(37)) == Verdict::answered);
  CHECK(take(responder, request(101), 2) == Verdict::replayed);
  CHECK(take(responder, request(101)) == Verdict::answered);
}

TEST_CASE("requests of another time are refused, where that is asked for") {
  for (const std::int64_t skew : {-61, -59, 59, 61}) {
    Message message = request(1);
    message.sent = wall.ns + skew * ns_per_s;
    Responder strict({.key = key}), lax({.key = key, .age_max_ns = 0});
    CHECK(take(strict, message) == (skew < -60  ? Verdict::stale
                                    : skew > 60 ? Verdict::future
                                                : Verdict::answered));
    CHECK(take(lax, message) == Verdict::answered);
  }
  Message message = request(1);
  message.sent = INT64_MIN;
  Responder responder({.key = key});
  CHECK(take(responder, message) != Verdict::answered);
}

TEST_CASE("a source that asks too often is answered at its rate") {
  Responder responder({.key = key, .source_rate = 1'000});
  std::uint64_t answered = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {  // 10 s at 10,000/s
    Message reply;
    const auto now = start + static_cast<std::int64_t>(i) * 100'000;
    answered += responder.take(datagram(request(i + 1)), now, wall, reply) == Verdict::answered;
  }
  CHECK(answered == approx(10'100).epsilon(0.001));
  CHECK(take(responder, request(1, 1), 2) == Verdict::answered);  // others are not held back
}

TEST_CASE("the table is bounded, and a forgotten flow is told from one that lost probes") {
  Responder responder({.key = key, .flows_max = 64});
  Message reply;
  CHECK(responder.take(datagram(request(1)), start, wall, reply) == Verdict::answered);
  const std::uint32_t generation = reply.generation;
  for (std::uint32_t flow = 1; flow < 2'000; ++flow) take(responder, request(1, flow));
  CHECK(responder.forgotten_flows() >= 1'900);
  CHECK(responder.take(datagram(request(2)), start, wall, reply) == Verdict::answered);
  CHECK(reply.count == 1);
  CHECK(reply.generation != generation);
}

TEST_CASE("one-way probes are counted and asked for") {
  Responder responder({.key = key});
  for (const std::uint64_t sequence : {1u, 2u, 4u, 5u}) {
    Message message = request(sequence);
    message.kind = Kind::one_way;
    CHECK(take(responder, message) == Verdict::counted);
  }
  Message ask = request(5), reply;
  ask.kind = Kind::ask;
  for (const std::uint32_t address : {1U, 1U, 2U}) {
    ++ask.probe;
    REQUIRE(responder.take(datagram(ask, address), start, wall, reply) == Verdict::answered);
    CHECK(reply.count == 4);
    CHECK(reply.sequence == 5);
  }
}

TEST_CASE("questions: replayed ones get no answer, and none changes what is counted") {
  Responder responder({.key = key, .flows_max = 8});
  Message probe = request(3);
  probe.kind = Kind::one_way;
  REQUIRE(take(responder, probe) == Verdict::counted);
  Message reply;
  Message ask = request(3);
  ask.kind = Kind::ask;
  for (ask.probe = 100; ask.probe < 300; ++ask.probe) {
    ask.flow = static_cast<std::uint32_t>(ask.probe % 3);  // mostly of flows that there are not
    REQUIRE(responder.take(datagram(ask), start, wall, reply) == Verdict::answered);
    CHECK(reply.count == (ask.flow == 0 ? 1 : 0));
    for (const std::uint32_t address : {1U, 2U})
      REQUIRE(take(responder, ask, address) == Verdict::replayed);
  }
  ask.probe = 100;
  CHECK(take(responder, ask) == Verdict::replayed);  // too old to tell
  CHECK(responder.forgotten_flows() == 0);
  ask.session += 1;
  CHECK(take(responder, ask) == Verdict::answered);
  probe.sequence = 4;
  CHECK(take(responder, probe) == Verdict::counted);
}

TEST_CASE("the sequence window against a set") {
  Rng rng(5);
  SequenceWindow window;
  std::vector<std::uint64_t> seen;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t near = window.highest > 80 ? window.highest - 80 : 1;
    const std::uint64_t number = near + rng.below(90);
    const bool fresh = std::ranges::find(seen, number) == seen.end();
    const bool in_reach = number + 64 > window.highest;
    REQUIRE(window.take(number) == (fresh && in_reach));
    if (fresh && in_reach) seen.push_back(number);
    if (seen.size() > 500) seen.erase(seen.begin(), seen.begin() + 200);
  }
}

}  // namespace
}  // namespace weft::observe::probe
