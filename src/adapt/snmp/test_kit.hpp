// For tests of this room: values, and a real snmpd on a loopback port, gone when it leaves scope.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "adapt/snmp/value.hpp"
#include "base/fd.hpp"
#include "base/test_folder.hpp"
#include "base/test_port.hpp"
#include "port/clock.hpp"

namespace weft::adapt::snmp::test {

inline Value integer(std::int64_t value) {
  return {.kind = Value::Kind::integer, .integer = value};
}
inline Value text(std::string value) {
  return {.kind = Value::Kind::text, .text = std::move(value)};
}

// The machine's own time.
class WallClock : public port::Clock {
 public:
  port::Instant now() override { return {read(CLOCK_MONOTONIC)}; }
  Timestamp wall() override { return {read(CLOCK_REALTIME)}; }

 private:
  static std::int64_t read(clockid_t id) {
    timespec t{};
    ::clock_gettime(id, &t);
    return std::int64_t{t.tv_sec} * ns_per_s + t.tv_nsec;
  }
};

// A child process; killed and reaped at the end.
class Child {
 public:
  Child(std::vector<std::string> command, const std::string& state) {
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::string persist = "SNMP_PERSISTENT_DIR=" + state,
                mibs = "MIBS=", conf = "SNMPCONFPATH=" + state;
    char* environment[] = {persist.data(), mibs.data(), conf.data(), nullptr};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    if (posix_spawn(&pid_, argv[0], &files, nullptr, argv.data(), environment) != 0) pid_ = 0;
    posix_spawn_file_actions_destroy(&files);
  }
  ~Child() { stop(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void stop() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    wait();
  }
  int wait() {
    int status = 0;
    if (pid_ != 0) ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_ = 0;
};

inline bool has_program(const char* path) { return ::access(path, X_OK) == 0; }

// snmpd with the lines given, and nothing of the system's.
class Agent {
 public:
  explicit Agent(const std::string& lines, std::uint16_t port = free_port(SOCK_DGRAM))
      : port_(port), child_(command(lines), folder_.path()) {}
  std::uint16_t port() const { return port_; }
  void stop() { child_.stop(); }

 private:
  std::vector<std::string> command(const std::string& lines) const {
    std::ofstream(folder_.file("snmpd.conf")) << lines;
    return {"/usr/sbin/snmpd",
            "-f",
            "-C",
            "-c",
            folder_.file("snmpd.conf"),
            "-r",
            "-Lf",
            folder_.file("log"),
            "-p",
            folder_.file("pid"),
            "-M",
            folder_.path(),
            "udp:127.0.0.1:" + std::to_string(port_)};
  }
  TestFolder folder_;
  std::uint16_t port_;
  Child child_;
};

}  // namespace weft::adapt::snmp::test
