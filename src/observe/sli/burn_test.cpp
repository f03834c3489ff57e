#include "observe/sli/burn.hpp"

#include <doctest/doctest.h>

#include "base/rng.hpp"
#include "base/test_approx.hpp"

namespace weft::observe::sli {
namespace {

constexpr Share three_nines{999'000'000};

std::vector<Verdict> random_minutes(std::uint64_t seed, std::size_t count) {
  Rng rng(seed);
  std::vector<Verdict> out;
  for (std::size_t i = 0; i < count; ++i) {
    const bool burst = (i / 50) % 4 == 1;
    const std::uint64_t draw = rng.below(100);
    if (draw < (burst ? 30u : 1u))
      out.push_back(draw % 2 == 0 ? Verdict::bad_loss : Verdict::bad_latency);
    else
      out.push_back(draw > 95 ? Verdict::no_data : Verdict::good);
  }
  return out;
}

// Every window counted anew, in plain fractions of whole numbers.
bool fires_at(const std::vector<Verdict>& minutes, std::size_t at, const Alert& alert,
              Share target) {
  for (const std::int64_t window : {alert.long_minutes, alert.short_minutes}) {
    std::int64_t bad = 0;
    for (std::size_t k = 0; k < static_cast<std::size_t>(window) && k <= at; ++k)
      if (is_bad(minutes[at - k])) ++bad;
    // bad / window >= factor x (1 - target)
    const std::int64_t left = bad * 1'000'000'000'000;
    const std::int64_t right = alert.factor_milli * (whole_ppb - target.ppb) * window;
    if (left < right) return false;
  }
  return true;
}

TEST_CASE("firings are what counting anew gives") {
  const std::vector<Alert> alerts{{"a", 14'400, 60, 5}, {"b", 6'000, 360, 30}, {"c", 1'000, 7, 7}};
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    for (const Alert& alert : alerts)
      for (const Share target : {Share{999'000'000}, Share{990'000'000}, Share{900'000'000}}) {
        const auto minutes = random_minutes(seed, 1000);
        std::vector<bool> fires(minutes.size());
        for (const Firing& f : firings(minutes, alert, target))
          for (std::size_t i = f.first; i <= f.last; ++i) fires[i] = true;
        for (std::size_t i = 0; i < minutes.size(); ++i)
          REQUIRE(fires[i] == fires_at(minutes, i, alert, target));
      }
}

TEST_CASE("the boundary is exact: at the rate it fires, a little below it does not") {
  // 1 x over 1000 minutes at 99.9 %: one bad minute is the rate exactly.
  CHECK(burns(1, 1000, three_nines, 1000));
  CHECK_FALSE(burns(1, 1000, three_nines, 1001));
  CHECK_FALSE(burns(1, 1001, three_nines, 1000));
  // 14.4 x over 1 h at 90 %: 86.4 bad minutes of 60 can never be.
  CHECK_FALSE(burns(60, 60, Share{900'000'000}, 14'400));
  // 14.4 x over 1 h at 98.75 %: 10.8.
  CHECK(burns(11, 60, Share{987'500'000}, 14'400));
  CHECK_FALSE(burns(10, 60, Share{987'500'000}, 14'400));
  CHECK_FALSE(burns(0, 60, three_nines, 1));
}

TEST_CASE("a bad minute leaves the window when it is as old as the window is long") {
  std::vector<Verdict> minutes(20, Verdict::good);
  minutes[3] = Verdict::bad_loss;
  const auto out = firings(minutes, {"x", 1000, 5, 5}, Share{800'000'000});
  REQUIRE(out.size() == 1);
  CHECK(out[0].first == 3);
  CHECK(out[0].last == 7);
}

TEST_CASE("minutes without data burn nothing and do not shorten the window") {
  std::vector<Verdict> minutes(10, Verdict::no_data);
  minutes.back() = Verdict::bad_loss;
  CHECK(burn_rate(minutes, 10, Share{900'000'000}) == approx(1));
  CHECK(burn_rate(minutes, 20, Share{900'000'000}) == approx(0.5));
  CHECK(burn_rate(minutes, 5, Share{900'000'000}) == approx(2));
}

TEST_CASE("the budget is that of the window") {
  Objective objective;
  objective.target = three_nines;
  std::vector<Verdict> minutes(100'000, Verdict::good);
  minutes[0] = Verdict::bad_loss;  // older than the window
  for (std::size_t i = 99'000; i < 99'010; ++i) minutes[i] = Verdict::bad_latency;
  const Budget budget = budget_of(minutes, objective);
  CHECK(budget.allowed_micro == 43'200'000);
  CHECK(budget.bad == 10);
  CHECK(budget.left_share() == approx(1 - 10 / 43.2));
}

}  // namespace
}  // namespace weft::observe::sli
