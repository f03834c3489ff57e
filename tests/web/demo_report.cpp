// demo_report KIND DIRECTORY: writes a report of made-up but plausible numbers, for people who work
// on the page and for the test that opens it in a browser. Kinds: zone, many,
// large, single, hostile.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

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
  return out;
}

Outcome outcome_of(const std::vector<Style>& styles, Size size) {
  Outcome out;
  out.scenario = "AI Zone job mix";
  out.file = "examples/zone.yaml";
  out.version = "0.1.0";
  out.engine = "fluid";
  out.command = "weft run examples/zone.yaml";
  out.fabric = {
      fmt::format("ai_zone: {} racks of 16 GPUs, {} spines, 400 Gbps", size.racks, size.spines),
      {{"gpu", size.racks * 16},
       {"nic", size.racks * 16},
       {"host", size.racks * 2},
       {"rtsw", size.racks},
       {"ctsw", size.spines}},
      {"rtsw 0.89 : 1 (6.4 Tbps down, 7.2 Tbps up)"}};
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
  }
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, std::function<Outcome()>> kinds = {
      {"zone", zone},
      {"hostile", hostile},
      {"many", many},
      {"large",
       [] {
         return outcome_of({{"ecmp", "ecmp", 1, 96, 0}, {"spray", "spray", 1, 20'000, 1}},
                           {1536, 128});
       }},
      {"single", [] { return outcome_of({{"base", "ecmp", 1, 96, 0}}, {16, 4}); }},
  };
  const auto kind = kinds.find(argc == 3 ? argv[1] : "");
  if (kind == kinds.end()) {
    fmt::print(stderr, "usage: demo_report zone|many|large|single|hostile DIRECTORY\n");
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
