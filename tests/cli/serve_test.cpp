// `weft serve` as a whole: TLS and tokens, syslog and Alertmanager in, a signed webhook and a
// snapshot by programs out, an orderly end, a second life on the same store.
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "adapt/gnmi/test_certificates.hpp"
#include "base/timestamp.hpp"
#include "run_weft.hpp"
#include "socket_client.hpp"
#include "webhook.hpp"

using nlohmann::json;
using weft::adapt::gnmi::TestAuthority;
using weft::cli_test::Outcome;
using weft::cli_test::Scratch;
using weft::cli_test::Webhook;
using namespace std::chrono_literals;

namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* serve_zone =
    "fabric: {generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 2, spines: 4, "
    "link: 400 Gbps}\n";
constexpr std::string_view hook_key = "hush";
constexpr std::string_view vendor_key = "a key of links that nobody guesses";

// Until it is true. What comes too late for the early triage takes more than half a minute.
template <class Is>
bool eventually(Is is) {
  const auto end = Clock::now() + 60s;
  while (!is()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

std::string hex(const unsigned char* bytes, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += fmt::format("{:02x}", bytes[i]);
  return out;
}
std::string sha256(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> out{};
  unsigned size = 0;
  REQUIRE(EVP_Digest(text.data(), text.size(), out.data(), &size, EVP_sha256(), nullptr) == 1);
  return hex(out.data(), size);
}
// As docs/actuators.md tells receivers to do it.
std::string signature(std::string_view key, const std::string& text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> code{};
  unsigned size = 0;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(text.data()), text.size(), code.data(), &size);
  return hex(code.data(), size);
}
bool is_signed(const std::string& header, const std::string& body) {
  const std::size_t comma = header.find(',');
  if (!header.starts_with("t=") || header.substr(comma + 1, 3) != "v1=") return false;
  const std::string t = header.substr(2, comma - 2);
  return std::abs(std::stol(t) - std::time(nullptr)) < 300 &&
         header.substr(comma + 4) == signature(hook_key, t + "." + body);
}

std::size_t count(const Webhook& hook, const std::string& event, const std::string& case_id) {
  std::size_t out = 0;
  for (const Webhook::Notice& one : hook.notices()) {
    const json notice = json::parse(one.body);
    if (notice["event"] == event && notice["case"] == case_id) ++out;
  }
  return out;
}

// A running `weft serve` with all of it, and those who talk to it.
class Service {
 public:
  Service() {
    const weft::adapt::gnmi::TestKey server = authority_.issue("localhost");
    scratch_.write("ca.pem", authority_.certificate());
    scratch_.write("server.pem", server.certificate);
    write_secret("server.key", server.key);
    write_secret("hook.key", std::string(hook_key) + "\n");
    write_secret("vendor.key", std::string(vendor_key) + "\n");
    write_secret("tokens", fmt::format("vector ingest {}\nann read,operate {}\n", sha256("feeds-9"),
                                       sha256("ann-7")));
    scratch_.write("zone.yaml", serve_zone);
    scratch_.write("serve.yaml", fmt::format(R"(
provisional: {{wait: 100 ms, lateness: 1 s}}
policy: {{timing: {{early: 100 ms}}}}
vendor: {{key_file: {1}/vendor.key}}
notify:
  - webhook: {{url: "{0}", sign_with: {1}/hook.key}}
snapshots:
  patience: 20 s
  devices:
    - pieces:
        version: [/bin/echo, "{{device}} is {{host}}"]
        broken: [/bin/false]
        config: [/bin/echo, "snmp-server community hunter2 RO"]
)",
                                             hook_.url(), scratch_.path()));
  }
  ~Service() {
    if (process_ > 0) stop(SIGKILL);
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  void start() {
    process_ = scratch_.start(
        {"serve", "--fabric", "zone.yaml", "--config", "serve.yaml", "--store", "weft.db",
         "--listen", "127.0.0.1:0", "--syslog", "udp://127.0.0.1:0", "--cert", "server.pem",
         "--key", "server.key", "--tokens", "tokens", "--snapshots", "snapshots"},
        "out");
    const auto says = [&](const char* word) { return log().find(word) != std::string::npos; };
    CHECK(eventually([&] { return says("ready,") || says("error:"); }));
    REQUIRE_MESSAGE(says("ready,"), log());
    api_port_ = port_behind("listening at 127.0.0.1:");
    syslog_port_ = port_behind("listening at udp://127.0.0.1:");
  }
  int stop(int signal) {
    ::kill(process_, signal);
    return weft::cli_test::wait_for(std::exchange(process_, 0));
  }
  void hang_up() { ::kill(process_, SIGHUP); }
  std::string log() const { return scratch_.read("out.err"); }

  // A client that trusts the authority of that file; without one, a client without TLS.
  httplib::Client client(const std::string& token, const std::string& authority = "ca.pem") const {
    const bool is_tls = !authority.empty();
    httplib::Client out(fmt::format("{}://127.0.0.1:{}", is_tls ? "https" : "http", api_port_));
    if (is_tls) out.set_ca_cert_path(scratch_.path() + "/" + authority);
    out.set_read_timeout(20s);
    if (!token.empty()) out.set_bearer_token_auth(token);
    return out;
  }
  int status(const std::string& token, const std::string& path) const {
    const auto answer = client(token).Get(path);
    return answer ? answer->status : 0;
  }
  json items(const std::string& path) const { return get(path).at("items"); }
  json get(const std::string& path) const {
    const auto answer = client("ann-7").Get(path);
    REQUIRE(answer);
    REQUIRE_MESSAGE(answer->status == 200, answer->body);
    return json::parse(answer->body);
  }
  json post(const std::string& path, const std::string& body) const {
    const auto answer = client("feeds-9").Post(path, body, "application/json");
    REQUIRE(answer);
    REQUIRE_MESSAGE(answer->status == 200, answer->body);
    return json::parse(answer->body);
  }
  void say(const std::string& message) const {
    const int socket = ::socket(AF_INET, SOCK_DGRAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(syslog_port_));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK(::sendto(socket, message.data(), message.size(), 0,
                   reinterpret_cast<const sockaddr*>(&to),
                   sizeof to) == static_cast<ssize_t>(message.size()));
    ::close(socket);
  }
  // The case about that part, once there is one.
  std::optional<json> case_about(const std::string& entity) const {
    const json cases = items("/v1/cases");
    for (const json& one : cases)
      if (one["cause"]["entity"] == entity) return one;
    return std::nullopt;
  }

  const Scratch& scratch() const { return scratch_; }
  const Webhook& hook() const { return hook_; }
  void write_secret(const std::string& name, const std::string& text) const {
    scratch_.write(name, text);
    REQUIRE(::chmod((scratch_.path() + "/" + name).c_str(), 0600) == 0);
  }

 private:
  int port_behind(std::string_view words) const {
    const std::string text = log();
    const std::size_t at = text.find(words);
    REQUIRE_MESSAGE(at != std::string::npos, text);
    return std::stoi(text.substr(at + words.size()));
  }

  Scratch scratch_;
  Webhook hook_;
  TestAuthority authority_;
  int process_ = 0, api_port_ = 0, syslog_port_ = 0;
};

std::string now_text() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return weft::to_text(
      weft::Timestamp{std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()});
}
// As FRRouting writes it.
std::string link_down(std::string_view host, int port) {
  return fmt::format("<28>1 {} {} zebra - - - Intf Ethernet1/{}(7) has gone DOWN", now_text(), host,
                     port);
}
// What both ends of a cable say.
std::string alerts(const std::string& rack, const std::string& spine, const std::string& since) {
  json list = json::array();
  for (const auto& [instance, peer] : {std::pair(rack, spine), std::pair(spine, rack)})
    list.push_back(
        {{"status", "firing"},
         {"labels", {{"alertname", "LinkDown"}, {"instance", instance + ":9116"}, {"peer", peer}}},
         {"startsAt", since},
         {"fingerprint", instance + peer}});
  return json{{"version", "4"}, {"status", "firing"}, {"alerts", list}}.dump();
}

// A vendor has no token; the link alone gives the redacted copy, and nothing else.
void check_vendor_link(const Service& service, const std::string& id) {
  const std::string origin = "https://weft.example";
  const Outcome printed = service.scratch().run(
      {"snapshot", "link", id, "--key", "vendor.key", "--service", origin, "--days", "1"});
  REQUIRE_MESSAGE(printed.status == 0, printed.err);
  REQUIRE(printed.out.starts_with(origin + "/v1/vendor/snapshots/"));
  const std::string path =
      printed.out.substr(origin.size(), printed.out.find('\n') - origin.size());
  const auto copy = service.client("").Get(path);
  REQUIRE(copy);
  REQUIRE_MESSAGE(copy->status == 200, copy->body);
  service.scratch().write("copy.tar.gz", copy->body);
  const Outcome whole = service.scratch().run({"snapshot", "verify", "copy.tar.gz"});
  CHECK_MESSAGE(whole.status == 0, whole.err);
  CHECK(service.scratch().run({"snapshot", "show", "copy.tar.gz"}).out.contains("redacted:"));
  const auto forged = [&](std::string_view key, const std::string& of, long in_s) {
    const std::string until = std::to_string(std::time(nullptr) + in_s);
    return fmt::format("/v1/vendor/snapshots/{}?expires={}&signature={}", id, until,
                       signature(key, until + ".vendor snapshot " + of));
  };
  CHECK(service.status("", forged(vendor_key, id, 60)) == 200);
  CHECK(service.status("", forged(vendor_key, id, -60)) == 403);
  CHECK(service.status("", forged(vendor_key, id, 92L * 86'400)) == 403);
  CHECK(service.status("", forged(vendor_key, id + "0", 60)) == 403);
  CHECK(service.status("", forged(hook_key, id, 60)) == 403);
  CHECK(service.status("", "/v1/snapshots") == 401);
}

void check_snapshot(const Service& service, const std::string& case_id) {
  json snapshot;
  REQUIRE(eventually([&] {
    const json all = service.items("/v1/snapshots");
    for (const json& one : all)
      if (one["case"] == case_id) snapshot = one;
    return !snapshot.is_null();
  }));
  const std::string path = snapshot["path"];
  const Outcome whole = service.scratch().run({"snapshot", "verify", path});
  CHECK_MESSAGE(whole.status == 0, whole.err);
  CHECK(sha256(service.scratch().read(path)) == snapshot["sha256"].get<std::string>());
  const Outcome shown = service.scratch().run({"snapshot", "show", path});
  CHECK(shown.status == 0);
  CHECK(shown.out.find("version") != std::string::npos);
  CHECK_FALSE(shown.out.contains("redacted:"));
  CHECK_MESSAGE(shown.out.find("/bin/false") != std::string::npos, shown.out);
  std::string bytes = service.scratch().read(path);
  bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
  service.scratch().write("changed.tar.gz", bytes);
  CHECK(service.scratch().run({"snapshot", "verify", "changed.tar.gz"}).status != 0);
  check_vendor_link(service, snapshot["id"]);
}

}  // namespace

TEST_CASE("serve: what syslog and Alertmanager say becomes cases, and outlives the process") {
  Service service;
  service.start();
  service.say(link_down("ctsw-0", 1));
  service.say(link_down("rtsw-1", 2));
  const std::string since = now_text();
  CHECK(service.post("/v1/alertmanager", alerts("rtsw:2", "ctsw:3", since))["acknowledged"] == 2);
  std::optional<json> said, alerted;
  CHECK(eventually([&] { return (said = service.case_about("rtsw:1--ctsw:0")).has_value(); }));
  CHECK(eventually([&] { return (alerted = service.case_about("rtsw:2--ctsw:3")).has_value(); }));
  REQUIRE_MESSAGE((said && alerted), service.get("/v1/cases").dump(1) << service.log());
  const std::string id = (*said)["id"], other_id = (*alerted)["id"];
  check_snapshot(service, id);
  const json repairs = service.items("/v1/repairs");
  for (const json& repair : repairs) CHECK(repair.contains("stage"));
  const auto metrics = service.client("ann-7").Get("/metrics");
  REQUIRE(metrics);
  for (const char* line : {"\nweft_syslog_received_total{transport=\"udp\"} 2\n",
                           "\nweft_syslog_dropped_total 0\n", "\nweft_cases_open 2\n"})
    CHECK_MESSAGE(metrics->body.find(line) != std::string::npos, line);
  CHECK(eventually([&] {
    return count(service.hook(), "case_opened", id) == 1 &&
           count(service.hook(), "case_opened", other_id) == 1;
  }));
  CHECK_MESSAGE(service.stop(SIGTERM) == 0, service.log());

  service.start();
  for (const auto& before : {said, alerted}) {
    const std::optional<json> after = service.case_about((*before)["cause"]["entity"]);
    REQUIRE(after.has_value());
    CHECK((*after)["id"] == (*before)["id"]);
    CHECK((*after)["opened"] == (*before)["opened"]);
    CHECK((*after)["members"] == (*before)["members"]);
  }
  // The same alert is no news, another one is.
  CHECK(service.post("/v1/alertmanager", alerts("rtsw:2", "ctsw:3", since))["known"] == 2);
  CHECK(service.post("/v1/alertmanager", alerts("rtsw:3", "ctsw:2", now_text()))["known"] == 0);
  std::optional<json> third;
  REQUIRE(eventually([&] { return (third = service.case_about("rtsw:3--ctsw:2")).has_value(); }));
  CHECK(eventually([&] { return count(service.hook(), "case_opened", (*third)["id"]) == 1; }));
  CHECK(count(service.hook(), "case_opened", id) == 1);
  CHECK(count(service.hook(), "case_opened", other_id) == 1);
  const auto notices = service.hook().notices();
  for (const Webhook::Notice& notice : notices) CHECK(is_signed(notice.signature, notice.body));
  CHECK_FALSE(is_signed(notices.front().signature, "{}"));
  CHECK(service.stop(SIGINT) == 0);
}

TEST_CASE("serve: TLS, and tokens that decide who may do what, until others are read") {
  Service service;
  service.start();
  // Neither without TLS, nor from who does not trust the authority.
  CHECK_FALSE(service.client("ann-7", "").Get("/v1/cases"));
  service.scratch().write("other.pem", TestAuthority().certificate());
  CHECK_FALSE(service.client("ann-7", "other.pem").Get("/v1/cases"));
  CHECK(service.status("", "/healthz") == 200);
  for (const char* token : {"", "ann-8", "feeds-99"})
    CHECK(service.status(token, "/v1/cases") == 401);
  CHECK(service.status("feeds-9", "/v1/cases") == 403);
  CHECK(service.status("ann-7", "/v1/cases") == 200);
  const auto put = [&](const std::string& token) {
    const auto answer =
        service.client(token).Put("/v1/kill-switch", R"({"reason":"a drill"})", "application/json");
    return answer ? answer->status : 0;
  };
  CHECK(put("feeds-9") == 403);
  CHECK(put("ann-7") == 200);
  const auto audit = service.client("ann-7").Get("/v1/audit");
  REQUIRE(audit);
  CHECK_MESSAGE(audit->body.find(R"("actor":"ann")") != std::string::npos, audit->body);
  CHECK(audit->body.find(R"("actor":"vector")") == std::string::npos);

  service.write_secret("tokens", fmt::format("bob read {}\n", sha256("bob-1")));
  service.hang_up();
  CHECK(eventually([&] { return service.status("bob-1", "/v1/cases") == 200; }));
  CHECK(service.status("ann-7", "/v1/cases") == 401);
  service.write_secret("tokens", "bob reads nothing\n");
  service.hang_up();
  CHECK(eventually(
      [&] { return service.log().find("the old ones stay in use") != std::string::npos; }));
  CHECK(service.status("bob-1", "/v1/cases") == 200);
  CHECK(service.stop(SIGTERM) == 0);
}

// Every switch of serve_zone is a SONiC switch in service; what else it is told is written down.
constexpr const char* fake_ssh = R"sh(#!/bin/sh
for last; do :; done
case "$last" in
  *HGET*) echo up ;;
  *TSC) echo "System Mode: Normal" ;;
  *) echo "$last" >> "$(dirname "$0")/sent" ;;
esac
)sh";

TEST_CASE("serve: a dry run says what would be sent to switches, and counts nothing as drained") {
  const Scratch scratch;
  scratch.write("zone.yaml", serve_zone);
  scratch.write("ssh", fake_ssh);
  REQUIRE(::chmod((scratch.path() + "/ssh").c_str(), 0755) == 0);
  std::string csv = "device,dialect,address\n";
  for (int i = 0; i < 4; ++i) csv += fmt::format("rtsw:{0},sonic,r{0}\nctsw:{0},sonic,c{0}\n", i);
  scratch.write("switches.csv", csv);
  const std::string config = fmt::format(
      "provisional: {{wait: 100 ms, lateness: 1 s}}\n"
      "policy: {{defaults: {{forecast: none}}, timing: {{early: 100 ms, snapshot: 10 ms}}}}\n"
      "actuator: {{switches: {0}/switches.csv, ssh: {0}/ssh}}\n",
      scratch.path());
  scratch.write("serve.yaml", config);
  const std::vector<std::string> serve{"serve", "--fabric", "zone.yaml", "--config", "serve.yaml"};
  auto check = serve;
  check.emplace_back("--check");
  CHECK(scratch.run(check).status == 0);
  scratch.write("switches.csv", csv + "rtsw:9,sonic,r9\n");
  CHECK(scratch.run(check).err.contains("switches.csv:10:1: "));
  scratch.write("switches.csv", csv);

  auto words = serve;
  words.insert(words.end(), {"--store", "w.db", "--listen", "unix:" + scratch.path() + "/s"});
  const int process = scratch.start(words, "out");
  const auto client = [&] { return weft::cli_test::socket_client(scratch.path() + "/s"); };
  const auto get = [&](const char* path) {
    const auto answer = client().Get(path);
    return answer ? answer->body : std::string();
  };
  REQUIRE(eventually([&] { return !get("/readyz").empty(); }));
  std::string lines;
  for (const std::string end : {"rtsw:1->ctsw:2", "ctsw:2->rtsw:1"})
    lines += json{{"id", end},
                  {"t", now_text()},
                  {"source", "syslog"},
                  {"entity", end},
                  {"kind", "link_down"}}
                 .dump() +
             "\n";
  const auto posted = client().Post("/v1/records", lines, "application/x-ndjson");
  REQUIRE(posted);
  CHECK_MESSAGE(posted->status == 200, posted->body);
  const std::string said =
      "dry run, nothing was sent: rtsw:1 (sonic, r1): sudo -n config interface shutdown "
      "Ethernet1/4 | ctsw:2 (sonic, c2): sudo -n config interface shutdown Ethernet1/1";
  CHECK_MESSAGE(eventually([&] { return get("/v1/audit").contains(said); }), get("/v1/audit"));
  const json repairs = json::parse(get("/v1/repairs"))["items"];
  REQUIRE(repairs.size() == 1);
  CHECK(repairs[0]["stage"] == "blocked");
  CHECK(repairs[0]["reason"] == said);
  CHECK(json::parse(get("/v1/capacity"))["out"].empty());
  CHECK_FALSE(scratch.has("sent"));
  const Outcome looked = scratch.run({"drains", "--plan", "rtsw:1--ctsw:2", "--fabric", "zone.yaml",
                                      "--config", "serve.yaml", "--look"});
  CHECK_MESSAGE(looked.out.ends_with("state: in_service\n"), looked.out << looked.err);
  ::kill(process, SIGTERM);
  CHECK(weft::cli_test::wait_for(process) == 0);
}

TEST_CASE("serve --world: what a configuration sends to people and runs stays unused") {
  const Scratch scratch;
  const Webhook hook;
  scratch.write("world.yaml",
                "fabric: {generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, "
                "spines: 4}\nfaults: [{kind: link_down, link: \"rtsw:0--ctsw:0\", at: 10 s}]\n");
  scratch.write("serve.yaml",
                fmt::format("notify: [{{webhook: {{url: \"{}\"}}}}]\n"
                            "jobs: {{from: slurm, run: [/bin/touch, {}/touched], every: 1 s}}\n",
                            hook.url(), scratch.path()));
  const Outcome out = scratch.run({"serve", "--world", "world.yaml", "--config", "serve.yaml",
                                   "--for", "2 min", "--store", "w.db", "--listen", "unix:w.sock"});
  CHECK_MESSAGE(out.status == 0, out.err);
  CHECK_MESSAGE(out.out.find("1 case,") != std::string::npos, out.out);
  CHECK(out.err.find("serve.yaml were checked and are not used") != std::string::npos);
  CHECK(hook.notices().empty());
  CHECK_FALSE(scratch.has("touched"));
}
