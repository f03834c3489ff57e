#include "workload/serving/profile.hpp"

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include "base/test_approx.hpp"
#include "workload/serving/step_time.hpp"
#include "workload/serving/test_kit.hpp"

namespace weft::workload {
namespace {

// Products of one axis's linear functions: what interpolation along one axis gives back exactly.
double smooth(const GridPoint& p) {
  return (3.0 + p[0]) * (2.0 + p[1]) * (5.0 + p[2]) * (7.0 + p[3]);
}

std::vector<GridTable::Row> smooth_rows(const auto& keep) {
  std::vector<GridTable::Row> rows;
  for (const std::uint32_t a : {16u, 32u, 64u})
    for (const std::uint32_t b : {0u, 10u, 40u})
      for (const std::uint32_t c : {1u, 4u, 8u})
        for (const std::uint32_t d : {16u, 64u, 100u})
          if (const GridPoint at{a, b, c, d}; keep(at)) rows.push_back({at, smooth(at)});
  return rows;
}

TEST_CASE("holes of a grid are interpolated along one axis and counted") {
  const auto whole = smooth_rows([](const GridPoint&) { return true; });
  const GridTable table(smooth_rows([](const GridPoint& p) { return p[3] != 64 || p[2] == 1; }));
  CHECK(table.holes().measured == 63);
  CHECK(table.holes().interpolated == 18);
  for (const GridTable::Row& row : whole)
    CHECK(table.at({double(row.at[0]), double(row.at[1]), double(row.at[2]), double(row.at[3])}) ==
          approx(row.value).epsilon(1e-12));
  CHECK(table.at({20, 5, 2, 30}) == approx(smooth({20, 5, 2, 30})).epsilon(1e-12));
}

TEST_CASE("beyond the last point a grid goes on") {
  const GridTable table(smooth_rows([](const GridPoint& p) { return p[0] != 64 || p[1] == 0; }));
  CHECK(table.holes().extrapolated >= 18);
  CHECK(table.at({64, 40, 8, 100}) == approx(smooth({64, 40, 8, 100})).epsilon(1e-12));
  CHECK(table.at({80, 0, 8, 200}) == approx(smooth({80, 0, 8, 200})).epsilon(1e-12));
}

TEST_CASE("a step adds up its kernels") {
  const KernelProfile profile = testing::plain_profile();
  ServingLimits limits;
  limits.step_gap = {};
  const StepTimes times(profile, 4, limits, {});
  StepLoad prefill, decode, mixed;
  prefill.add(100, 0);
  decode.add(1, 50);
  mixed.add(3, 7);  // fewer prefill tokens than were measured: not half a decode step
  mixed.add(1, 50);
  CHECK(times.of(prefill).us() == 25 + 4 * 19);
  CHECK(times.of(decode).us() == 25 + 4 * 15);
  CHECK(times.of(mixed).us() == 25 + 4 * 19);
  const StepTimes slow(profile, 4, limits, [](std::uint32_t n) { return n * 1e-6; });
  CHECK(slow.of(prefill).us() == 25 + 4 * 19 + 104);  // padded to a captured size
}

TEST_CASE("several prefills cost as one with as many pairs of tokens") {
  std::string attention = "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n";
  // Quadratic and linear: 1 us a launch and 1 ns a pair, between 16 and 4096.
  for (std::uint32_t q = 16; q <= 4096; q *= 2)
    for (std::uint32_t k = 0; k <= 4096; k = k == 0 ? 16 : k * 2)
      attention += std::to_string(q) + "," + std::to_string(k) + ",0,0," +
                   std::to_string(1 + 1e-3 * q * (k + q / 2.0)) + "\n";
  const auto profile =
      read_profile({"d", "layer,tokens,time_us\nembedding,1,1\n"},
                   {"s", "layer,sequences,time_us\nsampler,1,1\n"}, {"a", attention});
  REQUIRE(profile.has_value());
  ServingLimits limits;
  limits.step_gap = {};
  const StepTimes times(*profile, 1, limits, {});
  StepLoad with_history, without;
  for (int i = 0; i < 2; ++i) with_history.add(256, 1024), without.add(256, 0);
  CHECK(times.of(with_history).us() == approx(2 + 1 + 1e-3 * 2 * 256 * (1024 + 128)).epsilon(0.01));
  CHECK(times.of(without).us() == approx(2 + 1 + 1e-3 * 2 * 256 * 128).epsilon(0.01));
}

TEST_CASE("CUDA graphs are captured for some sizes") {
  const std::array<std::uint32_t, 9> in{1, 2, 3, 5, 9, 255, 257, 511, 513};
  const std::array<std::uint32_t, 9> out{1, 2, 4, 8, 16, 256, 272, 512, 513};
  for (std::size_t i = 0; i < in.size(); ++i) CHECK(padded_tokens(in[i], 256) == out[i]);
  CHECK(padded_tokens(257, 128) == 257);
}

TEST_CASE("bad profiles say where") {
  const ProfileText good{"s.csv", "layer,sequences,time_us\nsampler,1,1\n"};
  const ProfileText grid{"a.csv",
                         "prefill_chunk,kv_prefill,n_decode,kv_decode,time_us\n16,0,0,0,1\n"};
  const auto text = [&](std::string dense) {
    const auto out = read_profile({"d.csv", std::move(dense)}, good, grid);
    return out ? std::string("none") : out.error().text();
  };
  CHECK(text("layer,tokens,time_us\na,1,2\n") == "none");
  CHECK(text("layer,tokens,time_us\na,1,-2\na,x,3\na,2,4\na,2,4\n") ==
        "d.csv:2:5: time_us is -2, and must be above 0 and at most 1000000000; remove the row, or "
        "measure it again\nd.csv:3:3: \"x\" is not a number; write a whole number such as 64 or 16 "
        "Ki\n"
        "d.csv:5:1: \"a\" of 2 tokens is listed a second time; keep one of the rows");
  CHECK(text("layer,tokens\n").starts_with("d.csv:1:"));
  CHECK(text("layer,tokens,time_us\n") == "d.csv: there are no rows; profile the kernels first");
}

}  // namespace
}  // namespace weft::workload
