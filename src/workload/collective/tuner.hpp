// Which algorithm and protocol NCCL would choose for one call, and why. Its estimates serve this
// comparison only; times come from timing.hpp, because the estimates are 11-20 % off as times.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "workload/collective/system.hpp"
#include "workload/collective/timing.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::workload {

enum class InNetwork : std::uint8_t { absent, present };  // reduction in the network's switches

// What the user fixes; the tuner chooses the rest.
struct TunerRules {
  std::string algorithm = "auto";  // or one of timed_algorithms()
  std::optional<Protocol> protocol;
  InNetwork in_network = InNetwork::absent;
};

struct Pick {
  std::string algorithm;
  Protocol protocol = Protocol::simple;
  std::uint32_t channels = 0;
  std::string why;  // one sentence, with the times that were compared
};

// One entry of the comparison, in NCCL's estimate.
struct Candidate {
  std::string_view algorithm;
  Protocol protocol;
  double seconds;
};

// All that NCCL would compare, best first; equal times keep NCCL's order. May be empty.
// Cost: O(1). From: NCCL 2.30, src/graph/tuning.cc (commit 5067397c). We differ: bandwidths come
// from the System instead of a search over the machine's paths, and the caps per channel of trees
// are left out.
std::vector<Candidate> candidates(const System& system, const GroupShape& shape, Op op,
                                  double bytes, InNetwork in_network,
                                  std::optional<double> network = {});

// Fails: as predict(), for the rules it is given; Errc::infeasible when nothing satisfies them.
Result<Pick> pick(const System& system, const GroupShape& shape, Op op, double bytes,
                  const TunerRules& rules, std::optional<double> network = {});

}  // namespace weft::workload
