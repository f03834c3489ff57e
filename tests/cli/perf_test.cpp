// weft perf: the table of nccl-tests, its JSON, one measured row, and a table to compare with.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ranges>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "base/text.hpp"
#include "run_weft.hpp"

using namespace weft;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

std::string run(const Scratch& scratch, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "perf");
  const Outcome outcome = scratch.run(arguments);
  REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
  return outcome.out;
}

json rows(const Scratch& scratch, std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  return json::parse(run(scratch, std::move(arguments)))["rows"];
}

}  // namespace

TEST_CASE("the rows: sizes by factor and by step, and bandwidths that agree with the time") {
  const Scratch scratch;
  const json all = rows(scratch, {"all_reduce", "-b", "8", "-e", "1G", "-f", "2"});
  REQUIRE(all.size() == 28);
  double time_before = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const json& row = all[i];
    CHECK(row["size_bytes"] == 8ull << i);
    const double time_us = row["time_s"].get<double>() * 1e6;
    const double algbw = row["algbw_GBps"];
    CHECK(std::abs(algbw * time_us * 1e3 / row["size_bytes"].get<double>() - 1) < 1e-9);
    CHECK(std::abs(row["busbw_GBps"].get<double>() / algbw - 2.0 * 7 / 8) < 1e-9);
    CHECK(time_us >= time_before);
    time_before = time_us;
    for (const char* key : {"algorithm", "protocol", "channels"}) CHECK(row.contains(key));
  }
  const json steps = rows(scratch, {"all_gather", "-b", "1M", "-e", "4M", "-i", "1M"});
  REQUIRE(steps.size() == 4);
  CHECK(steps[2]["size_bytes"] == 3 << 20);
}

TEST_CASE("the table has the columns of nccl-tests, and --compare reads it back") {
  const Scratch scratch;
  const std::string table = run(scratch, {"all_reduce", "-b", "1M", "-e", "4M", "-f", "2"});
  std::istringstream lines(table);
  int found = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream cells(line);
    std::vector<std::string> row;
    for (std::string cell; cells >> cell;) row.push_back(cell);
    // size count type redop root, then time algbw busbw #wrong twice
    REQUIRE(row.size() == 13);
    CHECK(row[0] == std::to_string((1 << 20) << found));
    CHECK(row[1] == std::to_string((1 << 18) << found));
    CHECK(row[2] == "float");
    CHECK(row[3] == "sum");
    CHECK(row[8] == "N/A");
    ++found;
  }
  CHECK(found == 3);
  CHECK(table.find("# Avg bus bandwidth") != std::string::npos);

  scratch.write("measured.txt", table);
  const std::string both =
      run(scratch, {"all_reduce", "-b", "1M", "-e", "4M", "-f", "2", "--compare", "measured.txt"});
  CHECK(both.starts_with(table));
  CHECK(both.find("2-32 MiB", table.size()) != std::string::npos);
  CHECK(both.find("0.0 %", table.size()) != std::string::npos);
}

TEST_CASE("--calibrate makes the measured row the model's") {
  const Scratch scratch;
  const json row =
      rows(scratch, {"all_reduce", "-b", "4M", "-e", "4M", "--calibrate", "4M=100"})[0];
  CHECK(row["busbw_GBps"].get<double>() == approx(100).epsilon(0.001));
  const Outcome absurd = scratch.run({"perf", "all_reduce", "--calibrate", "4M=1e30"});
  CHECK(absurd.status == 2);
  CHECK(absurd.err.find("the bytes already take") != std::string::npos);
}

TEST_CASE("a fabric takes away bandwidth: oversubscribed hosts, failed switches") {
  const Scratch scratch;
  const std::string head =
      "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 8, spines: ";
  scratch.write("full.yaml", head + "16}\nrouting: {scheme: spray}\n");
  scratch.write("quarter.yaml", head + "4}\nrouting: {scheme: spray}\n");
  scratch.write("down.yaml", head + "4}\nfaults: [{kind: switch_down, role: ctsw, count: 4}]\n");
  const auto busbw = [&](const std::string& file) {
    const json all = rows(scratch, {"all_reduce", "--fabric", file, "-b", "1G", "-e", "1G",
                                    "--algorithm", "nvls_tree"});
    return all[0]["busbw_GBps"].get<double>();
  };
  const double full = busbw("full.yaml");
  const double quarter = busbw("quarter.yaml");
  CHECK(quarter < 0.5 * full);
  CHECK(quarter > 0.2 * full);
  const Outcome down = scratch.run({"perf", "all_reduce", "--fabric", "down.yaml"});
  CHECK(down.status == 2);
  CHECK(down.err.find("cannot finish") != std::string::npos);
}

TEST_CASE("run and perf price a call alike, whatever the scenario says of the library") {
  const Scratch scratch;
  const auto times = [&](int hosts, const std::string& keys, const std::string& op) {
    scratch.write("s.yaml", fmt::format("fabric: {{generator: ai_zone, racks: {}, "
                                        "hosts_per_rack: 1, spines: 16}}\n"
                                        "routing: {{scheme: spray}}\n"
                                        "transport: {{step_overhead: 2 us}}\n"
                                        "collectives: {{{}}}\n"
                                        "jobs: [{{name: j, collective: {}, gpus: {}, "
                                        "bytes: 4 MiB}}]\n",
                                        hosts, keys, op, 8 * hosts));
    const Outcome ran = scratch.run({"run", "s.yaml", "--json"});
    REQUIRE_MESSAGE(ran.status == 0, ran.err);
    const json job = json::parse(ran.out)["variants"].front()["jobs"]["j"];
    const json row = rows(scratch, {op, "--fabric", "s.yaml", "-b", "4M", "-e", "4M"})[0];
    CHECK(row["algorithm"] == job["algorithm"]);
    return std::pair(job["time_s"]["mean"].get<double>(), row["time_s"].get<double>());
  };
  constexpr std::array ops{"all_reduce", "all_gather", "all_to_all"};
  for (const int hosts : {1, 2})
    for (const char* op : ops | std::views::take(test_effort(ops.size()))) {
      double plain = 0;
      for (const char* keys : {"cost: nccl", "cost: line_rate", "step: 50 us", "transport: efa",
                               "transport: infiniband", "launch: 90 us", "system: b200"}) {
        CAPTURE(hosts);
        CAPTURE(op);
        CAPTURE(keys);
        const auto [run_s, perf_s] = times(hosts, keys, op);
        CHECK(perf_s == approx(run_s).epsilon(1e-9));
        if (plain == 0) {
          plain = perf_s;
        } else if (hosts == 2 && !std::string_view(keys).starts_with("launch") &&
                   !std::string_view(keys).starts_with("system")) {
          CHECK(std::abs(perf_s / plain - 1) > 0.01);  // between hosts these keys matter
        }
      }
    }
}

TEST_CASE("run and perf place a job alike, by every placement") {
  const Scratch scratch;
  const std::string fabric =
      "fabric: {generator: ai_zone, racks: 8, hosts_per_rack: 2, spines: 6}\n"
      "collectives: {cost: line_rate}\n";
  std::set<double> times;
  for (const char* place :
       {"topology", "rack_order", "fragmented", "random", "scattered", "fitted"}) {
    CAPTURE(place);
    scratch.write("s.yaml", fabric + fmt::format("jobs: [{{name: perf, collective: all_gather, "
                                                 "gpus: 56, bytes: 64 MiB, place: {}}}]\n",
                                                 place));
    const Outcome ran = scratch.run({"run", "s.yaml", "--json"});
    REQUIRE_MESSAGE(ran.status == 0, ran.err);
    const json job = json::parse(ran.out)["variants"].front()["jobs"]["perf"];
    const json row = rows(scratch, {"all_gather", "--fabric", "s.yaml", "-n", "56", "-b", "64M",
                                    "-e", "64M", "--place", place})[0];
    const double perf_s = row["time_s"].get<double>();
    CHECK(perf_s == approx(job["time_s"]["mean"].get<double>()).epsilon(1e-9));
    times.insert(perf_s);
  }
  CHECK(times.size() >= 4);  // placements matter here
}

TEST_CASE("line rate: no protocol, and no options of a library") {
  const Scratch scratch;
  scratch.write("s.yaml",
                "fabric: {generator: ai_zone, racks: 2}\ncollectives: {cost: line_rate}\n");
  const json row = rows(scratch, {"all_reduce", "--fabric", "s.yaml", "-n", "32"})[0];
  CHECK_FALSE(row.contains("protocol"));
  for (const auto& [option, value] : {std::pair("--protocol", "LL"),
                                      {"--system", "p5"},
                                      {"--transport", "efa"},
                                      {"--calibrate", "4M=100"}}) {
    const Outcome out = scratch.run({"perf", "all_reduce", "--fabric", "s.yaml", option, value});
    CHECK(out.status == 2);
    CHECK(out.err.contains(std::string(option) + ": has no effect with collectives.cost"));
  }
  scratch.write("a.yaml",
                "fabric: {generator: ai_zone, racks: 2}\ncollectives: {adaptive: true}\n");
  CHECK(scratch.run({"perf", "all_reduce", "--fabric", "a.yaml"})
            .err.starts_with("weft: error: a.yaml:2:"));
}
