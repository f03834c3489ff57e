#include "operate/te/te_loop.hpp"

#include <map>
#include <tuple>
#include <utility>

namespace weft::operate::te {

using port::RouteMark;
using route::Zone;

Result<TeLoop> TeLoop::create(const Fabric& fabric, port::RouteSink& sink, std::uint64_t seed,
                              const LoopOptions& options) {
  WEFT_TRY(Zone zone, route::find_zone(fabric));
  WEFT_TRY(route::Router hashing, route::Router::create(fabric, {}, seed));
  return TeLoop(sink, std::move(zone), std::move(hashing), options);
}

RouteMark TeLoop::mark_of(std::size_t flow, std::uint16_t port, std::uint32_t column) const {
  const Flow& f = flows_[flow];
  return {.src = f.src,
          .dst = f.dst,
          .port = port,
          .uplink =
              column == Zone::none ? model::LinkId{} : zone_.uplink(zone_.rack_of[f.src], column)};
}

Result<Step> TeLoop::start(std::vector<Flow> flows, Time now) {
  flows_ = std::move(flows);
  installed_.assign(flows_.size(), Zone::none);
  second_.assign(flows_.size(), Zone::none);
  std::map<std::tuple<NodeId, NodeId, std::uint16_t>, std::uint32_t*> place;
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    const Flow& flow = flows_[f];
    place[{flow.src, flow.dst, flow.port}] = &installed_[f];
    if (flow.second != 0) place[{flow.src, flow.dst, flow.second}] = &second_[f];
  }
  WEFT_TRY(const std::vector<RouteMark> there, sink_->installed());
  std::vector<RouteMark> strange;
  for (const RouteMark& mark : there) {
    const auto found = place.find({mark.src, mark.dst, mark.port});
    if (found == place.end()) {
      strange.push_back({mark.src, mark.dst, mark.port, {}});
      continue;
    }
    *found->second = zone_.column_of(mark.src, mark.uplink);
    if (*found->second == Zone::none) strange.push_back({mark.src, mark.dst, mark.port, {}});
  }
  if (!strange.empty()) WEFT_TRY_STATUS(sink_->apply(strange));
  return install(now);
}

Result<Step> TeLoop::step(std::span<const LinkNews> news, Time now) {
  note(news, now);
  return install(now);
}

Result<Step> TeLoop::install(Time now) {
  Step out;
  out.decision = decide(zone_, hashing_, history_.state_at(now, options_.base), flows_, installed_,
                        options_.settings, second_);
  std::vector<RouteMark> changes;
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    if (out.decision.marks[f] != installed_[f])
      changes.push_back(mark_of(f, flows_[f].port, out.decision.marks[f]));
    if (out.decision.second[f] != second_[f])
      changes.push_back(mark_of(f, flows_[f].second, out.decision.second[f]));
  }
  out.changes = static_cast<std::uint32_t>(changes.size());
  if (changes.empty()) return out;
  WEFT_TRY_STATUS(sink_->apply(changes));
  installed_ = out.decision.marks;
  second_ = out.decision.second;
  return out;
}

}  // namespace weft::operate::te
