#include "os/new_file.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "base/file.hpp"
#include "base/test_folder.hpp"

using namespace weft;

TEST_CASE("a new file is there whole, or what was there stays") {
  const TestFolder folder;
  const std::string path = folder.write("x", "old");
  {
    auto file = NewFile::create(path);
    REQUIRE(file.has_value());
    REQUIRE(file->write("half").has_value());
  }
  CHECK(*read_file(path) == "old");
  {
    auto file = NewFile::create(path);
    REQUIRE(file.has_value());
    REQUIRE(file->write("ne").has_value());
    REQUIRE(file->write("w").has_value());
    CHECK(*read_file(path) == "old");
    REQUIRE(file->commit().has_value());
  }
  CHECK(*read_file(path) == "new");
  const std::filesystem::directory_iterator all(folder.path());
  CHECK(std::distance(begin(all), end(all)) == 1);
  const auto nowhere = NewFile::create(folder.file("none/x"));
  REQUIRE_FALSE(nowhere.has_value());
  CHECK(nowhere.error().where.file == folder.file("none/x"));
}
