#include "observe/colltrace/cohorts.hpp"

#include <algorithm>
#include <numeric>

#include "base/check.hpp"

namespace weft::observe::colltrace {

Cohorts::Cohorts(const Job& job) : job_(job), trace_(job.world, none), of_rank_(job.world) {
  WEFT_CHECK(job.entries.size() < none);
  for (std::uint32_t i = 0; i < job.ranks.size(); ++i) trace_[job.ranks[i].rank] = i;
  std::vector<std::vector<std::pair<std::uint32_t, std::size_t>>> slots(job.world);
  std::size_t slot_count = 0;
  for (std::uint32_t g = 0; g < job.groups.size(); ++g) {
    first_slot_.push_back(slot_count);
    for (const std::uint32_t rank : job.groups[g].members) {
      slots[rank].emplace_back(g, slot_count++);
      of_rank_[rank].push_back(g);
    }
  }
  first_slot_.push_back(slot_count);
  // Two passes: count, then place. Entries of a group that does not list their rank have no slot.
  constexpr auto nowhere = static_cast<std::size_t>(-1);
  const auto slot_of = [&](std::uint32_t rank, std::uint32_t group) {
    for (const auto& [g, slot] : slots[rank])
      if (g == group) return slot;
    return nowhere;
  };
  begin_.assign(slot_count + 1, 0);
  const auto each = [&](auto&& use) {
    for (const RankTrace& r : job.ranks)
      for (std::size_t i = r.begin; i < r.end; ++i) {
        const Entry& e = job.entries[i];
        if (e.is_aside != 0) continue;
        if (const std::size_t slot = slot_of(r.rank, e.group); slot != nowhere) use(slot, i);
      }
  };
  each([&](std::size_t slot, std::size_t) { ++begin_[slot + 1]; });
  std::partial_sum(begin_.begin(), begin_.end(), begin_.begin());
  index_.resize(begin_.back());
  std::vector<std::size_t> next(begin_.begin(), begin_.end() - 1);
  each([&](std::size_t slot, std::size_t i) {
    index_[next[slot]++] = static_cast<std::uint32_t>(i);
  });
}

std::span<const std::uint32_t> Cohorts::slot(std::uint32_t group, std::size_t member) const {
  const std::size_t s = first_slot_[group] + member;
  return std::span(index_).subspan(begin_[s], begin_[s + 1] - begin_[s]);
}

const Entry* Cohorts::at(std::uint32_t group, std::size_t member, std::uint32_t seq) const {
  const auto entries = slot(group, member);
  if (entries.empty()) return nullptr;
  const std::uint32_t first = job_.entries[entries.front()].seq;
  if (seq < first) return nullptr;
  const std::size_t guess = seq - first;  // numbers follow each other but for lost entries
  if (guess < entries.size() && job_.entries[entries[guess]].seq == seq)
    return &job_.entries[entries[guess]];
  const auto found = std::ranges::lower_bound(entries, seq, {},
                                              [&](std::uint32_t i) { return job_.entries[i].seq; });
  if (found == entries.end() || job_.entries[*found].seq != seq) return nullptr;
  return &job_.entries[*found];
}

bool Cohorts::is_past(std::uint32_t group, std::size_t member, std::uint32_t seq) const {
  const auto entries = slot(group, member);
  return !entries.empty() && seq < job_.entries[entries.front()].seq;
}

}  // namespace weft::observe::colltrace
