#include "operate/triage/commits.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::operate::triage {

void Commits::add(const Evidence& evidence, bool is_repeat) {
  WEFT_CHECK(rows_.empty() || rows_.back().at <= evidence.at);
  rows_.push_back({evidence.at, evidence.part, evidence.detail, Observation(evidence, is_repeat)});
}

void Commits::forget_before(std::int64_t at) {
  while (!rows_.empty() && rows_.front().at < at) rows_.pop_front();
}

std::uint64_t Commits::drop_planned(const PlannedChanges& planned) {
  return std::erase_if(rows_, [&](const Commit& commit) {
    return !commit.is_taken && planned.explains_commit(commit.device, commit.at, commit.change);
  });
}

void Commits::take(std::uint64_t change, std::vector<Observation>& members) {
  WEFT_CHECK(change != 0);
  for (Commit& commit : rows_) {
    if (commit.change != change || commit.is_taken) continue;
    commit.is_taken = true;
    members.push_back(commit.said);
  }
}

bool Commits::has(PartId device, std::uint64_t change) const {
  return std::ranges::any_of(rows_, [&](const Commit& commit) {
    return commit.device == device && commit.change == change;
  });
}

}  // namespace weft::operate::triage
