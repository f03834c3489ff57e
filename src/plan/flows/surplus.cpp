#include "plan/flows/surplus.hpp"

#include <algorithm>
#include <cmath>

namespace weft::plan {
namespace {

using engine::packet::WireFormat;
using model::FlowSet;

// Bytes on the wire per byte of payload.
double wire_share(Bytes size, const WireFormat& wire, std::uint32_t parts) {
  if (size.count == 0) return 1;
  const auto mtu = static_cast<double>(wire.mtu.count);
  const double payload = static_cast<double>(size.count) / parts;
  const double packets = std::ceil(payload / mtu);
  const bool padded = wire.last_packet == engine::packet::LastPacket::full && packets > 1;
  const double sent =
      (padded ? packets * mtu : payload) + packets * static_cast<double>(wire.header.count);
  return sent / payload;
}

// Of one path, in microseconds; of the mean path where a flow is sprayed.
struct PathTimes {
  double there = 0;    // latency
  double surplus = 0;  // store and forward of the last packet, and the way of its ACK
};

PathTimes times_of(const model::Fabric& fabric, model::NodeId src, std::span<const route::Hop> path,
                   const WireFormat& wire) {
  const auto packet = static_cast<double>(wire.mtu.count + wire.header.count);
  const auto ack = static_cast<double>(wire.control.count);
  PathTimes out;
  for (const route::Hop& hop : path) {
    const double us_per_byte = 1e6 / fabric.rate(hop.link).bytes_per_s();
    const double stored = fabric.from(hop.link) == src ? ack : packet + ack;
    out.there += hop.share * fabric.latency(hop.link).us();
    out.surplus +=
        hop.share * (stored * us_per_byte + fabric.latency(model::reverse(hop.link)).us());
  }
  return out;
}

}  // namespace

Surplus surplus_of(const FlowSet& set, const FlowsResult& fluid, const FlowsResult& packet,
                   route::Router& router, const WireFormat& wire) {
  const std::uint32_t parts = router.stream_count();
  Surplus out;
  std::vector<route::Hop> path;
  double transfer = 0, payload = 0;
  for (std::size_t i = 0; i < set.flows.size(); ++i) {
    const FlowSet::Flow& flow = set.flows[i];
    payload += static_cast<double>(flow.size.count);
    if (!fluid.flows[i].finished()) continue;
    path.clear();
    router.append_path({flow.src, flow.dst, 0, 0, set.via_of(flow)}, path);
    const PathTimes times = times_of(router.fabric(), flow.src, path, wire);
    const double span = fluid.flows[i].end_us - fluid.flows[i].start_us - times.there;
    transfer += span;
    out.headers += span * (wire_share(flow.size, wire, parts) - 1);
    out.round_trip += times.surplus;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(fluid.fct.finished, 1));
  const double again =
      static_cast<double>(packet.packet->retransmissions) * static_cast<double>(wire.mtu.count);
  out.headers /= count;
  out.round_trip /= count;
  out.sent_again = payload > 0 ? transfer / count * again / payload : 0;
  out.rest = packet.fct.mean - fluid.fct.mean - out.headers - out.round_trip - out.sent_again;
  return out;
}

}  // namespace weft::plan
