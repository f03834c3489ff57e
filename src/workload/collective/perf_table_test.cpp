#include "workload/collective/perf_table.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "base/test_approx.hpp"
#include "workload/collective/test_kit.hpp"

namespace weft::workload {
namespace {

using test::contains;

PerfRequest request_of(std::int64_t begin, std::int64_t end) {
  PerfRequest request;
  request.machine.system = system_by_name("p5").value();
  request.sweep = {.begin = {begin}, .end = {end}};
  return request;
}

std::vector<PerfRow> rows_of(const PerfRequest& request) {
  auto rows = perf_rows(request);
  if (!rows) FAIL(rows.error().text());
  return *std::move(rows);
}

std::string reason(std::string_view text) {
  const auto table = read_nccl_table(text, "run.txt");
  return table ? "accepted" : table.error().text();
}

TEST_CASE("sizes of a sweep") {
  const auto count = [](const Sweep& sweep) { return sizes_of(sweep).value().size(); };
  CHECK(count({.begin = {8}, .end = {8}}) == 1);
  CHECK(count({.begin = {8}, .end = {std::int64_t{16} << 30}}) == 32);
  CHECK(count({.begin = {1}, .end = {100}, .factor = 10}) == 3);
  CHECK(count({.begin = {10}, .end = {100}, .factor = 2, .step = {10}}) == 10);
  CHECK(count({.begin = {600'000'000'000'000'000}, .end = {1'000'000'000'000'000'000}}) == 1);
  for (const Sweep& bad : {Sweep{.begin = {0}, .end = {8}}, Sweep{.begin = {16}, .end = {8}},
                           Sweep{.begin = {8}, .end = {16}, .factor = 1},
                           Sweep{.begin = {8}, .end = {16}, .factor = 2, .step = {-1}},
                           Sweep{.begin = {1}, .end = {1 << 30}, .factor = 2, .step = {1}},
                           Sweep{.begin = {8}, .end = {INT64_MAX}}})
    CHECK_FALSE(sizes_of(bad));
}

TEST_CASE("bandwidths follow from times") {
  for (const PerfRow& row : rows_of(request_of(8, 1 << 30))) {
    CHECK(row.algbw_GBps == approx(static_cast<double>(row.size_bytes) / row.time_us / 1e3));
    CHECK(row.busbw_GBps == approx(row.algbw_GBps * 1.75));
    CHECK_FALSE(row.why.empty());
  }
}

TEST_CASE("what is printed reads back") {
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::broadcast, Op::all_to_all}) {
    PerfRequest request = request_of(1024, std::int64_t{16} << 30);
    request.op = op;
    const auto rows = rows_of(request);
    const auto table = read_nccl_table(nccl_table(request, rows), "ours");
    if (!table) FAIL(table.error().text());
    REQUIRE(table->rows.size() == rows.size());
    CHECK(table->other_lines == 0);
    CHECK(table->avg_busbw_GBps.has_value());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      CHECK(table->rows[i].size_bytes == rows[i].size_bytes);
      CHECK(table->rows[i].time_us == approx(rows[i].time_us).epsilon(1e-3));
      CHECK(table->rows[i].in_place_time_us == table->rows[i].time_us);
      CHECK(std::abs(table->rows[i].busbw_GBps - rows[i].busbw_GBps) <= 0.00501);
    }
  }
}

TEST_CASE("columns stand where nccl-tests put them") {
  const PerfRequest request = request_of(1 << 20, 1 << 20);
  PerfRow row;
  row.size_bytes = 1 << 20;
  row.time_us = 28.56;
  row.algbw_GBps = 36.71;
  row.busbw_GBps = 64.24;
  const std::string text = nccl_table(request, std::vector{row});
  CHECK(contains(text,
                 "     1048576        262144     float     sum      -1"
                 "    28.56   36.71   64.24    N/A    28.56   36.71   64.24    N/A\n"));
  CHECK(contains(text, "# Avg bus bandwidth    : 64.24 \n"));
  row.time_us = 62239;
  CHECK(contains(nccl_table(request, std::vector{row}), "-1    62239   36.71"));
  row.time_us = 1121.4;
  CHECK(contains(nccl_table(request, std::vector{row}), "-1   1121.4   36.71"));
}

TEST_CASE("JSON has the rows") {
  const PerfRequest request = request_of(8, 1 << 20);
  const auto rows = rows_of(request);
  const auto json = nlohmann::json::parse(perf_json(request, rows));
  REQUIRE(json["rows"].size() == rows.size());
  for (const char* key :
       {"size_bytes", "time_s", "algbw_GBps", "busbw_GBps", "algorithm", "protocol", "channels"})
    CHECK(json["rows"][0].contains(key));
  CHECK(json["rows"][0]["protocol"] == "LL");
  CHECK(json["rows"][0]["size_bytes"] == 8);
}

TEST_CASE("calibration by one row") {
  const auto anchor = parse_anchor({"4M=107.16", {}}).value();
  CHECK(anchor.size == 4_MiB);
  const auto fitted = calibrate(request_of(4 << 20, 4 << 20), anchor);
  if (!fitted) FAIL(fitted.error().text());
  CHECK(rows_of(*fitted)[0].busbw_GBps == approx(107.16).epsilon(1e-4));
  for (const std::string_view bad :
       {"", "4M", "4M=", "=3", "4M=0", "4M=-1", "4M=nan", "4M=1=2", "0=5", "x=5"})
    CHECK_FALSE(parse_anchor({bad, {}}));
  CHECK_FALSE(calibrate(request_of(8, 8), {4_MiB, 1e6}));  // faster than the links
}

TEST_CASE("times on the caller's fabric replace those of a fabric without limits") {
  PerfRequest request = request_of(1 << 30, std::int64_t{4} << 30);
  request.machine.shape = {.ranks = 32, .hosts = 4, .gpus_per_host = 8, .nics_per_host = 8};
  request.rules.algorithm = "ring";
  const double full = rows_of(request)[2].busbw_GBps;
  request.on_fabric = [&](const PlannedCall& call, double) -> Result<double> {
    CHECK(call.pick.algorithm == "ring");
    return 2 * call.cost.seconds();
  };
  CHECK(rows_of(request)[2].busbw_GBps == approx(full / 2));
  request.on_fabric = [](const PlannedCall&, double) -> Result<double> {
    return fail(Errc::infeasible, {}, "no path");
  };
  CHECK_FALSE(perf_rows(request));
}

TEST_CASE("real tables: prefixes, old and new columns, logs around them") {
  const std::string_view text =
      "node1:10:20 [0] NCCL INFO comm 0x1 rank 0\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "0:      1048576        262144     float     sum      -1    309.4    3.39    6.35      0"
      "    307.3    3.41    6.40      0\n"
      "[1,0]<stdout>:     2097152        524288     float     sum      -1    43.45   48.27   84.47"
      "      0    43.39   48.34   84.59    N/A\n"
      "     4194304       1048576     float     sum     56.0   74.90  131.07  1e-07"
      "     55.0   76.26  133.46  1e-07\r\n"
      "     8388608       2097152      half      none     -1    10   1   2  0   11   3   4   0\n"
      "     8388608       2097152      half    10   1   2  0   11   3   4   0\n"
      "16 4 float sum -1  1 2 3 0 9 9 9 9  4 5 6 0 9 9 9 9\n"
      "[1,0]<stdout>:# Avg bus bandwidth    : 52.9753 \n";
  const auto table = read_nccl_table(text, "run.txt");
  if (!table) FAIL(table.error().text());
  REQUIRE(table->rows.size() == 6);
  CHECK(table->other_lines == 1);
  CHECK(table->avg_busbw_GBps == 52.9753);
  CHECK(table->rows[0].time_us == 309.4);
  CHECK(table->rows[0].in_place_busbw_GBps == 6.40);
  CHECK(table->rows[1].busbw_GBps == 84.47);
  CHECK(table->rows[2].busbw_GBps == 131.07);
  CHECK(table->rows[2].in_place_time_us == 55.0);
  CHECK(table->rows[3].redop == "none");
  CHECK(table->rows[4].redop.empty());
  CHECK(table->rows[5].in_place_time_us == 4);
  CHECK(table->rows[5].where.line == 8);
}

TEST_CASE("broken rows say where") {
  CHECK(contains(reason(""), "run.txt:1:1"));
  CHECK(contains(reason("# only comments\n"), "no nccl-tests rows"));
  CHECK(contains(reason("# x\n 8 2 float sum -1 1 2 3\n"), "run.txt:2:"));
  CHECK(contains(reason("8 2 float sum -1 x 2 3 0 4 5 6 0\n"), "run.txt:1:"));
  CHECK(contains(reason("8 2 float sum -1 1 nan 3 0 4 5 6 0\n"), "run.txt:1:20"));
  CHECK(contains(reason("8 2 float sum -1 1 2 -3 0 4 5 6 0\n"), "\"-3\""));
  CHECK(contains(reason("8 2 float sum -1 1 2 3 0 4 5 inf 0\n"), "\"inf\""));
}

TEST_CASE("a comparison joins equal sizes and sums up by band") {
  std::vector<PerfRow> ours(3);
  ours[0].size_bytes = 1 << 20;
  ours[0].busbw_GBps = 55;
  ours[1].size_bytes = 2 << 20;
  ours[1].busbw_GBps = 90;
  ours[2].size_bytes = 1 << 30;
  ours[2].busbw_GBps = 100;
  const auto table = read_nccl_table(
      "1048576 262144 float sum -1 1 2 50 0 1 2 50 0\n"
      "2097152 524288 float sum -1 0 0 100 0 1 2 100 0\n"
      "33554432 524288 float sum -1 1 2 100 0 1 2 100 0\n",
      "run.txt");
  REQUIRE(table.has_value());
  auto pairs = compare(ours, *table);
  REQUIRE(pairs.size() == 2);
  CHECK(pairs[1].error() == approx(-0.1));
  pairs = {{8, 10, 11}, {16, 10, 12}, {32, 10, 7}, {4 << 20, 10, 10}};
  const auto bands = errors_by_band(pairs);
  REQUIRE(bands.size() == 2);
  CHECK(bands[0].rows == 3);
  CHECK(bands[0].median == approx(0.2));
  CHECK(bands[0].worst == approx(0.3));
  CHECK(bands[1].worst == 0);
  CHECK(contains(comparison_table(pairs), "-30.0 %"));
}

MeasuredTable measured_by(const std::string& log) {
  const auto table = read_nccl_table(
      log + "1048576 262144 float sum -1 10 104.86 183.5 0 10 104.86 183.5 0\n", "run.txt");
  REQUIRE_MESSAGE(table.has_value(), table.error().text());
  return *table;
}

TEST_CASE("the log's operation and ranks must be those of the request") {
  const PerfRequest request = request_of(1 << 20, 1 << 20);  // all_reduce, 8 ranks
  REQUIRE(request.machine.shape.ranks == 8);
  const auto refused = [&](const std::string& log) -> std::string {
    const Status status = check_run(request, measured_by(log));
    return status ? "" : status.error().text();
  };
  CHECK(refused("").empty());
  CHECK(refused("# Collective test starting: all_reduce_perf\n"
                "# nThread 1 nGpus 8 minBytes 8 maxBytes 8\n"
                "#  Rank  7 Group  0 Pid  9 on node1 device  7 [0xdb] NVIDIA H100\n"
                "n:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 8 cudaDev 0 - Init COMPLETE\n"
                "n:1:2 [0] NCCL INFO AllReduce: opCount 0 count 8 comm 0x1 [nranks=8] stream 0\n")
            .empty());
  // A communicator of two ranks beside that of all.
  CHECK(refused("n [0] NCCL INFO x nranks 2 y\nn [0] NCCL INFO x nranks 8 y\n").empty());
  CHECK(refused("$ mpirun ./build/all_gather_perf -g 8\n")
            .starts_with("run.txt:1:1: this run is of all_gather, and all_reduce was predicted"));
  CHECK(refused("./alltoall_perf\n").contains("weft perf all_to_all"));
  CHECK(refused("n:1 [0] NCCL INFO ReduceScatter: opCount 0\n").contains("of reduce_scatter"));
  CHECK(refused("#\n#  Rank  3 Group  0 Pid  9 on n device  3\n")
            .starts_with("run.txt:2:1: this run has 4 ranks, and 8 were predicted"));
  CHECK(refused("# nThread 1 nGpus 3 minBytes\n").contains("3 GPUs in each process"));
  CHECK(refused("# nThread 1 nGpus 4 minBytes\n").empty());  // two such processes
}

TEST_CASE("without a header the two bandwidths tell operation and ranks") {
  const PerfRequest request = request_of(1 << 20, 1 << 20);
  const auto with = [](const char* busbw) {
    return *read_nccl_table(
        fmt::format("1048576 1 float sum -1 10 100.00 {0} 0 10 100.00 {0} 0\n", busbw), "run.txt");
  };
  CHECK(check_run(request, with("175.00")));        // 2 x 7/8
  CHECK_FALSE(check_run(request, with("87.50")));   // all_gather
  CHECK_FALSE(check_run(request, with("150.00")));  // 4 ranks
  CHECK(check_run(request, with("150.00")).error().text() ==
        "run.txt:1:1: busbw is 1.500 times algbw; with all_reduce of 8 ranks it is 1.750; predict "
        "the operation of that run, with -n RANKS and --fabric as it had");
}

TEST_CASE("NCCL's choice of algorithm and protocol, in both spellings, beside ours") {
  const MeasuredTable table = measured_by(
      "n:1 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo 1 proto 0 time 9.5\n"
      "n:1 [0] NCCL INFO AllReduce: 1048576 Bytes -> Algo 1 proto 0 time 9.5\n"
      "n:1 [0] NCCL INFO AllReduce: 2097152 Bytes -> Algo NVLS proto SIMPLE "
      "channel{Lo..Hi}={0..15}\n"
      "n:1 [0] NCCL INFO AllReduce: 4 Bytes -> Algo 9 proto 9 time 1\n");
  REQUIRE(table.choices.size() == 2);
  std::vector<PerfRow> ours(2);
  ours[0] = {.size_bytes = 1048576, .algorithm = "ring", .protocol = Protocol::ll128};
  ours[1] = {.size_bytes = 2097152, .algorithm = "nvls", .protocol = Protocol::simple};
  const auto notes = other_choices(ours, table);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0] == "1 MiB: NCCL chose ring LL, the model ring LL128");
}

}  // namespace
}  // namespace weft::workload
