// Traces of running jobs as `weft serve` keeps and judges them (operate/jobs/traces.hpp).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapt/live/system_clock.hpp"
#include "base/config.hpp"
#include "operate/jobs/traces.hpp"
#include "os/log.hpp"

namespace weft::cli {

struct TraceSettings {
  operate::jobs::TraceLimits limits;
  std::int64_t every_ns = 30 * ns_per_s;  // between two analyses of one job
  std::int64_t hang_ns = 120 * ns_per_s;  // a job that is stalled for that long gives a record
};
// YAML: traces: {every, hang, keep, bytes}. Fails with every error found.
Result<TraceSettings> read_trace_settings(const Config& config);

// A thread that judges each job whose traces have changed, one after the other, and rests four
// times as long as that took. What it finds against parts of the fabric is handed on as records,
// not again before the job has done other operations than those that the last one rested on.
class ServedTraces {
 public:
  struct Parts {
    const model::Fabric& fabric;            // must outlive it
    const operate::jobs::NodeNames& names;  // the same
    std::string folder;
    TraceSettings settings;
    std::function<model::EvidenceSet()> probes;  // what they meet now
    // That run there; fails where nobody knows now.
    std::function<Result<std::vector<std::string>>(std::uint32_t host)> jobs_on;
    std::function<Status(std::vector<std::string> records)> hand_on;  // JSON lines
    LogSink say;
  };
  // Fails: as TraceFolder::open.
  static Result<std::unique_ptr<ServedTraces>> open(Parts parts);
  ServedTraces(Parts parts, std::unique_ptr<operate::jobs::TraceFolder> folder);  // for open()

  // As serve::ApiOptions::Traces has them. Any thread.
  Status keep(std::string_view host, std::string_view name, std::string_view job,
              std::string_view packed);
  std::string list() const;
  Result<std::string> of_job(std::string_view job) const;
  Result<std::string> picture(std::string_view job) const;
  std::string metrics() const;  // Prometheus text

 private:
  using Traces = operate::jobs::TraceFolder::JobTraces;
  struct Known {
    std::uint64_t change = 0;  // of the traces that were judged
    Timestamp analysed;
    std::string json, picture;  // for the API
    bool has_failed = false, is_hang = false;
    std::size_t verdicts = 0;
    std::vector<std::string> suspects;
    std::map<std::string, std::int64_t> told;  // kind, entity -> the last operation it rested on
  };

  void run(const std::stop_token& stop);
  void look(const std::stop_token& stop);
  void judge(const Traces& job, Known& known);
  Status tell(const operate::jobs::TraceFindings& found, Known& known);

  Parts parts_;
  std::unique_ptr<operate::jobs::TraceFolder> folder_;
  adapt::live::SystemClock clock_;
  mutable std::mutex mutex_;  // of the next three; its thread alone writes there
  std::uint64_t analyses_ = 0, failures_ = 0;
  std::map<std::string, Known, std::less<>> known_;
  std::mutex rest_;
  std::condition_variable_any wake_;
  std::jthread thread_;
};

}  // namespace weft::cli
