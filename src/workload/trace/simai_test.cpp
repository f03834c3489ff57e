#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/test_approx.hpp"
#include "workload/trace/test_kit.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;
using model::Dimension;
using model::Operation;
using model::OpGraph;
using testing::contains;
using testing::count;
using testing::noted;
using Kind = Operation::Kind;

Result<RecordedWorkload> try_read(const std::string& text, const TraceOptions& options = {}) {
  return read_simai({"w.txt", text}, options);
}

RecordedWorkload read(const std::string& text, const TraceOptions& options = {}) {
  return testing::accepted(try_read(text, options));
}

std::string refusal(const std::string& text, const TraceOptions& options = {}) {
  const auto workload = try_read(text, options);
  return workload ? "accepted" : workload.error().text();
}

double seconds(const RecordedWorkload& w, std::string_view name) {
  for (const auto& [key, value] : w.times_s)
    if (key == name) return value;
  return -1;
}

std::size_t operations(const OpGraph& graph, Kind kind, std::size_t program = 0) {
  return static_cast<std::size_t>(
      std::ranges::count(graph.programs[program].operations, kind, &Operation::kind));
}

double compute_of(const model::Program& program) {
  double sum = 0;
  for (const Operation& op : program.operations)
    if (op.kind == Kind::compute) sum += op.seconds;
  return sum;
}

// When the program would end with collectives and messages that take no time, actors alone.
double longest_path(const model::Program& program) {
  std::vector<double> end(program.operations.size(), 0);
  double last = 0;
  for (std::size_t i = 0; i < end.size(); ++i) {
    const Operation& op = program.operations[i];
    for (std::uint32_t a = 0; a < op.after_count; ++a)
      end[i] = std::max(end[i], end[program.after[op.after_first + a]]);
    end[i] += op.seconds;
    last = std::max(last, end[i]);
  }
  return last;
}

// The same for all programs together: a message ends when both ends are ready. One actor for each
// program is enough where all replicas do the same.
double step_time(const OpGraph& graph) {
  std::vector<std::vector<double>> end;
  for (const auto& program : graph.programs) end.emplace_back(program.operations.size(), -1.0);
  const auto ready = [&](std::size_t p, std::uint32_t o) {
    const Operation& op = graph.programs[p].operations[o];
    double at = 0;
    for (std::uint32_t a = 0; a < op.after_count; ++a) {
      const double before = end[p][graph.programs[p].after[op.after_first + a]];
      if (before < 0) return -1.0;
      at = std::max(at, before);
    }
    return at;
  };
  std::vector<std::uint32_t> actor(graph.programs.size());
  for (std::uint32_t a = 0; a < graph.actors.size(); ++a) actor[graph.actors[a].program] = a;
  double last = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t p = 0; p < end.size(); ++p)
      for (std::uint32_t o = 0; o < end[p].size(); ++o) {
        if (end[p][o] >= 0) continue;
        const Operation& op = graph.programs[p].operations[o];
        double at = ready(p, o);
        if (at < 0) continue;
        if (op.kind == Kind::send || op.kind == Kind::recv) {
          const auto peer = graph.peers[graph.actors[actor[p]].peer_first + op.slot];
          const auto q = graph.actors[peer].program;
          const double other = ready(q, graph.programs[p].match[o]);
          if (other < 0) continue;
          at = std::max(at, other);
        }
        end[p][o] = at + op.seconds;
        last = std::max(last, end[p][o]);
        moved = true;
      }
  }
  for (const auto& program : end)
    for (const double at : program) REQUIRE(at >= 0);
  return last;
}

constexpr const char* two_layers =
    "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 6\n"
    "2\n"
    "a\t-1\t2000\tALLREDUCE\t100\t3000\tALLGATHER\t200\t4000\tREDUCESCATTER\t300\t5000\n"
    "b  -1  7000   NONE 0   11000  NONE  0  13000  ALLREDUCE 5000000000  0\n";

TEST_CASE("two layers on 3 replicas of a tensor-parallel pair") {
  const RecordedWorkload w = read(two_layers);
  CHECK(w.format == "simai");
  const OpGraph& g = w.graph;
  REQUIRE(g.programs.size() == 1);
  REQUIRE(g.actors.size() == 3);
  CHECK(g.rank_count == 6);
  CHECK(g.ranks_per_actor == 2);
  // Groups: a tensor-parallel one for each actor, then one data-parallel with a row for each tp.
  REQUIRE(g.groups.size() == 4);
  CHECK(g.groups[1].ranks == std::vector<std::uint32_t>{2, 3});
  CHECK(g.groups[3].rows == 2);
  CHECK(g.groups[3].ranks == std::vector<std::uint32_t>{0, 2, 4, 1, 3, 5});
  CHECK(g.groups[3].actors == 3);

  const auto& ops = g.programs[0].operations;
  std::vector<std::string> order;
  for (const Operation& op : ops)
    order.push_back(fmt::format("{} {:.0f}", g.labels[op.label],
                                op.kind == Kind::compute ? op.seconds * 1e9 : op.bytes));
  const std::vector<std::string> expected{"a forward 2000",
                                          "a forward 100",
                                          "b forward 7000",
                                          "b input gradient 11000",
                                          "b weight gradient 13000",
                                          "b weight gradient 5000000000",
                                          "a input gradient 3000",
                                          "a input gradient 200",
                                          "a weight gradient 4000",
                                          "a weight gradient 300",
                                          "update 5000"};
  CHECK(order == expected);
  CHECK(ops[1].dimension == Dimension::tp);
  CHECK(ops[5].dimension == Dimension::dp);
  CHECK(ops[5].collective == CollectiveOp::all_reduce);
  CHECK(ops[9].collective == CollectiveOp::reduce_scatter);
  // Layer a does not wait for the weight-gradient collective of layer b; the update does.
  CHECK(longest_path(g.programs[0]) == approx(45e-6));
  CHECK(ops[6].after_count == 1);
  CHECK(g.programs[0].after[ops[6].after_first] == 4);
  CHECK(ops[10].after_count == 3);
  CHECK(seconds(w, "compute of a step") == approx(45e-6));
  CHECK(seconds(w, "weight gradient") == approx(17e-6));
  CHECK(count(w, "DP") == 3);
}

TEST_CASE("old headers: number of ranks by option, or a stated assumption") {
  const std::string text =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 8 checkpoints: 0 "
      "checkpoint_initiates: 0\n1\nx -1 5000 ALLREDUCE 64 1 NONE 0 1 ALLREDUCE 8 1";
  const RecordedWorkload assumed = read(text);
  CHECK(assumed.graph.rank_count == 16);
  CHECK(noted(assumed, "16 ranks are assumed"));
  const RecordedWorkload chosen = read(text, {.ranks = 64});
  CHECK(chosen.graph.rank_count == 64);
  CHECK(!noted(chosen, "assumed"));
  CHECK(contains(refusal(text, {.ranks = 60}), "60 ranks / (TP 8 x PP 1) = 7.5"));
  CHECK(contains(refusal(text, {.ranks = 60}), "choose a multiple of 8"));
  CHECK(refusal(text, {.ranks = 0}) != "accepted");
}

TEST_CASE("other rank counts than recorded change DP alone") {
  const RecordedWorkload w = read(two_layers, {.ranks = 200});
  CHECK(count(w, "DP") == 100);  // groups of any size
  CHECK(w.graph.groups.back().size() == 100);
  CHECK(noted(w, "200 ranks instead of the 6 in the file"));
  CHECK(contains(refusal(two_layers, {.ranks = 7}), "7 ranks / (TP 2 x PP 1) = 3.5"));
}

TEST_CASE("expert groups: TP 1 and EP 3, and the ranks with the same experts") {
  const RecordedWorkload w = read(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 3 pp: 1 all_gpus: 12\n1\n"
      "moe -1 0 ALLTOALL_EP 600 0 ALLTOALL_EP 600 0 ALLGATHER_DP_EP 700 0\n");
  const OpGraph& g = w.graph;
  REQUIRE(g.actors.size() == 4);  // an actor is an expert group
  CHECK(g.ranks_per_actor == 3);
  REQUIRE(g.groups.size() == 5);
  CHECK(g.groups[1].dimension == Dimension::ep);
  CHECK(g.groups[1].ranks == std::vector<std::uint32_t>{3, 4, 5});
  CHECK(g.groups[4].dimension == Dimension::dp);
  CHECK(g.groups[4].rows == 3);
  CHECK(g.groups[4].row(1).size() == 4);
  CHECK(std::ranges::equal(g.groups[4].row(1), std::vector<std::uint32_t>{1, 4, 7, 10}));
  CHECK(operations(g, Kind::collective) == 3);
  CHECK(contains(refusal("HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ep: 5 all_gpus: 12\n1\n"
                         "m -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n"),
                 "DP 12 = 12 / (TP 1 x PP 1) is not a multiple of EP 5"));
}

TEST_CASE("groups of one rank and sizes of 0 are counted, not timed") {
  const RecordedWorkload w = read(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 all_gpus: 4\n2\n"
      "a -1 2000 ALLREDUCE 64 0 NONE 9 0 ALLREDUCE 0 0\n"
      "b -1 0 ALLTOALL_EP 64 0 NONE 0 0 ALLREDUCE 8 0\n");
  CHECK(operations(w.graph, Kind::collective) == 1);
  CHECK(noted(w, "1 collectives of 0 bytes"));
  CHECK(noted(w, "2 collectives in groups of one rank"));
  CHECK(noted(w, "1 columns are NONE with a size"));
}

TEST_CASE("all-reduce and all-to-all in one are two, one after the other; broadcast is one") {
  const RecordedWorkload w = read(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 4\n2\n"
      "a -1 0 ALLREDUCEALLTOALL 64 0 NONE 0 0 ALLREDUCEALLTOALL_DP_EP 32 0\n"
      "b -1 0 BROADCAST 16 0 NONE 0 0 NONE 0 0\n");
  const auto& ops = w.graph.programs[0].operations;
  REQUIRE(ops.size() == 5);
  CHECK(ops[0].collective == CollectiveOp::all_reduce);
  CHECK(ops[1].collective == CollectiveOp::all_to_all);
  CHECK(w.graph.programs[0].after[ops[1].after_first] == 0);
  CHECK(ops[2].collective == CollectiveOp::broadcast);
  CHECK(w.graph.programs[0].after[ops[4].after_first] == 3);
}

TEST_CASE("64 bits: times from 2^31 ns, sizes beyond 2^32 bytes") {
  const RecordedWorkload w = read(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 all_gpus: 2\n1\n"
      "a -1 2147483648 ALLREDUCE 38654705664 4294967296 NONE 0 10000000000 NONE 0 0\n");
  CHECK(seconds(w, "compute of a step") == approx(16.442450944));
  CHECK(w.graph.programs[0].operations[1].bytes == 38654705664.0);
}

TEST_CASE("recomputation: the forward from the checkpoint runs before the backward") {
  const RecordedWorkload w = read(
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 all_gpus: 2 "
      "checkpoints: 2 0 2 checkpoint_initiates: 2 1 3\n4\n"
      "a -1 1000 ALLREDUCE 8 0 NONE 0 0 NONE 0 0\nb -1 2000 NONE 0 10000 NONE 0 0 NONE 0 0\n"
      "c -1 4000 NONE 0 0 NONE 0 0 NONE 0 0\nd -1 8000 NONE 0 20000 NONE 0 0 NONE 0 0\n");
  CHECK(seconds(w, "forward") == approx(15e-6));
  CHECK(seconds(w, "recomputed forward") == approx(5e-6));  // c before d, a before b
  CHECK(compute_of(w.graph.programs[0]) == approx(50e-6));
  CHECK(operations(w.graph, Kind::collective) == 2);
  CHECK(contains(refusal("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 "
                         "checkpoints: 1 1 checkpoint_initiates: 1 0\n2\n"
                         "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0\nb -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n"),
                 "layer 0 recomputes the forward pass, but there is no checkpoint before it"));
  CHECK(contains(refusal("HYBRID_TRANSFORMER model_parallel_NPU_group: 2 checkpoints: 1 0\n1\n"
                         "a -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n"),
                 "HYBRID_TRANSFORMER does not recompute"));
}

// PP stages, GA micro-batches of VPP chunks; a unit takes 10 us forward and 20 us backward.
std::string pipeline(unsigned pp, unsigned vpp, unsigned ga, const std::string& tail = "") {
  std::string text = fmt::format(
      "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 pp: {} vpp: {} ga: {} all_gpus: {} "
      "pp_comm 1000\n{}\ngrads -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 64 0\n",
      pp, vpp, ga, 4 * pp, 1 + 2 * vpp * ga);
  for (unsigned unit = 0; unit < vpp * ga; ++unit)
    text += fmt::format(
        "attention{0} -1 4000 ALLREDUCE 8 8000 NONE 0 0 NONE 0 0\n"
        "mlp{0} -1 6000 NONE 0 2000 NONE 0 10000 NONE 0 0\n",
        tail);
  return text;
}

TEST_CASE("pipeline: the bubble (PP-1)/(VPP GA) comes about from messages") {
  for (const auto& [pp, vpp, ga] :
       {std::tuple(2u, 1u, 4u), std::tuple(4u, 1u, 6u), std::tuple(3u, 2u, 6u),
        std::tuple(2u, 4u, 2u), std::tuple(4u, 3u, 8u), std::tuple(3u, 1u, 1u)}) {
    const RecordedWorkload w = read(pipeline(pp, vpp, ga));
    CAPTURE(pp);
    CAPTURE(vpp);
    CAPTURE(ga);
    const OpGraph& g = w.graph;
    CHECK(g.programs.size() == pp);
    CHECK(g.actors.size() == 2 * pp);
    const double unit_s = 30e-6, units = vpp * ga;
    CHECK(seconds(w, "compute of a step") == approx(units * unit_s));
    CHECK(step_time(g) == approx((units + pp - 1) * unit_s));
    // Each boundary carries every unit once in each direction; chunks go round to the first stage.
    const std::size_t chunks = std::size_t{vpp} * ga, round = chunks - ga;
    CHECK(operations(g, Kind::send, 0) == chunks + round);
    CHECK(operations(g, Kind::recv, 0) == chunks + round);
    CHECK(operations(g, Kind::send, pp - 1) == chunks + round);
    if (pp > 2) CHECK(operations(g, Kind::send, 1) == 2 * chunks);
    for (const Operation& op : g.programs[0].operations)
      if (op.kind == Kind::send) CHECK(op.bytes == 1000);
  }
}

TEST_CASE("pipeline without visible units: the bubble is an operation") {
  std::string text = pipeline(4, 1, 6);
  for (std::size_t at = 0, k = 0; (at = text.find("attention ", at)) != text.npos; ++k)
    text.replace(at, 10, fmt::format("att{} ", k));
  for (std::size_t at = 0, k = 0; (at = text.find("mlp ", at)) != text.npos; ++k)
    text.replace(at, 4, fmt::format("mlp{} ", k));
  const RecordedWorkload w = read(text);
  CHECK(seconds(w, "pipeline bubble") == approx(3.0 / 6 * 180e-6));
  CHECK(noted(w, "one message in each direction"));
  CHECK(step_time(w.graph) == approx(270e-6));
  CHECK(operations(w.graph, Kind::send, 0) == 1);
  CHECK(operations(w.graph, Kind::recv, 1) == 2);
}

TEST_CASE("pp and pp_comm belong together") {
  const std::string row = "1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n";
  const std::string head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ";
  CHECK(contains(refusal(head + "pp: 1 pp_comm 50\n" + row),
                 "w.txt:1:62: pp_comm is 50 bytes, but pp is 1"));
  CHECK(contains(refusal(head + "pp: 1 pp_comm: 50\n" + row), "pp_comm is 50 bytes, but pp is 1"));
  CHECK(contains(refusal(head + "pp_comm:50\n" + row), "pp_comm is 50 bytes, but pp is 1"));
  CHECK(contains(refusal(head + "pp: 4\n" + row), "w.txt:1:52: pp is 4, but pp_comm is missing"));
  CHECK(read(head + "pp: 1 pp_comm: 0\n" + row).graph.programs.size() == 1);
  CHECK(read(head + "pp: 4 pp_comm: 0\n" + row).graph.programs.size() == 4);
}

TEST_CASE("every policy runs, with the groups it implies") {
  const std::string rows =
      "3\na -1 1000 ALLTOALL 64 1000 ALLTOALL 64 1000 NONE 0 0\n"
      "b -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 64 0\n"
      "c -1 1000 NONE 0 1000 NONE 0 1000 ALLREDUCE 64 0\n";
  struct Case {
    std::string header;
    std::size_t collectives;
    std::uint32_t tp;
  };
  for (const Case& c :
       {Case{"HYBRID_TRANSFORMER model_parallel_NPU_group: 2", 4, 2},
        Case{"HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2", 4, 2},
        Case{"HYBRID_DATA_MODEL model_parallel_NPU_group: 2", 4, 2},
        Case{"HYBRID_MODEL_DATA model_parallel_NPU_group: 2", 4, 2}, Case{"DATA", 4, 1},
        Case{"MODEL", 4, 8}, Case{"HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1", 4, 1},
        Case{"HYBRID_DLRM_ENHANCED DLRM_LAST_BOTTOM_LAYER: 1", 4, 1}, Case{"MICRO", 4, 1},
        Case{"DISTRIBUTED_INFERENCE", 1, 8}}) {
    CAPTURE(c.header);
    const RecordedWorkload w = read(c.header + "\n" + rows, {.ranks = 8});
    CHECK(operations(w.graph, Kind::collective) == c.collectives);
    CHECK(count(w, "TP") == c.tp);
    CHECK(w.graph.rank_count == 8);
    CHECK(compute_of(w.graph.programs[0]) ==
          approx(c.header == "DISTRIBUTED_INFERENCE" ? 3e-6 : 9e-6));
  }
  // HYBRID_MODEL_DATA: data-parallel ranks are neighbours.
  const RecordedWorkload w =
      read("HYBRID_MODEL_DATA model_parallel_NPU_group: 2\n" + rows, {.ranks = 8});
  CHECK(w.graph.groups[0].ranks == std::vector<std::uint32_t>{0, 4});
  CHECK(contains(refusal("DATA model_parallel_NPU_group: 2\n" + rows), "groups of 2"));
  CHECK(contains(refusal("HYBRID_TRANSFORMER\n" + rows), "add model_parallel_NPU_group: N"));
  CHECK(contains(refusal("HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 3\n" + rows), "there are 3 layers"));
}

TEST_CASE("recommendation: the embedding exchange runs beside the bottom layers") {
  const RecordedWorkload w = read(
      "HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1\n3\n"
      "emb -1 1000 ALLTOALL 64 1000 ALLTOALL 32 1000 NONE 0 0\n"
      "bottom -1 2000 NONE 0 2000 NONE 0 2000 ALLREDUCE 64 0\n"
      "top -1 4000 NONE 0 4000 NONE 0 4000 ALLREDUCE 64 0\n");
  const auto& program = w.graph.programs[0];
  const auto after = [&](std::size_t o) {
    const Operation& op = program.operations[o];
    return std::vector<std::uint32_t>(program.after.begin() + op.after_first,
                                      program.after.begin() + op.after_first + op.after_count);
  };
  // 0 emb, 1 exchange, 2 bottom, 3 top
  CHECK(program.operations[1].collective == CollectiveOp::all_to_all);
  CHECK(after(2) == std::vector<std::uint32_t>{0});
  CHECK(after(3) == std::vector<std::uint32_t>{2, 1});
}

TEST_CASE("a policy for each layer") {
  const RecordedWorkload w = read(
      "HYBRID_CUSTOMIZED model_parallel_NPU_group: 2 all_gpus: 8\n2\n"
      "a -1 1000 NONE 0 0 NONE 0 0 ALLREDUCE 64 0 DATA\n"
      "b -1 1000 ALLREDUCE 8 0 NONE 0 0 NONE 0 0 HYBRID_DATA_MODEL\n");
  REQUIRE(w.graph.groups.size() == 5);
  CHECK(w.graph.groups[4].size() == 8);  // DATA: all ranks
  CHECK(w.graph.groups[4].actors == 4);
}

TEST_CASE("mistakes in lines are named with their place") {
  const std::string head = "HYBRID_TRANSFORMER model_parallel_NPU_group: 1\n";
  const auto with = [&](const std::string& row) { return refusal(head + "1\n" + row + "\n"); };
  CHECK(contains(with("a -1 1 NONE 0 1 NONE 0 1 NONE 0"),
                 "w.txt:3:1: 11 of 12 columns: missing are update_ns"));
  CHECK(contains(with("a -1 1 NONE 0 1 NONE 0 1"),
                 "9 of 12 columns: missing are wg_comm, wg_bytes, update_ns"));
  CHECK(contains(with("a -1 1 NONE 0 1 NONE 0 1 NONE 0 1 extra"), "w.txt:3:35: 13 columns"));
  CHECK(contains(with("a -1 1 ALLREDUCE_XP 0 1 NONE 0 1 NONE 0 1"),
                 "w.txt:3:8: fwd_comm: unknown suffix \"_XP\" of ALLREDUCE"));
  CHECK(contains(with("a -1 1 ALLREDUC 0 1 NONE 0 1 NONE 0 1"), "did you mean \"ALLREDUCE\"?"));
  CHECK(contains(with("a -1 1 NONE_EP 0 1 NONE 0 1 NONE 0 1"), "unknown collective"));
  CHECK(contains(with("a -1 -1 NONE 0 1 NONE 0 1 NONE 0 1"), "fwd_ns is \"-1\""));
  CHECK(contains(with("a -1 1 NONE 1e3 1 NONE 0 1 NONE 0 1"), "fwd_bytes is \"1e3\""));
  CHECK(contains(with("a -1 1 NONE 99999999999999999999 1 NONE 0 1 NONE 0 1"), "fwd_bytes"));
  CHECK(contains(with("a 0 1 NONE 0 1 NONE 0 1 NONE 0 1"), "layer 0 depends on layer 0"));
  CHECK(contains(with("a -2 1 NONE 0 1 NONE 0 1 NONE 0 1"), "dep is \"-2\""));
  CHECK(contains(with("a -1 1 NONE 0 1 NONE 0 1 NONE 0 1\nb -1 1 NONE 0 1 NONE 0 1 NONE 0 1"),
                 "w.txt:2:1: line 2 declares 1 layers, but the file has 2"));
  CHECK(
      contains(refusal(head + "9\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1"),
               "w.txt:2:1: line 2 declares 9 layers, but the file ends after 1: it is truncated"));
  CHECK(contains(refusal(head + "9\n"), "ends before the first layer"));
  CHECK(contains(refusal(head), "ends before the number of layers"));
  CHECK(contains(refusal(""), "w.txt:1:1: the file ends before the number of layers"));
  CHECK(contains(refusal(head + "0\n"), "the number of layers is \"0\""));
  CHECK(contains(with("a\x01 -1 1 NONE 0 1 NONE 0 1 NONE 0 1"), "byte that is not text"));
}

TEST_CASE("mistakes in the header are named with their place") {
  const auto with = [](const std::string& head) {
    return refusal(head + "\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 1\n");
  };
  CHECK(contains(with("HYBRID_TRANSFORMERS model_parallel_NPU_group: 1"),
                 "(did you mean \"HYBRID_TRANSFORMER\"?)"));
  CHECK(contains(with("HYBRID_TRANSFORMER model_parallel_NPU_group: 1 gax: 4"),
                 "w.txt:1:48: unknown key \"gax\""));
  CHECK(contains(with("HYBRID_TRANSFORMER model_parallel_NPU_group:"), "no value after"));
  CHECK(contains(with("HYBRID_TRANSFORMER model_parallel_NPU_group: 0"), "from 1 to"));
  CHECK(contains(with("HYBRID_TRANSFORMER model_parallel_NPU_group: 1 ga: 1 ga: 2"),
                 "duplicate key"));
  CHECK(contains(with("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 checkpoints: 2 "
                      "0"),
                 "checkpoints declares 2 layers, but 1 follow"));
  CHECK(contains(with("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 checkpoints: 1 "
                      "7"),
                 "layer 7 in a checkpoint list, but there are 1"));
  CHECK(contains(with("HYBRID_TRANSFORMER model_parallel_NPU_group: 1000000 pp: 1000000 pp_comm 0"),
                 "more than 1000000"));
}

TEST_CASE("every prefix of a file is a graph or an error") {
  const std::string text = pipeline(2, 2, 2);
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const auto w = try_read(text.substr(0, n), {.ranks = 8});
    CHECK((w.has_value() || !w.error().what.empty()));
  }
}

// ---- whole models, in the forms that SimAI and AICB write ----

std::string layer(std::string_view name, std::string_view forward,
                  std::string_view input = "1 NONE 0", std::string_view weight = "1 NONE 0") {
  return fmt::format("{} -1 {} {} {} 100\n", name, forward, input, weight);
}

// TP 2, EP 16, PP 12 with 8 chunks, 24 micro-batches on 9,216 GPUs. Sizes and compute times are
// those of the mixture of experts among the examples of SimAI (github.com/aliyun/SimAI), whose own
// answer is known.
std::string mixture_of_experts() {
  constexpr unsigned micro_batches = 24, units = 8 * micro_batches;
  const std::string_view attention = "1750840 ALLGATHER 50331648",
                         attention_out = "1750840 REDUCESCATTER 50331648",
                         half = "875420 REDUCESCATTER 0", weights = "875420 NONE 0";
  std::string out =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 16 pp: 12 vpp: 8 ga: 24 "
      "all_gpus: 9216 checkpoints: 0 checkpoint_initiates: 0 pp_comm 50331648\n1789\n";
  out += layer("grad_gather", "1 NONE 0", "1 NONE 0", "1 ALLGATHER 2807758848");
  out += layer("grad_param_comm", "1 NONE 0", "1 NONE 0", "1 REDUCESCATTER 5615517696");
  out += layer("grad_param_compute", "1 NONE 0", "29700224 NONE 0");
  out += layer("embedding_grads", "1 NONE 0", "1 ALLREDUCE 50331648");
  out += layer("moe_grad_norm1", "1 NONE 0", "1 NONE 0", "1 ALLGATHER_DP_EP 19327352832");
  out += layer("moe_grad_norm2", "1 NONE 0", "1 NONE 0", "1 REDUCESCATTER_DP_EP 38654705664");
  for (unsigned unit = 0; unit < units; ++unit) {
    if (unit % 8 == 0)
      out += layer("embedding_layer", "622731 ALLREDUCE 50331648", "1 NONE 0",
                   unit == 0 ? "15091072 NONE 0" : weights);
    out += layer("attention_column", attention, half, weights);
    out += layer("attention_row", attention_out, "875420 ALLGATHER 50331648", weights);
    out += layer("mlp_moelayer", "7956367 ALLGATHER 1572864", "7956367 ALLGATHER 1572864");
    out += layer("mlp_moelayer", "1 ALLTOALL 25165824", "1 ALLTOALL 25165824");
    out += layer("mlp_moelayer", "1 ALLTOALL_EP 100663296", "1 ALLTOALL_EP 100663296");
    out += layer("mlp_moelayer", "1 ALLGATHER 201326592", "1 REDUCESCATTER 201326592");
    out += layer("mlp_moelayer", "1 REDUCESCATTER 201326592", "1 ALLGATHER 201326592");
    out += layer("mlp_moelayer", "1 ALLTOALL_EP 100663296", "1 ALLTOALL_EP 100663296");
    out += layer("mlp_moelayer", "1 ALLTOALL 25165824", "1 ALLTOALL 25165824");
    if (unit % 8 == 7) out += layer("final_column", "875420 ALLGATHER 50331648", half, weights);
  }
  for (int i = 1; i <= 3; ++i)
    out += layer(fmt::format("cross_entropy{}", i), "0 ALLREDUCE 16384", "0 NONE 0", "0 NONE 0");
  for (int i = 1; i <= 4; ++i)
    out += layer(fmt::format("optimizer{}", i), "0 ALLREDUCE 4", "0 NONE 0", "0 NONE 0");
  return out;
}

TEST_CASE("SimAI's example of 9,216 GPUs: compute time of its own answer") {
  const TraceFile file{"moe.txt", mixture_of_experts()};
  CHECK(is_simai(file));
  const auto w = read_workload(std::span(&file, 1), {});
  REQUIRE_MESSAGE(w.has_value(), (w ? "" : w.error().text()));
  CHECK(count(*w, "layers") == 1789);
  CHECK(count(*w, "ranks") == 9216);
  CHECK(count(*w, "DP") == 384);
  CHECK(w->graph.actors.size() == 288);
  CHECK(w->graph.programs.size() == 12);
  // SimAI-Analytical: 60.20 % of 7,545,619 us are compute.
  CHECK(std::abs(seconds(*w, "compute of a step") / (0.6020 * 7.545619) - 1) < 1e-3);
  CHECK(compute_of(w->graph.programs[0]) == approx(seconds(*w, "compute of a step")));
  CHECK(noted(*w, "192 units (VPP 8 x GA 24)"));
  CHECK(noted(*w, "216 collectives of 0 bytes"));
  // Per layer 2 + 7 forward and 1 + 7 backward, heads and embeddings, 4 of weight gradients; the
  // embedding's all-reduce of gradients.
  CHECK(count(*w, "collectives of a rank") == 192 * (9 + 8) + 24 + 24 + 7 + 1 + 4);
  // Forward and backward of 192 units over the first boundary, 7/8 of them round from the last.
  CHECK(count(*w, "pipeline messages of a rank") == 2 * 192 + 2 * 168);
  // Communication free of time: what is left is compute and the bubble, whose units are not equal
  // (one of eight has the head and the next embedding).
  const double ideal = seconds(*w, "compute of a step") * (1 + 11.0 / 192);
  CHECK(std::abs(step_time(w->graph) / ideal - 1) < 0.015);
}

struct Form {
  std::string name, text;
  std::uint64_t layers;
  std::uint32_t ranks;
  double compute_s;
};

// Headers with few words, fields by blanks or tabs, collectives in any pass.
std::vector<Form> forms() {
  const auto head = [](std::string_view keys, unsigned layers) {
    return fmt::format("{}\n{}\n", keys, layers);
  };
  const std::string plain =
      "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: {} checkpoints: 0 "
      "checkpoint_initiates: 0";
  std::string micro = head("MICRO", 19), dense = head(fmt::format(fmt::runtime(plain), 2), 68),
              sharded = head(fmt::format(fmt::runtime(plain), 1), 3);
  for (unsigned i = 0; i < 19; ++i)
    micro += fmt::format("micro_test\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t{}\t1\n",
                         std::uint64_t{4096} << i);
  dense += layer("norm", "0 BROADCAST 16384") + layer("embedding_layer", "1 ALLREDUCE 16777216");
  for (unsigned i = 0; i < 32; ++i) {
    dense += layer("attention_layer", "540000 ALLREDUCE 16777216", "592000 ALLREDUCE 16777216",
                   "592000 NONE 0");
    dense += layer("mlp_layer", "486000 ALLREDUCE 16777216", "530000 ALLREDUCE 16777216",
                   "530000 NONE 0");
  }
  dense += layer("layernorm", "1 NONE 0", "1 ALLREDUCE 6754926592");
  dense += layer("optimizer1", "1 ALLREDUCE 4");
  for (unsigned i = 0; i < 3; ++i)  // DeepSpeed's ZeRO 3: weights gathered in the backward pass
    sharded +=
        fmt::format("layer{}\t-1\t 7000000\tNONE\t0   13000000\tALLGATHER\t317843\t 1\t{}\t100\n",
                    i, i == 0 ? "REDUCESCATTER\t1889785610" : "NONE\t0");
  return {{"micro", micro, 19, 8, 76e-9},
          {"dense", dense, 68, 8, 32 * (540e3 + 2 * 592e3 + 486e3 + 2 * 530e3) * 1e-9},
          {"sharded", sharded, 3, 8, 3 * 20e-3}};
}

TEST_CASE("every form of the text is read and summarised") {
  for (const Form& form : forms()) {
    CAPTURE(form.name);
    const TraceFile file{form.name + ".txt", form.text};
    const auto w = read_workload(std::span(&file, 1), {});
    REQUIRE_MESSAGE(w.has_value(), (w ? "" : w.error().text()));
    CHECK(w->format == "simai");
    CHECK(count(*w, "layers") == form.layers);
    CHECK(w->graph.rank_count == form.ranks);
    CHECK(!w->notes.empty());
    CHECK(seconds(*w, "compute of a step") == approx(form.compute_s).epsilon(1e-3));
    CHECK(compute_of(w->graph.programs[0]) == approx(seconds(*w, "compute of a step")));
  }
}

}  // namespace
}  // namespace weft::workload
