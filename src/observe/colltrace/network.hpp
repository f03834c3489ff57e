// Is it the network? What edges of collectives, probes and counters say together.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/entity.hpp"
#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/colltrace/job.hpp"
#include "observe/colltrace/verdict.hpp"
#include "observe/localise/counters.hpp"
#include "workload/collective/cost.hpp"

namespace weft::observe::colltrace {

enum class Cause : std::uint8_t {
  nothing,    // no part is slower than chance makes it
  card,       // a NIC, both ways
  up_link,    // a link away from the hosts
  down_link,  // a link towards them
  cable,      // both directions of one
  compute,    // a rank computes longer than its peers
  load,       // traffic of others on a link, which itself is sound
};
inline constexpr std::size_t cause_count = 7;
std::string_view to_text(Cause cause);

struct Suspect {
  Cause cause = Cause::nothing;
  model::Entity entity;               // none: of nothing
  std::optional<std::uint32_t> rank;  // of compute
  double probability = 0;
  double factor = 1;        // of time, where it is the cause
  std::uint32_t edges = 0;  // observations that would pass it
};

// Collectives of one kind against what the cost model expects of a sound fabric.
struct Expected {
  std::string operation, description;  // call, and what its groups are for
  double bytes = 0;                    // as nccl-tests count them
  std::size_t groups = 0;
  double measured_us = 0, expected_us = 0;  // medians over groups
  double ratio() const { return measured_us / expected_us; }
};

struct NetworkInput {
  const model::Fabric& fabric;
  std::span<const model::NodeId> gpus;  // by rank; invalid: not known where it is
  const model::EvidenceSet* probes = nullptr;
  std::span<const localise::LinkCounters> counters = {};
  workload::Library library = {};  // that runs the collectives
};

struct NetworkReport {
  bool is_judged = false;         // the traces have waits of edges, transfers or compute to compare
  std::vector<Suspect> suspects;  // most probable first; all of at least 0.001, at most 20
  double network = 0, compute = 0, load = 0, nothing = 0;  // sums over all
  std::vector<Expected> expected;                          // kinds of at least 2 MiB between hosts
  // Median of measured over expected, where at least half of the groups are 30 % over: everything
  // is slow, which no comparison within the job shows. 0: it is not, or nothing was expected.
  double slow_fabric = 0;
  std::size_t edge_count = 0, group_count = 0, probe_rows = 0, counter_rows = 0;  // that were used
};

// One cause, or none, is assumed. Observations are (a) how much longer each edge (sender, receiver,
// channel) waits for the network per byte than edges of its kind do, or, of groups without edges,
// how much longer their transfers take; (b) compute before collectives, against peers; (c) probes
// lost and late; (d) counters of links. Which of the equal paths an edge takes is not known: it
// crosses a link with that link's share of the shortest paths. The factor by which a cause slows,
// and the loss that it causes, are integrated over.
// Fails: Errc::value where no rank is placed. Cost: one search over the fabric for each NIC that
// receives, then edges x links of their paths. Deterministic.
Result<NetworkReport> judge_network(const Job& job, const Report& report,
                                    const NetworkInput& input);

// Where ranks run: those of a host (of Fabric::hosts(); none: not known) use its GPUs in order, as
// they come in `hosts`, which is by rank. Of ranks that have no place it is noted in the job.
std::vector<model::NodeId> place_ranks(const model::Fabric& fabric, Job& job,
                                       std::span<const std::optional<std::uint32_t>> hosts);

// Of the job's latest event, but for those after `until_ns`, which a broken clock has put there; 0:
// it has none.
std::int64_t latest_ns(const Job& job,
                       std::int64_t until_ns = std::numeric_limits<std::int64_t>::max());

}  // namespace weft::observe::colltrace
