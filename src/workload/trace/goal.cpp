// GOAL schedules to one graph.
#include "workload/trace/goal.hpp"

#include <fmt/format.h>

#include <array>
#include <unordered_map>

#include "base/text.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

using model::Operation;
using model::Program;

constexpr std::uint32_t none = UINT32_MAX;

// One rank's operations. What stands for an operation in the program:
//   calc            [calc]
//   send            [overhead] -> [send]            ends with the overhead if eager, else with send
//   recv, eager     [recv] -> [overhead]            the recv waits for nothing: it buffers
//   recv, large     [recv] -> [overhead]
// [overhead] and [calc] are on the stream of their cpu. Where others wait for the start of an
// operation, a [ready] of no time stands before it.
class RankBuilder {
 public:
  RankBuilder(const GoalRank& rank, const TraceOptions& options,
              const std::array<std::uint32_t, 5>& labels)
      : rank_(rank), options_(options), labels_(labels) {}

  Program build() {
    program_.role = fmt::format("rank {}", rank_.rank);
    plan();
    for (std::uint32_t i = 0; i < rank_.ops.size(); ++i) emit(i);
    return std::move(program_);
  }

  const std::vector<std::uint32_t>& peers() const { return peers_; }

  enum Label : std::uint8_t { calc, send, recv, overhead, ready };

 private:
  bool eager(const GoalOp& op) const { return op.size <= options_.goal_eager_bytes; }

  // Numbers of the operations to come, so that dependencies may point forward.
  void plan() {
    const std::size_t count = rank_.ops.size();
    started_.assign(count, none);
    ended_.resize(count);
    first_.assign(count + 1, 0);
    for (const GoalEdge& edge : rank_.edges) {
      if (edge.when == GoalEdge::When::start) started_[edge.before] = 0;
      ++first_[edge.after + 1];
    }
    for (std::size_t i = 0; i < count; ++i) first_[i + 1] += first_[i];
    edges_.resize(rank_.edges.size());
    std::vector<std::uint32_t> fill(first_.begin(), first_.end() - 1);
    for (std::uint32_t e = 0; e < rank_.edges.size(); ++e) edges_[fill[rank_.edges[e].after]++] = e;
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const GoalOp& op = rank_.ops[i];
      if (started_[i] != none) started_[i] = next++;
      const bool pair = op.kind != GoalOp::Kind::calc;
      const bool second =
          op.kind == GoalOp::Kind::recv || (op.kind == GoalOp::Kind::send && !eager(op));
      ended_[i] = next + (second ? 1 : 0);
      next += pair ? 2 : 1;
    }
  }

  // What operation `i` waits for, into wait_.
  void gather(std::uint32_t i) {
    wait_.clear();
    for (std::uint32_t e = first_[i]; e < first_[i + 1]; ++e) {
      const GoalEdge& edge = rank_.edges[edges_[e]];
      wait_.push_back(edge.when == GoalEdge::When::end ? ended_[edge.before]
                                                       : started_[edge.before]);
    }
  }

  std::uint32_t add(Operation op, Label label) {
    op.label = labels_[label];
    return model::add_operation(program_, op, wait_);
  }

  void emit(std::uint32_t i) {
    const GoalOp& op = rank_.ops[i];
    gather(i);
    if (started_[i] != none) wait_ = {add({}, ready)};
    const auto stream = static_cast<std::uint8_t>(op.cpu + 1);
    const Operation cost{.stream = stream, .seconds = options_.goal_overhead_s};
    switch (op.kind) {
      case GoalOp::Kind::calc:
        add({.stream = stream, .seconds = static_cast<double>(op.size) * 1e-9}, calc);
        break;
      case GoalOp::Kind::send:
        wait_ = {add(cost, overhead)};
        add(message(op, Operation::Kind::send), send);
        break;
      case GoalOp::Kind::recv:
        emit_receive(op, cost);
        break;
    }
  }

  void emit_receive(const GoalOp& op, const Operation& cost) {
    std::vector<std::uint32_t> own;
    if (eager(op)) own.swap(wait_);
    own.push_back(add(message(op, Operation::Kind::recv), recv));
    wait_.swap(own);
    add(cost, overhead);
  }

  Operation message(const GoalOp& op, Operation::Kind kind) {
    const auto [slot, fresh] =
        slots_.try_emplace(op.peer, static_cast<std::uint32_t>(peers_.size()));
    if (fresh) peers_.push_back(op.peer);
    return {
        .kind = kind, .slot = slot->second, .tag = op.tag, .bytes = static_cast<double>(op.size)};
  }

  const GoalRank& rank_;
  const TraceOptions& options_;
  const std::array<std::uint32_t, 5>& labels_;
  Program program_;
  std::vector<std::uint32_t> peers_;                        // by slot: ranks
  std::unordered_map<std::uint32_t, std::uint32_t> slots_;  // by peer; looked up only
  std::vector<std::uint32_t> started_, ended_;  // by operation: who stands for start and end
  std::vector<std::uint32_t> first_, edges_;    // edges into each operation
  std::vector<std::uint32_t> wait_;
};

// Programs and actors; ranks that the schedule leaves out share an empty program.
void build_graph(const GoalSchedule& schedule, const TraceOptions& options, model::OpGraph& graph) {
  graph.labels = {"calc", "send", "recv", "overhead", "ready"};
  const std::array<std::uint32_t, 5> labels{0, 1, 2, 3, 4};
  graph.rank_count = schedule.rank_count;
  auto next = schedule.ranks.begin();
  std::uint32_t idle = none;
  for (std::uint32_t rank = 0; rank < schedule.rank_count; ++rank) {
    model::Actor actor{.peer_first = static_cast<std::uint32_t>(graph.peers.size())};
    const bool given = next != schedule.ranks.end() && next->rank == rank;
    actor.program =
        given || idle == none ? static_cast<std::uint32_t>(graph.programs.size()) : idle;
    if (given) {
      RankBuilder builder(*next++, options, labels);
      graph.programs.push_back(builder.build());
      graph.peers.insert(graph.peers.end(), builder.peers().begin(), builder.peers().end());
    } else if (idle == none) {
      idle = actor.program;
      graph.programs.push_back({.role = "idle"});
    }
    graph.actors.push_back(actor);
    graph.actor_ranks.push_back(rank);
  }
}

void summarise_goal(const GoalSchedule& schedule, const TraceOptions& options,
                    std::uint64_t resized, RecordedWorkload& out) {
  std::array<std::uint64_t, 4> kinds{};
  std::uint64_t edges = 0, on_nic = 0, large = 0;
  for (const GoalRank& rank : schedule.ranks) {
    edges += rank.edges.size();
    for (const GoalOp& op : rank.ops) {
      ++kinds[static_cast<std::size_t>(op.kind)];
      on_nic += op.nic > 0 ? 1 : 0;
      const bool send = op.kind == GoalOp::Kind::send;
      large += send && op.size > options.goal_eager_bytes ? 1 : 0;
    }
  }
  out.counts = {{"ranks", schedule.rank_count},
                {"calcs", kinds[3]},
                {"sends", kinds[1]},
                {"receives", kinds[2]},
                {"dependencies", edges}};
  out.notes.push_back(
      fmt::format("a send or receive costs {} of CPU time; latency and bandwidth come from the "
                  "fabric, the gap g between messages is not modelled",
                  human_seconds(options.goal_overhead_s)));
  if (large > 0)
    out.notes.push_back(fmt::format("{} sends are larger than {} bytes and wait for their receives",
                                    large, options.goal_eager_bytes));
  if (schedule.ranks.size() < schedule.rank_count)
    out.notes.push_back(fmt::format("{} ranks are not in the schedule and do nothing",
                                    schedule.rank_count - schedule.ranks.size()));
  if (on_nic > 0)
    out.notes.push_back(fmt::format(
        "{} operations specify a nic other than 0: the fabric chooses its own", on_nic));
  if (resized > 0)
    out.notes.push_back(fmt::format(
        "{} receives differ in size from their sends; the size of the send is used", resized));
}

Error fault_error(const GoalFault& fault, const TraceFile& file) {
  Error error{fault.code, {file.path}, fault.what, fault.hint, {}};
  if (is_goal_binary(file.content))
    error.what = fmt::format("byte {}: {}", fault.at, fault.what);
  else
    error.where = goal_where(file.content, file.path, fault.at);
  return error;
}

}  // namespace

bool is_goal(const TraceFile& file) {
  if (is_goal_binary(file.content) || file.path.ends_with(".goal")) return true;
  std::string_view text = file.content;
  // A text begins with num_ranks, maybe behind comments.
  for (;;) {
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    const std::string_view end = text.starts_with("//") ? "\n" : "*/";
    if (!text.starts_with("//") && !text.starts_with("/*")) return text.starts_with("num_ranks");
    const std::size_t found = text.find(end, 2);
    if (found == std::string_view::npos) return false;
    text.remove_prefix(found + end.size());
  }
}

Result<RecordedWorkload> read_goal(const TraceFile& file, const TraceOptions& options) {
  const bool binary = is_goal_binary(file.content);
  WEFT_TRY(GoalSchedule schedule, binary ? parse_goal_binary(file.content, file.path)
                                         : parse_goal_text(file.content, file.path));
  if (options.ranks.value_or(schedule.rank_count) != schedule.rank_count)
    return fail(Errc::unsupported, {file.path},
                fmt::format("a schedule of {} ranks does not determine what {} would do",
                            schedule.rank_count, *options.ranks),
                "omit the number of ranks");
  std::vector<GoalFault> faults;
  const std::uint64_t resized = match_goal(schedule, faults);
  if (!faults.empty()) {
    Errors errors;
    for (const GoalFault& fault : faults) errors.push_back(fault_error(fault, file));
    return std::unexpected(combine(std::move(errors)));
  }
  RecordedWorkload out{.has_own_costs = true, .format = binary ? "goal binary" : "goal text"};
  build_graph(schedule, options, out.graph);
  summarise_goal(schedule, options, resized, out);
  if (auto done = out.graph.finish(); !done) {
    done.error().where.file = file.path;
    return std::unexpected(std::move(done).error());
  }
  return out;
}

}  // namespace weft::workload
