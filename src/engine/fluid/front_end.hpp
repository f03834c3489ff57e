// What a job does over the front-end network while a graph of it runs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/fluid/network.hpp"
#include "engine/jobs/jobs.hpp"

namespace weft::engine::fluid {

// Start-up, fetches and checkpoint writes of one job (engine::FrontEnd) as transfers on the network
// that carries its collectives. Whoever owns it asks after each event what may go on. Without
// contention each set of transfers takes what its busiest NIC or storage host needs alone.
class FrontEndRun {
 public:
  // `tag`: of the first of its events; the lowest 8 bits are its own. `steps`: fetches at most.
  FrontEndRun(const FrontEnd& work, std::uint64_t tag, std::uint32_t steps, Network& network);

  void begin();
  void on_event(std::uint64_t tag);  // a timer of its own or a delivery
  bool started() const { return started_; }
  bool has_data() const { return work_.ingest.empty() || fetched_ > consumed_; }
  void take_data();  // for one step; the next fetch may begin
  void stop_fetching() { steps_ = fetch_begun_; }
  bool checkpoint_due(std::uint64_t steps_ended, bool last) const;
  void begin_checkpoint();
  bool checkpoint_blocks() const { return blocks_; }
  bool idle() const { return !fetching_ && !writing_ && !blocks_; }
  std::string why(std::uint64_t tag) const;  // a transfer of this tag is stalled

  FrontEndResult result;

 private:
  enum class Event : std::uint8_t { start_lead, start_paced, start_bytes, fetch, copied, write };
  // Transfers that begin together.
  struct Batch {
    std::span<const model::StorageFlow> flows;
    std::vector<RouteId> routes;
    double alone_s = -1;  // without contention
    std::size_t left = 0;
    double start_s = 0;
  };

  std::uint64_t tag(Event event) const { return tag_ | static_cast<std::uint64_t>(event); }
  void launch(Batch& batch, Event event);
  double alone_s(Batch& batch);
  void fetch_next();
  void copy();
  void begin_write();
  void note(const char* what, double start_s);
  void exchange_bytes();

  const FrontEnd& work_;
  std::uint64_t tag_;
  std::uint32_t steps_;
  Network& network_;
  Batch fetch_, write_;
  double begin_s_ = 0, checkpoint_asked_s_ = 0;
  std::uint32_t fetch_begun_ = 0, fetched_ = 0, consumed_ = 0;
  std::uint32_t start_left_ = 0;
  bool started_ = false, fetching_ = false, writing_ = false, blocks_ = false;
  bool copy_waits_ = false;  // for the write before it
};

}  // namespace weft::engine::fluid
