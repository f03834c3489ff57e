// A service that is killed again and again under load: nothing that it acknowledged is lost, and
// nothing is done twice.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "adapt/sqlite/store.hpp"
#include "base/rng.hpp"
#include "base/text.hpp"
#include "run_weft.hpp"
#include "socket_client.hpp"

using namespace weft;
using namespace std::chrono_literals;
using cli_test::Scratch;
using nlohmann::json;

namespace {

// The hands: a file for each cable that is out, a line for each call that changed something.
constexpr const char* hands = R"sh(#!/bin/sh
cd "$(dirname "$0")"
case "$1" in
  drain) [ -e "out-$2" ] || { echo "drain $2 $3" >> effects; touch "out-$2"; } ;;
  undrain) [ ! -e "out-$2" ] || { echo "undrain $2 $3" >> effects; rm "out-$2"; } ;;
  state) [ -e "out-$2" ] && echo '{"state": "drained"}' || echo '{"state": "in_service"}' ;;
  check) echo '{"sent": 10000, "lost": 0}' ;;
esac
)sh";

constexpr const char* config = R"(
policy:
  defaults: {soak: 100 ms, forecast: none, verify: {packets: 10, lost: 0}}
  timing: {recheck: 100 ms, confirm_every: 50 ms, grace: 100 ms, snapshot: 10 ms}
  guards: {drains_per_hour: 1000, rack_share: 0.25, total: 1000, zone: 1000, rack: 1000, role: 1000,
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
  Service() {
    scratch_.write("zone.yaml",
                   "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, "
                   "spines: 4}\n");
    scratch_.write("hands", hands);
    std::string text = config;
    for (std::size_t at = text.find("HANDS"); at != std::string::npos; at = text.find("HANDS"))
      text.replace(at, 5, scratch_.path() + "/hands");
    scratch_.write("serve.yaml", text);
    REQUIRE(::chmod((scratch_.path() + "/hands").c_str(), 0755) == 0);
  }
  ~Service() {
    if (process_ > 0) stop(SIGKILL);
  }
  void start() {
    process_ = scratch_.start({"serve", "--fabric", "zone.yaml", "--config", "serve.yaml",
                               "--store", "weft.db", "--listen", "unix:" + socket()},
                              "out");
    for (int i = 0; i < 1000 && !client().Get("/readyz"); ++i) std::this_thread::sleep_for(5ms);
    REQUIRE_MESSAGE(client().Get("/readyz"), scratch_.read("out.err"));
  }
  int stop(int signal) {
    ::kill(process_, signal);
    return cli_test::wait_for(std::exchange(process_, 0));
  }
  // Lines acknowledged: all, or nothing that is known.
  bool post(const std::string& lines) {
    const auto answer = client().Post("/v1/records", lines, "application/x-ndjson");
    return answer && answer->status == 200;
  }
  Scratch& scratch() { return scratch_; }

 private:
  std::string socket() { return scratch_.path() + "/s"; }
  httplib::Client client() { return cli_test::socket_client(socket()); }
  Scratch scratch_;
  int process_ = 0;
};

std::string line(const std::string& id, const std::string& entity, std::string_view kind) {
  const auto now = std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return fmt::format(R"({{"id":"{}","t":"{}","source":"syslog","entity":"{}","kind":"{}"}})", id,
                     now.count(), entity, kind) +
         "\n";
}

// The k-th cable to fail, as seen from either end.
std::string cable(std::int64_t k, int end) {
  const std::string rack = fmt::format("rtsw:{}", k % 4), spine = fmt::format("ctsw:{}", k / 4 % 4);
  return end == 0 ? rack + "->" + spine : spine + "->" + rack;
}

// One cable after another fails and comes back while the service lives and dies; returns the ids
// acknowledged.
std::set<std::string> rounds(Service& service, int kills, Rng& rng) {
  constexpr auto each = 1200ms;
  const auto begin = std::chrono::steady_clock::now();
  std::set<std::string> acknowledged;
  std::uint64_t number = 0;
  for (int round = 0; round < kills; ++round) {
    service.start();
    std::atomic<bool> is_over = false;
    std::thread killer([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + rng.below(400)));
      is_over = true;
      CHECK(service.stop(SIGKILL) == -1);
    });
    for (; !is_over; ++number) {
      const std::int64_t k = (std::chrono::steady_clock::now() - begin) / each;
      const int end = static_cast<int>(number % 2);
      const std::string down = fmt::format("d{}", number), up = fmt::format("u{}", number);
      std::string lines = line(down, cable(k, end), "link_down");
      if (k >= 2) lines += line(up, cable(k - 2, end), "link_up");
      if (!service.post(lines)) continue;
      acknowledged.insert(down);
      if (k >= 2) acknowledged.insert(up);
    }
    killer.join();
  }
  return acknowledged;
}

void check(Service& service, const std::set<std::string>& acknowledged) {
  auto store = adapt::sqlite::open_sqlite(service.scratch().path() + "/weft.db");
  REQUIRE(store.has_value());
  const auto events = (*store)->events(1, SIZE_MAX);
  REQUIRE(events.has_value());
  std::map<std::string, int> kept;
  for (const port::StoredEvent& event : *events) ++kept[json::parse(event.line)["id"]];
  for (const std::string& id : acknowledged) CHECK_MESSAGE(kept.contains(id), id);
  for (const auto& [id, count] : kept) CHECK_MESSAGE(count == 1, id);
  const auto audit = (*store)->audit(1, "", SIZE_MAX);
  REQUIRE(audit.has_value());
  std::set<std::string> intents;
  for (const port::AuditEntry& entry : *audit)
    if (entry.action == "order")
      if (const json detail = json::parse(entry.detail); detail.contains("action"))
        intents.insert(detail["action"]);
  std::map<std::string, int> effects;
  const std::string done = service.scratch().read("effects");
  for (const std::string_view word : split(done, '\n'))
    if (!word.empty()) ++effects[std::string(split(word, ' ').back())];
  for (const auto& [action, count] : effects) {
    CHECK_MESSAGE(count == 1, action);                // no action twice
    CHECK_MESSAGE(intents.contains(action), action);  // and none that was not written down before
  }
  CHECK(effects.size() >= 2);
  MESSAGE(acknowledged.size() << " records acknowledged, " << kept.size() << " kept, "
                              << effects.size() << " actions done");
}

}  // namespace

TEST_CASE("killed a few times under load") {
  Rng rng(doctest::getContextOptions()->rand_seed);
  Service service;
  check(service, rounds(service, 25, rng));
}

TEST_CASE("killed a hundred times under load" * doctest::skip(true)) {
  Rng rng(doctest::getContextOptions()->rand_seed + 1);
  Service service;
  check(service, rounds(service, 100, rng));
}
