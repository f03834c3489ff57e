// `weft zones` against services as processes: one that is well, one that dies, one behind the
// second address of its zone.
#include <doctest/doctest.h>
#include <signal.h>

#include <nlohmann/json.hpp>
#include <string>

#include "service_kit.hpp"

using namespace weft::operate_test;
using nlohmann::json;

namespace {

constexpr const char* list =
    "every: 200 ms\n"
    "timeout: 2 s\n"
    "zones:\n"
    "  - {name: one, urls: [\"unix:one.sock\"]}\n"
    "  - {name: two, urls: [\"unix:gone.sock\", \"unix:two.sock\"], console: "
    "\"https://two.example\"}\n";

int start(const Scratch& scratch, const std::string& name) {
  const int out = scratch.start({"serve", "--fabric", "zone.yaml", "--config", "serve.yaml",
                                 "--store", name + ".db", "--listen", "unix:" + name + ".sock"},
                                name);
  const std::string socket = scratch.path() + "/" + name + ".sock";
  for (int i = 0; i < 6'000 && !weft::cli_test::socket_client(socket).Get("/readyz"); ++i)
    std::this_thread::sleep_for(5ms);
  return out;
}

void stop(int process) {
  ::kill(process, SIGTERM);
  weft::cli_test::wait_for(process);
}

httplib::Client client(const Scratch& scratch, const std::string& name) {
  return weft::cli_test::socket_client(scratch.path() + "/" + name + ".sock");
}

json open_cases(const Scratch& scratch, const std::string& name) {
  const auto answer = client(scratch, name).Get("/v1/cases?state=open");
  REQUIRE(answer);
  return json::parse(answer->body)["items"];
}

// A cable of that service fails, and becomes a case.
std::string fail_cable(const Scratch& scratch, const std::string& name, int k) {
  for (int end = 0; end < 2; ++end) {
    const auto done =
        client(scratch, name)
            .Post("/v1/records", line(fmt::format("r{}", end), cable(k, end), "link_down"),
                  "application/x-ndjson");
    REQUIRE(done);
    REQUIRE(done->status == 200);
  }
  for (int i = 0; i < 6'000 && open_cases(scratch, name).empty(); ++i)
    std::this_thread::sleep_for(10ms);
  const json cases = open_cases(scratch, name);
  REQUIRE(cases.size() == 1);
  return cases[0]["id"];
}

}  // namespace

TEST_CASE("services of several zones side by side: what each says, and its last words") {
  const Scratch scratch;
  scratch.write("zone.yaml",
                "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, "
                "spines: 4}\n");
  scratch.write("serve.yaml",
                "rules: {timing: {lateness: 1 s}}\n"
                "policy: {defaults: {mode: observe, forecast: none}}\n");
  scratch.write("zones.yaml", list);
  const int one = start(scratch, "one"), two = start(scratch, "two");
  const std::string first = fail_cable(scratch, "one", 0), second = fail_cable(scratch, "two", 5);
  REQUIRE(
      client(scratch, "two")
          .Post(fmt::format("/v1/cases/{}/own", second), R"({"owner":"ann"})", "application/json"));

  auto once = scratch.run({"zones", "zones.yaml", "--json"});
  CHECK(once.status == 0);
  json found = json::parse(once.out);
  REQUIRE(found["zones"].size() == 2);
  const json &a = found["zones"][0], &b = found["zones"][1];
  CHECK(a["state"] == "ready");
  CHECK(b["state"] == "ready");
  CHECK(b["service"].get<std::string>().ends_with("two.sock"));
  CHECK(a["cases"] == 1);
  CHECK(a["latest"][0]["id"] == first);
  CHECK(a["latest"][0]["owner"] == "");
  CHECK(b["latest"][0]["id"] == second);
  CHECK(b["latest"][0]["owner"] == "ann");
  CHECK(b["latest"][0]["entity"] == open_cases(scratch, "two")[0]["cause"]["entity"]);
  CHECK(scratch.run({"zones", "zones.yaml"}).out.find("in several zones: ") != std::string::npos);

  // The same as a server, before whose eyes one dies.
  const int server = scratch.start({"zones", "zones.yaml", "--listen", "unix:zones.sock"}, "zones");
  const auto zones = [&] {
    const auto answer = client(scratch, "zones").Get("/v1/zones");
    return answer && answer->status == 200 ? json::parse(answer->body)["zones"] : json::array();
  };
  const auto waits_for = [&](std::size_t zone, std::string_view state) {
    for (int i = 0; i < 3'000; ++i, std::this_thread::sleep_for(10ms))
      if (const json all = zones(); all.size() == 2 && all[zone]["state"] == state) return true;
    return false;
  };
  CHECK(waits_for(0, "ready"));
  CHECK(waits_for(1, "ready"));
  const auto page = client(scratch, "zones").Get("/");
  REQUIRE(page);
  CHECK(page->body.find(fmt::format("https://two.example/#/case/{}", second)) != std::string::npos);
  CHECK(page->get_header_value("Content-Security-Policy").starts_with("default-src 'none'"));
  stop(one);
  CHECK(waits_for(0, "silent"));
  const json silent = zones()[0];
  CHECK(silent["cases"] == 1);  // as it was heard last
  CHECK(silent["latest"][0]["id"] == first);
  CHECK_FALSE(silent["why"].get<std::string>().empty());
  CHECK(zones()[1]["state"] == "ready");
  const auto metrics = client(scratch, "zones").Get("/metrics");
  REQUIRE(metrics);
  CHECK(metrics->body.find("weft_zone_ready{zone=\"one\"} 0\n") != std::string::npos);
  CHECK(metrics->body.find("weft_zone_cases_open{zone=\"two\"} 1\n") != std::string::npos);
  CHECK(scratch.run({"zones", "zones.yaml"}).status == 1);
  stop(server);
  stop(two);
}

TEST_CASE("a file of zones that is wrong: every error with its place") {
  const Scratch scratch;
  scratch.write("zones.yaml",
                "zones:\n"
                "  - {name: \"a b\", urls: [ftp://x]}\n"
                "  - {name: c}\n"
                "  - {name: c, urls: [\"unix:c\"], tokn: x}\n"
                "every: 1 ms\n");
  const auto result = scratch.run({"zones", "zones.yaml"});
  CHECK(result.status == 2);
  for (const char* part :
       {"zones.yaml:2:12: \"a b\" is not a zone's name", "\"ftp://x\" is not a service",
        "a zone has 1 to 8 urls", "there are two zones named \"c\"", "tokn", "every must be"})
    CHECK_MESSAGE(result.err.find(part) != std::string::npos, part, "\n", result.err);
}
