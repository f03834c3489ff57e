#include "observe/telemetry/metric_rules.hpp"

namespace weft::observe::telemetry {

namespace {

// Where no source is named, the number is a judgement: to be changed where it does not fit.
constexpr std::string_view metric_rules_yaml =
    R"yaml(# Metric rules. A file given by --rules is merged over these, key by key.
# A threshold is [start, end].

repeat: 60 s            # ongoing conditions are repeated at this interval; paired ones are not
spacing: 5 s            # net-snmp caches counters for some 3 s: closer polls show no change
gap: 15 min             # after this a 32-bit counter may have wrapped, a device rebooted twice
clock: 2 min            # a timestamp further than this from its receipt is replaced by it
baseline: 1 h           # time constant of the slow mean from which "drop" is measured
settle: 10 min          # before this the mean has too few values

rules:
  # Ports. One poll is enough: state is not noise. A port set down by an admin is not a fault.
  port_down: {metric: oper_up, kind: interface_down, below: 0.5}
  # Two changes between polls that both see it up: it went down and came back.
  port_flap: {metric: carrier_changes, kind: link_down, rate: 0, least: 2}
  # IEEE 802.3 requires frame loss by bit errors far below 1e-10; at 1e-8 CorrOpt (Zhuo et al.,
  # SIGCOMM 2017) considers a link corrupting. Three bad frames: one or two prove nothing.
  port_errors: {metric: in_errors, kind: crc_errors, share: [1e-7, 1e-8], rate: [1, 0.2], least: 3}
  discards_in: {metric: in_discards, kind: discards, share: [1e-4, 1e-5], rate: [100, 20],
     least: 10}
  # Outgoing packets are not counted here: per second.
  discards_out: {metric: out_discards, kind: discards, rate: [100, 20], least: 10}
  # The longest pause is 65,535 quanta of 512 bit times, 84 us at 400 Gbps: 1,000 per second
  # stop a port for up to 8 % of the time.
  pauses_in: {metric: pfc_pauses_in, kind: pfc_pauses, rate: [1000, 200]}
  pauses_out: {metric: pfc_pauses_out, kind: pfc_pauses, rate: [1000, 200]}
  # DCQCN relies on marks; 1 % of 400 Gbps in packets of 4 KiB is 120,000 per second.
  marks: {metric: ecn_marked, kind: ecn_marks, rate: [100000, 20000], samples: 2}
  # 4 MB take 80 us at 400 Gbps.
  queues: {metric: queue_bytes, kind: queue_depth, above: [4e6, 2e6], samples: 2}

  # Optics. 400GBASE-DR4 receives down to -5.9 dBm and sends at least -2.9 dBm (IEEE 802.3bs);
  # monitors may be off by 3 dB (SFF-8636), so only values below both are reported, and modules
  # that lost half of their light.
  light_in: {metric: rx_power_dbm, kind: rx_power, below: [-10, -9], above: [6, 5], drop: [3, 2]}
  light_out: {metric: tx_power_dbm, kind: tx_power, below: [-7, -6], above: [7, 6], drop: [3, 2]}
  # Modules are specified for case temperatures of 0 to 70 degrees.
  optic_heat: {metric: optic_celsius, kind: optic_temperature, above: [75, 70]}
  # RS(544,514) corrects up to 2.4e-4 (IEEE 802.3bs); a fifth of it leaves time to act.
  bit_errors: {metric: prefec_ber, kind: prefec_ber, above: [5e-5, 2e-5]}

  # Sessions.
  bgp: {metric: bgp_established, kind: bgp_down, below: 0.5}
  bfd: {metric: bfd_up, kind: bfd_down, below: 0.5}

  # Devices. ASICs throttle at 100 to 110 degrees; their fans react earlier.
  heat: {metric: celsius, kind: temperature_high, above: [95, 88]}
  fan: {metric: fan_ok, kind: fan_fail, below: 0.5, samples: 2}
  supply: {metric: psu_ok, kind: psu_fail, below: 0.5}
  card: {metric: card_ok, kind: card_fail, below: 0.5}
  # Route computation takes bursts of seconds: three polls in a row are not a burst.
  cpu: {metric: cpu_share, kind: cpu_high, above: [0.95, 0.8], samples: 3}
  memory_full: {metric: memory_share, kind: memory_error, above: [0.97, 0.94], samples: 3}
  storage_full: {metric: storage_share, kind: storage_error, above: [0.97, 0.94], samples: 3}
  asic: {metric: asic_errors, kind: asic_error, rate: 0}
  # Single corrected bits come from radiation; one every 100 s does not.
  memory_bits: {metric: memory_errors, kind: memory_error, rate: [0.01, 0.001]}
  storage_faults: {metric: storage_errors, kind: storage_error, rate: 0}
  # A UDP poll may be lost with all its retries: two in a row.
  silence: {metric: reachable, kind: device_unreachable, below: 0.5, samples: 2}
)yaml";

}  // namespace

std::string_view default_metric_rules_text() { return metric_rules_yaml; }

}  // namespace weft::observe::telemetry
