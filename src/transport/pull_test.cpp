#include "transport/pull.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "base/rng.hpp"

namespace weft::transport {
namespace {

constexpr Bytes payload = 4096_B;
constexpr Bytes on_wire = 4160_B;

const PullParameters at_400g = pull_parameters(400_Gbps, payload, on_wire);

TEST_CASE("credits come a quantum per interval, in turn") {
  const PullParameters p = at_400g;
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
  const PullParameters p = at_400g;
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
    const PullParameters p = at_400g;
    const std::uint64_t first_window = rng.below(20'000);
    std::vector<PullEntry> table(1 + rng.below(8));
    std::vector<PullSender> senders(table.size(), PullSender(first_window));
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
      REQUIRE(sender.credit() <= first_window);
    }
  }
}

// n senders, constant round trip, everything meets at the receiver's link. The queue there is at
// most what was sent unasked, and the shares are equal.
TEST_CASE("incast: no overrun after the first windows, equal shares") {
  for (const std::size_t n : {1u, 4u, 64u}) {
    for (const std::uint64_t first : {0ull, 40'960ull}) {
      CAPTURE(n);
      CAPTURE(first);
      const PullParameters p = at_400g;
      constexpr Ps rtt = 12'000'000;
      std::vector<PullEntry> table(n);
      std::vector<PullSender> senders(n, PullSender(first));
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

TEST_CASE("a receiver's rate falls with what is trimmed, to what the core takes, and comes back") {
  constexpr Ps rtt = 12'000'000, interval = 900'000;
  using Met = CreditRate::Met;
  CreditRate rate(rtt, 4, 1);
  CHECK(rate.stretched(interval, 0) == interval);
  // One packet of ten: by 0.1 each time that it is judged, once in 1.125 to 1.875 round trips.
  Ps now = 0;
  std::vector<Ps> seen{interval};
  for (; now < 100 * rtt; now += rtt / 100) {
    rate.on_packet(now / (rtt / 100) % 10 == 0 ? Met::trim : Met::nothing, now);
    if (const Ps paced = rate.stretched(interval, now); paced != seen.back()) seen.push_back(paced);
  }
  REQUIRE(seen.size() == 9);  // 1 to 0.3, and the least
  for (std::size_t i = 0; i < 8; ++i) {
    const double share = static_cast<double>(interval) / static_cast<double>(seen[i]);
    CHECK(std::abs(share - (1 - 0.1 * static_cast<double>(i))) < 0.01);
  }
  CHECK(seen.back() == interval * 4 * 10 / 9);  // 0.9 of a quarter
  // What the last switch trims is no business of the core, nor are a few marks.
  CreditRate other(rtt, 4, 2);
  for (now = 0; now < 20 * rtt; now += rtt / 10) {
    other.on_packet(now / (rtt / 10) % 4 == 0 ? Met::mark : Met::nothing, now);
    other.on_packet(Met::last_trim, now);
  }
  CHECK(other.stretched(interval, now) == interval);
  // Marks above three tenths: rate x (1 - (share - 0.3) / 2).
  for (; now < 40 * rtt; now += rtt / 10) other.on_packet(Met::mark, now);
  CHECK(other.stretched(interval, now) > interval);
  // Without anything of the kind it doubles its steps.
  CHECK(rate.stretched(interval, 100 * rtt) > 4 * interval);
  CHECK(rate.stretched(interval, 112 * rtt) == interval);
  CHECK(rate.stretched(interval, 1'000'000'000 * rtt) == interval);  // at once
}

// Two receivers share a link of a fourth of their lines, before which a round trip's packets wait.
TEST_CASE("receivers on an oversubscribed fabric fill it and trim little") {
  constexpr Ps rtt = 12'000'000;
  const Ps interval = at_400g.interval;
  constexpr std::size_t room = 144;
  const Ps service = 2 * interval;  // of a packet, of which two come in an interval: 4:1
  std::vector<CreditRate> rates{{rtt, 4, 1}, {rtt, 4, 2}};
  std::array<Ps, 2> due{};
  std::deque<std::size_t> queue;
  std::multimap<Ps, std::pair<std::size_t, CreditRate::Met>> under_way;
  Rng rng(3);
  std::uint64_t sent = 0, trimmed = 0, served = 0;
  for (Ps now = 0; now < 400 * rtt; now += interval / 4) {
    for (; !under_way.empty() && under_way.begin()->first <= now;
         under_way.erase(under_way.begin()))
      rates[under_way.begin()->second.first].on_packet(under_way.begin()->second.second, now);
    for (std::size_t i = 0; i < 2; ++i) {
      if (now < due[i]) continue;
      due[i] = now + rates[i].stretched(interval, now);
      ++sent;
      const double share = (static_cast<double>(queue.size()) / room - 0.2) / 0.6;
      const auto met = queue.size() >= room ? CreditRate::Met::trim
                       : static_cast<double>(rng.below(1000)) < 1000 * share
                           ? CreditRate::Met::mark
                           : CreditRate::Met::nothing;
      trimmed += met == CreditRate::Met::trim ? 1 : 0;
      if (met != CreditRate::Met::trim) queue.push_back(i);
      under_way.emplace(now + rtt, std::pair{i, met});
    }
    if (now / service != (now + interval / 4) / service && !queue.empty()) {
      queue.pop_front();
      ++served;
    }
  }
  CHECK(static_cast<double>(served) > 0.95 * 400 * rtt / static_cast<double>(service));
  CHECK(static_cast<double>(trimmed) < 0.1 * static_cast<double>(sent));  // else 0.75
}

TEST_CASE("an idle sender may start unasked again, one with bytes left may not") {
  PullSender sender(8192);
  CHECK(sender.on_bytes(10'000) == 10'000 - 8192);
  sender.on_sent(8192);
  sender.on_idle();
  CHECK(sender.credit() == 0);
  sender.on_credit(10'000 - 8192);
  sender.on_sent(10'000 - 8192);
  sender.on_idle();
  CHECK(sender.credit() == 8192);
  CHECK(sender.on_bytes(4096) == 0);
}

}  // namespace
}  // namespace weft::transport
