// A PostgreSQL server of the test's own, on a Unix socket in a folder that goes away with it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/test_folder.hpp"
#include "base/test_skip.hpp"

namespace weft::adapt::postgres::testing {

// Calls `done` until it says so; false: it did not within `limit`.
template <class Done>
bool wait_for(Done done, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

class TestServer {
 public:
  // The newest installed server's programs; none: it is not installed.
  static std::optional<std::string> programs() {
    std::optional<std::string> out;
    int newest = 0;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
      const int version = static_cast<int>(strtol(entry.path().filename().c_str(), nullptr, 10));
      if (version <= newest || !std::filesystem::exists(entry.path() / "bin/initdb")) continue;
      newest = version;
      out = (entry.path() / "bin").string();
    }
    return out;
  }

  explicit TestServer(std::string programs) : programs_(std::move(programs)) {
    if (geteuid() == 0) {  // which the server refuses to be
      const passwd* user = getpwnam("postgres");
      if (user == nullptr) user = getpwnam("nobody");
      REQUIRE(user != nullptr);
      uid_ = user->pw_uid;
      gid_ = user->pw_gid;
      REQUIRE(chown(folder().c_str(), uid_, gid_) == 0);
    }
    const pid_t setup = spawn({programs_ + "/initdb", "-D", folder_.file("data"), "-A", "trust",
                               "-U", "weft", "-E", "UTF8", "--locale=C", "--no-sync"});
    int status = 0;
    REQUIRE(waitpid(setup, &status, 0) == setup);
    REQUIRE_MESSAGE(status == 0, "initdb failed");
    start();
  }
  ~TestServer() {
    if (pid_ > 0) stop(SIGQUIT);
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

  void start() {
    pid_ = spawn({programs_ + "/postgres", "-D", folder_.file("data"), "-k", folder(), "-c",
                  "listen_addresses=", "-c", "max_connections=40", "-c", "shared_buffers=16MB"});
    const auto is_up = [this] { return PQping(conninfo().c_str()) == PQPING_OK; };
    REQUIRE_MESSAGE(wait_for(is_up, std::chrono::seconds(20)), "the server does not come up");
  }
  // SIGINT: orderly. SIGQUIT: as if it had crashed.
  void stop(int signal) {
    kill(pid_, signal);
    const auto is_gone = [this] { return waitpid(pid_, nullptr, WNOHANG) == pid_; };
    if (!wait_for(is_gone, std::chrono::seconds(10))) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    pid_ = -1;
  }

  const std::string& folder() const { return folder_.path(); }
  std::string conninfo(const std::string& database = "postgres") const {
    return "host=" + folder() + " user=weft dbname=" + database;
  }
  // One statement, past the store: its first value, or none where it failed.
  std::optional<std::string> sql(const std::string& text,
                                 const std::string& database = "postgres") const {
    const std::unique_ptr<PGconn, decltype(&PQfinish)> connection(
        PQconnectdb(conninfo(database).c_str()), PQfinish);
    PQsetNoticeReceiver(connection.get(), [](void*, const PGresult*) {}, nullptr);
    const std::unique_ptr<PGresult, decltype(&PQclear)> result(
        PQexec(connection.get(), text.c_str()), PQclear);
    const ExecStatusType status = PQresultStatus(result.get());
    if (status == PGRES_COMMAND_OK) return "";
    if (status != PGRES_TUPLES_OK) return std::nullopt;
    return PQntuples(result.get()) == 0 ? "" : PQgetvalue(result.get(), 0, 0);
  }

 private:
  // As an unprivileged user; ends with this process at the latest.
  pid_t spawn(std::vector<std::string> words) const {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    std::string locale = "LC_ALL=C";
    std::string path = "PATH=/usr/bin:/bin";
    char* const environment[] = {locale.data(), path.data(), nullptr};
    const std::string log = folder_.file("log");
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child > 0) return child;
    if (uid_ != 0 && (setgroups(0, nullptr) != 0 || setgid(gid_) != 0 || setuid(uid_) != 0))
      _exit(126);
    prctl(PR_SET_PDEATHSIG, SIGQUIT);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (out < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0 || chdir(folder().c_str()) != 0) _exit(126);
    execve(argv[0], argv.data(), environment);
    _exit(127);
  }

  std::string programs_;
  TestFolder folder_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  pid_t pid_ = -1;
};

// The one server of this program; null, and the test marked as skipped, where none is installed.
inline TestServer* test_server() {
  static const auto server = []() -> std::unique_ptr<TestServer> {
    const auto programs = TestServer::programs();
    return programs ? std::make_unique<TestServer>(*programs) : nullptr;
  }();
  if (!server) skip_test("there is no PostgreSQL server under /usr/lib/postgresql");
  return server.get();
}

}  // namespace weft::adapt::postgres::testing
