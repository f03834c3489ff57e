// Which operation of a training step waits for which, and how long steps take with given durations.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "observe/straggler/timeline.hpp"

namespace weft::observe::straggler {

// Pipelines without interleaving (1F1B, GPipe), read off the first step of the first replica:
// computes of a stage follow one another; a micro-batch's receive comes before its compute and its
// send after it; transfers of one kind follow one another; parameters are gathered before the first
// compute, gradients reduced after the last, then clipping and the optimizer. A transfer begins
// when all its ends have arrived: a send with its receive; gathers, reduces and clipping with all
// replicas; embedding gradients with the first and last stage.
class StepModel {
 public:
  // Fails: Errc::infeasible where a transfer lacks its other end or its compute, or where orders
  // contradict each other. Cost: O(operations of a step).
  static Result<StepModel> read(const Timeline& timeline, const std::string& file);

  // Seconds of each operation without waiting, by Timeline::index(): computes as recorded,
  // transfers from the arrival of the last end.
  std::vector<double> durations(const Timeline& timeline) const;

  // Seconds of each step in which operations take `seconds`, by Timeline::index(). `spans`, if
  // given, gets the start and end of each operation. Cost: O(operations).
  struct Span {
    double start_s, end_s;
  };
  std::vector<double> play(const Timeline& timeline, std::span<const double> seconds,
                           std::vector<Span>* spans = nullptr) const;

 private:
  friend class ModelReader;
  struct Group {
    std::vector<std::uint32_t> ops;
    bool is_over_replicas = false;
  };
  struct Event {
    bool is_group;
    std::uint32_t at;  // operation that starts, or group that runs
  };
  static constexpr std::uint32_t alone = UINT32_MAX;

  std::vector<std::vector<std::uint32_t>> before_;  // by operation
  std::vector<Group> groups_;
  std::vector<std::uint32_t> group_of_;  // by operation, or alone
  std::vector<Event> order_;             // topological
};

}  // namespace weft::observe::straggler
