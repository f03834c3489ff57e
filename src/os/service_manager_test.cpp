#include "os/service_manager.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "base/fd.hpp"
#include "base/test_folder.hpp"

using namespace weft;

namespace {

// Its socket, as systemd has it: in the file system, or "@" and a name.
Fd listen_at(const std::string& name) {
  Fd out(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  REQUIRE(::bind(out.get(), reinterpret_cast<const sockaddr*>(&address),
                 static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())) == 0);
  return out;
}

std::string heard(const Fd& socket) {
  std::array<char, 4096> bytes{};
  const auto count = ::recv(socket.get(), bytes.data(), bytes.size(), 0);
  return count < 0 ? "" : std::string(bytes.data(), static_cast<std::size_t>(count));
}

}  // namespace

TEST_CASE("a service manager hears what is said to it, as sd_notify(3) has it") {
  const TestFolder folder;
  for (const std::string& name :
       {folder.file("notify"), "@weft-test-" + std::to_string(::getpid())}) {
    const Fd socket = listen_at(name);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
    const ServiceManager manager;
    REQUIRE(manager.is_there());
    manager.ready("two\nlines");
    CHECK(heard(socket) == "READY=1\nSTATUS=two lines\n");
    manager.alive();
    CHECK(heard(socket) == "WATCHDOG=1\n");
    manager.stopping();
    CHECK(heard(socket) == "STOPPING=1\n");
  }
  // One that is gone or was never there is no trouble.
  ::setenv("NOTIFY_SOCKET", folder.file("gone").c_str(), 1);
  ServiceManager().alive();
  ::unsetenv("NOTIFY_SOCKET");
  CHECK_FALSE(ServiceManager().is_there());
}
