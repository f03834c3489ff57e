#include "observe/localise/unused.hpp"

#include <cmath>
#include <map>
#include <utility>

namespace weft::observe::localise {
namespace {

// Rows (flows) that should cross a link before their absence tells something.
constexpr double expected_min = 30;

double rows_over(const Ledger& ledger, LinkId link) {
  double rows = 0;
  for (std::size_t k = 0; k < ledger.classes.size(); ++k)
    rows += ledger.tally[ledger.at(k, Structure::of(link))].rows;
  return rows;
}

Verdict disagreement(LinkId link, Finding finding, double probability, double rows) {
  Verdict out;
  out.entity = {EntityKind::link, link.value, 0, 0, Flow::both};
  out.finding = finding;
  out.probability = probability;
  out.probes = static_cast<std::uint64_t>(rows);
  return out;
}

}  // namespace

// If a link took part in spreading as its neighbours do, it would carry the product of its sender's
// share and its receiver's share of all rows of the tier.
std::vector<Verdict> find_disagreements(const Structure& structure, const Ledger& ledger,
                                        const model::State* believed) {
  const Fabric& fabric = structure.fabric();
  const model::LiveView view(fabric, believed == nullptr ? model::State{} : *believed);
  std::vector<Verdict> out;
  for (const Fabric::Tier& tier : fabric.tiers()) {
    std::map<NodeId, double> sent, received;
    double all = 0;
    for (const LinkId link : tier.links) {
      if (structure.kind(Structure::of(link)) != Kind::switch_link) break;
      const double rows = rows_over(ledger, link);
      sent[fabric.from(link)] += rows;
      received[fabric.to(link)] += rows;
      all += rows;
      if (!view.usable(link) && rows > 0)
        out.push_back(disagreement(link, Finding::unexpected, 0.99, rows));
    }
    if (all == 0) continue;
    for (const LinkId link : tier.links) {
      if (view.health[link.index()] != model::Health::up || rows_over(ledger, link) > 0) continue;
      const double expected = sent[fabric.from(link)] * received[fabric.to(link)] / all;
      if (expected >= expected_min) out.push_back(disagreement(link, Finding::unused, 0.99, 0));
    }
  }
  return out;
}

}  // namespace weft::observe::localise
