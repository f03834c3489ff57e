#include "workload/trace/simai_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "workload/trace/simai_policy.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;
using model::Operation;
using model::Program;

constexpr double simai_operations_max = 20e6;
// AICB writes 1 ns where it has no time. Such computes are joined to the next one.
constexpr double alone_s = 1e-6;

// Streams of an actor: what is on one runs one after the other.
enum : std::uint8_t { compute_stream = 1, blocking_stream, gradient_stream, side_stream };
enum Tag : std::uint32_t { forward_tag, backward_tag, forward_wrap_tag, backward_wrap_tag };
constexpr std::uint32_t next_stage = 0, previous_stage = 1;  // peer slots

// Layers [first, end): `first` begins a unit. The layers before unit 0 belong to it as `head`.
struct Units {
  std::vector<std::uint32_t> first;  // ascending; empty: all layers are one unit
  std::uint32_t count() const { return std::max<std::uint32_t>(1, size()); }
  std::uint32_t size() const { return static_cast<std::uint32_t>(first.size()); }
};

// The first name that stands m * `count` times all over the file marks the units: each begins with
// every m-th of them.
Units find_units(const SimaiFile& file, std::uint64_t count) {
  if (count == 1) return {.first = {0}};
  std::map<std::string_view, std::vector<std::uint32_t>> places;
  for (std::uint32_t i = 0; i < file.lines.size(); ++i) places[file.lines[i].name].push_back(i);
  const std::vector<std::uint32_t>* best = nullptr;
  for (const auto& [name, at] : places) {
    const std::uint64_t span = at.back() - at.front() + 1;
    if (at.size() % count != 0 || 2 * span < file.lines.size()) continue;
    if (best == nullptr || at.front() < best->front()) best = &at;
  }
  Units units;
  if (best == nullptr) return units;
  for (std::size_t i = 0; i < best->size(); i += best->size() / count)
    units.first.push_back((*best)[i]);
  return units;
}

// What comes before layer i's backward: the forward of [from, i) once more.
struct Recompute {
  std::uint32_t from, layer;
};

Result<std::vector<Recompute>> find_recomputes(const SimaiFile& file) {
  std::vector<std::uint32_t> kept = file.checkpoints, wanted = file.initiates;
  std::ranges::sort(kept);
  std::ranges::sort(wanted);
  const auto repeated = std::ranges::unique(wanted);
  wanted.erase(repeated.begin(), repeated.end());
  std::vector<Recompute> out;
  for (const std::uint32_t layer : wanted) {
    const auto after = std::ranges::upper_bound(kept, layer);
    if (after == kept.begin())
      return fail(
          Errc::infeasible, file.where,
          fmt::format("layer {} recomputes the forward pass, but there is no checkpoint before it",
                      layer),
          "add a layer to checkpoints, e.g. 0");
    out.push_back({*(after - 1), layer});
  }
  return out;
}

enum class Pass : std::uint8_t { forward, input_gradient, weight_gradient };
constexpr std::array<std::string_view, 3> pass_names{"forward", "input gradient",
                                                     "weight gradient"};
constexpr std::uint32_t no_label = UINT32_MAX;

// What the stages have in common.
struct Shared {
  const SimaiFile& file;
  const SimaiGrid& grid;
  Units units;
  std::vector<Recompute> recomputes;
  SimaiStep step;
  std::map<std::string, std::uint32_t, std::less<>> labels;
  std::vector<std::array<std::uint32_t, pass_names.size()>> layer_labels;
  std::uint32_t used = 0;  // bit per SimaiGroup
};

// Writes the program of one stage. Operations follow one another: each waits for `tail_`.
class StageWriter {
 public:
  StageWriter(Shared& shared, std::uint32_t stage)
      : shared_(shared),
        file_(shared.file),
        grid_(shared.grid),
        units_(shared.units),
        step_(shared.step),
        stage_(stage),
        rules_(simai_rules(shared.file.policy)) {
    program_.role = grid_.pp > 1 ? fmt::format("pp {}", stage) : "rank";
  }

  Program write() {
    if (rules_.order == SimaiRules::Order::layer_by_layer) {
      for (std::uint32_t i = 0; i < layers(); ++i) whole_layer(i);
    } else {
      forward_all();
      if (rules_.order != SimaiRules::Order::forward_only) backward_all();
    }
    finish();
    return std::move(program_);
  }

 private:
  std::uint32_t layers() const { return static_cast<std::uint32_t>(file_.lines.size()); }
  const SimaiLine& line(std::uint32_t i) const { return file_.lines[i]; }
  bool first_stage() const { return stage_ == 0; }
  bool last_stage() const { return stage_ + 1 == grid_.pp; }
  bool counts() const { return first_stage(); }  // stages are equal; one is counted

  // ---- operations ----

  std::uint32_t label(std::string_view text) {
    const auto found = shared_.labels.find(text);
    if (found != shared_.labels.end()) return found->second;
    const auto index = static_cast<std::uint32_t>(step_.graph.labels.size());
    step_.graph.labels.emplace_back(text);
    shared_.labels.emplace(text, index);
    return index;
  }
  std::uint32_t label(std::uint32_t layer, Pass pass) {
    std::uint32_t& known = shared_.layer_labels[layer][static_cast<std::size_t>(pass)];
    if (known == no_label)
      known =
          label(fmt::format("{} {}", line(layer).name, pass_names[static_cast<std::size_t>(pass)]));
    return known;
  }

  std::uint32_t add(const Operation& op) { return add_operation(program_, op, tail_); }
  void follow(std::uint32_t operation) { tail_.assign(1, operation); }
  void also_wait(std::uint32_t operation) { tail_.push_back(operation); }

  void flush() {
    if (pending_s_ <= 0) return;
    Operation op{.kind = Operation::Kind::compute};
    op.stream = compute_stream;
    op.label = pending_label_;
    op.seconds = std::exchange(pending_s_, 0);
    pending_longest_s_ = 0;
    follow(add(op));
    if (counts()) ++step_.compute_operations;
  }

  void compute(std::uint64_t ns, std::uint32_t layer, Pass pass, double& sum) {
    const double seconds = static_cast<double>(ns) * 1e-9;
    if (counts()) sum += seconds;
    if (ns == 0) return;
    if (seconds > pending_longest_s_) {
      pending_longest_s_ = seconds;
      pending_label_ = label(layer, pass);
    }
    pending_s_ += seconds;
    if (pending_s_ >= alone_s) flush();
  }

  enum class Wait : std::uint8_t { blocking, side, gradient };

  // Returns the last operation, none where nothing moves.
  std::optional<std::uint32_t> communicate(const SimaiComm& comm, SimaiGroup natural,
                                           std::uint32_t layer, Pass pass, Wait wait) {
    if (comm.kind == SimaiComm::Kind::none) return std::nullopt;
    const SimaiGroup group = comm.group == SimaiComm::Group::ep      ? SimaiGroup::ep
                             : comm.group == SimaiComm::Group::dp_ep ? SimaiGroup::dp_ep
                                                                     : natural;
    if (comm.bytes == 0 || size_of(grid_, group) < 2) {
      if (counts()) ++(comm.bytes == 0 ? step_.empty : step_.alone);
      if (counts()) step_.alone_bytes += static_cast<double>(comm.bytes);
      return std::nullopt;
    }
    if (comm.kind != SimaiComm::Kind::all_reduce_all_to_all)
      return collective(op_of(comm.kind), comm.bytes, group, label(layer, pass), wait);
    const auto tail = tail_;
    follow(*collective(CollectiveOp::all_reduce, comm.bytes, group, label(layer, pass), wait));
    const auto last =
        collective(CollectiveOp::all_to_all, comm.bytes, group, label(layer, pass), wait);
    if (wait != Wait::blocking) tail_ = tail;
    return last;
  }

  static CollectiveOp op_of(SimaiComm::Kind kind) {
    switch (kind) {
      case SimaiComm::Kind::all_gather:
        return CollectiveOp::all_gather;
      case SimaiComm::Kind::reduce_scatter:
        return CollectiveOp::reduce_scatter;
      case SimaiComm::Kind::all_to_all:
        return CollectiveOp::all_to_all;
      case SimaiComm::Kind::broadcast:
        return CollectiveOp::broadcast;
      default:
        return CollectiveOp::all_reduce;
    }
  }

  std::optional<std::uint32_t> collective(CollectiveOp what, std::uint64_t bytes, SimaiGroup group,
                                          std::uint32_t text, Wait wait) {
    Operation op{.kind = Operation::Kind::collective};
    op.dimension = dimension_of(group);
    op.collective = what;
    op.stream = wait == Wait::blocking ? blocking_stream
                : wait == Wait::side   ? side_stream
                                       : gradient_stream;
    op.slot = static_cast<std::uint32_t>(group);  // becomes a slot when all groups are known
    op.label = text;
    op.bytes = static_cast<double>(bytes);
    shared_.used |= 1u << static_cast<unsigned>(group);
    const std::uint32_t index = add(op);
    if (wait == Wait::blocking) follow(index);
    if (wait == Wait::gradient) gradients_.push_back(index);
    if (counts()) ++step_.collectives;
    return index;
  }

  // ---- layers ----

  void forward(std::uint32_t i, double& sum) {
    compute(line(i).forward.compute_ns, i, Pass::forward, sum);
    const SimaiComm& comm = line(i).forward.comm;
    const bool side =
        rules_.embedding_exchange && i < last_bottom() && comm.kind == SimaiComm::Kind::all_to_all;
    const auto done = communicate(comm, rules_of(i).model_group, i, Pass::forward,
                                  side ? Wait::side : Wait::blocking);
    if (side && done) exchanges_.push_back(*done);
    if (rules_.embedding_exchange && i == last_bottom())
      for (const std::uint32_t exchange : std::exchange(exchanges_, {})) also_wait(exchange);
  }

  void weight_gradient(std::uint32_t i, Wait wait) {
    compute(line(i).weight_gradient.compute_ns, i, Pass::weight_gradient, step_.weight_gradient_s);
    communicate(line(i).weight_gradient.comm, rules_of(i).data_group, i, Pass::weight_gradient,
                wait);
  }

  void backward(std::uint32_t i) {
    recompute(i);
    const SimaiPass& ig = line(i).input_gradient;
    const SimaiRules rules = rules_of(i);
    if (rules_.order == SimaiRules::Order::weight_gradient_first) {
      weight_gradient(i, Wait::gradient);
      compute(ig.compute_ns, i, Pass::input_gradient, step_.input_gradient_s);
      if (!rules_.embedding_exchange)
        communicate(ig.comm, rules.model_group, i, Pass::input_gradient, Wait::blocking);
      else if (i > 0)
        communicate(ig.comm, rules.model_group, i, Pass::input_gradient, Wait::gradient);
      if (rules_.embedding_exchange && i == std::min(last_bottom() + 1, layers() - 1))
        communicate(line(0).input_gradient.comm, rules.model_group, 0, Pass::input_gradient,
                    Wait::gradient);
      return;
    }
    compute(ig.compute_ns, i, Pass::input_gradient, step_.input_gradient_s);
    const bool overlaps = rules.input_gradient == SimaiRules::InputGradient::beside_weight_gradient;
    const auto done = communicate(ig.comm, rules.model_group, i, Pass::input_gradient,
                                  overlaps ? Wait::side : Wait::blocking);
    weight_gradient(i, Wait::gradient);
    if (overlaps && done) {
      flush();
      also_wait(*done);
    }
  }

  void recompute(std::uint32_t layer) {
    const auto found = std::ranges::lower_bound(shared_.recomputes, layer, {}, &Recompute::layer);
    if (found == shared_.recomputes.end() || found->layer != layer) return;
    for (std::uint32_t i = found->from; i < layer; ++i) forward(i, step_.recompute_s);
  }

  void whole_layer(std::uint32_t i) {
    forward(i, step_.forward_s);
    compute(line(i).input_gradient.compute_ns, i, Pass::input_gradient, step_.input_gradient_s);
    communicate(line(i).input_gradient.comm, rules_.model_group, i, Pass::input_gradient,
                Wait::blocking);
    weight_gradient(i, Wait::blocking);
  }

  // HYBRID_CUSTOMIZED: a layer that is all data- or all model-parallel uses all ranks.
  SimaiRules rules_of(std::uint32_t i) const {
    if (!line(i).policy) return rules_;
    SimaiRules own = simai_rules(*line(i).policy);
    if (own.ranks != SimaiRules::Ranks::hybrid) own.model_group = own.data_group = SimaiGroup::all;
    own.order = rules_.order;
    own.embedding_exchange = false;
    return own;
  }
  std::uint32_t last_bottom() const {
    return file_.last_bottom_layer ? static_cast<std::uint32_t>(file_.last_bottom_layer->value) : 0;
  }

  // ---- pipeline ----

  std::uint64_t chunks() const { return file_.vpp ? file_.vpp->value : 1; }
  std::uint64_t microbatches() const { return file_.ga ? file_.ga->value : 1; }
  double message_bytes() const {
    return file_.pp_comm ? static_cast<double>(file_.pp_comm->value) : 0;
  }
  std::uint64_t chunk_of(std::uint32_t unit) const { return unit % chunks(); }

  std::uint32_t message(Operation::Kind kind, std::uint32_t peer, std::uint32_t tag,
                        std::optional<std::uint32_t>& last, double bytes) {
    Operation op{.kind = kind};
    op.dimension = model::Dimension::pp;
    op.slot = peer;
    op.tag = tag;
    op.label = label(tag == forward_tag || tag == forward_wrap_tag ? "activations" : "gradients");
    op.bytes = bytes;
    // Messages of one kind go one by one; receives are posted early.
    std::vector<std::uint32_t> after;
    if (kind == Operation::Kind::send) after = tail_;
    if (last) after.push_back(*last);
    last = add_operation(program_, op, after);
    if (counts()) ++step_.messages;
    return *last;
  }
  void receive(std::uint32_t peer, std::uint32_t tag) {
    flush();
    also_wait(message(Operation::Kind::recv, peer, tag, last_receive_[tag], message_bytes()));
  }
  // A chunk that comes round from the other end of the pipeline. Where all units are equal it
  // arrives when it is needed. They are not, because the file puts embedding and head on every
  // stage, so that waiting would count them several times: it must be there when the pass ends.
  void receive_by_end(std::uint32_t peer, std::uint32_t tag) {
    flush();
    by_end_.push_back(
        message(Operation::Kind::recv, peer, tag, last_receive_[tag], message_bytes()));
  }
  void end_pass() {
    flush();
    for (const std::uint32_t operation : std::exchange(by_end_, {})) also_wait(operation);
  }
  void send(std::uint32_t peer, std::uint32_t tag) {
    flush();
    message(Operation::Kind::send, peer, tag, last_send_[tag], message_bytes());
  }

  bool in_units() const { return step_.pipeline == SimaiPipeline::units; }
  bool has_chunk_before(std::uint32_t unit) const { return chunk_of(unit) > 0; }
  bool has_chunk_behind(std::uint32_t unit) const { return chunk_of(unit) + 1 < chunks(); }

  void before_forward(std::uint32_t unit) {
    if (!in_units()) return;
    if (!first_stage()) receive(previous_stage, forward_tag);
    if (first_stage() && has_chunk_before(unit)) receive_by_end(previous_stage, forward_wrap_tag);
  }
  void after_forward(std::uint32_t unit) {
    if (!in_units()) return;
    if (!last_stage()) send(next_stage, forward_tag);
    if (last_stage() && has_chunk_behind(unit)) send(next_stage, forward_wrap_tag);
  }
  void before_backward(std::uint32_t unit) {
    if (!in_units()) return;
    if (!last_stage()) receive(next_stage, backward_tag);
    if (last_stage() && has_chunk_behind(unit)) receive_by_end(next_stage, backward_wrap_tag);
  }
  void after_backward(std::uint32_t unit) {
    if (!in_units()) return;
    if (!first_stage()) send(previous_stage, backward_tag);
    if (first_stage() && has_chunk_before(unit)) send(previous_stage, backward_wrap_tag);
  }

  std::uint32_t unit_begin(std::uint32_t unit) const {
    return units_.size() == 0 ? 0 : units_.first[unit];
  }
  std::uint32_t unit_end(std::uint32_t unit) const {
    return unit + 1 < units_.size() ? units_.first[unit + 1] : layers();
  }

  void forward_all() {
    for (std::uint32_t i = 0; i < unit_begin(0); ++i) forward(i, step_.forward_s);
    all_at_once(previous_stage, next_stage, forward_tag);
    for (std::uint32_t unit = 0; unit < units_.count(); ++unit) {
      before_forward(unit);
      for (std::uint32_t i = unit_begin(unit); i < unit_end(unit); ++i) forward(i, step_.forward_s);
      after_forward(unit);
    }
    end_pass();
  }

  void backward_all() {
    all_at_once(next_stage, previous_stage, backward_tag);
    for (std::uint32_t unit = units_.count(); unit-- > 0;) {
      before_backward(unit);
      for (std::uint32_t i = unit_end(unit); i-- > unit_begin(unit);) backward(i);
      after_backward(unit);
    }
    for (std::uint32_t i = unit_begin(0); i-- > 0;) backward(i);
    end_pass();
  }

  // SimaiPipeline::formula: what a direction moves, beside the layers.
  void all_at_once(std::uint32_t from, std::uint32_t to, std::uint32_t tag) {
    if (step_.pipeline != SimaiPipeline::formula) return;
    flush();
    const double bytes =
        message_bytes() * static_cast<double>(chunks()) * static_cast<double>(microbatches());
    const auto has = [&](std::uint32_t peer) {
      return peer == next_stage ? !last_stage() : !first_stage();
    };
    if (has(from))
      by_end_.push_back(message(Operation::Kind::recv, from, tag, last_receive_[tag], bytes));
    if (has(to)) by_end_.push_back(message(Operation::Kind::send, to, tag, last_send_[tag], bytes));
  }

  // ---- the end of the step ----

  void single(double seconds, std::string_view text) {
    if (seconds <= 0) return;
    Operation op{.kind = Operation::Kind::compute};
    op.stream = compute_stream;
    op.label = label(text);
    op.seconds = seconds;
    follow(add(op));
    if (counts()) ++step_.compute_operations;
  }

  void finish() {
    flush();
    if (step_.pipeline == SimaiPipeline::formula) {
      const double share = static_cast<double>(grid_.pp - 1) /
                           (static_cast<double>(chunks()) * static_cast<double>(microbatches()));
      if (counts())
        step_.bubble_s = share * (step_.forward_s + step_.input_gradient_s +
                                  step_.weight_gradient_s + step_.recompute_s);
      single(step_.bubble_s, "pipeline bubble (PP-1)/(VPP*GA)");
    }
    for (const std::uint32_t gradient : gradients_) also_wait(gradient);
    double update_s = 0;
    for (const SimaiLine& layer : file_.lines)
      update_s += static_cast<double>(layer.update_ns) * 1e-9;
    if (counts()) step_.update_s = update_s;
    single(update_s, "update");
    if (program_.operations.empty()) {  // nothing to do is an operation of no time
      Operation op{.kind = Operation::Kind::compute};
      op.label = label("nothing");
      add(op);
    }
  }

  Shared& shared_;
  const SimaiFile& file_;
  const SimaiGrid& grid_;
  const Units& units_;
  SimaiStep& step_;
  std::uint32_t stage_;
  SimaiRules rules_;
  Program program_;
  std::vector<std::uint32_t> tail_;  // what the next operation waits for
  double pending_s_ = 0, pending_longest_s_ = 0;
  std::uint32_t pending_label_ = 0;
  std::vector<std::uint32_t> gradients_, exchanges_, by_end_;
  std::array<std::optional<std::uint32_t>, 4> last_send_, last_receive_;  // by tag
};

Status check_operations(const Shared& shared) {
  const SimaiFile& file = shared.file;
  const SimaiGrid& grid = shared.grid;
  double layers = 3 * static_cast<double>(file.lines.size());
  for (const Recompute& again : shared.recomputes) layers += again.layer - again.from;
  constexpr double program_itself = 32;  // what an empty program takes, in operations
  const double per_stage =
      2 * layers + 4 * static_cast<double>(shared.units.count()) + program_itself;
  if (per_stage * grid.pp <= simai_operations_max) return {};
  return fail(
      Errc::infeasible, file.where,
      fmt::format("the step may have {:.3g} operations (PP {} x {:.3g}), more than {:.0f} M",
                  per_stage * grid.pp, grid.pp, per_stage, simai_operations_max / 1e6),
      "reduce the file to fewer layers or micro-batches, or reduce pp");
}

// Layers that the policy leaves out although they would do something.
std::uint64_t count_skipped(const SimaiFile& file) {
  if (simai_rules(file.policy).order != SimaiRules::Order::forward_only) return 0;
  return static_cast<std::uint64_t>(std::ranges::count_if(file.lines, [](const SimaiLine& line) {
    return line.input_gradient.compute_ns > 0 || line.weight_gradient.compute_ns > 0 ||
           line.input_gradient.comm.bytes > 0 || line.weight_gradient.comm.bytes > 0;
  }));
}

void choose_pipeline(Shared& shared) {
  const SimaiFile& file = shared.file;
  if (shared.grid.pp == 1) return;
  shared.step.pipeline = SimaiPipeline::formula;
  const std::uint64_t chunks = file.vpp ? file.vpp->value : 1;
  const std::uint64_t microbatches = file.ga ? file.ga->value : 1;
  if (chunks * microbatches > file.lines.size()) return;
  shared.units = find_units(file, chunks * microbatches);
  if (shared.units.size() > 0) shared.step.pipeline = SimaiPipeline::units;
}

}  // namespace

Result<SimaiStep> build_simai_step(const SimaiFile& file, const SimaiGrid& grid) {
  WEFT_TRY(std::vector<Recompute> recomputes, find_recomputes(file));
  Shared shared{file, grid, {}, std::move(recomputes), {}, {}, {}};
  shared.layer_labels.assign(file.lines.size(), {no_label, no_label, no_label});
  choose_pipeline(shared);
  WEFT_TRY_STATUS(check_operations(shared));
  SimaiStep& step = shared.step;
  step.skipped = count_skipped(file);
  std::vector<std::uint32_t> programs;
  for (std::uint32_t stage = 0; stage < grid.pp; ++stage) {
    programs.push_back(stage);
    step.graph.programs.push_back(StageWriter(shared, stage).write());
  }
  std::vector<SimaiGroup> used;
  for (unsigned g = 0; g < simai_group_count; ++g)
    if ((shared.used >> g & 1u) != 0) used.push_back(static_cast<SimaiGroup>(g));
  const bool experts_meet = std::ranges::find(used, SimaiGroup::ep) != used.end();
  step.actor = experts_meet ? SimaiActor::expert_group : SimaiActor::tensor_group;
  place_ranks(grid, step.actor, used, programs, step.graph);
  WEFT_TRY_STATUS(step.graph.finish());
  return std::move(shared.step);
}

}  // namespace weft::workload
