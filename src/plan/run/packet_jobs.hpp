// Jobs on the packet engine, with results as the fluid engine gives them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "engine/fluid/job_run.hpp"
#include "engine/packet/options.hpp"
#include "model/work/outcome.hpp"
#include "plan/run/setup.hpp"
#include "route/router.hpp"

namespace weft::plan {

struct PacketJobsOptions {
  engine::packet::Options engine;
  Memoise memoise = Memoise::on;
  std::string progress_name;
  Progress::Show progress = Progress::Show::never;
};

struct PacketJobsResult {
  engine::fluid::JobRunResult run;  // bytes of links with headers
  model::PacketOutcome packet;
  std::vector<std::string> notes;
};

// Semantics: CollectiveLowering and, of graphs, lower_graph().
//
// A collective that has the fabric to itself, under a transport without congestion control, begins
// every iteration when all ranks have ended the one before, on an empty fabric and with connections
// like new: each is a run of its own. Then one that meets the same state of the fabric as an
// earlier one, for as long as that took, and in which nothing is left to chance, is equal to it to
// the picosecond; it is not simulated again, and a note says so. Where there is chance (entropies,
// marks, lossy links) each iteration draws anew.
//
// Otherwise everything is one run, in which each rank goes from one iteration to the next by
// itself; an iteration lasts from the end of the one before, on all ranks, to its own.
//
// Fails: as check_message_count(), lower_collective(), lower_graph() and
// engine::packet::run_messages(). Deterministic for any number of threads.
Result<PacketJobsResult> run_packet_jobs(std::span<const engine::fluid::Job> jobs,
                                         std::span<const engine::fluid::GraphJob> graphs,
                                         route::Router& router,
                                         std::span<const engine::fluid::StateChange> changes,
                                         const PacketJobsOptions& options);

}  // namespace weft::plan
