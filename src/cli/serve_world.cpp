#include "cli/serve_world.hpp"

#include <algorithm>

#include "adapt/sim/world_faults.hpp"

namespace weft::cli {
namespace {

namespace sim = adapt::sim;

constexpr Timestamp world_start{1'800'000'000 * ns_per_s};
constexpr std::int64_t turn_ns = ns_per_s / 10;

// The first point of the grid that is not before `t`.
Timestamp on_grid(Timestamp t) {
  return {world_start.ns + (t.ns - world_start.ns + turn_ns - 1) / turn_ns * turn_ns};
}

}  // namespace

Result<std::unique_ptr<ServedWorld>> ServedWorld::create(Parts parts, const Pace& pace) {
  auto out = std::make_unique<ServedWorld>(pace);
  WEFT_TRY(const std::vector<sim::TimedFault> faults,
           sim::read_world_faults(parts.setup.fabric, parts.faults, world_start));
  sim::WorldSettings settings{.operations = parts.model.operations};
  settings.operations.seed = parts.seed;
  if (parts.jobs != nullptr)
    settings.loads = [jobs = parts.jobs](const model::State& state) { return jobs->loads(state); };
  WEFT_TRY(out->world_,
           sim::World::create(parts.setup.fabric, parts.setup.routing, settings, world_start));
  for (const sim::TimedFault& fault : faults) out->world_->net().begin_at(fault.at, fault.start);
  out->people_ = std::make_unique<sim::People>(
      out->world_->net(),
      sim::PeopleSettings{.seed = parts.seed, .approve_mean_ns = parts.model.approve_ns});
  auto tracer = std::make_unique<sim::JobTracer>(*out->world_, std::move(parts.traced), parts.seed);
  if (tracer->jobs().empty()) return out;
  out->tracer_ = std::move(tracer);
  out->look_ = {world_start.ns + sim::JobTracer::look_every_ns};
  out->world_->take_probes();  // from now on they are kept for it
  return out;
}

std::optional<std::int64_t> ServedWorld::wait_ns() {
  if (is_over_) return std::nullopt;
  if (pace_.speed <= 0) return 0;
  const std::int64_t now = world_->clock().now().ns;
  if (!begun_ns_) begun_ns_ = now;
  const double simulated = static_cast<double>(world_->now().ns - world_start.ns);
  const double wait = simulated / pace_.speed - static_cast<double>(now - *begun_ns_);
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(wait));
}

Result<serve::Simulation::Turn> ServedWorld::advance(std::optional<Timestamp> due) {
  Timestamp to = world_->next_due();
  for (const auto& other : {due, people_->next_due()})
    if (other) to = std::min(to, *other);
  if (tracer_) to = std::min(to, look_);
  to = on_grid(std::max(to, {world_->now().ns + 1}));
  const Timestamp end{world_start.ns + pace_.span_ns};
  if (pace_.span_ns > 0 && to >= end) {
    to = end;
    is_over_ = true;
  }
  if (to > world_->now()) {
    WEFT_TRY_STATUS(world_->advance(to));
  }
  Turn out;
  if (auto lines = world_->records(); !lines.empty())
    out.batches.push_back({serve::Feed::record, std::move(lines), "world"});
  if (auto lines = world_->evidence(); !lines.empty())
    out.batches.push_back({serve::Feed::evidence, std::move(lines), "world"});
  if (tracer_ && world_->now() >= look_) {
    look_ = {look_.ns + sim::JobTracer::look_every_ns};
    WEFT_TRY(auto lines, tracer_->look());
    if (!lines.empty()) out.batches.push_back({serve::Feed::record, std::move(lines), "traces"});
  }
  for (sim::People::Word& word : people_->words()) {
    const bool approves = word.kind == sim::People::Word::Kind::approve;
    out.commands.push_back(
        {.kind = approves ? serve::Command::Kind::approve : serve::Command::Kind::repaired,
         .case_id = std::move(word.repair),
         .who = approves ? "operator" : "technician",
         .reason = {},
         .until = {}});
  }
  return out;
}

}  // namespace weft::cli
