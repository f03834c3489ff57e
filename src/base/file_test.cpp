#include "base/file.hpp"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/rng.hpp"

using namespace weft;
namespace fs = std::filesystem;

namespace {

// A directory that lives as long as the test.
class Scratch {
 public:
  Scratch() : path_(fs::temp_directory_path() / ("weft_file_test." + std::to_string(::getpid()))) {
    fs::create_directories(path_);
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::string operator/(const char* name) const { return (path_ / name).string(); }
  std::size_t entry_count() const {
    return static_cast<std::size_t>(
        std::distance(fs::directory_iterator(path_), fs::directory_iterator()));
  }

 private:
  fs::path path_;
};

std::string noise(std::size_t size) {
  Rng rng(1);
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(rng.next() >> 56);
  return out;
}

}  // namespace

TEST_CASE("what is written is read back, byte by byte") {
  const Scratch scratch;
  const std::string content = noise(200'000);
  REQUIRE(write_file(scratch / "new/deep/file", content).has_value());
  CHECK(read_file(scratch / "new/deep/file") == content);
  REQUIRE(write_file(scratch / "new/deep/file", "").has_value());
  CHECK(read_file(scratch / "new/deep/file") == "");
}

TEST_CASE("a file is replaced whole: readers of the old one keep it, and nothing is left over") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "f", "old content").has_value());
  std::ifstream reader(scratch / "f");
  REQUIRE(write_file(scratch / "f", "new").has_value());
  std::string seen;
  std::getline(reader, seen);
  CHECK(seen == "old content");
  CHECK(read_file(scratch / "f") == "new");
  CHECK(scratch.entry_count() == 1);
}

TEST_CASE("a failed write names the path, says what to do and leaves nothing") {
  const Scratch scratch;
  REQUIRE(write_file(scratch / "f", "x").has_value());
  const auto below_a_file = write_file(scratch / "f/g", "y");
  REQUIRE_FALSE(below_a_file.has_value());
  CHECK(below_a_file.error().code == Errc::io);
  CHECK(below_a_file.error().where.file == scratch / "f/g");
  CHECK_FALSE(below_a_file.error().hint.empty());
  fs::create_directory(scratch / "d");
  const auto over_a_directory = write_file(scratch / "d", "y");
  REQUIRE_FALSE(over_a_directory.has_value());
  CHECK(over_a_directory.error().what == "is a directory");
  CHECK(scratch.entry_count() == 2);
  CHECK(read_file(scratch / "f") == "x");
}

TEST_CASE("devices are written to, not replaced; links keep pointing where they did") {
  const Scratch scratch;
  REQUIRE(write_file("/dev/null", "x").has_value());
  CHECK(fs::is_character_file("/dev/null"));
  CHECK_FALSE(write_file("/dev/full", std::string(1 << 20, 'x')).has_value());
  REQUIRE(write_file(scratch / "target", "old").has_value());
  fs::create_symlink("target", scratch / "link");
  REQUIRE(write_file(scratch / "link", "new").has_value());
  CHECK(fs::is_symlink(scratch / "link"));
  CHECK(read_file(scratch / "target") == "new");
}

TEST_CASE("files that cannot be read") {
  const Scratch scratch;
  const auto missing = read_file(scratch / "nowhere");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().text().find("No such file") != std::string::npos);
  CHECK_FALSE(missing.error().hint.empty());
  CHECK(read_file(fs::temp_directory_path().string()).error().what == "is a directory");
  REQUIRE(write_file(scratch / "f", "12345").has_value());
  CHECK(read_file(scratch / "f", 5).has_value());
  CHECK(read_file(scratch / "f", 4).error().what == "larger than 4 bytes");
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
}
