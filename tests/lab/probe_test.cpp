// One-way probing with real packets, some source ports of which the kernel's packet filter drops.
// No lab: a network namespace with nothing but loopback.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "base/fd.hpp"
#include "base/test_skip.hpp"
#include "base/text.hpp"
#include "run_weft.hpp"

using namespace weft;
using namespace std::chrono_literals;
using cli_test::Outcome;
using cli_test::Scratch;
using nlohmann::json;

namespace {

// A network of our own, for this thread and what it starts, until the end.
class Network {
 public:
  Network() : before_(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    if (::unshare(CLONE_NEWNET) != 0) {
      why_not_ = "no right to make a network namespace";
      return;
    }
    const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{.ifr_ifrn = {"lo"}, .ifr_ifru = {}};
    request.ifr_flags = IFF_UP;
    if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) != 0) why_not_ = "loopback does not come up";
    open_filter();
  }
  ~Network() {
    if (context_ != nullptr) free_(context_);
    if (::setns(before_.get(), CLONE_NEWNET) != 0) ::_exit(1);  // other tests would run in here
  }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const std::string& why_not() const { return why_not_; }
  bool filter(const std::string& commands) {
    return run_ != nullptr && run_(context_, commands.c_str()) == 0;
  }
  // Requests from these source ports vanish on arrival.
  void drop(const std::set<int>& ports) {
    std::string list;
    for (const int port : ports) list += fmt::format("{}{}", list.empty() ? "" : ", ", port);
    REQUIRE(
        filter("add table ip t; add chain ip t c { type filter hook input priority 0; }; "
               "add rule ip t c udp dport 8620 udp sport { " +
               list + " } drop"));
  }
  void heal() { REQUIRE(filter("delete table ip t")); }

 private:
  void open_filter() {
    void* library = ::dlopen("libnftables.so.1", RTLD_NOW);
    if (library == nullptr) {
      why_not_ = "no libnftables";
      return;
    }
    const auto make = reinterpret_cast<void* (*)(std::uint32_t)>(::dlsym(library, "nft_ctx_new"));
    free_ = reinterpret_cast<void (*)(void*)>(::dlsym(library, "nft_ctx_free"));
    run_ =
        reinterpret_cast<int (*)(void*, const char*)>(::dlsym(library, "nft_run_cmd_from_buffer"));
    context_ = make(0);
    if (!filter("add table ip t; delete table ip t")) why_not_ = "no nftables in this kernel";
  }

  Fd before_;
  std::string why_not_;
  void* context_ = nullptr;
  void (*free_)(void*) = nullptr;
  int (*run_)(void*, const char*) = nullptr;
};

bool skips_without(const Network& network) {
  if (!network.why_not().empty()) skip_test(network.why_not());
  return !network.why_not().empty();
}

struct KeyFolder : Scratch {
  KeyFolder() { write("key", "000102030405060708090a0b0c0d0e0f\n"); }
};

class Responder {
 public:
  explicit Responder(const Scratch& scratch)
      : child_(scratch.start({"respond", "127.0.0.1", "--key", "key"}, "respond")) {
    for (int i = 0; i < 500 && scratch.read("respond.err").empty(); ++i)
      std::this_thread::sleep_for(10ms);
  }
  ~Responder() {
    ::kill(child_, SIGTERM);
    cli_test::wait_for(child_);
  }
  Responder(const Responder&) = delete;
  Responder& operator=(const Responder&) = delete;

 private:
  int child_;
};

// Every fifth of the 64 source ports, which makes 13.
std::set<int> dead_ports() {
  std::set<int> out;
  for (int port = 49'152; port < 49'216; port += 5) out.insert(port);
  return out;
}

// 20 probes a second of each port, as far as the machine keeps up.
std::vector<std::string> probe(const std::string& count) {
  std::vector<std::string> out{"probe", "127.0.0.1", "--key", "key", "--one-way"};
  for (const auto& [option, value] :
       std::initializer_list<std::pair<const char*, std::string>>{{"--ports", "49152-49215"},
                                                                  {"--rate", "1280"},
                                                                  {"--count", count},
                                                                  {"--window", "1.2 s"}}) {
    out.emplace_back(option);
    out.push_back(value);
  }
  return out;
}

struct Row {
  std::uint64_t sent = 0, lost = 0, unknown = 0;
  std::string why;
};
// By window, then source port. Each window has one row of each port.
std::vector<std::map<int, Row>> rows_of(const std::string& text) {
  std::map<std::string, std::map<int, Row>> windows;
  for (const std::string_view line : split(text, '\n')) {
    if (line.empty()) continue;
    const json row = json::parse(line);
    const Row read{row["sent"], row["lost"], row.value("unknown", 0UL), row.value("why", "")};
    CHECK(windows[row["t"]].emplace(row["sport"].get<int>(), read).second);
  }
  std::vector<std::map<int, Row>> out;
  for (auto& [start, rows] : windows) {
    CHECK(rows.size() == 64);
    out.push_back(std::move(rows));
  }
  return out;
}

// An overloaded machine may leave any window unknown, but calls no live flow lost.
bool is_busy(const Row& row) { return row.why == "prober_busy" || row.why == "not_sent"; }

std::size_t windows_in(const Scratch& scratch, const std::string& name) {
  const std::string text = scratch.read(name);
  return static_cast<std::size_t>(std::ranges::count(text, '\n')) / 64;
}

TEST_CASE("one-way: 13 of 64 source ports that a filter drops are lost, and no row is left out") {
  Network network;
  if (skips_without(network)) return;
  const KeyFolder scratch;
  const Responder responder(scratch);
  network.drop(dead_ports());
  auto arguments = probe("40");
  const Outcome table = scratch.run(arguments);
  CHECK_MESSAGE(table.status == 0, table.err);
  arguments.push_back("--json");
  const Outcome lines = scratch.run(arguments);
  CHECK_MESSAGE(lines.status == 0, lines.err);
  std::uint64_t probes = 0, told = 0;
  for (const auto& rows : rows_of(lines.out))
    for (const auto& [port, row] : rows) {
      probes += row.sent + row.unknown;
      if (is_busy(row)) continue;
      ++told;
      CHECK_MESSAGE(row.unknown == 0, row.why);
      CHECK(row.lost == (dead_ports().contains(port) ? row.sent : 0));
    }
  CHECK(probes == 2560);
  CHECK(told > 0);
  CHECK_MESSAGE(table.out.find("2560   520   20.31    520        0") != std::string::npos,
                table.out);
}

TEST_CASE("one-way: after a heal no live flow is charged with what dead ones lost") {
  Network network;
  if (skips_without(network)) return;
  const KeyFolder scratch;
  const Responder responder(scratch);
  network.drop(dead_ports());
  auto arguments = probe("0");
  arguments.push_back("--json");
  const int child = scratch.start(arguments, "rows");
  const auto wait_for_windows = [&](std::size_t count) {
    for (int i = 0; i < 600 && windows_in(scratch, "rows") < count; ++i)
      std::this_thread::sleep_for(100ms);
  };
  wait_for_windows(1);
  const std::size_t before = windows_in(scratch, "rows");
  network.heal();
  const std::size_t after = windows_in(scratch, "rows") + 2;  // two windows were open at most
  wait_for_windows(after + 2);
  ::kill(child, SIGTERM);
  CHECK(cli_test::wait_for(child) == 0);
  const auto windows = rows_of(scratch.read("rows"));
  REQUIRE(windows.size() >= after + 2);
  for (std::size_t window = 0; window < windows.size(); ++window)
    for (const auto& [port, row] : windows[window]) {
      if (is_busy(row)) continue;
      const bool dead = dead_ports().contains(port);
      CAPTURE(window);
      CAPTURE(port);
      CHECK_MESSAGE(row.unknown == 0, row.why);
      if (!dead || window >= after) CHECK(row.lost == 0);
      if (dead && window < before) CHECK(row.lost == row.sent);
    }
}

TEST_CASE("one-way: no responder at all is said, and nothing is called lost") {
  Network network;
  if (skips_without(network)) return;
  const KeyFolder scratch;
  auto arguments = probe("10");
  arguments.push_back("--json");
  const Outcome lines = scratch.run(arguments);
  CHECK(lines.status == 1);
  CHECK(lines.err.find("127.0.0.1 is dead or does not respond") != std::string::npos);
  std::uint64_t probes = 0;
  for (const auto& rows : rows_of(lines.out))
    for (const auto& [port, row] : rows) {
      CHECK(row.sent == 0);
      CHECK(row.lost == 0);
      probes += row.unknown;
      CHECK((row.why == "responder_silent" || is_busy(row)));
    }
  CHECK(probes == 640);
}

}  // namespace
