#include "engine/fluid/front_end.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "engine/fluid/stage.hpp"

namespace weft::engine::fluid {
namespace {

constexpr std::uint64_t event_mask = 0xff;
constexpr std::size_t front_end_spans_kept = 1000;

}  // namespace

FrontEndRun::FrontEndRun(const FrontEnd& work, std::uint64_t tag, std::uint32_t steps,
                         Network& network)
    : work_(work), tag_(tag), steps_(steps), network_(network) {
  WEFT_CHECK((tag & event_mask) == 0 && work.prefetch > 0);
  fetch_.flows = work.ingest;
  write_.flows = work.checkpoint;
}

// Fetching does not wait for communicators.
void FrontEndRun::begin() {
  begin_s_ = network_.now();
  network_.timer(begin_s_ + work_.start.lead_s, tag(Event::start_lead));
  fetch_next();
}

void FrontEndRun::exchange_bytes() {
  if (work_.start.bytes <= 0) {
    started_ = true;
    result.start_up_s = network_.now() - begin_s_;
    return note("start-up", begin_s_);
  }
  start_left_ = 1;
  network_.timer(network_.now() + work_.start.paced_s, tag(Event::start_paced));
  if (network_.contention() == NetworkOptions::Contention::off || work_.start.ring.size() < 2)
    return;
  std::vector<Part> parts;
  const std::vector<NodeId>& ring = work_.start.ring;
  for (std::size_t i = 0; i < ring.size(); ++i)
    parts.push_back(
        {ring[i], ring[(i + 1) % ring.size()], 0, network_.router().stream_count(), 0, 1});
  ++start_left_;
  network_.send({.parts = parts, .bytes = work_.start.bytes, .tag = tag(Event::start_bytes)});
}

void FrontEndRun::on_event(std::uint64_t value) {
  switch (static_cast<Event>(value & event_mask)) {
    case Event::start_lead:
      return exchange_bytes();
    case Event::start_paced:
    case Event::start_bytes:
      if (--start_left_ > 0) return;
      started_ = true;
      result.start_up_s = network_.now() - begin_s_;
      return note("start-up", begin_s_);
    case Event::fetch:
      if (--fetch_.left > 0) return;
      ++fetched_;
      fetching_ = false;
      result.ingest_s.push_back(network_.now() - fetch_.start_s);
      note("ingest", fetch_.start_s);
      return fetch_next();
    case Event::copied:
      blocks_ = false;
      return begin_write();
    case Event::write:
      if (--write_.left > 0) return;
      writing_ = false;
      if (!work_.asynchronous) blocks_ = false;
      result.checkpoint_s.push_back(network_.now() - write_.start_s);
      note("checkpoint write", write_.start_s);
      if (copy_waits_) copy();
      return;
  }
}

void FrontEndRun::note(const char* what, double start_s) {
  if (result.spans.size() < front_end_spans_kept)
    result.spans.push_back({what, start_s, network_.now()});
  else
    ++result.spans_left_out;
}

// One set of data at a time, up to `prefetch` of them beyond the step that runs.
void FrontEndRun::fetch_next() {
  if (work_.ingest.empty() || fetching_ || fetch_begun_ >= steps_ ||
      fetch_begun_ - consumed_ >= work_.prefetch)
    return;
  fetching_ = true;
  ++fetch_begun_;
  launch(fetch_, Event::fetch);
}

void FrontEndRun::take_data() {
  WEFT_CHECK(has_data());
  if (work_.ingest.empty()) return;
  ++consumed_;
  fetch_next();
}

bool FrontEndRun::checkpoint_due(std::uint64_t steps_ended, bool last) const {
  if (work_.checkpoint.empty()) return false;
  return work_.every > 0 ? steps_ended % work_.every == 0 : last;
}

void FrontEndRun::begin_checkpoint() {
  blocks_ = true;
  if (!work_.asynchronous) return begin_write();
  copy_waits_ = writing_;
  if (!copy_waits_) copy();
}

void FrontEndRun::copy() {
  copy_waits_ = false;
  network_.timer(network_.now() + work_.copy_s, tag(Event::copied));
}

void FrontEndRun::begin_write() {
  writing_ = true;
  launch(write_, Event::write);
}

void FrontEndRun::launch(Batch& batch, Event event) {
  batch.start_s = network_.now();
  if (network_.contention() == NetworkOptions::Contention::off) {
    batch.left = 1;
    return network_.timer(network_.now() + alone_s(batch), tag(event));
  }
  batch.left = batch.flows.size();
  if (batch.routes.empty())
    for (const model::StorageFlow& flow : batch.flows) {
      const Part part{flow.from, flow.to, 0, network_.router().stream_count(), 0, 1};
      batch.routes.push_back(network_.add_route({&part, 1}, Wire::counted));
    }
  for (std::size_t i = 0; i < batch.routes.size(); ++i)
    network_.send(batch.routes[i], static_cast<double>(batch.flows[i].bytes.count), 0, tag(event));
}

double FrontEndRun::alone_s(Batch& batch) {
  if (batch.alone_s >= 0) return batch.alone_s;
  double latency_s = 0;
  for (const model::StorageFlow& flow : batch.flows)
    latency_s = std::max(latency_s, network_.router().present_latency_s(flow.from, flow.to));
  return batch.alone_s = model::storage_seconds_min(network_.fabric(), batch.flows) + latency_s;
}

std::string FrontEndRun::why(std::uint64_t value) const {
  const auto event = static_cast<Event>(value & event_mask);
  if (event == Event::start_bytes) {
    for (std::size_t i = 0; i + 1 < work_.start.ring.size(); ++i)
      if (std::string path =
              describe_dead_path(work_.start.ring[i], work_.start.ring[i + 1], network_.router());
          !path.empty())
        return path + " (start-up)";
    return "a transfer of the start-up has no bandwidth";
  }
  const bool fetch = event == Event::fetch;
  for (const model::StorageFlow& flow : fetch ? work_.ingest : work_.checkpoint)
    if (std::string path = describe_dead_path(flow.from, flow.to, network_.router()); !path.empty())
      return path + (fetch ? " (ingest)" : " (checkpoint)");
  return std::string("a transfer has no bandwidth") + (fetch ? " (ingest)" : " (checkpoint)");
}

}  // namespace weft::engine::fluid
