// `weft agent` from log files to a service that is busy, hangs or is not there, through rotations
// and kill -9.
#include <doctest/doctest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "run_weft.hpp"

using weft::cli_test::Outcome;
using weft::cli_test::Scratch;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* agent_zone =
    "fabric: {generator: ai_zone, racks: 48, hosts_per_rack: 1, gpus_per_host: 2, spines: 2, "
    "link: 400 Gbps}\n";

// Takes records as the service does: by id, once.
class RecordService {
 public:
  explicit RecordService(int port = 0) {
    server_.Post("/v1/records", [this](const httplib::Request& request, httplib::Response& out) {
      answer(request, out);
    });
    port_ = port == 0 ? server_.bind_to_any_port("127.0.0.1")
                      : (server_.bind_to_port("127.0.0.1", port) ? port : 0);
    REQUIRE(port_ > 0);
    thread_ = std::thread([this] { server_.listen_after_bind(); });
  }
  ~RecordService() {
    is_hanging = false;
    server_.stop();
    thread_.join();
  }
  RecordService(const RecordService&) = delete;
  RecordService& operator=(const RecordService&) = delete;

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // Records by id; texts of log lines by their number of different ids.
  std::map<std::string, nlohmann::json> records() const {
    const std::lock_guard guard(mutex_);
    return records_;
  }
  std::map<std::string, int> messages() const {
    std::map<std::string, int> out;
    for (const auto& [id, record] : records())
      if (record["attrs"].contains("message")) ++out[record["attrs"]["message"]];
    return out;
  }
  // Of a later second than `stamp` names.
  bool has_heartbeat_after(const std::string& stamp) const {
    constexpr std::size_t to_seconds = 19;
    const auto all = records();
    return std::any_of(all.begin(), all.end(), [&](const auto& row) {
      const nlohmann::json& record = row.second;
      return record["attrs"].contains("heartbeat") &&
             record["t"].template get<std::string>().substr(0, to_seconds) >
                 stamp.substr(0, to_seconds);
    });
  }
  std::size_t conflicts() const {
    const std::lock_guard guard(mutex_);
    return conflicts_;
  }

  std::atomic<bool> is_busy{false}, is_hanging{false}, is_forgetful{false};

 private:
  void answer(const httplib::Request& request, httplib::Response& out) {
    while (is_hanging) std::this_thread::sleep_for(10ms);
    if (is_busy || request.get_header_value("Authorization") != "Bearer secret") {
      out.status = 429;
      out.set_header("Retry-After", "0");
      return;
    }
    const std::lock_guard guard(mutex_);
    std::size_t count = 0;
    for (std::size_t at = 0; at < request.body.size(); ++count) {
      const std::size_t end = request.body.find('\n', at);
      auto record = nlohmann::json::parse(request.body.substr(at, end - at));
      at = end + 1;
      // The same line read twice says when it was read last.
      record.erase("received");
      const auto [known, is_new] = records_.emplace(record["id"], record);
      const bool same =
          known->second["attrs"] == record["attrs"] && known->second["kind"] == record["kind"];
      if (!is_new && !same) ++conflicts_;
    }
    if (is_forgetful.exchange(false)) {  // durable, but the agent does not hear of it
      out.status = 503;
      return;
    }
    out.set_content("{\"acknowledged\": " + std::to_string(count) + "}", "application/json");
  }

  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, nlohmann::json> records_;
  std::size_t conflicts_ = 0;
};

bool wait_until(const std::function<bool()>& is_true) {
  const auto end = Clock::now() + 60s;
  while (Clock::now() < end) {
    if (is_true()) return true;
    std::this_thread::sleep_for(10ms);
  }
  return false;
}

void append(const Scratch& scratch, const std::string& text) {
  std::ofstream(scratch.path() + "/log", std::ios::app | std::ios::binary) << text;
}
std::string stamp() {
  std::string out(32, '\0');
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  out.resize(std::strftime(out.data(), out.size(), "%Y-%m-%dT%H:%M:%SZ", &parts));
  return out;
}
// A line that no catalogue knows: its record keeps the text.
std::string odd_line(int number) {
  return "<30>1 " + stamp() + " ctsw-0 somed - - - odd number " + std::to_string(number);
}

class Agent {
 public:
  Agent(const Scratch& scratch, std::vector<std::string> more) {
    std::vector<std::string> arguments{"agent", "--fabric", "z.yaml",     "--device", "ctsw:0",
                                       "--log", "log",      "--interval", "100 ms"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    process_ = scratch.start(arguments, "agent.out");
  }
  ~Agent() { end(SIGKILL); }
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  int end(int signal) {
    if (process_ == 0) return 0;
    ::kill(process_, signal);
    return weft::cli_test::wait_for(std::exchange(process_, 0));
  }

 private:
  int process_ = 0;
};

Scratch& prepare(Scratch& scratch) {
  scratch.write("z.yaml", agent_zone);
  scratch.write("token", "secret\n");
  scratch.write("log", "");
  return scratch;
}
std::vector<std::string> to(const RecordService& service) {
  return {"--to", service.url(), "--token", "token", "--spool", "spool"};
}

}  // namespace

TEST_CASE("agent: a failed line card is one detection, on standard output") {
  Scratch scratch;
  prepare(scratch);
  Agent agent(scratch, {"--json"});
  REQUIRE(wait_until([&] { return !scratch.read("agent.out").empty(); }));
  std::string lines;
  for (int port = 0; port < 36; ++port)
    lines += "<28>1 " + stamp() + " ctsw-0 bgpd - - - %ADJCHANGE: neighbor Ethernet1/" +
             std::to_string(port) + "(rtsw-" + std::to_string(port) +
             ") in vrf default Down Interface down\n" + "<28>1 " + stamp() +
             " ctsw-0 zebra - - - Intf Ethernet1/" + std::to_string(port) + "(7) has gone DOWN\n";
  append(scratch, lines);
  REQUIRE(
      wait_until([&] { return scratch.read("agent.out").find("card_fail") != std::string::npos; }));
  CHECK(agent.end(SIGTERM) == 0);
  std::map<std::string, int> kinds;
  std::istringstream out(scratch.read("agent.out"));
  for (std::string line; std::getline(out, line);) {
    const auto record = nlohmann::json::parse(line);
    ++kinds[record["kind"]];
    if (record["kind"] != "card_fail") continue;
    CHECK(record["entity"] == "ctsw:0/card:0");
    CHECK(record["attrs"]["detection"] == "line_card_down");
  }
  CHECK(kinds["card_fail"] == 1);
  CHECK(kinds["link_down"] == 0);
  CHECK(kinds["bgp_down"] == 0);
  CHECK(kinds["info"] >= 2);  // heartbeats
}

TEST_CASE("agent: every line arrives, through a service with moods, rotations and kill -9") {
  Scratch scratch;
  prepare(scratch);
  RecordService service;
  int written = 0;
  const auto write_some = [&](int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += odd_line(written++) + "\n";
    append(scratch, text);
  };
  const auto all_there = [&] {
    const auto seen = service.messages();
    for (int i = 0; i < written; ++i)
      if (std::none_of(seen.begin(), seen.end(), [&](const auto& row) {
            return row.first.ends_with("odd number " + std::to_string(i));
          }))
        return false;
    return true;
  };
  {
    Agent agent(scratch, to(service));
    REQUIRE(wait_until([&] { return !service.records().empty(); }));
    write_some(20);
    CHECK(wait_until(all_there));
    service.is_busy = true;
    write_some(20);
    std::this_thread::sleep_for(150ms);
    service.is_busy = false;
    service.is_forgetful = true;
    CHECK(wait_until(all_there));
    CHECK(::rename((scratch.path() + "/log").c_str(), (scratch.path() + "/log.1").c_str()) == 0);
    scratch.write("log", "");
    write_some(20);
    CHECK(wait_until(all_there));
  }  // kill -9
  for (int round = 0; round < 5; ++round) {
    Agent agent(scratch, to(service));
    write_some(30);
    std::this_thread::sleep_for(std::chrono::milliseconds(40 + 90 * round));
    if (round == 2) service.is_hanging = true;
    if (round == 3) service.is_hanging = false;
    if (round == 1) {
      CHECK(::rename((scratch.path() + "/log").c_str(), (scratch.path() + "/log.1").c_str()) == 0);
      scratch.write("log", "");
    }
  }
  service.is_hanging = false;
  const std::string before = stamp();
  Agent last(scratch, to(service));
  // What the killed ones sent may still come in: only the last one's heart beats from now on.
  CHECK(wait_until([&] { return all_there() && service.has_heartbeat_after(before); }));
  CHECK(last.end(SIGTERM) == 0);
  // What came twice had the id of the first time.
  CHECK(service.conflicts() == 0);
  for (const auto& [message, ids] : service.messages()) CHECK_MESSAGE(ids == 1, message);
}

TEST_CASE("agent: a full spool stops the reading of logs, and nothing is lost") {
  Scratch scratch;
  prepare(scratch);
  RecordService service;
  service.is_busy = true;
  auto options = to(service);
  options.insert(options.end(), {"--spool-size", "1 MiB"});
  Agent agent(scratch, options);
  const auto spooled = [&] {
    std::size_t bytes = 0;
    for (const std::string& file : scratch.files())
      if (file.ends_with(".lines")) bytes += scratch.read(file).size();
    return bytes;
  };
  // Its heart beats once it has opened the log, of which it takes what comes from then on.
  REQUIRE(wait_until([&] { return spooled() > 0; }));
  constexpr std::size_t count = 4000;
  std::string text;
  for (std::size_t i = 0; i < count; ++i)
    text += odd_line(static_cast<int>(i)) + " " + std::string(500, 'z') + "\n";
  append(scratch, text);
  CHECK(wait_until([&] { return spooled() > 500'000; }));
  std::this_thread::sleep_for(500ms);
  CHECK(spooled() < 1'200'000);
  service.is_busy = false;
  CHECK(wait_until([&] { return service.messages().size() == count; }));
  for (const auto& [message, ids] : service.messages()) CHECK(ids == 1);
  CHECK(service.conflicts() == 0);
}

TEST_CASE("agent: garbage in a log is told, and does no harm") {
  Scratch scratch;
  prepare(scratch);
  Agent agent(scratch, {"--json"});
  REQUIRE(wait_until([&] { return !scratch.read("agent.out").empty(); }));
  append(scratch, std::string("\x00\xff\xfe<999>\n", 9) + std::string(300'000, 'x') + "\n" +
                      odd_line(1) + "\n");
  CHECK(wait_until(
      [&] { return scratch.read("agent.out").find("odd number 1") != std::string::npos; }));
  CHECK(agent.end(SIGTERM) == 0);
}

TEST_CASE("agent: wrong input is refused") {
  Scratch scratch;
  prepare(scratch);
  scratch.write(
      "bad.yaml",
      "detections:\n  - {name: x, record: {kind: cardfail}, per: card, within: 0 s, when: "
      "{count: {kind: link_dwn}}}\n");
  const auto refuses = [&](std::vector<std::string> arguments, const std::string& what) {
    arguments.insert(arguments.begin(), "agent");
    const Outcome outcome = scratch.run(arguments);
    CHECK(outcome.status == 2);
    CHECK_MESSAGE(outcome.err.find(what) != std::string::npos, outcome.err);
  };
  const std::vector<std::string> here{"--fabric", "z.yaml", "--device", "ctsw:0"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), here.begin(), here.end());
    return more;
  };
  refuses({"--json"}, "--fabric");
  refuses({"--fabric", "z.yaml", "--json", "--device", "ctsw:9"}, "ctsw:9");
  refuses({"--fabric", "z.yaml", "--json", "--device", "nic:0"}, "neither a switch nor a host");
  refuses(with({}), "no destination");
  refuses(with({"--to", "http://example.net"}), "without TLS");
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--health", "h"}, {"--traces", "rings"}, {"--te"}}) {
    std::vector<std::string> bus = with({"--to", "nats://127.0.0.1"});
    bus.insert(bus.end(), more.begin(), more.end());
    refuses(bus, more[0] + ": NATS, which --to names, carries records alone");
  }
  refuses(with({"--json", "--interval", "1 us"}), "100 ms to 1 h");
  refuses(with({"--to", "unix:/x", "--token", "none"}), "none");
  for (const char* what : {"bad.yaml:2:30", "bad.yaml:2:60", "link_down", "card_fail"})
    refuses(with({"--json", "--rules", "bad.yaml"}), what);
  const Outcome rules = scratch.run({"agent", "--show-rules"});
  CHECK(rules.status == 0);
  CHECK(rules.out.find("line_card_down") != std::string::npos);
  refuses({"--show-rules", "--rules", "bad.yaml"}, "excludes");
}

TEST_CASE("poll: a look that no target answered has failed") {
  const Scratch scratch;
  scratch.write("zone.yaml", agent_zone);
  const Outcome polled = scratch.run({"poll", "prometheus", "--fabric", "zone.yaml", "--targets",
                                      "rtsw:0=http://127.0.0.1:1/none", "--count", "1"});
  CHECK(polled.status == 1);
  CHECK_MESSAGE(polled.err.find("no target answered") != std::string::npos, polled.err);
}
