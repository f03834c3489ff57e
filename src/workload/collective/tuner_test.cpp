#include "workload/collective/tuner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "workload/collective/test_kit.hpp"

namespace weft::workload {
namespace {

using test::contains;
using test::hosts_of;
using test::preset;

constexpr double mebi = 1 << 20, gibi = 1 << 30;

Pick picked(std::string_view system, const GroupShape& shape, Op op, double bytes,
            const TunerRules& rules = {}) {
  const auto result = pick(preset(system), shape, op, bytes, rules);
  if (!result) FAIL(result.error().text());
  return *result;
}

// By hand from NCCL's constants: ring LL 6.6 + 14 * 0.6 + 2^20 * 1.75 / 141e3 = 28.0 us.
TEST_CASE("the reason states the compared times") {
  const Pick pick = picked("h100", hosts_of(1, 8), Op::all_reduce, mebi);
  CHECK(contains(pick.why, "ring LL 28.0 us"));
  CHECK(contains(pick.why, "nvls Simple"));
  CHECK(contains(pick.why, "tree"));
}

TEST_CASE("two hosts take a tree, many take rings for large sizes") {
  CHECK(picked("p4de", hosts_of(2, 8, 4), Op::all_reduce, gibi).algorithm == "tree");
  CHECK(picked("p4de", hosts_of(16, 8, 4), Op::all_reduce, 16 * gibi).algorithm == "ring");
  CHECK(picked("h100", hosts_of(2, 8), Op::all_reduce, 16 * gibi).algorithm == "nvls_tree");
  CHECK(picked("h100", hosts_of(2, 8), Op::all_reduce, 8).algorithm == "tree");
}

TEST_CASE("on EFA the provider's plugin chooses, where it is free to") {
  const auto at = [](double bytes, const TunerRules& rules) {
    return picked("p5", hosts_of(2, 8), Op::all_reduce, bytes, rules);
  };
  const Pick plugin = at(16 * mebi, {});
  CHECK(plugin.algorithm == "tree");
  CHECK(plugin.protocol == Protocol::ll128);
  CHECK(contains(plugin.why, "plugin"));
  CHECK(picked("h100", hosts_of(2, 8), Op::all_reduce, 16 * mebi).algorithm == "nvls_tree");
  CHECK(at(16 * mebi, {.algorithm = "ring", .protocol = {}}).algorithm == "ring");
  CHECK_FALSE(contains(at(1024, {}).why, "plugin"));
  CHECK_FALSE(contains(picked("p5", hosts_of(2, 4), Op::all_reduce, 16 * mebi).why, "plugin"));
}

TEST_CASE("each operation has its candidates") {
  CHECK(picked("h200", hosts_of(1, 8), Op::all_gather, 16 * gibi).algorithm == "ring");
  CHECK(picked("h200", hosts_of(1, 8), Op::reduce_scatter, 16 * gibi).algorithm == "ring");
  CHECK(picked("h200", hosts_of(4, 8), Op::broadcast, gibi).algorithm == "ring");
  CHECK(picked("h200", hosts_of(4, 8), Op::all_to_all, gibi).algorithm == "pairwise");
  const auto list =
      candidates(preset("h100"), hosts_of(64, 1), Op::all_gather, 1024, InNetwork::absent);
  CHECK(std::ranges::any_of(list, [](const Candidate& c) { return c.algorithm == "pat"; }));
}

TEST_CASE("in-network reduction is weighed only where there is some") {
  const auto has_sharp = [](InNetwork in_network) {
    const auto list = candidates(preset("h100"), hosts_of(8, 8), Op::all_reduce, gibi, in_network);
    return std::ranges::any_of(list, [](const Candidate& c) { return c.algorithm == "sharp"; });
  };
  CHECK(has_sharp(InNetwork::present));
  CHECK_FALSE(has_sharp(InNetwork::absent));
}

TEST_CASE("candidates come best first and cost more with size") {
  double before = 0;
  for (double bytes = 8; bytes <= 16 * gibi; bytes *= 4) {
    const auto list =
        candidates(preset("h100"), hosts_of(1, 8), Op::all_reduce, bytes, InNetwork::absent);
    CHECK(std::ranges::is_sorted(list, {}, &Candidate::seconds));
    CHECK(list.front().seconds > before);
    before = list.front().seconds;
  }
}

TEST_CASE("rules are kept, and impossible ones refused") {
  const GroupShape host = hosts_of(1, 8);
  const auto ring =
      picked("h100", host, Op::all_reduce, gibi, {.algorithm = "ring", .protocol = {}});
  CHECK(ring.algorithm == "ring");
  CHECK(ring.protocol == Protocol::simple);
  const auto ll =
      picked("h100", host, Op::all_reduce, gibi, {.algorithm = "auto", .protocol = Protocol::ll});
  CHECK(ll.protocol == Protocol::ll);
  const auto flat = picked("h100", host, Op::all_reduce, 64, {.algorithm = "flat", .protocol = {}});
  CHECK(contains(flat.why, "was requested"));
  const auto fails = [&](std::string_view system, const GroupShape& shape,
                         const TunerRules& rules) {
    return !pick(preset(system), shape, Op::all_reduce, mebi, rules);
  };
  CHECK(fails("a100", host, {.algorithm = "nvls", .protocol = {}}));
  CHECK(fails("h100", host, {.algorithm = "nvls", .protocol = Protocol::ll}));
  CHECK(fails("h100", host, {.algorithm = "sharp", .protocol = {}}));
  CHECK(fails("h100", host, {.algorithm = "nothing", .protocol = {}}));
  CHECK(fails("h100", {.ranks = 7}, {}));
}

TEST_CASE("small messages use fewer channels") {
  std::uint32_t before = 1;
  for (double bytes = 8; bytes <= mebi; bytes *= 2) {
    const Pick pick = picked("h100", hosts_of(1, 8), Op::all_reduce, bytes);
    CHECK(pick.channels >= before);
    before = pick.channels;
  }
  CHECK(before == 24);
  CHECK(picked("h100", hosts_of(1, 8), Op::all_reduce, 8).channels == 1);
}

}  // namespace
}  // namespace weft::workload
