#include "operate/repair/policy.hpp"

namespace weft::operate::repair {

namespace {

constexpr std::string_view text =
    R"yaml(# Repair policy. A file given by --policy is merged over this, key by key.

defaults:               # for all problem types, unless overridden
  mode: propose         # observe, propose, approve or auto
  confidence: 0.7       # cases with less are only watched
  acts_early: false     # act on provisional cases
  counts_as_gone: true  # capacity behind a suspected part counts as lost
  drain: none           # none, cable or switch
  forecast: required    # of the slowdown of jobs: none, advisory or required
  soak: 30 min          # observation time after a return
  checks_first: true    # test traffic before a drain based only on lost probes
  verify: {packets: 10000, lost: 0, rate: 0.99, quiet: 0 s}  # quiet: time without new evidence
  slo: {detect: 1 min, triage: 2 min, drain: 5 min, repair: 24 h, verify: 1 h, rma: 14 d}

problems:               # everything not listed here needs a person
  port_flap: {mode: auto, drain: cable, acts_early: true}
  optic: {mode: auto, drain: cable, verify: {quiet: 15 min}}  # light fades before packets drop
  cable: {mode: auto, drain: cable, acts_early: true}
  host_nic: {counts_as_gone: false}
  host: {counts_as_gone: false}
  platform: {counts_as_gone: false}
  line_card: {mode: approve, drain: switch}
  switch_part: {mode: approve, drain: switch}
  control_plane: {mode: approve, drain: switch}
  rack_switch: {mode: auto, drain: switch, acts_early: true}
  switch: {mode: auto, drain: switch, acts_early: true}
  misconfiguration: {counts_as_gone: false}
  congestion: {counts_as_gone: false}
  capacity: {mode: observe, counts_as_gone: false}  # the faults behind it are repaired
  unknown: {mode: observe}

guards:
  rack_share: 0.75      # of the uplinks of each first-hop switch and rack, always kept
  plane_share: 0.5      # of those of each rack in each plane
  demand_share: 0       # uplinks keep this share of the rack's NIC rate; 1: non-blocking
  total: 16             # parts drained by weft at once
  zone: 8
  rack: 4               # reached by the uplinks of a rack
  role: 8               # switches of a role, or cables between two roles
  drains_per_hour: 30
  part_drains_per_hour: 2  # of the same part
  slowdown: 1.1         # at most, of any running job
  stalled_jobs: 0       # at most
  undrain_when_killed: false
  undrain_when_frozen: true
  offender: {repairs: 3, within: 30 d}  # repaired this often, a part must be replaced

timing:
  confirm_every: 500 ms # interval for checking the effect of an action
  confirm: 30 s         # time before the action is retried
  order: 2 min          # an order without a result counts as lost
  blocked: 30 s         # a rejected drain is retried
  snapshot: 1500 ms     # a drain waits this long for the snapshot
  recheck: 1 min        # test traffic over a drained part, doubling
  recheck_max: 30 min   # up to this
  failed_look: 5 min    # interval for checking a failed repair
  notice: 10 s          # a failed notice is sent again, doubling
  early: 1500 ms        # a provisional case must last this long: links blink
  short: 1 min          # a rack below its share of uplinks for so long is a case
  grace: 10 s           # evidence this soon after a return is due to the return
  again: 24 h           # a part that fails again this soon after a return
  hold: 1 h             # is kept out at least this long, doubling with each such return
  hold_max: 24 h        # up to this
  remember: 60 d        # finished repairs are deleted

retries:
  acts: 3               # attempts per action
  notices: 6
  checks: 5             # in a row without a result
  rollbacks: 2          # per repair; then the part must be replaced

freezes: []             # no new drains: {from: TIME, until: TIME, why: TEXT}
)yaml";

}  // namespace

std::string_view default_policy_text() { return text; }

}  // namespace weft::operate::repair
