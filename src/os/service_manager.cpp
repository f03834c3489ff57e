#include "os/service_manager.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

#include "base/fd.hpp"

namespace weft {
inline namespace os {
namespace {

// Lines are its fields.
std::string one_line(std::string_view text) {
  std::string out(text);
  std::ranges::replace(out, '\n', ' ');
  return out;
}

}  // namespace

ServiceManager::ServiceManager() {
  const char* const name = secure_getenv("NOTIFY_SOCKET");
  const std::string_view given = name == nullptr ? "" : name;
  if (given.size() < sizeof(sockaddr_un::sun_path) && given.size() > 1) socket_ = given;
}

void ServiceManager::ready(std::string_view status) const {
  tell(fmt::format("READY=1\nSTATUS={}\n", one_line(status)));
}
void ServiceManager::stopping() const { tell("STOPPING=1\n"); }
void ServiceManager::alive() const { tell("WATCHDOG=1\n"); }

// A manager that cannot be told notices by itself.
void ServiceManager::tell(std::string_view text) const {
  if (!is_there()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::ranges::copy(socket_, address.sun_path);
  if (socket_.starts_with('@')) address.sun_path[0] = '\0';
  const Fd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  static_cast<void>(::sendto(socket.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                             reinterpret_cast<const sockaddr*>(&address), size));
}

}  // namespace os
}  // namespace weft
