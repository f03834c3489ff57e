#include "route/qp_weights.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "saddle/saddle.hpp"

namespace weft::route {
namespace {

// Of the worst link's load: shares that gain less stay equal, and the search stops this near to
// the best.
constexpr double least_gain = 0.002, gap = 0.002;
constexpr std::uint32_t iterations_max = 2000;
constexpr std::uint32_t no_row = UINT32_MAX;

}  // namespace

void QpWeights::declare(std::span<const NicDemand> together) {
  Kind kind;
  for (const NicDemand& d : together) {
    if (d.qp != 0 || d.bytes <= 0) continue;
    const auto next = static_cast<std::uint32_t>(pairs_.size());
    const auto [entry, is_new] = known_.try_emplace(key(d.src, d.dst), next);
    if (is_new) pairs_.push_back({d.src, d.dst});
    kind.push_back({entry->second, d.bytes * qps_});
  }
  if (kind.empty()) return;
  kinds_.push_back(std::move(kind));
  dirty_ = true;
}

std::span<const double> QpWeights::shares(NodeId src, NodeId dst) {
  const auto found = known_.find(key(src, dst));
  if (found == known_.end()) return {};
  if (dirty_) solve();
  if (!pairs_[found->second].uneven) return {};
  return std::span(shares_).subspan(stream(found->second, 0), qps_);
}

std::string QpWeights::report() const {
  if (kinds_.empty()) return {};
  const auto uneven = std::ranges::count(pairs_, true, &Pair::uneven);
  return fmt::format(
      "adaptive: {} of {} connections share their bytes unevenly over {} QPs (kinds: {}), worst "
      "link at best {:.3f} x that of equal shares",
      uneven, pairs_.size(), qps_, kinds_.size(), most_gain_);
}

void QpWeights::find_paths() {
  hops_.clear();
  hop_begin_.assign(1, 0);
  LinkId last(0);
  for (Pair& pair : pairs_) {
    pair.decided = pair.uneven = false;
    for (std::uint32_t qp = 0; qp < qps_; ++qp) {
      // Without a live path the connection is stalled, however its bytes are shared.
      if (!append_path_({.src = pair.src, .dst = pair.dst, .qp = qp}, hops_)) pair.decided = true;
      hop_begin_.push_back(static_cast<std::uint32_t>(hops_.size()));
    }
  }
  for (const Hop& hop : hops_) last = std::max(last, hop.link);
  row_of_.assign(last.index() + 1, no_row);
  load_.assign(last.index() + 1, 0);
  shares_.assign(pairs_.size() * qps_, 1.0 / qps_);
}

void QpWeights::solve() {
  dirty_ = false;
  find_paths();
  for (const Kind& kind : kinds_) {
    weigh(kind);
    for (const Use& use : kind) pairs_[use.pair].decided = true;
  }
  // A kind may pay for what others chose for its pairs. Each round makes more pairs equal, so that
  // this ends.
  for (bool again = true; again;) {
    again = false;
    for (const Kind& kind : kinds_) {
      if (worst(kind, false) <= worst(kind, true) * (1 + 1e-9)) continue;
      for (const Use& use : kind) pairs_[use.pair].uneven = false;
      again = true;
    }
  }
  most_gain_ = 1;
  for (const Kind& kind : kinds_)
    if (const double equal = worst(kind, true); equal > 0)
      most_gain_ = std::min(most_gain_, worst(kind, false) / equal);
}

double QpWeights::worst(const Kind& kind, bool equal) {
  double most = 0;
  const auto each = [&](auto visit) {
    for (const Use& use : kind)
      for (std::uint32_t qp = 0; qp < qps_; ++qp) {
        const std::size_t s = stream(use.pair, qp);
        const double bytes = use.bytes * (equal ? 1.0 / qps_ : share(s));
        for (std::uint32_t h = hop_begin_[s]; h < hop_begin_[s + 1]; ++h)
          visit(hops_[h].link, bytes * hops_[h].share);
      }
  };
  each([&](LinkId link, double bytes) { load_[link.index()] += bytes; });
  each([&](LinkId link, double) {
    if (load_[link.index()] > 0) most = std::max(most, load_[link.index()] / capacity_(link));
    load_[link.index()] = 0;
  });
  return most;
}

// Pairs that another kind has decided on are a load that is there.
void QpWeights::weigh(const Kind& kind) {
  const double before = worst(kind, false);
  if (before <= 0) return;
  double mean = 0;
  for (const Use& use : kind) mean += use.bytes / static_cast<double>(kind.size());
  saddle::Problem problem;
  std::vector<LinkId> links;
  const auto row = [&](LinkId link) {
    std::uint32_t& entry = row_of_[link.index()];
    if (entry == no_row) {
      entry = static_cast<std::uint32_t>(links.size());
      links.push_back(link);
      problem.scale.push_back(mean / (capacity_(link) * before));
      problem.offset.push_back(0);
    }
    return entry;
  };
  std::vector<std::uint32_t> free;
  problem.entry_begin.push_back(0);
  for (const Use& use : kind) {
    const bool fixed = pairs_[use.pair].decided;
    if (!fixed) {
      free.push_back(use.pair);
      problem.column_blocks.push_back(
          {.begin = static_cast<std::uint32_t>(problem.cost.size()), .volume = use.bytes / mean});
    }
    for (std::uint32_t qp = 0; qp < qps_; ++qp) {
      const std::size_t s = stream(use.pair, qp);
      for (std::uint32_t h = hop_begin_[s]; h < hop_begin_[s + 1]; ++h) {
        const std::uint32_t r = row(hops_[h].link);
        if (fixed) problem.offset[r] += problem.scale[r] * use.bytes / mean * share(s);
        if (!fixed) problem.entries.push_back(r);
      }
      if (fixed) continue;
      problem.cost.push_back(0);
      problem.entry_begin.push_back(static_cast<std::uint32_t>(problem.entries.size()));
    }
  }
  for (const LinkId link : links) row_of_[link.index()] = no_row;
  if (free.empty()) return;
  problem.row_blocks.push_back({.begin = 0, .low = 1, .high = 1, .limit = 0});
  const saddle::Answer answer =
      saddle::solve(problem, {.gap = gap, .iterations_max = iterations_max});
  if (answer.value > 1 - least_gain) return;
  for (std::size_t f = 0; f < free.size(); ++f) {
    const double volume = problem.column_blocks[f].volume;
    pairs_[free[f]].uneven = true;
    for (std::uint32_t qp = 0; qp < qps_; ++qp)
      shares_[stream(free[f], qp)] = answer.x[f * qps_ + qp] / volume;
  }
}

}  // namespace weft::route
