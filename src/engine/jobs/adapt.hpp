// What a collective library makes of a job when it knows the state of its paths.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/jobs/jobs.hpp"
#include "route/router.hpp"

namespace weft::engine {

// What runs instead of the job's own traffic.
struct Adapted {
  workload::Traffic traffic;
  std::optional<workload::CallCost> cost;
  double seconds = 0, own_seconds = 0;  // predicted: of this, and of the job's own traffic
  std::string what;                     // "channels carry 0.53 to 1.07 of an equal part"
};

// Seconds of one iteration that has the fabric, in the router's state, to itself:
//   sum over stages (lead + max(what the library needs for its bytes, worst link's bytes / rate))
// as workload::StageShare adds them up. Infinite without a live path. Nothing for traffic with
// exchanges, which are not written out.
std::optional<double> predicted_seconds(const workload::Traffic& traffic, Duration step_overhead,
                                        const std::optional<workload::CallCost>& cost,
                                        route::Router& router);

// For a job that is adaptive: bytes go from channels (Stage::divisible) with slow paths to others,
// none over dead ones, and of the job's own traffic and its `others` the fastest is taken. Nothing
// where that gains less than least_gain, or least_gain_of_other with another algorithm, of the
// predicted time: predictions know nothing of other jobs.
// Cost: O(edges x QPs x hops) for each alternative.
std::optional<Adapted> adapt(const Job& job, route::Router& router);
// What an iteration takes at best, in seconds: traffic_floor() of the job's own traffic or, where
// the job is adaptive, of the fastest that it may run instead.
double least_seconds(const Job& job, route::Router& router);
// Says so, for the first few choices of a run.
void add_adapted_note(const Job& job, const Adapted& adapted, double at_s,
                      std::vector<model::Note>& notes);
inline constexpr double least_gain = 0.005, least_gain_of_other = 0.02;

}  // namespace weft::engine
