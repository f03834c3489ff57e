// A service is backed up while lines keep coming, and restored into either database: it shows the
// same cases, repairs, audit log and snapshots, and acts on none twice.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "adapt/postgres/test_server.hpp"
#include "base/text.hpp"
#include "service_kit.hpp"

using namespace weft;
using namespace weft::operate_test;
using adapt::postgres::testing::test_server;
using nlohmann::json;

namespace {

constexpr const char* devices = R"(
snapshots:
  devices:
    - pieces: {said: [/bin/echo, "{device}"]}
)";

// A list of the API.
json items(Service& service, std::string_view what) {
  const auto answer = service.client().Get(fmt::format("/v1/{}?limit=1000", what));
  REQUIRE(answer);
  REQUIRE_MESSAGE(answer->status == 200, answer->body);
  json out = json::parse(answer->body);
  return out["items"];
}

// Within half a minute.
bool waits_until(const std::function<bool()>& done) {
  for (int i = 0; i < 3'000 && !done(); ++i) std::this_thread::sleep_for(10ms);
  return done();
}

std::map<std::string, int> stages(Service& service) {
  std::map<std::string, int> out;
  for (const json& repair : items(service, "repairs")) ++out[repair["stage"]];
  return out;
}

// What stays as it is while notices are sent.
json lasting(const json& repairs) {
  json out = json::array();
  for (const json& one : repairs) {
    json kept;
    for (const char* key : {"id", "part", "kind", "drained_at", "returned_at", "resolution",
                            "ended", "approved_by", "rollbacks", "stage", "rma"})
      kept[key] = one[key];
    for (const json& of : one["cases"]) kept["cases"].push_back(of["id"]);
    out.push_back(std::move(kept));
  }
  return out;
}

// What people and programs see of it.
struct Seen {
  json cases, repairs, snapshots, audit;
};

Seen look(Service& service) {
  return {items(service, "cases"), items(service, "repairs"), items(service, "snapshots"),
          items(service, "audit")};
}

// Test traffic over a part is lost as long as it is bad.
std::string bad_file(int k) {
  const std::string rack = fmt::format("rtsw:{}", k % 4), spine = fmt::format("ctsw:{}", k / 4 % 4);
  return fmt::format("bad-{}--{}", rack, spine);
}
void make_bad(Service& service, int k) {
  std::string text = hands;
  const std::string mark = "  check) echo";
  if (const std::size_t at = text.find(mark); at != std::string::npos)
    text.replace(at, mark.size(),
                 "  check) [ -e \"bad-$2\" ] && echo '{\"sent\": 100, \"lost\": 9}' || echo");
  service.scratch().write("hands", text);
  REQUIRE(::chmod((service.scratch().path() + "/hands").c_str(), 0755) == 0);
  service.scratch().write(bad_file(k), "");
  for (int end = 0; end < 2; ++end)
    REQUIRE(service.post(line(fmt::format("down{}-{}", k, end), cable(k, end), "link_down")));
}
void make_good(Service& service, int k) {
  REQUIRE(std::filesystem::remove(service.scratch().path() + "/" + bad_file(k)));
  for (int end = 0; end < 2; ++end)
    REQUIRE(service.post(line(fmt::format("up{}-{}", k, end), cable(k, end), "link_up")));
}

// The second part goes back to its vendor, as an operator says by the command line.
void tell_vendor_step(Service& service, const std::string& step) {
  std::string id;
  for (const json& repair : items(service, "repairs"))
    if (repair["part"] == "rtsw:1--ctsw:1") id = repair["cases"][0]["id"];
  std::vector<std::string> words{"case", id,       "--from", "unix:s",   "--do",
                                 "rma",  "--step", step,     "--reason", "no spare"};
  if (step == "ordered") words.insert(words.end(), {"--number", "RMA-4711"});
  const auto said = service.scratch().run(words);
  REQUIRE_MESSAGE(said.status == 0, said.err);
  const auto shown = service.scratch().run({"case", id, "--from", "unix:s"});
  CHECK(shown.out.find("vendor's RMA RMA-4711: ordered 2") != std::string::npos);
}

// One cable was drained, verified and returned; another one is drained and went to its vendor.
void make_history(Service& service) {
  make_bad(service, 0);
  REQUIRE(waits_until([&] { return stages(service)["repairing"] == 1; }));
  make_good(service, 0);
  REQUIRE(waits_until([&] { return stages(service)["returned"] == 1; }));
  make_bad(service, 5);
  // Between two rounds of test traffic.
  REQUIRE(waits_until([&] { return stages(service)["repairing"] == 1; }));
  std::this_thread::sleep_for(2s);
  REQUIRE(waits_until([&] { return stages(service)["repairing"] == 1; }));
  tell_vendor_step(service, "ordered");
  REQUIRE(waits_until([&] { return stages(service)["rma"] == 1; }));
  const auto metrics = service.client().Get("/metrics");
  REQUIRE(metrics);
  CHECK(metrics->body.find("weft_repairs_at_vendor 1\n") != std::string::npos);
}

// Lines about what is well: news, and nothing to do about it.
class Lines {
 public:
  explicit Lines(Service& service)
      : thread_([this, &service](const std::stop_token& stop) {
          while (!stop.stop_requested())
            if (service.post(line(fmt::format("n{}", count_ + 1), cable(10, 0), "link_up")))
              ++count_;
        }) {}
  int count() const { return count_; }

 private:
  std::atomic<int> count_ = 0;
  std::jthread thread_;
};

void check(Service& restored, const Seen& before, const std::string& effects) {
  const Seen now = look(restored);
  CHECK(now.cases == before.cases);
  CHECK(lasting(now.repairs) == lasting(before.repairs));
  REQUIRE(now.snapshots.size() == before.snapshots.size());
  CHECK(now.snapshots.size() >= 2);
  // The audit log begins as it was, then says what happened to the store.
  std::map<std::int64_t, json> audit;
  for (const json& entry : now.audit) audit[entry["seq"]] = entry;
  for (const json& entry : before.audit) CHECK(audit[entry["seq"]] == entry);
  CHECK(std::ranges::any_of(now.audit,
                            [](const json& e) { return e["action"] == "store_restored"; }));
  // Nothing is done again; what people repair is returned, once.
  std::this_thread::sleep_for(500ms);
  CHECK(restored.scratch().read("effects") == effects);
  tell_vendor_step(restored, "received");
  make_good(restored, 5);
  REQUIRE(waits_until(
      [&] { return std::ranges::count(restored.scratch().read("effects"), '\n') == 4; }));
  std::map<std::string, int> actions;
  const std::string repaired = restored.scratch().read("effects");
  for (const std::string_view text : split(repaired, '\n'))
    if (!text.empty()) ++actions[std::string(split(text, ' ').back())];
  for (const auto& [action, count] : actions) CHECK_MESSAGE(count == 1, action);
}

// Backs up `from` while it is at work and restores it into `to`.
void run(const std::string& from, const std::string& to) {
  Service service(devices);
  Scratch& scratch = service.scratch();
  service.start({"--snapshots", "shots"}, from);
  make_history(service);
  const Seen before = look(service);
  const std::string effects = scratch.read("effects");
  CHECK(std::ranges::count(effects, '\n') == 3);
  int sent_before = 0;
  {
    const Lines lines(service);
    REQUIRE(waits_until([&] { return lines.count() > 20; }));
    sent_before = lines.count();
    const auto backed_up = scratch.run({"store", "backup", "b.tar", "--store", from, "--json"});
    REQUIRE_MESSAGE(backed_up.status == 0, backed_up.err);
    CHECK(json::parse(backed_up.out)["missing"].empty());
  }
  CHECK(service.stop(SIGTERM) == 0);
  const auto restored = scratch.run(
      {"store", "restore", "b.tar", "--store", to, "--snapshots", "elsewhere", "--json"});
  REQUIRE_MESSAGE(restored.status == 0, restored.err);
  CHECK(json::parse(restored.out)["store"]["last_event"] >= 6 + sent_before);
  service.start({"--snapshots", "elsewhere"}, to);
  check(service, before, effects);
  for (const json& one : items(service, "snapshots")) {
    const std::string path = one["path"];
    CHECK(path.find("elsewhere") != std::string::npos);
    CHECK(scratch.run({"snapshot", "verify", path}).status == 0);
  }
}

}  // namespace

TEST_CASE("backed up at work and restored") { run("weft.db", "new.db"); }

TEST_CASE("backed up at work and restored into the other database" *
          doctest::test_suite("needs postgresql")) {
  const auto* const server = test_server();
  if (server == nullptr) return;
  for (const char* name : {"weft_a", "weft_b"})
    REQUIRE(server->sql(std::string("CREATE DATABASE ") + name).has_value());
  run("weft.db", server->conninfo("weft_a"));
  run(server->conninfo("weft_b"), "new.db");
}

TEST_CASE("a store is opened with its own fabric, or what that grew to, or one that was accepted") {
  Service service(devices);
  Scratch& scratch = service.scratch();
  const auto zone = [&](int racks, const char* name) {
    scratch.write("zone.yaml", fmt::format("name: {}\nfabric: {{generator: ai_zone, racks: {}, "
                                           "hosts_per_rack: 2, gpus_per_host: 1, spines: 4}}\n",
                                           name, racks));
  };
  const auto refusal = [&] {
    const auto out =
        scratch.run({"serve", "--fabric", "zone.yaml", "--config", "serve.yaml", "--store",
                     "weft.db", "--listen", "unix:s", "--snapshots", "shots"});
    CHECK(out.status == 2);
    return out.err;
  };
  zone(4, "a");
  service.start({"--snapshots", "shots"});
  make_history(service);  // one repair is over, of rtsw:0--ctsw:0, one is under way
  const Seen before = look(service);
  CHECK(service.stop(SIGTERM) == 0);
  zone(4, "b");
  CHECK(refusal().find("its name is \"a\", this one has \"b\"") != std::string::npos);
  zone(1, "a");
  CHECK(refusal().find("of 40 parts not in this one: 27 (") != std::string::npos);
  zone(5, "a");
  service.start({"--snapshots", "shots"});
  CHECK(lasting(look(service).repairs) == lasting(before.repairs));
  CHECK(service.stop(SIGTERM) == 0);
  // A repair under way cannot lose its part; one that is over can.
  zone(1, "a");
  REQUIRE(scratch.run({"store", "accept", "zone.yaml", "--store", "weft.db"}).status == 0);
  CHECK(refusal().find("this repair is under way") != std::string::npos);
  zone(5, "a");
  REQUIRE(scratch.run({"store", "accept", "zone.yaml", "--store", "weft.db"}).status == 0);
  service.start({"--snapshots", "shots"});
  tell_vendor_step(service, "received");
  make_good(service, 5);
  REQUIRE(waits_until([&] { return stages(service)["returned"] == 2; }));
  CHECK(service.stop(SIGTERM) == 0);
  zone(1, "a");
  const auto accepted =
      scratch.run({"store", "accept", "zone.yaml", "--store", "weft.db", "--json"});
  CHECK(accepted.out == "{\"name\":\"a\",\"parts\":13}\n");
  service.start({"--snapshots", "shots"});
  CHECK(items(service, "repairs").size() == 2);
  std::vector<std::string> noted;
  for (const json& entry : items(service, "audit"))
    if (const std::string action = entry["action"]; action.starts_with("fabric_"))
      noted.push_back(action);
  CHECK(std::ranges::count(noted, "fabric_grown") == 2);
  CHECK(std::ranges::count(noted, "fabric_changed") == 2);
}
