// The entries of a job by group, member and sequence number.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "observe/colltrace/job.hpp"

namespace weft::observe::colltrace {

class Cohorts {
 public:
  explicit Cohorts(const Job& job);

  // Whether a rank has a dump.
  bool has(std::uint32_t rank) const { return rank < trace_.size() && trace_[rank] != none; }
  std::span<const Entry> entries(std::uint32_t rank) const {
    return has(rank) ? job_.ranks[trace_[rank]].in(job_.entries) : std::span<const Entry>{};
  }
  const RankTrace& trace(std::uint32_t rank) const { return job_.ranks[trace_[rank]]; }
  std::span<const std::uint32_t> groups_of(std::uint32_t rank) const { return of_rank_[rank]; }

  // What the member at that place did as number `seq` of the group; null: nothing that is known.
  const Entry* at(std::uint32_t group, std::size_t member, std::uint32_t seq) const;
  // Its entry is older than what it has kept: it is through.
  bool is_past(std::uint32_t group, std::size_t member, std::uint32_t seq) const;
  // Its entries of the group, oldest first.
  std::span<const std::uint32_t> slot(std::uint32_t group, std::size_t member) const;

 private:
  static constexpr std::uint32_t none = ~0u;
  const Job& job_;
  std::vector<std::uint32_t> trace_;                 // rank -> index into job.ranks
  std::vector<std::vector<std::uint32_t>> of_rank_;  // rank -> its groups
  std::vector<std::size_t> first_slot_;              // group -> its first slot
  std::vector<std::size_t> begin_;                   // slot -> first place in index_
  std::vector<std::uint32_t> index_;                 // entries by slot
};

}  // namespace weft::observe::colltrace
