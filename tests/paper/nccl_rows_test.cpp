// `weft perf` against published rows of nccl-tests. Bars: in each band of sizes the median error of
// the bus bandwidth is at most 5 %, the worst at most 15 %; nccl_rows.hpp has rows and citations.
#include "nccl_rows.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "workload/collective/perf_table.hpp"

namespace weft::workload {
namespace {

using test::PublishedRow;

PerfRequest request_for(const PublishedRow& row) {
  PerfRequest request;
  request.machine.system = system_by_name(row.system).value();
  request.machine.shape = {.ranks = row.ranks,
                           .hosts = row.hosts,
                           .gpus_per_host = row.ranks / row.hosts,
                           .nics_per_host = row.nics};
  request.op = row.op;
  const Bytes size{static_cast<std::int64_t>(row.bytes)};
  request.sweep = {.begin = size, .end = size};
  request.rules.algorithm = row.algorithm;
  return request;
}

double measured_busbw(const PublishedRow& row) {
  if (row.busbw > 0) return row.busbw;
  return row.bytes / row.time_us / 1e3 * busbw_factor(row.op, row.ranks);
}

Compared compare_row(const PublishedRow& row, const PerfRequest& request) {
  const auto rows = perf_rows(request);
  if (!rows) FAIL(rows.error().text());
  const PerfRow& ours = rows->front();
  return {ours.size_bytes, measured_busbw(row), ours.busbw_GBps};
}

TEST_CASE("published rows, by band") {
  std::vector<Compared> all;
  for (const PublishedRow& row : test::published_rows)
    all.push_back(compare_row(row, request_for(row)));
  const auto bands = errors_by_band(all);
  REQUIRE(bands.size() == 4);
  INFO(comparison_table(all));  // seen with --success
  for (const BandError& band : bands) {
    CAPTURE(band.band);
    CHECK(band.median <= 0.05);
    CHECK(band.worst <= 0.15);
  }
}

// The middle one of the errors' magnitudes (the higher of two).
double median_error(const std::vector<Compared>& rows) {
  std::vector<double> errors;
  for (const Compared& row : rows) errors.push_back(std::abs(row.error()));
  std::ranges::sort(errors);
  return errors[errors.size() / 2];
}

// Systems none of whose rows fitted a bandwidth inside a host or an exponent; the docs say which
// network constants two of them gave. Each is told its algorithm and its own 4 MiB row.
// Bars: 2-512 MiB median <= 12 %; from 1 GiB median <= 5 %, worst <= 12 %.
TEST_CASE("systems that are not among the fitted rows") {
  for (const test::PublishedSweep& sweep : test::other_sweeps) {
    std::vector<Compared> middle, large;
    const auto at_anchor = [](const auto& point) { return point.bytes == 4 * test::MiB; };
    const auto anchor = std::ranges::find_if(sweep.points, at_anchor);
    REQUIRE(anchor != sweep.points.end());
    for (const auto& [bytes, busbw] : sweep.points) {
      const PublishedRow row{sweep.system,    sweep.ranks, sweep.hosts, sweep.nics,
                             sweep.algorithm, bytes,       0,           busbw};
      const auto request = calibrate(request_for(row), Anchor{{4 << 20}, anchor->busbw});
      if (!request) FAIL(request.error().text());
      const Compared pair = compare_row(row, *request);
      if (bytes >= test::GiB) large.push_back(pair);
      if (bytes < test::GiB && bytes != anchor->bytes) middle.push_back(pair);
    }
    INFO(sweep.label, "\n", comparison_table(middle), comparison_table(large));
    CHECK(median_error(middle) <= 0.12);
    CHECK(median_error(large) <= 0.05);
    for (const Compared& row : large) CHECK(std::abs(row.error()) <= 0.12);
  }
}

// Published: ring LL up to 1 MiB, NVLS Simple from 2 MiB on 8 x H200; ring on 4 x H200 and on 4 and
// 5 x B200 at 8 GiB, NVLS on more.
TEST_CASE("the tuner picks what NCCL picked") {
  const auto picked = [](std::string_view system, std::uint32_t gpus, double bytes) {
    const GroupShape shape{.ranks = gpus, .hosts = 1, .gpus_per_host = gpus};
    return pick(system_by_name(system).value(), shape, Op::all_reduce, bytes, {}).value();
  };
  for (const std::string_view system : {"h200", "h100"}) {
    for (double bytes = 1; bytes <= test::MiB; bytes *= 2) {
      const Pick pick = picked(system, 8, bytes);
      CHECK(pick.algorithm == "ring");
      CHECK(pick.protocol == Protocol::ll);
    }
    for (double bytes = 2 * test::MiB; bytes <= 16 * test::GiB; bytes *= 2) {
      const Pick pick = picked(system, 8, bytes);
      CHECK(pick.algorithm == "nvls");
      CHECK(pick.protocol == Protocol::simple);
    }
  }
  for (const std::uint32_t gpus : {4u, 5u, 6u, 7u, 8u}) {
    CHECK(picked("h200", gpus, 8 * test::GiB).algorithm == (gpus > 4 ? "nvls" : "ring"));
    CHECK(picked("b200", gpus, 8 * test::GiB).algorithm == (gpus > 5 ? "nvls" : "ring"));
  }
  for (double bytes = 1; bytes <= 16 * test::GiB; bytes *= 2)
    CHECK(picked("a100", 8, bytes).algorithm != "nvls");
}

}  // namespace
}  // namespace weft::workload
