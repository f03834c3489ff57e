#include "adapt/lab/drain_target.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace weft::adapt::lab {

Result<DrainTarget> find_drain_target(const Lab& lab, std::string_view text) {
  const Token token{text, {}};
  if (text.contains("--")) {
    WEFT_TRY(const LabCableId cable, lab.plan.find_cable(lab.fabric, token));
    const LabCable& row = lab.plan.cables[cable];
    if (row.to_host)
      return fail(Errc::infeasible, {},
                  fmt::format("{} is the cable of a NIC, which has no other path", text),
                  "drain cables between switches, or a switch");
    return DrainTarget{.name = lab.fabric.name(row.cable), .node = {}, .cable = cable};
  }
  WEFT_TRY(const LabNodeId node, lab.plan.find_node(lab.fabric, token));
  if (!lab.plan.nodes[node].is_switch())
    return fail(Errc::infeasible, {}, fmt::format("{} is not a switch", text),
                "drain a switch or a cable \"a--b\"");
  return DrainTarget{.name = lab.plan.nodes[node].name, .node = node, .cable = {}};
}

std::vector<EndId> guarding_ends(const LabPlan& plan, const DrainTarget& target) {
  if (target.cable) return {{*target.cable, 0}, {*target.cable, 1}};
  std::vector<EndId> out;
  if (target.node)
    for (const EndId end : plan.nodes[*target.node].ends)
      if (!plan.cables[end.cable].to_host) out.push_back(end.peer());
  return out;
}

bool crosses(const Forwarding& forwarding, const DrainTarget& target) {
  return (target.cable && forwarding.crosses(*target.cable)) ||
         (target.node && forwarding.crosses(*target.node));
}

}  // namespace weft::adapt::lab
