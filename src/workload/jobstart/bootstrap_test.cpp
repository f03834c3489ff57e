#include "workload/jobstart/bootstrap.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"

namespace weft::workload {
namespace {

// Times in microseconds that are easy to add up: an entry takes 1 us.
BootstrapModel round_model() {
  return {.exchanges = 2,
          .entry = Bytes{1000},
          .rate = {8'000'000'000},
          .message = 5_us,
          .root_service = 3_us,
          .store_service = 7_us};
}

// R = 10 us.
//   store     10 + 4 x 7
//   root      15 + 4 x 3 (reports)  + 4 x (10 + 3) (answers) + 5
//   connect   10
//   exchange  2 x 3 steps x (5 + 5 + 1)
TEST_CASE("bootstrap of four ranks, added up by hand") {
  const BootstrapTime t = bootstrap_time(round_model(), {.ranks = 4}, 10_us);
  CHECK(t.store_s == approx(38e-6).epsilon(1e-12));
  CHECK(t.root_s == approx(84e-6).epsilon(1e-12));
  CHECK(t.connect_s == approx(10e-6).epsilon(1e-12));
  CHECK(t.exchange_s == approx(66e-6).epsilon(1e-12));
  CHECK(t.total_s() == approx(198e-6).epsilon(1e-12));
}

TEST_CASE("several roots divide the root's work, the ring stays as long") {
  BootstrapModel model = round_model();
  const BootstrapTime one = bootstrap_time(model, {.ranks = 10}, 10_us);
  model.ranks_per_root = 4;  // 3 roots of 4, 4 and 2 ranks
  const BootstrapTime three = bootstrap_time(model, {.ranks = 10}, 10_us);
  CHECK(three.root_s == approx((15 + 5 * 3 + 4 * 13 + 5) * 1e-6).epsilon(1e-12));
  CHECK(one.root_s == approx((15 + 10 * 3 + 10 * 13 + 5) * 1e-6).epsilon(1e-12));
  CHECK(three.exchange_s == one.exchange_s);
  CHECK(three.store_s == one.store_s);
  model.ranks_per_root = 10;
  CHECK(bootstrap_time(model, {.ranks = 10}, 10_us).root_s == one.root_s);
}

TEST_CASE("both ways round takes half the steps, a tree the logarithm") {
  BootstrapModel model = round_model();
  const auto exchange = [&](BootstrapExchange how, std::uint64_t ranks) {
    model.exchange = how;
    return bootstrap_time(model, {.ranks = ranks}, 10_us).exchange_s * 1e6 / 2;
  };
  CHECK(exchange(BootstrapExchange::ring, 9) == approx(8 * 11));
  CHECK(exchange(BootstrapExchange::both_ways, 9) == approx(4 * 11));
  CHECK(exchange(BootstrapExchange::both_ways, 10) == approx(5 * 11));
  CHECK(exchange(BootstrapExchange::tree, 8) == approx(3 * 10 + 7));
  CHECK(exchange(BootstrapExchange::tree, 9) == approx(4 * 10 + 8));
  for (const BootstrapExchange how :
       {BootstrapExchange::ring, BootstrapExchange::both_ways, BootstrapExchange::tree})
    CHECK(exchange(how, 2) == approx(11));
}

// The rule behind "steps": who knows whom after each step, simulated for every size to 65.
TEST_CASE("steps suffice for all ranks to know all others, and one less does not") {
  const auto steps_until_known = [](BootstrapExchange how, std::size_t n) {
    std::vector<std::vector<bool>> knows(n, std::vector<bool>(n, false));
    for (std::size_t i = 0; i < n; ++i) knows[i][i] = true;
    const auto complete = [&] {
      return std::ranges::all_of(knows, [](const std::vector<bool>& row) {
        return std::ranges::all_of(row, [](bool known) { return known; });
      });
    };
    std::size_t steps = 0;
    for (; !complete(); ++steps) {
      const auto before = knows;
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t other = 0; other < n; ++other) {
          // Ring: all that the neighbour knew. Tree: from 2^step ranks on, as in Bruck's algorithm.
          const std::size_t from = how == BootstrapExchange::tree
                                       ? (i + (std::size_t{1} << steps)) % n
                                       : (i + n - 1) % n;
          if (before[from][other]) knows[i][other] = true;
          if (how == BootstrapExchange::both_ways && before[(i + 1) % n][other])
            knows[i][other] = true;
        }
    }
    return steps;
  };
  const BootstrapModel base{.exchanges = 1, .entry = Bytes{0}, .message = 1_us};
  for (const BootstrapExchange how :
       {BootstrapExchange::ring, BootstrapExchange::both_ways, BootstrapExchange::tree})
    for (std::size_t n = 2; n <= std::max<std::size_t>(test_effort(65), 17); ++n) {
      CAPTURE(n);
      BootstrapModel model = base;
      model.exchange = how;
      const double us = bootstrap_time(model, {.ranks = n}, {}).exchange_s * 1e6;
      CHECK(us == approx(static_cast<double>(steps_until_known(how, n))));
    }
}

TEST_CASE("one rank needs nobody; more ranks never take less") {
  const BootstrapModel model;
  CHECK(bootstrap_time(model, {.ranks = 1, .groups = 8}, 6_us).total_s() == 0);
  CHECK(bootstrap_time(model, {.ranks = 0}, 6_us).total_s() == 0);
  CHECK(bootstrap_time(model, {.ranks = 8, .groups = 0}, 6_us).total_s() == 0);
  double last = 0;
  for (std::uint64_t n = 2; n < 300; ++n) {
    const double now = bootstrap_time(model, {.ranks = n}, 6_us).total_s();
    CHECK(now > last);
    last = now;
  }
}

// The kinds of Llama 3 on 16,384 GPUs: world, TP 8, PP 16, DP 128. docs/frontend.md prints these.
TEST_CASE("job start at 16,384 ranks") {
  const std::array kinds{Communicators{16'384}, Communicators{8, 2'048}, Communicators{16, 1'024},
                         Communicators{128, 128}};
  BootstrapModel model;
  const BootstrapTime world = bootstrap_time(model, kinds[0], 6_us);
  CHECK(world.store_s == approx(0.327686));
  CHECK(world.root_s == approx(16'384 * 46e-6 + 12e-6));
  CHECK(world.exchange_s == approx(3 * 16'383 * 23.008e-6));
  const BootstrapTime job = job_bootstrap_time(model, kinds, 6_us);
  CHECK(job.store_s == approx(4 * (16'384 * 20e-6 + 6e-6)));
  MESSAGE("one root, ring: store " << job.store_s << " root " << job.root_s << " exchange "
                                   << job.exchange_s << " total " << job.total_s()
                                   << " s; world alone " << world.total_s() << " s");
  model.ranks_per_root = 128;
  model.exchange = BootstrapExchange::both_ways;
  const BootstrapTime fast = job_bootstrap_time(model, kinds, 6_us);
  MESSAGE("128 ranks per root, both ways: store " << fast.store_s << " root " << fast.root_s
                                                  << " exchange " << fast.exchange_s << " total "
                                                  << fast.total_s() << " s");
  CHECK(fast.total_s() < 0.7 * job.total_s());
  model.exchange = BootstrapExchange::tree;
  const BootstrapTime tree = job_bootstrap_time(model, kinds, 6_us);
  MESSAGE("128 ranks per root, tree: total " << tree.total_s() << " s");
  CHECK(tree.exchange_s < 0.01 * fast.exchange_s);
}

TEST_CASE("keys of a bootstrap section") {
  const auto read = [](std::string_view yaml, Errors& errors) {
    return read_bootstrap(*parse_yaml(yaml, "b.yaml"), errors);
  };
  Errors errors;
  const BootstrapModel model = read(
      "{ranks_per_root: 128, exchange: both_ways, exchanges: 2, entry: 200 B, rate: 25 Gbps, "
      "message: 10 us, root_service: 1 us, store_service: 0 s}",
      errors);
  CHECK(errors.empty());
  CHECK(model.ranks_per_root == 128);
  CHECK(model.exchange == BootstrapExchange::both_ways);
  CHECK(model.entry == 200_B);
  CHECK(model.rate == 25_Gbps);
  CHECK(model.store_service == Duration{});
  CHECK(read("null", errors).exchanges == 3);
  CHECK(errors.empty());
  for (const char* const wrong :
       {"{exchange: star}", "{rate: 0 Gbps}", "{ranks_per_root: -1}", "{entry: 5}", "{roots: 3}"}) {
    CAPTURE(wrong);
    Errors found;
    read(wrong, found);
    REQUIRE(found.size() == 1);
    CHECK(found[0].where.line == 1);
  }
}

}  // namespace
}  // namespace weft::workload
