#include "observe/colltrace/picture.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/test_approx.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::observe::colltrace {
namespace {

// Ranks t + width * d: a tensor group of each d, a data group of each t, in which `call` says of
// each rank and operation when it begins and ends (us); an end of 0: it is in it.
struct Times {
  std::int64_t begin = 0, end = 0;
};
struct Grid {
  std::uint32_t width, copies;
  std::uint32_t operations;  // tensor and data in turn
  std::function<std::optional<Times>(std::uint32_t rank, std::uint32_t operation)> call;
};

Job grid_job(const Grid& grid) {
  JobBuilder builder;
  const std::uint32_t world = grid.width * grid.copies;
  std::vector<std::uint32_t> tensor(grid.copies), data(grid.width);
  for (std::uint32_t d = 0; d < grid.copies; ++d) {
    std::vector<std::uint32_t> members(grid.width);
    std::iota(members.begin(), members.end(), d * grid.width);
    tensor[d] = builder.group(fmt::format("t{}", d), "tp", members);
  }
  for (std::uint32_t t = 0; t < grid.width; ++t) {
    std::vector<std::uint32_t> members;
    for (std::uint32_t d = 0; d < grid.copies; ++d) members.push_back(t + grid.width * d);
    data[t] = builder.group(fmt::format("d{}", t), "dp", members);
  }
  const std::uint32_t gather = builder.signature("all_gather\tBF16\t[8]"),
                      reduce = builder.signature("all_reduce\tBF16\t[64]");
  constexpr std::int64_t epoch = 1'798'000'000'000'000'000;
  for (std::uint32_t r = 0; r < world; ++r) {
    std::vector<Entry> entries;
    for (std::uint32_t i = 0; i < grid.operations; ++i) {
      const auto times = grid.call(r, i);
      if (!times) break;
      const bool is_data = i % 2 == 1;
      Entry e{.group = is_data ? data[r % grid.width] : tensor[r / grid.width], .seq = i / 2 + 1};
      e.created_ns = e.started_ns = epoch + times->begin * 1000;
      e.signature = (is_data ? reduce : gather) & ((1u << 29) - 1);
      e.state = times->end == 0 ? EntryState::started : EntryState::completed;
      if (times->end != 0) {
        e.ended_ns = epoch + times->end * 1000;
        e.duration_us = static_cast<float>(times->end - times->begin);
      }
      entries.push_back(e);
    }
    REQUIRE(builder.add({.rank = r, .file = fmt::format("rank{}", r), .host = {}}, entries));
  }
  return builder.finish();
}

// Rank 5 leaves after `done` operations. Its tensor group waits in the next one; the data groups of
// those who wait lack them one operation later.
Grid stuck(std::uint32_t width, std::uint32_t copies) {
  constexpr std::uint32_t done = 6;
  return {width, copies, done + 2,
          [=](std::uint32_t rank, std::uint32_t i) -> std::optional<Times> {
            if (i < done) return Times{std::int64_t{1000} * i, std::int64_t{1000} * i + 800};
            const bool is_beside = rank / width == 0;
            if (rank == 5 || (is_beside && i > done)) return {};
            return Times{std::int64_t{1000} * i,
                         is_beside || i > done ? 0 : std::int64_t{1000} * i + 800};
          }};
}

TEST_CASE("picture of a stuck rank: levels, waits and time line by the shape of the job") {
  const Job job = grid_job(stuck(8, 6));
  const Report report = analyse(job, {});
  REQUIRE(report.verdicts.size() == 1);
  const Picture p = make_picture(job, report);
  // Rank 5, then its tensor group (7) and its data group (5 others), then the other 7 data groups.
  REQUIRE(p.nodes.size() == 4);
  CHECK(p.nodes[0].title == "rank 5: stuck");
  CHECK(p.nodes[0].groups == 2);
  std::vector<std::string> found;
  for (std::size_t n = 1; n < 4; ++n)
    found.push_back(fmt::format("{} {} {} {}", p.nodes[n].level, p.nodes[n].title,
                                p.nodes[n].groups, p.nodes[n].ranks));
  std::ranges::sort(found);
  CHECK(found == std::vector<std::string>{"1 dp 1 5", "1 tp 1 7", "2 dp 7 35"});
  CHECK(p.unconnected == 0);
  REQUIRE(p.edges.size() == 3);
  // From the first call that waits, at 6 ms, to the last event, at 7 ms.
  REQUIRE(p.waits.size() == 2);
  CHECK(p.ranks_per_cell == 1);
  CHECK(!p.is_share);
  for (std::uint32_t r = 0; r < 48; ++r) {
    CHECK(p.waits[0].cells[r] == approx(r < 8 && r != 5 ? 1e-3 : 0));
    CHECK(p.waits[1].cells[r] == 0);  // called at the latest event
  }
  REQUIRE(!p.rows.empty());
  CHECK(p.rows[0].rank == 5);
  CHECK(p.rows[0].is_named);
  CHECK(p.rows_left_out == 0);
  for (const TimeRow& row : p.rows)
    for (const TimeSpan& span : row.spans) CHECK((span.begin_s >= 0 && span.end_s <= p.window_s));
}

TEST_CASE("picture of a job that runs: the shares that ranks wait for the last one") {
  // Of ten milliseconds each operation has one; rank 2 comes last, 300 us after the others.
  const Grid grid{4, 1, 20, [](std::uint32_t rank, std::uint32_t i) {
                    const std::int64_t end = 1000 * i + 400;
                    return Times{rank == 2 ? end - 100 : end - 400, end};
                  }};
  const Job job = grid_job(grid);
  const Picture p = make_picture(job, analyse(job, {}));
  REQUIRE(p.waits.size() == 1);  // groups of one member wait for nobody
  CHECK(p.is_share);
  CHECK(p.nodes.empty());
  // Ten operations of the tensor group within 19.4 ms.
  for (std::uint32_t r = 0; r < 4; ++r)
    CHECK(p.waits[0].cells[r] == approx(r == 2 ? 0 : 10 * 0.3 / 19.4).epsilon(1e-4));
}

TEST_CASE("picture of 16,384 ranks: small, and nothing named is lost") {
  const Job job = grid_job(stuck(2048, 8));
  const Report report = analyse(job, {});
  REQUIRE(report.verdicts.size() == 1);
  const Picture p = make_picture(job, report);
  CHECK(p.ranks_per_cell == 16);
  CHECK(p.waits[0].cells.size() == 1024);
  CHECK(p.waits[0].cells[0] == approx(1e-3));
  CHECK(p.nodes.size() == 4);
  CHECK(p.rows.size() == time_rows_max);
  CHECK(p.rows[0].rank == 5);
  CHECK(p.rows_left_out == 2048 - time_rows_max);
  CHECK(to_json(p, job, report).size() < 100'000);
}

}  // namespace
}  // namespace weft::observe::colltrace
