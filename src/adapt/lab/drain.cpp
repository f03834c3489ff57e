#include "adapt/lab/drain.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <thread>

#include "adapt/lab/build.hpp"
#include "adapt/lab/drain_bgp.hpp"
#include "adapt/lab/drain_target.hpp"
#include "adapt/lab/forwarding.hpp"
#include "base/text.hpp"

namespace weft::adapt::lab {
namespace {

// Sessions shut down sooner than that after the routes moved cost packets in some runs.
constexpr std::chrono::milliseconds settle_time{1'200};

// One drain or undrain.
struct Job {
  DrainTarget target;
  Without without;            // what is drained when all is done
  Routes routes;              // that should be there then
  std::size_t dead_ends = 0;  // that there were before

  RouteGoal goal(std::vector<LabNodeId> switches, const DrainTarget* avoid) const {
    return {.exact = routes,
            .switches = std::move(switches),
            .avoid = avoid,
            .dead_ends_max = dead_ends,
            .must_know = {}};
  }
};

// Paths that no packet can take now are no paths to wait for.
Without with_down(Without without, const Forwarding& now) {
  without.cables.insert(without.cables.end(), now.down().begin(), now.down().end());
  return without;
}

std::string name_of_nic(const Lab& lab, Ipv4 address) {
  for (const LabCable& cable : lab.plan.cables)
    for (const CableEnd& end : cable.ends)
      if (end.address == address) return lab.fabric.name(end.device);
  return ipv4_text(address);
}

// What would be cut off, by name; nothing where all that is reachable stays so.
std::optional<std::string> cut_off(const Lab& lab, const Routes& before, const Routes& after,
                                   const Without& without) {
  for (std::size_t group = 0; group < after.groups().size(); ++group) {
    const NicGroup& nics = after.groups()[group];
    const bool alone = std::ranges::all_of(nics.attached, [&](LabNodeId node) {
      return std::ranges::find(without.nodes, node) != without.nodes.end();
    });
    if (alone) return name_of_nic(lab, nics.addresses.front());
    const std::size_t was = [&] {
      for (std::size_t g = 0; g < before.groups().size(); ++g)
        if (std::ranges::binary_search(before.groups()[g].addresses, nics.addresses.front()))
          return g;
      return before.groups().size();
    }();
    for (const NicGroup& from : after.groups())
      for (const LabNodeId node : from.attached)
        if (was < before.groups().size() && before.reaches(node, was) &&
            !after.reaches(node, group))
          return name_of_nic(lab, nics.addresses.front());
  }
  return std::nullopt;
}

// Nothing is lost by this, whatever comes of it: paths that have no substitute stay in use. A
// daemon that does not answer cannot ask anybody for anything.
Status move_traffic(const Lab& lab, const Job& job) {
  WEFT_TRY_STATUS(tell(lab, job.target, DrainStep::soft_on, Reach::who_answers));
  return await_routes(lab, job.goal(open_switches(lab, job.without), &job.target));
}

Status shut_down(const Lab& lab, const Job& job, Reach reach) {
  WEFT_TRY_STATUS(tell(lab, job.target, DrainStep::hard_on, reach));
  return await_routes(lab, job.goal(open_switches(lab, job.without), &job.target));
}

Status drain_by_bgp(const Lab& lab, const Job& job) {
  // NICs on two switches leave this one by themselves; the other has all of its routes.
  WEFT_TRY_STATUS(write_host_routes(lab.plan, job.without));
  if (answers(lab, job.target) == Answers::no) return shut_down(lab, job, Reach::neighbours);
  WEFT_TRY_STATUS(move_traffic(lab, job));
  if (has_sessions(lab, job.target) == Answers::yes) std::this_thread::sleep_for(settle_time);
  return shut_down(lab, job, Reach::who_answers);
}

Status undrain_by_bgp(const Lab& lab, const Job& job) {
  // Once more: daemons that were started anew know nothing of a drain.
  WEFT_TRY_STATUS(tell(lab, job.target, DrainStep::soft_on, Reach::all));
  WEFT_TRY_STATUS(tell(lab, job.target, DrainStep::hard_off, Reach::all));
  // A switch takes no traffic before it has its own routes. The ends of a cable lack the one leg
  // until the last step, so there is nothing to wait for but the session.
  if (job.target.node) {
    RouteGoal own = job.goal({*job.target.node}, nullptr);
    own.must_know = own.switches;
    WEFT_TRY_STATUS(await_routes(lab, own));
  } else {
    await_session(lab, job.target);
  }
  WEFT_TRY_STATUS(tell(lab, job.target, DrainStep::soft_off, Reach::all));
  WEFT_TRY_STATUS(await_routes(lab, job.goal(open_switches(lab, job.without), nullptr)));
  return write_host_routes(lab.plan, job.without);
}

enum class SwitchOrder : std::uint8_t { own_first, own_last };

// A switch takes traffic only while it has routes for it: the target's own switches learn of new
// ways first and forget old ones last.
Status by_static_routes(const Lab& lab, const Job& job, SwitchOrder order) {
  const std::vector<LabNodeId> open = open_switches(lab, job.without);
  const std::vector<LabNodeId> switches = own_switches(lab, job.target);
  std::array<std::vector<LabNodeId>, 2> turns;
  for (const LabNodeId node : open) {
    const bool own = std::ranges::find(switches, node) != switches.end();
    turns[own == (order == SwitchOrder::own_first) ? 0 : 1].push_back(node);
  }
  const bool drains = order == SwitchOrder::own_last;
  if (drains) WEFT_TRY_STATUS(write_host_routes(lab.plan, job.without));
  for (const std::vector<LabNodeId>& turn : turns)
    WEFT_TRY_STATUS(write_static_routes(lab.plan, job.routes, turn, RouteWrite::replace));
  WEFT_TRY_STATUS(await_routes(lab, job.goal(open, drains ? &job.target : nullptr)));
  return drains ? Status{} : write_host_routes(lab.plan, job.without);
}

Status need_running(const Lab& lab) {
  if (lab.phase == Phase::running) return {};
  return fail(Errc::infeasible, {}, "the lab never came up completely",
              "run weft lab down, then up");
}

}  // namespace

Result<DrainOutcome> drain(Lab& lab, std::string_view text) {
  WEFT_TRY_STATUS(need_running(lab));
  WEFT_TRY(DrainTarget target, find_drain_target(lab, text));
  WEFT_TRY(const Forwarding now, Forwarding::read(lab.plan));
  // What is drained is drained again: an earlier try may have been broken off.
  const bool was_so = std::ranges::find(lab.drained, target.name) != lab.drained.end();
  Lab next = lab;
  if (!was_so) next.drained.push_back(target.name);
  const Without without = without_of(next);
  const bool frr = lab.options.routing == Routing::frr;
  const Routes before = Routes::shortest(lab.plan, with_down(without_of(lab), now));
  const Routes after = Routes::shortest(lab.plan, with_down(without, now));
  if (const auto lost = cut_off(lab, before, after, without))
    return fail(Errc::infeasible, {},
                fmt::format("without {} there would be no path to {}", target.name, *lost),
                "undrain something else first, or choose a switch that hosts do not depend on");
  const Job job{.target = std::move(target),
                .without = without,
                .routes = frr ? after : Routes::shortest(lab.plan, without),
                .dead_ends = now.dead_ends()};
  // Written before anything is changed: after a crash, undrain takes back what was done.
  WEFT_TRY_STATUS(save_lab(next));
  const Status done =
      frr ? drain_by_bgp(lab, job) : by_static_routes(lab, job, SwitchOrder::own_last);
  if (!done && frr && !was_so) {
    for (const DrainStep step : {DrainStep::hard_off, DrainStep::soft_off})
      static_cast<void>(tell(lab, job.target, step, Reach::who_answers));
    WEFT_TRY_STATUS(save_lab(lab));
    WEFT_TRY_STATUS(write_host_routes(lab.plan, without_of(lab)));
    return std::unexpected(done.error());
  }
  lab.drained = next.drained;
  WEFT_TRY_STATUS(done);
  return was_so ? DrainOutcome::was_so : DrainOutcome::changed;
}

Result<DrainOutcome> undrain(Lab& lab, std::string_view text) {
  WEFT_TRY_STATUS(need_running(lab));
  WEFT_TRY(DrainTarget target, find_drain_target(lab, text));
  const auto it = std::ranges::find(lab.drained, target.name);
  if (it == lab.drained.end()) return DrainOutcome::was_so;
  Lab next = lab;
  std::erase(next.drained, target.name);
  WEFT_TRY(const Forwarding now, Forwarding::read(lab.plan));
  const Without without = without_of(next);
  const bool frr = lab.options.routing == Routing::frr;
  const Job job{.target = std::move(target),
                .without = without,
                .routes = Routes::shortest(lab.plan, frr ? with_down(without, now) : without),
                .dead_ends = now.dead_ends()};
  WEFT_TRY_STATUS(frr ? undrain_by_bgp(lab, job)
                      : by_static_routes(lab, job, SwitchOrder::own_first));
  lab.drained = next.drained;
  WEFT_TRY_STATUS(save_lab(lab));
  return DrainOutcome::changed;
}

}  // namespace weft::adapt::lab
