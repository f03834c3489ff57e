#include "observe/detect/rules.hpp"

namespace weft::observe::detect {

namespace {

constexpr std::string_view text =
    R"(# Built-in detections of the agent. Limits are our own choices; each gives its reason.
detections:
  # Half of a card's ports within two seconds fail together for one reason: the card. Cables and
  # far ends fail one by one. A switch that reboots is not a failed card. Waiting half a second
  # collects the consequences (sessions) and keeps the report of a single link failure fast.
  - name: line_card_down
    record: {kind: card_fail, entity: card}
    per: card
    within: 2 s
    wait: 500 ms
    hold: 60 s
    when:
      all:
        - count: {kind: [link_down, interface_down], share_of_ports: 0.5}
        - not: {count: {kind: device_boot, within: 120 s}}
    suppress: [link_down, interface_down, bgp_down, bfd_down]

  # A chip that logs single corrected errors is healthy; ten in a minute or a steady rate is not.
  - name: asic_error_storm
    record: {kind: asic_error}
    per: device
    within: 60 s
    hold: 300 s
    when:
      any:
        - count: {kind: asic_error, at_least: 10}
        - rate: {metric: asic_errors, above: 0.5}

  # Light that fades while errors appear: dirt, a bend, a laser that ages. Light alone drifts with
  # temperature, errors alone have many causes.
  - name: optic_degrading
    record: {kind: rx_power}
    per: port
    within: 10 min
    hold: 10 min
    when:
      all:
        - any:
            - change: {metric: rx_power_dbm, below: -1}
            - count: {kind: rx_power}
        - any:
            - rate: {metric: in_errors, above: 0.05}
            - count: {kind: [crc_errors, prefec_ber], at_least: 2}
            - change: {metric: prefec_ber, above: 1e-6}

  # Three losses in two minutes are a flapping port: from then on its ups and downs are one
  # event that lasts until two minutes have been quiet.
  - name: flapping_port
    record: {kind: interface_down}
    per: port
    within: 120 s
    wait: 0 s
    hold: 30 s
    when:
      any:
        - count: {kind: link_down, at_least: 3}
        - rate: {metric: carrier_changes, above: 0.04}
    suppress: [link_down, link_up, bgp_down, bgp_up, bfd_down, bfd_up]

  # Corrected errors occur singly; five in ten minutes precede uncorrectable ones.
  - name: memory_failing
    record: {kind: memory_error}
    per: device
    within: 10 min
    hold: 1 h
    when:
      any:
        - count: {kind: memory_error, at_least: 5}
        - rate: {metric: memory_errors, above: 0.008}

  - name: storage_failing
    record: {kind: storage_error}
    per: device
    within: 10 min
    hold: 1 h
    when:
      any:
        - count: {kind: storage_error, at_least: 3}
        - rate: {metric: storage_errors, above: 0.005}
        - value: {metric: storage_share, above: 0.98, for: 60 s}

  # A failed fan is a spare-parts issue until the device gets hot, which takes minutes.
  - name: cooling_lost
    record: {kind: temperature_high}
    per: device
    within: 5 min
    hold: 5 min
    wait: 0 s
    when:
      all:
        - any:
            - count: {kind: fan_fail}
            - value: {metric: fan_ok, below: 0.5}
        - any:
            - count: {kind: [temperature_high, optic_temperature]}
            - change: {metric: celsius, above: 5}
    suppress: [fan_fail]

  # One supply of two: nothing is down, but there is no redundancy left.
  - name: psu_redundancy_lost
    record: {kind: psu_fail}
    per: device
    within: 60 s
    hold: 60 s
    when:
      all:
        - any:
            - count: {kind: psu_fail, at_least: 2}
            - value: {metric: psu_ok, below: 0.5, for: 10 s}
        - not: {count: {kind: power_lost}}

  # Errors of the bus and of the NIC together: the card or its slot, not the cable.
  - name: nic_failing
    record: {kind: nic_errors}
    per: nic
    within: 5 min
    hold: 10 min
    when:
      all:
        - rate: {metric: pcie_errors, above: 0.01}
        - any:
            - rate: {metric: in_errors, above: 0.01}
            - rate: {metric: rdma_errors, above: 1}
            - count: {kind: [nic_errors, nic_down]}

  # A NIC whose link flapped three times in two minutes.
  - name: flapping_nic
    record: {kind: nic_down}
    per: nic
    within: 120 s
    hold: 30 s
    when:
      any:
        - count: {kind: nic_up, at_least: 3}
        - rate: {metric: carrier_changes, above: 0.04}

  # A process that is started again and again is one broken process.
  - name: process_crashing
    record: {kind: process_crash}
    per: device
    within: 10 min
    hold: 10 min
    when:
      count: {kind: process_crash, at_least: 3}

  # No processor or memory left for what keeps a device alive.
  - name: device_starved
    record: {kind: cpu_high}
    per: device
    within: 60 s
    hold: 60 s
    when:
      any:
        - value: {metric: cpu_share, above: 0.95, for: 30 s}
        - value: {metric: memory_share, above: 0.97, for: 30 s}
        - value: {metric: load_per_cpu, above: 10, for: 30 s}

  # The time since its start cannot fall otherwise.
  - name: started_again
    record: {kind: host_boot}
    per: host
    within: 5 min
    when:
      change: {metric: uptime_s, below: 0}

  # Agents say something every second or few.
  - name: agent_gone
    record: {kind: agent_silent}
    per: device
    within: 30 s
    when:
      absent: {kind: info, source: agent, for: 30 s}
)";

}  // namespace

std::string_view default_rules_text() { return text; }

}  // namespace weft::observe::detect
