// Traces of collectives that agents send of the processes of running jobs: the latest of each is
// kept in a folder, and judged by what `weft colltrace` uses.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/evidence.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/colltrace/ring.hpp"
#include "operate/jobs/running.hpp"

namespace weft::operate::jobs {

struct TraceLimits {
  std::size_t packed_max = std::size_t{2} << 20;      // bytes of one trace, compressed
  std::size_t unpacked_max = std::size_t{150} << 20;  // a ring file has 134 MB at most
  std::uint64_t bytes_max = std::uint64_t{4} << 30;   // of all that are kept
  std::size_t files_max = 65'536;
  std::size_t ranks_max = 1u << 20;           // of a job: the GPUs that there are
  std::int64_t keep_ns = 15 * ns_per_minute;  // after it was sent last
};

// FOLDER/JOB/HOST+NAME.gz, each percent-encoded. Any thread.
class TraceFolder {
 public:
  struct JobTraces {
    std::string job;
    std::size_t processes = 0;
    std::uint64_t bytes = 0;
    Timestamp oldest, newest;  // when the traces were sent
    std::uint64_t change = 0;  // grows with every trace that comes or goes
  };

  // Creates it; what is there already is kept as of the time of its file. Fails: Errc::io.
  static Result<std::unique_ptr<TraceFolder>> open(std::string path, const TraceLimits& limits);
  TraceFolder(std::string path, const TraceLimits& limits)
      : path_(std::move(path)), limits_(limits) {}  // for open()

  // The trace of a process on a host, in place of an earlier one: a ring of libweft-nccl.so behind
  // gzip, checked as far as the reader goes. One at a time is unpacked, whoever sends. Fails:
  // Errc::value on names and sizes; Errc::parse on what is no ring; Errc::io where there is no room
  // for one more, or on the disk.
  Status put(std::string_view job, std::string_view host, std::string_view name,
             std::string_view packed, Timestamp now);
  // Deletes what was not sent again for long.
  void forget(Timestamp now);
  std::vector<JobTraces> jobs() const;  // by name
  std::string folder(std::string_view job) const;
  // Whose trace a file of a job's folder is: "host3" of ".../host3+weft-nccl-7-0.ring.gz".
  static std::string host_of(std::string_view file);

 private:
  struct File {
    std::uint64_t bytes = 0;
    Timestamp sent;
  };
  struct Files {
    std::map<std::string, File> files;  // by name
    std::uint64_t change = 0;
  };

  Status check_ranks(const observe::colltrace::RingTrace& trace) const;

  std::string path_;
  TraceLimits limits_;
  std::mutex unpacking_;
  mutable std::mutex mutex_;  // of all below
  std::map<std::string, Files, std::less<>> jobs_;
  std::uint64_t bytes_ = 0, changes_ = 0, written_ = 0;
  std::size_t files_ = 0;
};

struct TraceFindings {
  std::string json;  // keys of colltrace::to_json; job, analysed, took_s
  bool is_hang = false;
  std::size_t verdicts = 0;
  model::RecordSet records;                // for triage, at `now`
  std::int64_t first_ns = 0, last_ns = 0;  // of the operations that they rest on
};

// What the traces of a job say, with what probes say meanwhile. Each trace is of the host whose
// agent has sent it. Fails: as colltrace::load_job. Cost: as load_job, analyse, judge_network.
Result<TraceFindings> judge_traces(const model::Fabric& fabric, const NodeNames& names,
                                   const TraceFolder& folder, std::string_view job,
                                   const model::EvidenceSet& probes, Timestamp now);

}  // namespace weft::operate::jobs
