#include "workload/schedule/step_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "workload/schedule/pipeline.hpp"
#include "workload/schedule/step_groups.hpp"

namespace weft::workload {
namespace {

using model::ChunkCost;
using model::CommWork;
using model::Dimension;
using model::Operation;
using model::OpGraph;
using model::Program;
using model::StepCost;
using model::UnitCost;
using Kind = Operation::Kind;
using Pass = Unit::Pass;

constexpr std::uint8_t compute_stream = 1;
constexpr std::size_t receive_buffers = 2;             // of each direction
constexpr std::uint32_t to_next = 0, to_previous = 1;  // peer slots

std::unexpected<Error> wrong(std::string what) { return fail(Errc::value, {}, std::move(what)); }

bool is_amount(double number) { return std::isfinite(number) && number >= 0; }

Status check_works(const StepCost& cost, const StepGraphOptions& options,
                   const std::vector<CommWork>& works) {
  for (const CommWork& work : works) {
    if (!is_amount(work.bytes) || !(work.overlap >= 0 && work.overlap <= 1))
      return wrong(fmt::format("a collective of {} bytes with an overlapping share of {}",
                               work.bytes, work.overlap));
    if (work.dimension == Dimension::pp || work.dimension == Dimension::other)
      return wrong("collectives serve tp, cp, dp or ep, not " +
                   std::string(model::to_text(work.dimension)));
    if (work.members != CommWork::Members::axis && work.dimension != Dimension::dp)
      return wrong("expert-data groups and replicas serve dp, not " +
                   std::string(model::to_text(work.dimension)));
    if (work.dimension == Dimension::tp && cost.tp > 1 && work.bytes > 0 &&
        options.actors == StepGraphOptions::Actors::tensor_group)
      return fail(Errc::unsupported, {}, "tensor-parallel collectives within an actor",
                  "fold them into the compute, or let each rank be an actor");
  }
  return {};
}

Status check_unit(const StepCost& cost, const StepGraphOptions& options, const UnitCost& unit) {
  if (!is_amount(unit.compute_s))
    return wrong(fmt::format("a unit computes for {} s", unit.compute_s));
  for (const UnitCost::Inner& inner : unit.inner)
    if (!is_amount(inner.seconds))
      return wrong(fmt::format("a unit communicates within hosts for {} s", inner.seconds));
  return check_works(cost, options, unit.comms);
}

Status check_sizes(const StepCost& cost) {
  for (const std::uint32_t size : {cost.tp, cost.cp, cost.pp, cost.dp, cost.ep})
    if (size == 0) return wrong("a parallel dimension of size 0");
  // In double: the product of four 32-bit sizes may not fit 64 bits.
  const double ranks = double{1} * cost.tp * cost.cp * cost.pp * cost.dp;
  if (ranks > step_ranks_max)
    return fail(Errc::infeasible, {},
                fmt::format("TP {} x CP {} x PP {} x DP {} = {:.0f} ranks, more than {}", cost.tp,
                            cost.cp, cost.pp, cost.dp, ranks, step_ranks_max));
  if (cost.tp * cost.cp * cost.dp % cost.ep != 0)
    return wrong(fmt::format("EP {} does not divide TP {} x CP {} x DP {} = {}", cost.ep, cost.tp,
                             cost.cp, cost.dp, cost.tp * cost.cp * cost.dp));
  auto order = cost.order;
  std::ranges::sort(order);
  if (std::ranges::adjacent_find(order) != order.end() ||
      static_cast<std::size_t>(order.back()) >= model::axis_count)
    return wrong("a rank order that lists an axis twice");
  return {};
}

Status check_cost(const StepCost& cost, const StepGraphOptions& options) {
  WEFT_TRY_STATUS(check_sizes(cost));
  if (cost.chunks.size() != std::uint64_t{cost.pp} * cost.virtual_stages)
    return wrong(fmt::format("{} chunks for {} stages of {}", cost.chunks.size(), cost.pp,
                             cost.virtual_stages));
  if (cost.optimizer_s.size() != cost.pp || !std::ranges::all_of(cost.optimizer_s, is_amount))
    return wrong(fmt::format("optimizer times must be {} finite values of at least 0", cost.pp));
  for (const double bytes : {cost.activation_bytes, cost.embedding_bytes, cost.norm_bytes})
    if (!is_amount(bytes)) return wrong(fmt::format("a message of {} bytes", bytes));
  for (const ChunkCost& chunk : cost.chunks) {
    WEFT_TRY_STATUS(check_unit(cost, options, chunk.forward));
    WEFT_TRY_STATUS(check_unit(cost, options, chunk.backward));
    WEFT_TRY_STATUS(check_works(cost, options, chunk.gather));
    WEFT_TRY_STATUS(check_works(cost, options, chunk.reduce));
  }
  return {};
}

GroupKind kind_of(const CommWork& work) {
  if (work.members == CommWork::Members::expert_data) return GroupKind::expert_data;
  if (work.members == CommWork::Members::replicas) return GroupKind::replicas;
  switch (work.dimension) {
    case Dimension::tp:
      return GroupKind::tp;
    case Dimension::cp:
      return GroupKind::cp;
    case Dimension::ep:
      return GroupKind::ep;
    default:
      return GroupKind::dp;
  }
}

// Texts of labels, the same for all stages: units first, then the rest.
class Labels {
 public:
  explicit Labels(const StepCost& cost)
      : chunks_(cost.virtual_stages), microbatches_(cost.microbatches) {}

  std::uint32_t unit(const Unit& unit) const {
    const std::uint32_t pass = unit.pass == Pass::forward ? 0 : 1;
    return (pass * chunks_ + unit.chunk) * microbatches_ + unit.microbatch;
  }
  std::uint32_t gather(std::uint32_t chunk) const { return 2 * chunks_ * microbatches_ + chunk; }
  std::uint32_t reduce(std::uint32_t chunk) const { return gather(chunks_) + chunk; }
  std::uint32_t embedding() const { return reduce(chunks_); }
  std::uint32_t norm() const { return embedding() + 1; }
  std::uint32_t optimizer() const { return embedding() + 2; }

  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const char* pass : {"forward", "backward"})
      for (std::uint32_t v = 0; v < chunks_; ++v)
        for (std::uint32_t m = 0; m < microbatches_; ++m)
          texts.push_back(fmt::format("{} {}{}", pass, m, of_chunk(v)));
    for (const char* what : {"gather parameters", "reduce gradients"})
      for (std::uint32_t v = 0; v < chunks_; ++v) texts.push_back(what + of_chunk(v));
    texts.insert(texts.end(), {"reduce embeddings", "gradient norm", "optimizer"});
    return texts;
  }

 private:
  std::string of_chunk(std::uint32_t v) const {
    return chunks_ == 1 ? "" : fmt::format(" chunk {}", v);
  }
  std::uint32_t chunks_, microbatches_;
};

// The program of one stage. Operations that must all end before the next ones are a `Wait`.
using Wait = std::vector<std::uint32_t>;

class StageBuilder {
 public:
  StageBuilder(const StepCost& cost, std::uint32_t stage, const Labels& labels)
      : cost_(cost), stage_(stage), labels_(labels) {
    program.role = fmt::format("pp {}", stage);
  }

  void build(std::span<const Unit> units) {
    gather();
    for (const Unit& unit : units) run(unit);
    if (cost_.reduce == StepCost::Timing::serial)
      for (const std::uint32_t chunk : finished_) reduce(chunk, end_, &Merged::all);
    finish();
  }

  Program program;
  std::vector<GroupKind> slots;

 private:
  // All calls of a list that can be one collective: bytes beside the compute, behind it, and both.
  struct Merged {
    GroupKind kind;
    Dimension dimension;
    model::CollectiveOp op;
    double beside, behind, all;
  };
  using Part = double Merged::*;
  static std::vector<Merged> merge(const std::vector<CommWork>& works) {
    std::vector<Merged> merged;
    for (const CommWork& work : works) {
      const GroupKind kind = kind_of(work);
      auto found = std::ranges::find_if(
          merged, [&](const Merged& m) { return m.kind == kind && m.op == work.op; });
      if (found == merged.end())
        found = merged.insert(found, {kind, work.dimension, work.op, 0, 0, 0});
      const double bytes = work.bytes * work.calls;
      found->beside += bytes * work.overlap;
      found->behind += bytes * (1 - work.overlap);
      found->all += bytes;
    }
    return merged;
  }

  // Adds a collective behind `wait`, which becomes the wait for it. Without bytes or partners
  // nothing happens.
  void communicate(Wait& wait, const Merged& what, double bytes, std::uint32_t label) {
    if (bytes == 0 || row_size(cost_, what.kind) == 1) return;
    auto slot = std::ranges::find(slots, what.kind);
    if (slot == slots.end()) slot = slots.insert(slot, what.kind);
    wait = {model::add_operation(program,
                                 {.kind = Kind::collective,
                                  .dimension = what.dimension,
                                  .collective = what.op,
                                  .slot = static_cast<std::uint32_t>(slot - slots.begin()),
                                  .label = label,
                                  .bytes = bytes},
                                 wait)};
  }
  // One part of each, one after another. Returns the last, nothing where there is none.
  Wait communicate(Wait wait, const std::vector<Merged>& merged, Part part, std::uint32_t label) {
    const std::size_t before = program.operations.size();
    for (const Merged& what : merged) communicate(wait, what, what.*part, label);
    return program.operations.size() > before ? wait : Wait{};
  }
  static void add(Wait& wait, const Wait& more) {
    wait.insert(wait.end(), more.begin(), more.end());
  }

  void gather() {
    needed_.resize(cost_.virtual_stages);
    arriving_.resize(cost_.virtual_stages);
    const bool overlapped = cost_.gather == StepCost::Timing::overlapped;
    Wait last;
    const auto gather_part = [&](std::uint32_t v, const std::vector<Merged>& merged, Part part) {
      Wait done = communicate(last, merged, part, labels_.gather(v));
      if (!done.empty()) last = done;
      return done;
    };
    for (std::uint32_t v = 0; v < cost_.virtual_stages; ++v) {
      const std::vector<Merged> merged = merge(cost_.chunk(stage_, v).gather);
      needed_[v] = gather_part(v, merged, overlapped ? &Merged::behind : &Merged::all);
      if (overlapped) arriving_[v] = gather_part(v, merged, &Merged::beside);
    }
    if (!overlapped) end_ = last;
  }

  void reduce(std::uint32_t chunk, Wait wait, Part part) {
    add(wait, reduced_);
    const Wait done =
        communicate(wait, merge(cost_.chunk(stage_, chunk).reduce), part, labels_.reduce(chunk));
    if (!done.empty()) reduced_ = done;
  }

  // Tags tell the boundary between two virtual stages, and the direction.
  std::uint32_t tag(const Unit& unit, std::uint32_t boundary) const {
    return 2 * boundary + (unit.pass == Pass::forward ? 0 : 1);
  }
  Operation message(Kind kind, const Unit& unit, std::uint32_t boundary) const {
    const bool down = (unit.pass == Pass::forward) == (kind == Kind::send);
    return {.kind = kind,
            .dimension = Dimension::pp,
            .collective = model::CollectiveOp::send_recv,
            .slot = down ? to_next : to_previous,
            .tag = tag(unit, boundary),
            .label = labels_.unit(unit),
            .bytes = cost_.activation_bytes};
  }

  void run(const Unit& unit) {
    const bool forward = unit.pass == Pass::forward;
    const std::uint32_t last = cost_.pp * cost_.virtual_stages - 1;
    const std::uint32_t here = unit.chunk * cost_.pp + stage_;
    const bool receives = cost_.pp > 1 && here != (forward ? 0 : last);
    const bool sends = cost_.pp > 1 && here != (forward ? last : 0);
    Wait start = end_;
    std::vector<std::uint32_t>& received = received_[forward ? 0 : 1];
    if (receives) {
      Wait buffer;
      if (received.size() >= receive_buffers)
        buffer.push_back(received[received.size() - receive_buffers]);
      start.push_back(model::add_operation(
          program, message(Kind::recv, unit, forward ? here - 1 : here), buffer));
    }
    const std::uint32_t compute = work(unit, start);
    if (receives) received.push_back(compute);
    if (sends)
      model::add_operation(program, message(Kind::send, unit, forward ? here : here - 1), end_);
  }

  // Compute with its communication; end_ waits for all of it. Returns the compute.
  std::uint32_t work(const Unit& unit, Wait start) {
    const bool forward = unit.pass == Pass::forward;
    const ChunkCost& chunk = cost_.chunk(stage_, unit.chunk);
    const UnitCost& costs = forward ? chunk.forward : chunk.backward;
    const std::uint32_t label = labels_.unit(unit);
    if (forward) add(start, std::exchange(needed_[unit.chunk], {}));
    const std::uint32_t compute = add_compute(costs, label, start);

    const std::vector<Merged> merged = merge(costs.comms);
    end_ = {compute};
    add(end_, communicate(start, merged, &Merged::beside, label));
    if (forward) add(end_, std::exchange(arriving_[unit.chunk], {}));
    if (Wait behind = communicate(end_, merged, &Merged::behind, label); !behind.empty())
      end_ = std::move(behind);

    // Micro-batches of a chunk come in order.
    if (forward || unit.microbatch + 1 < cost_.microbatches) return compute;
    WEFT_CHECK(finished_.size() < cost_.virtual_stages);
    finished_.push_back(unit.chunk);
    if (cost_.reduce == StepCost::Timing::serial) return compute;
    reduce(unit.chunk, start, &Merged::beside);
    reduce(unit.chunk, end_, &Merged::behind);
    return compute;
  }

  std::uint32_t add_compute(const UnitCost& costs, std::uint32_t label, const Wait& start) {
    double seconds = costs.compute_s;
    for (const UnitCost::Inner& inner : costs.inner) seconds += inner.seconds;
    const std::uint32_t compute = model::add_operation(
        program, {.stream = compute_stream, .label = label, .seconds = seconds}, start);
    for (const UnitCost::Inner& inner : costs.inner)
      if (inner.seconds > 0) program.folded.push_back({compute, inner.dimension, inner.seconds});
    return compute;
  }

  void finish() {
    Wait wait = end_;
    add(wait, reduced_);
    constexpr auto all_reduce = model::CollectiveOp::all_reduce;
    if (stage_ == 0 || stage_ + 1 == cost_.pp)
      communicate(wait, {GroupKind::embedding, Dimension::pp, all_reduce, 0, 0, 0},
                  cost_.embedding_bytes, labels_.embedding());
    communicate(wait, {GroupKind::all, Dimension::dp, all_reduce, 0, 0, 0}, cost_.norm_bytes,
                labels_.norm());
    model::add_operation(program,
                         {.stream = compute_stream,
                          .label = labels_.optimizer(),
                          .seconds = cost_.optimizer_s[stage_]},
                         wait);
  }

  const StepCost& cost_;
  std::uint32_t stage_;
  const Labels& labels_;
  Wait end_;      // of the last unit
  Wait reduced_;  // the last reduction
  // By chunk, until its first forward has waited: gathers before it, and beside it.
  std::vector<Wait> needed_, arriving_;
  std::vector<std::uint32_t> finished_;  // chunks, in the order of their last backwards
  std::array<std::vector<std::uint32_t>, 2> received_;  // by pass: computes that took a message
};

}  // namespace

Result<OpGraph> build_step_graph(const StepCost& cost, const StepGraphOptions& options) {
  WEFT_TRY_STATUS(check_cost(cost, options));
  const PipelineShape shape{cost.pp, cost.virtual_stages, cost.microbatches};
  OpGraph graph;
  StageSlots slots;
  const Labels labels(cost);
  for (std::uint32_t stage = 0; stage < cost.pp; ++stage) {
    WEFT_TRY(const std::vector<Unit> units, pipeline_order(shape, stage));
    StageBuilder builder(cost, stage, labels);
    builder.build(units);
    graph.programs.push_back(std::move(builder.program));
    slots.push_back(std::move(builder.slots));
  }
  WEFT_CHECK(graph.programs.size() == slots.size());
  graph.labels = labels.texts();
  WEFT_CHECK(graph.labels.size() == labels.optimizer() + std::size_t{1});
  add_actors(graph, cost, options, slots);
  WEFT_TRY_STATUS(graph.finish());
  return graph;
}

}  // namespace weft::workload
