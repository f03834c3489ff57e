// A flow set on either engine, with one form of result.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "engine/packet/packet_run.hpp"
#include "model/fabric/flow_set.hpp"
#include "model/work/outcome.hpp"
#include "plan/flows/slowdown.hpp"
#include "plan/run/setup.hpp"
#include "route/router.hpp"

namespace weft::plan {

// When a flow started and ended, in microseconds; no number where it did not.
struct FlowSpan {
  double start_us = model::no_number;
  double end_us = model::no_number;
  double ideal_us = model::no_number;  // alone on its path: ideal_times_us()
  double bytes = 0;
  bool finished() const { return end_us == end_us; }
  double slowdown() const { return (end_us - start_us) / ideal_us; }
};

// Of the flows that finished, from start to end in microseconds; percentiles by nearest rank.
struct CompletionTimes {
  std::size_t finished = 0, unfinished = 0;
  double min = 0, mean = 0, p50 = 0, p99 = 0, max = 0;
};
CompletionTimes completion_times(std::span<const FlowSpan> flows);

struct FlowsResult {
  std::vector<FlowSpan> flows;  // as in the set
  CompletionTimes fct;
  Slowdowns slowdown;
  double makespan_s = 0;
  std::vector<model::TierOutcome> tiers;
  std::string digest;
  std::vector<std::string> unfinished;         // in words; the first ones, a line each
  std::optional<double> rate_error;            // of the fluid engine
  std::optional<model::PacketOutcome> packet;  // of the packet engine
  // Of the packet engine: by LinkId; and as PacketRunResult::class_links.
  std::vector<engine::packet::LinkCounters> links, class_links;
};

// Puts the router into the state that the fabric is in at the start.
void set_first_state(route::Router& router, const plan::Setup& setup);

FlowsResult run_fluid(const model::FlowSet& set, const plan::Setup& setup, route::Router& router);

// Lets the flows go as soon as they are messages. Fails as messages_of() and run_messages().
Result<FlowsResult> run_packet(model::FlowSet set, const plan::Setup& setup, route::Router& router,
                               Progress::Show progress);

// The fluid engine until `at`, then packets: what is under way goes on with the bytes that it has
// left, and with congestion control at its fluid rate. Times are those of the whole run; counters
// and loads those of the packets. Fails as run_packet().
Result<FlowsResult> run_packet_from(model::FlowSet set, const plan::Setup& setup,
                                    route::Router& router, Time at, Progress::Show progress);

}  // namespace weft::plan
