#include "plan/run/front_end.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "workload/jobstart/bootstrap.hpp"

namespace weft::plan {
namespace {

std::vector<workload::Communicators> communicators_of(const PlacedGraph& placed) {
  const auto ranks = static_cast<std::uint64_t>(placed.ranks.size());
  std::vector<workload::Communicators> kinds{{ranks, 1}};
  if (!placed.training) return kinds;
  const workload::TrainingPlan& plan = placed.training->plan;
  for (const std::uint32_t size : {plan.tp, plan.cp, plan.pp, plan.dp, plan.ep})
    if (size > 1) kinds.push_back({size, ranks / size});
  return kinds;
}

// Front-end NICs of the job's hosts, in the order of its ranks; those of one host follow each
// other.
std::vector<NodeId> ring_of(const model::Fabric& fabric, std::span<const NodeId> ranks) {
  const model::RoleId role = fabric.find_role(model::fe_nic_role);
  std::map<NodeId, NodeId> nic_of;
  for (const NodeId nic : fabric.role(role).nodes)
    if (std::ranges::any_of(fabric.out(nic),
                            [&](auto link) { return fabric.is_switch(fabric.to(link)); }))
      nic_of.try_emplace(fabric.host_of(nic), nic);
  std::vector<NodeId> ring;
  NodeId last;
  for (const NodeId gpu : ranks) {
    const NodeId host = fabric.host_of(gpu);
    if (host == last) continue;
    last = host;
    if (const auto nic = nic_of.find(host); nic != nic_of.end()) ring.push_back(nic->second);
  }
  return ring;
}

engine::FrontEnd::StartUp start_up(const PlacedGraph& placed, route::Router& router) {
  const model::Fabric& fabric = router.fabric();
  const auto host = [&](NodeId gpu) { return fabric.host_of(gpu); };
  if (model::fe_nics_of(fabric, host(placed.ranks.front())).empty()) return {};
  const Duration one_way = router.latency(host(placed.ranks.front()), host(placed.ranks.back()));
  if (one_way == duration_max) return {};
  const auto kinds = communicators_of(placed);
  const double total = workload::job_bootstrap_time(placed.bootstrap, kinds, one_way * 2).total_s();
  engine::FrontEnd::StartUp out{.ring = ring_of(fabric, placed.ranks)};
  if (out.ring.size() > 1) {
    out.bytes = workload::exchange_bytes(placed.bootstrap, kinds.front().ranks);
    out.paced_s = out.bytes / placed.bootstrap.rate.bytes_per_s();
  }
  out.lead_s = std::max(0.0, total - out.paced_s);
  return out;
}

double mean_of(std::span<const double> seconds) {
  if (seconds.empty()) return model::no_number;
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / static_cast<double>(seconds.size());
}

}  // namespace

Status add_front_ends(const Jobs& jobs, route::Router& router, std::span<engine::GraphJob> graphs) {
  const model::Fabric& fabric = router.fabric();
  for (std::size_t g = 0; g < jobs.graphs.size(); ++g) {
    const PlacedGraph& placed = jobs.graphs[g];
    engine::FrontEnd out{.start = start_up(placed, router)};
    model::StorageTransfer transfer{.gpus = placed.ranks, .where = placed.where};
    if (placed.checkpoint.bytes.count > 0) {
      transfer.bytes_per_gpu = placed.checkpoint.bytes;
      WEFT_TRY(out.checkpoint, model::checkpoint_flows(fabric, transfer));
      out.every = placed.checkpoint.every;
      out.asynchronous = placed.checkpoint.asynchronous;
      if (out.asynchronous)
        out.copy_s = static_cast<double>(placed.checkpoint.bytes.count) /
                     placed.checkpoint.copy_rate.bytes_per_s();
    }
    if (placed.ingest.bytes.count > 0) {
      transfer.bytes_per_gpu = placed.ingest.bytes;
      WEFT_TRY(out.ingest, model::ingest_flows(fabric, transfer));
      out.prefetch = placed.ingest.prefetch;
    }
    if (out.start.lead_s > 0 || !out.checkpoint.empty() || !out.ingest.empty())
      graphs[g].front_end = std::move(out);
  }
  return {};
}

void add_front_end_times(const std::string& job, const engine::FrontEndResult& result,
                         model::TrainingOutcome& out, std::vector<model::Note>& notes) {
  if (result.start_up_s > 0) out.bootstrap_s = result.start_up_s;
  out.start_s = result.start_s;
  out.ingest_s = mean_of(result.ingest_s);
  if (!result.ingest_s.empty())
    out.ingest_stall_s = result.ingest_stall_s.empty() ? 0 : result.ingest_stall_s.back();
  out.checkpoint_s = mean_of(result.checkpoint_s);
  out.checkpoints = result.checkpoint_stall_s.size();
  out.checkpoint_stall_s = mean_of(result.checkpoint_stall_s);
  if (out.ingest_stall_s > 0)
    notes.push_back({model::Note::Severity::warning,
                     fmt::format("{}: the data for one step takes {:.3g} s over the front end: "
                                 "training waits {:.3g} s of a step for its input",
                                 job, out.ingest_s, out.ingest_stall_s)});
}

}  // namespace weft::plan
