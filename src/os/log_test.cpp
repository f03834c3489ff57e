#include "os/log.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "base/file.hpp"
#include "base/test_folder.hpp"

namespace weft {
namespace {

// What a process of its own says on a standard error that is a file.
std::string said(LogLevel least, bool is_journal) {
  const TestFolder folder;
  const std::string path = folder.file("stderr");
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (std::freopen(path.c_str(), "w", stderr) == nullptr) ::_exit(1);
    struct stat file{};
    ::fstat(STDERR_FILENO, &file);
    const std::string stream =
        fmt::format("{}:{}", file.st_dev, is_journal ? file.st_ino : file.st_ino + 1);
    ::setenv("JOURNAL_STREAM", stream.c_str(), 1);
    set_log_level(least);
    log(LogLevel::info, "weft serve", "ready");
    log(LogLevel::warning, "weft serve", "two\nlines");
    log(LogLevel::error, "weft serve", "no");
    std::fflush(stderr);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  return read_file(path).value();
}

TEST_CASE("levels: what is left out, and priorities for the journal") {
  CHECK(said(LogLevel::info, false) ==
        "weft serve: ready\nweft serve: two lines\nweft serve: no\n");
  CHECK(said(LogLevel::warning, false) == "weft serve: two lines\nweft serve: no\n");
  CHECK(said(LogLevel::error, true) == "<3>weft serve: no\n");
  CHECK(said(LogLevel::info, true) ==
        "<6>weft serve: ready\n<4>weft serve: two lines\n<3>weft serve: no\n");
}

}  // namespace
}  // namespace weft
