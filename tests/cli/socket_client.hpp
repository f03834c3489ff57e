// Talks to a `weft serve` that listens on a Unix socket.
#pragma once

#include <httplib.h>

#include <chrono>
#include <csignal>
#include <string>

namespace weft::cli_test {

inline httplib::Client socket_client(const std::string& socket) {
  std::signal(SIGPIPE, SIG_IGN);  // of a service that is killed while it is spoken to
  httplib::Client out(socket);
  out.set_address_family(AF_UNIX);
  out.set_default_headers({{"Host", "localhost"}});
  out.set_read_timeout(std::chrono::seconds(5));
  return out;
}

}  // namespace weft::cli_test
