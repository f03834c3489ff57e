// What a failure does to flows until routing has led them round it.
#pragma once

#include <span>

#include "model/work/outcome.hpp"
#include "operate/te/decide.hpp"

namespace weft::operate::te {

struct Failure {
  const Fabric& fabric;
  const route::RoutingConfig& routing;  // how long who takes; without `convergence` its defaults
  std::uint64_t seed;
  const model::State &healthy, &failed;
  std::span<const Flow> flows;
  const Decision &before, &after;  // of a controller, in these states
  double bytes_per_s = 0;          // of a flow, per unit of its weight; 0: weights are no bytes
};

// By the log that both engines keep of failures (engine/jobs/failures.hpp), over the states as
// switches and the controller hear of them, with the paths that scheme te gives to these marks. A
// dead controller renewed them last when the links died. Bytes are those of the fluid engine, and
// NaN where weights are no bytes. Second QPs are flows of their own. Fails: as Router::create.
// Cost: some six paths for each flow.
Result<model::FailureOutcome> predict(const Failure& failure);

}  // namespace weft::operate::te
