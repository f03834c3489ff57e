// A lab and what runs in it, for tests that use the built `weft` alone.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/test_skip.hpp"
#include "base/text.hpp"
#include "run_weft.hpp"

namespace weft::lab_test {

using cli_test::Outcome;
using cli_test::Scratch;

inline constexpr int rack_count = 4, spine_count = 4, host_count = 8;

//  ctsw:0 .. ctsw:3        every rack switch to every spine
//   |  X  X  X  |
//  rtsw:0 .. rtsw:3        two hosts each, 10.0.0.1 to 10.0.0.8
inline constexpr const char* fabric =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}\n";

// Empty when this machine can have a lab with FRRouting; else what the doctor says is missing.
inline std::string why_not() {
  const Outcome doctor = Scratch().run({"lab", "doctor"});
  std::string out;
  if (doctor.out.find("lab with FRRouting: yes") != std::string::npos) return out;
  for (const std::string_view line : split(doctor.out, '\n')) {
    // "frr   no   /usr/lib/frr/zebra: No such file or directory      what for"
    const std::string_view name = line.substr(0, line.find(' '));
    const std::string_view found = trim(line.substr(name.size()));
    if (!found.starts_with("no ")) continue;
    const std::string_view detail = trim(found.substr(3));
    out +=
        fmt::format("{}{}: {}", out.empty() ? "" : "; ", name, detail.substr(0, detail.find("  ")));
  }
  return out.empty() ? "weft lab doctor fails: " + doctor.err : out;
}

// Whether it cannot; then the test is skipped, with that reason.
inline bool skips_without_lab() {
  const std::string reason = why_not();
  if (!reason.empty()) skip_test("no lab on this machine: " + reason);
  return !reason.empty();
}

class TestLab {
 public:
  TestLab() : name_(fmt::format("t{}", ::getpid() % 1'000'000)) {
    scratch_.write("zone.yaml", fabric);
    scratch_.write("key", "000102030405060708090a0b0c0d0e0f\n");
  }
  ~TestLab() {
    stop(children_, SIGTERM);
    stop(responders_, SIGTERM);
    if (is_up_) lab({"down"});
  }
  TestLab(const TestLab&) = delete;
  TestLab& operator=(const TestLab&) = delete;

  Outcome lab(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "lab");
    arguments.insert(arguments.end(), {"--name", name_});
    return scratch_.run(arguments);
  }
  // With a responder on every host.
  void up(std::vector<std::string> options = {}) {
    is_up_ = true;
    options.insert(options.begin(), {"up", "zone.yaml"});
    const Outcome outcome = lab(options);
    REQUIRE_MESSAGE(outcome.status == 0, outcome.err);
    scratch_.write("addresses.csv", lab({"addresses"}).out);
    for (int host = 0; host < host_count; ++host)
      responders_.push_back(start(host, {"respond", "--key", "key"}, fmt::format("r{}", host)));
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }
  void down() {
    stop(children_, SIGTERM);
    for (const int child : responders_) ::kill(child, SIGTERM);
    for (const int child : responders_) CHECK(cli_test::wait_for(child) == 0);
    responders_.clear();
    CHECK(lab({"down"}).status == 0);
    is_up_ = false;
    CHECK(lab({"down"}).out.find("nothing to remove") != std::string::npos);
  }

  // `weft` in a host's namespace, in the background; its output goes to the file.
  int start(int host, const std::vector<std::string>& arguments, const std::string& out) const {
    std::vector<std::string> words{WEFT_BINARY};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return start_program(host, words, out);
  }
  int start_program(int host, const std::vector<std::string>& program,
                    const std::string& out) const {
    std::vector<std::string> words{"lab",    "exec", fmt::format("host:{}", host),
                                   "--name", name_,  "--"};
    words.insert(words.end(), program.begin(), program.end());
    return scratch_.start(words, out);
  }
  // Ended with the lab.
  void keep(int child) { children_.push_back(child); }

  // The same on every host at once; what they print, together.
  template <class Arguments>
  std::string on_hosts(Arguments&& arguments) const {
    std::vector<int> running;
    for (int host = 0; host < host_count; ++host)
      running.push_back(start(host, arguments(host), fmt::format("o{}", host)));
    std::string out;
    for (int host = 0; host < host_count; ++host) {
      const std::string file = fmt::format("o{}", host);
      const int status = cli_test::wait_for(running[static_cast<std::size_t>(host)]);
      CHECK_MESSAGE(status == 0, scratch_.read(file + ".err"));
      out += scratch_.read(file);
    }
    return out;
  }

  // Which ways packets take, learned hop by hop, and plan.jsonl that crosses all of them so often
  // in each window.
  void learn(const std::string& crossings, const std::string& window) const {
    const auto sweep = [](int host, bool of_answers) {
      std::vector<std::string> words{"probe",       "--sweep",
                                     "--key",       "key",
                                     "--fabric",    "zone.yaml",
                                     "--from",      fmt::format("host:{}", host),
                                     "--bind",      fmt::format("10.0.0.{}", host + 1),
                                     "--addresses", "addresses.csv",
                                     "--ports",     "49152-49167",
                                     "--count",     "2",
                                     "--rate",      "20000",
                                     "--ttl-max",   "6",
                                     "--json"};
      if (of_answers) words.emplace_back("--answers");
      for (int other = 0; other < host_count; ++other)
        if (other / 2 != host / 2) words.push_back(fmt::format("10.0.0.{}", other + 1));
      return words;
    };
    scratch_.write("ways.jsonl", on_hosts([&](int host) { return sweep(host, false); }) +
                                     on_hosts([&](int host) { return sweep(host, true); }));
    std::vector<std::string> words{"probe",     "plan",       "--fabric",    "zone.yaml",
                                   "--learned", "ways.jsonl", "--crossings", crossings,
                                   "--window",  window,       "--json"};
#ifdef WEFT_SANITIZED  // each flow is a row of evidence in each window
    words.insert(words.end(), {"--flows", "8"});
#endif
    const Outcome plan = scratch_.run(words);
    CHECK_MESSAGE(plan.status == 0, plan.err);
    scratch_.write("plan.jsonl", plan.out);
    const Outcome coverage =
        scratch_.run({"probe", "plan", "--fabric", "zone.yaml", "--learned", "ways.jsonl"});
    for (const char* tier : {"rtsw->ctsw     16", "ctsw->rtsw     16"})
      CHECK_MESSAGE(coverage.out.find(tier) != std::string::npos, coverage.out);
  }

  Scratch& scratch() { return scratch_; }
  const std::string& name() const { return name_; }

 private:
  static void stop(std::vector<int>& children, int signal) {
    for (const int child : children) ::kill(child, signal);
    for (const int child : children) cli_test::wait_for(child);
    children.clear();
  }

  Scratch scratch_;
  std::string name_;
  bool is_up_ = false;
  std::vector<int> responders_, children_;
};

}  // namespace weft::lab_test
