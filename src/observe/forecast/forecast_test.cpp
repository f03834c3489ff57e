// Against closed forms, hidden values of public series, and an own Naive2.
#include "observe/forecast/forecast.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <numbers>
#include <sstream>

#include "base/file.hpp"
#include "base/test_skip.hpp"
#include "observe/forecast/outages.hpp"

namespace weft::observe::forecast {
namespace {

using Values = std::vector<double>;

Series hourly(Values values) {
  Series series{.start = {}, .step_ns = ns_per_hour, .values = std::move(values), .events = {}};
  series.events.resize(series.values.size());
  return series;
}

double wave(std::size_t t) {
  const double at = 2 * std::numbers::pi * static_cast<double>(t);
  return 100 + 30 * std::sin(at / 24) + 10 * std::sin(at / 168);
}

Values waves(std::size_t count) {
  Values y(count);
  for (std::size_t t = 0; t < count; ++t) y[t] = wave(t);
  return y;
}

double worst_error(const Forecast& f, std::size_t from) {
  double worst = 0;
  for (std::size_t h = 0; h < f.values.size(); ++h)
    worst = std::max(worst, std::abs(f.values[h] - wave(from + h)));
  return worst;
}

// The M4 competition's Naive2 for hourly series, after its published definition: the last value,
// with the profile of a classical multiplicative decomposition where the autocorrelation at lag 24
// is significant at 90 %.
Values naive2(const Values& y) {
  constexpr std::size_t m = 24;
  const std::size_t n = y.size();
  double mean = 0, squares = 0, limit = 1;
  for (const double v : y) mean += v / static_cast<double>(n);
  for (const double v : y) squares += (v - mean) * (v - mean);
  std::array<double, m + 1> r{};
  for (std::size_t k = 1; k <= m; ++k) {
    for (std::size_t t = k; t < n; ++t) r[k] += (y[t] - mean) * (y[t - k] - mean) / squares;
    if (k < m) limit += 2 * r[k] * r[k];
  }
  Values index(m, 1.0);
  if (std::abs(r[m]) > 1.645 * std::sqrt(limit / static_cast<double>(n))) {
    Values sums(m), counts(m);
    for (std::size_t t = m / 2; t + m / 2 < n; ++t) {
      double around = (y[t - m / 2] + y[t + m / 2]) / 2;
      for (std::size_t j = t - m / 2 + 1; j < t + m / 2; ++j) around += y[j];
      sums[t % m] += y[t] / (around / m);
      counts[t % m] += 1;
    }
    double total = 0;
    for (std::size_t i = 0; i < m; ++i) total += index[i] = sums[i] / counts[i];
    for (double& v : index) v *= m / total;
  }
  Values f(48);
  for (std::size_t h = 0; h < 48; ++h) f[h] = y[n - 1] / index[(n - 1) % m] * index[(n + h) % m];
  return f;
}

// Sums over series of sMAPE in percent and of MASE.
struct Score {
  double smape = 0, mase = 0;
  void add(const Values& forecast, const Values& actual, const Values& past) {
    double scale = 0;
    for (std::size_t t = 24; t < past.size(); ++t) scale += std::abs(past[t] - past[t - 24]);
    scale /= static_cast<double>(past.size() - 24);
    for (std::size_t h = 0; h < 48; ++h) {
      const double off = std::abs(forecast[h] - actual[h]) / 48;
      smape += 200 * off / (std::abs(forecast[h]) + std::abs(actual[h]));
      mase += off / scale;
    }
  }
  double owa(const Score& naive) const { return (smape / naive.smape + mase / naive.mase) / 2; }
};

// The rows of the competition's file: a name, then quoted numbers, padded with empty cells.
std::vector<Values> read_m4(const std::string& text) {
  std::vector<Values> rows;
  std::istringstream lines(text);
  std::string line, cell;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::getline(cells, cell, ',');
    rows.emplace_back();
    while (std::getline(cells, cell, ',')) {
      std::erase_if(cell, [](char c) { return c == '"' || c == '\r'; });
      if (!cell.empty() && cell != "NA") rows.back().push_back(std::stod(cell));
    }
  }
  return rows;
}

}  // namespace

TEST_CASE("two seasons without noise come back, also over a gap of two days") {
  const auto plain = predict(hourly(waves(840)), {}, "s.csv");
  REQUIRE(plain.has_value());
  CHECK(plain->seasons == std::vector<std::size_t>{24, 168});
  CHECK(worst_error(*plain, 840) < 0.5);
  Values y = waves(840);
  for (std::size_t t = 500; t < 548; ++t) y[t] = std::nan("");
  const auto gap = predict(hourly(y), {}, "s.csv");
  REQUIRE(gap.has_value());
  CHECK(gap->gap_count == 48);
  CHECK(worst_error(*gap, 840) < 0.5);
  // The same outage as zeros is seen to be one; as demand it would spoil the seasons.
  for (std::size_t t = 500; t < 548; ++t) y[t] = 0;
  const Forecast zeros = predict(hourly(y), {}, "s.csv").value();
  CHECK(zeros.outage_count == 48);
  CHECK(zeros.gap_count == 0);
  CHECK(zeros.values == gap->values);
  CHECK(worst_error(predict(hourly(y), {.outages = Options::Outages::kept}, "s.csv").value(), 840) >
        1);
}

TEST_CASE("values below 0 are no outage, and no demand") {
  Values y = waves(840);
  double least = y[0];
  for (const double v : y) least = std::min(least, v);
  for (double& v : y) v -= least + 50;  // all between -50 and some hundred
  for (std::size_t t = 500; t < 548; ++t) y[t] = -400;
  const Forecast out = predict(hourly(y), {}, "s.csv").value();
  CHECK(out.outage_count == 0);
  CHECK(out.values == predict(hourly(y), {.outages = Options::Outages::kept}, "s.csv")->values);
  const std::string text =
      "time,value\n2026-01-01T00:00:00Z,1\n2026-01-01T01:00:00Z,-2\n2026-01-01T02:00:00Z,3\n";
  CHECK(read_series(text, "s.csv")->values == Values{1, -2, 3});
  CHECK(read_series(text, "s.csv", SeriesKind::demand)
            .error()
            .text()
            .starts_with("s.csv:3:22: demand -2 is below 0"));
}

TEST_CASE("weights and values too small to matter are 0") {
  const Forecast out = predict(hourly(waves(840)), {}, "s.csv").value();
  for (const Weight& w : out.weights) CHECK((w.weight == 0 || w.weight >= 1e-9));
  CHECK_FALSE(to_json(out).contains("e-2"));
  CHECK_FALSE(to_table(out).contains("e-2"));
}

TEST_CASE("an outage: not what is low every night, nor what stays low, nor an event") {
  const auto dropped = [](const Values& y, Hindsight hindsight = Hindsight::live) {
    Series series = hourly(y);
    return drop_outages(series, hindsight);
  };
  Values nights(std::size_t{24} * 21);  // nothing between midnight and six
  for (std::size_t t = 0; t < nights.size(); ++t) nights[t] = t % 24 < 6 ? 0 : 100;
  CHECK(dropped(nights) == 0);
  Values gone = waves(840);
  for (std::size_t t = 400; t < 840; ++t) gone[t] = 1;
  CHECK(dropped(gone) == 24);
  CHECK(dropped(gone, Hindsight::afterwards) == 0);
  Values two_days = waves(840);
  for (std::size_t t = 400; t < 448; ++t) two_days[t] = 0;
  CHECK(dropped(two_days) == 24);
  CHECK(dropped(two_days, Hindsight::afterwards) == 48);
  // The marks of a series that grows stay: each start of it has the same ones.
  Series whole = hourly(two_days);
  drop_outages(whole, Hindsight::live);
  for (const std::size_t n : {410u, 424u, 440u, 500u}) {
    Series part =
        hourly(Values(two_days.begin(), two_days.begin() + static_cast<std::ptrdiff_t>(n)));
    drop_outages(part, Hindsight::live);
    for (std::size_t t = 0; t < n; ++t)
      CHECK(std::isnan(part.values[t]) == std::isnan(whole.values[t]));
  }
  Series event = hourly(two_days);
  event.events.assign(840, "maintenance");
  CHECK(drop_outages(event, Hindsight::live) == 0);
  CHECK(dropped(Values(waves(60))) == 0);  // no three days before
}

TEST_CASE("an event is no season, and adds when it is announced what it added before") {
  Series series = hourly(waves(840));
  series.events.resize(840 + 48);
  for (const std::size_t from : {300u, 611u, 850u})
    for (std::size_t t = from; t < from + 3; ++t) {
      series.events[t] = "match";
      if (t < 840) series.values[t] += 50 * static_cast<double>(t - from + 1);
    }
  const auto f = predict(series, {}, "s.csv");
  REQUIRE(f.has_value());
  CHECK(f->event_count == 6);
  for (std::size_t h = 0; h < 48; ++h) {
    const double extra = h >= 10 && h < 13 ? 50 * static_cast<double>(h - 9) : 0;
    CHECK(std::abs(f->values[h] - wave(840 + h) - extra) < 1);
  }
}

TEST_CASE("a series file: gaps, events to come, and what is refused with its place") {
  const auto read = [](const char* rows) {
    return read_series(std::string("time,value,event\n") + rows, "s.csv");
  };
  const auto s = read(
      "2026-01-01T00:00:00Z,1,\n2026-01-01T01:00:00Z,2,\n2026-01-01T04:00:00Z,5,\n"
      "2026-01-01T05:00:00Z,,match\n");
  REQUIRE(s.has_value());
  CHECK(s->values.size() == 5);
  CHECK(std::isnan(s->values[3]));
  CHECK(s->events.at(5) == "match");
  const auto where = [&](const char* rows) { return read(rows).error().where.text(); };
  CHECK(where("2026-01-01T00:00:00Z,1,\n2026-01-01T00:00:00Z,1,\n") == "s.csv:3:1");
  CHECK(where("0,1,\n10,1,\n25,1,\n") == "s.csv:4:1");
  CHECK(where("0,1,\n10,1,\n20,1,\n10,1,\n") == "s.csv:5:1");
  CHECK(where("0,1,\n10,x,\n") == "s.csv:3:4");
  CHECK(where("0,1,\n1,2,\n900000000000000000,1,\n") == "s.csv:4:1");
  Series late = hourly(waves(840));
  late.start = end_of_time;
  CHECK(predict(late, {}, "s.csv").error().text().contains("2260"));
  CHECK(predict(hourly(waves(60)), {}, "s.csv").error().text().contains("do not suffice"));
}

TEST_CASE("M4 hourly, last 48 values hidden: OWA and coverage" *
          doctest::test_suite("needs series")) {
  const std::string path = std::string(WEFT_SERIES) + "/m4_hourly_train.csv.gz";
  if (!std::filesystem::exists(path))
    return skip_test("no M4 series; configure with -DWEFT_SERIES=FOLDER");
  // Constants of the forecaster were chosen on the first half; the second was seen, and nothing
  // chosen by it.
  std::array<Score, 2> own, naive;
  std::array<double, 2> held{};
  const auto rows = read_m4(gunzip(read_file(path).value(), path).value());
  REQUIRE(rows.size() == 414);
  double seconds = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Values past(rows[i].begin(), rows[i].end() - 48),
        actual(rows[i].end() - 48, rows[i].end());
    const std::clock_t begin = std::clock();
    const auto f = predict(hourly(past), {}, path);
    seconds += static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    REQUIRE(f.has_value());
    own.at(i % 2).add(f->values, actual, past);
    naive.at(i % 2).add(naive2(past), actual, past);
    for (std::size_t h = 0; h < 48; ++h)
      held.at(i % 2) += (actual[h] >= f->low[h] && actual[h] <= f->high[h]) / (207.0 * 48);
  }
  const Score all{own[0].smape + own[1].smape, own[0].mase + own[1].mase};
  const Score base{naive[0].smape + naive[1].smape, naive[0].mase + naive[1].mase};
  MESSAGE("OWA ", all.owa(base), " (", own[0].owa(naive[0]), ", ", own[1].owa(naive[1]),
          "), coverage ", held[0], ", ", held[1], ", ", seconds, " CPU seconds; Naive2 sMAPE ",
          base.smape / 414, ", MASE ", base.mase / 414);
  CHECK(all.owa(base) <= 0.42);
  for (const double share : held) {
    CHECK(share >= 0.93);
    CHECK(share <= 0.97);
  }
}

}  // namespace weft::observe::forecast
