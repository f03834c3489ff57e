#include "operate/triage/learner.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <tuple>
#include <utility>

#include "operate/triage/relation_fit.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;
using model::NodeId;

constexpr std::int64_t ns_per_ms = 1'000'000;

double seconds(std::int64_t ns) { return static_cast<double>(ns) / ns_per_s; }

// The delay below which lies `share` of the weight.
double quantile(const std::vector<std::pair<double, double>>& delays, double share) {
  double total = 0, sum = 0;
  for (const auto& [delay, weight] : delays) total += weight;
  for (const auto& [delay, weight] : delays) {
    sum += weight;
    if (sum >= share * total) return delay;
  }
  return delays.empty() ? 0 : delays.back().first;
}

}  // namespace

// The events as alarms at spots, and who may have brought about whom.
class Learner::History {
 public:
  History(const Learner& learner, double memory_s)
      : learner_(learner), memory_ns_(static_cast<std::int64_t>(memory_s * 1e9)) {
    std::vector<Event> events = learner.events_;
    // By content: the numbers of spots depend on the order in which they came.
    std::ranges::sort(events, {}, [&](const Event& e) {
      const Spot& spot = learner.spots_[e.spot];
      return std::tuple(e.at, spot.part.value, spot.device.value, e.kind);
    });
    find_spots();
    problem_.kinds = model::event_kind_count;
    problem_.nearnesses = nearness_count;
    problem_.places = static_cast<std::uint32_t>(learner.spots_.size());
    problem_.exposure.assign(std::size_t{problem_.kinds} * nearness_count, 0);
    if (!events.empty()) problem_.duration_s = seconds(events.back().at - events.front().at);
    for (const Event& event : events) add(event);
  }
  const RelationProblem& problem() const { return problem_; }

 private:
  void find_spots() {
    const model::Fabric& fabric = learner_.parts_.fabric();
    joined_.resize(fabric.node_count() + 1);
    said_.resize(joined_.size());
    spots_at_.assign(joined_.size(), 0);
    for (const Spot& spot : learner_.spots_) ++spots_at_[slot(spot.device)];
    for (const NodeId node : fabric.nodes())
      for (const model::LinkId link : fabric.out(node)) {
        if (!fabric.on_wire(link)) continue;
        const auto speaker = [&](NodeId n) {
          const NodeId host = fabric.is_switch(n) ? NodeId() : fabric.host_of(n);
          return host.valid() ? host : n;
        };
        const NodeId a = speaker(node), b = speaker(fabric.to(link));
        if (a != b) joined_[slot(a)].push_back(b);
      }
    for (auto& row : joined_) {
      std::ranges::sort(row);
      row.erase(std::ranges::unique(row).begin(), row.end());
    }
    near_.assign(joined_.size(), 0);
    for (std::size_t i = 0; i < joined_.size(); ++i)
      for (const NodeId other : joined_[i]) near_[i] += spots_at_[slot(other)];
  }

  // What is said of scopes stands behind the nodes.
  std::size_t slot(NodeId device) const {
    return device.valid() ? device.index() : joined_.size() - 1;
  }

  void add(const Event& event) {
    const auto kind = static_cast<std::uint32_t>(event.kind);
    auto [last, is_new] = last_.try_emplace({event.spot, kind}, event.at);
    const bool is_again = !is_new && event.at - last->second <= memory_ns_;
    last->second = event.at;
    if (is_again) return;
    const Spot& spot = learner_.spots_[event.spot];
    const std::size_t at = slot(spot.device);
    double* exposure = &problem_.exposure[std::size_t{kind} * nearness_count];
    exposure[static_cast<std::size_t>(Nearness::port)] += 1;
    exposure[static_cast<std::size_t>(Nearness::device)] += std::max<double>(spots_at_[at], 1);
    exposure[static_cast<std::size_t>(Nearness::neighbour)] += std::max<double>(near_[at], 1);
    find_reasons(event, at);
    said_[at].push_back({event.at, static_cast<std::uint32_t>(problem_.alarms.size()), event});
    problem_.alarms.push_back(kind);
    problem_.first.push_back(problem_.reasons.size());
  }

  void find_reasons(const Event& event, std::size_t at) {
    found_ = {};
    look(event, said_[at]);
    for (const NodeId other : joined_[at]) look(event, said_[slot(other)]);
    for (std::size_t i = 0; i < nearness_count; ++i)
      for (std::size_t from = 0; from < model::event_kind_count; ++from) {
        const Found& found = found_[i][from];
        if (found.at == Found::never) continue;
        const auto edge = (static_cast<std::uint32_t>(from) * problem_.kinds +
                           static_cast<std::uint32_t>(event.kind)) *
                              nearness_count +
                          static_cast<std::uint32_t>(i);
        problem_.reasons.push_back({found.alarm, edge, seconds(event.at - found.at)});
      }
  }

  struct Alarm {
    std::int64_t at;
    std::uint32_t number;
    Event event;
  };
  struct Found {
    static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::min();
    std::int64_t at = never;
    std::uint32_t alarm = 0;
  };

  // The last of each kind and nearness, of all that was said there before.
  void look(const Event& event, std::deque<Alarm>& said) {
    while (!said.empty() && said.front().at < event.at - memory_ns_) said.pop_front();
    for (const Alarm& then : said) {
      if (then.event.kind == event.kind || then.at >= event.at) continue;
      const auto near = nearness_of_joined(learner_.parts_, learner_.spots_[then.event.spot],
                                           learner_.spots_[event.spot]);
      if (!near) continue;
      Found& found =
          found_[static_cast<std::size_t>(*near)][static_cast<std::size_t>(then.event.kind)];
      if (then.at > found.at) found = {then.at, then.number};
    }
  }

  const Learner& learner_;
  std::int64_t memory_ns_;
  RelationProblem problem_;
  std::vector<std::vector<NodeId>> joined_;  // by slot of a device
  std::vector<std::deque<Alarm>> said_;      // the same, not older than the memory
  std::vector<std::uint32_t> spots_at_, near_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::int64_t> last_;  // by spot and kind
  std::array<std::array<Found, model::event_kind_count>, nearness_count> found_{};
};

void Learner::add(const model::RecordSet& set, const model::Record& record) {
  if (!is_trouble(rules_, record.kind)) return;
  const auto evidence = interpreter_.interpret(set, record, 0);
  if (!evidence) return;
  const Spot spot = spot_of(parts_, evidence->part, evidence->end);
  const auto [known, is_new] = spot_number_.try_emplace({spot.part.value, spot.device.value},
                                                        static_cast<std::uint32_t>(spots_.size()));
  if (is_new) spots_.push_back(spot);
  events_.push_back({evidence->at, known->second, evidence->kind});
}

std::vector<LearnedRelation> Learner::learn(const LearnOptions& options) const {
  const History history(*this, options.fit.memory_s);
  const RelationProblem& problem = history.problem();
  RelationFit fit(problem, options.fit.memory_s);
  const std::vector<KindEdge> edges = fit_edges(fit, problem, options.fit);
  fit.set(edges);
  fit.run(options.fit.rounds);
  const std::vector<double> shares = fit.shares();
  std::map<std::uint32_t, std::vector<std::pair<double, double>>> seen;  // by edge: delay and share
  for (std::size_t i = 0; i < shares.size(); ++i)
    seen[problem.reasons[i].edge].emplace_back(problem.reasons[i].delay_s, shares[i]);
  std::vector<LearnedRelation> out;
  for (const KindEdge& edge : edges) {
    auto& pairs = seen[problem.edge(edge)];
    std::ranges::sort(pairs);
    double support = 0, within = 0, count = 0;
    const double least = quantile(pairs, 0.01), most = quantile(pairs, 0.99);
    for (const auto& [delay, share] : pairs) {
      support += share;
      if (delay < least || delay > most) continue;
      within += share;
      ++count;
    }
    // Stamps of whole seconds, and clocks, do not tell what lies closer together.
    const double from = least < 1 ? 0 : least;
    out.push_back({static_cast<EventKind>(edge.from), static_cast<EventKind>(edge.to),
                   static_cast<Nearness>(edge.nearness),
                   static_cast<std::int64_t>(std::floor(from * 1e3)) * ns_per_ms,
                   static_cast<std::int64_t>(std::ceil(most * 1e3)) * ns_per_ms,
                   static_cast<std::uint64_t>(support), count > 0 ? within / count : 0});
  }
  std::erase_if(out, [&](const LearnedRelation& r) {
    return r.support < options.support_min || r.confidence < options.confidence_min;
  });
  std::ranges::stable_sort(out, std::ranges::greater{}, &LearnedRelation::support);
  return out;
}

}  // namespace weft::operate::triage
