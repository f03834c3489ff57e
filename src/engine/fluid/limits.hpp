// What transfers wait for while they are under way.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "model/fabric/fabric.hpp"

namespace weft::engine::fluid {

using model::LinkId;

// A set of resources that limit a rate together, or what is no resource.
using LimitId = std::uint32_t;
namespace limit {
inline constexpr LimitId latency = 0;  // of paths and of software
inline constexpr LimitId library = 1;  // the library's own pace: no byte is waited for
inline constexpr LimitId no_path = 2;
inline constexpr LimitId first_set = 3;
}  // namespace limit

// From then on, until the next span begins, or the transfer ends.
struct LimitSpan {
  LimitId what;
  double from_s;
};
using LimitHistory = std::vector<LimitSpan>;

class LimitSets {
 public:
  // Ascending, without repeats.
  LimitId id_of(const std::vector<LinkId>& resources) {
    const auto next = limit::first_set + static_cast<LimitId>(sets_.size());
    const auto [entry, is_new] = ids_.try_emplace(resources, next);
    if (is_new) sets_.push_back(&entry->first);
    return entry->second;
  }
  std::span<const LinkId> resources(LimitId set) const { return *sets_[set - limit::first_set]; }

 private:
  std::map<std::vector<LinkId>, LimitId> ids_;
  std::vector<const std::vector<LinkId>*> sets_;
};

// Time by what it was spent waiting for, by resource and beside them.
class LimitSum {
 public:
  // The part of the history in [from_s, to_s]; what was before its first span is latency.
  void add(const LimitHistory& history, double from_s, double to_s) {
    double until = to_s;
    for (auto span = history.rbegin(); span != history.rend() && until > from_s; ++span) {
      const double from = std::max(from_s, span->from_s);
      if (from < until) {
        seconds_[span->what] += until - from;
        until = from;
      }
    }
    if (until > from_s) seconds_[limit::latency] += until - from_s;
  }
  // Of what is no resource.
  double seconds(LimitId what) const {
    const auto found = seconds_.find(what);
    return found == seconds_.end() ? 0 : found->second;
  }
  // Resources of one set share its time equally.
  std::vector<double> by_resource(const LimitSets& sets, std::size_t count) const {
    std::vector<double> out(count, 0);
    for (const auto& [what, seconds] : seconds_) {
      if (what < limit::first_set) continue;
      const std::span<const LinkId> resources = sets.resources(what);
      for (const LinkId at : resources)
        out[at.index()] += seconds / static_cast<double>(resources.size());
    }
    return out;
  }

 private:
  std::map<LimitId, double> seconds_;
};

}  // namespace weft::engine::fluid
