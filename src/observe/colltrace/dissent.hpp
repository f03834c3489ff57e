// Which rank, edge or input makes replicas differ.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/colltrace/hashes.hpp"

namespace weft::observe::colltrace {

// Something that may have changed bytes: a rank's GPU (its computing or its memory), an edge of a
// ring with the cards at its ends, or what a rank has read.
struct HashPart {
  enum class Kind : std::uint8_t { rank, edge, input };
  Kind kind = Kind::rank;
  std::uint32_t rank = 0;  // of an edge, the sender
  std::uint32_t to = 0;    // of an edge
  friend auto operator<=>(const HashPart&, const HashPart&) = default;
};
std::string to_text(const HashPart& part);  // "rank 5", "edge 4 -> 5", "input of rank 5"

// A cohort (kind, group, step, seq) whose members do not hold the same bytes.
struct Dissent {
  HashRow cohort;                      // any of its rows
  std::vector<std::uint32_t> ranks;    // the fewer; of equally many, those without the first rank
  std::size_t members = 0;             // with a hash
  std::vector<HashPart> parts;         // each that alone leaves exactly these hashes; none: no one
  std::optional<std::size_t> follows;  // index of a dissent of which this one is a consequence
};

struct Accused {
  HashPart part;
  std::vector<HashPart> or_else;      // that explain the same just as well
  std::vector<std::size_t> dissents;  // that it explains
};

inline constexpr std::size_t accused_max = 100;

struct HashReport {
  std::vector<Dissent> dissents;  // in order of run, step, kind, group, seq
  std::vector<Accused> accused;   // that which explains most first; at most accused_max
  std::size_t ranks = 0, rows = 0, cohorts = 0, steps = 0;
  std::size_t alone = 0;    // cohorts of one hash: nothing to compare with
  std::size_t missing = 0;  // hashes of members that left none, where the size is known
};

// Compares cohorts. One flip is assumed for each, and `parts` are all that would leave the seen
// hashes: a rank that differs alone; for outputs with places, also the edges of the ring
// 0 -> 1 -> ... -> 0 by which a changed slice would have reached just those who differ. A slice
// starts at the member whose place is its number and goes round up to the one before (AllGather),
// if there are as many slices as members; else it may start anywhere. Members that left no hash may
// hold anything.
// A dissent of weights among ranks that earlier ones of the run (not of compute) had set apart
// follows from those. So does one of compute, also from later ones of weights, and from input of
// the step; ranks that read one input are one replica, and what one of them computes depends on all
// of them. Then as few parts as possible are accused, those first that explain most dissents; a
// rank also explains flips on its edges.
// Fails: Errc::value where a rank has two hashes, or ranks have different numbers of them or the
// same place, in one cohort. Cost: O(rows log rows + slices). Deterministic.
Result<HashReport> find_dissent(const HashSet& hashes);

// Of accused that are all on one host, as records of kind corruption on it. Attributes: "job",
// "cause" (rank, edge or input), "message". `hosts` by rank; invalid: not known.
model::RecordSet to_records(const model::Fabric& fabric, const HashSet& hashes,
                            std::span<const model::NodeId> hosts, std::string_view job_name,
                            const HashReport& report);

}  // namespace weft::observe::colltrace
