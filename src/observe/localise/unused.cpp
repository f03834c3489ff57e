#include "observe/localise/unused.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"
#include "observe/localise/search.hpp"

namespace weft::observe::localise {
namespace {

double rows_over(const EvidenceIndex& ledger, LinkId link) {
  double rows = 0;
  for (std::size_t k = 0; k < ledger.classes.size(); ++k)
    rows += ledger.tally[ledger.at(k, Structure::of(link))].rows;
  return rows;
}

// By known paths.
std::vector<bool> crossed_links(const Fabric& fabric, const EvidenceSet& evidence) {
  std::vector<bool> out(fabric.link_count());
  for (const Evidence& row : evidence.rows)
    if (row.sent > 0)
      for (const LinkId link : evidence.path(row)) out[link.index()] = true;
  return out;
}

// Different flows over each link. Switches spread flows, not windows, classes or probes: whatever
// the same ends and source port send takes the same way, as long as nothing changes. Where it does
// change, the flow counts on each link once.
class FlowCounter {
 public:
  FlowCounter(const Fabric& fabric, const EvidenceSet& evidence)
      : evidence_(evidence), flows_(fabric.link_count()) {
    first_row_.reserve(evidence.rows.size() / 4);
    for (std::uint32_t i = 0; i < evidence.rows.size(); ++i) add(i);
    std::ranges::sort(more_);
    const auto twice = std::ranges::unique(more_);
    more_.erase(twice.begin(), twice.end());
    for (const auto& [flow, link] : more_) ++flows_[link.index()];
  }

  double over(LinkId link) const { return flows_[link.index()]; }

 private:
  void add(std::uint32_t index) {
    const Evidence& row = evidence_.rows[index];
    if (row.sent == 0 || row.path_size == 0) return;
    const std::uint64_t flow =
        mix64((std::uint64_t{row.src.value} << 32 | row.dst.value) ^ mix64(row.sport));
    const auto [first, is_new] = first_row_.try_emplace(flow, index);
    const auto known = evidence_.path(evidence_.rows[first->second]);
    const auto path = evidence_.path(row);
    for (std::size_t i = 0; i < path.size(); ++i) {
      // A path that crosses a link twice is one flow over it.
      const auto before = is_new ? path.first(i) : known;
      if (std::ranges::find(before, path[i]) != before.end()) continue;
      if (is_new)
        ++flows_[path[i].index()];
      else
        more_.emplace_back(flow, path[i]);
    }
  }

  const EvidenceSet& evidence_;
  std::vector<double> flows_;
  std::unordered_map<std::uint64_t, std::uint32_t> first_row_;
  // Links that are not on the path of the flow's first row: of another leg, or after a change.
  std::vector<std::pair<std::uint64_t, LinkId>> more_;
};

// Flows over the links of one tier, by their ends.
struct TierFlows {
  TierFlows(const Fabric& fabric, const FlowCounter& flows, const Fabric::Tier& tier) {
    for (const LinkId link : tier.links) {
      const NodeId from = fabric.from(link), to = fabric.to(link);
      sent[from] += flows.over(link);
      received[to] += flows.over(link);
      all += flows.over(link);
      ++parallel[{from, to}];
    }
  }

  std::map<NodeId, double> sent, received;
  std::map<std::pair<NodeId, NodeId>, double> parallel;
  double all = 0;
};

double log_choose(double n, double k) {
  return std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1);
}

Verdict disagreement(LinkId link, Finding finding, double probability, double rows) {
  Verdict out;
  out.entity = {EntityKind::link, link.value, 0, 0, Flow::both};
  out.finding = finding;
  out.probability = probability;
  out.probes = static_cast<std::uint64_t>(rows);
  return out;
}

void find_unused(const Structure& structure, const FlowCounter& flows, const Fabric::Tier& tier,
                 const model::LiveView& view, double links, std::vector<Verdict>& out) {
  const Fabric& fabric = structure.fabric();
  const Parameters parameters;
  const TierFlows ends(fabric, flows, tier);
  for (const LinkId link : tier.links) {
    if (view.health[link.index()] != model::Health::up || flows.over(link) > 0) continue;
    const NodeId from = fabric.from(link), to = fabric.to(link);
    const double sent = ends.sent.at(from);
    const double received = ends.received.at(to) / ends.parallel.at({from, to});
    const double score =
        std::log(parameters.first_fault / links) - log_chance_of_none(sent, received, ends.all);
    if (score < parameters.accept) continue;
    out.push_back(disagreement(link, Finding::unused, 1 / (1 + std::exp(-score)), 0));
  }
}

}  // namespace

double log_chance_of_none(double sent, double received, double all) {
  constexpr double least = -700;
  if (sent <= 0 || received <= 0) return 0;
  if (sent + received > all) return least;
  return std::max(least, log_choose(all - received, sent) - log_choose(all, sent));
}

std::vector<Verdict> find_disagreements(const Structure& structure, const EvidenceIndex& ledger,
                                        const EvidenceSet& evidence, const model::State* believed) {
  const Fabric& fabric = structure.fabric();
  const model::LiveView view(fabric, believed == nullptr ? model::State{} : *believed);
  const auto is_between_switches = [&](LinkId link) {
    return structure.kind(Structure::of(link)) == Kind::switch_link;
  };
  std::vector<Verdict> out;
  const std::vector<bool> crossed = crossed_links(fabric, evidence);
  double links = 0;
  bool any_unused = false;
  for (const LinkId link : fabric.links()) {
    if (!is_between_switches(link)) continue;
    ++links;
    const double rows = rows_over(ledger, link);
    if (!view.usable(link) && rows > 0)
      out.push_back(disagreement(link, Finding::unexpected, 0.99, rows));
    any_unused = any_unused || !crossed[link.index()];
  }
  if (!any_unused) return out;
  const FlowCounter flows(fabric, evidence);
  for (const Fabric::Tier& tier : fabric.tiers())
    if (!tier.links.empty() && is_between_switches(tier.links.front()))
      find_unused(structure, flows, tier, view, links, out);
  return out;
}

}  // namespace weft::observe::localise
