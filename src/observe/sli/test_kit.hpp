// For tests of this room: a small fabric, rows of evidence, and a book filled with them.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/line_reader.hpp"
#include "model/events/episode.hpp"
#include "model/events/evidence.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/sli/minutes.hpp"
#include "observe/sli/report.hpp"

namespace weft::observe::sli::testing {

// zone:0      ctsw:0      ctsw:1
//              | \        / |       (every rtsw to every ctsw)
//           rtsw:0  rtsw:1  rtsw:2
//            |   |   |   |   |   |
// nic:       0   1   2   3   4   5   one a host, one GPU each
inline model::Fabric small_zone() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 3, hosts_per_rack: 2, gpus_per_host: 1, spines: 2}");
}

// 2026-03-01T00:00:00Z.
inline constexpr std::int64_t minute_zero = 1'772'323'200 / 60;

struct RowSpec {
  std::int64_t minute = 0;  // after minute_zero
  std::string_view src = "nic:0", dst = "nic:2";
  std::uint32_t sent = 20'000, lost = 0, late = 0;
  float p50 = -1, p99 = -1;
  std::string_view traffic_class = "0";
  model::Leg leg = model::Leg::round_trip;
  std::vector<std::string_view> path = {};
  std::uint32_t damaged = 0;
};

inline void add_row(const model::Fabric& fabric, model::EvidenceSet& set, const RowSpec& spec) {
  model::Evidence row;
  row.t = start_of(minute_zero + spec.minute);
  row.src = fabric.find_node({spec.src, {}}).value();
  row.dst = fabric.find_node({spec.dst, {}}).value();
  row.sent = spec.sent;
  row.lost = spec.lost;
  row.late = spec.late;
  row.damaged = spec.damaged;
  row.rtt_p50_us = spec.p50;
  row.rtt_p99_us = spec.p99;
  row.leg = spec.leg;
  row.traffic_class = set.class_index(spec.traffic_class);
  std::vector<model::LinkId> links;
  for (const std::string_view link : spec.path)
    links.push_back(fabric.find_link({link, {}}).value());
  set.set_path(row, links);
  set.rows.push_back(row);
}

inline model::EvidenceSet rows_of(const model::Fabric& fabric, const std::vector<RowSpec>& specs) {
  model::EvidenceSet set;
  for (const RowSpec& spec : specs) add_row(fabric, set, spec);
  return set;
}

inline Settings settings_of(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "o.yaml");
  REQUIRE_MESSAGE(config.has_value(), yaml);
  auto settings = read_settings(*config);
  if (!settings) FAIL(settings.error().text());
  return *std::move(settings);
}

inline model::Episode episode(std::string id, std::string kind, std::vector<std::string> entities,
                              std::int64_t first_minute, std::int64_t end_minute) {
  return {std::move(id),
          std::move(kind),
          std::move(entities),
          start_of(minute_zero + first_minute),
          start_of(minute_zero + end_minute),
          {}};
}

inline Causes causes_of(const model::Fabric& fabric, const Settings& settings,
                        std::vector<model::Episode> episodes = {}) {
  auto causes = Causes::create(fabric, std::move(episodes), settings);
  if (!causes) FAIL(causes.error().text());
  return *std::move(causes);
}

// A book and all it needs.
struct Bench {
  model::Fabric fabric = small_zone();
  Settings settings;
  Causes causes;
  MinuteCounters book;
  OffenderBook offenders;

  explicit Bench(std::string_view yaml, std::vector<model::Episode> episodes = {},
                 MinuteCounters::Options options = {})
      : settings(settings_of(yaml)),
        causes(causes_of(fabric, settings, std::move(episodes))),
        book(fabric, settings, causes, options),
        offenders(fabric) {}
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void add_set(const model::EvidenceSet& set) {
    const Status status = book.add(set);
    REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
    REQUIRE(offenders.add(set, INT64_MIN, INT64_MAX).has_value());
  }
  void add(const std::vector<RowSpec>& specs) { add_set(rows_of(fabric, specs)); }
  Report report() const {
    const auto [first, last] = book.span();
    auto out = build_report(book, offenders, first, last);
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  }
};

inline const SeriesReport& series_of(const Report& report, std::string_view entity,
                                     std::string_view traffic_class = "0",
                                     std::size_t objective = 0) {
  for (const SeriesReport& s : report.series)
    if (s.entity == entity && s.traffic_class == traffic_class && s.objective == objective)
      return s;
  FAIL("no such series: ", entity);
  return report.series.front();
}

}  // namespace weft::observe::sli::testing
