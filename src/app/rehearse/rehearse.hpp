// Operations of a fabric for some weeks, in seconds: faults by base rates, the real controller,
// actuators and technicians, and what it all came to. The model and its assumptions:
// docs/rehearse.md.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "adapt/sim/people.hpp"
#include "base/config.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "operate/repair/policy.hpp"
#include "operate/repair/repair_stats.hpp"
#include "serve/service.hpp"

namespace weft::app {

// What fails how often, and who mends it.
struct RehearseModel {
  struct Rates {  // faults of one part in 30 days
    double host_cable = 0, trunk_cable = 0, rack_switch = 0, other_switch = 0, line_card = 0,
           control_plane = 0, grey = 0, optic = 0, flap = 0, host_nic = 0, host = 0;
    double blips = 0;  // single losses of carrier of a cable in a day
  } rates;
  double grey_least = 0, grey_most = 0;  // loss of a grey cable, log-uniform
  double optic_loss = 0;                 // at its worst
  std::uint32_t lemons = 0;              // cables whose repairs do not hold
  std::int64_t lemon_again_ns = 0;       // they fail again after so long, on average
  adapt::sim::OperationsSettings operations;
  std::int64_t control_plane_ns = 0;  // until the sessions are back by themselves, on average
  std::int64_t approve_ns = 0;        // until a person answers
  double bad_loss = 0;                // a minute that loses more is bad
};

// The text of the defaults: every key with its value, and where it comes from.
std::string_view rehearse_model_text();
// `config` laid over the defaults key by key. Fails: every error found, with its position.
Result<RehearseModel> read_rehearse_model(const Config& config);

struct RehearseOptions {
  std::uint32_t days = 30;
  std::uint64_t seed = 1;
  RehearseModel model;
  operate::repair::Policy policy;
};

struct RehearseReport {
  struct Problem {
    std::uint64_t faults = 0, found = 0;           // found: with a case about the part
    std::uint64_t named = 0;                       // and of the right problem type
    std::uint64_t bad_inside = 0, bad_across = 0;  // rack-minutes: inside racks, between them
  };
  std::uint32_t days = 0;
  std::uint64_t seed = 1;
  std::map<std::string, Problem> problems;  // by problem type of the truth
  std::uint64_t rack_minutes = 0;           // in all, of one kind
  std::uint64_t bad_known = 0;              // bad minutes whose cause has a case
  // Single losses of carrier, and the repairs that were opened about them and drained. They are no
  // part of the ledger: what heals within a second has no time to repair.
  std::uint64_t blips = 0, blip_repairs = 0, blip_drains = 0;
  std::uint64_t lines = 0, ticks = 0, cases = 0, cases_false = 0;
  std::map<std::string, std::uint64_t> refused;  // drains, by guard
  operate::repair::RepairStats ledger;
  std::uint64_t lemons = 0, lemons_found = 0, offenders = 0;  // offenders: repaired twice
  std::uint64_t replaced = 0;                                 // of which the policy had replaced
  std::uint64_t visits = 0, drains = 0;
  double drained_cable_hours = 0;
};

using RehearseProgress = std::function<void(double days)>;

// Deterministic. Fails: as the controller and as its store; Errc::infeasible for a fabric without
// racks.
Result<RehearseReport> rehearse(const model::Fabric& fabric, const RehearseOptions& options,
                                const RehearseProgress& progress);

// What people say, as the service takes it.
serve::Command command_of(adapt::sim::People::Word word);

std::string to_json(const RehearseReport& report);
std::string to_table(const RehearseReport& report);

// One number that a rehearsal came to.
struct RehearseFigure {
  std::string name;
  double value = 0;
};
// All that are compared over seeds, in the order of the report. A mean of nothing is left out.
std::vector<RehearseFigure> figures(const RehearseReport& report);

}  // namespace weft::app
