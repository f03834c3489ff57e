#include "os/interrupt.hpp"

#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "base/check.hpp"

namespace weft {
inline namespace os {
namespace {

static_assert(std::atomic<int>::is_always_lock_free);
std::atomic<int> came{0};
std::string told;  // written before the handler stands

void remember(int number) {
  const int kept = errno;
  came = number;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, told.data(), told.size());
  errno = kept;
}

}  // namespace

Interrupt::Interrupt(std::string notice) {
  WEFT_CHECK(told.empty());
  came = 0;
  told = "\nweft: " + std::move(notice) + "\n";
  struct sigaction action = {};
  action.sa_handler = remember;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, &int_);
  sigaction(SIGTERM, &action, &term_);
}

Interrupt::~Interrupt() {
  sigaction(SIGINT, &int_, nullptr);
  sigaction(SIGTERM, &term_, nullptr);
  told.clear();
}

int Interrupt::signal() { return came; }

}  // namespace os
}  // namespace weft
