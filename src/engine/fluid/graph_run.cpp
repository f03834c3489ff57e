#include "engine/fluid/graph_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.hpp"

namespace weft::engine::fluid {

using model::Operation;
using Kind = model::Operation::Kind;

// What all actors of a program share: the reverse of Program::after.
struct GraphRun::Program {
  const model::Program* source = nullptr;
  std::vector<std::uint32_t> next_first, next;    // operations that wait for each
  std::vector<double> folded_s;                   // by operation; empty where nothing is folded
  std::uint32_t streams = 0;                      // 1 + highest
  std::uint32_t slots = 0;                        // groups of an actor
  std::vector<std::vector<std::uint32_t>> calls;  // by slot: operations in order of call
};

GraphRun::GraphRun(const GraphJob& job, std::uint32_t index, const Surroundings& surroundings)
    : job_(job),
      graph_(*job.graph),
      index_(index),
      network_(surroundings.network),
      player_(surroundings.player),
      steadiness_(surroundings.steadiness),
      served_(surroundings.served),
      library_calls_(network_.fabric(), job.library, job.algorithms) {
  if (job_.stop == GraphJob::Stop::steady) steadiness_.expect();
  WEFT_CHECK(job_.ranks.size() == graph_.rank_count);
  WEFT_CHECK(index_ < 1024 && graph_.actors.size() < timer_begin);
  if (job_.front_end)
    front_end_.emplace(
        *job_.front_end,
        owner_tag(Owner::front_end, std::uint64_t{index_} << (actor_bits + operation_bits)),
        job_.iterations, network_);
  prepare();
}

GraphRun::~GraphRun() = default;

std::uint64_t GraphRun::tag(std::uint32_t actor, std::uint64_t operation) const {
  return owner_tag(Owner::graph,
                   (std::uint64_t{index_} << actor_bits | actor) << operation_bits | operation);
}

const Operation& GraphRun::op(std::uint32_t actor, std::uint32_t operation) const {
  return graph_.programs[graph_.actors[actor].program].operations[operation];
}

const GraphRun::Program& GraphRun::program(std::uint32_t actor) const {
  return programs_[graph_.actors[actor].program];
}

std::uint32_t GraphRun::call_operation(std::uint32_t actor, std::uint32_t slot,
                                       std::uint32_t number) const {
  return program(actor).calls[slot][number];
}

void GraphRun::prepare() {
  for (const model::Program& source : graph_.programs) {
    Program& program = programs_.emplace_back();
    program.source = &source;
    const std::size_t count = source.operations.size();
    WEFT_CHECK(count < (std::size_t{1} << operation_bits));
    program.next_first.assign(count + 1, 0);
    for (const std::uint32_t before : source.after) ++program.next_first[before + 1];
    for (std::size_t i = 0; i < count; ++i) program.next_first[i + 1] += program.next_first[i];
    program.next.resize(source.after.size());
    std::vector<std::uint32_t> fill(program.next_first.begin(), program.next_first.end() - 1);
    for (std::uint32_t i = 0; i < count; ++i) {
      const Operation& o = source.operations[i];
      for (std::uint32_t a = 0; a < o.after_count; ++a)
        program.next[fill[source.after[o.after_first + a]]++] = i;
      program.streams = std::max(program.streams, o.stream + 1u);
      if (o.kind != Kind::collective) continue;
      program.slots = std::max(program.slots, o.slot + 1);
      program.calls.resize(program.slots);
      program.calls[o.slot].push_back(i);
    }
    if (!source.folded.empty()) program.folded_s.assign(count, 0);
    for (const model::Folded& f : source.folded) program.folded_s[f.operation] += f.seconds;
  }
  std::uint32_t rows = 0, streams = 0;
  groups_.resize(graph_.groups.size());
  for (std::uint32_t a = 0; a < graph_.actors.size(); ++a) {
    const Program& program = this->program(a);
    ActorState& state = actors_.emplace_back();
    state.first = rows;
    state.first_stream = streams;
    rows += static_cast<std::uint32_t>(program.source->operations.size());
    streams += program.streams;
    for (std::uint32_t s = 0; s < program.slots; ++s) {
      GroupState& group = groups_[graph_.memberships[graph_.actors[a].group_first + s]];
      group.actors.push_back(a);
      group.slots.push_back(s);
    }
  }
  std::uint32_t calls = 0;
  for (GroupState& group : groups_) {
    group.first = calls;
    if (!group.actors.empty())
      calls += static_cast<std::uint32_t>(
          program(group.actors.front()).calls[group.slots.front()].size());
  }
  phase_.resize(rows);
  left_.resize(rows);
  ready_s_.resize(rows);
  start_s_.resize(rows);
  end_s_.resize(rows);
  streams_.resize(streams);
  compute_.resize(streams);
  arrived_.resize(calls);
  last_actor_.resize(calls);
  before_last_s_.resize(calls);
  peer_routes_.resize(graph_.peers.size());
}

void GraphRun::begin() {
  network_.timer(job_.start.seconds(), tag(static_cast<std::uint32_t>(timer_begin), 0));
}

// The step before has ended; this one begins when it has its data.
void GraphRun::ask_iteration() {
  iteration_start_s_ = network_.now();
  if (!front_end_) return begin_iteration();
  const bool first = await_ == Await::nothing && iteration_ == 0;
  await_ = first ? Await::start : Await::data;
  await_since_s_ = iteration_start_s_;
  if (first) front_end_->begin();
  proceed();
}

void GraphRun::on_front_end(std::uint64_t value) {
  front_end_->on_event(value);
  proceed();
}

// Goes on where the front end lets it.
void GraphRun::proceed() {
  FrontEndResult& times = front_end_->result;
  const double waited = network_.now() - await_since_s_;
  switch (await_) {
    case Await::nothing:
      return;
    case Await::start:
      if (!front_end_->started() || !front_end_->has_data()) return;
      times.start_s = waited;
      iteration_start_s_ = network_.now();
      break;
    case Await::data:
      if (!front_end_->has_data()) return;
      times.ingest_stall_s.push_back(waited);
      break;
    case Await::checkpoint:
      if (front_end_->checkpoint_blocks()) return;
      times.checkpoint_stall_s.push_back(waited);
      return go_on(was_last_);
    case Await::end:
      if (!front_end_->idle()) return;
      await_ = Await::nothing;
      result_.end_s = network_.now();
      result_.finished = true;
      return;
  }
  await_ = Await::nothing;
  front_end_->take_data();
  begin_iteration();
}

// After a step and the checkpoint behind it.
void GraphRun::go_on(bool last) {
  await_ = Await::nothing;
  if (!last) return network_.timer(network_.now(), tag(static_cast<std::uint32_t>(timer_begin), 0));
  if (!front_end_) {
    result_.finished = true;
    return;
  }
  front_end_->stop_fetching();
  await_ = Await::end;
  proceed();
}

void GraphRun::begin_iteration() {
  WEFT_CHECK(!iterating_ && !working_);
  iterating_ = true;
  operations_begin_s_ = network_.now();
  operations_ended_ = 0;
  std::ranges::fill(arrived_, 0);
  std::ranges::fill(phase_, Phase::waiting);
  waits_.clear();
  for (std::uint32_t a = 0; a < actors_.size(); ++a) {
    ActorState& state = actors_[a];
    state.busy_until_s = network_.now();
    state.compute_s = 0;
    const auto& operations = program(a).source->operations;
    for (std::uint32_t o = 0; o < operations.size(); ++o)
      left_[state.first + o] = operations[o].after_count;
  }
  current_ = {};
  for (std::uint32_t a = 0; a < actors_.size(); ++a) {
    const auto& operations = program(a).source->operations;
    for (std::uint32_t o = 0; o < operations.size(); ++o)
      if (operations[o].after_count == 0) become_ready(a, o);
  }
  run_worklist();
}

void GraphRun::end_iteration() {
  WEFT_CHECK(iterating_ && worklist_.empty() && operations_ended_ == phase_.size());
  for (const ActorState& state : actors_) WEFT_CHECK(state.communicating == 0);
  for (const Stream& stream : streams_) WEFT_CHECK(stream.running == none && stream.queue.empty());
  iterating_ = false;
  if (ran_beyond_others()) {
    ++result_.discarded_iterations;
    result_.end_s = network_.now();
    return after_step(true);
  }
  account_iteration();
  record_spans();
  accept_iteration();
  after_step(was_last_iteration());
}

void GraphRun::after_step(bool last) {
  if (!front_end_ || !front_end_->checkpoint_due(iteration_, last)) return go_on(last);
  was_last_ = last;
  await_ = Await::checkpoint;
  await_since_s_ = network_.now();
  front_end_->begin_checkpoint();
  proceed();
}

// What has been found out about the iteration becomes part of the result.
void GraphRun::accept_iteration() {
  WEFT_CHECK(network_.now() >= iteration_start_s_);
  current_.iteration_s = std::move(result_.iteration_s);
  current_.iteration_s.push_back(network_.now() - iteration_start_s_);
  current_.end_s = network_.now();
  for (std::size_t d = 0; d < current_.bytes.size(); ++d)
    for (std::size_t k = 0; k < current_.bytes[d].size(); ++k)
      current_.bytes[d][k] += result_.bytes[d][k];
  result_ = std::move(current_);
}

// An iteration during which others stopped: it says nothing.
bool GraphRun::ran_beyond_others() const {
  if (job_.stop == GraphJob::Stop::steady) return steadiness_.all();
  return job_.stop == GraphJob::Stop::served && !result_.iteration_s.empty() && served_();
}

bool GraphRun::was_last_iteration() {
  constexpr double same = 1e-3;
  const std::vector<double>& times = result_.iteration_s;
  if (job_.stop == GraphJob::Stop::steady && !steady_ && times.size() > 1) {
    const double change = std::abs(times.back() - times[times.size() - 2]);
    steady_ = change <= same * times.back() && !network_.changes_after(iteration_start_s_);
    if (steady_) steadiness_.reached();
  }
  if (job_.stop == GraphJob::Stop::served && served_()) return true;
  return ++iteration_ == job_.iterations || (steady_ && steadiness_.all());
}

// ---- readiness

void GraphRun::become_ready(std::uint32_t actor, std::uint32_t operation) {
  worklist_.push_back({actor, operation});
}

// What became ready is started in turn, and not from within what made it ready: chains of empty
// operations are a loop and no recursion.
void GraphRun::run_worklist() {
  if (working_) return;
  working_ = true;
  while (work_done_ < worklist_.size()) {
    const Work work = worklist_[work_done_++];
    if (may_start(work.actor, work.operation)) start(work.actor, work.operation);
  }
  worklist_.clear();
  work_done_ = 0;
  working_ = false;
  if (iterating_ && operations_ended_ == phase_.size()) end_iteration();
}

// Notes that the operation is ready, and takes the stream for it if that is free.
bool GraphRun::may_start(std::uint32_t actor, std::uint32_t operation) {
  const std::uint32_t at = row(actor, operation);
  const std::uint8_t stream = op(actor, operation).stream;
  WEFT_CHECK(phase_[at] == Phase::waiting || phase_[at] == Phase::ready);
  phase_[at] = Phase::ready;
  ready_s_[at] = network_.now();  // again, later, if it has to queue for its stream
  if (stream == 0) return true;
  Stream& s = streams_[actors_[actor].first_stream + stream];
  if (s.running == operation) return true;  // handed on by the one before
  if (s.running == none) {
    s.running = operation;
    return true;
  }
  s.queue.push_back(operation);
  return false;
}

void GraphRun::start(std::uint32_t actor, std::uint32_t operation) {
  const Operation& o = op(actor, operation);
  switch (o.kind) {
    case Kind::compute:
      return start_compute(actor, operation);
    case Kind::collective:
      return arrive(actor, operation);
    case Kind::send:
    case Kind::recv:
      break;
  }
  const std::uint32_t peer = graph_.peers[graph_.actors[actor].peer_first + o.slot];
  const std::uint32_t match = program(actor).source->match[operation];
  if (phase_[row(peer, match)] != Phase::ready) return;
  // A stream may still hold the counterpart back; it comes here itself when it starts.
  const std::uint8_t stream = op(peer, match).stream;
  if (stream != 0 && streams_[actors_[peer].first_stream + stream].running != match) return;
  if (o.kind == Kind::send) {
    start_message(actor, operation);
  } else {
    start_message(peer, match);
  }
}

void GraphRun::end_operation(std::uint32_t actor, std::uint32_t operation) {
  const std::uint32_t at = row(actor, operation);
  WEFT_CHECK(phase_[at] == Phase::running);
  phase_[at] = Phase::ended;
  end_s_[at] = network_.now();
  ++operations_ended_;
  const Program& shared = program(actor);
  for (std::uint32_t n = shared.next_first[operation]; n < shared.next_first[operation + 1]; ++n)
    if (--left_[row(actor, shared.next[n])] == 0) become_ready(actor, shared.next[n]);
  const std::uint8_t stream = shared.source->operations[operation].stream;
  if (stream != 0) {
    Stream& s = streams_[actors_[actor].first_stream + stream];
    s.running = none;
    if (s.next < s.queue.size()) {
      s.running = s.queue[s.next++];
      left_[row(actor, s.running)] = operation + 1;  // see last_dependency()
      worklist_.push_back({actor, s.running});
    } else {
      s.queue.clear();
      s.next = 0;
    }
  }
}

// ---- compute

// The slowest GPU of the actor sets its pace.
double GraphRun::slowdown(std::uint32_t actor) {
  if (slowdown_round_ != network_.state_round()) {
    slowdown_round_ = network_.state_round();
    const bool alike = network_.state().troubled_nodes().empty() && job_.compute_factor.empty();
    slowdown_.assign(actors_.size(), alike ? 1 : 0);
    if (!alike)
      for (std::uint32_t a = 0; a < actors_.size(); ++a)
        for (const std::uint32_t rank : graph_.ranks_of(a))
          slowdown_[a] =
              std::max(slowdown_[a], job_.slowdown(network_.state(), network_.fabric(), rank));
  }
  return slowdown_[actor];
}

void GraphRun::start_compute(std::uint32_t actor, std::uint32_t operation) {
  const std::uint32_t at = row(actor, operation);
  const Program& shared = program(actor);
  if (network_.now() > actors_[actor].busy_until_s) account_gap(actor, operation, network_.now());
  const double folded = shared.folded_s.empty() ? 0 : shared.folded_s[operation];
  const double total = shared.source->operations[operation].seconds;
  const double seconds = folded + (total - folded) * slowdown(actor);
  phase_[at] = Phase::running;
  start_s_[at] = network_.now();
  const std::uint8_t stream = shared.source->operations[operation].stream;
  const bool slowed = actors_[actor].communicating > 0 && job_.overlap_slowdown > 1;
  const double speed = slowed ? 1 / job_.overlap_slowdown : 1;
  const double due = network_.now() + seconds / speed;
  if (stream != 0)
    compute_[actors_[actor].first_stream + stream] = {operation, seconds, network_.now(), speed,
                                                      due};
  network_.timer(due, tag(actor, operation));
}

void GraphRun::on_timer(std::uint64_t value) {
  const auto operation = static_cast<std::uint32_t>(value & ((1u << operation_bits) - 1));
  const auto actor = static_cast<std::uint32_t>(value >> operation_bits & timer_begin);
  if (actor == timer_begin) return ask_iteration();
  const std::uint8_t stream = op(actor, operation).stream;
  if (phase_[row(actor, operation)] != Phase::running) return;
  if (stream != 0) {
    // An outdated timer of a computation that has since become slower or faster. The simulation
    // takes events for one that are closer than 1e-11 of the time, so this one may be early.
    const Compute& compute = compute_[actors_[actor].first_stream + stream];
    if (compute.operation != operation || compute.due_s > network_.now() * (1 + 1e-10)) return;
  }
  const double start = std::max(start_s_[row(actor, operation)], actors_[actor].busy_until_s);
  actors_[actor].compute_s += network_.now() - start;
  actors_[actor].busy_until_s = network_.now();
  end_operation(actor, operation);
  run_worklist();
}

// Communication of the actor begins (+1) or ends (-1).
void GraphRun::communicate(std::uint32_t actor, int change) {
  ActorState& state = actors_[actor];
  const bool before = state.communicating > 0;
  WEFT_CHECK(change > 0 || before);
  state.communicating += static_cast<std::uint32_t>(change);
  const bool after = state.communicating > 0;
  if (before == after || job_.overlap_slowdown <= 1) return;
  for (std::uint32_t s = 1; s < program(actor).streams; ++s) {
    Compute& compute = compute_[state.first_stream + s];
    if (compute.operation == none || phase_[row(actor, compute.operation)] != Phase::running)
      continue;
    compute.left_s =
        std::max(0.0, compute.left_s - (network_.now() - compute.since_s) * compute.speed);
    compute.since_s = network_.now();
    compute.speed = after ? 1 / job_.overlap_slowdown : 1;
    compute.due_s = network_.now() + compute.left_s / compute.speed;
    network_.timer(compute.due_s, tag(actor, compute.operation));
  }
}

// ---- messages

std::span<const RouteId> GraphRun::peer_routes(std::uint32_t actor, const Operation& operation) {
  const std::uint32_t slot = graph_.actors[actor].peer_first + operation.slot;
  PeerRoutes& entry = peer_routes_[slot];
  const std::uint32_t count = graph_.ranks_per_actor;
  if (!entry.known) {
    entry.known = true;
    entry.first = static_cast<std::uint32_t>(routes_.size());
    entry.dimension = operation.dimension;
    const route::RoutingConfig& config = network_.router().config();
    const std::uint32_t streams = config.message_mode == route::MessageMode::round_robin
                                      ? config.qps
                                      : network_.router().stream_count();
    for (std::uint32_t k = 0; k < count; ++k) {
      const NodeId from = job_.ranks[graph_.ranks_of(actor)[k]];
      const NodeId to = job_.ranks[graph_.ranks_of(graph_.peers[slot])[k]];
      const Part part{from, to, 0, streams, 0, 1};
      routes_.push_back(network_.add_route({&part, 1}, Wire::counted));
      entry.distance_share[static_cast<std::size_t>(distance(from, to))] += 1;
      const std::array ends{from, to};
      const auto call = library_calls_.plan(ends, model::CollectiveOp::send_recv, operation.bytes);
      if (!call.cost) continue;
      const double beyond = call.cost->lead_s - call.cost->path_s;
      entry.overhead_s = std::max(entry.overhead_s, beyond);
      entry.wire_bytes = std::max(entry.wire_bytes, call.cost->wire_bytes);
    }
  }
  return std::span(routes_).subspan(entry.first, count);
}

void GraphRun::start_message(std::uint32_t sender, std::uint32_t operation) {
  const Operation& o = op(sender, operation);
  const std::uint32_t at = row(sender, operation);
  const std::uint32_t peer = graph_.peers[graph_.actors[sender].peer_first + o.slot];
  const std::uint32_t match = row(peer, program(sender).source->match[operation]);
  for (const std::uint32_t r : {at, match}) {
    phase_[r] = Phase::running;
    start_s_[r] = network_.now();
  }
  left_[at] = graph_.ranks_per_actor;
  communicate(sender, 1);
  if (peer != sender) communicate(peer, 1);
  const std::span<const RouteId> routes = peer_routes(sender, o);
  PeerRoutes& entry = peer_routes_[graph_.actors[sender].peer_first + o.slot];
  auto& bytes = current_.bytes[static_cast<std::size_t>(o.dimension)];
  for (std::size_t d = 0; d < bytes.size(); ++d)
    bytes[d] += entry.distance_share[d] * o.bytes * stands_for();
  const double sent = o.bytes * entry.wire_bytes;
  entry.sent += sent;
  for (const RouteId route : routes)
    network_.send(route, sent, job_.step_overhead.seconds() + entry.overhead_s,
                  tag(sender, operation));
}

void GraphRun::on_delivered(std::uint64_t value) {
  const auto operation = static_cast<std::uint32_t>(value & ((1u << operation_bits) - 1));
  const auto sender = static_cast<std::uint32_t>(value >> operation_bits & timer_begin);
  if (--left_[row(sender, operation)] > 0) return;
  if (network_.notes_limits()) {
    message_limits_.resize(phase_.size());
    message_limits_[row(sender, operation)] = network_.limits();
  }
  const std::uint32_t peer =
      graph_.peers[graph_.actors[sender].peer_first + op(sender, operation).slot];
  communicate(sender, -1);
  if (peer != sender) communicate(peer, -1);
  const std::uint32_t match = program(sender).source->match[operation];
  end_operation(sender, operation);
  end_operation(peer, match);
  run_worklist();
}

// ---- collectives

void GraphRun::arrive(std::uint32_t actor, std::uint32_t operation) {
  const Operation& o = op(actor, operation);
  const std::uint32_t group = graph_.memberships[graph_.actors[actor].group_first + o.slot];
  const std::uint32_t call = groups_[group].first + program(actor).source->match[operation];
  last_actor_[call] = actor;
  if (++arrived_[call] == graph_.groups[group].actors) return start_collective(group, call, o);
  before_last_s_[call] = network_.now();
}

void GraphRun::start_collective(std::uint32_t group, std::uint32_t call, const Operation& o) {
  const GroupState& state = groups_[group];
  const std::uint32_t number = call - state.first;
  for (std::size_t m = 0; m < state.actors.size(); ++m) {
    const std::uint32_t actor = state.actors[m];
    const std::uint32_t at = row(actor, program(actor).calls[state.slots[m]][number]);
    phase_[at] = Phase::running;
    start_s_[at] = network_.now();
    communicate(actor, 1);
  }
  const GroupCall& planned = call_of(group, o);
  const GroupTraffic& traffic = *planned.traffic;
  auto& bytes = current_.bytes[static_cast<std::size_t>(o.dimension)];
  // So many groups are alike: those of replicas that were left out, but for what spans them.
  const model::RankGroup& members = graph_.groups[group];
  const double in_graph = static_cast<double>(members.actors * graph_.ranks_per_actor) /
                          static_cast<double>(members.ranks.size());
  for (std::size_t d = 0; d < bytes.size(); ++d)
    bytes[d] += traffic.distance_bytes[d] * planned.scale * stands_for() * in_graph;
  const std::uint64_t token =
      owner_tag(Owner::graph_collective,
                (std::uint64_t{index_} << actor_bits | group) << operation_bits | number);
  if (network_.contention() == NetworkOptions::Contention::off) {
    arrived_[call] = 1;
    return network_.timer(network_.now() + planned.alone_s, token);
  }
  arrived_[call] = static_cast<std::uint32_t>(traffic.rows.size());
  for (std::size_t r = 0; r < traffic.ids.size(); ++r)
    player_.play({.traffic = traffic.ids[r],
                  .scale = planned.scale,
                  .step_overhead = job_.step_overhead,
                  .cost = planned.costs[r],
                  .token = token});
}

void GraphRun::on_played(std::uint64_t token) {
  const auto number = static_cast<std::uint32_t>(token & ((1u << operation_bits) - 1));
  const auto group = static_cast<std::uint32_t>(owned_value(token) >> operation_bits & timer_begin);
  const GroupState& state = groups_[group];
  WEFT_CHECK(arrived_[state.first + number] > 0);
  if (--arrived_[state.first + number] > 0) return;
  if (network_.notes_limits()) {
    call_limits_.resize(arrived_.size());
    call_limits_[state.first + number] = player_.limits();
  }
  for (std::size_t m = 0; m < state.actors.size(); ++m) {
    communicate(state.actors[m], -1);
    end_operation(state.actors[m], program(state.actors[m]).calls[state.slots[m]][number]);
  }
  run_worklist();
}

}  // namespace weft::engine::fluid
