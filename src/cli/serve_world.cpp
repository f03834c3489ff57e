#include "cli/serve_world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "adapt/sim/world_faults.hpp"
#include "base/percentile.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "route/hash.hpp"

namespace weft::cli {
namespace {

namespace sim = adapt::sim;

constexpr Timestamp world_start{1'800'000'000 * ns_per_s};
constexpr std::int64_t turn_ns = ns_per_s / 10;
constexpr std::size_t te_rows_max = 20;

// The first point of the grid that is not before `t`.
Timestamp on_grid(Timestamp t) {
  return {world_start.ns + (t.ns - world_start.ns + turn_ns - 1) / turn_ns * turn_ns};
}

// Without `convergence:` routes take as long as ever, and marks as long as in a lab.
void take_convergence(const route::RoutingConfig& routing, sim::WorldSettings& settings) {
  const auto ns = [](Duration d) { return d.ps / ps_per_ns; };
  const bool is_te = routing.scheme == "te";
  if (routing.convergence) settings.converge_ns = ns(routing.convergence->bgp);
  if (routing.convergence || is_te)
    settings.notice_ns =
        ns(routing.convergence.value_or(route::RoutingConfig::Convergence{}).detect);
}

sim::WorldTeSettings te_settings(const route::RoutingConfig& routing,
                                 const std::vector<operate::te::Flow>& flows) {
  const auto given = routing.convergence.value_or(route::RoutingConfig::Convergence{});
  const Duration sees =
      routing.te_sees > Duration{} ? routing.te_sees : given.detect + given.compute + given.install;
  const Duration heard = std::min(given.detect, sees);
  return {.flows = flows,
          .loop = {},
          .heard = heard,
          .installed = sees - heard,
          .lease = routing.te_lease};
}

// As the fluid engine has them: by QP.
std::shared_ptr<const route::RoutingConfig::Marks> marks_of(
    const model::Fabric& fabric, const std::vector<port::RouteMark>* marks) {
  if (marks == nullptr) return nullptr;
  auto out = std::make_shared<route::RoutingConfig::Marks>();
  for (const port::RouteMark& mark : *marks)
    (*out)[{mark.src, mark.dst, route::qp_of_port(fabric, mark.src, mark.dst, mark.port)}] =
        mark.uplink;
  return out;
}

// Seconds without a path, ascending, of those that are over.
std::vector<double> dark_seconds(const sim::World& world) {
  std::vector<double> out;
  for (const sim::Blackout& blackout : world.blackouts())
    if (blackout.to) out.push_back(static_cast<double>(blackout.to->ns - blackout.from.ns) / 1e9);
  std::ranges::sort(out);
  return out;
}

std::vector<std::string> words_of(const model::Fabric& fabric, const operate::te::Event& event) {
  std::vector<std::string> out;
  for (const port::LinkNews& one : event.news)
    out.push_back(fabric.name(one.cable) + (one.is_up ? " up" : " down"));
  return out;
}

}  // namespace

Result<std::unique_ptr<ServedWorld>> ServedWorld::create(Parts parts, const Pace& pace) {
  auto out = std::make_unique<ServedWorld>(pace);
  WEFT_TRY(const std::vector<sim::TimedFault> faults,
           sim::read_world_faults(parts.setup.fabric, parts.faults, world_start));
  sim::WorldSettings settings{.operations = parts.model.operations,
                              .flows_each = parts.probe_flows,
                              .routes_each = parts.probe_routes};
  settings.operations.seed = parts.seed;
  const route::RoutingConfig& routing = parts.setup.routing;
  take_convergence(routing, settings);
  if (!parts.flows.empty()) settings.te = te_settings(routing, parts.flows);
  if (parts.jobs != nullptr)
    settings.loads = [jobs = parts.jobs, &fabric = parts.setup.fabric](
                         const model::State& state, const std::vector<port::RouteMark>* marks) {
      return jobs->loads(state, marks_of(fabric, marks));
    };
  WEFT_TRY(out->world_, sim::World::create(parts.setup.fabric, routing, settings, world_start));
  if (out->world_->te() != nullptr && routing.te_dead) out->world_->te()->stop_controller();
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

std::string ServedWorld::te_table() const {
  const sim::WorldTe* const te = world_->te();
  if (te == nullptr) return {};
  Table table({{"te at s"}, {"news", Table::Align::left}, {"hit"}, {"moved"}, {"marks"}});
  std::size_t shown = 0;
  for (const operate::te::Event& event : te->events()) {
    const operate::te::Step& step = event.step;
    if (step.changes == 0 && event.news.empty()) continue;  // a hold is over, and nothing moves
    if (++shown > te_rows_max) continue;
    const std::vector<std::string> words = words_of(world_->fabric(), event);
    table.add({fmt::format("{:.4f}", event.at.seconds()),
               words.empty() ? (event.is_first ? "start" : "hold or drain")
                             : fmt::format("{}", fmt::join(words, ", ")),
               std::to_string(step.decision.hit), std::to_string(step.decision.moved),
               std::to_string(step.changes)});
  }
  std::string out = fmt::format("\n{}\n", table.text());
  if (shown > te_rows_max)
    out += fmt::format("{} of {} decisions, the first; --json has all\n", te_rows_max, shown);
  const std::vector<double> dark = dark_seconds(*world_);
  out += fmt::format("{} flows; {}", te->flows().size(),
                     counted(world_->blackouts().size(), "time") + " one was without a path");
  if (!dark.empty())
    out += fmt::format(": {} at the median, {} at most",
                       human_seconds(percentile(std::span<const double>(dark), 50)),
                       human_seconds(dark.back()));
  if (const std::size_t lasting = world_->blackouts().size() - dark.size(); lasting > 0)
    out += fmt::format("; {} still at the end", lasting);
  return out + "\n";
}

JsonObject ServedWorld::te_json() const {
  JsonList events;
  for (const operate::te::Event& event : world_->te()->events()) {
    JsonList news;
    for (const std::string& word : words_of(world_->fabric(), event)) news.add(word);
    events.add(JsonObject()
                   .add("at_s", event.at.seconds())
                   .add("news", news)
                   .add("hit", event.step.decision.hit)
                   .add("moved", event.step.decision.moved)
                   .add("marks", event.step.changes)
                   .add("refused", event.step.decision.refused));
  }
  const std::vector<double> dark = dark_seconds(*world_);
  JsonObject out;
  out.add("flows", world_->te()->flows().size())
      .add("events", events)
      .add("without_path", world_->blackouts().size())
      .add("without_path_at_end", world_->blackouts().size() - dark.size());
  if (!dark.empty())
    out.add("without_path_p50_s", percentile(std::span<const double>(dark), 50))
        .add("without_path_max_s", dark.back());
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
  for (sim::People::Word& word : people_->words())
    out.commands.push_back(app::command_of(std::move(word)));
  return out;
}

}  // namespace weft::cli
