#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

namespace {

// Prices, gains and what silence costs are on one scale: 9 is a fault of one part. A cause wins
// when it is cheaper than a fault of its own for each part that it explains.
constexpr std::string_view text =
    R"yaml(# Triage rules. A file given by --rules is merged over these, key by key.

gain: 9                 # for each part whose evidence a cause explains

timing:
  lateness: 30 s        # how far a record may lag behind the newest
  together: 12 s        # effects of one cause begin within this time
  at_once: 2 s          # the same for parts that fail simultaneously
  spread: 25 s          # the same for sessions lost by one control plane
  lesser: 30 s          # a smaller case that began this close to a larger one joins it
  reboot: 5 min         # the same for sessions closed before their device goes down
  blip: 6 min           # a single down and up is held for this time, in case it recurs
  soft: 120 s           # the same for single bit errors and light levels
  cleared: 90 s         # a part is closed this long after recovery
  relapse: 6 min        # the same for links, NICs and hosts: slow flaps, bounces while booting
  silent: 1 h           # without records: a recovered case is closed, only a recovery joins others
  unrepaired: 4 h       # the same: a case that has not recovered is closed
  congested: 60 s       # the same for congestion
  change: 30 s          # a configuration change takes effect within this time

clock:                  # event time further than this from the time of receipt is not trusted
  behind: 20 s          # longer than any delivery delay
  ahead: 2 s
  delay: 500 ms         # the event is then placed this long before its receipt

cards: {ports: 36}      # per line card; switches with no more ports than this have none

counts:                 # number of records that make a case
  flaps: 3              # downs seen at one end by one source
  soft: 3
  losses: 3
  silences: 2
  faults: 3             # on a device, without a known cause
  congestion: 4
  part: 6               # links of one switch that fail simultaneously
  racks: 4              # racks that lose power together: attributed to the zone

groups:                 # names for lists of kinds
  link: [link_down, link_up, interface_down, link_slow, link_speed_ok, bgp_down, bgp_up, bfd_down,
         bfd_up, probe_loss, probe_corruption, probe_duplicates, probe_delay, job_slow]
  optics: [crc_errors, prefec_ber, rx_power, tx_power, optic_temperature]
  carrier: [link_down, interface_down, nic_down]
  session: [bgp_down, bfd_down]
  nic: [nic_down, nic_up, nic_errors, link_down, link_up, interface_down, link_slow,
        link_speed_ok, crc_errors, probe_loss, probe_corruption, probe_duplicates, probe_delay,
        job_slow, corruption]
  host: [probe_host, host_boot, agent_silent, oob_unreachable, probe_loss, probe_corruption,
         job_slow, job_hang, corruption]
  device: [device_unreachable, asic_error, oob_unreachable, device_boot, process_crash,
           process_start, card_fail, card_ok]
  platform: [memory_error, storage_error, cpu_high, temperature_high, fan_fail, psu_fail]
  power: [power_lost, power_ok, psu_fail, oob_unreachable]

events:                 # meaning of each kind, and how long to wait for related events
  info: {says: nothing}
  link_down: {says: down, wait: 5 s}
  link_up: {says: clear}
  interface_down: {says: down, wait: 5 s, spread: 30 s}
  link_slow: {says: loss, wait: 30 s}
  link_speed_ok: {says: clear}
  crc_errors: {says: soft}
  discards: {says: congestion, wait: 30 s}
  prefec_ber: {says: light}
  rx_power: {says: light}
  tx_power: {says: light}
  optic_temperature: {says: light}
  bgp_down: {says: session, wait: 8 s}
  bgp_up: {says: clear}
  bfd_down: {says: session, wait: 8 s}
  bfd_up: {says: clear}
  probe_loss: {says: loss, wait: 30 s}
  probe_latency: {says: congestion, wait: 30 s}
  probe_corruption: {says: loss, wait: 30 s}
  probe_duplicates: {says: loss, wait: 30 s}
  probe_delay: {says: loss, wait: 30 s}
  probe_route: {says: fault, wait: 8 s}
  probe_host: {says: silence, wait: 40 s}
  card_fail: {says: fault, wait: 8 s}
  card_ok: {says: clear}
  asic_error: {says: fault, wait: 8 s}
  memory_error: {says: fault, wait: 40 s}
  storage_error: {says: fault, wait: 40 s}
  cpu_high: {says: fault, wait: 40 s}
  temperature_high: {says: fault, wait: 40 s}
  fan_fail: {says: fault, wait: 40 s}
  psu_fail: {says: fault, wait: 8 s}
  process_crash: {says: fault, wait: 8 s}
  process_start: {says: fault, wait: 40 s}
  device_boot: {says: clear}
  device_unreachable: {says: silence, wait: 40 s}
  oob_unreachable: {says: silence, wait: 40 s}
  power_lost: {says: fault, wait: 8 s}
  power_ok: {says: clear}
  nic_down: {says: down, wait: 5 s}
  nic_up: {says: clear}
  nic_errors: {says: loss, wait: 30 s}
  host_boot: {says: clear}
  agent_silent: {says: silence, wait: 40 s}
  config_commit: {says: change}
  config_error: {says: fault, wait: 40 s}
  pfc_pauses: {says: congestion, wait: 30 s}
  ecn_marks: {says: congestion, wait: 30 s}
  queue_depth: {says: congestion, wait: 30 s}
  drain: {says: planned}
  undrain: {says: planned}
  maintenance: {says: planned}
  job_slow: {says: loss, wait: 30 s}
  job_hang: {says: fault, wait: 40 s}
  corruption: {says: fault, wait: 40 s}
  capacity_low: {says: fault, wait: 0 s}
  capacity_ok: {says: clear}

# price    of assuming the cause
# silent   for each part that is expected to report but does not
# expects  the kinds that such a part reports
# explains the kinds that become members of its case
# doubts   of these: those that a smaller cause inside it produces on its own. A case with one of
#          them is scored again without that smaller cause, and split if it is not worth its price
# direct   kinds reported on the root itself, and their weight
causes:
  port_flap: {price: 9, explains: [link, optics, nic]}
  optic: {price: 9, explains: [link, optics, nic]}
  cable: {price: 9, explains: [link, optics, nic]}
  host_nic: {price: 9, explains: [nic]}
  host: {price: 11, silent: 7, expects: [carrier], explains: [nic, host, bgp_down, bgp_up]}
  platform: {price: 10, explains: [platform]}
  line_card:
    price: 12
    silent: 7
    expects: [carrier]
    explains: [link, nic, card_fail, card_ok, asic_error]
    direct: {card_fail: 12}
  switch_part:
    price: 20
    expects: [carrier]
    explains: [link, nic, host, asic_error, device_unreachable, memory_error]
    doubts: [host_boot]
    direct: {asic_error: 12}
  control_plane:
    price: 12
    silent: 3
    expects: [session]
    explains: [session, bgp_up, bfd_up, probe_loss, probe_route, process_crash, process_start,
               device_unreachable, cpu_high, memory_error]
    direct: {process_crash: 12, probe_route: 12}
  rack_switch:
    price: 13
    silent: 7
    expects: [carrier]
    explains: [link, nic, host, device]
    doubts: [host_boot]
    direct: {asic_error: 12, device_unreachable: 12, device_boot: 6}
  switch:
    price: 14
    silent: 7
    expects: [carrier]
    explains: [link, nic, host, device]
    doubts: [host_boot]
    direct: {asic_error: 12, device_unreachable: 12, device_boot: 6}
  rack:
    price: 15
    silent: 7
    expects: [carrier]
    explains: [link, nic, host, device, power]
    direct: {power_lost: 14, psu_fail: 14, oob_unreachable: 9}
  power: {price: 15, explains: [link, nic, host, device, power]}
  zone:
    price: 30
    silent: 7
    expects: [carrier]
    explains: [link, nic, host, device, power]
    direct: {power_lost: 14}
  misconfiguration:
    price: 12
    explains: [session, bgp_up, bfd_up, probe_loss, config_commit, config_error]
  congestion:
    price: 9
    explains: [pfc_pauses, ecn_marks, queue_depth, probe_latency, discards]
  capacity: {price: 9, explains: [capacity_low, capacity_ok]}
  unknown:
    price: 12
    explains: [device, platform, power, host]
)yaml";

}  // namespace

std::string_view default_rules_text() { return text; }

}  // namespace weft::operate::triage
