// The weeks of a job and its cluster, by simulation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "plan/life/life.hpp"

namespace weft::plan::life {

// Where the wall time goes.
enum class Part : std::uint8_t {
  compute,     // work that was saved, at the healthy step time
  slow,        // what network faults added to its steps
  fewer,       // what missing hosts added to its steps
  checkpoint,  // the job stalls while it writes
  lost,        // since the last checkpoint, at an interruption
  detect,
  localise,
  manual,
  planned,
  wait,  // for hosts
  swap,
  restart,
};
inline constexpr std::size_t part_count = 12;
std::string_view to_text(Part part);

using Ticks = std::int64_t;  // microseconds: sums are exact
inline constexpr double ticks_per_s = 1e6;

struct RunResult {
  std::array<Ticks, part_count> parts{};  // they sum to the length of the run
  std::array<std::uint32_t, group_count> interruptions{};
  std::array<Ticks, group_count> cost{};  // lost work and stops, by what began them
  std::uint32_t waits = 0, swaps = 0, retired = 0;
  double host_exposure = 0, job_exposure = 0;  // host-ticks in which causes could strike
  double goodput() const;
  std::uint32_t interruption_count() const;
};

struct SimulateOptions {
  double scale = 1;    // on all rates
  double every_s = 0;  // checkpoint interval
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

// Every host has its state: in the job, spare, or out; a lemon or not; its failures so far. Each
// cause strikes at exponential times of its own random numbers, counted in the time that hosts of
// the job run or restart, so that run i of two what-ifs has the same failures where it can. Hosts
// that fail are repaired by the next free crew; spares fail as well. A job that is short of hosts
// waits, or restarts with fewer and grows back at a later restart. Several causes of slow steps at
// once count as the slowest of them. Same seed, same results, on any number of threads.
std::vector<RunResult> simulate(const Life& life, const SimulateOptions& options);

// Interruptions to expect in that run's exposure: without their own noise.
double expected_interruptions(const Life& life, double scale, const RunResult& run);

}  // namespace weft::plan::life
