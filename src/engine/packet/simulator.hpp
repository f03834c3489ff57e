// The run itself: windows, threads, changes of state, and what is looked at between windows.
// Internal to the room.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/progress.hpp"
#include "engine/packet/build.hpp"
#include "engine/packet/loads.hpp"
#include "engine/packet/packet_run.hpp"
#include "engine/packet/pauses.hpp"
#include "engine/packet/series.hpp"
#include "engine/packet/shard.hpp"

namespace weft::engine::packet {

struct TrafficSpan {
  Ps begin = 0, end = 0;
};

// Buckets of a few events each, and a horizon beyond a link's latency.
struct WheelShape {
  std::uint32_t width, bits;
};
WheelShape wheel_shape(const World& world, std::uint32_t partitions);

// Partitions advance side by side in windows of the least latency between them; all else happens
// between windows, on one thread, so that nothing depends on who ran what.
class Simulator {
 public:
  Simulator(World& world, std::span<const StateChange> changes, Partitioning partitioning,
            Sampler sampler, Progress& progress);
  // Before run(): failures are told of, as run_messages() says.
  void watch(FailureLog& failures, Ps start);
  void run();
  PacketRunResult result();
  Ps end() const { return end_; }
  TrafficSpan traffic_span() const;
  // A link that more waited for than can be counted; `none` without.
  std::uint32_t overrun() const;

 private:
  void open_shards();
  void release_first();
  void run_alone();
  void run_threads(std::uint32_t thread_count);
  // After a window: returns the end of the next one, `never` when all is over.
  Ps between_windows(Ps end, Ps next_event);
  Ps next_appointment() const;
  void apply_change(const StateChange& change, Ps at);
  void note_hits();
  std::uint32_t dead_link(std::uint32_t connection) const;
  bool is_busy(std::uint64_t connection) const { return world_.senders[connection].oldest != none; }
  void look(Ps at, Ps next_event);
  void look_for_deadlock(Ps at);
  std::uint32_t blocked_by(std::uint32_t link) const;
  std::size_t messages_over() const;
  void record_loads(Ps at);
  void show_progress();
  void keep_counts();

  World& world_;
  std::span<const StateChange> changes_;
  Partitioning partitioning_;
  Sampler sampler_;
  std::vector<std::uint32_t> recorded_;  // links whose loads are recorded
  LoadRecorder recorder_;
  Progress& progress_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::size_t next_change_ = 0;
  Ps next_look_ = 0;
  Ps end_ = 0;
  PauseForest pauses_;
  std::vector<Deadlock> deadlocks_;
  std::vector<LinkId> last_circle_;
  std::uint64_t last_circle_sent_ = 0;  // packets that its links have sent
  Ps last_look_ = 0;
  std::uint64_t kept_hops_ = 0;  // when counts were set back last
  bool stopped_ = false;
  std::optional<FailureWatch> watch_;
  Ps start_ = 0;  // of this run, in the time of `watch_`
};

// Fills what a user reads from the world's columns.
void describe_unfinished(const World& world, Ps end, std::vector<std::string>& out);
void describe_storms(const World& world, TrafficSpan traffic, std::vector<std::string>& out);
void describe_storms(const Fabric& fabric, std::span<const LinkCounters> links, TrafficSpan traffic,
                     std::vector<std::string>& out);
std::string digest_of(const PacketRunResult& result);

}  // namespace weft::engine::packet
