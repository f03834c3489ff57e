// Traces of collectives that agents send of the processes of running jobs: the latest of each is
// kept in a folder, and judged by what `weft colltrace` uses.
#pragma once

#include <algorithm>
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
  std::size_t ranks_max = 1u << 20;                   // of a job: the GPUs that there are
  std::int64_t keep_ns = 15 * ns_per_minute;          // after it was sent last
  std::size_t records_least = 1u << 22;               // that records_max() is at least

  // A job that began anew has traces of two lives for `keep`; two jobs may take turns on a host.
  std::size_t files_of_job_max() const { return 2 * ranks_max; }
  std::size_t files_max() const { return 4 * ranks_max; }
  // Of the communicators of a job together: each rank is in some dozens at most.
  std::size_t members_max() const { return 64 * ranks_max; }
  // Of a job: what 4 threads of each rank leave, as agents cut it. One takes some 150 bytes.
  std::size_t records_max() const { return std::max(records_least, 4096 * ranks_max); }
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

  // Creates it; what is there already is kept as of the time of its file. Fails: Errc::io;
  // Errc::value where the folder holds anything that put() has not put there. Nothing is changed
  // then.
  static Result<std::unique_ptr<TraceFolder>> open(std::string path, const TraceLimits& limits);
  TraceFolder(std::string path, const TraceLimits& limits)
      : path_(std::move(path)), limits_(limits) {}  // for open()

  // The trace of a process on a host, in place of an earlier one of its name, and of those of the
  // same rank that were opened before; one that was opened before such a one is taken and not kept.
  // It is a ring of libweft-nccl.so behind gzip, checked as far as the reader goes. Fails:
  // Errc::value on names and sizes; Errc::parse on what is no ring; Errc::io where there is no room
  // for one more, on the disk, or while another one is unpacked: nobody waits for that.
  Status put(std::string_view job, std::string_view host, std::string_view name,
             std::string_view packed, Timestamp now);
  // Deletes what was not sent again for long.
  void forget(Timestamp now);
  std::vector<JobTraces> jobs() const;  // by name
  // The moment after which half of a job's traces were sent; the beginning of time without any.
  Timestamp half_sent(std::string_view job) const;
  std::string folder(std::string_view job) const;
  const TraceLimits& limits() const { return limits_; }
  std::vector<std::string> files(std::string_view job) const;  // paths, by name
  // Whose trace a file of a job's folder is: "host3" of ".../host3+weft-nccl-7-0.ring.gz".
  static std::string host_of(std::string_view file);

 private:
  struct File {
    std::uint64_t bytes = 0;
    Timestamp sent;
    // -1: without one, or of an earlier life of the service, and not sent since.
    std::int32_t rank = -1;
    std::int64_t opened_ns = 0;
  };
  struct Files {
    std::map<std::string, File> files;  // by name
    std::uint64_t change = 0;
  };

  Status adopt(const std::string& folder);
  Status check_room(std::string_view job, std::uint64_t bytes, std::size_t files,
                    std::size_t files_of_job) const;
  Status write(const std::string& path, std::string_view packed);
  void erase(const std::string& job, Files& files, const std::string& name);
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
  std::string json;     // keys of colltrace::to_json; job, analysed, took_s
  std::string picture;  // colltrace::make_picture
  bool is_hang = false;
  std::size_t verdicts = 0;
  model::RecordSet records;  // for triage, at `now`
  // When most of what they rest on began, and the job's latest event.
  std::int64_t first_ns = 0, last_ns = 0;
};

// What the traces of a job say, with what probes say meanwhile. Each trace is of the host whose
// agent has sent it; those of processes that others have replaced are left out (are_current). A
// rank without a trace is not called dead: its agent may be. A job that is stalled gives a record
// when half of its traces were sent at least `hang_ns` after its latest event. Fails: Errc::value
// where there are none, or more members of communicators or records than the limits have. Cost: as
// load_job, analyse, judge_network.
Result<TraceFindings> judge_traces(const model::Fabric& fabric, const NodeNames& names,
                                   const TraceFolder& folder, std::string_view job,
                                   const model::EvidenceSet& probes, Timestamp now,
                                   std::int64_t hang_ns);

}  // namespace weft::operate::jobs
