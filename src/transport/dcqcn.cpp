#include "transport/dcqcn.hpp"

namespace weft::transport {
namespace {

constexpr Ps us = 1'000'000;
constexpr Ps timer_min = 1'000;                       // 1 ns
constexpr Ps timer_max = 1'000'000'000'000'000;       // 1,000 s
constexpr std::uint64_t byte_counter_min = 1'000;     // bounds the steps that one packet can cause
constexpr std::uint32_t stages_max = UINT16_MAX / 2;  // stages are counted in 16 bits
constexpr double bytes_per_s_of_mbps = 1e6 / 8;

// Increase steps of 5 and 50 Mbps at 25 Gbps, in proportion to the line, and a floor of 1 Gbps
// (scripts of HPCC's public simulator).
DcqcnParameters scaled_steps(Rate line) {
  const double scale = static_cast<double>(line.bps) / 25e9;
  return {.additive = 5 * scale * bytes_per_s_of_mbps,
          .hyper = 50 * scale * bytes_per_s_of_mbps,
          .minimum = std::min(1'000 * bytes_per_s_of_mbps, line.bytes_per_s()),
          .line = line.bytes_per_s()};
}

bool is_timer(Ps timer) { return timer >= timer_min && timer <= timer_max; }

Status refuse(const char* what, const char* hint) { return fail(Errc::value, {}, what, hint); }

}  // namespace

// g, F, the byte counter of 10 MB, a CNP each 50 us: the paper. Timers of 50, 50 and 55 us: how
// HPCC's simulator sets up its variant "paper".
DcqcnParameters dcqcn_paper(Rate line) {
  DcqcnParameters out = scaled_steps(line);
  out.alpha_timer = 50 * us;
  out.decrease_timer = 50 * us;
  out.increase_timer = 55 * us;
  out.byte_counter = 10'000'000;
  out.stages = 5;
  out.retarget = DcqcnParameters::Retarget::always;
  out.cnp_interval = 50 * us;
  return out;
}

// All from the scripts of HPCC's simulator: timers of 1, 4 and 300 us, no byte counter, one step of
// fast recovery, targets kept over repeated cuts. Its receivers return every mark in an ACK, hence
// no interval between CNPs.
DcqcnParameters dcqcn_reference(Rate line) {
  DcqcnParameters out = scaled_steps(line);
  out.alpha_timer = 1 * us;
  out.decrease_timer = 4 * us;
  out.increase_timer = 300 * us;
  out.stages = 1;
  return out;
}

Status check(const DcqcnParameters& p) {
  if (!(p.gain > 0 && p.gain <= 1))
    return refuse("the DCQCN gain must be above 0 and at most 1", "1/256 is typical");
  if (!is_timer(p.alpha_timer) || !is_timer(p.decrease_timer) || !is_timer(p.increase_timer))
    return refuse("a DCQCN timer is shorter than 1 ns or longer than 1,000 s",
                  "1 to 300 us is typical");
  if (p.cnp_interval > timer_max)
    return refuse("the DCQCN CNP interval is longer than 1,000 s", "0 to 50 us is typical");
  if (p.byte_counter != 0 && p.byte_counter < byte_counter_min)
    return refuse("the DCQCN byte counter is below 1 kB", "10 MB is typical; 0 disables it");
  if (p.stages > stages_max) return refuse("too many fast recovery stages", "5 is typical");
  if (!(p.minimum > 0 && p.minimum <= p.line))
    return refuse("the DCQCN minimum rate must be above 0 and at most the link rate", "reduce it");
  if (!(p.additive > 0 && p.hyper > 0))
    return refuse("the DCQCN increase steps must be above 0", "otherwise no queue pair recovers");
  return {};
}

}  // namespace weft::transport
