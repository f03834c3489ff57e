#include "base/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "base/text.hpp"

namespace weft::inline base {

Progress::Progress(std::string what, double total, Show show)
    : what_(std::move(what)),
      total_(total),
      active_(show == Show::automatic && ::isatty(STDERR_FILENO) == 1),
      silent_(show == Show::never),
      start_(std::chrono::steady_clock::now()),
      last_(start_) {}

Progress::~Progress() { finish(); }

void Progress::announce(std::string_view line) {
  if (!silent_) fmt::print(stderr, "weft: note: {}\n", line);
}

void Progress::update(double done) {
  if (!active_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  const double spent = std::chrono::duration<double>(now - start_).count();
  const double share = total_ > 0 ? done / total_ : 0;
  const double left = share > 0 ? spent * (1 - share) / share : 0;
  fmt::print(stderr, "\r\033[K{}: {:.0f} %, {} left", what_, share * 100, human_seconds(left));
  std::fflush(stderr);
  drawn_ = true;
}

void Progress::finish() {
  if (drawn_) fmt::print(stderr, "\r\033[K");
  active_ = drawn_ = false;
}

}  // namespace weft::base
