#include "plan/flows/slowdown.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/id.hpp"
#include "base/percentile.hpp"
#include "plan/flows/flow_runs.hpp"

namespace weft::plan {
namespace {

using engine::packet::WireFormat;
using model::FlowSet;

constexpr std::uint32_t none = UINT32_MAX;

// A link, and the share of the packets that cross it.
struct Stage {
  model::LinkId link;
  double us_per_byte;  // that the link needs, whatever share of the flow crosses it
  double share;
};

struct PathOf {
  std::vector<Stage> stages;  // in order
  double latency_us = 0;
  double back_us = 0;              // of a control packet's latencies
  double back_us_per_byte = 0;     // and of its bytes
  double slowest_us_per_byte = 0;  // of the flow
};

// `hops`: of all QPs, each with its part of the flow. `stage_of`, by link: none before and after.
PathOf path_of(std::span<const route::Hop> hops, route::Router& router,
               Column<model::LinkId, std::uint32_t>& stage_of) {
  const model::Fabric& fabric = router.fabric();
  PathOf out;
  for (const route::Hop& hop : hops) {
    const model::LinkId link = router.members(hop.link).front();
    if (stage_of[link] == none) {
      stage_of[link] = static_cast<std::uint32_t>(out.stages.size());
      out.stages.push_back({link, 1e6 / router.capacity(hop.link), 0});
    }
    out.stages[stage_of[link]].share += hop.share;
    out.latency_us += hop.share * fabric.latency(link).us();
    out.back_us += hop.share * fabric.latency(model::reverse(link)).us();
    out.back_us_per_byte += hop.share * 1e6 / router.capacity(model::reverse(link));
  }
  for (const Stage& stage : out.stages) {
    out.slowest_us_per_byte = std::max(out.slowest_us_per_byte, stage.share * stage.us_per_byte);
    stage_of[stage.link] = none;
  }
  return out;
}

// When the last of `count` packets leaves the last stage: the longest way through the grid of
// packets and stages (a tandem of queues; e.g. Glynn & Whitt, 1991). All are of `full` bytes but
// the last. A link that only a share of them crosses costs the mean packet that share of its time;
// those that cross it are a whole number.
double tandem_us(const PathOf& path, double full, double last, double count) {
  // The first packet up to a stage, the full ones behind it on the slowest so far, the last one
  // from there.
  const auto between = [&](const Stage& s) {
    const double packets = std::ceil(count * s.share * (1 - 1e-12));
    return std::max(0.0, packets - 1 - s.share) * s.us_per_byte * full;
  };
  double first = 0, slowest = 0, rest = 0;
  for (const Stage& s : path.stages) rest += s.share * s.us_per_byte * last;
  if (count <= 1) return rest;
  double out = 0;
  for (const Stage& s : path.stages) {
    const double us_per_byte = s.share * s.us_per_byte;
    first += us_per_byte * full;
    slowest = std::max(slowest, between(s));
    out = std::max(out, first + slowest + rest);
    rest -= us_per_byte * last;
  }
  return out;
}

// Of all QPs, each with its part of the flow.
bool append_paths(const FlowSet::Flow& flow, std::span<const model::NodeId> via,
                  route::Router& router, std::vector<route::Hop>& hops) {
  const std::uint32_t parts = router.stream_count();
  hops.clear();
  for (std::uint32_t qp = 0; qp < parts; ++qp)
    if (!router.append_path({flow.src, flow.dst, qp, qp, via}, hops)) return false;
  for (route::Hop& hop : hops) hop.share /= parts;
  return true;
}

double packets_us(const PathOf& path, double bytes, const WireFormat& wire) {
  const auto mtu = static_cast<double>(wire.mtu.count),
             header = static_cast<double>(wire.header.count);
  const double count = std::ceil(bytes / mtu);
  const bool padded = wire.last_packet == engine::packet::LastPacket::full && count > 1;
  const double last = padded ? mtu : bytes - (count - 1) * mtu;
  return tandem_us(path, mtu + header, last + header, count) + path.latency_us + path.back_us +
         static_cast<double>(wire.control.count) * path.back_us_per_byte;
}

}  // namespace

std::vector<double> ideal_times_us(const FlowSet& set, route::Router& router,
                                   const WireFormat* wire) {
  std::vector<double> out(set.flows.size(), model::no_number);
  std::vector<route::Hop> hops;
  Column<model::LinkId, std::uint32_t> stage_of(router.fabric().link_count(), none);
  for (std::size_t i = 0; i < set.flows.size(); ++i) {
    const FlowSet::Flow& flow = set.flows[i];
    const auto bytes = static_cast<double>(flow.size.count);
    if (bytes == 0 || !append_paths(flow, set.via_of(flow), router, hops)) continue;
    const PathOf path = path_of(hops, router, stage_of);
    const double us = wire != nullptr ? packets_us(path, bytes, *wire)
                                      : bytes * path.slowest_us_per_byte + path.latency_us;
    if (std::isfinite(us)) out[i] = us;  // a dead link, either way, takes forever
  }
  return out;
}

namespace {

Slowdowns::Class class_of(std::vector<double>& slowdowns, double bytes_max) {
  std::ranges::sort(slowdowns);
  const std::span<const double> sorted(slowdowns);
  return {bytes_max, sorted.size(), percentile(sorted, 50), percentile(sorted, 99), sorted.back()};
}

}  // namespace

Slowdowns slowdowns(const std::vector<FlowSpan>& flows) {
  constexpr double first_class = 1e4;
  std::vector<std::vector<double>> classes;
  std::vector<double> all;
  for (const FlowSpan& flow : flows) {
    const double slowdown = flow.slowdown();
    if (std::isnan(slowdown)) continue;
    std::size_t at = 0;
    for (double most = first_class; most < flow.bytes; most *= 10) ++at;
    if (classes.size() <= at) classes.resize(at + 1);
    classes[at].push_back(slowdown);
    all.push_back(slowdown);
  }
  Slowdowns out;
  double most = first_class;
  for (std::vector<double>& one : classes) {
    if (!one.empty()) out.by_size.push_back(class_of(one, most));
    most *= 10;
  }
  if (!all.empty()) out.all = class_of(all, out.by_size.back().bytes_max);
  return out;
}

}  // namespace weft::plan
