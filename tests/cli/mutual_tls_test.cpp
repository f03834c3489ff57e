// `weft send` and `weft agent` to a `weft serve` that wants to know who speaks: with the right
// certificate, and with none, a stranger's, or no trust in the service.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapt/gnmi/test_certificates.hpp"
#include "base/text.hpp"
#include "run_weft.hpp"

using weft::adapt::gnmi::TestAuthority;
using weft::adapt::gnmi::TestKey;
using weft::cli_test::Scratch;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

namespace {

constexpr const char* pair_zone =
    "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2}\n";

using Options = std::vector<std::string>;

template <class Is>
bool soon(Is is) {
  const auto end = std::chrono::steady_clock::now() + 30s;
  while (!is()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

constexpr const char* good_record =
    R"({"id":"a1","t":"2026-01-01T00:00:00Z","kind":"link_down","entity":"rtsw:0/0",)"
    R"("source":"syslog"})";

class MutualService {
 public:
  MutualService() {
    scratch_.write("zone.yaml", pair_zone);
    scratch_.write("ca.pem", authority_.certificate());
    scratch_.write("other-ca.pem", stranger_.certificate());
    put("server", authority_.issue("localhost"));
    put("agent", authority_.issue("host:0"));
    put("stranger", stranger_.issue("host:0"));
    process_ = scratch_.start(
        {"serve", "--fabric", "zone.yaml", "--store", "weft.db", "--listen", "127.0.0.1:0",
         "--cert", "server.pem", "--key", "server.key", "--client-ca", "ca.pem"},
        "out");
    const std::string mark = "listening at 127.0.0.1:";
    REQUIRE_MESSAGE(
        soon([&] { return scratch_.read("out.err").find("ready,") != std::string::npos; }),
        scratch_.read("out.err"));
    const std::string log = scratch_.read("out.err");
    const std::size_t begin = log.find(mark) + mark.size();
    const std::size_t end = log.find_first_not_of("0123456789", begin);
    port_ = weft::parse_count({log.substr(begin, end - begin), {}}).value_or(0);
  }
  ~MutualService() {
    ::kill(process_, SIGKILL);
    weft::cli_test::wait_for(process_);
  }
  MutualService(const MutualService&) = delete;
  MutualService& operator=(const MutualService&) = delete;

  const Scratch& scratch() const { return scratch_; }
  std::string url() const { return fmt::format("https://127.0.0.1:{}", port_); }
  // What `weft send` says of a record, with those options more; "" when it was acknowledged.
  std::string send(const Options& options, const std::string& line = good_record) const {
    scratch_.write("record", line + "\n");
    std::vector<std::string> command{WEFT_BINARY, "send", "--to", url(), "--linger", "2 s"};
    command.insert(command.end(), options.begin(), options.end());
    const int status = run(command);
    CHECK((status == 0) == scratch_.read("said").empty());
    return scratch_.read("said");
  }

 private:
  // With the record as its input; the exit status.
  int run(std::vector<std::string>& command) const {
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addchdir_np(&files, scratch_.path().c_str());
    posix_spawn_file_actions_addopen(&files, 0, "record", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, 1, "said", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&files, 1, 2);
    pid_t process = 0;
    const int failed = posix_spawn(&process, argv[0], &files, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&files);
    REQUIRE(failed == 0);
    return weft::cli_test::wait_for(process);
  }
  void put(const std::string& name, const TestKey& key) const {
    scratch_.write(name + ".pem", key.certificate);
    scratch_.write(name + ".key", key.key);
  }
  TestAuthority authority_, stranger_;
  Scratch scratch_;
  int process_ = 0;
  std::int64_t port_ = 0;
};

bool has(const std::string& text, std::string_view what) {
  return text.find(what) != std::string::npos;
}

TEST_CASE("send: a service with mutual TLS takes records of whom it knows, and of nobody else") {
  const MutualService service;
  CHECK(service.send({"--ca", "ca.pem", "--cert", "agent.pem", "--key", "agent.key"}) == "");
  for (const Options& wrong :
       {Options{"--ca", "ca.pem"},
        Options{"--ca", "ca.pem", "--cert", "stranger.pem", "--key", "stranger.key"}}) {
    const std::string said = service.send(wrong);
    CHECK_MESSAGE(has(said, "not all lines were acknowledged"), said);
  }
  for (const Options& wrong :
       {Options{"--cert", "agent.pem", "--key", "agent.key"},
        Options{"--ca", "other-ca.pem", "--cert", "agent.pem", "--key", "agent.key"}}) {
    const std::string said = service.send(wrong);
    CHECK_MESSAGE(has(said, "its certificate is not trusted: "), said);
  }
  for (const Options& wrong :
       {Options{"--ca", "ca.pem", "--cert", "agent.pem"},
        Options{"--ca", "ca.pem", "--cert", "agent.pem", "--key", "ca.pem"},
        Options{"--ca", "zone.yaml", "--cert", "agent.pem", "--key", "agent.key"}}) {
    const std::string said = service.send(wrong);
    CHECK_MESSAGE(!has(said, "not all lines were acknowledged"),
                  said);  // refused before anything is sent
    CHECK_MESSAGE(has(said, "weft: error: "), said);
  }
}

TEST_CASE("send: what the service will never take is put aside, and no success") {
  const MutualService service;
  const Options options{"--ca",  "ca.pem",    "--cert",  "agent.pem",
                        "--key", "agent.key", "--spool", "spool"};
  const std::string bad = R"({"id":"a2","kind":"no_such_kind"})";
  const std::string said = service.send(options, std::string(good_record) + "\n" + bad);
  CHECK_MESSAGE(has(said, "1 lines acknowledged, 1 rejected"), said);
  CHECK_MESSAGE(has(said, "spool/refused.jsonl"), said);
  CHECK(has(service.scratch().read("spool/refused.jsonl"), "no_such_kind"));
}

TEST_CASE("agent: heartbeats by mutual TLS") {
  const MutualService service;
  const auto beats = [&](const std::string& name) {
    const int agent = service.scratch().start(
        {"agent", "--fabric", "zone.yaml", "--device", "host:0", "--interval", "200 ms", "--to",
         service.url(), "--ca", "ca.pem", "--cert", name + ".pem", "--key", name + ".key",
         "--spool", name + "-spool"},
        name);
    // Once it has a spool, it listens to signals.
    CHECK(soon([&] { return fs::exists(service.scratch().path() + "/" + name + "-spool"); }));
    std::string said;
    soon([&] {
      ::kill(agent, SIGUSR1);
      std::this_thread::sleep_for(100ms);
      said = service.scratch().read(name + ".err");
      const std::size_t last = std::min(said.rfind("service: "), said.size());
      return has(said, "last error") ||
             (last < said.size() && !said.substr(last).starts_with("service: 0 lines"));
    });
    ::kill(agent, SIGTERM);
    CHECK(weft::cli_test::wait_for(agent) == 0);
    return said;
  };
  CHECK_FALSE(has(beats("agent"), "last error"));
  const std::string said = beats("stranger");
  CHECK_MESSAGE(has(said, "last error"), said);
  CHECK_MESSAGE(has(said, "service: 0 lines acknowledged"), said);
}

}  // namespace
