// A relay before the server, which loses what it is told to lose.
#pragma once

#include <doctest/doctest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/fd.hpp"

namespace weft::adapt::postgres::testing {

//   store --- .s.PGSQL.1 (proxy) --- .s.PGSQL.5432 (server)
class TestProxy {
 public:
  enum class Fault {
    none,
    lose_request,  // the next commit does not get to the server
    lose_answer,   // the next commit is carried out, and nobody hears of it
  };

  explicit TestProxy(const std::string& folder)
      : server_(folder + "/.s.PGSQL.5432"), path_(folder + "/.s.PGSQL.1") {
    listener_ = Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_un at = address(path_);
    REQUIRE(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0);
    REQUIRE(listen(listener_.get(), 16) == 0);
    thread_ = std::thread([this] { relay(); });
  }
  ~TestProxy() {
    ending_ = true;
    thread_.join();
    unlink(path_.c_str());
  }
  TestProxy(const TestProxy&) = delete;
  TestProxy& operator=(const TestProxy&) = delete;

  // Happens once, at the next commit.
  void next(Fault fault) { fault_ = fault; }
  // From the next fault on nobody gets through, until let_in().
  void shut_after_fault() { shuts_ = true; }
  void let_in() { shut_ = false; }

 private:
  struct Pair {
    Fd client, server;
  };

  static sockaddr_un address(const std::string& path) {
    sockaddr_un out{};
    out.sun_family = AF_UNIX;
    REQUIRE(path.size() < sizeof out.sun_path);
    std::memcpy(out.sun_path, path.data(), path.size());
    return out;
  }

  void relay() {
    std::vector<Pair> pairs;
    while (!ending_) {
      std::vector<pollfd> sockets{{listener_.get(), POLLIN, 0}};
      for (const Pair& pair : pairs) {
        sockets.push_back({pair.client.get(), POLLIN, 0});
        sockets.push_back({pair.server.get(), POLLIN, 0});
      }
      poll(sockets.data(), sockets.size(), 10);
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        Pair& pair = pairs[i];
        const bool asked = sockets[2 * i + 1].revents != 0;
        const bool answered = sockets[2 * i + 2].revents != 0;
        if ((asked && !carry(pair.client, pair.server, Fault::lose_request, "commit")) ||
            (answered && !carry(pair.server, pair.client, Fault::lose_answer, "COMMIT")))
          pair = {};
      }
      std::erase_if(pairs, [](const Pair& pair) { return !pair.client.valid(); });
      if (sockets[0].revents != 0) accept_one(pairs);
    }
  }
  void accept_one(std::vector<Pair>& pairs) {
    Pair pair{Fd(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)),
              Fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0))};
    const sockaddr_un at = address(server_);
    if (!shut_ &&
        connect(pair.server.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0)
      pairs.push_back(std::move(pair));
  }
  // False: the connection ends here.
  bool carry(const Fd& from, const Fd& to, Fault fault, std::string_view mark) {
    std::array<char, 65536> bytes{};
    const ssize_t size = read(from.get(), bytes.data(), bytes.size());
    if (size <= 0) return false;
    const std::string_view text(bytes.data(), static_cast<std::size_t>(size));
    if (fault_ == fault && text.find(mark) != std::string_view::npos) {
      fault_ = Fault::none;
      shut_ = shuts_.exchange(false);
      return false;
    }
    return send(to.get(), text.data(), text.size(), MSG_NOSIGNAL) == size;
  }

  std::string server_, path_;
  Fd listener_;
  std::atomic<Fault> fault_{Fault::none};
  std::atomic<bool> shuts_{false}, shut_{false}, ending_{false};
  std::thread thread_;
};

}  // namespace weft::adapt::postgres::testing
