#include "adapt/lab/injector.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "adapt/lab/fault_test_net.hpp"
#include "base/test_skip.hpp"

namespace weft::adapt::lab {
namespace {

using testing::exchange;
using testing::Heard;
using testing::is_about;
using testing::nearest_to;
using testing::TestNet;

const std::vector<std::string> a0{"a0"};

void add(const TestNet& net, const FilterSpec& spec, const std::string& table = "weft_t") {
  const auto added = add_filter(net.a(), table, a0, spec);
  REQUIRE_MESSAGE(added.has_value(), (added ? "" : added.error().text()));
}

std::uint64_t hit(const TestNet& net, const std::string& table = "weft_t") {
  const auto count = filter_count(net.a(), table);
  REQUIRE_MESSAGE(count.has_value(), (count ? "" : count.error().text()));
  return count->packets;
}

// Five standard deviations of a binomial count.
double five_sigma(double n, double p) { return 5 * std::sqrt(n * p * (1 - p)) + 1; }

TEST_CASE("the text of a filter") {
  const std::string all = filter_table("weft_f1", a0, {});
  CHECK(all.find("table netdev weft_f1") == 0);
  CHECK(all.find("devices = { \"a0\" }") != std::string::npos);
  CHECK(all.find("numgen") == std::string::npos);  // everything is lost
  CHECK(all.find("ingress") == std::string::npos);
  const std::vector<std::string> two{"a0", "a1"};
  const std::string some = filter_table(
      "x", two,
      {.directions = FilterSpec::Directions::both, .share = 1e-6, .bucket = TupleBucket{3, 64}});
  CHECK(some.find("{ \"a0\", \"a1\" }") != std::string::npos);
  CHECK(some.find("mod 1000000000 < 1000 ") != std::string::npos);
  CHECK(some.find("mod 64 seed") != std::string::npos);
  CHECK(some.find("hook ingress") != std::string::npos);
  CHECK(some.find("ip6 saddr") != std::string::npos);
}

TEST_SUITE_BEGIN("needs namespaces");

TEST_CASE("silent loss: one way, at its rate, counted exactly, gone without a trace") {
  WEFT_TEST_NET(net);
  const std::string before = TestNet::kernel_state(net.a());
  const std::uint64_t drops = TestNet::drops(net.a());
  for (const double share : {0.01, 0.3}) {
    add(net, {.share = share});
    constexpr std::uint32_t n = 20'000;
    const Heard there = exchange(net, {.count = n, .flows = 16, .gap_us = 10});
    const double lost = n - there.total();
    MESSAGE("rate ", share, ": lost ", lost, " of 20000, counter ", hit(net));
    CHECK(lost == static_cast<double>(hit(net)));
    CHECK(std::abs(lost - n * share) < five_sigma(n, share));
    CHECK(exchange(net, {.reverse = true, .count = 2'000}).total() == 2'000);
    CHECK(TestNet::drops(net.a()) == drops);  // silent
    REQUIRE(remove_filter(net.a(), "weft_t").has_value());
  }
  CHECK(TestNet::kernel_state(net.a()) == before);
  CHECK(exchange(net, {.count = 1'000}).total() == 1'000);
}

TEST_CASE("bucket loss hits all of a flow or nothing, as many flows as buckets") {
  WEFT_TEST_NET(net);
  add(net, {.bucket = TupleBucket{16, 64}, .seed = 5});
  constexpr std::uint32_t flows = 256;
  const Heard heard = exchange(net, {.count = flows * 20, .flows = flows, .gap_us = 10});
  std::uint32_t dead = 0;
  for (const std::uint32_t count : heard.by_flow) {
    CHECK((count == 0 || count == 20));
    dead += count == 0 ? 1 : 0;
  }
  MESSAGE("16 of 64 buckets: ", dead, " of 256 flows dead");
  CHECK(std::abs(dead - 64.0) < five_sigma(flows, 0.25));
  CHECK(hit(net) == dead * 20);
  // The same seed strikes the same flows, another one others.
  REQUIRE(remove_filter(net.a(), "weft_t").has_value());
  add(net, {.bucket = TupleBucket{16, 64}, .seed = 5});
  CHECK(exchange(net, {.count = flows * 20, .flows = flows, .gap_us = 10}).by_flow ==
        heard.by_flow);
  REQUIRE(remove_filter(net.a(), "weft_t").has_value());
  add(net, {.bucket = TupleBucket{16, 64}, .seed = 6});
  CHECK(exchange(net, {.count = flows * 20, .flows = flows, .gap_us = 10}).by_flow !=
        heard.by_flow);
}

TEST_CASE("loss of one class leaves the others alone") {
  WEFT_TEST_NET(net);
  add(net, {.dscp = 46});
  CHECK(exchange(net, {.count = 200, .tos = 46 << 2}).total() == 0);
  CHECK(exchange(net, {.count = 200, .tos = 0}).total() == 200);
  CHECK(exchange(net, {.count = 200, .tos = 10 << 2}).total() == 200);
  CHECK(hit(net) == 200);
}

TEST_CASE("CE marking: ECT only, at its rate, nothing lost") {
  WEFT_TEST_NET(net);
  add(net, {.action = FilterSpec::Action::mark_ce, .share = 0.5});
  const Heard ect = exchange(net, {.count = 4'000, .gap_us = 10, .tos = 2});
  CHECK(ect.total() == 4'000);
  CHECK(ect.ce == hit(net));
  CHECK(std::abs(ect.ce - 2'000.0) < five_sigma(4'000, 0.5));
  const Heard plain = exchange(net, {.count = 500, .gap_us = 10});
  CHECK(plain.total() == 500);
  CHECK(plain.ce == 0);
}

TEST_CASE("a dead link passes nothing either way and keeps its carrier") {
  WEFT_TEST_NET(net);
  const bool carrier = TestNet::links(net.a()).back().carrier;
  add(net, {.directions = FilterSpec::Directions::both});
  CHECK(exchange(net, {.count = 100}).total() == 0);
  CHECK(exchange(net, {.reverse = true, .count = 100}).total() == 0);
  CHECK(TestNet::links(net.a()).back().carrier == carrier);
  CHECK(hit(net) == 200);
}

TEST_CASE("filters stack, and each is removed alone") {
  WEFT_TEST_NET(net);
  add(net, {.share = 0.5, .dscp = 46}, "weft_1");
  const std::string one = TestNet::kernel_state(net.a());
  add(net, {.dscp = 10}, "weft_2");
  CHECK_FALSE(add_filter(net.a(), "weft_2", a0, {}).has_value());  // never two faults in one table
  CHECK(exchange(net, {.count = 100, .tos = 10 << 2}).total() == 0);
  REQUIRE(remove_filter(net.a(), "weft_2").has_value());
  CHECK(TestNet::kernel_state(net.a()) == one);
  CHECK(remove_filter(net.a(), "weft_2").has_value());  // again: no failure
  CHECK_FALSE(filter_count(net.a(), "weft_2").has_value());
  CHECK(exchange(net, {.count = 100, .tos = 10 << 2}).total() == 100);
}

TEST_CASE("a rate limit shapes, drops what its queue cannot hold, and goes" *
          doctest::test_suite("needs tbf")) {
  WEFT_TEST_NET(net);
  const std::string before = TestNet::kernel_state(net.a());
  const auto limited = add_rate_limit(net.a(), "a0", 1, {40'000'000}, {4 << 20});
  if (!limited && limited.error().code == Errc::unsupported) {
    skip_test(limited.error().text());
    return;
  }
  REQUIRE_MESSAGE(limited.has_value(), (limited ? "" : limited.error().text()));
  // 1,000 frames of 1,042 bytes at 40 Mbit/s: 208 ms.
  const double seconds =
      nearest_to(0.208, 0.05, net, {.count = 1'000, .bytes = 1'000, .linger_ms = 2'000},
                 [](const Heard& heard) {
                   CHECK(heard.total() == 1'000);
                   return heard.seconds();
                 });
  MESSAGE("40 Mbit/s: ", seconds, " s for 1000 frames of 1042 bytes");
  CHECK_MESSAGE(is_about(seconds, 0.208, 0.05), seconds);
  const auto twice = add_rate_limit(net.a(), "a0", 1, {10'000'000}, {1 << 20});
  REQUIRE_FALSE(twice.has_value());
  CHECK(twice.error().code == Errc::infeasible);
  REQUIRE(remove_rate_limit(net.a(), "a0", 2).has_value());  // another's: no
  CHECK(rate_limit_drops(net.a(), "a0", 1).has_value());
  REQUIRE(remove_rate_limit(net.a(), "a0", 1).has_value());
  CHECK(TestNet::kernel_state(net.a()) == before);
  REQUIRE(remove_rate_limit(net.a(), "a0", 1).has_value());
  REQUIRE(add_rate_limit(net.a(), "a0", 1, {40'000'000}, {100'000}).has_value());
  const Heard rest = exchange(net, {.count = 1'000, .bytes = 1'000, .linger_ms = 2'000});
  CHECK(rest.total() + rate_limit_drops(net.a(), "a0", 1).value_or(0) == 1'000);
  CHECK(rest.total() < 500);
  CHECK(add_rate_limit(net.a(), "a0", 1, {400'000'000'000}, {1 << 20}).error().code ==
        Errc::unsupported);
}

TEST_CASE("links, black holes and ICMP limits go in and out") {
  WEFT_TEST_NET(net);
  const auto carrier = [&] { return TestNet::kernel_state(net.b()); };
  REQUIRE(set_link(net.a(), "a0", AdminState::down).has_value());
  CHECK(carrier().find("b0 up no-carrier") != std::string::npos);
  REQUIRE(set_link(net.a(), "a0", AdminState::up).has_value());
  CHECK(carrier().find("b0 up carrier") != std::string::npos);
  CHECK_FALSE(set_link(net.a(), "nowhere", AdminState::down).has_value());

  const std::string before = TestNet::kernel_state(net.a());
  REQUIRE(add_blackhole(net.a(), TestNet::address_b, 32).has_value());
  CHECK(exchange(net, {.count = 20}).total() == 0);
  CHECK_FALSE(add_blackhole(net.a(), TestNet::address_b, 32).has_value());
  REQUIRE(remove_blackhole(net.a(), TestNet::address_b, 32).has_value());
  REQUIRE(remove_blackhole(net.a(), TestNet::address_b, 32).has_value());
  CHECK(TestNet::kernel_state(net.a()) == before);

  const auto limit = icmp_limit(net.a());
  REQUIRE(limit.has_value());
  REQUIRE(set_icmp_limit(net.a(), {"0", "20"}).has_value());
  CHECK(icmp_limit(net.a())->interval == "20");
  REQUIRE(set_icmp_limit(net.a(), *limit).has_value());
  CHECK(icmp_limit(net.a())->mask == limit->mask);
}

TEST_SUITE_END();

TEST_CASE("a namespace that is not there is a clear error") {
  const auto none = add_filter("weft-no-such-namespace", "weft_t", a0, {});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().text().find("weft-no-such-namespace") != std::string::npos);
}

}  // namespace
}  // namespace weft::adapt::lab
