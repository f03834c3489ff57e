#include "plan/run/frontend_times.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/fluid/network.hpp"
#include "workload/jobstart/bootstrap.hpp"

namespace weft::plan {
namespace {

using engine::fluid::Network;
using model::NodeId;

class LastDelivery final : public Network::Client {
 public:
  explicit LastDelivery(const Network& network) : network_(network) {}
  void on_delivered(std::uint64_t) override { at_s_ = network_.now(); }
  void on_timer(std::uint64_t) override {}
  double at_s() const { return at_s_; }

 private:
  const Network& network_;
  double at_s_ = 0;
};

bool has_frontend(const model::Fabric& fabric, NodeId gpu) {
  return !model::fe_nics_of(fabric, fabric.host_of(gpu)).empty();
}

std::vector<workload::Communicators> communicators_of(const PlacedGraph& placed) {
  const auto ranks = static_cast<std::uint64_t>(placed.ranks.size());
  std::vector<workload::Communicators> kinds{{ranks, 1}};
  if (!placed.training) return kinds;
  const workload::TrainingPlan& plan = placed.training->plan;
  for (const std::uint32_t size : {plan.tp, plan.cp, plan.pp, plan.dp, plan.ep})
    if (size > 1) kinds.push_back({size, ranks / size});
  return kinds;
}

}  // namespace

Result<double> storage_seconds(const Setup& setup, std::uint64_t seed,
                               std::span<const model::StorageFlow> flows) {
  WEFT_TRY(route::Router router, route::Router::create(setup.fabric, setup.routing, seed));
  engine::fluid::NetworkOptions options = setup.fluid.options;
  options.contention = engine::fluid::NetworkOptions::Contention::on;  // storage is what is shared
  const std::size_t first = std::min<std::size_t>(1, setup.changes.size());
  Network network(router, std::span(setup.changes).subspan(0, first), options);
  LastDelivery last(network);
  for (const model::StorageFlow& flow : flows) {
    WEFT_TRY_STATUS(router.check_connected(flow.from, flow.to));
    const engine::fluid::Part part{flow.from, flow.to, 0, router.stream_count(), 0, 1};
    network.send({.parts = {&part, 1},
                  .bytes = static_cast<double>(flow.bytes.count),
                  .wire = engine::fluid::Wire::counted});
  }
  network.run(last);
  return last.at_s();
}

Status add_frontend_times(const PlacedGraph& placed, const Setup& setup, std::uint64_t seed,
                          model::TrainingOutcome& out, std::vector<model::Note>& notes) {
  using enum model::Note::Severity;
  if (has_frontend(setup.fabric, placed.ranks.front())) {
    WEFT_TRY(route::Router router, route::Router::create(setup.fabric, setup.routing, seed));
    const Duration one_way = router.latency(setup.fabric.host_of(placed.ranks.front()),
                                            setup.fabric.host_of(placed.ranks.back()));
    const auto kinds = communicators_of(placed);
    if (one_way != duration_max)
      out.bootstrap_s =
          workload::job_bootstrap_time(placed.bootstrap, kinds, one_way * 2).total_s();
  }
  model::StorageTransfer transfer{.gpus = placed.ranks, .where = placed.where};
  if (placed.checkpoint.count > 0) {
    transfer.bytes_per_gpu = placed.checkpoint;
    WEFT_TRY(const auto flows, model::checkpoint_flows(setup.fabric, transfer));
    if (const auto seconds = storage_seconds(setup, seed, flows)) {
      out.checkpoint_s = *seconds;
    } else {
      notes.push_back(
          {warning, fmt::format("{}: no checkpoint time: {}", placed.name, seconds.error().what)});
    }
  }
  if (placed.ingest.count > 0) {
    transfer.bytes_per_gpu = placed.ingest;
    WEFT_TRY(const auto flows, model::ingest_flows(setup.fabric, transfer));
    const auto time = storage_seconds(setup, seed, flows);
    if (!time) {
      notes.push_back(
          {warning, fmt::format("{}: no data ingestion time: {}", placed.name, time.error().what)});
      return {};
    }
    const double seconds = *time;
    const bool late = seconds > out.step_time_s;
    notes.push_back(
        {late ? warning : info,
         fmt::format("{}: the data for one step takes {:.3g} s over the front end, {} of a step{}",
                     placed.name, seconds, fmt::format("{:.1f} %", 100 * seconds / out.step_time_s),
                     late ? ": training waits for its input" : "")});
  }
  return {};
}

}  // namespace weft::plan
