// `weft serve --world`: a simulated network in place of a real one.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "adapt/sim/job_tracer.hpp"
#include "adapt/sim/people.hpp"
#include "adapt/sim/world.hpp"
#include "app/rehearse/rehearse.hpp"
#include "base/config.hpp"
#include "base/json_text.hpp"
#include "base/result.hpp"
#include "operate/repair/what_if.hpp"
#include "plan/run/setup.hpp"
#include "serve/controller_thread.hpp"

namespace weft::cli {

// The same turns whoever asks the service something meanwhile: they are on a grid of 100 ms, at the
// first point where the network or the controller has something to do.
class ServedWorld final : public serve::Simulation {
 public:
  struct Pace {
    double speed = 0;          // simulated seconds a second; 0: as fast as it goes
    std::int64_t span_ns = 0;  // after so long time stops; 0: never
  };
  struct Parts {
    const plan::Setup& setup;
    const Config& faults;                 // the scenario's section
    const operate::repair::WhatIf* jobs;  // null: none run
    std::vector<adapt::sim::TracedJob> traced;
    const app::RehearseModel& model;  // of people and actuators; its rates are not used
    std::uint64_t seed;
    std::vector<operate::te::Flow> flows;  // of scheme te
    std::uint32_t probe_flows = 4;         // over each link
    std::uint32_t probe_routes = 0;        // over each transit route
  };
  // `setup` and `jobs` must outlive it. Fails: as World::create and read_world_faults.
  static Result<std::unique_ptr<ServedWorld>> create(Parts parts, const Pace& pace);

  std::optional<std::int64_t> wait_ns() override;
  Result<Turn> advance(std::optional<Timestamp> due) override;
  bool is_over() const { return is_over_; }  // any thread

  // What a controller of traffic engineering did, as a table, and for --json; empty without one.
  std::string te_table() const;
  JsonObject te_json() const;

  adapt::sim::World& world() { return *world_; }
  adapt::sim::People& people() { return *people_; }

  explicit ServedWorld(const Pace& pace) : pace_(pace) {}  // for create()

 private:
  Pace pace_;
  std::unique_ptr<adapt::sim::World> world_;
  std::unique_ptr<adapt::sim::People> people_;
  std::unique_ptr<adapt::sim::JobTracer> tracer_;  // null: no job crosses the network
  Timestamp look_;                                 // of the tracer, next
  std::optional<std::int64_t> begun_ns_;           // monotonic, of the first turn
  std::atomic<bool> is_over_{false};
};

}  // namespace weft::cli
