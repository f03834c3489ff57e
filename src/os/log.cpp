#include "os/log.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>

namespace weft {
inline namespace os {
namespace {

std::atomic<LogLevel> least_weight = LogLevel::info;

// systemd names device and inode of the stream that it gave (systemd.exec(5)); another program may
// have put something else in its place since.
bool is_journal() {
  const char* const name = secure_getenv("JOURNAL_STREAM");
  struct stat file{};
  return name != nullptr && ::fstat(STDERR_FILENO, &file) == 0 &&
         fmt::format("{}:{}", file.st_dev, file.st_ino) == name;
}

}  // namespace

std::span<const std::string_view> names_of(LogLevel) {
  static constexpr std::array<std::string_view, 3> names{"error", "warning", "info"};
  return names;
}

void set_log_level(LogLevel least) { least_weight = least; }

void log(LogLevel level, std::string_view who, std::string_view line) {
  if (level > least_weight) return;
  static const bool is_to_journal = is_journal();
  constexpr std::array<std::string_view, 3> priorities{"<3>", "<4>", "<6>"};
  std::string text(line);
  std::ranges::replace(text, '\n', ' ');  // of the journal, each line is an entry
  fmt::print(stderr, "{}{}: {}\n", is_to_journal ? priorities[static_cast<std::size_t>(level)] : "",
             who, text);
}

}  // namespace os
}  // namespace weft
