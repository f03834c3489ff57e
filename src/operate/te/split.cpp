#include "operate/te/split.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace weft::operate::te {
namespace {

using route::Zone;

constexpr double worth_it = 0.01;
constexpr int rounds_max = 8;

// Links between racks and spines, by cell as zone_capacities() has them.
class Cells {
 public:
  Cells(const Zone& zone, const Fabric& fabric, const model::State& state)
      : zone_(zone), capacity_(route::zone_capacities(zone, fabric, state)) {}

  // Up from the source's rack and down to the destination's.
  std::array<std::size_t, 2> of(const Flow& flow, std::uint32_t column) const {
    return {2 * (std::size_t{zone_.rack_of[flow.src]} * zone_.columns + column),
            2 * (std::size_t{zone_.rack_of[flow.dst]} * zone_.columns + column) + 1};
  }
  bool crosses(const Flow& flow) const {
    const std::uint32_t from = zone_.rack_of[flow.src], to = zone_.rack_of[flow.dst];
    return from != Zone::none && to != Zone::none && from != to;
  }
  std::vector<double> loads(std::span<const Flow> flows, const Marks& marks) const {
    std::vector<double> out(capacity_.size(), 0);
    for (std::size_t f = 0; f < flows.size(); ++f)
      if (marks[f] != Zone::none)
        for (const std::size_t cell : of(flows[f], marks[f]))
          out[cell] += capacity_[cell] > 0 ? flows[f].weight / capacity_[cell] : 0;
    return out;
  }
  // However flows are divided: a rack's weight over its live capacity, each way.
  double floor(std::span<const Flow> flows) const {
    std::vector<double> weight(2 * std::size_t{zone_.racks}, 0), capacity(weight.size(), 0);
    for (const Flow& flow : flows) {
      if (!crosses(flow)) continue;
      weight[2 * std::size_t{zone_.rack_of[flow.src]}] += flow.weight;
      weight[2 * std::size_t{zone_.rack_of[flow.dst]} + 1] += flow.weight;
    }
    for (std::size_t cell = 0; cell < capacity_.size(); ++cell)
      capacity[cell / 2 / zone_.columns * 2 + cell % 2] += capacity_[cell];
    double out = 0;
    for (std::size_t i = 0; i < weight.size(); ++i)
      if (capacity[i] > 0) out = std::max(out, weight[i] / capacity[i]);
    return out;
  }

 private:
  const Zone& zone_;
  std::vector<double> capacity_;
};

}  // namespace

std::uint32_t split_where_it_helps(const Zone& zone, route::Router& hashing,
                                   const model::State& state, std::vector<Flow>& flows,
                                   Decision& decision, const Settings& settings) {
  const Cells cells(zone, hashing.fabric(), state);
  const double floor = cells.floor(flows);
  std::uint32_t divided = 0;
  for (int round = 0; round < rounds_max; ++round) {
    const double worst = decision.judgement.worst;
    if (!decision.refused.empty() || worst <= floor * (1 + worth_it)) break;
    const std::vector<double> loads = cells.loads(flows, decision.marks);
    std::vector<Flow> tried = flows;
    Marks installed = decision.marks;
    for (std::size_t f = 0; f < flows.size(); ++f) {
      const std::uint32_t column = decision.marks[f];
      if (flows[f].second == 0 || column == Zone::none) continue;
      const auto path = cells.of(flows[f], column);
      if (std::max(loads[path[0]], loads[path[1]]) < worst * (1 - worth_it)) continue;
      tried[f].weight /= 2;
      Flow half = tried[f];
      half.port = std::exchange(tried[f].second, 0);
      half.second = 0;
      tried.push_back(half);
      installed.push_back(Zone::none);
    }
    if (tried.size() == flows.size()) break;
    Decision better = decide(zone, hashing, state, tried, installed, settings);
    if (!better.refused.empty() || better.judgement.worst > worst * (1 - worth_it)) break;
    divided += static_cast<std::uint32_t>(tried.size() - flows.size());
    // What was hit before is what had no path; halves had none either.
    better.hit = decision.hit;
    better.moved += decision.moved;
    flows = std::move(tried);
    decision = std::move(better);
  }
  return divided;
}

}  // namespace weft::operate::te
