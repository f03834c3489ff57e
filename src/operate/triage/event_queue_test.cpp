#include "operate/triage/event_queue.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>

#include "base/rng.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::triage {
namespace {

Evidence at(double s, std::uint64_t serial = 0) {
  Evidence out;
  out.at = static_cast<std::int64_t>(s * 1e9);
  out.begin = out.at;
  out.content = serial;
  out.serial = serial;
  out.part = PartId(0);
  return out;
}

std::vector<std::int64_t> drain(EventQueue& queue) {
  std::vector<std::int64_t> out;
  while (const auto* second = queue.next())
    for (const Evidence& e : *second) out.push_back(e.at);
  return out;
}

TEST_CASE("whatever the order of arrival within the lateness, order of time comes out") {
  Rng rng(7);
  EventQueue queue(30 * ns_per_s);
  std::vector<std::pair<double, double>> arrival;  // when, what
  for (int i = 0; i < 5000; ++i) {
    const double t = 1000 + 0.1 * i;
    arrival.emplace_back(t + 29 * rng.uniform(), t);
  }
  std::ranges::sort(arrival);
  std::vector<std::int64_t> out;
  for (const auto& [when, t] : arrival) {
    queue.push(at(t));
    for (const std::int64_t ns : drain(queue)) out.push_back(ns);
  }
  CHECK(out.size() > 4000);  // it does not wait for the end
  queue.close();
  for (const std::int64_t ns : drain(queue)) out.push_back(ns);
  CHECK(out.size() == 5000);
  CHECK(std::ranges::is_sorted(out));
  CHECK(queue.counts().late == 0);
}

TEST_CASE("what comes later than that is counted and left out") {
  EventQueue queue(10 * ns_per_s);
  for (int i = 0; i < 256; ++i) queue.push(at(100 + i));
  drain(queue);
  queue.push(at(150));
  CHECK(queue.counts().late == 1);
}

TEST_CASE("clocks that run ahead do not make everybody else late") {
  EventQueue queue(10 * ns_per_s);
  std::size_t out = 0;
  for (int i = 0; i < 2000; ++i) {
    queue.push(at(i % 10 == 3 ? 1e6 + i : 100 + 0.5 * i));
    out += drain(queue).size();
  }
  CHECK(queue.counts().late == 0);
  CHECK(out > 1500);
  queue.close();
  CHECK(out + drain(queue).size() == 2000);
}

TEST_CASE("empty stretches of centuries cost nothing") {
  EventQueue queue(30 * ns_per_s);
  for (const double t : {-9e9, -5.0, 0.0, 9e9}) queue.push(at(t));
  queue.close();
  CHECK(drain(queue).size() == 4);
}

TEST_CASE("a clock that can be believed lets go without further evidence") {
  EventQueue queue(30 * ns_per_s);
  queue.push(at(100));
  CHECK(drain(queue).empty());
  CHECK(queue.watermark_ns() == std::numeric_limits<std::int64_t>::min());
  queue.advance(131 * ns_per_s);
  CHECK(drain(queue).size() == 1);
  CHECK(queue.watermark_ns() == 101 * ns_per_s);
  CHECK(queue.oldest_serial() == UINT64_MAX);
}

TEST_CASE("one second is sorted by content") {
  EventQueue a(0), b(0);
  for (const std::uint64_t serial : {3u, 1u, 2u}) a.push(at(5, serial));
  for (const std::uint64_t serial : {2u, 3u, 1u}) b.push(at(5, serial));
  a.close();
  b.close();
  const auto *first = a.next(), *second = b.next();
  REQUIRE((first != nullptr && second != nullptr));
  for (std::size_t i = 0; i < 3; ++i) CHECK((*first)[i].serial == (*second)[i].serial);
}

}  // namespace
}  // namespace weft::operate::triage
