#include "transport/nscc.hpp"

namespace weft::transport {

// Gains scale with the network's product of bandwidth and round trip, of which the specification's
// are for 100 Gbps and 12 us.
NsccParameters nscc_parameters(const NsccNetwork& network, Duration base_rtt) {
  const Rate reference_line{100'000'000'000};
  const Duration reference_rtt{12'000'000};
  const auto bdp = [](Rate line, Duration rtt) { return line.bytes_per_s() * rtt.seconds(); };
  const Ps network_rtt = ps_of(network.round_trip);
  Ps target = ps_of(network.target_delay);
  if (target == 0) target = network.trims ? network_rtt * 3 / 4 : network_rtt;
  target = std::max<Ps>(target, 1);
  const double packet = static_cast<double>(network.packet.count);
  const double payload = static_cast<double>(network.payload.count);
  const double size = bdp(network.line, network.round_trip) / bdp(reference_line, reference_rtt);
  const double patience = static_cast<double>(target) / static_cast<double>(ps_of(reference_rtt));
  const double window_max = std::max(packet, 1.5 * bdp(network.line, base_rtt));
  return {.base_rtt = ps_of(base_rtt),
          .network_rtt = network_rtt,
          .target_delay = target,
          .packet = packet,
          .window_first = std::max(window_max, 1.5 * bdp(network.line, network.round_trip)),
          .window_max = window_max,
          .proportional = 4 * payload * size * patience / static_cast<double>(target),
          .fair = 5 * payload * size,
          .steady = 0.15 * payload * size,
          .fast = 0.25 * size};
}

}  // namespace weft::transport
