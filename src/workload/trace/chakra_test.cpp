#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "workload/trace/chakra_groups.hpp"
#include "workload/trace/chakra_test_kit.hpp"
#include "workload/trace/chakra_trace.hpp"
#include "workload/trace/test_kit.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

using namespace test;
using namespace testing;
using model::CollectiveOp;
using model::Operation;

Result<RecordedWorkload> read_et(const std::string& content, const TraceOptions& options = {},
                                 const std::string& path = "job.0.et") {
  const TraceFile file{path, content};
  return read_chakra(std::span(&file, 1), options);
}

RecordedWorkload good_et(const std::string& content, const TraceOptions& options = {}) {
  return accepted(read_et(content, options));
}

std::string bad_et(const std::string& content, const TraceOptions& options = {}) {
  return refused(read_et(content, options));
}

const Operation& operation(const RecordedWorkload& workload, std::string_view label,
                           std::size_t program = 0) {
  const auto& graph = workload.graph;
  const auto found =
      std::ranges::find_if(graph.programs[program].operations,
                           [&](const Operation& op) { return graph.labels[op.label] == label; });
  REQUIRE(found != graph.programs[program].operations.end());
  return *found;
}

// Labels of what the operation waits for, in order.
std::vector<std::string> waits(const RecordedWorkload& workload, std::string_view label) {
  const auto& graph = workload.graph;
  const Operation& op = operation(workload, label);
  std::vector<std::string> out;
  for (std::uint32_t i = 0; i < op.after_count; ++i)
    out.push_back(
        graph.labels
            [graph.programs[0].operations[graph.programs[0].after[op.after_first + i]].label]);
  std::ranges::sort(out);
  return out;
}

//   load -> gemm -> all_reduce -> step
std::string small_trace() {
  return metadata() + node({.id = 0, .name = "load", .type = 2, .micros = 5}) +
         node({.id = 7, .name = "gemm", .data = {0}, .micros = 20, .rest = gpu()}) +
         node({.id = 9, .name = "sum", .type = 7, .ctrl = {7}, .rest = collective(0, 4096)}) +
         node({.id = 12, .name = "step", .data = {9, 7}, .micros = 1});
}

TEST_CASE("a small trace runs on all ranks") {
  const RecordedWorkload w = good_et(small_trace(), {.ranks = 8});
  CHECK(w.format == "chakra");
  CHECK(w.graph.rank_count == 8);
  CHECK(w.graph.actors.size() == 8);
  CHECK(w.graph.programs.size() == 1);
  REQUIRE(w.graph.groups.size() == 1);
  CHECK(w.graph.groups[0].ranks.size() == 8);
  CHECK(w.graph.groups[0].actors == 8);
  CHECK(operation(w, "load").seconds == approx(5e-6));
  CHECK(operation(w, "load").stream == 0);
  CHECK(operation(w, "gemm").stream == 2);
  CHECK(operation(w, "step").stream == 1);
  CHECK(operation(w, "sum").kind == Operation::Kind::collective);
  CHECK(operation(w, "sum").collective == CollectiveOp::all_reduce);
  CHECK(operation(w, "sum").bytes == 4096);
  CHECK(waits(w, "sum") == std::vector<std::string>{"gemm"});
  CHECK(waits(w, "step") == std::vector<std::string>{"gemm", "sum"});
  CHECK(count(w, "compute nodes") == 2);
  CHECK(count(w, "memory nodes") == 1);
  CHECK(noted(w, "all 8 ranks run its program"));
}

TEST_CASE("gzip and archives hold the same trace") {
  const RecordedWorkload plain = good_et(small_trace());
  const auto packed = gzip(small_trace());
  REQUIRE(packed.has_value());
  const std::string archive = tar_member("dir", "", '5') + tar_member("README", "hello") +
                              tar_member("dir/._job.0.et", "junk") +
                              tar_member("dir/job.0.et", small_trace()) + tar_end();
  const auto tgz = gzip(archive);
  for (const std::string& content : {*packed, archive, *tgz}) {
    const RecordedWorkload w = good_et(content);
    CHECK(w.graph.rank_count == plain.graph.rank_count);
    CHECK(w.graph.labels == plain.graph.labels);
    CHECK(w.counts == plain.counts);
  }
  CHECK(noted(good_et(archive), "README"));
  CHECK(is_chakra({"x", *tgz}));
  CHECK(is_chakra({"x", small_trace()}));
  CHECK_FALSE(is_chakra({"x", "num_ranks 2"}));
  CHECK(is_chakra({"x", packed->substr(0, packed->size() / 2)}));  // to be told what is wrong
}

TEST_CASE("integers of every kind mean the same, and every kind is passed over") {
  const std::int64_t size = 1000;
  const std::map<std::string, std::string> kinds{
      {"double", fixed(3, std::bit_cast<std::uint64_t>(1000.0), 8)},
      {"float", fixed(5, std::bit_cast<std::uint32_t>(1000.0f), 4)},
      {"int32", number(7, size)},
      {"int64", number(9, size)},
      {"uint32", number(11, size)},
      {"uint64", number(13, size)},
      {"sint32", number(15, size * 2)},
      {"sint64", number(17, size * 2)},
      {"fixed32", fixed(19, size, 4)},
      {"fixed64", fixed(21, size, 8)},
      {"sfixed32", fixed(23, size, 4)},
      {"sfixed64", fixed(25, size, 8)}};
  for (const auto& [kind, value] : kinds) {
    CAPTURE(kind);
    // The same value under another name is passed over; so is a list of each kind.
    std::string rest = gpu() + int64_attribute("comm_type", 2) + attribute("comm_size", value) +
                       attribute("something", value);
    for (std::uint32_t list = 4; list <= 32; list += 2)
      rest += attribute("list", text(list, text(1, "\x01\x02")));
    rest += attribute("bytes", text(31, "ab")) + attribute("text", text(29, "cd"));
    const RecordedWorkload w =
        good_et(metadata() + node({.name = "gather", .type = 7, .rest = rest}), {.ranks = 4});
    CHECK(operation(w, "gather").bytes == 4 * 1000);  // per rank in the file, the result here
  }
  const std::string negative = attribute("comm_size", number(15, 1));  // zigzag: -1
  CHECK(bad_et(metadata() + node({.name = "n", .type = 7, .rest = collective(0, 5) + negative}))
            .contains("comm_size -1"));
}

TEST_CASE("collectives are mapped, and the notes say so") {
  struct Row {
    std::int64_t type;
    CollectiveOp op;
    double bytes;
    const char* note;
  };
  for (const Row& row :
       {Row{0, CollectiveOp::all_reduce, 100, ""},
        Row{1, CollectiveOp::broadcast, 100, "reduces run as broadcasts"},
        Row{2, CollectiveOp::all_gather, 300, ""},
        Row{3, CollectiveOp::all_gather, 300, "gathers run as all-gathers"},
        Row{4, CollectiveOp::all_gather, 100, "scatters run as all-gathers"},
        Row{5, CollectiveOp::broadcast, 100, ""}, Row{6, CollectiveOp::all_to_all, 100, ""},
        Row{7, CollectiveOp::reduce_scatter, 100, ""},
        Row{8, CollectiveOp::reduce_scatter, 100, ""},
        Row{9, CollectiveOp::all_reduce, 0, "barriers run as all-reduces"}}) {
    CAPTURE(row.type);
    const RecordedWorkload w =
        good_et(metadata() + node({.name = "c", .type = 7, .rest = collective(row.type, 100)}),
                {.ranks = 3});
    CHECK(operation(w, "c").collective == row.op);
    CHECK(operation(w, "c").bytes == row.bytes);
    CHECK((row.note[0] == 0 || noted(w, row.note)));
  }
  const auto lone =
      good_et(metadata() + node({.name = "c", .type = 7, .rest = collective(0, 1)}), {.ranks = 1});
  CHECK(operation(lone, "c").kind == Operation::Kind::compute);
  CHECK(noted(lone, "of one rank"));
}

TEST_CASE("sizes come from tensors where nothing else tells them") {
  CHECK(tensor_bytes("[[430, 431, 0, 53120, 4, 'cuda:0']]") == 212480);
  CHECK(tensor_bytes("[[[1, 2, 0, 10, 8, 'cuda:0'], [3, 4, 0, 2, 2, \"cpu\"]], '<Object>', -1]") ==
        84);
  CHECK(tensor_bytes("['a', 1, [2]]") == 0);
  const std::string inputs = text(8, text(1, "[[430, 431, 0, 53120, 4, 'cuda:0']]"));
  const auto trace = [&](const std::string& rest) {
    return metadata() + node({.name = "AllReduce", .type = 7, .rest = gpu() + rest});
  };
  const RecordedWorkload w = good_et(trace(inputs));
  CHECK(operation(w, "AllReduce").bytes == 212480);
  CHECK(noted(w, "taken from their tensors"));
  CHECK(noted(w, "taken from their names"));
  CHECK(noted(good_et(trace("")), "neither size nor tensors"));
}

TEST_CASE("roofline where operations stand for time") {
  const std::string trace =
      metadata() +
      node({.id = 1,
            .name = "gemm",
            .rest = gpu() + int64_attribute("num_ops", 2'000'000) +
                    attribute("tensor_size", number(13, 3'000))}) +
      node({.id = 2, .name = "load", .type = 2, .rest = int64_attribute("tensor_size", 500)});
  CHECK(bad_et(trace).contains("no time (2 such nodes)"));
  const RecordedWorkload slow_math = good_et(trace, {.peak_flops = 1e9, .memory_bandwidth = 1e9});
  CHECK(operation(slow_math, "gemm").seconds == approx(2e-3));
  CHECK(operation(slow_math, "load").seconds == approx(5e-7));
  const RecordedWorkload slow_memory =
      good_et(trace, {.peak_flops = 1e12, .memory_bandwidth = 1e6});
  CHECK(operation(slow_memory, "gemm").seconds == approx(3e-3));
}

//  pipeline of two: 0 --64 B--> 1, then all-reduce of both
TEST_CASE("every rank has its own program where all were recorded") {
  const auto rank = [](bool sends) {
    return metadata() +
           node({.id = 1,
                 .name = sends ? "send" : "recv",
                 .type = sends ? 5u : 6u,
                 .rest = attribute(sends ? "comm_dst" : "comm_src", number(7, sends ? 1 : 0)) +
                         attribute("comm_tag", number(7, 3)) + int64_attribute("comm_size", 64)}) +
           node({.id = 2, .name = "sum", .type = 7, .data = {1}, .rest = collective(0, 8)});
  };
  const std::vector<TraceFile> files{{"a.1.et", rank(false)}, {"a.0.et", rank(true)}};
  const auto w = read_chakra(files, {});
  REQUIRE(w.has_value());
  CHECK(w->graph.programs.size() == 2);
  CHECK(w->graph.programs[0].role == "rank 0");
  CHECK(operation(*w, "send", 0).kind == Operation::Kind::send);
  CHECK(operation(*w, "send", 0).bytes == 64);
  CHECK(operation(*w, "recv", 1).tag == 3);
  CHECK(w->graph.groups.size() == 1);

  CHECK(read_chakra(files, {.ranks = 4}).error().code == Errc::unsupported);
  const std::vector<TraceFile> gap{{"a.0.et", rank(true)}, {"a.2.et", rank(false)}};
  CHECK(read_chakra(gap, {}).error().text().contains("rank 2, but there are 2 traces"));
  const std::vector<TraceFile> twice{{"a.0.et", rank(true)}, {"b.0.et", rank(false)}};
  CHECK(read_chakra(twice, {}).error().text().contains("rank 0 also in a.0.et"));
  const std::vector<TraceFile> two_sends{{"a.0.et", rank(true)}, {"a.1.et", rank(true)}};
  CHECK_FALSE(read_chakra(two_sends, {}).has_value());
  CHECK(bad_et(rank(true), {.ranks = 2}).contains("do not determine what the other ranks do"));
}

TEST_CASE("groups by side file, embedded, or missing") {
  const std::string trace =
      metadata() + node({.id = 1, .name = "tp", .type = 7, .rest = collective(0, 8, "5")}) +
      node({.id = 2, .name = "dp", .type = 7, .rest = collective(2, 8, "7")});
  const TraceFile side{"groups.json", R"({"5": [0,1], "6": [2,3], "7": [0,2], "8": [1,3]})"};
  const RecordedWorkload w = good_et(trace, {.groups = side});
  CHECK(w.graph.rank_count == 4);
  CHECK(w.graph.groups.size() == 4);
  CHECK(operation(w, "dp").bytes == 16);
  // Rank 3 is in the second group of each kind.
  const auto& actor = w.graph.actors[3];
  CHECK(w.graph.groups[w.graph.memberships[actor.group_first]].ranks ==
        std::vector<std::uint32_t>{2, 3});
  CHECK(w.graph.groups[w.graph.memberships[actor.group_first + 1]].ranks ==
        std::vector<std::uint32_t>{1, 3});

  const std::string embedded =
      trace + node({.id = 3,
                    .name = "## process_group:init ##",
                    .type = 1,
                    .rest = text(8, text(1, R"(['[{"pg_name": "5", "ranks": [], "group_size": 3}, )"
                                            R"({"pg_name": "7", "ranks": [0, 1, 2]}]'])"))});
  CHECK(good_et(embedded).graph.rank_count == 3);
  CHECK(good_et(embedded).graph.groups.size() == 2);

  CHECK(bad_et(trace).contains("group \"5\", which is unknown"));
  CHECK(bad_et(trace, {.ranks = 8, .groups = side}).contains("rank 4 of 8 is in no group"));
  CHECK(bad_et(trace, {.ranks = 2, .groups = side}).contains("the trace needs 4"));
  for (const char* json : {"{\"5\": [0,0]}", "{\"5\": [-1]}", "{\"5\": 3}", "[1]", "{\"5\": [",
                           "{\"5\": [[[[1]]]]}", "{\"5\": [99999999]}"})
    CHECK_FALSE(read_et(trace, {.groups = TraceFile{"groups.json", json}}).has_value());
}

TEST_CASE("involved_dim: all dimensions or nothing we could know") {
  const auto trace = [](const std::string& list) {
    return metadata() +
           node({.name = "c",
                 .type = 7,
                 .rest = collective(0, 8) + attribute("involved_dim", text(28, list))});
  };
  using namespace std::string_view_literals;
  CHECK(good_et(trace(text(1, "\x01\x01"))).graph.groups.size() == 1);  // packed, and not:
  CHECK(good_et(trace(number(1, 1) + number(1, 1))).graph.groups.size() == 1);
  for (const std::string& list : {text(1, "\x01\x00"sv), number(1, 1) + number(1, 0)})
    CHECK(bad_et(trace(list)).contains("only some dimensions"));
  CHECK(bad_et(trace("\x0a\x05")).contains("past the end"));
}

TEST_CASE("dangling dependencies count as satisfied and are reported") {
  const RecordedWorkload w = good_et(
      metadata() + node({.id = 1, .name = "a", .data = {77}, .ctrl = {78, 79}, .micros = 1}));
  CHECK(waits(w, "a").empty());
  CHECK(count(w, "dangling dependencies") == 3);
  CHECK(noted(w, "2 control and 1 data dependencies"));
  CHECK(noted(w, "node 1 \"a\" has data dependency 77"));
}

TEST_CASE("a circle is named") {
  const std::string trace = metadata() + node({.id = 1, .name = "in", .data = {4}}) +
                            node({.id = 2, .name = "x", .data = {3}}) +
                            node({.id = 3, .name = "y", .ctrl = {4}}) +
                            node({.id = 4, .name = "z", .data = {2}});
  const std::string text = bad_et(trace);
  CHECK(
      text.contains("node 4 \"z\" waits for node 2 \"x\" waits for node 3 \"y\" waits for node "
                    "4 \"z\""));
  CHECK(bad_et(metadata() + node({.id = 5, .name = "s", .data = {5}}))
            .contains("node 5 \"s\" waits for node 5"));
}

TEST_CASE("in traces from PyTorch control dependencies are calls, not order") {
  const std::string schema = text(2, text(1, "schema") + text(29, "1.0.1"));
  const std::string trace =
      metadata(schema) + node({.id = 1, .name = "call", .type = 7, .ctrl = {1}, .micros = 9}) +
      node({.id = 2,
            .name = "first",
            .type = 7,
            .data = {1},
            .ctrl = {3},
            .rest = collective(0, 8)}) +
      node({.id = 3, .name = "second", .type = 7, .data = {1}, .rest = collective(0, 8)});
  const RecordedWorkload w = good_et(trace);
  CHECK(operation(w, "call").kind == Operation::Kind::compute);
  CHECK(operation(w, "call").stream == 1);
  CHECK(waits(w, "first") == std::vector<std::string>{"call"});
  CHECK(waits(w, "second") == std::vector<std::string>{"call", "first"});
  CHECK(noted(w, "2 control dependencies give the call"));
  CHECK(noted(w, "1 communication nodes are CPU calls"));
  CHECK(count(w, "collective nodes") == 3);
}

TEST_CASE("broken streams are told with the byte") {
  CHECK(bad_et("").contains("empty"));
  CHECK(bad_et(metadata()).contains("no nodes"));
  CHECK(
      bad_et(node({.id = 1, .name = "n"})).contains("byte 1 of the stream: the first message is"));
  const std::string start = metadata();
  const auto at = [&](std::size_t offset) {
    return "byte " + std::to_string(start.size() + offset) + " of the stream";
  };
  CHECK(bad_et(start + "\x7f" + number(1, 1)).contains(at(0) + ": length extends past"));
  CHECK(bad_et(start + std::string(11, '\xff')).contains(at(0) + ": number (varint) longer"));
  CHECK(bad_et(start + framed("\x08" + std::string(11, '\xff')))
            .contains(at(2) + ": number (varint) longer"));
  CHECK(bad_et(start + framed(number(3, 9))).contains(at(1) + ": a node has a type"));
  CHECK(bad_et(start + framed("\x0b")).contains(at(1) + ": unknown wire type"));
  CHECK(bad_et(start + framed(number(2, 1))).contains(at(1) + ": a field has the wrong type"));
  const std::string one = node({.id = 6, .name = "n"}), two = node({.id = 7, .name = "m"});
  CHECK(bad_et(start + one + two + one)
            .contains(at(one.size() + two.size()) + ": node number 6 is used again"));
  CHECK(bad_et(start + one + one).contains(at(one.size())));
  CHECK(bad_et(start + node({.id = 1, .name = "bad", .type = 0})).contains("type 0 (invalid)"));
  CHECK(bad_et(start + node({.id = 1, .name = "c", .type = 7, .rest = gpu()}))
            .contains("without comm_type"));
  const auto packed = gzip(small_trace());
  CHECK(bad_et(packed->substr(0, packed->size() - 3)).contains("truncated"));
}

TEST_CASE("broken archives are told with the byte") {
  const std::string member = tar_member("a.0.et", small_trace());
  CHECK(good_et(member + tar_end()).graph.rank_count == 2);
  CHECK(bad_et(member).contains("without its closing blocks"));
  CHECK(bad_et(member.substr(0, 600)).contains("past the end"));
  std::string flipped = member + tar_end();
  flipped[3] = 'x';
  CHECK(bad_et(flipped).contains("byte 0 of the archive: header with a wrong checksum"));
  CHECK(bad_et(tar_member("README", "x") + tar_end()).contains("no trace"));
  CHECK(
      bad_et(tar_member("x.et", tar_member("y.0.et", "")) + tar_end()).contains("nested archive"));
  const std::string other = tar_member("b.1.et", small_trace());
  const std::string pax = tar_member("PaxHeader", "19 path=dir/c.1.et\n", 'x');
  CHECK(good_et(member + other + tar_end()).graph.programs.size() == 2);
  CHECK(good_et(member + pax + member + tar_end()).graph.programs.size() == 2);
  CHECK(good_et(member + tar_member("long", "dir/c.1.et", 'L') + member + tar_end())
            .graph.programs.size() == 2);
  CHECK(bad_et(member + member + tar_end()).contains("rank 0 also in"));
}

TEST_CASE("no prefix and no flipped bit breaks the reader") {
  const std::string whole = small_trace();
  for (std::size_t n = 0; n < whole.size(); ++n)
    if (const auto out = read_et(whole.substr(0, n)); !out) CHECK_FALSE(out.error().what.empty());
  const auto packed = gzip(whole);
  for (std::size_t n = 0; n < packed->size(); ++n)
    CHECK_FALSE(read_et(packed->substr(0, n)).has_value());
  Rng rng(1);
  for (int round = 0; round < 20'000; ++round) {
    std::string broken = whole;
    for (int flips = 0; flips < 1 + round % 3; ++flips)
      flip(broken[rng.below(broken.size())], rng.below(8));
    if (const auto out = read_et(broken); !out) CHECK_FALSE(out.error().what.empty());
  }
}

// A step as the converter of PyTorch's profiles writes it: the processor calls kernels, which wait
// for data of nodes that the converter has left out, and collectives come as calls and as kernels.
TEST_CASE("a converted PyTorch step: one rank of a data-parallel job") {
  constexpr unsigned layers = 40, buckets = 7;
  std::string trace = metadata(text(2, text(1, "schema") + text(29, "1.0.2-chakra.0.0.4")));
  std::uint64_t id = 1;
  const auto weights = [](unsigned bucket) { return 1'000'000u + bucket; };
  for (unsigned l = 0; l < layers; ++l) {
    const std::uint64_t call = id++, kernel = id++, gone = 1'000'000 + l;
    trace += node({.id = call, .name = "aten::conv2d", .ctrl = {gone}, .micros = 30});
    trace +=
        node({.id = kernel, .name = "kernel", .data = {call, gone}, .micros = 200, .rest = gpu()});
    trace += node({.id = id++, .name = "aten::view"});  // under 1 us
  }
  for (unsigned b = 0; b < buckets; ++b) {
    const std::uint64_t call = id++;
    const std::string inputs =
        text(8, text(1, fmt::format("[[4, 5, 0, {}, 4, 'cuda:0']]", weights(b))));
    trace += node({.id = call, .name = "c10d::allreduce_", .type = 7, .micros = 12});
    trace += node({.id = id++,
                   .name = "nccl:all_reduce",
                   .type = 7,
                   .data = {call},
                   .micros = 500,
                   .rest = gpu() + int64_attribute("comm_type", 0) + inputs});
  }
  const RecordedWorkload w = good_et(trace);
  CHECK(count(w, "compute nodes") == 3 * layers);
  CHECK(count(w, "collective nodes") == 2 * buckets);
  CHECK(noted(w, "taken from their tensors"));
  CHECK(count(w, "dangling dependencies") == 2 * layers);
  CHECK(noted(w, "7 communication nodes are CPU calls"));
  CHECK(noted(w, "40 compute nodes without a time"));
  double bytes = 0, cpu = 0, kernels = 0, expected = 0;
  for (const Operation& op : w.graph.programs[0].operations) {
    bytes += op.bytes;
    (op.stream == 1 ? cpu : kernels) += op.seconds;
  }
  for (unsigned b = 0; b < buckets; ++b) expected += 4.0 * weights(b);
  CHECK(bytes == expected);
  CHECK(cpu == approx((layers * 30 + buckets * 12) * 1e-6));
  CHECK(kernels == approx(layers * 200e-6));
}

}  // namespace
}  // namespace weft::workload
