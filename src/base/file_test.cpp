#include "base/file.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/rng.hpp"
#include "base/test_folder.hpp"

using namespace weft;
namespace fs = std::filesystem;

namespace {

std::size_t entry_count(const TestFolder& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()));
}

std::string noise(std::size_t size) {
  Rng rng(1);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(rng.next() >> 56);
  return out;
}

}  // namespace

TEST_CASE("what is written is read back, byte by byte") {
  const TestFolder scratch;
  const std::string content = noise(200'000);
  REQUIRE(write_file(scratch.file("new/deep/file"), content).has_value());
  CHECK(read_file(scratch.file("new/deep/file")) == content);
  REQUIRE(write_file(scratch.file("new/deep/file"), "").has_value());
  CHECK(read_file(scratch.file("new/deep/file")) == "");
}

TEST_CASE("a file is replaced whole: readers of the old one keep it, and nothing is left over") {
  const TestFolder scratch;
  REQUIRE(write_file(scratch.file("f"), "old content").has_value());
  std::ifstream reader(scratch.file("f"));
  REQUIRE(write_file(scratch.file("f"), "new").has_value());
  std::string seen;
  std::getline(reader, seen);
  CHECK(seen == "old content");
  CHECK(read_file(scratch.file("f")) == "new");
  CHECK(entry_count(scratch) == 1);
}

TEST_CASE("a failed write names the path, says what to do and leaves nothing") {
  const TestFolder scratch;
  REQUIRE(write_file(scratch.file("f"), "x").has_value());
  const auto below_a_file = write_file(scratch.file("f/g"), "y");
  REQUIRE_FALSE(below_a_file.has_value());
  CHECK(below_a_file.error().code == Errc::io);
  CHECK(below_a_file.error().where.file == scratch.file("f/g"));
  CHECK_FALSE(below_a_file.error().hint.empty());
  fs::create_directory(scratch.file("d"));
  const auto over_a_directory = write_file(scratch.file("d"), "y");
  REQUIRE_FALSE(over_a_directory.has_value());
  CHECK(over_a_directory.error().what == "is a directory");
  CHECK(entry_count(scratch) == 2);
  CHECK(read_file(scratch.file("f")) == "x");
}

TEST_CASE("devices are written to, not replaced; links keep pointing where they did") {
  const TestFolder scratch;
  REQUIRE(write_file("/dev/null", "x").has_value());
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_FALSE(write_file("/dev/full", std::string(1 << 20, 'x')).has_value());
  REQUIRE(write_file(scratch.file("target"), "old").has_value());
  fs::create_symlink("target", scratch.file("link"));
  REQUIRE(write_file(scratch.file("link"), "new").has_value());
  CHECK(fs::is_symlink(scratch.file("link")));
  CHECK(read_file(scratch.file("target")) == "new");
}

TEST_CASE("files that cannot be read") {
  const TestFolder scratch;
  const auto missing = read_file(scratch.file("nowhere"));
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().text().find("No such file") != std::string::npos);
  CHECK_FALSE(missing.error().hint.empty());
  CHECK(read_file(fs::temp_directory_path().string()).error().what == "is a directory");
  REQUIRE(write_file(scratch.file("f"), "12345").has_value());
  CHECK(read_file(scratch.file("f"), 5).has_value());
  CHECK(read_file(scratch.file("f"), 4).error().what == "larger than 4 bytes");
  CHECK_FALSE(read_file("/dev/zero", 1 << 20).has_value());
}

TEST_CASE("gzip gives back what it took, and the same bytes every time") {
  for (const std::string& content : {std::string(), std::string("a"), std::string(300'000, 'x'),
                                     noise(65'535), noise(65'536), noise(200'001)}) {
    CAPTURE(content.size());
    const auto packed = gzip(content);
    REQUIRE(packed.has_value());
    CHECK(*packed == *gzip(content));
    CHECK(gunzip(*packed, "f.gz") == content);
  }
}

TEST_CASE("several members are one file") {
  CHECK(gunzip(*gzip("one ") + *gzip("") + *gzip("two"), "f.gz") == "one two");
}

TEST_CASE("damaged data is refused, wherever it is cut") {
  const std::string packed = *gzip("the quick brown fox");
  for (std::size_t size = 0; size < packed.size(); ++size) {
    const auto result = gunzip(packed.substr(0, size), "f.gz");
    CAPTURE(size);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().what.find("truncated") != std::string::npos);
    CHECK_FALSE(result.error().hint.empty());
  }
  for (std::size_t bit = 8 * (packed.size() - 8); bit < 8 * packed.size(); ++bit) {
    std::string bad = packed;  // in the check sum or the length
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    CHECK_FALSE(gunzip(bad, "f.gz").has_value());
  }
  CHECK_FALSE(gunzip(packed + "x", "f.gz").has_value());
  CHECK_FALSE(gunzip("not gzip", "f.gz").has_value());
}

TEST_CASE("a small file may not unpack into a huge one") {
  const std::string bomb = *gzip(std::string(8 << 20, '\0'));
  CHECK(bomb.size() < 20'000);
  const auto result = gunzip(bomb, "bomb.gz", 1 << 20);
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().what == "unpacks to more than 1048576 bytes");
  CHECK(gunzip(bomb, "bomb.gz", 8 << 20).has_value());
  CHECK(gunzip_size(bomb, "bomb.gz", 1 << 20) == (1 << 20) + 1);
  CHECK(gunzip_size(bomb, "bomb.gz", 8 << 20) == 8 << 20);
}

TEST_CASE("the size and the head of what is packed") {
  const std::string text = noise(200'001);
  const std::string packed = *gzip(text) + *gzip("tail");
  CHECK(gunzip_size(packed, "f.gz", 1 << 20) == 200'005);
  CHECK_FALSE(gunzip_size(packed.substr(0, packed.size() - 1), "f.gz", 1 << 20).has_value());
  CHECK_FALSE(gunzip_size("not gzip", "f.gz", 1 << 20).has_value());
  CHECK(gunzip_head(packed, "f.gz", 70'000) == text.substr(0, 70'000));
  CHECK(gunzip_head(*gzip("short"), "f.gz", 70'000) == "short");
  CHECK(gunzip_head(*gzip("") + *gzip("next"), "f.gz", 3) == "nex");
  const auto cut = gunzip_head(packed.substr(0, 1000), "f.gz", 70'000);
  REQUIRE(cut.has_value());
  CHECK(text.starts_with(*cut));
  CHECK_FALSE(gunzip_head("not gzip", "f.gz", 3).has_value());
}
