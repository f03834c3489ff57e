// weft trace: what is no workload, cut off or a trap is refused with exit status 2, in little
// memory whatever its size.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>

#include "base/file.hpp"
#include "run_weft.hpp"
#include "workload/trace/chakra_test_kit.hpp"

using namespace weft;
using namespace weft::workload::test;
using cli_test::memory_counts;
using cli_test::Outcome;
using cli_test::Scratch;

namespace {

constexpr std::size_t mebi = 1 << 20;
constexpr long memory_most_kib = long{64} * 1024;

void check_refused(const Scratch& scratch, const std::string& name, const std::string& text) {
  CAPTURE(name);
  const Outcome outcome = scratch.run({"trace", name});
  INFO("got: ", outcome.err.substr(0, 500));
  CHECK(outcome.status == 2);
  CHECK(outcome.out.empty());
  CHECK_MESSAGE(outcome.err.find(text) != std::string::npos, "nothing says: ", text);
  if (memory_counts) CHECK(outcome.memory_kib <= memory_most_kib);
  MESSAGE(fmt::format("{}: {} KiB", name, outcome.memory_kib));
}

// A gzip file of `head` and then 400 MB of zeros, some 400 KB long.
std::string bomb(const std::string& head) {
  std::string out = *gzip(head);
  const std::string zeros = *gzip(std::string(16 * mebi, '\0'));
  for (int i = 0; i < 25; ++i) out += zeros;
  return out;
}

// `head`, and then a hole up to 1 GB.
void write_sparse(const Scratch& scratch, const std::string& name, const std::string& head) {
  scratch.write(name, head);
  std::filesystem::resize_file(scratch.path() + "/" + name, 1'000'000'000);
}

const std::string simai_head =
    "HYBRID_TRANSFORMER model_parallel_NPU_group: 8 ep: 1 pp: 1 all_gpus: 16\n";
const std::string layer = "l -1 1000 NONE 0 1 NONE 0 1 ALLREDUCE 64 1\n";

}  // namespace

TEST_CASE("SimAI: a file that is cut off is no workload") {
  const Scratch scratch;
  scratch.write("whole", simai_head + "5\n" + layer + layer + layer + layer + layer);
  CHECK(scratch.run({"trace", "whole"}).status == 0);
  scratch.write("cut", simai_head + "5\n" + layer);
  check_refused(scratch, "cut",
                "cut:2:1: line 2 declares 5 layers, but the file ends after 1: it is truncated; "
                "copy the file again or, if these are all the layers, write 1 on line 2");
  scratch.write("half", simai_head + "5\n" + layer + layer.substr(0, 12));
  check_refused(scratch, "half", "half:4:1: 4 of 12 columns");
}

TEST_CASE("what is no workload is refused by its first 64 KiB") {
  const Scratch scratch;
  write_sparse(scratch, "zeros", "");
  check_refused(scratch, "zeros", "no known workload format starts with");
  write_sparse(scratch, "words", std::string(200'000, 'x'));
  check_refused(scratch, "words", "no known workload format starts with \"xxx");
  // A name makes no format.
  write_sparse(scratch, "named.et", "");
  check_refused(scratch, "named.et", "no known workload format starts with");
  write_sparse(scratch, "named.goal", "");
  check_refused(scratch, "named.goal", "no known workload format starts with");
}

TEST_CASE("a line of 1 GB is refused in the beginning of it") {
  const Scratch scratch;
  write_sparse(scratch, "simai", simai_head.substr(0, simai_head.size() - 1));
  check_refused(scratch, "simai", "simai:1:1: the line is longer than 16777216 bytes");
  write_sparse(scratch, "goal", "num_ranks 2\nrank 0 {\n");
  check_refused(scratch, "goal", "goal:3:1: the line is longer than 16777216 bytes");
  write_sparse(scratch, "aicb",
               "comm_type,comm_group,msg_size,stage,dst,src,additional,_elapsed_time,algbw,busbw,"
               "count\n");
  check_refused(scratch, "aicb", "aicb:2:1: the line is longer than 16777216 bytes");
  write_sparse(scratch, "json", "{\"schema\": \"1.0.2-chakra.0.0.4\", \"nodes\": [");
  check_refused(scratch, "json", "1000000000 bytes, more than 268435456");
}

TEST_CASE("compressed: 400 MB in 400 KB are refused, whatever they are called") {
  const Scratch scratch;
  const std::string zeros = bomb("");
  CHECK(zeros.size() < 500'000);
  scratch.write("bomb.gz", zeros);
  check_refused(scratch, "bomb.gz", "unpacked: no known workload format starts with");
  scratch.write("bomb.et.gz", zeros);
  check_refused(scratch, "bomb.et.gz", "unpacked: no known workload format starts with");
  const std::string trace =
      metadata() + node({.id = 1, .name = "gemm", .micros = 100}) + std::string(70'000, '\0');
  scratch.write("trace.0.et", bomb(trace));
  check_refused(scratch, "trace.0.et", "the input unpacks to more than ");
  scratch.write("traces.tgz", bomb(tar_member("t.0.et", trace)));
  check_refused(scratch, "traces.tgz",
                "a compressed file may expand to 100 times its size or 16 MiB");
  // One within the other.
  scratch.write("nested.tgz", *gzip(tar_member("t.0.et.gz", bomb(trace)) + tar_end()));
  check_refused(scratch, "nested.tgz", "the input unpacks to more than ");
}

TEST_CASE("JSON that is nested without end") {
  const Scratch scratch;
  scratch.write("deep.json", "{\"schema\": \"1.0.2-chakra.0.0.4\", \"nodes\": " +
                                 std::string(4 * mebi, '[') + std::string(4 * mebi, ']') + "}");
  check_refused(scratch, "deep.json", "nested deeper than 64 levels");
}

TEST_CASE("traces that gzip packs well are read all the same") {
  const Scratch scratch;
  std::string trace = metadata();
  for (std::uint64_t id = 1; id <= 20'000; ++id)
    trace += node({.id = id, .name = "gemm", .micros = 1});
  scratch.write("t.0.et", *gzip(trace));
  const Outcome outcome = scratch.run({"trace", "t.0.et"});
  CHECK_MESSAGE(outcome.status == 0, outcome.err);
}
