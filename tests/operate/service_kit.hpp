// A service as a process: started on a scratch directory, spoken to over its socket file.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "run_weft.hpp"
#include "socket_client.hpp"

namespace weft::operate_test {

using namespace std::chrono_literals;
using cli_test::Scratch;

// The hands: a file for each cable that is out, a line for each call that changed something.
inline constexpr const char* hands = R"sh(#!/bin/sh
cd "$(dirname "$0")"
case "$1" in
  drain) [ -e "out-$2" ] || { echo "drain $2 $3" >> effects; touch "out-$2"; } ;;
  undrain) [ ! -e "out-$2" ] || { echo "undrain $2 $3" >> effects; rm "out-$2"; } ;;
  state) [ -e "out-$2" ] && echo '{"state": "drained"}' || echo '{"state": "in_service"}' ;;
  check) echo '{"sent": 10000, "lost": 0}' ;;
esac
)sh";

inline constexpr const char* config = R"(
policy:
  defaults: {soak: 100 ms, forecast: none, verify: {packets: 10, lost: 0}}
  timing: {recheck: 100 ms, confirm_every: 50 ms, grace: 100 ms, snapshot: 10 ms, hold: 0 s}
  guards: {drains_per_hour: 1000, part_drains_per_hour: 1000, rack_share: 0.25, total: 1000,
           zone: 1000, rack: 1000, role: 1000,
           offender: {repairs: 1000, within: 1 d}}
actuator:
  drain: [HANDS, drain, "{entity}", "{id}"]
  undrain: [HANDS, undrain, "{entity}", "{id}"]
  state: [HANDS, state, "{entity}"]
  check: [HANDS, check, "{entity}"]
  environment: ["PATH=/usr/bin:/bin"]
  read: {state: {json: /state}, sent: {json: /sent}, lost: {json: /lost}}
)";

class Service {
 public:
  // `more` is added to the configuration.
  explicit Service(const std::string& more = "") {
    scratch_.write("zone.yaml",
                   "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, "
                   "spines: 4}\n");
    scratch_.write("hands", hands);
    std::string text = config + more;
    for (std::size_t at = text.find("HANDS"); at != std::string::npos; at = text.find("HANDS"))
      text.replace(at, 5, scratch_.path() + "/hands");
    scratch_.write("serve.yaml", text);
    REQUIRE(::chmod((scratch_.path() + "/hands").c_str(), 0755) == 0);
  }
  ~Service() {
    if (process_ > 0) stop(SIGKILL);
  }
  void start(const std::vector<std::string>& more = {}, const std::string& store = "weft.db") {
    std::vector<std::string> words{"serve",    "--fabric",   "zone.yaml",
                                   "--config", "serve.yaml", "--store",
                                   store,      "--listen",   "unix:" + socket()};
    words.insert(words.end(), more.begin(), more.end());
    process_ = scratch_.start(words, "out");
    for (int i = 0; i < 12'000 && !client().Get("/readyz"); ++i) std::this_thread::sleep_for(5ms);
    REQUIRE_MESSAGE(client().Get("/readyz"), scratch_.read("out.err"));
  }
  int stop(int signal) {
    ::kill(process_, signal);
    return cli_test::wait_for(std::exchange(process_, 0));
  }
  // How it ended, and how long that took. One that has not ended in time is killed: status -2.
  struct End {
    int status = -2;
    std::chrono::milliseconds took{0};
  };
  End stop_within(int signal, std::chrono::milliseconds patience) {
    const auto begin = std::chrono::steady_clock::now();
    ::kill(process_, signal);
    End out;
    for (;;) {
      int status = 0;
      const int ended = ::waitpid(process_, &status, WNOHANG);
      out.took = std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now() - begin);
      if (ended == process_) {
        process_ = 0;
        out.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
        return out;
      }
      if (out.took > patience) {
        stop(SIGKILL);
        return out;
      }
      std::this_thread::sleep_for(1ms);
    }
  }
  // Lines acknowledged: all, or nothing that is known.
  bool post(const std::string& lines) {
    const auto answer = client().Post("/v1/records", lines, "application/x-ndjson");
    return answer && answer->status == 200;
  }
  Scratch& scratch() { return scratch_; }
  std::string socket() { return scratch_.path() + "/s"; }
  httplib::Client client() { return cli_test::socket_client(socket()); }

 private:
  Scratch scratch_;
  int process_ = 0;
};

inline std::string line(const std::string& id, const std::string& entity, std::string_view kind) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return fmt::format(R"({{"id":"{}","t":"{}","source":"syslog","entity":"{}","kind":"{}"}})", id,
                     now.count(), entity, kind) +
         "\n";
}

// The k-th cable to fail, as seen from either end.
inline std::string cable(std::int64_t k, int end) {
  const std::string rack = fmt::format("rtsw:{}", k % 4), spine = fmt::format("ctsw:{}", k / 4 % 4);
  return end == 0 ? rack + "->" + spine : spine + "->" + rack;
}

}  // namespace weft::operate_test
