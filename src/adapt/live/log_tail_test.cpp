#include "adapt/live/log_tail.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/test_folder.hpp"

namespace weft::adapt::live {
namespace {

namespace fs = std::filesystem;

// A log file of its own, and what a tail says of it.
class LogBed {
 public:
  std::string path() const { return folder_.file("log"); }
  void add(const std::string& text) const { std::ofstream(path(), std::ios::app) << text; }
  void set(const std::string& text) const { std::ofstream(path(), std::ios::trunc) << text; }
  void rotate() const {
    if (fs::exists(path() + ".1")) fs::rename(path() + ".1", path() + ".2");
    fs::rename(path(), path() + ".1");
  }
  std::uint64_t generations = 0;

 private:
  TestFolder folder_;
};

// "a|b|": lines of as many reads as bring any; twice more, for a file that was replaced.
std::string read(LogTail& tail, std::size_t bytes = 1 << 20, LogPlace* last = nullptr) {
  std::string out;
  const auto take = [&](std::string_view line, const LogPlace& place) {
    out += std::string(line) + "|";
    if (last != nullptr) *last = place;
  };
  for (int idle = 0; idle < 3;) idle = tail.read(bytes, take) ? 0 : idle + 1;
  return out;
}

}  // namespace

TEST_CASE("log tail: begins at the end, then follows") {
  const LogBed bed;
  std::uint64_t generations = 7;
  bed.add("old\n");
  LogTail tail(bed.path(), {}, generations);
  CHECK(read(tail).empty());
  bed.add("a\r\n\nb\nhal");
  CHECK(read(tail) == "a|b|");
  bed.add("f\n");
  CHECK(read(tail) == "half|");
  CHECK(tail.place().generation == 8);
  CHECK(tail.place().offset == fs::file_size(bed.path()));
}

TEST_CASE("log tail: a file that comes later is read from its beginning") {
  const LogBed bed;
  std::uint64_t generations = 0;
  LogTail tail(bed.path(), {}, generations);
  CHECK(read(tail).empty());
  bed.add("a\n");
  CHECK(read(tail) == "a|");
}

TEST_CASE("log tail: rotation and truncation") {
  const LogBed bed;
  std::uint64_t generations = 0;
  bed.add("");
  LogTail tail(bed.path(), {}, generations);
  CHECK(read(tail).empty());
  bed.add("a\n");
  bed.rotate();
  CHECK(read(tail) == "a|");  // there is no other file yet
  bed.add("c\n");
  std::ofstream(bed.path() + ".1", std::ios::app) << "b\nunfinished";
  CHECK(read(tail) == "b|unfinished|c|");
  CHECK(tail.counts().replaced == 1);
  bed.set("");
  CHECK(read(tail).empty());
  bed.add("d\n");
  CHECK(read(tail) == "d|");
  CHECK(tail.counts().shortened == 1);
  CHECK(generations == 3);
}

TEST_CASE("log tail: goes on where it was, through rotations meanwhile") {
  const LogBed bed;
  std::uint64_t generations = 0;
  bed.add("");
  LogPlace place;
  {
    LogTail tail(bed.path(), {}, generations);
    read(tail);
    bed.add("a\nb\nc\n");
    CHECK(read(tail, 1 << 20, &place) == "a|b|c|");
  }
  bed.add("d\n");
  bed.rotate();
  bed.add("e\n");
  bed.rotate();
  bed.add("f\n");
  LogTail tail(bed.path(), {place}, generations);
  LogPlace last;
  // Of the file in between nobody knew.
  CHECK(read(tail, 1 << 20, &last) == "c|d|f|");
  CHECK(last.generation == place.generation + 1);
  LogTail gone(bed.path(), {{.device = 1, .inode = 1, .generation = 1, .offset = 5}}, generations);
  CHECK(read(gone) == "f|");
  CHECK(gone.counts().lost == 1);
  LogPlace beyond = last;
  beyond.offset = 1000;
  LogTail shorter(bed.path(), {beyond}, generations);
  CHECK(read(shorter) == "f|");
  CHECK(shorter.counts().shortened == 1);
}

TEST_CASE("log tail: long lines are cut, binary ones are not touched") {
  const LogBed bed;
  std::uint64_t generations = 0;
  LogTail tail(bed.path(), {}, generations);
  read(tail);
  const std::string binary("\x01\x00\xff", 3);
  bed.add(std::string(200'000, 'x') + "\n" + binary + "\n" + std::string(65'535, 'y') + "\n");
  CHECK(read(tail, 1000) ==
        std::string(65'535, 'x') + "|" + binary + "|" + std::string(65'535, 'y') + "|");
  CHECK(tail.counts().cut == 1);
  CHECK(tail.counts().lines == 3);
  fs::remove(bed.path());
  fs::create_directory(bed.path());
  LogTail folder(bed.path(), {}, generations);
  CHECK(read(folder).empty());
}

}  // namespace weft::adapt::live
