#include "adapt/lab/drain_bgp.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <utility>

#include "adapt/lab/build.hpp"
#include "adapt/lab/parallel.hpp"
#include "adapt/lab/sessions.hpp"

namespace weft::adapt::lab {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

constexpr Milliseconds route_patience{5'000};
constexpr Milliseconds route_patience_each{100};  // a switch
constexpr Milliseconds exact_patience{1'000};
constexpr Milliseconds route_poll{10};
constexpr Milliseconds connect_patience{100};
constexpr Milliseconds answer_patience{1'500};
constexpr Milliseconds session_patience{3'000};
constexpr unsigned tell_threads = 8;

struct BgpOrder {
  LabNodeId node;
  std::vector<std::string> lines;
};

// One for each switch that has to hear of it.
std::vector<BgpOrder> orders(const Lab& lab, const DrainTarget& target, DrainStep step,
                             Reach reach) {
  std::vector<BgpOrder> out;
  const bool soft = step == DrainStep::soft_on || step == DrainStep::soft_off;
  if (target.node && reach != Reach::neighbours)
    out.push_back({*target.node, drain_switch_commands(lab.plan, *target.node, step)});
  if (target.node && soft) return out;
  std::map<LabNodeId, std::vector<EndId>> by_switch;
  for (const EndId end : guarding_ends(lab.plan, target))
    by_switch[lab.plan.end(end).node].push_back(end);
  for (const auto& [node, ends] : by_switch)
    out.push_back({node, drain_cable_commands(lab.plan, node, ends, step)});
  return out;
}

Status carry_out(const Lab& lab, const BgpOrder& order) {
  WEFT_TRY(Vty vty, Vty::connect(vty_path(lab.node_directory(order.node), "bgpd"), connect_patience,
                                 answer_patience));
  WEFT_TRY_STATUS(vty.run(order.lines));
  return {};
}

// Nothing where all is as it should be, else why not.
Result<std::string> shortfall(const Lab& lab, const RouteGoal& goal) {
  WEFT_TRY(const Forwarding now, Forwarding::read(lab.plan));
  if (goal.avoid != nullptr && crosses(now, *goal.avoid))
    return fmt::format("traffic still passes through {}", goal.avoid->name);
  std::size_t unknown_everywhere = SIZE_MAX;
  for (const LabNodeId node : lab.plan.switches())
    unknown_everywhere = std::min(unknown_everywhere, now.unknown_at(node));
  for (const LabNodeId node : goal.must_know)
    if (now.unknown_at(node) > unknown_everywhere)
      return fmt::format("{} lacks {} routes", lab.plan.nodes[node].name, now.unknown_at(node));
  if (now.dead_ends() > goal.dead_ends_max)
    return fmt::format("{} packet paths end nowhere; before it was {}", now.dead_ends(),
                       goal.dead_ends_max);
  return std::string();
}

}  // namespace

Status await_routes(const Lab& lab, const RouteGoal& goal) {
  const Routes routes = goal.exact.met_by_traffic(lab.plan);
  const auto start = Clock::now();
  const auto patience = route_patience + lab.plan.switch_count * route_patience_each;
  std::vector<LabNodeId> left = goal.switches;
  for (;;) {
    WEFT_TRY(const std::size_t missing, count_missing_routes(lab.plan, routes, left));
    const auto waited = Clock::now() - start;
    if (missing == 0 || waited > exact_patience) {
      WEFT_TRY(const std::string why, shortfall(lab, goal));
      if (why.empty()) return {};
      if (waited > patience)
        return fail(Errc::io, {},
                    fmt::format("{} after {} s", why,
                                std::chrono::duration_cast<std::chrono::seconds>(waited).count()),
                    "check for active faults with weft lab status");
    }
    std::this_thread::sleep_for(route_poll);
  }
}

std::vector<LabNodeId> open_switches(const Lab& lab, const Without& without) {
  std::vector<LabNodeId> out;
  for (const LabNodeId node : lab.plan.switches())
    if (std::ranges::find(without.nodes, node) == without.nodes.end()) out.push_back(node);
  return out;
}

std::vector<LabNodeId> own_switches(const Lab& lab, const DrainTarget& target) {
  if (target.node) return {*target.node};
  const LabCable& cable = lab.plan.cables[target.cable.value()];
  return {cable.ends[0].node, cable.ends[1].node};
}

Answers answers(const Lab& lab, const DrainTarget& target) {
  for (const LabNodeId node : own_switches(lab, target))
    if (Vty::connect(vty_path(lab.node_directory(node), "bgpd"), connect_patience, answer_patience))
      return Answers::yes;
  return Answers::no;
}

Answers has_sessions(const Lab& lab, const DrainTarget& target) {
  std::map<LabNodeId, std::map<Ipv4, Session>> known;
  for (const EndId end : guarding_ends(lab.plan, target)) {
    const LabNodeId node = lab.plan.end(end).node;
    if (!known.contains(node))
      known.emplace(node,
                    read_sessions(lab, node, answer_patience).value_or(std::map<Ipv4, Session>{}));
    const auto it = known[node].find(lab.plan.end(end.peer()).address);
    if (it != known[node].end() && it->second == Session::established) return Answers::yes;
  }
  return Answers::no;
}

Status tell(const Lab& lab, const DrainTarget& target, DrainStep step, Reach reach) {
  const std::vector<BgpOrder> all = orders(lab, target, step, reach);
  return for_each_parallel(all.size(), tell_threads, [&](std::size_t i) -> Status {
    Status done = carry_out(lab, all[i]);
    if (!done && done.error().code == Errc::io && reach != Reach::all) return {};
    if (!done) done.error().what = lab.plan.nodes[all[i].node].name + ": " + done.error().what;
    return done;
  });
}

void await_session(const Lab& lab, const DrainTarget& target) {
  const auto deadline = Clock::now() + session_patience;
  while (has_sessions(lab, target) == Answers::no && Clock::now() < deadline)
    std::this_thread::sleep_for(2 * route_poll);
}

}  // namespace weft::adapt::lab
