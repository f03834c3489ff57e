// A real snmpd on a loopback port, for tests; gone when it leaves scope.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/fd.hpp"

namespace weft::adapt::snmp::test {

// A UDP port of 127.0.0.1 that was free just now.
inline std::uint16_t free_port() {
  const Fd fd(::socket(AF_INET, SOCK_DGRAM, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&at), size) != 0) return 0;
  ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft-snmp-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data()) == nullptr ? std::string() : pattern;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
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
  explicit Agent(const std::string& lines, std::uint16_t port = free_port())
      : port_(port), child_(command(lines), folder_.path()) {}
  std::uint16_t port() const { return port_; }
  void stop() { child_.stop(); }

 private:
  std::vector<std::string> command(const std::string& lines) const {
    std::ofstream(folder_.path() + "/snmpd.conf") << lines;
    return {"/usr/sbin/snmpd",
            "-f",
            "-C",
            "-c",
            folder_.path() + "/snmpd.conf",
            "-r",
            "-Lf",
            folder_.path() + "/log",
            "-p",
            folder_.path() + "/pid",
            "-M",
            folder_.path(),
            "udp:127.0.0.1:" + std::to_string(port_)};
  }
  Folder folder_;
  std::uint16_t port_;
  Child child_;
};

}  // namespace weft::adapt::snmp::test
