// Two services on one PostgreSQL store, lines by three nats-servers: whatever of them dies, nothing
// that was acknowledged is lost or kept twice, and the standby takes over.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/live/test_nats.hpp"
#include "adapt/live/uplink.hpp"
#include "adapt/postgres/store.hpp"
#include "adapt/postgres/test_server.hpp"
#include "base/test_effort.hpp"
#include "service_kit.hpp"

using namespace weft;
using namespace weft::operate_test;
using adapt::live::testing::NatsServers;
using adapt::postgres::testing::test_server;
using adapt::postgres::testing::TestServer;
using nlohmann::json;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// One of several services in one folder, each with a socket of its own.
class Instance {
 public:
  Instance(const Scratch& scratch, std::string name, std::string store)
      : scratch_(scratch), name_(std::move(name)), store_(std::move(store)) {}
  ~Instance() {
    if (process_ > 0) stop(SIGKILL);
  }
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;

  void start() {
    process_ = scratch_.start({"serve", "--fabric", "zone.yaml", "--config", "serve.yaml",
                               "--store", store_, "--listen", "unix:" + socket()},
                              name_);
  }
  bool is_ready() const {
    const auto answer = cli_test::socket_client(socket()).Get("/readyz");
    return answer && answer->status == 200;
  }
  bool waits_ready(std::chrono::seconds patience) const {
    const auto end = Clock::now() + patience;
    while (!is_ready() && Clock::now() < end) std::this_thread::sleep_for(5ms);
    return is_ready();
  }
  int stop(int signal) {
    ::kill(process_, signal);
    return ended();
  }
  int ended() { return cli_test::wait_for(std::exchange(process_, 0)); }
  // What it said so far.
  std::string said() const { return scratch_.read(name_ + ".err"); }
  bool waits_until_said(std::string_view part) const {
    for (int i = 0; i < 2'000 && said().find(part) == std::string::npos; ++i)
      std::this_thread::sleep_for(10ms);
    return said().find(part) != std::string::npos;
  }

 private:
  std::string socket() const { return scratch_.path() + "/" + name_ + ".sock"; }

  const Scratch& scratch_;
  std::string name_, store_;
  int process_ = 0;
};

constexpr const char* zone =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}\n";

// How often the store has each record, by id.
std::map<std::string, int> kept(const TestServer& server) {
  const auto store = adapt::postgres::open_postgres(server.conninfo());
  REQUIRE_MESSAGE(store.has_value(), (store ? "" : store.error().text()));
  const auto events = (*store)->events(1, SIZE_MAX);
  REQUIRE(events.has_value());
  std::map<std::string, int> out;
  for (const port::StoredEvent& event : *events)
    if (event.feed == "record") ++out[json::parse(event.line)["id"]];
  return out;
}

// Some records at a time, until told to stop: ids that the bus acknowledged.
class Sender {
 public:
  Sender(const Scratch& scratch, const std::string& url)
      : uplink_(open(scratch, url)), thread_([this](const std::stop_token& stop) {
          while (!stop.stop_requested()) send();
        }) {}
  std::set<std::string> finish() {
    thread_.request_stop();
    thread_.join();
    return acknowledged_;
  }

 private:
  using Uplink = adapt::live::Uplink;
  static Uplink open(const Scratch& scratch, const std::string& url) {
    auto out = Uplink::open({.url = url, .spool = {.directory = scratch.path() + "/spool"}});
    REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
    return *std::move(out);
  }
  void send() {
    std::set<std::string> ids;
    std::vector<std::string> lines;
    for (int i = 0; i < 20; ++i, ++number_) {
      const std::string id = fmt::format("r{}", number_);
      ids.insert(id);
      lines.push_back(line(id, cable(number_ / 100, number_ % 2), "link_down"));
      lines.back().pop_back();  // its end
    }
    CHECK(uplink_.send(lines).has_value());
    const bool is_done = uplink_.flush(60s);
    CHECK_MESSAGE(is_done, uplink_.trouble());
    if (is_done) acknowledged_.merge(ids);
    std::this_thread::sleep_for(20ms);
  }

  Uplink uplink_;
  int number_ = 0;
  std::set<std::string> acknowledged_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace

TEST_CASE(
    "services, bus and database die in turn: nothing acknowledged is lost, the standby is "
    "at work within 5 s") {
  if (!NatsServers::are_there()) return;
  TestServer* const server = test_server();
  if (server == nullptr) return;
  NatsServers bus(3);
  const Scratch scratch;
  scratch.write("zone.yaml", zone);
  scratch.write("serve.yaml",
                fmt::format("nats: {{url: \"{}\", replicas: 3, size: 16 MiB}}\n", bus.url()));
  Instance first(scratch, "first", server->conninfo());
  Instance second(scratch, "second", server->conninfo());
  first.start();
  REQUIRE_MESSAGE(first.waits_ready(30s), first.said());
  // What becomes of a stream whose servers die while they make it is not the matter here.
  REQUIRE_MESSAGE(first.waits_until_said("NATS: stream WEFT made"), first.said());
  second.start();
  CHECK_MESSAGE(second.waits_until_said("standby, takes over when it can"), second.said());
  CHECK_FALSE(second.is_ready());

  Sender sender(scratch, bus.url());
  Instance *at_work = &first, *standby = &second;
  for (int round = 0; round < 3; ++round) {
    std::this_thread::sleep_for(500ms);
    bus.kill(static_cast<std::size_t>(round));
    std::this_thread::sleep_for(500ms);
    CHECK_FALSE(standby->is_ready());
    const auto start = Clock::now();
    CHECK(at_work->stop(SIGKILL) == -1);
    REQUIRE_MESSAGE(standby->waits_ready(60s), standby->said());
    const double took_s = seconds_since(start);
    MESSAGE(fmt::format("the standby is at work {:.2f} s after the service was killed", took_s));
    if (test_effort(50) >= 50) CHECK(took_s <= 5);
    std::swap(at_work, standby);
    standby->start();
    bus.start(static_cast<std::size_t>(round));
    // One that is still starting when the database goes has no store to wait for, and ends.
    CHECK_MESSAGE(standby->waits_until_said("standby, takes over when it can"), standby->said());
    std::this_thread::sleep_for(500ms);
  }
  // Whoever is the first to find the database again is at work then.
  server->stop(SIGQUIT);
  std::this_thread::sleep_for(500ms);
  server->start();
  CHECK((first.waits_ready(20s) || second.waits_ready(1s)));
  std::this_thread::sleep_for(1s);
  const std::set<std::string> acknowledged = sender.finish();
  MESSAGE(fmt::format("{} records acknowledged by the bus", acknowledged.size()));
  CHECK(acknowledged.size() >= 100);
  std::map<std::string, int> found;
  const auto has_all = [&] {
    found = kept(*server);
    return std::ranges::all_of(acknowledged,
                               [&](const std::string& id) { return found.contains(id); });
  };
  for (int i = 0; i < 300 && !has_all(); ++i) std::this_thread::sleep_for(100ms);
  for (const std::string& id : acknowledged) CHECK_MESSAGE(found.contains(id), id);
  for (const auto& [id, times] : found) CHECK_MESSAGE(times == 1, id);
  int taken_over = 0;
  for (Instance* const one : {&first, &second}) {
    const int status = one->stop(SIGTERM);
    CHECK_MESSAGE((status == 0 || status == 1), one->said());
    taken_over += status;
  }
  CHECK(taken_over <= 1);
}

TEST_CASE("a service that lost the store while another wrote ends, and does not write") {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  const Scratch scratch;
  scratch.write("zone.yaml", zone);
  scratch.write("serve.yaml", "{}\n");
  REQUIRE(server->sql("DROP SCHEMA IF EXISTS weft CASCADE").has_value());
  Instance service(scratch, "service", server->conninfo());
  service.start();
  REQUIRE_MESSAGE(service.waits_ready(30s), service.said());
  // Its connections are cut, and another is the writer for a moment.
  auto other = adapt::postgres::open_postgres(server->conninfo());
  REQUIRE(other.has_value());
  const auto cut = [&] {
    return server->sql(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN"
        " (SELECT pid FROM pg_locks WHERE locktype = 'advisory')");
  };
  REQUIRE(cut().has_value());
  for (int i = 0; i < 200; ++i) {
    if (const auto done = (*other)->commit({.audit = {{.actor = "test", .action = "wrote"}}}))
      break;
    REQUIRE(cut().has_value());
  }
  other->reset();
  CHECK(service.ended() == 1);
  CHECK_MESSAGE(service.said().find("another service took over") != std::string::npos,
                service.said());
}
