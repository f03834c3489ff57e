// Notices posted to servers of this test: well-behaved, slow, busy, broken; and to a real
// Alertmanager, where it is installed.
#include "adapt/live/webhook.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "adapt/live/alertmanager.hpp"
#include "adapt/live/system_clock.hpp"
#include "base/fd.hpp"
#include "base/file.hpp"
#include "base/test_folder.hpp"
#include "base/test_port.hpp"
#include "base/test_skip.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct Got {
  httplib::Headers headers;
  std::string path, body;
};

// A server that answers with a status each, the last of them for ever.
class HookServer {
 public:
  explicit HookServer(std::vector<int> statuses, std::chrono::milliseconds delay = 0ms)
      : statuses_(std::move(statuses)), delay_(delay) {
    server_.Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      std::this_thread::sleep_for(delay_);
      const std::scoped_lock lock(mutex_);
      got.push_back({request.headers, request.path, request.body});
      response.status = statuses_[std::min(got.size(), statuses_.size()) - 1];
      if (response.status == 429) response.set_header("Retry-After", "0");
      response.set_content("said so", "text/plain");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::jthread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::sleep_for(1ms);
  }
  ~HookServer() { server_.stop(); }
  HookServer(const HookServer&) = delete;
  HookServer& operator=(const HookServer&) = delete;
  std::string url() const { return fmt::format("http://127.0.0.1:{}/hook?x=1", port_); }
  std::vector<Got> got;

 private:
  std::vector<int> statuses_;
  std::chrono::milliseconds delay_;
  std::mutex mutex_;
  httplib::Server server_;
  int port_ = 0;
  std::jthread thread_;
};

port::Notice notice(std::string event = "case_opened", std::string kind = "cable",
                    std::string entity = "rtsw:1--ctsw:0") {
  return {
      .id = "n-1",
      .t = Timestamp{1'900'000'000 * ns_per_s},
      .event = std::move(event),
      .case_id = "c-1",
      .summary = "a \"cable\" is\nbad",
      .body = json{{"cause", {{"kind", kind}, {"entity", entity}}}, {"confidence", 0.9}}.dump()};
}

WebhookSettings webhook_settings(const std::string& yaml) {
  const auto config = parse_yaml(yaml, "hook.yaml");
  REQUIRE_MESSAGE(config.has_value(), (config ? "" : config.error().text()));
  auto settings = read_webhook_settings(*config);
  REQUIRE_MESSAGE(settings.has_value(), (settings ? "" : settings.error().text()));
  return *std::move(settings);
}
Status notify(WebhookSettings settings, const port::Notice& what) {
  WebhookNotifier notifier(std::move(settings), std::make_shared<SystemClock>());
  return notifier.notify(what);
}
std::string quick(const std::string& url) {
  return "url: " + url + "\ntimeout: 300 ms\nbackoff: 10 ms\npatience: 2 s\ntries: 3\n";
}

TEST_CASE("a signature is of this body, this secret and this time") {
  const Timestamp now{1'700'000'000 * ns_per_s};
  const std::string header = sign_body("key", now, "{}");
  // By `printf '1700000000.{}' | openssl dgst -sha256 -hmac key`.
  CHECK(header ==
        "t=1700000000,v1=9d713ed406bb7076d4123f0dc2c39d2df5c654ed4b0cd56b52c8b4c940bd63ae");
  CHECK(is_signed(header, "key", now, 300, "{}"));
  CHECK(is_signed(header, "key", {now.ns + 300 * ns_per_s}, 300, "{}"));
  CHECK(!is_signed(header, "key", {now.ns + 301 * ns_per_s}, 300, "{}"));
  CHECK(!is_signed(header, "kez", now, 300, "{}"));
  CHECK(!is_signed(header, "key", now, 300, "{ }"));
  for (std::size_t size = 0; size < header.size(); ++size)
    CHECK(!is_signed(header.substr(0, size), "key", now, 300, "{}"));
}

TEST_CASE("a notice arrives, signed, in the generic form and in that of others") {
  const TestFolder scratch;
  const std::string key = scratch.write("sign", "hush\n"),
                    token = scratch.write("token", "tok-9\n");
  HookServer server({200});
  const std::string yaml = quick(server.url()) + "sign_with: " + key + "\nsecrets: {pd: " + token +
                           "}\nheaders: {Authorization: \"Bearer {secret:pd}\"}\n";
  REQUIRE(notify(webhook_settings(yaml), notice()).has_value());
  REQUIRE(server.got.size() == 1);
  const Got& got = server.got[0];
  const auto header = [&](const char* name) { return got.headers.find(name)->second; };
  const Timestamp now = SystemClock().wall();
  CHECK(is_signed(header("X-Weft-Signature"), "hush", now, 60, got.body));
  CHECK(header("X-Weft-Delivery") == "n-1");
  CHECK(header("Authorization") == "Bearer tok-9");
  const json generic = json::parse(got.body);
  CHECK(generic["event"] == "case_opened");
  CHECK(generic["summary"] == "a \"cable\" is\nbad");
  CHECK(generic["body"]["confidence"] == 0.9);

  REQUIRE(notify(webhook_settings(yaml + R"(messages:
  - events: [case_opened]
    body:
      routing_key: "{secret:pd}"
      payload: {summary: "{summary}", custom_details: "{body}", source: "{/cause/entity} {x} {/no}"}
      list: ["{case}", fixed, "{/confidence}"]
)"),
                 notice())
              .has_value());
  const json made = json::parse(server.got[1].body);
  CHECK(made["routing_key"] == "tok-9");
  CHECK(made["payload"]["custom_details"]["cause"]["kind"] == "cable");
  CHECK(made["payload"]["source"] == "rtsw:1--ctsw:0 {x} ");
  CHECK(made["list"] == json({"c-1", "fixed", 0.9}));
  // Nothing is sent for events that no message is for.
  REQUIRE(notify(webhook_settings(yaml + "messages: [{events: [x], body: {}}]\n"), notice())
              .has_value());
  CHECK(server.got.size() == 2);
}

TEST_CASE("the examples of the documentation make what their receivers take") {
  const TestFolder scratch;
  const std::string token = scratch.write("token", "tok-9");
  for (const std::string name : {"slack", "pagerduty", "jira"}) {
    CAPTURE(name);
    auto text = read_file("docs/examples/webhook-" + name + ".yaml");
    REQUIRE_MESSAGE(text.has_value(), (text ? "" : text.error().text()));
    for (std::size_t at = text->find("/etc/weft/"); at != std::string::npos;
         at = text->find("/etc/weft/"))
      text->replace(at, text->find_first_of(",}\n", at) - at, token);
    const WebhookSettings settings = webhook_settings(*text);
    const auto body = webhook_body(settings, settings.messages.at(0), notice());
    REQUIRE(body.has_value());
    const json made = json::parse(*body);
    if (name == "slack")
      CHECK(made["text"].get<std::string>().find("rtsw:1--ctsw:0") != std::string::npos);
    if (name == "pagerduty") {
      CHECK(made["event_action"] == "trigger");
      CHECK(made["dedup_key"] == "c-1");
      CHECK(made["payload"]["severity"] == "warning");
      CHECK(settings.messages.size() == 2);
    }
    if (name == "jira") CHECK(made["fields"]["project"]["key"] == "NET");
  }
}

TEST_CASE("who is busy or broken is asked again, who refuses is not") {
  HookServer busy({500, 429, 204});
  CHECK(notify(webhook_settings(quick(busy.url())), notice()).has_value());
  CHECK(busy.got.size() == 3);
  CHECK(busy.got[0].body == busy.got[2].body);
  HookServer broken({503});
  const Status failed = notify(webhook_settings(quick(broken.url())), notice());
  REQUIRE(!failed.has_value());
  CHECK(failed.error().code == Errc::io);
  CHECK(failed.error().text().find("503") != std::string::npos);
  CHECK(broken.got.size() == 3);
  for (const int status : {400, 401, 301}) {
    HookServer refusing({status});
    const Status refused = notify(webhook_settings(quick(refusing.url())), notice());
    REQUIRE(!refused.has_value());
    CHECK(refused.error().code == Errc::value);
    CHECK(refusing.got.size() == 1);
  }
  CHECK(!notify(webhook_settings(quick("http://127.0.0.1:1/")), notice()).has_value());
}

// Takes connections, and does to each what it is told to.
class RawServer {
 public:
  explicit RawServer(const std::function<void(int, std::stop_token)>& serve) {
    listener_ = Fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) ==
            0);
    socklen_t size = sizeof address;
    getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port = ntohs(address.sin_port);
    ::listen(listener_.get(), 8);
    thread_ = std::jthread([this, serve](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        const Fd peer(accept(listener_.get(), nullptr, nullptr));
        if (peer.valid()) serve(peer.get(), stop);
        std::this_thread::sleep_for(2ms);
      }
    });
  }
  int port = 0;

 private:
  Fd listener_;
  std::jthread thread_;
};

TEST_CASE("a server that hangs, drips, floods or hangs up costs no more than its time") {
  const auto take = [](const RawServer& server) {
    const auto start = Clock::now();
    const Status status = notify(
        webhook_settings(fmt::format(
            "url: http://127.0.0.1:{}/\ntimeout: 200 ms\ntries: 2\nbackoff: 10 ms\n", server.port)),
        notice());
    CHECK(!status.has_value());
    CHECK(Clock::now() - start < 1500ms);
  };
  take(RawServer([](int, const std::stop_token& stop) {
    for (int i = 0; i < 100 && !stop.stop_requested(); ++i) std::this_thread::sleep_for(10ms);
  }));
  take(RawServer([](int, const std::stop_token&) {}));
  take(RawServer([](int peer, const std::stop_token& stop) {
    for (int i = 0; i < 200 && !stop.stop_requested(); ++i) {
      if (send(peer, "H", 1, MSG_NOSIGNAL) != 1) return;
      std::this_thread::sleep_for(10ms);
    }
  }));
  take(RawServer([](int peer, const std::stop_token& stop) {
    const std::string head = "HTTP/1.1 500 No\r\n\r\n";
    send(peer, head.data(), head.size(), MSG_NOSIGNAL);
    const std::string junk(65'536, 'x');
    for (int i = 0; i < 200 && !stop.stop_requested(); ++i)
      if (send(peer, junk.data(), junk.size(), MSG_NOSIGNAL) < 0) return;
  }));
  const auto start = Clock::now();
  HookServer slow({200}, 600ms);
  CHECK(!notify(webhook_settings("url: " + slow.url() +
                                 "\ntimeout: 100 ms\ntries: 9\npatience: 300 ms\n"),
                notice())
             .has_value());
  CHECK(Clock::now() - start < 1500ms);
}

TEST_CASE("settings are checked, with every error and its place") {
  const TestFolder scratch;
  const std::string open = scratch.write("open", "x");
  chmod(open.c_str(), 0644);
  const auto config =
      parse_yaml("url: http://example.com/x\nsign_with: /no/such\nsecrets: {a: " + open +
                     "}\ntries: 0\nheaders: {\"A:b\": c, D: \"{secret:zz}\"}\n"
                     "messages: [{body: {x: \"{/a~2}\"}}, {events: [y]}]\ncolor: 1\n",
                 "h.yaml");
  const auto settings = read_webhook_settings(*config);
  REQUIRE(!settings.has_value());
  const std::string text = settings.error().text();
  for (const std::string_view part :
       {"h.yaml:1:", "plain HTTP is unencrypted", "/no/such", "readable by everyone", "tries",
        "A:b", "secret:zz", "JSON pointer", "needs a body", "color"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  for (const std::string_view bad :
       {"", "ftp://x/", "https://", "https://u:p@h/", "https://h/a b", "h"})
    CHECK(!parse_url({bad, {}}, PlainHttp::anywhere).has_value());
  CHECK(parse_url({"http://localhost:80", {}}, PlainHttp::local_only)->path == "/");
}

TEST_CASE("alerts: labels of the case, ends, and a cause that becomes another") {
  AlertmanagerSettings settings;
  settings.labels["zone"] = "z1";
  CHECK(alert_labels(settings, notice()) == AlertLabels{{"alertname", "weft_cable"},
                                                        {"case", "c-1"},
                                                        {"device", "rtsw:1"},
                                                        {"peer", "ctsw:0"},
                                                        {"severity", "warning"},
                                                        {"zone", "z1"}});
  const AlertLabels port_labels = alert_labels(settings, notice("x", "optic", "ctsw:5/Ethernet7"));
  CHECK(port_labels.at("interface") == "Ethernet7");
  CHECK(alert_labels(settings, notice("x", "switch", "ctsw:5")).at("severity") == "critical");
  CHECK(alert_labels(settings, notice("x", "capacity", "rack:5")).at("severity") == "critical");
  const json one = json::parse(alerts_json(settings, notice(), {}));
  REQUIRE(one.size() == 1);
  CHECK(one[0]["startsAt"] == "2030-03-17T17:46:40Z");
  CHECK(one[0]["endsAt"] == "2030-03-18T17:46:40Z");
  const json two = json::parse(alerts_json(settings, notice("case_closed"), port_labels));
  REQUIRE(two.size() == 2);
  CHECK(two[0]["endsAt"] == two[0]["startsAt"]);
  CHECK(two[1]["labels"]["interface"] == "Ethernet7");
}

// A real Alertmanager, until the end of the test.
class Alertmanager {
 public:
  explicit Alertmanager(const std::string& directory) {
    const std::string address = fmt::format("127.0.0.1:{}", free_port(SOCK_STREAM));
    origin = "http://" + address;
    REQUIRE(
        write_file(directory + "/am.yml", "route: {receiver: none}\nreceivers: [{name: none}]\n"));
    const std::string config = "--config.file=" + directory + "/am.yml",
                      storage = "--storage.path=" + directory + "/am",
                      listen = "--web.listen-address=" + address;
    pid_ = fork();
    if (pid_ == 0) {
      freopen("/dev/null", "w", stderr);
      execl("/usr/bin/prometheus-alertmanager", "prometheus-alertmanager", config.c_str(),
            storage.c_str(), listen.c_str(), "--cluster.listen-address=", nullptr);
      _exit(127);
    }
  }
  ~Alertmanager() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Alertmanager(const Alertmanager&) = delete;
  Alertmanager& operator=(const Alertmanager&) = delete;
  // Alerts that fire; null while it does not answer.
  json alerts() const {
    httplib::Client client(origin);
    const auto got = client.Get("/api/v2/alerts?active=true");
    return got && got->status == 200 ? json::parse(got->body) : json();
  }
  std::string origin;

 private:
  pid_t pid_ = 0;
};

TEST_CASE("a real Alertmanager takes alerts, their changes and their ends" *
          doctest::test_suite("needs alertmanager")) {
  if (::access("/usr/bin/prometheus-alertmanager", X_OK) != 0) {
    skip_test("prometheus-alertmanager is not installed");
    return;
  }
  const TestFolder scratch;
  const Alertmanager alertmanager(scratch.path());
  for (int i = 0; i < 500 && alertmanager.alerts().is_null(); ++i)
    std::this_thread::sleep_for(10ms);
  REQUIRE(!alertmanager.alerts().is_null());
  const auto config =
      parse_yaml("url: " + alertmanager.origin + "\nlabels: {zone: z1}\n", "am.yaml");
  auto settings = read_alertmanager_settings(*config);
  REQUIRE_MESSAGE(settings.has_value(), (settings ? "" : settings.error().text()));
  AlertmanagerNotifier notifier(*settings);
  const auto say = [&](port::Notice what) {
    what.t = SystemClock().wall();
    const Status done = notifier.notify(what);
    CHECK_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  };
  say(notice());
  json firing = alertmanager.alerts();
  REQUIRE(firing.size() == 1);
  CHECK(firing[0]["labels"]["alertname"] == "weft_cable");
  CHECK(firing[0]["labels"]["zone"] == "z1");
  CHECK(firing[0]["annotations"]["summary"] == "a \"cable\" is\nbad");
  say(notice("case_updated", "switch", "ctsw:0"));
  firing = alertmanager.alerts();
  REQUIRE(firing.size() == 1);
  CHECK(firing[0]["labels"]["alertname"] == "weft_switch");
  say(notice("case_closed", "switch", "ctsw:0"));
  CHECK(alertmanager.alerts().empty());
  // What becomes of the repair afterwards does not wake it again.
  port::Notice later = notice("repair_returned", "switch", "ctsw:0");
  later.body.insert(1, R"("open": false, )");
  say(later);
  CHECK(alertmanager.alerts().empty());
}

}  // namespace
}  // namespace weft::adapt::live
