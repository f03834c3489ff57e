#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "base/test_approx.hpp"
#include "workload/trace/test_kit.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

using model::CollectiveOp;
using model::Dimension;
using model::Operation;
using testing::contains;
using testing::noted;

constexpr const char* header =
    "comm_type,comm_group,comm_group_size,msg_size,stage,dst,src,additional,_elapsed_time,algbw,"
    "busbw,count\n";

Result<RecordedWorkload> try_aicb(const std::string& text, const TraceOptions& options = {}) {
  return read_aicb_csv({"w.csv", text}, options);
}

RecordedWorkload read_rows(const std::string& rows, const TraceOptions& options = {}) {
  return testing::accepted(try_aicb(header + rows, options));
}

std::string aicb_refusal(const std::string& text, const TraceOptions& options = {}) {
  const auto workload = try_aicb(text, options);
  return workload ? "accepted" : workload.error().text();
}

constexpr const char* step =
    "CommType.all_reduce,CommGroup.dp_group,3,8,init.model_setup,None,None,,None,None,None,1\n"
    "CommType.epoch_end,None,None,0,,None,None,,None,None,None,1\n"
    "CommType.broadcast,CommGroup.tp_group,2,40,forward_step,None,0,,None,None,None,1\n"
    "CommType.computation,None,None,\"((1, 2), (2, 3))\",forward,None,None,,2.5,None,None,1\n"
    "CommType.isend,CommGroup.pp_group,2,99,forward_step,1,None,,None,None,None,2\n"
    "CommType.all_gather,CommGroup.dp_group,3,5000000000,step,None,None,,None,None,None,1\n";

TEST_CASE("lines of one rank become a chain that all ranks run") {
  const RecordedWorkload w = read_rows(step);
  CHECK(w.format == "aicb");
  CHECK(w.graph.rank_count == 12);  // TP 2, DP 3, PP 2
  CHECK(w.graph.actors.size() == 6);
  const auto& ops = w.graph.programs[0].operations;
  REQUIRE(ops.size() == 5);
  CHECK(ops[0].collective == CollectiveOp::broadcast);
  CHECK(ops[0].dimension == Dimension::tp);
  CHECK(ops[1].seconds == approx(2.5e-3));
  CHECK(ops[2].collective == CollectiveOp::send_recv);
  CHECK(ops[2].dimension == Dimension::pp);
  CHECK(ops[3].bytes == 99);
  CHECK(ops[4].bytes == 5e9);
  CHECK(w.graph.labels[ops[4].label] == "step");
  for (std::uint32_t o = 1; o < ops.size(); ++o)
    CHECK(w.graph.programs[0].after[ops[o].after_first] == o - 1);
  CHECK(noted(w, "1 setup lines"));
  CHECK(noted(w, "milliseconds"));
}

TEST_CASE("the ranks of a stage may stand above the header") {
  const std::string text = "[ pp_stage0: [rank0, rank1] ]\n" + std::string(header) + step;
  CHECK(is_aicb_csv({"w.csv", text}));
  const auto w = try_aicb(text);
  REQUIRE_MESSAGE(w.has_value(), (w ? "" : w.error().text()));
  CHECK(noted(*w, "one pipeline stage"));
  CHECK(contains(aicb_refusal(text + "x,,,,,,,,,,,\n"), "w.csv:9:1: unknown comm_type"));
}

TEST_CASE("embedding groups: first and last stage alone") {
  const RecordedWorkload w = read_rows(
      "CommType.all_reduce,CommGroup.pp_group,4,8,s,None,None,,None,None,None,1\n"
      "CommType.all_reduce,CommGroup.embedding_group,2,16,s,None,None,,None,None,None,1\n");
  REQUIRE(w.graph.programs.size() == 2);
  CHECK(w.graph.programs[1].operations.size() == 1);
  CHECK(w.graph.groups.back().ranks == std::vector<std::uint32_t>{0, 3});
}

TEST_CASE("old files give no group sizes") {
  const std::string text =
      "comm_type,comm_group,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,count\n"
      "CommType.all_to_all,CommGroup.dp_group,4096,warmup,None,None,,None,None,None,1\n";
  CHECK(contains(aicb_refusal(text), "does not give the group size"));
  const auto w = try_aicb(text, {.ranks = 100});
  REQUIRE(w.has_value());
  CHECK(w->graph.groups[0].size() == 100);
}

TEST_CASE("expert groups and other rank counts") {
  const std::string rows =
      "CommType.all_to_all,CommGroup.ep_group,4,64,s,None,None,,None,None,None,1\n"
      "CommType.all_reduce,CommGroup.ep_dp_group,2,64,s,None,None,,None,None,None,1\n"
      "CommType.barrier,None,None,0,s,None,None,,None,None,None,1\n";
  const RecordedWorkload w = read_rows(rows);
  CHECK(w.graph.rank_count == 8);
  CHECK(w.graph.groups.back().size() == 8);
  CHECK(read_rows(rows, {.ranks = 16}).graph.rank_count == 16);
  CHECK(contains(aicb_refusal(header + rows, {.ranks = 6}), "DP 6 is not a multiple of EP 4"));
}

TEST_CASE("mistakes are named with their place") {
  const std::string row =
      "CommType.all_reduce,CommGroup.dp_group,3,8,s,None,None,,None,None,None,1\n";
  const auto with = [&](std::string text, std::string_view from, std::string_view to) {
    text.replace(text.find(from), from.size(), to);
    return aicb_refusal(header + row + text);
  };
  CHECK(contains(with(row, "all_reduce", "all_reduces"), "w.csv:3:1: unknown comm_type"));
  CHECK(contains(with(row, "dp_group", "xp_group"), "w.csv:3:21: unknown comm_group"));
  CHECK(contains(with(row, ",8,", ",-8,"), "msg_size is \"-8\""));
  CHECK(contains(with(row, ",3,", ",4,"), "the group has 4 ranks here and 3 in line 2"));
  CHECK(contains(with(row, ",3,", ",0,"), "comm_group_size is 0"));
  CHECK(aicb_refusal("comm_type,comm_group\n") != "accepted");
  CHECK(contains(aicb_refusal(header + row, {.ranks = 0}), "0 ranks"));
}

TEST_CASE("every prefix of a file is a graph or an error") {
  const std::string text = std::string(header) + step;
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const auto w = try_aicb(text.substr(0, n));
    CHECK((w.has_value() || !w.error().what.empty()));
  }
}

TEST_CASE("the table of specifications says what it is") {
  const TraceFile file{"spec.csv",
                       "id\tName\tParameter_size\tHidden_size\tNum_of_layers\tAttention_heads\t"
                       "Sequence_length\tFFN_hidden_size\tName\tWorld_size\tTP\tDP\tPP\tSP\n"
                       "1\tours\t1B\t2048\t16\t16\t2048\t8192\tMegatron\t8\t1\t8\t1\t-\n"};
  const auto w = read_workload(std::span(&file, 1), {});
  REQUIRE(!w.has_value());
  CHECK(contains(w.error().text(), "table of workload specifications"));
}

}  // namespace
}  // namespace weft::workload
