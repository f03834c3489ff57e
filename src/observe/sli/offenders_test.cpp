#include "observe/sli/offenders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "observe/sli/test_kit.hpp"

namespace weft::observe::sli {
namespace {

using testing::Bench;
using testing::episode;
using testing::minute_zero;

// How many of `sent` probes are lost at a small rate.
std::uint32_t draw_losses(Rng& rng, std::uint32_t sent, double rate) {
  std::uint32_t lost = 0;
  // Exponential gaps between losses: the same as a draw a probe, and much faster.
  for (double at = -std::log(1 - rng.uniform()) / rate; at < sent;
       at -= std::log(1 - rng.uniform()) / rate)
    ++lost;
  return lost;
}

struct Bad {
  std::string_view link;  // a part of the path's link names: "rtsw:0->ctsw:1", "ctsw:1"
  double rate = 0;
  std::uint64_t day_share_percent = 100;  // of days on which it loses
};

// Three weeks, one row a day and path between racks, both directions, both spines.
model::EvidenceSet three_weeks(const model::Fabric& fabric, std::uint64_t seed, const Bad& bad) {
  model::EvidenceSet set;
  Rng rng(seed);
  for (std::int64_t day = 0; day < 21; ++day) {
    const bool loses = rng.below(100) < bad.day_share_percent;
    for (int src = 0; src < 6; ++src)
      for (int dst = 0; dst < 6; ++dst)
        for (int spine = 0; spine < 2 && src / 2 != dst / 2; ++spine) {
          const std::vector<std::string> path{fmt::format("nic:{}->rtsw:{}", src, src / 2),
                                              fmt::format("rtsw:{}->ctsw:{}", src / 2, spine),
                                              fmt::format("ctsw:{}->rtsw:{}", spine, dst / 2),
                                              fmt::format("rtsw:{}->nic:{}", dst / 2, dst)};
          double rate = 1e-5;
          for (const std::string& link : path)
            if (loses && !bad.link.empty() && link.find(bad.link) != std::string::npos) {
              rate += bad.rate;
              break;
            }
          const std::string from = fmt::format("nic:{}", src), to = fmt::format("nic:{}", dst);
          testing::add_row(fabric, set,
                           {.minute = std::int64_t{day} * 1440 + std::int64_t{src} * 60 + dst,
                            .src = from,
                            .dst = to,
                            .sent = 100'000,
                            .lost = draw_losses(rng, 100'000, rate),
                            .leg = model::Leg::forward,
                            .path = {path.begin(), path.end()}});
        }
  }
  return set;
}

std::vector<SlowBurn> found(const Bad& bad, std::uint64_t seed) {
  const model::Fabric fabric = testing::small_zone();
  OffenderBook book(fabric);
  REQUIRE(book.add(three_weeks(fabric, seed, bad), INT64_MIN, INT64_MAX).has_value());
  std::size_t tested = 0;
  auto out = book.slow_burn(tested);
  CHECK(tested > 20);
  return out;
}

TEST_CASE("a link that loses a little on many days is named, and nothing else") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    const auto slow = found({"rtsw:0->ctsw:1", 2e-4, 60}, seed);
    REQUIRE(slow.size() == 1);
    CHECK(slow[0].entity == "rtsw:0->ctsw:1");
    CHECK(slow[0].kind == "link");
    CHECK(slow[0].days_suspicious >= 6);
    CHECK(slow[0].days_seen == 21);
    CHECK(slow[0].background < 2e-5);
    CHECK(slow[0].p_value < 1e-6);
    const double rate = static_cast<double>(slow[0].lost) / static_cast<double>(slow[0].sent);
    CHECK(rate == approx(2.1e-4).epsilon(0.2));
  }
}

TEST_CASE("a switch whose links all lose is named as one") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    const auto slow = found({"ctsw:1", 1e-4, 70}, seed);
    REQUIRE(slow.size() == 1);
    CHECK(slow[0].entity == "ctsw:1");
    CHECK(slow[0].kind == "switch");
  }
}

TEST_CASE("a clean fabric has no offenders") {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) named += found({}, seed).empty() ? 0 : 1;
  CHECK(named == 0);
}

TEST_CASE("one bad day is an outage, not slow burn") {
  const model::Fabric fabric = testing::small_zone();
  OffenderBook book(fabric);
  model::EvidenceSet set = three_weeks(fabric, 3, {});
  set.rows[0].lost = 50'000;
  REQUIRE(book.add(set, INT64_MIN, INT64_MAX).has_value());
  std::size_t tested = 0;
  CHECK(book.slow_burn(tested).empty());
}

// The outage meets a link whose paths share rtsw:0->ctsw:1, which is the one that burns.
TEST_CASE("an outage elsewhere does not take the blame for slow burn") {
  const model::Fabric fabric = testing::small_zone();
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    OffenderBook book(fabric);
    model::EvidenceSet set = three_weeks(fabric, seed, {"rtsw:0->ctsw:1", 2e-4, 60});
    const model::LinkId out = fabric.find_link({"ctsw:1->rtsw:1", {}}).value();
    for (model::Evidence& row : set.rows)
      if (row.t < start_of(minute_zero + 1440) &&
          std::ranges::find(set.path(row), out) != set.path(row).end())
        row.lost = 10'000;
    REQUIRE(book.add(set, INT64_MIN, INT64_MAX).has_value());
    std::size_t tested = 0;
    const auto slow = book.slow_burn(tested);
    REQUIRE(slow.size() == 1);
    CHECK(slow[0].entity == "rtsw:0->ctsw:1");
  }
}

TEST_CASE("episodes per entity, planned ones aside") {
  const model::Fabric fabric = testing::small_zone();
  const Settings settings = default_settings();
  auto unfound = episode("d", "loss", {"rtsw:0--ctsw:0"}, 30, 31);
  unfound.attrs = {{"resolution", "no_fault_found"}};
  const Causes causes = testing::causes_of(
      fabric, settings,
      {episode("a", "loss", {"rtsw:0--ctsw:0", "rtsw:0--ctsw:0"}, 0, 1),
       episode("b", "flap", {"rtsw:0--ctsw:0", "ctsw:1"}, 10, 11),
       episode("c", "maintenance", {"ctsw:1"}, 20, 21), unfound,
       episode("e", "loss", {"ctsw:1"}, 40, 41), episode("f", "loss", {"ctsw:0"}, 50, 51)});
  const auto repeats = repeat_offenders(causes);
  REQUIRE(repeats.size() == 2);
  CHECK(repeats[0].entity == "rtsw:0--ctsw:0");
  CHECK(repeats[0].episodes == std::vector<std::string>{"a", "b", "d"});
  CHECK(repeats[0].no_fault_found == 1);
  CHECK(repeats[1].entity == "ctsw:1");
  CHECK(repeats[1].episodes.size() == 2);
}

}  // namespace
}  // namespace weft::observe::sli
