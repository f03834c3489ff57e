// The running jobs, asked of a scheduler's own program again and again.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "operate/jobs/running.hpp"
#include "os/run_program.hpp"

namespace weft::adapt::live {

struct JobFeedSettings {
  enum class From : std::uint8_t { slurm, kubernetes } from = From::slurm;
  ProgramSpec program;
  std::chrono::milliseconds every{30'000};
  std::string names;                   // CSV of node,host; "" for none
  std::vector<std::string> resources;  // kubernetes: what a pod of a job asks for
};
std::string_view to_text(JobFeedSettings::From from);

// YAML: from: slurm | kubernetes; run (argv; squeue or kubectl with what the reader needs),
// environment, every, patience, names, resources. Only reads: nothing is asked to change.
// Fails: every error found.
Result<JobFeedSettings> read_job_feed(const Config& config);

class JobFeed {
 public:
  using Jobs = std::vector<operate::jobs::RunningJob>;
  struct State {
    std::shared_ptr<const Jobs> jobs;  // as last read; null before the first time
    Timestamp read;                    // when
    std::string error;                 // of the last try, "" when it went well
    std::uint64_t reads = 0, failures = 0;
    bool is_stale = false;  // not read for ten times `every`: not to be relied on
  };

  // Begins at once, on a thread of its own.
  JobFeed(JobFeedSettings settings, operate::jobs::NodeNames names);
  JobFeed(const JobFeed&) = delete;
  JobFeed& operator=(const JobFeed&) = delete;
  ~JobFeed();  // after a program that runs just then, at most its patience

  State state() const;
  const operate::jobs::NodeNames& names() const { return names_; }
  const JobFeedSettings& settings() const { return settings_; }

 private:
  void run(const std::stop_token& stop);
  Result<Jobs> read() const;

  JobFeedSettings settings_;
  operate::jobs::NodeNames names_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  State state_;
  std::jthread thread_;
};

}  // namespace weft::adapt::live
