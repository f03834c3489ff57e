#include "adapt/live/spool.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_folder.hpp"

namespace weft::adapt::live {
namespace {

namespace fs = std::filesystem;

Spool open(const SpoolOptions& options) {
  auto spool = Spool::open(options);
  REQUIRE_MESSAGE(spool.has_value(), (spool ? "" : spool.error().text()));
  return *std::move(spool);
}
std::string next(Spool& spool, std::size_t lines) {
  const auto batch = spool.next(lines, 1 << 16);
  REQUIRE(batch.has_value());
  return batch->body;
}
void append(Spool& spool, const std::vector<std::string>& lines, std::string_view mark) {
  const Status done = spool.append(lines, mark);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
}

}  // namespace

TEST_CASE("spool: what is not acknowledged is there again, with the last mark") {
  const TestFolder folder;
  {
    Spool spool = open({.directory = folder.file("spool")});
    CHECK(spool.mark().empty());
    CHECK(next(spool, 10).empty());
    append(spool, {"a", "b"}, "one");
    append(spool, {"c"}, "two");
    append(spool, {}, "three");
    CHECK(next(spool, 2) == "a\nb\n");
    CHECK(next(spool, 10) == "a\nb\nc\n");
    REQUIRE(spool.acknowledge(1).has_value());
    CHECK(next(spool, 10) == "b\nc\n");
    CHECK_FALSE(Spool::open({.directory = folder.file("spool")}).has_value());  // it is taken
  }
  Spool spool = open({.directory = folder.file("spool")});
  CHECK(spool.mark() == "three");
  CHECK(next(spool, 10) == "b\nc\n");
  REQUIRE(spool.acknowledge(2).has_value());
  CHECK(next(spool, 10).empty());
}

TEST_CASE("spool: what was not written whole is cut off") {
  const TestFolder folder;
  append(*std::make_unique<Spool>(open({.directory = folder.file("spool")})), {"a"}, "one");
  const std::string file = folder.file("spool/000000000001.lines");
  const auto whole = read_file(file);
  REQUIRE(whole.has_value());
  const std::string more = "b\nc\n#two\n";
  for (std::size_t bytes = 0; bytes <= more.size(); ++bytes) {
    REQUIRE(write_file(file, *whole + more.substr(0, bytes)).has_value());
    Spool spool = open({.directory = folder.file("spool")});
    const bool is_whole = bytes == more.size();
    CHECK(spool.mark() == (is_whole ? "two" : "one"));
    CHECK(next(spool, 10) == (is_whole ? "a\nb\nc\n" : "a\n"));
    append(spool, {"d"}, "three");
    CHECK(next(spool, 10) == (is_whole ? "a\nb\nc\nd\n" : "a\nd\n"));
  }
}

TEST_CASE("spool: full, and room again") {
  const TestFolder folder;
  Spool spool = open({.directory = folder.file("spool"), .bytes_max = 100, .segment_bytes = 20});
  std::size_t count = 0;
  while (spool.append(std::vector<std::string>{"12345678"}, "m")) ++count;
  CHECK(count == 8);  // of 12 bytes with their marks
  CHECK(spool.waiting_bytes() <= 100);
  REQUIRE(spool.acknowledge(1).has_value());
  append(spool, {"12345678"}, "m");
}

TEST_CASE("spool: many files and restarts lose nothing and keep the order") {
  const TestFolder folder;
  const SpoolOptions options{.directory = folder.file("spool"), .segment_bytes = 64};
  Rng rng(3);
  std::vector<std::string> sent;
  std::size_t known = 0;
  for (int round = 0; round < 300; ++round) {
    Spool spool = open(options);
    CHECK((round == 0 || spool.mark() == std::to_string(sent.size())));
    for (std::uint64_t i = rng.below(4); i > 0; --i) {
      std::vector<std::string> lines(rng.below(5));
      for (std::string& line : lines) sent.push_back(line = "line " + std::to_string(rng.next()));
      append(spool, lines, std::to_string(sent.size()));
    }
    append(spool, {}, std::to_string(sent.size()));
    for (std::uint64_t i = rng.below(4); i > 0; --i) {
      const auto batch = spool.next(1 + rng.below(6), 32);
      REQUIRE(batch.has_value());
      if (batch->lines == 0) continue;
      std::string expected;
      for (std::size_t k = 0; k < batch->lines; ++k) expected += sent[known + k] + "\n";
      REQUIRE(batch->body == expected);
      const std::size_t taken = 1 + rng.below(batch->lines);
      REQUIRE(spool.acknowledge(taken).has_value());
      known += taken;
    }
  }
  CHECK(known > 200);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(folder.file("spool")))
    files += entry.path().extension() == ".lines" ? 1u : 0u;
  CHECK(files < 200);  // acknowledged ones are gone
}

}  // namespace weft::adapt::live
