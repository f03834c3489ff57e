#include "operate/te/predict.hpp"

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.hpp"
#include "engine/jobs/failures.hpp"
#include "model/fabric/faults.hpp"

namespace weft::operate::te {
namespace {

using Snapshot = model::FaultTimeline::Snapshot;

constexpr Time failed_at{1'000 * ps_per_ms};  // of a run that is healthy before
constexpr Duration never_heard = 86'400_s * 30;

// QPs are told apart by their ports here.
std::shared_ptr<const route::RoutingConfig::Marks> marks_of(const route::Zone& zone,
                                                            const MarkedFlows& qps) {
  auto out = std::make_shared<route::RoutingConfig::Marks>();
  for (std::size_t f = 0; f < qps.flows.size(); ++f) {
    const Flow& flow = qps.flows[f];
    if (qps.marks[f] != route::Zone::none)
      (*out)[{flow.src, flow.dst, flow.port}] = zone.uplink(zone.rack_of[flow.src], qps.marks[f]);
  }
  return out;
}

// What is installed at a time, and the paths of it.
class Paths {
 public:
  static Result<Paths> create(const Failure& failure, const route::Zone& zone,
                              const MarkedFlows& before, const MarkedFlows& after,
                              const route::RoutingConfig& routing) {
    Paths out;
    route::RoutingConfig config = routing;
    for (const MarkedFlows& qps : {before, after, MarkedFlows{}}) {
      config.te_marks = marks_of(zone, qps);
      WEFT_TRY(route::Router router, route::Router::create(failure.fabric, config, failure.seed));
      out.routers_.push_back(std::move(router));
    }
    out.new_ = routing.te_dead ? Time{} + never_heard : failed_at + routing.te_sees;
    out.lapsed_ = routing.te_dead ? failed_at + routing.te_lease : Time{} + never_heard;
    return out;
  }

  void enter(Time at, const model::State& state) {
    now_ = at >= lapsed_ ? 2 : at >= new_ ? 1 : 0;
    for (route::Router& router : routers_) router.set_state(state);
  }
  // Empty where there is none. Valid until the next call.
  std::span<const route::Hop> of(const Flow& flow) {
    hops_.clear();
    static_cast<void>(
        routers_[now_].append_path({.src = flow.src, .dst = flow.dst, .qp = flow.port}, hops_));
    return hops_;
  }

 private:
  std::vector<route::Router> routers_;
  Time new_, lapsed_;
  std::size_t now_ = 0;
  std::vector<route::Hop> hops_;
};

route::RoutingConfig timed(const route::RoutingConfig& given) {
  route::RoutingConfig out = given;
  out.scheme = "te";
  out.qps = 1;
  out.te_split = out.weigh_qps = false;
  const auto heard = given.convergence.value_or(route::RoutingConfig::Convergence{});
  out.convergence = heard;
  if (out.te_sees <= Duration{}) out.te_sees = heard.detect + heard.compute + heard.install;
  return out;
}

std::vector<Snapshot> timeline(const Failure& failure, const route::RoutingConfig& routing) {
  const std::array<Snapshot, 2> changes{Snapshot{Time{}, failure.healthy},
                                        Snapshot{failed_at, failure.failed}};
  std::vector<Snapshot> out =
      model::heard_late(changes, {.seen = routing.te_dead ? routing.te_lease : routing.te_sees,
                                  .routed = routing.convergence->bgp,
                                  .noticed = routing.convergence->detect});
  return out;
}

}  // namespace

Result<model::FailureOutcome> predict(const Failure& failure) {
  const Fabric& fabric = failure.fabric;
  WEFT_TRY(const route::Zone zone, route::find_zone(fabric));
  const route::RoutingConfig routing = timed(failure.routing);
  const MarkedFlows before = by_qp(failure.flows, failure.before.marks, failure.before.second);
  const MarkedFlows after = by_qp(failure.flows, failure.after.marks, failure.after.second);
  WEFT_TRY(Paths paths, Paths::create(failure, zone, before, after, routing));
  const std::vector<Snapshot> changes = timeline(failure, routing);
  engine::FailureLog log(fabric, changes);
  engine::FailureWatch watch(log, Time{});
  const auto dead_link = [&](const Flow& flow) {
    const auto path = paths.of(flow);
    const auto dead =
        std::ranges::find_if(path, [&](const route::Hop& hop) { return watch.is_down(hop.link); });
    return dead == path.end() ? model::LinkId{} : dead->link;
  };
  const auto note_hits = [&] {
    for (std::size_t f = 0; f < before.flows.size(); ++f) {
      const Flow& flow = before.flows[f];
      const model::LinkId dead = dead_link(flow);
      if (!dead.valid()) continue;
      double latency_s = 0;
      for (const route::Hop& hop : paths.of(flow)) latency_s += fabric.latency(hop.link).seconds();
      const double rate = flow.weight * failure.bytes_per_s;
      watch.hit({.key = f,
                 .from = flow.src,
                 .to = flow.dst,
                 .qp = flow.port,
                 .bytes_per_s = rate,
                 .lost_bytes = rate * latency_s},
                dead);
    }
  };
  for (const Snapshot& change : changes) {
    watch.pass(change.at);
    if (watch.any_down()) note_hits();
    paths.enter(change.at, change.state);
    watch.settle(change.at, [&](std::uint64_t f) {
      return !paths.of(before.flows[f]).empty() && !dead_link(before.flows[f]).valid();
    });
  }
  watch.finish(changes.back().at, [](std::uint64_t) { return true; });
  std::vector<model::FailureOutcome> outcomes = log.take_outcomes();
  if (outcomes.empty()) return model::FailureOutcome{};  // nothing died that was alive
  model::FailureOutcome& out = outcomes.front();
  if (failure.bytes_per_s <= 0) out.stalled_bytes = out.lost_bytes = model::no_number;
  return std::move(out);
}

}  // namespace weft::operate::te
