#include "cli/serve_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::cli {

namespace {

namespace traced = operate::jobs;

constexpr int rest_factor = 4;  // times what an analysis took
constexpr std::chrono::seconds look_every{1};

}  // namespace

Result<TraceSettings> read_trace_settings(const Config& config) {
  TraceSettings out;
  Errors errors;
  Reader reader(config, "traces", errors);
  const auto time = [&](std::string_view key, std::int64_t fallback, Duration least) {
    const Duration given = reader.duration(key, Duration{fallback * ps_per_ns});
    if (given < least || given > 86'400_s)
      reader.error(
          Errc::value, reader.where(key), fmt::format("{} is out of range", key),
          "use 100 ms to 24 h for every, 1 s to 24 h for hang, 6 min to 24 h for keep: agents "
          "send what has not changed every 5 min");
    return given.ps / ps_per_ns;
  };
  out.every_ns = time("every", out.every_ns, 100_us * 1000);
  out.hang_ns = time("hang", out.hang_ns, 1_s);
  out.limits.keep_ns = time("keep", out.limits.keep_ns, 360_s);
  const Bytes bytes = reader.bytes("bytes", Bytes{static_cast<std::int64_t>(out.limits.bytes_max)});
  if (bytes < 1_MiB || bytes > 1024_GiB)
    reader.error(Errc::value, reader.where("bytes"), "bytes must be from 1 MiB to 1 TiB");
  out.limits.bytes_max = static_cast<std::uint64_t>(bytes.count);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<std::unique_ptr<ServedTraces>> ServedTraces::open(Parts parts) {
  WEFT_TRY(auto folder, traced::TraceFolder::open(parts.folder, parts.settings.limits));
  return std::make_unique<ServedTraces>(std::move(parts), std::move(folder));
}

ServedTraces::ServedTraces(Parts parts, std::unique_ptr<traced::TraceFolder> folder)
    : parts_(std::move(parts)),
      folder_(std::move(folder)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Status ServedTraces::keep(std::string_view host, std::string_view name, std::string_view job,
                          std::string_view packed) {
  const auto number = parts_.names.find(host);
  if (!number)
    return fail(Errc::unknown, {}, fmt::format("unknown host {}", quote(host)),
                "name a host of the fabric");
  std::string whose(job);
  if (whose.empty()) {
    WEFT_TRY(const std::vector<std::string> running, parts_.jobs_on(*number));
    if (running.size() != 1)
      return fail(Errc::infeasible, {},
                  running.empty() ? fmt::format("no job is known to run on {}", host)
                                  : fmt::format("{} jobs run on {}: {}", running.size(), host,
                                                fmt::join(running, ", ")),
                  "say which by ?job=");
    whose = running.front();
  }
  return folder_->put(whose, parts_.names.name(*number), name, packed, clock_.wall());
}

std::string ServedTraces::list() const {
  JsonList items;
  for (const Traces& job : folder_->jobs()) {
    JsonObject one;
    one.add("job", job.job)
        .add("processes", job.processes)
        .add("bytes", job.bytes)
        .add("oldest", job.oldest)
        .add("newest", job.newest);
    const std::scoped_lock lock(mutex_);
    const auto at = known_.find(job.job);
    const Known known = at == known_.end() ? Known{} : at->second;
    items.add(
        one.add("analysed", known.analysed.ns == 0 ? std::nullopt : std::optional(known.analysed))
            .add("hang", known.is_hang)
            .add("verdicts", known.verdicts)
            .add("suspects", known.suspects));
  }
  return JsonObject().add("items", items).text();
}

Result<std::string> ServedTraces::of_job(std::string_view job) const {
  {
    const std::scoped_lock lock(mutex_);
    if (const auto at = known_.find(job); at != known_.end()) return at->second.json;
  }
  const auto jobs = folder_->jobs();
  if (std::ranges::find(jobs, job, &Traces::job) == jobs.end())
    return fail(Errc::unknown, {}, fmt::format("no traces of job {}", quote(job)),
                "/v1/traces lists the jobs that have some");
  return JsonObject().add("job", job).add("analysed", std::optional<Timestamp>()).text();
}

Result<std::string> ServedTraces::picture(std::string_view job) const {
  const std::scoped_lock lock(mutex_);
  const auto at = known_.find(job);
  if (at != known_.end() && !at->second.picture.empty()) return at->second.picture;
  return fail(Errc::unknown, {}, fmt::format("no analysed traces of job {}", quote(job)),
              "/v1/traces lists the jobs that have traces, and when they were analysed");
}

std::string ServedTraces::metrics() const {
  std::size_t processes = 0;
  std::uint64_t bytes = 0;
  const std::vector<Traces> jobs = folder_->jobs();
  for (const Traces& job : jobs) {
    processes += job.processes;
    bytes += job.bytes;
  }
  const std::scoped_lock lock(mutex_);
  return fmt::format(
      "# HELP weft_traces Processes whose latest trace is kept.\n"
      "# TYPE weft_traces gauge\nweft_traces {}\n"
      "# HELP weft_traces_bytes Bytes of these traces.\n"
      "# TYPE weft_traces_bytes gauge\nweft_traces_bytes {}\n"
      "# HELP weft_traces_analyses_total Jobs that were analysed by their traces.\n"
      "# TYPE weft_traces_analyses_total counter\nweft_traces_analyses_total {}\n"
      "# HELP weft_traces_failures_total Of these: their traces could not be read.\n"
      "# TYPE weft_traces_failures_total counter\nweft_traces_failures_total {}\n"
      "# HELP weft_jobs_hanging Traced jobs that are stalled, as of their last analysis.\n"
      "# TYPE weft_jobs_hanging gauge\nweft_jobs_hanging {}\n",
      processes, bytes, analyses_, failures_,
      std::ranges::count_if(known_, [](const auto& job) { return job.second.is_hang; }));
}

void ServedTraces::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    folder_->forget(clock_.wall());
    const auto begin = std::chrono::steady_clock::now();
    look(stop);
    const auto took = std::chrono::steady_clock::now() - begin;
    const std::chrono::nanoseconds every(parts_.settings.every_ns);
    std::unique_lock lock(rest_);
    wake_.wait_for(lock, stop,
                   std::max<std::chrono::nanoseconds>(
                       std::min<std::chrono::nanoseconds>(look_every, every), rest_factor * took),
                   [] { return false; });
  }
}

void ServedTraces::look(const std::stop_token& stop) {
  const std::vector<Traces> jobs = folder_->jobs();
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(known_, [&](const auto& known) {
      return std::ranges::find(jobs, known.first, &Traces::job) == jobs.end();
    });
  }
  for (const Traces& job : jobs) {
    if (stop.stop_requested()) return;
    Known known;
    {
      const std::scoped_lock lock(mutex_);
      if (const auto at = known_.find(job.job); at != known_.end()) known = at->second;
    }
    const bool is_time = clock_.wall().ns >= known.analysed.ns + parts_.settings.every_ns;
    if (known.change == job.change || !is_time) continue;
    judge(job, known);
    const bool has_failed = known.has_failed;
    const std::scoped_lock lock(mutex_);
    known_[job.job] = std::move(known);
    ++analyses_;
    failures_ += has_failed ? 1 : 0;
  }
}

void ServedTraces::judge(const Traces& job, Known& known) {
  const Timestamp now = clock_.wall();
  auto found = traced::judge_traces(parts_.fabric, parts_.names, *folder_, job.job, parts_.probes(),
                                    now, parts_.settings.hang_ns);
  const std::uint64_t change_before = std::exchange(known.change, job.change);
  known.analysed = now;
  known.suspects.clear();
  known.has_failed = !found.has_value();
  if (!found) {
    known.is_hang = false;
    known.verdicts = 0;
    known.picture.clear();
    known.json = JsonObject()
                     .add("job", job.job)
                     .add("analysed", now)
                     .add("error", found.error().text())
                     .text();
    return parts_.say(LogLevel::warning,
                      fmt::format("traces of job {}: {}", job.job, found.error().text()));
  }
  known.json = std::move(found->json);
  known.picture = std::move(found->picture);
  known.is_hang = found->is_hang;
  known.verdicts = found->verdicts;
  if (const Status done = tell(*found, known); !done) {
    known.change = change_before;  // judged again after a while, though nothing new has come
    parts_.say(LogLevel::warning,
               "records of traces were not taken, tried again: " + done.error().text());
  }
}

Status ServedTraces::tell(const traced::TraceFindings& found, Known& known) {
  std::vector<std::string> lines;
  std::vector<std::string> told;
  for (const model::Record& row : found.records.rows) {
    const std::string entity = model::name(parts_.fabric, row.entity);
    known.suspects.push_back(entity);
    const std::string key = fmt::format("{} {}", to_text(row.kind), entity);
    if (const auto at = known.told.find(key);
        at != known.told.end() && found.first_ns <= at->second)
      continue;
    lines.push_back(model::to_json(parts_.fabric, found.records, row));
    told.push_back(key);
  }
  if (lines.empty()) return {};
  WEFT_TRY_STATUS(parts_.hand_on(std::move(lines)));
  for (const std::string& key : told) known.told[key] = found.last_ns;
  return {};
}

}  // namespace weft::cli
