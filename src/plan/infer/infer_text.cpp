#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "plan/infer/infer.hpp"

namespace weft::plan {

template <class Archive, Of<JobBeside> T>
void fields(Archive& field, T& job) {
  field("name", job.name);
  field("steps_s", job.steps_s);
  field("alone_s", job.alone_s);
}

namespace {

std::string milliseconds(double seconds) {
  return std::isinf(seconds) ? "never" : fmt::format("{:.2f}", seconds * 1e3);
}

std::string error_text(double ours, double measured) {
  return measured > 0 ? fmt::format("{:+.2f} %", 100 * (ours / measured - 1)) : "";
}

void add_row(Table& table, std::string name, const Spread& s) {
  table.add({std::move(name), milliseconds(s.mean), milliseconds(s.p50), milliseconds(s.p90),
             milliseconds(s.p99)});
}

JsonObject spread_json(const Spread& s) {
  return JsonObject().add("mean", s.mean).add("p50", s.p50).add("p90", s.p90).add("p99", s.p99);
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double one : values) sum += one;
  return sum / static_cast<double>(values.size());
}

std::string job_line(const JobBeside& job) {
  if (job.steps_s.empty())
    return fmt::format("job {}: no step ended while requests were served\n", job.name);
  std::string out =
      fmt::format("job {}: {} step(s) of {} in the mean, {} at most", job.name, job.steps_s.size(),
                  human_seconds(mean(job.steps_s)), human_seconds(std::ranges::max(job.steps_s)));
  if (job.alone_s)
    out += fmt::format("; {} alone ({:.4f} x)", human_seconds(*job.alone_s),
                       mean(job.steps_s) / *job.alone_s);
  return out + "\n";
}

double per_second(std::uint64_t count, double seconds) {
  return count == 0 ? 0 : static_cast<double>(count) / seconds;
}

// "ttft p99 180.20 ms of 200.00"
std::string kept_text(const char* name, double percentile, const std::optional<double>& value,
                      const std::optional<double>& bar) {
  if (!bar) return "";
  return fmt::format(" {} p{:g} {}{} of {}{},", name, percentile, milliseconds(*value),
                     std::isinf(*value) ? "" : " ms", milliseconds(*bar),
                     *value <= *bar ? "" : " MISSED");
}

JsonList objectives_json(const std::vector<Attainment>& objectives) {
  JsonList out;
  for (const Attainment& one : objectives)
    out.add(JsonObject()
                .add("class", one.request_class)
                .add("percentile", one.percentile)
                .add("requests", one.requests)
                .add("met", one.met)
                .add("ttft_s", one.ttft_s)
                .add("ttft_bar_s", one.ttft_bar)
                .add("tpot_s", one.tpot_s)
                .add("tpot_bar_s", one.tpot_bar)
                .add("holds", one.holds()));
  return out;
}

}  // namespace

std::string objective_lines(const std::vector<Attainment>& objectives) {
  std::string out;
  for (const Attainment& one : objectives) {
    const std::string whose = one.request_class.empty() ? "objective" : one.request_class;
    out += fmt::format("{}:{}{} {:.2f} % of {} requests keep it\n", whose,
                       kept_text("ttft", one.percentile, one.ttft_s, one.ttft_bar),
                       kept_text("tpot", one.percentile, one.tpot_s, one.tpot_bar),
                       one.requests == 0
                           ? 100
                           : 100 * static_cast<double>(one.met) / static_cast<double>(one.requests),
                       one.requests);
  }
  return out;
}

std::string to_table(const InferReport& report) {
  Table table({{"ms", Table::Align::left}, {"mean"}, {"p50"}, {"p90"}, {"p99"}});
  for (const Latency& one : report.latencies) {
    add_row(table, std::string(one.name), one.ours);
    if (!one.measured) continue;
    const Spread &a = one.ours, &b = *one.measured;
    add_row(table, "  measured", b);
    table.add({"  error", error_text(a.mean, b.mean), error_text(a.p50, b.p50),
               error_text(a.p90, b.p90), error_text(a.p99, b.p99)});
  }
  const std::string split = report.decode_replicas > 0
                                ? fmt::format(" prefill and {} decode", report.decode_replicas)
                                : "";
  std::string out = table.text();
  const std::uint64_t ended = report.requests - report.unfinished;
  out += fmt::format(
      "\n{} on {}{} {}, {}\n", counted(report.requests, "request"), report.replicas, split,
      plural(report.replicas + report.decode_replicas, "replica"),
      ended == 0 ? "of which none ended" : human_seconds(report.end_s) + " until the last token");
  out += fmt::format("{:.2f} requests/s, {:.1f} prompt and {:.1f} output tokens/s\n",
                     per_second(ended, report.end_s), per_second(report.input_tokens, report.end_s),
                     per_second(report.output_tokens, report.end_s));
  if (report.goodput)
    out += fmt::format("{:.2f} requests/s meet the objectives\n", *report.goodput);
  out += objective_lines(report.objectives);
  if (report.cost_per_million_output_tokens)
    out += fmt::format("{}: {:.2f} for a million output tokens\n", counted(report.gpus, "GPU"),
                       *report.cost_per_million_output_tokens);
  out += fmt::format("{}, {:.1f} % busy, {}, {} from the cache\n", counted(report.steps, "step"),
                     100 * report.busy, counted(report.preemptions, "preemption"),
                     counted(report.cached_tokens, "prompt token"));
  if (report.decode_replicas > 0)
    out += fmt::format("{} bytes of KV caches moved\n", report.kv_bytes_moved);
  if (report.unfinished > 0)
    out += fmt::format("{} NEVER ENDED, left out above: {}\n",
                       counted(report.unfinished, "request"), report.why_unfinished);
  for (const JobBeside& job : report.jobs) out += job_line(job);
  return out;
}

std::string to_json(const InferReport& report) {
  JsonObject latencies, measured;
  for (const Latency& one : report.latencies) {
    latencies.add(one.name, spread_json(one.ours));
    if (one.measured) measured.add(one.name, spread_json(*one.measured));
  }
  JsonObject out;
  out.add("latency_s", latencies);
  if (!measured.empty()) out.add("measured_s", measured);
  out.add("requests", report.requests)
      .add("replicas", report.replicas)
      .add("decode_replicas", report.decode_replicas)
      .add("end_s", report.end_s)
      .add("requests_per_s", per_second(report.requests - report.unfinished, report.end_s))
      .add("input_tokens_per_s", per_second(report.input_tokens, report.end_s))
      .add("output_tokens_per_s", per_second(report.output_tokens, report.end_s))
      .add("gpus", report.gpus)
      .add("goodput_per_s", report.goodput)
      .add("objectives", objectives_json(report.objectives))
      .add("cost_per_million_output_tokens", report.cost_per_million_output_tokens)
      .add("steps", report.steps)
      .add("busy", report.busy)
      .add("preemptions", report.preemptions)
      .add("cached_tokens", report.cached_tokens)
      .add("kv_bytes_moved", report.kv_bytes_moved)
      .add("unfinished", report.unfinished)
      .add("why_unfinished", report.why_unfinished)
      .add("jobs", report.jobs)
      .add("notes", report.notes);
  return out.text();
}

std::string quantiles_json(const InferReport& report) {
  JsonObject out;
  for (const Latency& one : report.latencies) {
    JsonList values;
    for (const double value : one.ours.quantiles) values.add(value, digits(5));
    out.add(one.name, values);
  }
  return out.text();
}

}  // namespace weft::plan
