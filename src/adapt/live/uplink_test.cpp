#include "adapt/live/uplink.hpp"

#include <doctest/doctest.h>
#include <httplib.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/file.hpp"
#include "base/test_folder.hpp"

namespace weft::adapt::live {
namespace {

using namespace std::chrono_literals;

// A service on a socket of this machine, which answers as it is told to.
class RecordService {
 public:
  explicit RecordService(const std::string& socket = {}) {
    server_.Post("/v1/records", [this](const httplib::Request& request, httplib::Response& out) {
      answer(request, out);
    });
    if (socket.empty()) {
      const int port = server_.bind_to_any_port("127.0.0.1");
      url_ = "http://127.0.0.1:" + std::to_string(port);
      thread_ = std::thread([this] { server_.listen_after_bind(); });
    } else {
      url_ = "unix:" + socket;
      server_.set_address_family(AF_UNIX);
      thread_ = std::thread([this, socket] { server_.listen(socket, 80); });
    }
    while (!server_.is_running()) std::this_thread::sleep_for(1ms);
  }
  ~RecordService() {
    server_.stop();
    thread_.join();
  }
  RecordService(const RecordService&) = delete;
  RecordService& operator=(const RecordService&) = delete;

  const std::string& url() const { return url_; }
  std::vector<std::string> lines() const {
    const std::lock_guard guard(mutex_);
    return lines_;
  }
  std::atomic<int> busy{0};     // answers 429 so often
  std::atomic<int> partial{0};  // acknowledges one line only, so often
  std::atomic<int> liar{0};     // answers nonsense so often
  std::string poison;           // refuses what holds it
  std::string bad;              // takes all but the lines that hold it

 private:
  void answer(const httplib::Request& request, httplib::Response& out) {
    const std::lock_guard guard(mutex_);
    if (request.get_header_value("Authorization") != "Bearer secret") {
      out.status = 401;
      return;
    }
    if (busy > 0) {
      --busy;
      out.status = 429;
      out.set_header("Retry-After", "0");
      return;
    }
    if (liar > 0) {
      --liar;
      out.set_content(liar % 2 == 0 ? "{\"acknowledged\": 1e9}" : "yes", "text/plain");
      return;
    }
    if (!poison.empty() && request.body.find(poison) != std::string::npos) {
      out.status = 400;
      return;
    }
    std::size_t count = 0, number = 0;
    std::string refused;
    for (std::size_t at = 0; at < request.body.size(); ++count) {
      if (partial > 0 && count == 1) break;
      const std::size_t end = request.body.find('\n', at);
      const std::string line = request.body.substr(at, end - at);
      at = end + 1;
      ++number;
      if (!bad.empty() && line.find(bad) != std::string::npos) {
        refused +=
            (refused.empty() ? "{\"line\": " : ", {\"line\": ") + std::to_string(number) + "}";
        --count;
      } else {
        lines_.push_back(line);
      }
    }
    if (partial > 0) --partial;
    out.set_content("{\"acknowledged\": " + std::to_string(count) + ", \"refused\": [" + refused +
                        "], \"refused_count\": " + std::to_string(number - count) + "}",
                    "application/json");
  }

  httplib::Server server_;
  std::thread thread_;
  std::string url_;
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

Uplink open(const TestFolder& folder, const std::string& url) {
  auto uplink = Uplink::open({.url = url,
                              .token = "secret",
                              .spool = {.directory = folder.file("spool")},
                              .timeout = 300ms,
                              .retry_first = 5ms,
                              .retry_max = 20ms});
  REQUIRE_MESSAGE(uplink.has_value(), (uplink ? "" : uplink.error().text()));
  return *std::move(uplink);
}

std::vector<std::string> some_lines(int from, int to) {
  std::vector<std::string> out;
  for (int i = from; i < to; ++i) out.push_back("{\"id\":\"" + std::to_string(i) + "\"}");
  return out;
}

}  // namespace

TEST_CASE("uplink: lines arrive in order, through busy, partial and wrong answers") {
  const TestFolder folder;
  RecordService service;
  service.busy = 2;
  service.partial = 3;
  service.liar = 2;
  Uplink uplink = open(folder, service.url());
  REQUIRE(uplink.send(some_lines(0, 50), "m").has_value());
  REQUIRE(uplink.send(some_lines(50, 60)).has_value());
  CHECK(uplink.flush(5s));
  CHECK(service.lines() == some_lines(0, 60));
  CHECK(uplink.counts().acknowledged == 60);
  CHECK(uplink.counts().failures == 4);
  CHECK(uplink.counts().waiting_bytes < 10);
}

TEST_CASE("uplink: nobody there, then somebody, and another process meanwhile") {
  const TestFolder folder;
  {
    Uplink uplink = open(folder, "http://127.0.0.1:1");
    REQUIRE(uplink.send(some_lines(0, 5), "here").has_value());
    CHECK_FALSE(uplink.flush(100ms));
    CHECK_FALSE(uplink.trouble().empty());
  }
  RecordService service;
  Uplink uplink = open(folder, service.url());
  CHECK(uplink.mark() == "here");
  REQUIRE(uplink.send(some_lines(5, 6)).has_value());
  CHECK(uplink.flush(5s));
  CHECK(service.lines() == some_lines(0, 6));
}

TEST_CASE("uplink: a line that the service will never take is put aside") {
  const TestFolder folder;
  RecordService service;
  service.poison = "\"7\"";
  Uplink uplink = open(folder, service.url());
  REQUIRE(uplink.send(some_lines(0, 20)).has_value());
  CHECK(uplink.flush(5s));
  auto expected = some_lines(0, 20);
  expected.erase(expected.begin() + 7);
  CHECK(service.lines() == expected);
  CHECK(uplink.counts().refused == 1);
  CHECK(read_file(folder.file("spool/refused.jsonl")).value_or("") == "{\"id\":\"7\"}\n");
}

TEST_CASE("uplink: what a service names as no record is put aside, and nothing else") {
  const TestFolder folder;
  RecordService service;
  service.bad = "1";
  Uplink uplink = open(folder, service.url());
  REQUIRE(uplink.send(some_lines(0, 12)).has_value());
  CHECK(uplink.flush(5s));
  CHECK(service.lines().size() == 9);
  CHECK(uplink.counts().refused == 3);
  CHECK(uplink.counts().acknowledged == 9);
  CHECK(read_file(folder.file("spool/refused.jsonl")).value_or("") ==
        "{\"id\":\"1\"}\n{\"id\":\"10\"}\n{\"id\":\"11\"}\n");
}

TEST_CASE("uplink: over a socket of this machine") {
  const TestFolder folder;
  const RecordService service(folder.file("socket"));
  Uplink uplink = open(folder, service.url());
  REQUIRE(uplink.send(some_lines(0, 3)).has_value());
  CHECK(uplink.flush(5s));
  CHECK(service.lines() == some_lines(0, 3));
}

TEST_CASE("uplink: addresses") {
  const TestFolder folder;
  const auto refuses = [&](const std::string& url) {
    const auto uplink =
        Uplink::open({.url = url, .token = {}, .spool = {.directory = folder.file("spool")}});
    CHECK_MESSAGE(!uplink.has_value(), url);
    return uplink ? std::string{} : uplink.error().text();
  };
  CHECK(refuses("http://example.net").find("without TLS") != std::string::npos);
  CHECK(refuses("http://127.0.0.1.example.net@x").find("host and a port") != std::string::npos);
  for (const char* url : {"", "ftp://x", "https://", "https://x/v1", "unix:", "http://localhos"})
    refuses(url);
}

}  // namespace weft::adapt::live
