// Packet numbers: messages of more packets than 32 bits count, and numbers that wrap in mid-run.
#include "engine/packet/test_kit.hpp"
#include "engine/packet/world.hpp"

namespace weft::engine::packet::testing {
namespace {

bool same_times(const PacketRunResult& a, const PacketRunResult& b) {
  return std::ranges::equal(a.messages, b.messages, [](const MessageEnd& x, const MessageEnd& y) {
    return x.start == y.start && x.arrived == y.arrived && x.end == y.end;
  });
}

TEST_CASE("numbers that wrap in mid-run change nothing") {
  const Fabric fabric = star(equal(4));
  Load load = incast(fabric, 3, 300 * payload);
  for (std::uint32_t c = 0; c < 3; ++c)
    load.drafts.push_back({.connection = c, .bytes = 200 * payload + 17});
  for (const Reliability reliability : {Reliability::goback_n, Reliability::selective}) {
    CAPTURE(static_cast<int>(reliability));
    Options options;
    options.reliability = reliability;
    options.ack_timeout = 100_us;
    options.window = packets_of(60);
    options.buffers[""].per_port = packets_of(100);
    const PacketRunResult from_0 = run(fabric, load, options);
    CHECK(from_0.complete);
    CHECK(from_0.counters.drops > 0);
    CHECK(from_0.counters.retransmissions > 0);
    for (const std::uint32_t first :
         {UINT32_MAX, UINT32_MAX - 100, (1u << 24) - 50, (1u << 31) - 77}) {
      CAPTURE(first);
      options.first_psn = first;
      const PacketRunResult other = run(fabric, load, options);
      CHECK(same_times(other, from_0));
      CHECK(other.counters.retransmissions == from_0.counters.retransmissions);
    }
  }
}

TEST_CASE("CTS: slots do not depend on where numbers begin") {
  const Fabric fabric = star(equal(3));
  const Load load = incast(fabric, 2, 1000 * payload);
  Options options;
  options.admission = Admission::cts;
  options.cts.channel_buffer = Bytes{std::int64_t{64} * 4096};
  const PacketRunResult from_0 = run(fabric, load, options);
  CHECK(from_0.complete);
  options.first_psn = UINT32_MAX - 300;
  CHECK(same_times(run(fabric, load, options), from_0));
}

TEST_CASE("a message of 2^32 packets and more goes at line rate, and is as long as it is") {
  const Fabric fabric = star(equal(2));
  constexpr std::uint64_t wrap = std::uint64_t{1} << 32;
  for (const std::uint64_t packets : {wrap, wrap + 1, 4'882'812'500ul, 3 * wrap - 1}) {
    CAPTURE(packets);
    for (const std::uint32_t first : {0u, UINT32_MAX - 100}) {
      Options options;
      options.end = 100 * us;
      options.first_psn = first;
      const PacketRunResult result =
          run(fabric, Load{}.add(fabric, 0, 1, packets * payload), options);
      CHECK_FALSE(result.complete);
      CHECK(result.messages[0].end == never);
      REQUIRE(result.unfinished.size() == 1);
      CHECK(result.unfinished[0].find(" of " + std::to_string(packets) + " packets") !=
            std::string::npos);
      CHECK(result.links[link(fabric, "nic:0->s:0").index()].packets == 100 * us / 83'200 + 1);
    }
  }
}

TEST_CASE("a receiver that grants credit hears of more packets than one request can say") {
  const Fabric fabric = star(equal(2));
  Options options;
  options.admission = Admission::pull;
  options.reliability = Reliability::selective;
  options.end = 300 * us;
  const std::uint64_t packets = (std::uint64_t{1} << 24) + 200;
  const PacketRunResult result = run(fabric, Load{}.add(fabric, 0, 1, packets * payload), options);
  CHECK(result.links[link(fabric, "nic:0->s:0").index()].packets > 3000);
}

TEST_CASE("a queue of more than 4 GiB is an error, and no small queue") {
  const Fabric fabric = chain({400_Gbps, 10_Gbps});
  Options options;
  options.wire.mtu = 60'000_B;
  options.end = 200'000 * us;
  for (const std::uint64_t bytes : {4'300'000'000ul, 5'000'000'000ul}) {
    const auto result =
        try_run(fabric, Load{}.add(fabric, 0, 1, bytes), Setting{.options = options});
    if (bytes < 4'400'000'000) {  // a fortieth has left before the last comes
      REQUIRE(result.has_value());
      CHECK(result->links[link(fabric, "s:0->nic:1").index()].queue_max > 4'150'000'000);
    } else {
      REQUIRE_FALSE(result.has_value());
      CHECK(result.error().text().find("more than 4 GiB are queued for s:0->nic:1") !=
            std::string::npos);
    }
  }
}

TEST_CASE("a message of more packets than a receiver can count is refused") {
  const Fabric fabric = star(equal(2));
  const auto refused =
      try_run(fabric, Load{}.add(fabric, 0, 1, (message_packets_max + 1) * payload), Setting{});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text().find("needs more than 140737488355328 packets of 4096 B") !=
        std::string::npos);
}

}  // namespace
}  // namespace weft::engine::packet::testing
