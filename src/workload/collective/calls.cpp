#include "workload/collective/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace weft::workload {

Calls::Calls(const Fabric& fabric, Library library, Algorithms wanted)
    : fabric_(fabric), library_(std::move(library)), wanted_(std::move(wanted)) {}

std::uint32_t Calls::number_of(Machine machine) {
  const auto found = std::ranges::find(machines_, machine);
  const auto number = static_cast<std::uint32_t>(found - machines_.begin());
  if (found == machines_.end()) machines_.push_back(std::move(machine));
  return number;
}

Calls::Call Calls::plan(std::span<const NodeId> ranks, Op op, double bytes) {
  const std::string& wanted = wanted_[static_cast<std::size_t>(op)];
  Call line_rate{wanted.empty() ? "auto" : wanted, {}};
  if (ranks.size() < 2 || library_.cost == Library::Cost::line_rate) return line_rate;
  auto machine = machine_of(library_, fabric_, ranks);
  if (!machine) {
    uncovered_.add(machine.error());
    return line_rate;
  }
  const Key key{number_of(*std::move(machine)), op, bytes};
  const auto [entry, is_new] = known_.try_emplace(key);
  if (is_new) entry->second = plan_new(machines_[key.machine], op, bytes);
  return entry->second;
}

Calls::Call Calls::plan_new(const Machine& machine, Op op, double bytes) {
  TunerRules rules;
  const std::string& wanted = wanted_[static_cast<std::size_t>(op)];
  if (!wanted.empty()) rules.algorithm = wanted;
  auto planned = plan_call(machine, op, bytes, rules);
  if (!planned && !wanted.empty()) {
    refused_[op].add(planned.error());
    planned = plan_call(machine, op, bytes, {});
  }
  if (!planned) {
    uncovered_.add(planned.error());
    return {"auto", {}};
  }
  const bool deepep = op == Op::all_to_all && machine.shape.hosts > 1 &&
                      library_.all_to_all == Library::AllToAll::deepep;
  return {std::move(planned->pick.algorithm), deepep ? deepep_cost(machine, bytes) : planned->cost};
}

Traffic Calls::traffic(std::vector<NodeId> ranks, Op op, double bytes,
                       const std::string& algorithm) {
  if (ranks.size() < 2) return {"none", {}};
  Request request{.op = op, .algorithm = algorithm, .ranks = std::move(ranks), .bytes = bytes};
  auto built = build_traffic(fabric_, request);
  if (!built && algorithm != "auto") {
    refused_[op].add(built.error());
    request.algorithm = "auto";
    built = build_traffic(fabric_, request);
  }
  WEFT_CHECK(built.has_value());
  return *std::move(built);
}

std::vector<std::string> Calls::notes() const {
  std::vector<std::string> out;
  for (const auto& [op, refused] : refused_)
    out.push_back(fmt::format("{} of {} kinds of groups uses its default algorithm: {}",
                              to_text(op), refused.groups, refused.why));
  if (uncovered_.groups > 0)
    out.push_back(fmt::format("some collectives run at line rate: {}", uncovered_.why));
  return out;
}

}  // namespace weft::workload
