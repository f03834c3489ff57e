// demo_report KIND DIRECTORY: writes a report of made-up but plausible numbers, for people who work
// on the page and for the test that opens it in a browser. Kinds: zone, many, large, single,
// training, mixed, hostile.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "base/rng.hpp"
#include "plan/report/report.hpp"

namespace {

using weft::Rng;
using namespace weft::model;

struct Style {
  std::string name, scheme;
  std::uint64_t qps;
  std::size_t flows_per_rack;  // how finely a rack's traffic is spread over the spines
  std::size_t failed;          // spines that are down
};

struct Size {
  std::size_t racks, spines;
};

// Every rack throws its flows at random live spines: balls into bins, as hashing does it.
HeatMap throw_flows(const Style& style, Size size, Rng rng) {
  HeatMap map{"rtsw", "ctsw", {}, {}, {}, {}};
  for (std::size_t r = 0; r < size.racks; ++r) map.rows.push_back(fmt::format("rtsw:{}", r));
  for (std::size_t c = 0; c < size.spines; ++c) map.columns.push_back(fmt::format("ctsw:{}", c));
  const std::size_t live = size.spines - style.failed;
  const double share = 0.55 * static_cast<double>(size.spines) /
                       static_cast<double>(style.flows_per_rack) * 16.0 / 18.0;
  for (std::vector<double>* loads : {&map.up, &map.down}) {
    for (std::size_t r = 0; r < size.racks; ++r) {
      std::vector<double> row(size.spines, 0.0);
      for (std::size_t f = 0; f < style.flows_per_rack; ++f) row[rng.below(live)] += share;
      for (std::size_t c = 0; c < size.spines; ++c)
        loads->push_back(c < live ? std::min(row[c], 0.995) : no_number);
    }
  }
  return map;
}

TierOutcome tier_of(std::string name, const std::vector<double>& loads) {
  TierOutcome tier{std::move(name), 0, 0, 0, no_number, {}};
  double sum = 0;
  for (const double load : loads) {
    if (!std::isfinite(load)) continue;
    tier.links += 1;
    sum += load;
    tier.max_load = std::max(tier.max_load, load);
    const auto bin = static_cast<std::size_t>(load * static_cast<double>(load_bins));
    tier.histogram[std::min(bin, load_bins - 1)] += 1;
  }
  tier.mean_load = sum / static_cast<double>(std::max<std::uint64_t>(tier.links, 1));
  if (tier.mean_load > 0) tier.mmr = tier.max_load / tier.mean_load;
  return tier;
}

std::vector<double> nic_loads(std::size_t count, Rng rng) {
  std::vector<double> loads;
  for (std::size_t i = 0; i < count; ++i) loads.push_back(0.46 + 0.08 * rng.uniform());
  return loads;
}

JobOutcome job_of(std::string name, std::string op, std::uint64_t gpus, double roofline_busbw,
                  double ratio) {
  JobOutcome job{.name = std::move(name),
                 .op = std::move(op),
                 .algorithm = "ring",
                 .placement = "topology",
                 .gpus = gpus,
                 .bytes_per_rank = 0x1p30,
                 .iterations = 10};
  const double n = static_cast<double>(gpus);
  const double factor = (job.op == "all_reduce" ? 2 : 1) * (n - 1) / n;
  if (job.op == "all_to_all") job.algorithm = "direct", job.placement = "fragmented";
  job.roofline_busbw_gbyte_s = roofline_busbw;
  job.busbw_gbyte_s = roofline_busbw / ratio;
  job.algbw_gbyte_s = job.busbw_gbyte_s / factor;
  job.time_mean_s = job.bytes_per_rank / (job.algbw_gbyte_s * 1e9);
  job.time_min_s = job.time_mean_s * (1 - 0.06 * (ratio - 1));
  job.time_max_s = job.time_mean_s * (1 + 0.16 * (ratio - 1));
  job.roofline_s = job.time_mean_s / ratio;
  job.ratio = ratio;
  return job;
}

Completion completion_of(double fastest_s, double spread, Rng rng) {
  std::vector<double> times;
  for (int i = 0; i < 40'000; ++i)
    times.push_back(fastest_s * (1 + spread * std::pow(rng.uniform() * rng.uniform(), 0.7)));
  std::ranges::sort(times);
  Completion out{.finished = times.size(), .unfinished = 0, .mean_s = 0, .quantiles = {}};
  for (const double time : times) out.mean_s += time / static_cast<double>(times.size());
  for (int percent = 0; percent <= 100; ++percent) {
    const std::size_t at =
        std::max<std::size_t>(times.size() * static_cast<std::size_t>(percent) / 100, 1);
    out.quantiles.push_back(
        {static_cast<double>(at) / static_cast<double>(times.size()), times[at - 1]});
  }
  return out;
}

std::vector<Span> spans_of(const std::vector<JobOutcome>& jobs, std::size_t failed) {
  std::vector<Span> spans;
  for (const JobOutcome& job : jobs) {
    for (std::uint64_t i = 0; i < job.iterations; ++i) {
      const double start = job.time_mean_s * static_cast<double>(i);
      spans.push_back({fmt::format("{} #{}", job.op, i),
                       "job",
                       job.name,
                       start,
                       job.time_mean_s,
                       {{"algorithm", job.algorithm}}});
      spans.push_back({"reduce-scatter", "stage", job.name, start, job.time_mean_s / 2, {}});
      spans.push_back(
          {"all-gather", "stage", job.name, start + job.time_mean_s / 2, job.time_mean_s / 2, {}});
    }
  }
  for (std::size_t f = 0; f < failed; ++f)
    spans.push_back({fmt::format("switch_down ctsw:{}", 17 - f), "fault", "faults", 0, 0, {}});
  return spans;
}

VariantOutcome variant_of(const Style& style, Size size, Rng rng) {
  VariantOutcome out;
  out.name = style.name;
  out.scheme = style.scheme;
  out.qps = style.qps;
  for (std::size_t f = 0; f < style.failed; ++f)
    out.faults.push_back(fmt::format("switch_down ctsw:{} at 0 s", size.spines - 1 - f));
  const HeatMap map = throw_flows(style, size, rng.stream("map"));
  out.tiers = {tier_of("nic->rtsw", nic_loads(size.racks * 16, rng.stream("tx"))),
               tier_of("rtsw->ctsw", map.up), tier_of("ctsw->rtsw", map.down),
               tier_of("rtsw->nic", nic_loads(size.racks * 16, rng.stream("rx")))};
  const double excess = (out.tiers[1].mmr - 1) * 0.55 + 0.06 * static_cast<double>(style.failed);
  const double loss = style.flows_per_rack > 10'000 ? 0.0 : excess;
  out.jobs = {job_of("llama3-dp", "all_reduce", 2048, 45.6, 1 + loss),
              job_of("embed", "all_gather", 1024, 46.1, 1 + loss * 0.7),
              job_of("shard", "reduce_scatter", 512, 46.1, 1 + loss * 0.62),
              job_of("moe", "all_to_all", 448, 38.2, 1 + loss * 1.3)};
  out.completion = completion_of(0.021, 2.2 * loss + 0.02, rng.stream("fct"));
  out.heat_maps = {map};
  out.digest = fmt::format("{:016x}", rng.stream("digest").next());
  out.scenario_digest = fmt::format("{:016x}", rng.stream("scenario").next());
  out.scenario_text = fmt::format(
      "fabric:\n  generator: ai_zone\n  racks: {}\n  spines: {}\n  link: 400 Gbps\nrouting:\n"
      "  scheme: {}\n  qps: {}\nseed: 1\n",
      size.racks, size.spines, style.scheme, style.qps);
  out.spans = spans_of(out.jobs, style.failed);
  out.fabric = {
      fmt::format("ai_zone: {} racks of 16 GPUs, {} spines, 400 Gbps", size.racks, size.spines),
      {{"gpu", size.racks * 16},
       {"nic", size.racks * 16},
       {"host", size.racks * 2},
       {"rtsw", size.racks},
       {"ctsw", size.spines}},
      {"rtsw 0.89 : 1 (6.4 Tbps down, 7.2 Tbps up)"}};
  return out;
}

Outcome outcome_of(const std::vector<Style>& styles, Size size) {
  Outcome out;
  out.scenario = "AI Zone job mix";
  out.file = "examples/zone.yaml";
  out.version = "0.1.0";
  out.engine = "fluid";
  out.command = "weft run examples/zone.yaml";
  out.wall_s = 3.2;
  out.cpu_s = 3.1;
  for (const Style& style : styles)
    out.variants.push_back(variant_of(style, size, Rng(7).stream(style.name)));
  return out;
}

Outcome zone() {
  Outcome out = outcome_of({{"ecmp", "ecmp", 1, 96, 0},
                            {"pinned", "pinned", 1, 64, 0},
                            {"e_ecmp 4", "e_ecmp", 4, 384, 0},
                            {"e_ecmp 16", "e_ecmp", 16, 1536, 0},
                            {"e_ecmp 16, 1 CTSW down", "e_ecmp", 16, 1536, 1},
                            {"spray", "spray", 1, 20'000, 0}},
                           {252, 18});
  out.variants[0].notes = {
      {Note::Severity::info, "levels solved with tolerance 1 %; error at most 0.4 %"}};
  out.variants[4].completion.unfinished = 12;
  out.variants[4].jobs[3].time_mean_s = out.variants[4].jobs[3].time_max_s = no_number;
  out.variants[4].jobs[3].algbw_gbyte_s = out.variants[4].jobs[3].busbw_gbyte_s = no_number;
  out.variants[4].jobs[3].ratio = no_number;
  out.variants[4].jobs[3].unfinished = {0.0042,
                                        "iteration 1 of 4: gpu:0 has no live path to gpu:64"};
  out.variants[4].notes = {{Note::Severity::warning,
                            "12 flows of job moe cannot finish: their source has no live uplink"}};
  return out;
}

// As many variants as the main job has.
Outcome many() {
  std::vector<Style> styles;
  for (std::size_t failed = 0; failed <= 2; ++failed)
    for (const auto& [name, flows] : std::map<std::string, std::size_t>{{"ecmp", 96},
                                                                        {"e_ecmp 4", 384},
                                                                        {"e_ecmp 16", 1536},
                                                                        {"pinned", 64},
                                                                        {"spray", 20'000},
                                                                        {"optimal", 30'000}})
      styles.push_back(
          {failed == 0 ? name : fmt::format("{}, {} down", name, failed), name, 1, flows, failed});
  return outcome_of(styles, {252, 18});
}

// One training variant: what each kind of communication leaves exposed, in seconds.
struct Step {
  std::string name, scheme;
  std::uint64_t qps;
  double tp_s, pp_s, dp_s, straggle_s;
  double cross_zone;  // share of data-parallel bytes that leave the zone
  std::string hot_link;
  double hot_load;
};

constexpr std::uint32_t stages = 16, chunks = 8, microbatches = 16;
constexpr std::uint32_t units = chunks * microbatches;  // of each pass
constexpr double forward_s = 0.104 / chunks, backward_s = 2 * forward_s;

// Interleaved 1F1B: virtual stage v of the model runs on stage v % stages.
class Pipe {
 public:
  explicit Pipe(const Step& step) : step_(step) {}

  std::vector<Span> spans;
  std::vector<double> free_s = std::vector<double>(stages, 0.04);

  void run() {
    std::vector<std::uint32_t> done(stages, 0);
    for (bool moved = true; std::exchange(moved, false);)
      for (std::uint32_t s = 0; s < stages; ++s)
        while (done[s] < 2 * units && run_unit(s, done[s])) ++done[s], moved = true;
  }

 private:
  // The next unit of `stage`, when its input has come; returns whether there was one to run.
  bool run_unit(std::uint32_t stage, std::uint32_t done) {
    const std::uint32_t warm_up = std::min(2 * (stages - stage - 1) + (chunks - 1) * stages, units);
    const std::uint32_t steady = done - std::min(done, warm_up), left = units - warm_up;
    const bool forward = done < warm_up || (steady < 2 * left && steady % 2 == 0);
    const std::uint32_t k = done < warm_up      ? done
                            : steady < 2 * left ? steady / 2 + (forward ? warm_up : 0)
                                                : done - units;
    const std::uint32_t m = k / (stages * chunks) * stages + k % stages;
    const std::uint32_t chunk = k / stages % chunks;
    const std::uint32_t depth =
        forward ? chunk * stages + stage : chunk * stages + stages - 1 - stage;
    std::vector<double>& ends = forward ? forward_ : backward_;
    const double sent = depth == 0 ? 0 : ends[(depth - 1) * microbatches + m];
    if (sent < 0) return false;
    const double send_s = depth == 0 ? 0 : step_.pp_s / units / 2;
    const double start = std::max(free_s[stage], sent + send_s);
    const double part = (forward ? 1.0 : 2.0) / 3 / units;
    const double slow_s = stage == 9 ? step_.straggle_s * part : 0;
    const double busy_s = (forward ? forward_s : backward_s) + slow_s;
    const std::string track = fmt::format("llama3 / pp {}", stage);
    if (send_s > 0) spans.push_back({"recv", "pp", track, start - send_s, send_s, {}});
    spans.push_back({fmt::format("{} {}.{}", forward ? "forward" : "backward", m, chunk),
                     "compute",
                     track,
                     start,
                     busy_s,
                     {}});
    spans.push_back({"all_gather", "tp", track, start + busy_s, step_.tp_s * part, {}});
    free_s[stage] = ends[depth * microbatches + m] = start + busy_s + step_.tp_s * part;
    return true;
  }

  Step step_;
  // Ends by virtual stage (counted in the direction of the pass) and micro-batch.
  std::vector<double> forward_ = std::vector<double>(std::size_t{stages} * units, -1),
                      backward_ = forward_;
};

std::vector<Span> pipeline_spans(const Step& step) {
  Pipe pipe(step);
  pipe.run();
  for (std::uint32_t s = 0; s < stages; ++s) {
    const std::string track = fmt::format("llama3 / pp {}", s);
    const double end = pipe.free_s[s];
    pipe.spans.push_back({"all_gather parameters", "dp", track, 0, 0.04, {}});
    pipe.spans.push_back({"reduce_scatter gradients", "dp", track, end, step.dp_s, {}});
    pipe.spans.push_back({"optimizer", "compute", track, end + step.dp_s, 0.06, {}});
  }
  return pipe.spans;
}

std::vector<HotLink> hot_links(const Step& step) {
  std::vector<HotLink> out;
  for (int i = 0; i < 10; ++i) {
    const double load = step.hot_load * (1 - 0.021 * i), bytes = load * 50e9 * 6.5;
    out.push_back(
        {i == 0 ? step.hot_link : fmt::format("ctsw:{}->atsw:{}", 7 * i + 3, 11 * i),
         bytes,
         load,
         {{"llama3", Dimension::dp, fmt::format("gpu:{}", 8 * i), "gpu:2056", bytes * 0.86},
          {"llama3", Dimension::pp, "gpu:120", "gpu:128", bytes * 0.11},
          {"llama3", Dimension::tp, "gpu:3", "gpu:4", bytes * 0.03}}});
  }
  return out;
}

JobOutcome training_job(const Step& step, const std::vector<Span>& spans) {
  JobOutcome job{.name = "llama3",
                 .op = "training",
                 .algorithm = "",
                 .placement = "rack_order",
                 .gpus = 16'384,
                 .bytes_per_rank = no_number,
                 .iterations = 2};
  TrainingOutcome t{.model = "llama3-405b", .plan = "TP 8, PP 16, DP 128"};
  t.step_time_s = 0;
  for (const Span& span : spans)
    t.step_time_s = std::max(t.step_time_s, span.start_s + span.duration_s);
  t.compute_s = units * (forward_s + backward_s) + 0.06;
  t.exposed_s[0] = step.tp_s;
  t.exposed_s[2] = step.pp_s;
  t.exposed_s[3] = step.dp_s + 0.04;
  t.idle_s = t.step_time_s - t.compute_s - step.tp_s - step.pp_s - step.dp_s - 0.04;
  t.bubble = t.idle_s / t.compute_s;
  t.tokens_per_s_per_gpu = 1024 / t.step_time_s;
  t.tflops_per_gpu = t.tokens_per_s_per_gpu * 2.524;
  t.mfu = t.tflops_per_gpu / 989.4;
  t.memory_bytes = 58.4e9;
  t.roofline_s = t.compute_s * 1.02;
  t.roofline_resource = "compute of gpu:17";
  t.bytes[0] = {2.1e15, 0, 0, 0};
  t.bytes[2] = {0, 4.3e12, 8.2e13, 1.1e12};
  t.bytes[3] = {0, 0, 7.7e14 * (1 - step.cross_zone), 7.7e14 * step.cross_zone};
  t.hottest_links = hot_links(step);
  if (step.straggle_s > 0)
    t.waits = {{"rank 148 (gpu:148)", Dimension::dp, 12.3 * 16'384 / 50},
               {"rank 1172 (gpu:1172)", Dimension::pp, 61.5}};
  else
    t.waits = {{"rank 120 (gpu:120)", Dimension::pp, 3.41}};
  t.step_times_s = {t.step_time_s * 1.031, t.step_time_s};
  t.bootstrap_s = 41.7;
  t.checkpoint_s = 9.6;
  job.time_mean_s = job.time_min_s = job.time_max_s = t.step_time_s;
  job.roofline_s = t.roofline_s;
  job.ratio = t.step_time_s / t.roofline_s;
  job.training = std::move(t);
  return job;
}

Outcome training() {
  const std::vector<Step> steps = {
      {"ecmp", "ecmp", 1, 0.21, 0.062, 0.71, 0, 0.88, "ctsw:3->atsw:11", 0.94},
      {"e_ecmp 16", "e_ecmp", 16, 0.21, 0.031, 0.29, 0, 0.88, "ctsw:18->atsw:2", 0.61},
      {"e_ecmp 16, 1 CTSW down", "e_ecmp", 16, 0.21, 0.034, 0.36, 0, 0.88, "ctsw:17->atsw:5", 0.68},
      {"one GPU 1.3x slow", "e_ecmp", 16, 0.21, 0.031, 0.29, 1.38, 0.88, "ctsw:18->atsw:2", 0.48},
      {"ranks at random", "e_ecmp", 16, 0.21, 0.19, 1.64, 0, 0.97, "ctsw:40->atsw:16", 0.97},
  };
  Outcome out = outcome_of({}, {3072, 128});
  out.scenario = "Llama-3 405B on three tiers";
  out.file = "scenarios/llama3.yaml";
  out.command = "weft run scenarios/llama3.yaml";
  for (const Step& step : steps) {
    VariantOutcome variant;
    variant.name = step.name;
    variant.scheme = step.scheme;
    variant.qps = step.qps;
    if (step.straggle_s > 0) variant.faults = {"gpu_slow gpu:148 factor 1.3"};
    variant.spans = pipeline_spans(step);
    variant.jobs = {training_job(step, variant.spans)};
    const std::vector<double> loads = nic_loads(4096, Rng(3).stream(step.name));
    variant.tiers = {tier_of("ctsw->atsw", loads)};
    variant.completion = completion_of(0.021, 0.4, Rng(4).stream(step.name));
    variant.digest = variant.scenario_digest =
        fmt::format("{:016x}", Rng(5).stream(step.name).next());
    variant.scenario_text = "jobs:\n  - {name: llama3, model: llama3-405b}\n";
    out.variants.push_back(std::move(variant));
  }
  return out;
}

// A training job beside collectives, in some variants only.
Outcome mixed() {
  Outcome out = zone();
  const Outcome steps = training();
  for (std::size_t v = 0; v < 3; ++v) {
    out.variants[v].jobs.push_back(steps.variants[v].jobs[0]);
    out.variants[v].spans = steps.variants[v].spans;
  }
  TrainingOutcome& unfinished = *out.variants[2].jobs.back().training;
  unfinished = {.model = "goal", .plan = ""};
  out.variants[2].jobs.back().unfinished = {9.5, "step 2 of 3: gpu:0 has no live path to gpu:8"};
  unfinished.exposed_s[5] = 0.01;
  unfinished.bytes[5] = {1e6, 0, 2e9, 0};
  return out;
}

void make_hostile(JobOutcome& job, const std::string& evil) {
  TrainingOutcome& t = *job.training;
  t.model = t.plan = t.roofline_resource = evil;
  t.hottest_links[0].link = t.hottest_links[0].flows[0].job = evil;
  t.hottest_links[0].flows[0].from = t.waits[0].rank = evil;
}

Outcome hostile() {
  const std::string evil = "</script><img src=x onerror=\"document.title='owned'\">";
  Outcome out = outcome_of({{evil, "<b>ecmp</b>", 1, 96, 0},
                            {"__proto__", "e_ecmp", 4, 384, 1},
                            {"2", "spray", 1, 999, 0},
                            {"1", "spray", 1, 999, 0}},
                           {8, 4});
  out.scenario = "</title></script><script>document.title='owned'</script><!--";
  out.command = "weft run \"" + evil + "\x1b[31m\xff\"";
  for (VariantOutcome& variant : out.variants) {
    variant.jobs[0].name = evil;
    variant.jobs[1].name = "constructor";
    variant.tiers[0].name = evil;
    variant.heat_maps[0].row_role = evil;
    variant.heat_maps[0].rows[0] = evil;
    variant.notes = {{Note::Severity::warning, evil}};
    variant.scenario_text = evil + "\n<!-- <script>";
    variant.faults = {evil};
    const Outcome steps = training();
    variant.jobs.push_back(steps.variants[0].jobs[0]);
    make_hostile(variant.jobs.back(), evil);
    variant.spans = steps.variants[0].spans;
    variant.spans[0].name = variant.spans[1].category = evil;
    variant.spans[2].track = "llama3 / " + evil;
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<Outcome()>> kinds = {
      {"zone", zone},
      {"hostile", hostile},
      {"many", many},
      {"training", training},
      {"mixed", mixed},
      {"large",
       [] {
         return outcome_of({{"ecmp", "ecmp", 1, 96, 0}, {"spray", "spray", 1, 20'000, 1}},
                           {1536, 128});
       }},
      {"single", [] { return outcome_of({{"base", "ecmp", 1, 96, 0}}, {16, 4}); }},
  };
  const auto kind = kinds.find(argc == 3 ? argv[1] : "");
  if (kind == kinds.end()) {
    fmt::print(stderr,
               "usage: demo_report zone|many|large|single|training|mixed|hostile DIRECTORY\n");
    return 2;
  }
  const Outcome outcome = kind->second();
  if (const auto status = weft::plan::report::write_report(outcome, argv[2]); !status) {
    fmt::print(stderr, "{}\n", status.error().text());
    return 1;
  }
  fmt::print("{}", weft::plan::report::terminal_text(outcome));
  return 0;
}
