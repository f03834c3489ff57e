// Reports of training jobs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "plan/report/finding.hpp"
#include "plan/report/report.hpp"
#include "plan/report/timeline.hpp"
#include "plan/report/tracks.hpp"

namespace {

using namespace weft;
using namespace weft::plan::report;
using model::Dimension;
using model::JobOutcome;
using model::Span;
using model::TrainingOutcome;
using model::VariantOutcome;
using nlohmann::json;

const std::string evil = "</script><img src=x onerror=alert(1)>";

// A step of 4 s: 2.5 s compute, 0.25 s TP, 0.75 s DP, 0.5 s idle.
TrainingOutcome training(double step_s = 4) {
  TrainingOutcome out{.model = "llama3-405b", .plan = "TP 8, PP 16, DP 128"};
  out.step_time_s = step_s;
  out.compute_s = 2.5;
  out.idle_s = 0.5;
  out.bubble = 0.2;
  out.exposed_s = {0.25, 0, 0, 0.75, 0, 0};
  out.critical.compute_s = 2.75;
  out.critical.communication_s[0][0] = 0.25;
  out.critical.communication_s[3] = {0, 0, 0.4, 0.6};
  out.tokens_per_s_per_gpu = 256;
  out.tflops_per_gpu = 646.4;
  out.mfu = 0.653;
  out.roofline_s = 3;
  out.roofline_resource = "compute of gpu:17";
  out.bytes[0] = {0x1p40, 0, 0, 0};
  out.bytes[3] = {0, 0, 0x1p30, 0x1p41};
  out.hottest_links = {{"ctsw:1->atsw:2",
                        0x1p31,
                        0.875,
                        {{"llama3", Dimension::dp, "gpu:0", "gpu:64", 0x1p30},
                         {"llama3", Dimension::pp, "gpu:1", "gpu:9", 0x1p29}}}};
  out.waits = {{"rank 148 (gpu:148)", Dimension::dp, 12.3}};
  out.step_times_s = {4.5, step_s};
  return out;
}

VariantOutcome training_variant(std::string name, double step_s) {
  VariantOutcome out{.name = std::move(name), .scheme = "ecmp"};
  JobOutcome job{.name = "llama3", .op = "training", .gpus = 16'384};
  job.bytes_per_rank = model::no_number;
  job.training = training(step_s);
  out.jobs = {job};
  return out;
}

Outcome training_report() {
  Outcome out;
  out.scenario = "test";
  out.file = "test.yaml";
  out.engine = "fluid";
  out.variants = {training_variant("slow", 4), training_variant("fast", 3.2)};
  return out;
}

json job_of(const Outcome& outcome, const std::string& variant = "slow") {
  return json::parse(json_text(outcome).value())["variants"][variant]["jobs"]["llama3"];
}

TEST_CASE("report.json: training jobs keep their contract") {
  const json job = job_of(training_report());
  CHECK(job["op"] == "training");
  CHECK(job["step_time_s"] == 4.0);
  CHECK(job["tflops_per_gpu"] == 646.4);
  CHECK(job["mfu"] == 0.653);
  CHECK(job["bubble"] == 0.2);
  CHECK(job["exposed_s"] ==
        json({{"tp", 0.25}, {"cp", 0.0}, {"pp", 0.0}, {"dp", 0.75}, {"ep", 0.0}}));
  CHECK(job["critical_path"]["compute_s"] == 2.75);
  CHECK(job["critical_path"]["communication_s"]["dp"] ==
        json({{"host", 0.0}, {"rack", 0.0}, {"zone", 0.4}, {"cross_zone", 0.6}}));
  CHECK(finding(training_report().variants[0].jobs[0]) ==
        "llama3: communication-bound: of 4 s a step, 62 % compute, 25 % communication that nothing "
        "hides (dp 19 %, tp 6 %), 12 % waiting for other ranks (pipeline, stragglers); critical "
        "path: 69 % compute, 31 % communication (dp between zones 15 %, dp in zones 10 %, tp in "
        "hosts 6 %)");
  CHECK(job["bytes"].size() == 5);
  CHECK(job["bytes"]["dp"] ==
        json({{"host", 0.0}, {"rack", 0.0}, {"zone", 0x1p30}, {"cross_zone", 0x1p41}}));
  const json& link = job["hottest_links"][0];
  CHECK(link["link"] == "ctsw:1->atsw:2");
  CHECK(link["load"] == 0.875);
  CHECK(link["flows"][1] == json({{"job", "llama3"},
                                  {"dimension", "pp"},
                                  {"from", "gpu:1"},
                                  {"to", "gpu:9"},
                                  {"bytes", 0x1p29}}));
  CHECK(job["waits"] ==
        json::array({{{"rank", "rank 148 (gpu:148)"}, {"dimension", "dp"}, {"seconds", 12.3}}}));
  CHECK(job["step_times_s"] == json({4.5, 4.0}));
  CHECK(job["roofline_s"] == 3.0);
  CHECK(job["model"] == "llama3-405b");
}

// 4.5 + 4 s of steps, 42.5 s of waiting: 83 % of the run.
TEST_CASE("finding: waits for checkpoints, which are in no step") {
  model::JobOutcome job = training_report().variants[0].jobs[0];
  job.training->checkpoints = 1;
  job.training->checkpoint_stall_s = 42.5;
  CHECK(finding(job).starts_with(
      "llama3: checkpoint-bound: 83 % of the run waits for checkpoints (1 in 2 steps); its steps "
      "are communication-bound: of 4 s a step, 62 % compute"));
  job.training->checkpoints = 2;
  job.training->checkpoint_stall_s = 0.25;  // 0.5 of 9 s
  CHECK(finding(job).starts_with("llama3: communication-bound: of 4 s"));
  CHECK(finding(job).ends_with("; 6 % of the run waits for checkpoints (2 in 2 steps)"));
  job.training->checkpoint_stall_s = 0;
  CHECK(finding(job) == finding(training_report().variants[0].jobs[0]));
}

TEST_CASE("report.json: what has no value is null, and other shows only where it is") {
  Outcome input = training_report();
  TrainingOutcome& some = *input.variants[0].jobs[0].training;
  some = TrainingOutcome{};
  some.exposed_s[5] = 0.5;
  const json job = job_of(input);
  for (const char* key :
       {"step_time_s", "compute_s", "idle_s", "bubble", "tokens_per_s_per_gpu", "tflops_per_gpu",
        "mfu", "memory_bytes", "roofline_s", "bootstrap_s", "checkpoint_s", "bytes_per_rank"}) {
    CAPTURE(key);
    CHECK(job.at(key).is_null());
  }
  CHECK(job["exposed_s"]["other"] == 0.5);
  CHECK_FALSE(job["bytes"].contains("other"));
  CHECK(job["hottest_links"] == json::array());
  CHECK_FALSE(job_of(training_report())["exposed_s"].contains("other"));
}

TEST_CASE("a collective has none of the keys of training") {
  Outcome input = training_report();
  input.variants[0].jobs[0].training.reset();
  CHECK_FALSE(job_of(input).contains("step_time_s"));
}

TEST_CASE("the terminal shows steps, links, waits and bytes") {
  const std::string text = terminal_text(training_report());
  CAPTURE(text);
  CHECK(text.find("variant  job     step time  TFLOP/s/GPU  MFU %  bubble %  exposed %: tp    dp  "
                  "tokens/s/GPU  vs slow\n"
                  "slow     llama3        4 s        646.4   65.3      20.0            6.2  18.8  "
                  "       256.0     1.00\n"
                  "fast     llama3      3.2 s        646.4   65.3      20.0            7.8  23.4  "
                  "       256.0     1.25\n") != std::string::npos);
  CHECK(text.find("slow          ctsw:1->atsw:2    87.5  2 GiB  llama3 dp 1 GiB "
                  "(gpu:0 -> gpu:64), pp 512 MiB\n") != std::string::npos);
  CHECK(text.find("slow        rank 148 (gpu:148): 12.3 GPU-s in dp\n") != std::string::npos);
  CHECK(text.find("all variants     llama3  tp    1 TiB        -        -           -\n"
                  "                         dp        -        -    1 GiB       2 TiB\n") !=
        std::string::npos);
  CHECK(text.find("busbw") == std::string::npos);
}

TEST_CASE("collectives and training jobs have a table each") {
  Outcome input = training_report();
  input.variants[1].jobs.push_back({.name = "mix", .op = "all_to_all", .gpus = 8});
  input.variants[1].jobs.back().unfinished = {2, "iteration 1 of 1: no path"};
  const std::string text = terminal_text(input);
  CHECK(text.find("fast     mix  unfinished at 2 s: iteration 1 of 1: no path\n") !=
        std::string::npos);
  CHECK(text.find("slow     llama3        4 s") != std::string::npos);
}

TEST_CASE("a job without steps is unfinished") {
  Outcome input = training_report();
  input.variants[1].jobs[0].training = TrainingOutcome{};
  input.variants[1].jobs[0].unfinished = {2, "step 1: no path"};
  CHECK(terminal_text(input).find("fast     llama3  unfinished at 2 s: step 1: no path\n") !=
        std::string::npos);
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  for (const std::string_view line : split(text, '\n')) {
    const auto continued = std::ranges::count_if(
        line, [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; });
    longest = std::max(longest, line.size() - static_cast<std::size_t>(continued));
  }
  return longest;
}

TEST_CASE("lines of training jobs fit 120 columns whatever the names are") {
  Outcome input = training_report();
  const std::string name = "größe " + std::string(150, 'x');
  for (VariantOutcome& v : input.variants) {
    v.name += name;
    v.jobs[0].name = name;
    TrainingOutcome& t = *v.jobs[0].training;
    t.exposed_s.fill(0.111);
    t.hottest_links[0].link = t.hottest_links[0].flows[0].from = name;
    t.waits[0].rank = name;
    for (auto& by_distance : t.bytes) by_distance.fill(1.2345e15);
  }
  CHECK(longest_line(terminal_text(input)) <= 120);
  for (std::size_t i = 0; i < 45; ++i) {
    input.variants.push_back(training_variant(name + std::to_string(i), 4));
    input.variants.back().jobs.resize(5, input.variants.back().jobs[0]);
    for (std::size_t j = 0; j < 5; ++j)
      input.variants.back().jobs[j].name += name + std::to_string(j);
  }
  CHECK(longest_line(terminal_text(input)) <= 120);
}

TEST_CASE("many variants have a line each, and no more") {
  Outcome input = training_report();
  for (int i = 0; i < 39; ++i) input.variants.push_back(training_variant(fmt::format("v{}", i), 4));
  const std::string text = terminal_text(input);
  CHECK(text.find("step time, MFU %     #1\n") != std::string::npos);
  CHECK(text.find("v38                 4 s  65.3\n") != std::string::npos);
  CHECK(text.find("waited for") == std::string::npos);
  CHECK(std::ranges::count(text, '\n') == 54);  // with the findings
}

TEST_CASE("no text of a training job can steer the terminal") {
  Outcome input = training_report();
  const std::string steer = "\x1b[2J\xc2\x9b\n";
  TrainingOutcome& t = *input.variants[0].jobs[0].training;
  t.hottest_links[0].link = t.hottest_links[0].flows[0].job = steer;
  t.hottest_links[0].flows[0].from = t.waits[0].rank = steer;
  const std::string text = terminal_text(input);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("\xc2\x9b") == std::string::npos);
  CHECK(text.find("?[2J??") != std::string::npos);
}

TEST_CASE("tracks: numbers in names count, jobs stay together") {
  CHECK(natural_less("pp 3", "pp 12"));
  CHECK_FALSE(natural_less("pp 12", "pp 3"));
  CHECK(natural_less("pp", "pp 0"));
  CHECK(natural_less("a 2 b", "a 10 a"));
  CHECK_FALSE(natural_less("pp 3", "pp 3"));
  CHECK(natural_less("pp 03", "pp 3") != natural_less("pp 3", "pp 03"));
  CHECK(parts_of("a / b / pp 3").job == "a / b");
  CHECK(parts_of("faults").role.empty());
  std::vector<Span> spans;
  for (const char* track : {"b / pp 10", "a / pp 1", "b / pp 9", "b", "b / pp 10"})
    spans.push_back({"x", "compute", track, 0, 1, {}});
  CHECK(tracks_of(spans) ==
        std::vector<std::string_view>{"b", "b / pp 9", "b / pp 10", "a / pp 1"});
}

// Two roles and two steps of 4 s; the second starts at 4.
std::vector<Span> two_steps() {
  return {{"forward 0", "compute", "llama3 / pp 10", 0, 4, {}},
          {"recv", "pp", "llama3 / pp 10", 4, 1, {}},
          {"forward 1", "compute", "llama3 / pp 10", 5, 3, {}},
          {"forward 1", "compute", "llama3 / pp 9", 3, 2, {}},
          {"link_down", "fault", "faults", 4.5, 0, {}}};
}

TEST_CASE("the trace has a lane per role, in order, and spans in order of time") {
  Outcome input = training_report();
  input.variants[0].spans = two_steps();
  std::vector<std::string> lanes;
  std::vector<int> order;
  std::map<int, double> last;
  const json trace = json::parse(trace_text(input));
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "thread_name") lanes.push_back(event["args"]["name"]);
    if (event["name"] == "thread_sort_index") order.push_back(event["args"]["sort_index"]);
    if (event["ph"] == "M") continue;
    CHECK(event["ts"] >= last[event["pid"]]);
    last[event["pid"]] = event["ts"];
    if (event["name"] == "recv") CHECK(event["cat"] == "pp");
  }
  CHECK(lanes == std::vector<std::string>{"llama3 / pp 9", "llama3 / pp 10", "faults"});
  CHECK(order == std::vector<int>{1, 2, 3});
}

TEST_CASE("the timeline is that of the last step") {
  Outcome input = training_report();
  input.variants[0].spans = two_steps();
  const json timelines = json::parse(timelines_json(input));
  CHECK(timelines["fast"] == json::array());
  REQUIRE(timelines["slow"].size() == 1);
  const json& timeline = timelines["slow"][0];
  CHECK(timeline["job"] == "llama3");
  CHECK(timeline["start_s"] == 4.0);
  CHECK(timeline["duration_s"] == 4.0);
  CHECK(timeline["lanes"] == json({"pp 9", "pp 10"}));
  CHECK(timeline["categories"] == json({"pp", "compute"}));
  CHECK(timeline["names"] == json({"recv", "forward 1"}));
  CHECK(timeline["merged_s"] == 0.0);
  // The span of pp 9 began before the step: cut.
  CHECK(timeline["spans"] == json({1, 0, 16384, 0, 0, 0, 0, 16384, 1, 1, 1, 16384, 49152, 1, 1}));
}

TEST_CASE("a timeline of many spans is merged, of many roles thinned") {
  Outcome input = training_report();
  constexpr int roles = 100, units = 400;
  for (int role = 0; role < roles; ++role)
    for (int i = 0; i < units; ++i)
      input.variants[0].spans.push_back(
          {"f", "compute", fmt::format("llama3 / rank {}", role), 0.01 * i, 0.009, {}});
  const json timeline = json::parse(timelines_json(input))["slow"][0];
  CHECK(timeline["lanes"].size() == timeline_lanes_max);
  CHECK(timeline["lanes"][63] == "rank 98");
  CHECK(timeline["lanes_left_out"] == roles - timeline_lanes_max);
  CHECK(timeline["spans"].size() <= 5 * timeline_spans_max);
  CHECK(timeline["merged_s"] > 0.001);
  CHECK(timeline["merged_s"] < 0.1);
}

TEST_CASE("spans that cannot be drawn leave a valid page") {
  Outcome input = training_report();
  const double none = model::no_number;
  input.variants[0].spans = {{"a", "compute", "llama3 / pp 0", none, 1, {}},
                             {"b", "compute", "llama3 / pp 0", 0, INFINITY, {}},
                             {"c", "compute", "llama3 / pp 0", 1, 0, {}}};
  CHECK(json::parse(timelines_json(input))["slow"] == json::array());
}

TEST_CASE("no text of a training job becomes markup") {
  Outcome input = training_report();
  TrainingOutcome& t = *input.variants[0].jobs[0].training;
  t.model = t.plan = t.roofline_resource = t.hottest_links[0].link = t.waits[0].rank = evil;
  input.variants[0].name = evil;
  input.variants[0].spans = {{evil + "\xff", evil, "llama3 / " + evil, 0, 4, {}}};
  const std::string page = html_text(input).value();
  CHECK(page.find("<img") == std::string::npos);
  const std::size_t from = page.find("id=\"timeline-data\">") + 19;
  const json timelines = json::parse(page.substr(from, page.find("</script>", from) - from));
  CHECK(timelines[evil][0]["lanes"][0] == evil);
}

}  // namespace
