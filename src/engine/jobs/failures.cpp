#include "engine/jobs/failures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "base/percentile.hpp"

namespace weft::engine {
namespace {

constexpr std::size_t flows_shown = 20, names_shown = 3;

// "ctsw:3", "rtsw:1--ctsw:2 and 3 more": nodes that are down, then cables that are without one.
std::string names_of(const Fabric& fabric, std::span<const LinkId> died,
                     const model::State& state) {
  const auto node_down = [&](NodeId node) {
    return state.node(node).health == model::Health::down;
  };
  std::vector<std::string> names;
  std::set<std::string> known;
  const auto add = [&](const std::string& name) {
    if (known.insert(name).second) names.push_back(name);
  };
  for (const LinkId link : died)
    if (node_down(fabric.from(link))) add(fabric.name(fabric.from(link)));
  for (const LinkId link : died)
    if (!node_down(fabric.from(link)) && !node_down(fabric.to(link)))
      add(fabric.name(model::cable_of(link)));
  const std::size_t shown = std::min(names.size(), names_shown);
  std::string text = fmt::format("{}", fmt::join(std::span(names).first(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

FailureLog::FailureLog(const Fabric& fabric,
                       std::span<const model::FaultTimeline::Snapshot> changes)
    : fabric_(fabric) {
  model::LiveView before(fabric, {});
  for (const auto& change : changes) {
    model::LiveView after(fabric, change.state);
    std::vector<LinkId> died;
    for (const LinkId link : fabric.links()) {
      if (!fabric.on_wire(link) || after.usable(link) == before.usable(link)) continue;
      if (after.usable(link))
        turns_.push_back({change.at, link, none});
      else
        died.push_back(link);
    }
    if (change.at.ps > 0 && !died.empty()) add_failure(change.at, died, change.state);
    before = std::move(after);
  }
}

void FailureLog::add_failure(Time at, std::span<const LinkId> died, const model::State& state) {
  const auto id = static_cast<std::uint32_t>(failures_.size());
  for (const LinkId link : died) turns_.push_back({at, link, id});
  Tally& tally = failures_.emplace_back();
  tally.outcome.at_s = at.seconds();
  tally.outcome.what = names_of(fabric_, died, state);
}

std::vector<model::FailureOutcome> FailureLog::take_outcomes() {
  std::vector<model::FailureOutcome> out;
  for (Tally& tally : failures_) {
    std::vector<double>& again = tally.again_s;
    std::ranges::sort(again);
    if (!again.empty()) {
      tally.outcome.path_again_p50_s = percentile(std::span<const double>(again), 50);
      tally.outcome.path_again_max_s = again.back();
    }
    out.push_back(std::move(tally.outcome));
  }
  failures_.clear();
  return out;
}

FailureWatch::FailureWatch(FailureLog& log, Time start,
                           std::function<std::uint64_t(LinkId)> packets_lost)
    : log_(log),
      packets_lost_(std::move(packets_lost)),
      failure_of_(log.fabric_.link_count(), FailureLog::none) {
  for (FailureLog::Tally& tally : log_.failures_) {
    if (!packets_lost_)
      tally.outcome.stalled_bytes = tally.outcome.lost_bytes = 0;
    else if (!tally.outcome.lost_packets)
      tally.outcome.lost_packets = 0;
  }
  pass(start);
}

void FailureWatch::count_packets(LinkId link) {
  const auto before = lost_before_.find(link);
  if (before == lost_before_.end()) return;
  const std::uint64_t now = packets_lost_(link);
  WEFT_CHECK(now >= before->second);
  *log_.failures_[failure_of_[link.index()]].outcome.lost_packets += now - before->second;
  lost_before_.erase(before);
}

void FailureWatch::pass(Time at) {
  for (; next_turn_ < log_.turns_.size() && log_.turns_[next_turn_].at <= at; ++next_turn_) {
    const FailureLog::Turn& turn = log_.turns_[next_turn_];
    std::uint32_t& failure = failure_of_[turn.link.index()];
    count_packets(turn.link);
    down_count_ -= failure != FailureLog::none ? 1 : 0;
    failure = turn.failure;
    if (failure == FailureLog::none) continue;
    ++down_count_;
    if (packets_lost_) lost_before_[turn.link] = packets_lost_(turn.link);
  }
}

void FailureWatch::hit(const Flow& flow, LinkId dead) {
  const std::uint32_t failure = failure_of_[dead.index()];
  WEFT_CHECK(failure != FailureLog::none);
  if (!hits_.try_emplace(flow.key, Hit{flow, failure}).second) return;
  model::FailureOutcome& outcome = log_.failures_[failure].outcome;
  ++outcome.hit;
  if (!packets_lost_) outcome.lost_bytes += flow.lost_bytes;
}

void FailureWatch::close(const Hit& hit, double again_s) {
  FailureLog::Tally& tally = log_.failures_[hit.failure];
  if (tally.outcome.flows.size() < flows_shown)
    tally.outcome.flows.push_back(
        {log_.fabric_.name(hit.flow.from), log_.fabric_.name(hit.flow.to), hit.flow.qp, again_s});
}

void FailureWatch::settle(Time at, const std::function<bool(std::uint64_t key)>& has_path) {
  std::erase_if(hits_, [&](const auto& entry) {
    const Hit& hit = entry.second;
    if (!has_path(hit.flow.key)) return false;
    FailureLog::Tally& tally = log_.failures_[hit.failure];
    const double again_s = at.seconds() - tally.outcome.at_s;
    tally.again_s.push_back(again_s);
    if (!packets_lost_) tally.outcome.stalled_bytes += hit.flow.bytes_per_s * again_s;
    close(hit, again_s);
    return true;
  });
}

void FailureWatch::finish(Time at, const std::function<bool(std::uint64_t key)>& is_busy) {
  for (const auto& [key, hit] : hits_) {
    if (is_busy(key)) {
      model::FailureOutcome& outcome = log_.failures_[hit.failure].outcome;
      ++outcome.stranded;
      if (!packets_lost_)
        outcome.stalled_bytes += hit.flow.bytes_per_s * (at.seconds() - outcome.at_s);
    }
    close(hit, model::no_number);
  }
  hits_.clear();
  while (!lost_before_.empty()) count_packets(lost_before_.begin()->first);
}

}  // namespace weft::engine
