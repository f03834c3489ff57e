#include "observe/localise/evidence_index.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <ranges>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "observe/localise/pair_paths.hpp"

namespace weft::observe::localise {
namespace {

constexpr double share_unit = 1.0 / 4096;

void add(Tally& tally, const Evidence& row, double share) {
  tally.survived += share * (row.sent - row.lost);
  tally.lost += share * row.lost;
  tally.late += share * row.late;
  tally.rows += share;
}

// Calls `use` for each link that the row may have crossed, with its share. The way back is taken
// to spread as the way there does, over the same cables.
template <class Use>
void each_link_of_pathless(PairPaths& paths, const Evidence& row, Use use) {
  for (const LinkShare& link : paths.find(row.src, row.dst)) {
    const double share = std::round(link.share / share_unit) * share_unit;
    if (share == 0) continue;
    if (row.leg != model::Leg::back) use(Structure::of(link.link), share);
    if (row.leg != model::Leg::forward) use(Structure::of(model::reverse(link.link)), share);
  }
}

// Who sends and who receives on the way that the row tells of.
template <class Use>
void each_end(const Structure& structure, const Evidence& row, Use use) {
  if (row.leg != model::Leg::back) {
    use(structure.sending(row.src));
    use(structure.receiving(row.dst));
  }
  if (row.leg != model::Leg::forward) {
    use(structure.sending(row.dst));
    use(structure.receiving(row.src));
  }
}

// By destination, so that its distances are searched for once.
std::vector<std::uint32_t> pathless_rows(const EvidenceSet& evidence) {
  std::vector<std::uint32_t> out;
  for (std::uint32_t i = 0; i < evidence.rows.size(); ++i)
    if (evidence.rows[i].path_size == 0 && evidence.rows[i].sent > 0) out.push_back(i);
  std::ranges::stable_sort(out, {}, [&](std::uint32_t i) {
    return std::pair(evidence.rows[i].dst, evidence.rows[i].src);
  });
  return out;
}

}  // namespace

EvidenceIndex::EvidenceIndex(const Structure& structure, const EvidenceSet& evidence,
                             const model::State* believed)
    : components(structure.component_count()) {
  rank_classes(evidence);
  tally.resize(classes.size() * components);
  count(structure, evidence, believed);
  count_pathless(structure, evidence, believed);
  sort_lossy(evidence);
  index_lossy(structure, evidence, believed);
  find_windows(evidence);
}

void EvidenceIndex::rank_classes(const EvidenceSet& evidence) {
  classes = evidence.classes;
  std::ranges::sort(classes);
  class_rank_.resize(evidence.classes.size());
  for (std::size_t i = 0; i < class_rank_.size(); ++i)
    class_rank_[i] = static_cast<std::uint16_t>(
        std::ranges::lower_bound(classes, evidence.classes[i]) - classes.begin());
}

// The only pass over all rows. A path over what is drained or down is not the way that the probes
// took: such a row says that the path is old (see find_disagreements()), and no more.
void EvidenceIndex::count(const Structure& structure, const EvidenceSet& evidence,
                          const model::State* believed) {
  const model::LiveView view(structure.fabric(), believed == nullptr ? model::State{} : *believed);
  const auto is_out = [&](LinkId link) { return view.health[link.index()] != model::Health::up; };
  for (std::uint32_t i = 0; i < evidence.rows.size(); ++i) {
    const Evidence& row = evidence.rows[i];
    if (row.sent == 0) continue;
    WEFT_DCHECK(row.lost <= row.sent);
    if (total_sent == 0) begin = end = row.t;
    begin = std::min(begin, row.t);
    end = std::max(end, row.t);
    if (!prober_.valid() || row.src < prober_) {
      prober_ = row.src;
      starts_.clear();
    }
    if (row.src == prober_ && (starts_.empty() || starts_.back() != row.t))
      starts_.push_back(row.t);
    total_sent += row.sent;
    sent_on_[static_cast<std::size_t>(row.leg)] += row.sent;
    total_lost += row.lost;
    total_late += row.late;
    Tally* const of_class = tally.data() + class_rank_[row.traffic_class] * components;
    if (std::ranges::any_of(evidence.path(row), is_out)) {
      for (const LinkId link : evidence.path(row) | std::views::filter(is_out))
        of_class[link.index()].rows += 1;
      continue;
    }
    for (const LinkId link : evidence.path(row)) add(of_class[link.index()], row, 1);
    each_end(structure, row, [&](ComponentId end) { add(of_class[end.index()], row, 1); });
    if (row.lost > 0)
      lossy.push_back({i,
                       0,
                       class_rank_[row.traffic_class],
                       row.path_size > 0,
                       static_cast<double>(row.sent),
                       static_cast<double>(row.lost),
                       {}});
  }
}

std::uint64_t EvidenceIndex::probes() const {
  const auto on = [&](model::Leg leg) { return sent_on_[static_cast<std::size_t>(leg)]; };
  return on(model::Leg::round_trip) + std::max(on(model::Leg::forward), on(model::Leg::back));
}

void EvidenceIndex::count_pathless(const Structure& structure, const EvidenceSet& evidence,
                                   const model::State* believed) {
  const std::vector<std::uint32_t> rows = pathless_rows(evidence);
  if (rows.empty()) return;
  PairPaths paths(structure.fabric(), believed);
  for (const std::uint32_t i : rows) {
    const Evidence& row = evidence.rows[i];
    each_link_of_pathless(paths, row, [&](ComponentId link, double share) {
      add(tally[at(class_rank_[row.traffic_class], link)], row, share);
    });
  }
}

void EvidenceIndex::sort_lossy(const EvidenceSet& evidence) {
  const auto key = [&](const LossyRow& lossy) {
    const Evidence& row = evidence.rows[lossy.row];
    return std::tuple(row.dst, row.src, row.sport, row.leg, lossy.traffic_class, row.t, row.sent,
                      row.lost);
  };
  std::ranges::sort(lossy, [&](const LossyRow& a, const LossyRow& b) {
    const auto left = key(a), right = key(b);
    if (left != right) return left < right;
    return std::ranges::lexicographical_compare(evidence.path(evidence.rows[a.row]),
                                                evidence.path(evidence.rows[b.row]));
  });
  const auto flow_of = [&](const LossyRow& lossy) {
    const Evidence& row = evidence.rows[lossy.row];
    return std::tuple(row.dst, row.src, row.sport, row.leg, lossy.traffic_class);
  };
  for (std::size_t i = 1; i < lossy.size(); ++i)
    lossy[i].flow = lossy[i - 1].flow + (flow_of(lossy[i]) == flow_of(lossy[i - 1]) ? 0 : 1);
}

void EvidenceIndex::index_lossy(const Structure& structure, const EvidenceSet& evidence,
                                const model::State* believed) {
  std::vector<std::uint32_t> first{0};
  std::unique_ptr<PairPaths> paths;
  const auto cross = [&](ComponentId component, double share) {
    for (std::size_t i = first.back(); i < crossings.size(); ++i)
      if (crossings[i].component == component) {
        ++crossings[i].times;
        return;
      }
    crossings.push_back({component, static_cast<float>(share), 1});
  };
  for (const LossyRow& lossy_row : lossy) {
    const Evidence& row = evidence.rows[lossy_row.row];
    for (const LinkId link : evidence.path(row)) cross(Structure::of(link), 1);
    if (row.path_size == 0) {
      if (!paths) paths = std::make_unique<PairPaths>(structure.fabric(), believed);
      each_link_of_pathless(*paths, row, cross);
    }
    each_end(structure, row, [&](ComponentId end) { cross(end, 1); });
    first.push_back(static_cast<std::uint32_t>(crossings.size()));
  }
  entry_first.assign(components + 1, 0);
  for (std::size_t i = 0; i < lossy.size(); ++i) {
    lossy[i].crossings = {crossings.data() + first[i], crossings.data() + first[i + 1]};
    for (const Crossing& c : lossy[i].crossings) ++entry_first[c.component.index() + 1];
  }
  std::partial_sum(entry_first.begin(), entry_first.end(), entry_first.begin());
  entry.resize(crossings.size());
  std::vector<std::uint32_t> next = entry_first;
  for (std::uint32_t i = 0; i < lossy.size(); ++i)
    for (const Crossing& c : lossy[i].crossings)
      entry[next[c.component.index()]++] = {i, c.weight, c.times};
}

// Probers begin their windows each at a time of its own. Periods are as long as the shortest window
// of one of them, so that each prober has a window in each.
void EvidenceIndex::find_windows(const EvidenceSet& evidence) {
  constexpr std::int64_t windows_max = 100'000;
  std::ranges::sort(starts_);
  const auto twice = std::ranges::unique(starts_);
  starts_.erase(twice.begin(), twice.end());
  const std::int64_t all = end.ns - begin.ns;
  std::int64_t length = all + 1;
  for (std::size_t i = 1; i < starts_.size(); ++i)
    length = std::min(length, starts_[i].ns - starts_[i - 1].ns);
  length = std::max(length, all / windows_max + 1);
  windows = starts_.empty() ? 0 : static_cast<std::size_t>(all / length) + 1;
  window_of.reserve(lossy.size());
  for (const LossyRow& row : lossy)
    window_of.push_back(
        static_cast<std::uint32_t>((evidence.rows[row.row].t.ns - begin.ns) / length));
}

}  // namespace weft::observe::localise
