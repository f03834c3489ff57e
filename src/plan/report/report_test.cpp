#include "plan/report/report.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "base/markup.hpp"
#include "base/test_folder.hpp"
#include "plan/report/assets.hpp"

namespace {

using namespace weft;
using namespace weft::plan::report;
using model::HeatMap;
using model::JobOutcome;
using model::Note;
using model::Span;
using model::TierOutcome;
using model::VariantOutcome;
using nlohmann::json;

const std::string evil_text = "</script><img src=x onerror=alert(1)>";

//  rtsw:0   rtsw:1      Two racks, two spines, the second spine is down.
//    |  \   /  |
//  ctsw:0   ctsw:1
HeatMap small_map() {
  const double none = model::no_number;
  return {"rtsw",
          "ctsw",
          {"rtsw:0", "rtsw:1"},
          {"ctsw:0", "ctsw:1"},
          {0.5, none, 0.25, none},
          {0.75, none, 0.125, none}};
}

VariantOutcome variant(std::string name, double seconds) {
  VariantOutcome out;
  out.name = std::move(name);
  out.scheme = "ecmp";
  JobOutcome job{.name = "grads",
                 .op = "all_reduce",
                 .algorithm = "ring",
                 .placement = "topology",
                 .gpus = 32,
                 .bytes_per_rank = 1e9,
                 .iterations = 3};
  job.time_mean_s = job.time_min_s = job.time_max_s = seconds;
  job.roofline_s = 0.02;
  job.ratio = seconds / 0.02;
  job.busbw_gbyte_s = 1.9375 / seconds;
  out.jobs = {job};
  TierOutcome up{
      .name = "rtsw->ctsw", .links = 2, .mean_load = 0.375, .max_load = 0.5, .mmr = 0.5 / 0.375};
  up.histogram[5] = up.histogram[10] = 1;
  TierOutcome idle{.name = "nic->rtsw", .links = 32};
  idle.histogram[0] = 32;
  out.tiers = {idle, up};
  out.heat_maps = {small_map()};
  out.completion = {
      .finished = 4, .unfinished = 1, .mean_s = 0.03, .quantiles = {{0.5, 0.02}, {1, 0.04}}};
  out.digest = "0123456789abcdef";
  return out;
}

Outcome outcome() {
  Outcome out;
  out.scenario = "test";
  out.file = "test.yaml";
  out.engine = "fluid";
  out.variants = {variant("slow", 0.04), variant("fast", 0.025)};
  return out;
}

json parsed(const Outcome& outcome) { return json::parse(json_text(outcome).value()); }

TEST_CASE("report.json keeps its contract") {
  const json root = parsed(outcome());
  CHECK(root["variant_order"] == json({"slow", "fast"}));
  const json& slow = root["variants"]["slow"];
  CHECK(slow["digest"] == "0123456789abcdef");
  CHECK(slow["jobs"]["grads"]["time_s"]["mean"] == 0.04);
  CHECK(slow["jobs"]["grads"]["ratio"] == 2.0);
  CHECK(slow["tier_order"] == json({"nic->rtsw", "rtsw->ctsw"}));
  const json& tier = slow["tiers"]["rtsw->ctsw"];
  CHECK(tier["links"] == 2);
  CHECK(tier["mean_load"] == 0.375);
  CHECK(tier["max_load"] == 0.5);
  CHECK(tier["mmr"] == 0.5 / 0.375);
  CHECK(tier["histogram"].size() == model::load_bins);
  CHECK(slow["flow_completion"]["quantiles"] == json({{0.5, 0.02}, {1.0, 0.04}}));
}

TEST_CASE("numbers without a value are null") {
  Outcome input = outcome();
  input.variants[0].jobs[0].time_mean_s = INFINITY;
  const json root = parsed(input);
  CHECK(root["variants"]["slow"]["jobs"]["grads"]["time_s"]["mean"].is_null());
  CHECK(root["variants"]["slow"]["tiers"]["nic->rtsw"]["mmr"].is_null());
  CHECK(root["variants"]["slow"]["heat_maps"][0]["up"] == json({{0.5, nullptr}, {0.25, nullptr}}));
}

TEST_CASE("two of one name are refused, with the file to mend") {
  Outcome input = outcome();
  input.variants[1].name = "slow";
  CHECK(json_text(input).error().text() ==
        "test.yaml: two variants have the name \"slow\"; give each a unique name");
  input = outcome();
  input.variants[1].jobs.push_back(input.variants[1].jobs[0]);
  CHECK(html_text(input).error().code == Errc::value);
  input = outcome();
  input.variants[1].tiers[1].name = input.variants[1].tiers[0].name;
  CHECK_FALSE(json_text(input).has_value());
}

TEST_CASE("bytes depend on the outcome, not on how long it took") {
  Outcome slow = outcome();
  slow.cpu_s = 99;
  slow.wall_s = 99;
  CHECK(json_text(slow).value() == json_text(outcome()).value());
  CHECK(html_text(slow).value() == html_text(outcome()).value());
  CHECK(trace_text(slow) == trace_text(outcome()));
  CHECK(terminal_text(slow) != terminal_text(outcome()));
}

model::PacketOutcome packet_outcome() {
  model::PacketOutcome out{.transport = "roce", .hops = 120'000, .pause_frames = 8};
  out.drops = 3;
  out.drops_headroom = 2;
  out.buffer_max_bytes = 3 << 20;
  out.sent_bytes = 4096;
  out.received_bytes = 4000;
  out.dropped_bytes = 96;
  model::PacketOutcome::Tier up{.name = "rtsw->ctsw", .packets = 100, .drops = 3, .pauses = 4};
  up.queue_p99_bytes = 65'536;
  up.queue_max_bytes = 98'304;
  up.pause_p99_s = 2.5e-6;
  up.paused_max_s = 1e-5;
  up.queue_histogram = {1, 0, 7};
  out.tiers = {up, {.name = "ctsw->rtsw", .packets = 100}};
  out.series = {{"queue a->b", "B", {0, 1e-6}, {0, 4160}}};
  out.deadlocks = {evil_text};
  return out;
}

TEST_CASE("what packets met is in the report of runs that had packets, and in no other") {
  Outcome input = outcome();
  CHECK_FALSE(parsed(input)["variants"]["slow"].contains("packet"));
  CHECK(terminal_text(input).find("queues") == std::string::npos);
  input.variants[0].packet = packet_outcome();
  const json packet = parsed(input)["variants"]["slow"]["packet"];
  CHECK_FALSE(parsed(input)["variants"]["fast"].contains("packet"));
  CHECK(packet["transport"] == "roce");
  CHECK(packet["drops_headroom"] == 2);
  CHECK(packet["payload_bytes"]["dropped"] == 96);
  CHECK(packet["tier_order"] == json({"rtsw->ctsw", "ctsw->rtsw"}));
  CHECK(packet["tiers"]["rtsw->ctsw"]["queue_bytes"]["histogram"] == json({1, 0, 7}));
  CHECK(packet["tiers"]["ctsw->rtsw"]["pause_s"]["p99"].is_null());
  CHECK(packet["series"][0]["value"] == json({0, 4160}));
  CHECK(packet["deadlocks"] == json({evil_text}));
}

TEST_CASE("the terminal shows queues by tier, and the sums that are not 0") {
  Outcome input = outcome();
  input.variants[0].packet = packet_outcome();
  const std::string text = terminal_text(input);
  const std::string table =
      "queues  tier           p99    most  pauses  p99 of one  longest paused  ECN marks  "
      "drops\nslow    rtsw->ctsw  64 KiB  96 KiB       4      2.5 us           10 us          -    "
      "  3\nslow    ctsw->rtsw     0 B     0 B       -           -               -          -      "
      "-\n\nslow: roce, 120000 packet hops, 8 pauses, 3 drops, 2 of them due to insufficient "
      "headroom; fullest switch 3 MiB\n";
  CHECK_MESSAGE(text.find(table) != std::string::npos, text);
}

HeatMap large_map(std::size_t rows, std::size_t columns) {
  HeatMap map{"leaf", "spine", {}, {}, {}, {}};
  for (std::size_t r = 0; r < rows; ++r) map.rows.push_back("leaf:" + std::to_string(r));
  for (std::size_t c = 0; c < columns; ++c) map.columns.push_back("spine:" + std::to_string(c));
  map.up.assign(rows * columns, 0.25);
  map.down.assign(rows * columns, model::no_number);
  return map;
}

TEST_CASE("large maps are merged into blocks that show their hottest link") {
  const std::size_t rows = 2 * map_rows_max - 1, columns = 2 * map_columns_max + 1;
  HeatMap map = large_map(rows, columns);
  map.up[7 * columns + 11] = 0.875;         // the block of rows 6-7, columns 9-11
  map.up[(rows - 1) * columns + 0] = 0.75;  // the last block has one row
  map.down[1 * columns + 2] = 0.5;          // one live link among missing ones
  Outcome input = outcome();
  input.variants[0].heat_maps = {map};
  const json out = parsed(input)["variants"]["slow"]["heat_maps"][0];
  CHECK(out["rows_per_cell"] == 2);
  CHECK(out["columns_per_cell"] == 3);
  CHECK(out["rows"].size() == map_rows_max);
  CHECK(out["rows"][3] == "leaf:6 … leaf:7");
  CHECK(out["columns"].size() == 65);
  CHECK(out["up"][3][3] == 0.875);
  CHECK(out["up"][3][2] == 0.25);
  CHECK(out["up"][map_rows_max - 1][0] == 0.75);
  CHECK(out["down"][0][0] == 0.5);
  CHECK(out["down"][0][1].is_null());
}

TEST_CASE("a map of the largest size that fits is not merged") {
  Outcome input = outcome();
  input.variants[0].heat_maps = {large_map(map_rows_max, map_columns_max)};
  const json out = parsed(input)["variants"]["slow"]["heat_maps"][0];
  CHECK(out["rows_per_cell"] == 1);
  CHECK(out["columns_per_cell"] == 1);
}

// The text between the first `open` and the `close` that follows it.
std::string between(const std::string& text, std::string_view open, std::string_view close) {
  const std::size_t from = text.find(open) + open.size();
  return text.substr(from, text.find(close, from) - from);
}

TEST_CASE("the page carries the report, and no text of it becomes markup") {
  Outcome input = outcome();
  input.scenario = input.command = input.variants[0].name = evil_text;
  input.variants[0].jobs[0].name = input.variants[0].scenario_text = evil_text + "<!--\xff";
  input.variants[0].notes = {{Note::Severity::warning, evil_text}};
  const std::string page = html_text(input).value();
  CHECK(page.find("<img") == std::string::npos);
  const std::string data = between(page, "id=\"report-data\">", "</script>");
  CHECK(json::parse(data) == parsed(input));
  CHECK(json::parse(between(page, "id=\"timeline-data\">", "</script>")).size() == 2);
  CHECK(between(page, "<title>", "</title>") ==
        "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt; - weft run");
}

TEST_CASE("the page carries the licence of what it contains") {
  const std::string page = html_text(outcome()).value();
  CHECK(page.find("This page contains uPlot.") != std::string::npos);
  CHECK(page.find("Leon Sorokin") != std::string::npos);
  CHECK(page.find("Permission is hereby granted, free of charge") != std::string::npos);
}

TEST_CASE("without assets the page holds the tables and says what is missing") {
  const std::string page = html_text(outcome(), PageAssets{}).value();
  CHECK(page.find("<pre>") != std::string::npos);
  CHECK(page.find(escape_markup(outcome().variants[0].jobs[0].name)) != std::string::npos);
  CHECK(page.find("npm could not fetch") != std::string::npos);
  CHECK(page.find("<script") == std::string::npos);
}

TEST_CASE("the page needs nothing from elsewhere") {
  std::string page = html_text(outcome()).value();
  constexpr std::string_view own = "url(#";  // a part of the page itself
  for (std::size_t at = page.find(own); at != std::string::npos; at = page.find(own))
    page.erase(at, own.size());
  for (const std::string_view outside : {"src=", "href=", "@import", "url(", "fetch("})
    CHECK(page.find(outside) == std::string::npos);
  CHECK(page.find("default-src 'none'; script-src 'sha256-") != std::string::npos);
}

// What a viewer shows: spans by "process/row", in the order of the file.
std::map<std::string, std::vector<json>> shown(const Outcome& outcome) {
  const json root = json::parse(trace_text(outcome));
  std::map<std::pair<int, int>, std::string> names;
  std::map<std::string, std::vector<json>> out;
  for (const json& event : root["traceEvents"])
    if (event["ph"] == "M" && event["name"] != "thread_sort_index")
      names[{event["pid"], event["tid"]}] = event["args"]["name"];
  for (const json& event : root["traceEvents"])
    if (event["ph"] != "M")
      out[names.at({event["pid"], 0}) + "/" + names.at({event["pid"], event["tid"]})].push_back(
          event);
  return out;
}

TEST_CASE("spans keep their process, row, times and arguments") {
  Outcome input = outcome();
  input.variants[1].spans = {{"all_reduce", "job", "grads", 0.5, 0.25, {{"algorithm", "\"ring\""}}},
                             {"link_down", "fault", "faults", 0.125, 0, {}}};
  const auto rows = shown(input);
  REQUIRE(rows.size() == 2);
  const json& job = rows.at("fast/grads").at(0);
  CHECK(job["ph"] == "X");
  CHECK(job["ts"] == 500'000.0);
  CHECK(job["dur"] == 250'000.0);
  CHECK(job["args"]["algorithm"] == "\"ring\"");
  CHECK(rows.at("fast/faults").at(0)["ph"] == "i");
}

TEST_CASE("spans of a row nest or follow each other; others get a row of their own") {
  //  a |-------|         a and b nest, c overlaps a, d follows both.
  //  b |--|
  //  c      |-----|
  //  d            |--|
  Outcome input = outcome();
  input.variants[0].spans = {{"c", "job", "t", 2, 3, {}},
                             {"b", "job", "t", 0, 1, {}},
                             {"a", "job", "t", 0, 4, {}},
                             {"d", "job", "t", 5, 1, {}}};
  const auto rows = shown(input);
  REQUIRE(rows.size() == 2);
  CHECK(rows.at("slow/t").size() == 3);
  CHECK(rows.at("slow/t (2)").at(0)["name"] == "c");
}

TEST_CASE("rounding does not make spans overlap") {
  Outcome input = outcome();
  for (int i = 0; i < 1000; ++i) {
    const double step = 0.1 / 3, start = step * i;
    input.variants[0].spans.push_back({"whole", "job", "t", start, step, {}});
    input.variants[0].spans.push_back({"half", "stage", "t", start, step / 2, {}});
    input.variants[0].spans.push_back({"half", "stage", "t", start + step / 2, step / 2, {}});
  }
  CHECK(shown(input).size() == 1);
}

TEST_CASE("the terminal compares every job with the first variant") {
  Outcome input = outcome();
  input.variants[1].notes = {{Note::Severity::info, "tolerance 1 %"}};
  const std::string text = terminal_text(input);
  CHECK(text.find("variant  job     time  busbw GB/s  x roofline  speed vs slow  worst MMR\n"
                  "slow     grads  40 ms       48.44        2.00           1.00  1.33 rtsw->ctsw\n"
                  "fast     grads  25 ms       77.50        1.25           1.60  1.33 rtsw->ctsw\n"
                  "\ngrads: all_reduce of 40 ms, 2.00 times the least that its links allow; ") !=
        std::string::npos);
  CHECK(text.find("fastest with fast, 1.60 times") != std::string::npos);
  CHECK(text.find("\nslow: busiest links: rtsw->ctsw, ") != std::string::npos);
  CHECK(text.find("\nnote: fast: tolerance 1 %\n") != std::string::npos);
}

TEST_CASE("notes are folded by cause on the terminal, and whole in report.json") {
  Outcome input = outcome();
  const auto note = [](std::string text) { return Note{Note::Severity::info, std::move(text)}; };
  for (auto& variant : input.variants) variant.notes = {note("shared")};
  auto& notes = input.variants[1].notes;
  for (int i = 0; i < 4; ++i) notes.push_back(note(fmt::format("four: {}", i)));
  for (int i = 8; i < 13; ++i)  // one digit and two are one cause
    notes.push_back({Note::Severity::warning, fmt::format("rank {} hangs", i)});
  notes.push_back(note("rank 13 hangs"));  // of another severity
  const std::string text = terminal_text(input);
  CHECK(text.find("\nnote: slow and 1 more: shared\n"
                  "note: fast: four: 0\nnote: fast: four: 1\n"
                  "note: fast: four: 2\nnote: fast: four: 3\n"
                  "warning: fast: rank 8 hangs\nwarning: fast: rank 9 hangs\n"
                  "warning: fast: rank 10 hangs\n"
                  "  ... and 2 more that differ in numbers only; report.json has them\n"
                  "note: fast: rank 13 hangs\n") != std::string::npos);
  CHECK(parsed(input)["variants"]["fast"]["notes"].size() == 11);
}

TEST_CASE("what did not run or finish shows as such") {
  Outcome input = outcome();
  input.variants[0].jobs[0].name = "other";
  input.variants[1].jobs[0] = {.name = "grads", .op = "all_reduce", .iterations = 1};
  input.variants[1].jobs[0].unfinished = {0.0125,
                                          "iteration 2 of 3: gpu:0 has no live path to gpu:8"};
  const std::string text = terminal_text(input);
  CHECK(text.find("fast     grads  unfinished at 12.5 ms: iteration 2 of 3: gpu:0 has no live path "
                  "to gpu:8\n") != std::string::npos);
  input.variants.clear();
  CHECK(terminal_text(input).find("no variants") != std::string::npos);
  CHECK(parsed(input)["variants"].empty());
}

TEST_CASE("no text can steer the terminal") {
  Outcome input = outcome();
  input.scenario = input.variants[0].name = input.variants[0].jobs[0].name =
      "\x1b[2J\x07\xc2\x9b"
      "31m\nx";
  input.variants[0].notes = {{Note::Severity::warning, "\r\x1b]0;owned\x07"}};
  for (const char c : terminal_text(input)) {
    const auto byte = static_cast<unsigned char>(c);
    CHECK((c == '\n' || (byte >= 0x20 && byte != 0x7F)));
  }
  CHECK(terminal_text(input).find("\xc2\x9b") == std::string::npos);
}

TEST_CASE("a directory is tried without a trace of the trial") {
  const TestFolder folder;
  const std::string& scratch = folder.path();
  CHECK(check_directory(scratch).has_value());
  CHECK(check_directory(scratch + "/a/b/").has_value());
  CHECK(std::filesystem::is_empty(scratch));
  REQUIRE(write_file(scratch + "/file", "x").has_value());
  const Status status = check_directory(scratch + "/file/b");
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code == Errc::io);
  CHECK(status.error().where.file == scratch + "/file/b");
  CHECK_FALSE(check_directory(scratch + "/file").has_value());
  CHECK(read_file(scratch + "/file").value() == "x");
}

TEST_CASE("write_report makes the directory and three files, or says why not") {
  const TestFolder folder;
  const std::string& scratch = folder.path();
  const std::string directory = scratch + "/a/b";
  REQUIRE(write_report(outcome(), directory).has_value());
  CHECK(read_file(directory + "/report.json").value() == json_text(outcome()).value());
  CHECK(read_file(directory + "/report.html").value() == html_text(outcome()).value());
  const std::string trace = directory + "/trace.json.gz";
  CHECK(gunzip(read_file(trace).value(), trace).value() == trace_text(outcome()));
  CHECK(write_report(outcome(), trace).error().code == Errc::io);
  Outcome broken = outcome();
  broken.variants[1].name = "slow";
  CHECK_FALSE(write_report(broken, scratch + "/c").has_value());
  CHECK_FALSE(std::filesystem::exists(scratch + "/c"));
}

}  // namespace
