#include "adapt/lab/process.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "base/test_folder.hpp"

namespace weft::adapt::lab {
namespace {

using namespace std::chrono_literals;

ProcessSpec sleeper() {
  return {.role = "sleeper", .node = "n", .netns = {}, .argv = {"/bin/sleep", "60"}, .output = {}};
}

TEST_CASE("a process is written down, found again, and ended") {
  const TestFolder scratch;
  const std::string journal = scratch.file("processes");
  const auto started = start_process(sleeper(), journal);
  REQUIRE_MESSAGE(started.has_value(), (started ? "" : started.error().text()));
  CHECK(is_alive(started->id));
  const auto found = read_journal(journal);
  REQUIRE(found.size() == 1);
  CHECK(found.front().id.pid == started->id.pid);
  CHECK(found.front().role == "sleeper");
  CHECK(is_alive(found.front().id));
  CHECK(end_processes(found, 1s).has_value());
  CHECK(!is_alive(started->id));
  CHECK(end_processes(found, 1s).has_value());  // once more is no failure
  CHECK(!send_signal(started->id, SIGTERM).has_value());
}

TEST_CASE("a stopped process is ended too") {
  const TestFolder scratch;
  const auto started = start_process(sleeper(), scratch.file("processes"));
  REQUIRE(started.has_value());
  REQUIRE(send_signal(started->id, SIGSTOP).has_value());
  CHECK(end_processes(std::span(&*started, 1), 1s).has_value());
  CHECK(!is_alive(started->id));
}

TEST_CASE("a process that has not executed its program yet is ended too") {
  const pid_t pid = fork();
  if (pid == 0) {
    usleep(100'000);
    execl("/bin/sleep", "sleep", "60", nullptr);
    _exit(1);
  }
  const auto ticks = start_ticks_of(pid);
  REQUIRE(ticks);
  const std::string program = std::filesystem::canonical("/bin/sleep").string();
  const LabProcess starting{
      .id = {.pid = pid, .start_ticks = *ticks, .exe = program}, .role = "sleeper", .node = "n"};
  CHECK(!is_alive(starting.id));
  CHECK(end_processes(std::span(&starting, 1), 0s).has_value());
  CHECK(!is_alive(starting.id));
  int how = 0;
  const pid_t ended = waitpid(pid, &how, 0);
  CHECK((ended < 0 || WIFSIGNALED(how)));  // end_processes may have waited for it
}

TEST_CASE("another process under the same pid is left alone") {
  const TestFolder scratch;
  const auto started = start_process(sleeper(), scratch.file("processes"));
  REQUIRE(started.has_value());
  LabProcess earlier = *started;
  --earlier.id.start_ticks;
  LabProcess other = *started;
  other.id.exe = "/bin/cat";
  const std::array<LabProcess, 2> impostors{earlier, other};
  for (const LabProcess& impostor : impostors) CHECK(!is_alive(impostor.id));
  CHECK(end_processes(impostors, 100ms).has_value());
  CHECK(is_alive(started->id));
  CHECK(end_processes(std::span(&*started, 1), 1s).has_value());
}

TEST_CASE("a program that is not there is named, and no process stays") {
  const TestFolder scratch;
  ProcessSpec spec = sleeper();
  spec.argv = {"/nowhere/program"};
  const auto started = start_process(spec, scratch.file("processes"));
  REQUIRE(!started.has_value());
  CHECK(started.error().text().find("/nowhere/program: No such file") != std::string::npos);
  for (const LabProcess& process : read_journal(scratch.file("processes")))
    CHECK(!is_alive(process.id));
}

TEST_CASE("lines of a journal that a crash cut short are skipped") {
  const TestFolder scratch;
  const std::string journal = scratch.file("processes");
  CHECK(read_journal(journal).empty());
  REQUIRE(write_file(journal,
                     "{\"pid\":7,\"start\":1,\"exe\":\"/x\",\"role\":\"r\",\"node\":\"n\"}\n"
                     "{\"pid\":8}\nnonsense\n[]\n{\"pid\":\"9\"}\n{\"pid\":9,\"sta")
              .has_value());
  const auto found = read_journal(journal);
  REQUIRE(found.size() == 1);
  CHECK(found.front().id.pid == 7);
}

}  // namespace
}  // namespace weft::adapt::lab
