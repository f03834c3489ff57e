// Real nats-servers of the test's own, on ports of this machine, ended with the test.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/live/nats.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/test_port.hpp"
#include "base/test_skip.hpp"

namespace weft::adapt::live::testing {

// How a test itself gets in: by this name, with this.
struct NatsDoor {
  std::string host = "127.0.0.1";
  TlsFiles tls = {};
  std::string token = {};
};

// One server, or a cluster of several.
class NatsServers {
 public:
  static constexpr const char* program = "/usr/sbin/nats-server";
  // Whether it is installed; marks the test as skipped where not.
  static bool are_there() {
    if (::access(program, X_OK) == 0) return true;
    skip_test("nats-server is not installed");
    return false;
  }

  // `more`: of each server's configuration.
  explicit NatsServers(int count, std::string more = "", NatsDoor door = {})
      : more_(std::move(more)), door_(std::move(door)) {
    for (int i = 0; i < count; ++i)
      servers_.push_back({free_port(SOCK_STREAM), free_port(SOCK_STREAM), -1});
    for (std::size_t i = 0; i < servers_.size(); ++i) start(i);
    REQUIRE_MESSAGE(is_up(), read_file(folder_.file("log")).value_or(""));
  }
  ~NatsServers() {
    for (std::size_t i = 0; i < servers_.size(); ++i) kill(i);
  }
  NatsServers(const NatsServers&) = delete;
  NatsServers& operator=(const NatsServers&) = delete;

  void start(std::size_t which) {
    Server& server = servers_[which];
    std::vector<std::string> routes;
    for (const Server& other : servers_)
      routes.push_back(fmt::format("nats://127.0.0.1:{}", other.cluster_port));
    std::string text = fmt::format(
        "listen: \"127.0.0.1:{}\"\nserver_name: n{}\njetstream {{store_dir: \"{}\"}}\n{}\n",
        server.port, which, folder_.file(fmt::format("store{}", which)), more_);
    if (servers_.size() > 1)
      text += fmt::format("cluster {{name: weft, listen: \"127.0.0.1:{}\", routes: [{}]}}\n",
                          server.cluster_port, fmt::join(routes, ", "));
    const std::string config = folder_.file(fmt::format("n{}.conf", which));
    REQUIRE(write_file(config, text).has_value());
    const std::string log = folder_.file("log");
    server.process = ::fork();
    REQUIRE(server.process >= 0);
    if (server.process > 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ::dup2(out, 1);
    ::dup2(out, 2);
    ::execl(program, program, "-c", config.c_str(), nullptr);
    ::_exit(127);
  }
  void kill(std::size_t which) {
    Server& server = servers_[which];
    if (server.process <= 0) return;
    ::kill(server.process, SIGKILL);
    ::waitpid(std::exchange(server.process, -1), nullptr, 0);
  }

  // Of a server that was killed: its streams are empty and numbered from 1, as after a crash at the
  // wrong moment; what consumers have read of them is still known.
  void lose_messages(std::size_t which) const {
    namespace fs = std::filesystem;
    for (const auto& entry :
         fs::recursive_directory_iterator(folder_.file(fmt::format("store{}", which))))
      if (entry.is_directory() && entry.path().filename() == "msgs")
        for (const auto& block : fs::directory_iterator(entry)) fs::remove(block);
  }

  std::uint16_t port(std::size_t which) const { return servers_[which].port; }
  // "nats://127.0.0.1:PORT,...".
  std::string url() const {
    std::vector<std::string> out;
    for (const Server& server : servers_) out.push_back(fmt::format("127.0.0.1:{}", server.port));
    return fmt::format("nats://{}", fmt::join(out, ","));
  }

 private:
  struct Server {
    std::uint16_t port = 0, cluster_port = 0;
    pid_t process = -1;
  };

  // A cluster answers once it has a leader.
  bool is_up() const {
    using namespace std::chrono_literals;
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    NatsUrl at{.servers = {}, .is_tls = !door_.tls.ca.empty(), .subject = "weft"};
    for (const Server& server : servers_)
      at.servers.push_back({.host = door_.host, .port = server.port});
    while (std::chrono::steady_clock::now() < deadline) {
      if (const auto connection = NatsConnection::open(at, {door_.tls, door_.token}, 1s)) {
        jsAccountInfo* info = nullptr;
        const natsStatus status = js_GetAccountInfo(&info, connection->stream(), nullptr, nullptr);
        jsAccountInfo_Destroy(info);
        if (status == NATS_OK) return true;
      }
      std::this_thread::sleep_for(50ms);
    }
    return false;
  }
  std::string more_;
  NatsDoor door_;
  TestFolder folder_;
  std::vector<Server> servers_;
};

}  // namespace weft::adapt::live::testing
