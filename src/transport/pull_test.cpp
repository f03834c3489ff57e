#include "transport/pull.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <vector>

#include "base/rng.hpp"

namespace weft::transport {
namespace {

constexpr Bytes payload = 4096_B;
constexpr Bytes on_wire = 4160_B;

PullParameters parameters(Bytes first_window) {
  return pull_parameters(400_Gbps, payload, on_wire, first_window);
}

TEST_CASE("credits come a quantum per interval, in turn") {
  const PullParameters p = parameters(0_B);
  CHECK(p.interval == 83'200);
  std::vector<PullEntry> table(3);
  PullPacer pacer;
  CHECK(pacer.due() == never);
  for (const std::uint32_t connection : {2u, 0u, 1u})
    pacer.on_demand(table, connection, 2 * 4096 + 100, 1000);
  std::vector<std::uint32_t> order;
  std::vector<std::uint64_t> bytes;
  Ps now = 1000;
  while (pacer.due() != never) {
    CHECK(pacer.due() >= now);
    now = pacer.due();
    const PullGrant grant = pacer.next(p, table, now);
    order.push_back(grant.connection);
    bytes.push_back(grant.bytes);
  }
  CHECK(order == std::vector<std::uint32_t>{2, 0, 1, 2, 0, 1, 2, 0, 1});
  CHECK(std::ranges::count(bytes, 4096) == 6);
  CHECK(std::ranges::count(bytes, 100) == 3);
  // 6 quanta and two parts of 100 bytes (83,200 x 100 / 4096 = 2,031.25) come before the last.
  CHECK(now == 1000 + 6 * 83'200 + 2 * 2'032);
}

TEST_CASE("a connection that comes back waits for its turn, a pacer for the line") {
  const PullParameters p = parameters(0_B);
  std::vector<PullEntry> table(2);
  PullPacer pacer;
  pacer.on_demand(table, 0, 4096, 0);
  CHECK(pacer.next(p, table, 0).connection == 0);
  CHECK(pacer.due() == never);
  pacer.on_demand(table, 1, 4096, 10);
  CHECK(pacer.due() == 83'200);  // not at once: the line is busy with what connection 0 sends
  pacer.on_demand(table, 0, 4096, 20);
  pacer.on_demand(table, 1, 0, 30);
  CHECK(pacer.next(p, table, 83'200).connection == 1);
  CHECK(pacer.next(p, table, 166'400).connection == 0);
  CHECK(pacer.due() == never);
}

// Senders with messages of random lengths over a network of constant delay: everybody's last byte
// is sent, at most one packet too little credit is ever left over, and no more is granted than the
// line takes.
TEST_CASE("all is sent, in packets of any size") {
  Rng rng(7);
  for (int run = 0; run < 200; ++run) {
    const PullParameters p = parameters(Bytes{static_cast<std::int64_t>(rng.below(20'000))});
    std::vector<PullEntry> table(1 + rng.below(8));
    std::vector<PullSender> senders(table.size(), PullSender(p));
    PullPacer pacer;
    std::uint64_t granted = 0;
    const auto send_all = [&](PullSender& sender) {
      for (;;) {
        const std::uint64_t packet = std::min<std::uint64_t>(sender.backlog(), 4096);
        if (packet == 0 || !sender.may_send(packet)) return;
        sender.on_sent(packet);
      }
    };
    for (std::uint32_t i = 0; i < senders.size(); ++i) {
      for (int message = 0; message < 3; ++message)
        pacer.on_demand(table, i, senders[i].on_bytes(rng.below(50'000)), 0);
      send_all(senders[i]);
    }
    Ps now = 0;
    while (pacer.due() != never) {
      now = pacer.due();
      const PullGrant grant = pacer.next(p, table, now);
      // Credits lie below the line's rate at all times.
      REQUIRE(granted * p.interval <= now * p.quantum);
      granted += grant.bytes;
      senders[grant.connection].on_credit(grant.bytes);
      send_all(senders[grant.connection]);
    }
    for (const PullSender& sender : senders) {
      REQUIRE(sender.backlog() == 0);
      REQUIRE(sender.credit() <= p.first_window);
    }
  }
}

// n senders, constant round trip, everything meets at the receiver's link. The queue there is at
// most what was sent unasked, and the shares are equal.
TEST_CASE("incast: no overrun after the first windows, equal shares") {
  for (const std::size_t n : {1u, 4u, 64u}) {
    for (const std::int64_t first : {0, 40'960}) {
      CAPTURE(n);
      CAPTURE(first);
      const PullParameters p = parameters(Bytes{first});
      constexpr Ps rtt = 12'000'000;
      std::vector<PullEntry> table(n);
      std::vector<PullSender> senders(n, PullSender(p));
      std::vector<std::uint64_t> received(n);
      PullPacer pacer;
      Ps link_free = 0;
      double queue_max = 0;
      const auto arrive = [&](std::uint32_t sender, Ps at) {
        while (senders[sender].backlog() > 0 && senders[sender].may_send(4096)) {
          senders[sender].on_sent(4096);
          received[sender] += 4096;
          link_free = std::max(link_free, at) + p.interval;
          queue_max = std::max(
              queue_max, static_cast<double>(link_free - at) / static_cast<double>(p.interval));
        }
      };
      for (std::uint32_t i = 0; i < n; ++i) {
        pacer.on_demand(table, i, senders[i].on_bytes(4'096'000), rtt);
        arrive(i, rtt);
      }
      const double unasked = static_cast<double>(first) / 4096 * static_cast<double>(n);
      Ps now = rtt;
      for (std::size_t grants = 0; grants < 500 * n; ++grants) {
        now = pacer.due();
        const PullGrant grant = pacer.next(p, table, now);
        senders[grant.connection].on_credit(grant.bytes);
        arrive(grant.connection, now + rtt);
      }
      CHECK(queue_max <= unasked + 1);
      const auto [least, most] = std::ranges::minmax_element(received);
      CHECK(*most - *least <= 4096);
      const double total =
          static_cast<double>(std::accumulate(received.begin(), received.end(), 0ull));
      CHECK(total >= 500.0 * 4096 * static_cast<double>(n));
      CHECK(now == rtt + (500 * n - 1) * p.interval);  // the line is kept busy
    }
  }
}

TEST_CASE("an idle sender may start unasked again, one with bytes left may not") {
  const PullParameters p = parameters(8192_B);
  PullSender sender(p);
  CHECK(sender.on_bytes(10'000) == 10'000 - 8192);
  sender.on_sent(8192);
  sender.on_idle(p);
  CHECK(sender.credit() == 0);
  sender.on_credit(10'000 - 8192);
  sender.on_sent(10'000 - 8192);
  sender.on_idle(p);
  CHECK(sender.credit() == 8192);
  CHECK(sender.on_bytes(4096) == 0);
}

}  // namespace
}  // namespace weft::transport
