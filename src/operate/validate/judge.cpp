#include "operate/validate/judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/id.hpp"

namespace weft::operate::validate {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

class Judge {
 public:
  Judge(const Fabric& fabric, const Rounds& rounds, const Measured& measured, double least)
      : fabric_(fabric), rounds_(rounds) {
    std::vector<double> all;
    for (std::uint32_t f = 0; f < rounds.flows.size(); ++f) {
      const auto it = measured.find(f);
      if (it == measured.end()) {
        ++out_.missing;
        continue;
      }
      const double planned = planned_gbps(fabric, rounds.path(rounds.flows[f]));
      // A flow without any traffic is as slow as can be told.
      const bool is_low = it->second < least * planned;
      out_.low += is_low ? 1 : 0;
      tests_.push_back({f, std::log(std::max(it->second / planned, 1e-6)), is_low});
      all.push_back(tests_.back().low);
    }
    out_.flows = tests_.size();
    const double middle = median(all);
    out_.share = std::exp(middle);
    out_.below_plan = out_.share < least;
    reference_ = out_.below_plan ? std::log(least) : middle;
    for (Test& test : tests_) test.low -= reference_;
    for (double& each : all) each = std::abs(each - middle);
    constexpr double to_deviation = 1.4826;  // of a normal distribution, from the median
    out_.noise = std::max(to_deviation * median(std::move(all)), 1e-3);
  }

  Verdicts run() {
    find_links();
    find_hosts();
    find_odd();
    return std::move(out_);
  }

 private:
  struct Test {
    std::uint32_t flow;
    double low;   // logarithm of its rate by the reference
    bool is_low;  // below the least share of the planned rate
    bool is_explained = false;
  };

  // `slow` of the median; where that is below the plan, of the least share, which is slow already.
  double slow_from(double slow) const { return out_.below_plan ? 0 : std::log(slow); }

  // As a verdict tells it: of what others reach, or of the plan.
  double share_of(double low) const { return std::exp(out_.below_plan ? low + reference_ : low); }

  // Links over which all flows are slow, two at least; flows of `hosts` say nothing.
  std::vector<Verdicts::SlowLink> slow_links(const std::set<NodeId>& hosts) const {
    std::vector<Verdicts::SlowLink> found;
    for (const auto& [link, tests] : over_) {
      constexpr double slow = 0.85;
      std::vector<double> lows;
      for (const std::uint32_t t : tests) {
        const Flow& flow = rounds_.flows[tests_[t].flow];
        if (!hosts.contains(fabric_.host_of(flow.src)) &&
            !hosts.contains(fabric_.host_of(flow.dst)))
          lows.push_back(tests_[t].low);
      }
      if (lows.size() < 2 || std::ranges::max(lows) >= slow_from(slow) + out_.noise) continue;
      const auto count = static_cast<std::uint32_t>(lows.size());
      found.push_back({link, share_of(median(std::move(lows))), count});
    }
    return found;
  }

  void find_links() {
    for (std::uint32_t t = 0; t < tests_.size(); ++t)
      for (const LinkId link : rounds_.path(rounds_.flows[tests_[t].flow]))
        over_[link].push_back(t);
    std::set<LinkId> unjudged;
    for (const Flow& flow : rounds_.flows)
      for (const LinkId link : rounds_.path(flow))
        if (const auto found = over_.find(link); found == over_.end() || found->second.size() < 2)
          unjudged.insert(link);
    out_.unjudged.assign(unjudged.begin(), unjudged.end());
    // A host that is slow as a whole makes the cables of its NICs slow.
    std::map<NodeId, std::set<NodeId>> slow_nics;
    for (const Verdicts::SlowLink& found : slow_links({}))
      for (const NodeId end : {fabric_.from(found.link), fabric_.to(found.link)})
        if (fabric_.kind(end) == model::NodeKind::nic) slow_nics[fabric_.host_of(end)].insert(end);
    std::set<NodeId> hosts;
    for (const auto& [host, nics] : slow_nics)
      if (nics.size() >= 2 && 4 * nics.size() >= 3 * fabric_.nics_of(host).size())
        hosts.insert(host);
    out_.links = slow_links(hosts);
    for (const Verdicts::SlowLink& found : out_.links)
      for (const std::uint32_t t : over_[found.link]) tests_[t].is_explained = true;
  }

  using Lows = std::map<NodeId, std::vector<double>>;
  // By host: of its flows that no slow link explains, to hosts outside of `without`.
  Lows lows_of(const std::set<NodeId>& without) const {
    Lows out;
    for (const Test& test : tests_) {
      if (test.is_explained) continue;
      const Flow& flow = rounds_.flows[test.flow];
      const NodeId src = fabric_.host_of(flow.src), dst = fabric_.host_of(flow.dst);
      if (!without.contains(dst)) out[src].push_back(test.low);
      if (!without.contains(src)) out[dst].push_back(test.low);
    }
    return out;
  }

  bool is_slow(const std::vector<double>& lows) const {
    constexpr double slow = 0.975, errors = 5, error_of_median = 1.25;
    const double middle = median(lows);
    const double error = error_of_median * out_.noise / std::sqrt(static_cast<double>(lows.size()));
    return middle < slow_from(slow) && middle < -errors * error;
  }

  void find_hosts() {
    constexpr std::size_t flows_least = 6;
    const Lows all = lows_of({});
    std::set<NodeId> slow;
    for (const auto& [host, lows] : all)
      if (lows.size() >= flows_least && is_slow(lows)) slow.insert(host);
    Lows others = lows_of(slow);
    for (const NodeId host : slow) {
      // Well with others: it only had a slow partner, as in racks of few hosts.
      if (others[host].size() >= flows_least && !is_slow(others[host])) continue;
      const std::vector<double>& lows = all.at(host);
      out_.hosts.push_back({host, share_of(median(lows)), static_cast<std::uint32_t>(lows.size())});
    }
  }

  void find_odd() {
    std::set<NodeId> slow;
    for (const Verdicts::SlowHost& host : out_.hosts) slow.insert(host.host);
    for (const Test& test : tests_) {
      const Flow& flow = rounds_.flows[test.flow];
      if (test.is_low && !test.is_explained && !slow.contains(fabric_.host_of(flow.src)) &&
          !slow.contains(fabric_.host_of(flow.dst)))
        out_.odd.push_back(test.flow);
    }
  }

  const Fabric& fabric_;
  const Rounds& rounds_;
  std::vector<Test> tests_;
  std::map<LinkId, std::vector<std::uint32_t>> over_;  // tests by link
  double reference_ = 0;                               // logarithm of a share of the planned rate
  Verdicts out_;
};

}  // namespace

Status check_results(const Fabric& fabric, const Rounds& rounds, const Measured& measured,
                     const std::string& file) {
  if (measured.empty())
    return fail(Errc::infeasible, {file, 0, 0}, "no flow has a result",
                "run the tests of the plan; results are a CSV of flow,gbps or files FLOW.txt");
  if (const auto last = measured.rbegin()->first; last >= rounds.flows.size())
    return fail(Errc::unknown, {file, 0, 0},
                fmt::format("flow {} is not in the plan, which has {}", last, rounds.flows.size()),
                "give the plan that these results belong to");
  constexpr double most = 1.05;  // above the line rate: what clocks and rounding may do
  for (const auto& [f, gbps] : measured)
    if (const double planned = planned_gbps(fabric, rounds.path(rounds.flows[f]));
        gbps > most * planned)
      return fail(Errc::value, {file, 0, 0},
                  fmt::format("flow {} has {:g} Gbps, and its path {:g}", f, gbps, planned),
                  "rates are in Gbps; or the fabric is not the one that was tested");
  return {};
}

Verdicts judge(const Fabric& fabric, const Rounds& rounds, const Measured& measured, double least) {
  return Judge(fabric, rounds, measured, least).run();
}

}  // namespace weft::operate::validate
