// What one failed switch takes away.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "plan/explain/parts.hpp"

namespace weft::plan {

using namespace model;
namespace {

constexpr std::size_t samples_per_role = 4;

// Share of the capacity towards the failed switch's level that each node below it loses: 1 at the
// failed switch, elsewhere the mean over the links up, by rate.
class Failure {
 public:
  explicit Failure(const Survey& survey)
      : survey_(survey),
        lost_(survey.fabric.node_count(), 0.0),
        seen_(survey.fabric.node_count(), 0),
        group_rate_(survey.fabric.scopes().size(), 0.0),
        group_lost_(survey.fabric.scopes().size(), 0.0) {
    for (const NodeId nic : survey.fabric.nics()) group_rate_[survey.group[nic]] += rate_up(nic);
  }

  FabricFacts::Loss of(NodeId failed) {
    ++round_;
    const Fabric& fabric = survey_.fabric;
    FabricFacts::Loss out;
    out.role = fabric.role_name(failed);
    out.worst = fabric.name(failed);
    std::vector<ScopeId> groups;  // with a loss
    lost_[failed] = 1;
    seen_[failed] = round_;
    std::vector<NodeId> queue{failed};
    for (std::size_t at = 0; at < queue.size(); ++at) {
      const NodeId node = queue[at];
      if (node != failed) lost_[node] = mean_over_links_up(node);
      for (const LinkId link : fabric.out(node)) {
        const NodeId below = fabric.to(link);
        if (!survey_.is_up(reverse(link)) || survey_.rate[reverse(link)] == Rate{} ||
            seen_[below] == round_)
          continue;
        seen_[below] = round_;
        queue.push_back(below);
      }
      if (survey_.level[node] == 0 && survey_.group[node].valid() && rate_up(node) > 0) {
        double& lost = group_lost_[survey_.group[node]];
        if (lost == 0) groups.push_back(survey_.group[node]);
        lost += lost_[node] * rate_up(node);
        ++out.nics_affected;
        if (survey_.level[failed] == 1 && lost_[node] >= 1) ++out.nics_cut_off;
      }
    }
    add_groups(groups, out);
    return out;
  }

 private:
  double rate_up(NodeId node) const {
    double sum = 0;
    for (const LinkId link : survey_.fabric.out(node))
      if (is_out(link)) sum += static_cast<double>(survey_.rate[link].bps);
    return sum;
  }
  // Up, to a switch: a NIC's link into its host is at the same level and does not count.
  bool is_out(LinkId link) const {
    return survey_.is_up(link) && survey_.fabric.is_switch(survey_.fabric.to(link));
  }
  double mean_over_links_up(NodeId node) const {
    double sum = 0, weight = 0;
    for (const LinkId link : survey_.fabric.out(node)) {
      if (!is_out(link)) continue;
      const auto rate = static_cast<double>(survey_.rate[link].bps);
      const NodeId above = survey_.fabric.to(link);
      weight += rate;
      if (seen_[above] == round_) sum += rate * lost_[above];
    }
    return weight > 0 ? sum / weight : 0;
  }
  void add_groups(const std::vector<ScopeId>& groups, FabricFacts::Loss& out) {
    out.racks_affected = groups.size();
    out.rack_share_min = groups.empty() ? 0 : 1;
    for (const ScopeId group : groups) {
      const double share = group_lost_[group] / group_rate_[group];
      out.rack_share_min = std::min(out.rack_share_min, share);
      out.rack_share_max = std::max(out.rack_share_max, share);
      group_lost_[group] = 0;
    }
  }

  const Survey& survey_;
  Column<NodeId, double> lost_;
  Column<NodeId, std::uint32_t> seen_;  // in which round
  std::uint32_t round_ = 0;
  Column<ScopeId, double> group_rate_, group_lost_;
};

void note_samples(FabricFacts& facts) {
  std::vector<std::string> alike, differing;
  for (std::size_t i = 0; i < facts.losses.size(); ++i)
    if (facts.losses[i].examined < facts.losses[i].switches)
      (facts.switch_tiers[i].uniform ? alike : differing).push_back(facts.losses[i].role);
  if (!alike.empty())
    facts.notes.push_back(fmt::format(
        "failures: evenly spaced samples of {}, which have equal capacities within a role",
        fmt::join(alike, ", ")));
  if (!differing.empty())
    facts.notes.push_back(
        fmt::format("failures: evenly spaced samples of {}, whose capacities differ: links not "
                    "sampled may be worse",
                    fmt::join(differing, ", ")));
}

}  // namespace

void find_losses(const Survey& survey, FabricFacts& facts) {
  Failure failure(survey);
  for (const Fabric::Role& role : survey.fabric.roles()) {
    if (role.kind != NodeKind::fabric_switch) continue;
    const std::size_t count = role.nodes.size();
    const std::size_t examined = std::min(count, samples_per_role);
    FabricFacts::Loss worst;
    for (std::size_t i = 0; i < examined; ++i) {
      FabricFacts::Loss loss = failure.of(role.nodes[i * count / examined]);
      const auto badness = [](const FabricFacts::Loss& l) {
        return std::tuple(l.nics_cut_off, l.rack_share_max, l.nics_affected);
      };
      if (i == 0 || badness(worst) < badness(loss)) worst = std::move(loss);
    }
    worst.switches = count;
    worst.examined = examined;
    facts.losses.push_back(std::move(worst));
  }
  note_samples(facts);
}

}  // namespace weft::plan
