// The files of libweft-nccl.so: what one process had done, and has under way.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_stream.hpp"
#include "base/result.hpp"
#include "observe/colltrace/ring_layout.hpp"

namespace weft::observe::colltrace {

struct RingCommunicator {
  std::uint64_t id = 0;
  std::string name;
  std::int32_t rank = 0, rank_count = 0, node_count = 0;
  std::uint64_t orders = 0, sends = 0;  // operations begun on it
  bool is_finalized = false;
};

// Enqueued: the host has called it. Started: a channel of its kernel runs. Times are ns since 1970;
// 0 is "not yet" or "not known".
struct RingOperation {
  enum class State : std::uint8_t { enqueued, started, completed };

  std::uint32_t communicator = 0;
  ring::Kind kind = ring::Kind::collective;
  State state = State::enqueued;
  std::uint64_t order = 0, seq = 0, count = 0;
  std::int32_t peer = 0;                                             // root or peer
  std::uint8_t function = 0, type = 0, algorithm = 0, protocol = 0;  // indices into the names
  std::int64_t called_ns = 0, started_ns = 0, ended_ns = 0;
  std::uint64_t device_ns = 0;      // from the first channel's start to the last one's end
  std::uint64_t channels_open = 0;  // bit per channel
};

// What the network thread did for one channel and peer of an operation.
struct RingProxy {
  std::int64_t begin_ns = 0;
  std::optional<std::uint32_t> operation;  // index into the operations; none: of another process
  std::int32_t peer = 0;
  std::uint8_t channel = 0;
  bool is_send = false, is_open = false;
  std::uint32_t steps = 0, steps_done = 0;
  std::uint64_t bytes = 0;
  std::uint64_t wait_ns[4] = {};       // by ring::Wait
  std::optional<ring::Wait> stuck_in;  // of the step that has been in its state longest
};

struct RingTrace {
  std::string host, boot_id;
  std::string job;  // as the job's environment has it; empty: it does not say
  ring::ClockKind clock = ring::ClockKind::monotonic_ns;
  std::int32_t pid = 0, rank = -1;
  std::uint64_t pid_namespace = 0;
  std::int64_t opened_ns = 0;  // when the process began to trace
  bool is_finished = false;    // the process ended by exit()
  bool is_gone = false;        // its machine has it no more, and it had not finished
  std::uint64_t dropped = 0, stale = 0, untraced_events = 0;
  std::uint32_t untraced_threads = 0, untraced_communicators = 0;
  double ns_per_tick = 0;
  std::vector<RingCommunicator> communicators;
  std::vector<RingOperation> operations;  // by communicator, then order
  std::vector<RingProxy> proxies;         // by begin
  std::vector<std::string> names;         // 256; "?" where there is none
};

bool is_ring(std::string_view content);

// `content` is the file, copied at any moment: records that are just being written are left out.
// `now`: the clocks of this machine, where it is the one that wrote and has not booted since; else
// the file's own pairs give the rate of its counter.
// Fails: Errc::parse, naming the byte, on what no plugin has written.
Result<RingTrace> read_ring(std::string_view content, const std::string& file,
                            const std::optional<ring::ClockPair>& now = {});

// A regular file, which is never waited for as the other end of a pipe is. Fails: Errc::io.
enum class Links : std::uint8_t { follow, refuse };
Result<File> open_trace_file(const std::string& path, Links links = Links::follow);

// Copies the parts of such a file that hold anything: most of it is holes. Fails: Errc::io.
Result<std::string> load_ring(const std::string& path, Links links = Links::follow);

// For a copy that leaves its machine. Of what read_ring() took, the latest `records` of each ring
// and the open ones; the others become zeros, which compress to nothing. Its size stays.
void cut_ring(std::string& content, std::uint32_t records);
// Writes down what only this machine knows: its clocks now, and that the process is gone.
// `content` is one that read_ring() took.
void stamp_ring(std::string& content, const std::optional<ring::ClockPair>& now,
                std::int64_t gone_ns);

class JobBuilder;
// The processes of a job, each as one rank. Fails: Errc::value on a rank that is there twice.
Status add_rings(const std::vector<RingTrace>& traces, const std::vector<std::string>& files,
                 JobBuilder& job);

// This machine's clocks, if it is the one with that boot id and its counter is the writer's.
std::optional<ring::ClockPair> clock_of(std::string_view boot_id, ring::ClockKind kind);
// Written by this machine since it booted: a folder may be shared with others.
bool is_of_this_machine(const RingTrace& trace);
// Its process was of this machine and of our pid namespace, and is there no more.
bool is_process_gone(const RingTrace& trace);

// What tells a job's processes of now from those that it, or another job, had before.
struct RingLife {
  std::string host, job;
  std::int32_t rank = -1;
  std::int64_t opened_ns = 0, latest_ns = 0;  // its last event
  bool is_gone = false;
};
RingLife life_of(const RingTrace& trace, std::string host);
// Which of them are of their jobs as these run now. Left out are, within a job: of the same rank on
// the same host all but the one that was opened last (without a rank nothing is known to be the
// same); on whatever host, one that had done all before another of its rank was opened; and one
// that is gone, if one of its rank that lives was opened after it, or if its last event came more
// than a minute before any that lives was opened.
std::vector<bool> are_current(const std::vector<RingLife>& lives);

}  // namespace weft::observe::colltrace
