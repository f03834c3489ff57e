#include "adapt/live/job_feed.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "adapt/live/command_template.hpp"

namespace weft::adapt::live {
namespace {

using operate::jobs::read_pods;
using operate::jobs::read_squeue;

constexpr std::size_t output_bytes_max = 256 << 20;  // pods of a large cluster: some KB each
constexpr int reads_until_stale = 10;
constexpr std::array<std::string_view, 2> sources{"slurm", "kubernetes"};

Timestamp now() {
  return {std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count()};
}

std::vector<std::string> program_of(JobFeedSettings::From from) {
  if (from == JobFeedSettings::From::kubernetes)
    return {"/usr/bin/kubectl", "get",           "pods",
            "--all-namespaces", "--output=json", "--field-selector=status.phase=Running"};
  return {"/usr/bin/squeue", "--noheader", "--all", "--states=RUNNING",
          fmt::format("--format={}", operate::jobs::squeue_format)};
}

std::chrono::milliseconds time_of(Reader& reader, std::string_view key, Duration fallback) {
  const Duration given = reader.duration(key, fallback);
  if (given.ps < 10 * ps_per_ms || given.ps > 600'000 * ps_per_ms)
    reader.error(Errc::value, reader.where(key),
                 fmt::format("{} must be between 10 ms and 10 min", key));
  return std::chrono::milliseconds(given.ps / ps_per_ms);
}

}  // namespace

std::string_view to_text(JobFeedSettings::From from) {
  return sources[static_cast<std::size_t>(from)];
}

Result<JobFeedSettings> read_job_feed(const Config& config) {
  Errors errors;
  Reader reader(config, "jobs", errors);
  JobFeedSettings out;
  const std::array<std::string, 2> names{std::string(sources[0]), std::string(sources[1])};
  out.from = static_cast<JobFeedSettings::From>(reader.choice("from", names, std::nullopt));
  out.program.argv = reader.has("run") ? read_argv(reader, "run", {}, true) : program_of(out.from);
  // Of other programs too: what is not known of them cannot do harm.
  if (out.from == JobFeedSettings::From::slurm)
    out.program.environment.emplace_back("SLURM_TIME_FORMAT=%s");
  for (const Token& token : reader.texts("environment"))
    out.program.environment.emplace_back(token.text);
  out.program.patience = time_of(reader, "patience", 20_s);
  out.program.output_bytes_max = output_bytes_max;
  out.every = time_of(reader, "every", 30_s);
  out.names = reader.text("names", "");
  for (const Token& token : reader.texts("resources")) out.resources.emplace_back(token.text);
  if (out.resources.empty()) out.resources = {"nvidia.com/gpu", "amd.com/gpu"};
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

JobFeed::JobFeed(JobFeedSettings settings, operate::jobs::NodeNames names)
    : settings_(std::move(settings)),
      names_(std::move(names)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

JobFeed::~JobFeed() = default;

JobFeed::State JobFeed::state() const {
  const std::scoped_lock lock(mutex_);
  State out = state_;
  const std::int64_t age_ms = (now().ns - out.read.ns) / 1'000'000;
  out.is_stale = out.jobs == nullptr || age_ms > reads_until_stale * settings_.every.count();
  return out;
}

Result<JobFeed::Jobs> JobFeed::read() const {
  WEFT_TRY(const ProgramOutcome outcome, run_program(settings_.program));
  if (outcome.timed_out || outcome.exit_code != 0)
    return fail(Errc::io, {}, how_it_ended(settings_.program, outcome));
  const std::string& file = settings_.program.argv.front();
  if (outcome.is_cut)
    return fail(Errc::value, {file}, fmt::format("printed more than {} bytes", output_bytes_max));
  if (settings_.from == JobFeedSettings::From::kubernetes)
    return read_pods(outcome.output, names_, settings_.resources, file);
  return read_squeue(outcome.output, names_, file);
}

void JobFeed::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    auto jobs = read();
    std::unique_lock lock(mutex_);
    ++state_.reads;
    if (jobs) {
      state_.jobs = std::make_shared<const Jobs>(*std::move(jobs));
      state_.read = now();
      state_.error.clear();
    } else {
      ++state_.failures;
      state_.error = jobs.error().text();
    }
    changed_.wait_for(lock, stop, settings_.every, [] { return false; });
  }
}

}  // namespace weft::adapt::live
