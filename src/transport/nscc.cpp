#include "transport/nscc.hpp"

namespace weft::transport {

NsccParameters nscc_parameters(Rate line, Duration base_rtt, Duration target_delay, Bytes mtu) {
  const Ps target = target_delay.ps > 0 ? ps_of(target_delay) : ps_of(base_rtt) / 2;
  const double packet = static_cast<double>(mtu.count);
  const double bdp = std::max(packet, line.bytes_per_s() * base_rtt.seconds());
  return {.base_rtt = ps_of(base_rtt),
          .target_delay = std::max<Ps>(target, 1),
          .bdp = bdp,
          .mtu = packet,
          .window_max = bdp + line.bytes_per_s() * static_cast<double>(target) * 1e-12 + packet,
          .fair_step = packet / 2};
}

}  // namespace weft::transport
