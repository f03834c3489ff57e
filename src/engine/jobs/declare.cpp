#include "engine/jobs/declare.hpp"

#include <fmt/format.h>

#include <map>
#include <tuple>

namespace weft::engine {
namespace {

using model::Operation;

// Messages that an exchange may have: 512 ranks; more than a controller's tables hold.
constexpr std::size_t exchange_flows_max = std::size_t{1} << 18;
// A controller has no interest in what takes no bandwidth.
constexpr double least_bytes = 4096;

// What may be under way together: a stage of the collectives (from 1), or an operation in a
// dimension; and which round of an exchange (from 1).
using Kind = std::tuple<std::uint32_t, model::Dimension, model::CollectiveOp, std::uint32_t>;
using Calls = std::map<std::pair<std::uint32_t, model::CollectiveOp>, double>;

class Declaration {
 public:
  explicit Declaration(const route::Router& router) : router_(router) {}

  void add(const Job& job) {
    for (std::uint32_t s = 0; s < job.traffic.stages.size(); ++s)
      add(job.traffic.stages[s],
          {s + 1, model::Dimension::other, model::CollectiveOp::all_reduce, 0});
  }

  void add(const GraphJob& job) {
    workload::Calls calls(router_.fabric(), job.library, job.algorithms);
    const model::OpGraph& graph = *job.graph;
    Calls largest;
    for (std::uint32_t a = 0; a < graph.actors.size(); ++a)
      for (const Operation& o : graph.programs[graph.actors[a].program].operations) {
        if (o.bytes <= least_bytes) continue;
        if (o.kind == Operation::Kind::send) add_messages(job, a, o);
        if (o.kind != Operation::Kind::collective) continue;
        double& bytes =
            largest[{graph.memberships[graph.actors[a].group_first + o.slot], o.collective}];
        bytes = std::max(bytes, o.bytes);
      }
    for (const auto& [call, bytes] : largest) {
      const model::RankGroup& group = graph.groups[call.first];
      for (std::uint32_t r = 0; r < group.rows && group.size() > 1; ++r) {
        std::vector<NodeId> gpus;
        for (const std::uint32_t rank : group.row(r)) gpus.push_back(job.ranks[rank]);
        const std::string algorithm = calls.plan(gpus, call.second, bytes).algorithm;
        for (const workload::Stage& stage :
             calls.traffic(gpus, call.second, bytes, algorithm).stages)
          add(stage, {0, group.dimension, call.second, 0});
      }
    }
  }

  FlowKinds finish() {
    FlowKinds out;
    for (const auto& [kind, flows] : groups_) {
      out.kinds.push_back({.name = name_of(kind), .flows = {}});
      for (const auto& [ends, bytes] : flows)
        out.kinds.back().flows.push_back({ends.first, ends.second, bytes});
    }
    if (left_out_ > 0)
      out.notes.push_back(
          {model::Note::Severity::warning,
           fmt::format("{} exchanges of more than {} messages were not declared: no "
                       "paths are assigned to them, and their QPs share evenly",
                       left_out_, exchange_flows_max)});
    return out;
  }

 private:
  using Ends = std::pair<NodeId, NodeId>;

  static std::string name_of(const Kind& kind) {
    const auto& [stage, dimension, op, round] = kind;
    std::string name = stage > 0 ? fmt::format("stage {}", stage)
                                 : fmt::format("{} {}", to_text(dimension), workload::to_text(op));
    if (round > 0) name += fmt::format(" round {}", round);
    return name;
  }

  void add(const workload::Stage& stage, const Kind& kind) {
    for (const workload::Chain& chain : stage.chains)
      for (const workload::Edge& edge : chain.edges) add(kind, edge.from, edge.to, edge.bytes);
    for (const workload::Edge& flow : stage.flows) add(kind, flow.from, flow.to, flow.bytes);
    for (const workload::Exchange& exchange : stage.exchanges) {
      if (std::size_t{exchange.size()} * exchange.round_count() > exchange_flows_max) {
        ++left_out_;
        continue;
      }
      add(exchange, kind);
    }
  }

  // Each round is a permutation. Shared evenly by itself, it is so too beside others.
  void add(const workload::Exchange& exchange, Kind kind) {
    for (std::uint32_t round = exchange.first_round; round < exchange.end_round; ++round) {
      std::get<3>(kind) = round;
      for (std::uint32_t from = 0; from < exchange.size(); ++from) {
        const std::uint32_t to = exchange.receiver(from, round);
        add(kind, exchange.ranks[from], exchange.ranks[to], exchange.bytes(from, to));
      }
    }
  }

  void add_messages(const GraphJob& job, std::uint32_t actor, const Operation& send) {
    const model::OpGraph& graph = *job.graph;
    const std::uint32_t peer = graph.peers[graph.actors[actor].peer_first + send.slot];
    for (std::uint32_t k = 0; k < graph.ranks_per_actor; ++k) {
      const NodeId from = job.ranks[graph.ranks_of(actor)[k]];
      const NodeId to = job.ranks[graph.ranks_of(peer)[k]];
      double& bytes = groups_[{0, send.dimension, model::CollectiveOp::send_recv, 0}][{from, to}];
      bytes = std::max(bytes, send.bytes);
    }
  }

  // Channels and trees of one call share a pair, so that their bytes add up.
  void add(const Kind& kind, NodeId from, NodeId to, double bytes) {
    const auto is_gpu = [&](NodeId node) {
      return router_.fabric().kind(node) == model::NodeKind::gpu;
    };
    if (bytes > 0 && is_gpu(from) && is_gpu(to)) groups_[kind][{from, to}] += bytes;
  }

  const route::Router& router_;
  std::map<Kind, std::map<Ends, double>> groups_;
  std::size_t left_out_ = 0;
};

}  // namespace

FlowKinds flow_kinds(const Work& work, const route::Router& router) {
  Declaration declaration(router);
  for (const Job& job : work.jobs) declaration.add(job);
  for (const GraphJob& job : work.graphs) declaration.add(job);
  return declaration.finish();
}

std::vector<model::Note> declare_flows(const Work& work, route::Router& router) {
  if (!router.listens()) return {};
  FlowKinds kinds = flow_kinds(work, router);
  for (const FlowKind& kind : kinds.kinds) router.declare(kind.flows);
  return std::move(kinds.notes);
}

}  // namespace weft::engine
