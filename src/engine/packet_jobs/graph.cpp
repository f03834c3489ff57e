#include "engine/packet_jobs/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "base/check.hpp"
#include "engine/packet_jobs/estimate.hpp"

namespace weft::engine::packet {
namespace {

using engine::GraphJob;
using model::Operation;
using Kind = model::Operation::Kind;

constexpr std::uint32_t none = UINT32_MAX;
constexpr std::uint32_t steady_iterations = 2;

// Calls of one group that are alike; one collective per row.
struct GroupCall {
  std::vector<std::vector<NodeId>> ranks;
  std::vector<workload::Traffic> traffic;
  std::vector<std::optional<workload::CallCost>> costs;
  std::vector<CollectiveLowering> rows;
};

class GraphLowering {
 public:
  GraphLowering(const GraphJob& job, const model::State& state, route::Router& router,
                MessageGraph& out, double share)
      : job_(job),
        graph_(*job.graph),
        state_(state),
        router_(router),
        fabric_(router.fabric()),
        width_(width_of(router)),
        delay_ns_(static_cast<std::uint32_t>((job.step_overhead.ps + 500) / 1000)),
        calls_of_library_(fabric_, job.library, job.algorithms),
        out_(out) {
    lowered_.share = share;
  }

  Result<LoweredGraph> lower(double messages);

 private:
  using CallKey = std::tuple<std::uint32_t, model::CollectiveOp, double>;  // group, op, bytes
  struct Member {
    std::uint32_t actor, operation;
  };
  struct Peer {  // connections between the ranks of two actors, and back for grants
    std::vector<std::uint32_t> bases;
    std::vector<std::uint32_t> delay_ns;  // of messages on these
    std::uint32_t grants;
  };

  const model::Program& program(std::uint32_t actor) const {
    return graph_.programs[graph_.actors[actor].program];
  }
  NodeId gpu(std::uint32_t rank) const { return job_.ranks[rank]; }
  NodeId home(std::uint32_t actor) const { return gpu(graph_.ranks_of(actor).front()); }
  std::uint32_t group_of(std::uint32_t actor, const Operation& o) const {
    return graph_.memberships[graph_.actors[actor].group_first + o.slot];
  }
  MessageId& ready(std::uint32_t actor, std::uint32_t operation) {
    return lowered_.ready[row_ + lowered_.first[actor] + operation];
  }
  MessageId& end(std::uint32_t actor, std::uint32_t operation) {
    return lowered_.end[row_ + lowered_.first[actor] + operation];
  }

  void number_operations();
  void prepare_calls();
  double count_messages() const;
  void add_bytes(model::Dimension dimension, NodeId from, NodeId to, double bytes);
  void add_bytes(model::Dimension dimension, const workload::Traffic& traffic);
  void lower_iteration(std::uint32_t iteration, std::span<const MessageEvent> starts);
  void lower_compute(std::uint32_t actor, std::uint32_t operation);
  void lower_message(std::uint32_t actor, std::uint32_t operation, std::uint32_t iteration);
  void lower_call(std::span<const Member> members, std::uint32_t iteration);
  void add_dependencies(std::uint32_t actor, MessageEvent start);
  MessageId absent(std::uint32_t rank);
  Peer& peer_of(std::uint32_t actor, std::uint32_t slot, std::uint32_t other);

  const GraphJob& job_;
  const model::OpGraph& graph_;
  const model::State& state_;
  route::Router& router_;
  const model::Fabric& fabric_;
  MessageWidth width_;
  std::uint32_t delay_ns_;
  workload::Calls calls_of_library_;
  MessageGraph& out_;
  LoweredGraph lowered_;
  std::size_t row_ = 0;                     // of the iteration's first operation
  std::vector<std::vector<Member>> calls_;  // by meeting; empty: of a message
  std::map<CallKey, GroupCall> collectives_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Peer> peers_;  // by actor and slot
  std::map<std::uint32_t, MessageId> absent_;                      // by rank
};

// Numbers operations, and those that meet.
void GraphLowering::number_operations() {
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
    lowered_.first.push_back(lowered_.operations);
    lowered_.slowest.push_back(job_.slowest_of(a, state_, fabric_));
    lowered_.operations += static_cast<std::uint32_t>(program(a).operations.size());
  }
  lowered_.meeting.assign(lowered_.operations, none);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;  // group and call
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a)
    for (std::uint32_t i = 0; i < program(a).operations.size(); ++i) {
      const Operation& o = program(a).operations[i];
      std::uint32_t& meeting = lowered_.meeting[lowered_.first[a] + i];
      const auto fresh = static_cast<std::uint32_t>(calls_.size());
      if (o.kind == Kind::send) {
        const std::uint32_t peer = graph_.peers[graph_.actors[a].peer_first + o.slot];
        meeting = lowered_.meeting[lowered_.first[peer] + program(a).match[i]] = fresh;
        calls_.emplace_back();
      } else if (o.kind == Kind::collective) {
        meeting = known.try_emplace({group_of(a, o), program(a).match[i]}, fresh).first->second;
        if (meeting == fresh) calls_.emplace_back();
        calls_[meeting].push_back({a, i});
      }
    }
}

void GraphLowering::prepare_calls() {
  for (const std::vector<Member>& members : calls_) {
    if (members.empty()) continue;
    const Operation& o = program(members[0].actor).operations[members[0].operation];
    const std::uint32_t group = group_of(members[0].actor, o);
    const model::RankGroup& ranks = graph_.groups[group];
    GroupCall& call = collectives_[{group, o.collective, o.bytes}];
    if (call.traffic.empty())
      for (std::uint32_t r = 0; r < ranks.rows; ++r) {
        std::vector<NodeId>& gpus = call.ranks.emplace_back();
        for (const std::uint32_t rank : ranks.row(r)) gpus.push_back(gpu(rank));
        const auto planned = calls_of_library_.plan(gpus, o.collective, o.bytes);
        call.costs.push_back(planned.cost);
        call.traffic.push_back(
            calls_of_library_.traffic(gpus, o.collective, o.bytes, planned.algorithm));
      }
    for (const workload::Traffic& traffic : call.traffic) add_bytes(o.dimension, traffic);
  }
  for (auto& [key, call] : collectives_)
    for (std::size_t r = 0; r < call.traffic.size(); ++r)
      scale(lowered_.share, call.traffic[r], call.costs[r]);
  for (const std::string& note : calls_of_library_.notes())
    lowered_.notes.push_back(fmt::format("job {}: {}", job_.name, note));
}

void GraphLowering::add_bytes(model::Dimension dimension, NodeId from, NodeId to, double bytes) {
  const model::Distance distance = engine::distance_between(fabric_, from, to);
  lowered_.bytes[static_cast<std::size_t>(dimension)][static_cast<std::size_t>(distance)] += bytes;
}

void GraphLowering::add_bytes(model::Dimension dimension, const workload::Traffic& traffic) {
  const auto add = [&](const workload::Edge& edge) {
    add_bytes(dimension, edge.from, edge.to, edge.bytes);
  };
  for (const workload::Stage& stage : traffic.stages) {
    for (const workload::Chain& chain : stage.chains) std::ranges::for_each(chain.edges, add);
    std::ranges::for_each(stage.flows, add);
    for (const workload::Exchange& exchange : stage.exchanges)
      exchange.for_each_message(
          [&](NodeId from, NodeId to, double bytes) { add_bytes(dimension, from, to, bytes); });
  }
}

// Of one iteration, or somewhat more.
double GraphLowering::count_messages() const {
  double count = 2.0 * lowered_.operations + static_cast<double>(graph_.actors.size());
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a)
    for (const Operation& o : program(a).operations)
      if (o.kind == Kind::send) count += graph_.ranks_per_actor * (width_.parts + 1.0) + 1;
  for (const std::vector<Member>& members : calls_) {
    if (members.empty()) continue;
    const Operation& o = program(members[0].actor).operations[members[0].operation];
    const GroupCall& call = collectives_.at({group_of(members[0].actor, o), o.collective, o.bytes});
    for (const workload::Traffic& traffic : call.traffic)
      count += message_count(traffic, call.ranks[0].size(), router_);
  }
  return count;
}

void GraphLowering::lower_compute(std::uint32_t actor, std::uint32_t operation) {
  const model::Program& source = program(actor);
  const double slowdown = job_.slowdown(state_, fabric_, lowered_.slowest[actor]);
  double folded = 0;
  for (const model::Folded& f : source.folded)
    if (f.operation == operation) folded += f.seconds;
  const double own = source.operations[operation].seconds - folded;
  const MessageEvent event{ready(actor, operation)};
  end(actor, operation) = out_.add_join(home(actor), {&event, 1},
                                        from_seconds((own * slowdown + folded) * lowered_.share));
}

GraphLowering::Peer& GraphLowering::peer_of(std::uint32_t actor, std::uint32_t slot,
                                            std::uint32_t other) {
  const auto [found, is_new] = peers_.try_emplace({actor, slot});
  if (!is_new) return found->second;
  const auto from = graph_.ranks_of(actor), to = graph_.ranks_of(other);
  for (std::size_t r = 0; r < from.size(); ++r) {
    const NodeId sender = gpu(from[r]), receiver = gpu(to[r]);
    found->second.bases.push_back(out_.add_connections(sender, receiver, width_.connections));
    found->second.delay_ns.push_back(delay_ns_ + omitted_ns(sender, receiver, router_));
  }
  found->second.grants = out_.add_connections(home(other), home(actor), 1);
  return found->second;
}

// A send with its recv.
void GraphLowering::lower_message(std::uint32_t actor, std::uint32_t operation,
                                  std::uint32_t iteration) {
  const Operation& o = program(actor).operations[operation];
  const std::uint32_t other = graph_.peers[graph_.actors[actor].peer_first + o.slot];
  const std::uint32_t counterpart = program(actor).match[operation];
  const Peer& peer = peer_of(actor, o.slot, other);
  const MessageId grant = out_.add({peer.grants, grant_bytes});
  out_.wait(grant, {ready(other, counterpart)});
  const MessageEvent both[] = {{ready(actor, operation)}, {grant}};
  std::vector<MessageEvent> sent, received;
  for (std::size_t r = 0; r < peer.bases.size(); ++r) {
    const MessageId first = add_split(
        {peer.bases[r], o.bytes * lowered_.share, 0, 1, iteration, peer.delay_ns[r]}, width_, out_);
    out_.wait_all(first, width_.parts, both, home(actor));
    for (std::uint32_t p = 0; p < width_.parts; ++p) {
      sent.push_back({first + p, MessageEvent::When::acknowledged});
      received.push_back({first + p});
    }
    if (iteration == 0)
      add_bytes(o.dimension, gpu(graph_.ranks_of(actor)[r]), gpu(graph_.ranks_of(other)[r]),
                o.bytes);
  }
  lowered_.phases.push_back({grant, out_.size()});
  end(actor, operation) = out_.add_join(home(actor), sent);
  end(other, counterpart) = out_.add_join(home(other), received);
}

// A rank that is in groups, but not in the graph, is always ready.
MessageId GraphLowering::absent(std::uint32_t rank) {
  const auto [found, is_new] = absent_.try_emplace(rank);
  if (is_new) {
    found->second = out_.add_join(gpu(rank), {});
    out_.not_before(found->second, job_.start);
  }
  return found->second;
}

// All members of one call. An actor has ended it when all its ranks have.
void GraphLowering::lower_call(std::span<const Member> members, std::uint32_t iteration) {
  const Operation& o = program(members[0].actor).operations[members[0].operation];
  const std::uint32_t group = group_of(members[0].actor, o);
  const model::RankGroup& ranks = graph_.groups[group];
  GroupCall& call = collectives_.at({group, o.collective, o.bytes});
  if (call.rows.empty())
    for (std::uint32_t r = 0; r < ranks.rows; ++r)
      call.rows.emplace_back(call.traffic[r], call.ranks[r], job_.step_overhead, call.costs[r],
                             router_, out_, lowered_.share < 1);
  std::map<std::uint32_t, std::size_t> member_of;  // by rank
  for (std::size_t m = 0; m < members.size(); ++m)
    for (const std::uint32_t rank : graph_.ranks_of(members[m].actor)) member_of[rank] = m;
  std::vector<std::vector<MessageEvent>> ends(members.size());
  std::vector<MessageId> parts;
  for (std::uint32_t r = 0; r < ranks.rows; ++r) {
    std::vector<MessageEvent> after;
    for (const std::uint32_t rank : ranks.row(r)) {
      const auto found = member_of.find(rank);
      after.push_back({found == member_of.end() ? absent(rank)
                                                : ready(members[found->second].actor,
                                                        members[found->second].operation)});
    }
    const MessageId first = out_.size();
    const std::vector<MessageId> done = call.rows[r].append(after, iteration, parts);
    lowered_.phases.push_back({first, out_.size()});
    for (std::size_t i = 0; i < done.size(); ++i)
      if (const auto found = member_of.find(ranks.row(r)[i]); found != member_of.end())
        ends[found->second].push_back({done[i]});
  }
  for (std::size_t m = 0; m < members.size(); ++m)
    end(members[m].actor, members[m].operation) = out_.add_join(home(members[m].actor), ends[m]);
}

void GraphLowering::add_dependencies(std::uint32_t actor, MessageEvent start) {
  const model::Program& source = program(actor);
  std::map<std::uint8_t, std::uint32_t> last;  // by stream
  std::vector<bool> awaited(source.operations.size(), false);
  const auto wait = [&](std::uint32_t operation, std::uint32_t before) {
    out_.wait(ready(actor, operation), {end(actor, before)});
    awaited[before] = true;
  };
  for (std::uint32_t i = 0; i < source.operations.size(); ++i) {
    const Operation& o = source.operations[i];
    for (std::uint32_t a = 0; a < o.after_count; ++a) wait(i, source.after[o.after_first + a]);
    if (o.stream != 0) {
      const auto [found, is_first] = last.try_emplace(o.stream, i);
      if (!is_first) wait(i, std::exchange(found->second, i));
    }
    if (o.after_count == 0) out_.wait(ready(actor, i), start);
  }
  std::vector<MessageEvent> sinks{start};
  for (std::uint32_t i = 0; i < source.operations.size(); ++i)
    if (!awaited[i]) sinks.push_back({end(actor, i)});
  lowered_.actor_end.push_back(out_.add_join(home(actor), sinks));
}

void GraphLowering::lower_iteration(std::uint32_t iteration, std::span<const MessageEvent> starts) {
  row_ = std::size_t{iteration} * lowered_.operations;
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a)
    for (std::uint32_t i = 0; i < program(a).operations.size(); ++i)
      ready(a, i) = out_.add_join(home(a), {});
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a)
    for (std::uint32_t i = 0; i < program(a).operations.size(); ++i) {
      const Kind kind = program(a).operations[i].kind;
      if (kind == Kind::compute) lower_compute(a, i);
      if (kind == Kind::send) lower_message(a, i, iteration);
    }
  for (const std::vector<Member>& members : calls_)
    if (!members.empty()) lower_call(members, iteration);
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) add_dependencies(a, starts[a]);
}

Result<LoweredGraph> GraphLowering::lower(double messages) {
  WEFT_TRY_STATUS(check_overhead(job_.step_overhead));
  lowered_.iterations = job_.stop == GraphJob::Stop::steady ? steady_iterations : job_.iterations;
  number_operations();
  prepare_calls();
  WEFT_TRY_STATUS(check_message_count(messages + count_messages() * lowered_.iterations));
  lowered_.ready.resize(std::size_t{lowered_.operations} * lowered_.iterations);
  lowered_.end.resize(lowered_.ready.size());
  lowered_.messages_first = out_.size();
  std::vector<MessageEvent> starts;
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
    starts.push_back({out_.add_join(home(a), {})});
    out_.not_before(starts.back().message, job_.start);
  }
  for (std::uint32_t i = 0; i < lowered_.iterations; ++i) {
    lower_iteration(i, starts);
    for (std::uint32_t a = 0; a < graph_.actors.size(); ++a)
      starts[a] = {lowered_.actor_end[lowered_.actor_end.size() - graph_.actors.size() + a]};
  }
  lowered_.messages_last = out_.size();
  return std::move(lowered_);
}

}  // namespace

Result<LoweredGraph> lower_graph(const GraphJob& job, const model::State& state,
                                 route::Router& router, double messages, MessageGraph& graph,
                                 double share) {
  return GraphLowering(job, state, router, graph, share).lower(messages);
}

}  // namespace weft::engine::packet
