#include "os/process.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/test_folder.hpp"

using namespace weft;

namespace {

int exit_code_of(const Child& child) {
  int status = 0;
  REQUIRE(waitpid(child.pid(), &status, 0) == child.pid());
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

std::string read_all(int fd) {
  std::string out;
  std::array<char, 4'096> buffer{};
  for (ssize_t size = 0; (size = read(fd, buffer.data(), buffer.size())) > 0;)
    out.append(buffer.data(), static_cast<std::size_t>(size));
  return out;
}

}  // namespace

TEST_CASE("a child executes nothing before it is let go, and nothing when it is dropped") {
  const TestFolder folder;
  const std::string mark = folder.path() + "/ran";
  const ChildSpec spec{.argv = {"/usr/bin/touch", mark}, .output = 1, .errors = 2};
  {
    const auto dropped = Child::start(spec);
    REQUIRE(dropped.has_value());
    CHECK(kill(dropped->pid(), 0) == 0);
  }
  CHECK(access(mark.c_str(), F_OK) != 0);
  auto child = Child::start(spec);
  REQUIRE(child.has_value());
  CHECK(access(mark.c_str(), F_OK) != 0);
  CHECK(child->execute() == 0);
  CHECK(exit_code_of(*child) == 0);
  CHECK(access(mark.c_str(), F_OK) == 0);
}

TEST_CASE("what fails between fork and exec comes back as its errno") {
  auto missing = Child::start({.argv = {"/no/such/program"}, .output = 1, .errors = 2});
  REQUIRE(missing.has_value());
  CHECK(missing->execute() == ENOENT);
  CHECK(waitpid(missing->pid(), nullptr, 0) == -1);  // waited for already
  auto refused = Child::start(
      {.argv = {"/bin/true"}, .output = 1, .errors = 2, .prepare = [] { return EPERM; }});
  REQUIRE(refused.has_value());
  siginfo_t ended{};  // also when it has given up long before
  REQUIRE(waitid(P_PID, static_cast<id_t>(refused->pid()), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(refused->execute() == EPERM);
  auto closed = Child::start({.argv = {"/bin/true"}, .output = -1, .errors = 2});
  REQUIRE(closed.has_value());
  CHECK(closed->execute() == EBADF);
}

TEST_CASE("a program has its output, its environment and no other descriptor") {
  auto pipe = make_pipe();
  REQUIRE(pipe.has_value());
  const Fd careless(open("/dev/null", O_RDONLY));  // without close-on-exec
  auto child = Child::start({.argv = {"/bin/sh", "-c",
                                      "echo $A; for f in 3 4 5 6 7 8 9; do "
                                      "[ -e /proc/$$/fd/$f ] && echo open $f; done; exit 0"},
                             .environment = std::vector<std::string>{"A=b"},
                             .output = pipe->write.get(),
                             .errors = pipe->write.get()});
  REQUIRE(child.has_value());
  REQUIRE(child->execute() == 0);
  pipe->write.reset();
  CHECK(read_all(pipe->read.get()) == "b\n");
  CHECK(exit_code_of(*child) == 0);
}
