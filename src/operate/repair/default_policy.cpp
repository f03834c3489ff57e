#include "operate/repair/policy.hpp"

namespace weft::operate::repair {

std::string_view default_policy_text() {
  return R"yaml(# What repair may do. A file given by --policy is laid over this, key by key.

defaults:               # of all problem types, unless they say otherwise
  mode: propose         # observe, propose, approve or auto
  confidence: 0.7       # cases with less are watched
  acts_early: false     # on cases that are still provisional
  counts_as_gone: true  # capacity behind a suspected part is not relied on
  drain: none           # none, cable or switch
  forecast: required    # of the jobs' slowdown: none, advisory or required
  soak: 30 min          # returned under watch for so long
  verify: {packets: 10000, lost: 0, quiet: 0 s}  # of test traffic; no new evidence for so long
  slo: {detect: 1 min, triage: 2 min, drain: 5 min, repair: 24 h, verify: 1 h}

problems:               # people's hands are needed for all that is not named here
  port_flap: {mode: auto, drain: cable, acts_early: true}
  optic: {mode: auto, drain: cable, verify: {quiet: 15 min}}  # light fades long before packets go
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
  unknown: {mode: observe}

guards:
  rack_share: 0.75      # of the uplinks of each first switch and rack, that stay at all times
  plane_share: 0.5      # of those of each rack in each plane
  demand_share: 0       # uplinks keep so much of what a rack's NICs can send; 1: never blocking
  total: 16             # parts out at once by our hands
  zone: 8
  rack: 4               # that a rack's uplinks lead to
  role: 8               # switches of a role, or cables between two roles
  drains_per_hour: 30
  slowdown: 1.1         # at most, of any running job
  stalled_jobs: 0       # at most
  undrain_when_killed: false
  undrain_when_frozen: true
  offender: {repairs: 3, within: 30 d}  # repaired so often, a part is to be replaced

timing:
  confirm_every: 500 ms # an act's effect is looked for so often
  confirm: 30 s         # and so long, before the act is tried again
  order: 2 min          # an order without a result is taken for lost
  blocked: 30 s         # a refused drain is tried again
  snapshot: 1500 ms     # a drain waits so long for the snapshot
  recheck: 1 min        # test traffic over what is drained, doubling
  recheck_max: 30 min   # up to this
  failed_look: 5 min    # what has failed is looked at so often
  notice: 10 s          # a notice that failed is sent again, doubling
  early: 1500 ms        # a provisional case has to last so long: links blink
  grace: 10 s           # evidence so soon after a return is of the return itself
  remember: 60 d        # what is over is forgotten

retries:
  acts: 3               # tries of one action
  notices: 6
  checks: 5             # in a row without a result
  rollbacks: 2          # of one repair; then the part is to be replaced

freezes: []             # no new drains: {from: TIME, until: TIME, why: TEXT}
)yaml";
}

}  // namespace weft::operate::repair
