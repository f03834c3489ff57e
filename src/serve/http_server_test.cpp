#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/rng.hpp"
#include "serve/api_kit.hpp"
#include "serve/listener.hpp"

namespace weft::serve {
namespace {

using namespace testing;

TEST_CASE("garbage is refused and the next one served") {
  Bed bed(ApiOptions{.limits = {.head_bytes = 4096, .head = 300ms}});
  const auto status = [&](std::string_view bytes) {
    Client client(bed.api->port());
    client.send(bytes);
    return parse_answer(client.receive_all()).status;
  };
  CHECK(status("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") == 400);  // a TLS client
  CHECK(status("hello\n") == 400);
  CHECK(status("GET / HTTP/1.1\nHost: x\n\n") == 400);
  CHECK(status("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") == 505);
  CHECK(status("GET /" + std::string(5000, 'x')) == 431);
  CHECK(status("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(5000, 'x') + "\r\n\r\n") ==
        431);
  CHECK(status("GET / HTTP/1.1\r\nHost: local") == 408);
  CHECK(status("POST /v1/records HTTP/1.0\r\nHost: localhost\r\n\r\n") == 411);
  CHECK(status("POST /v1/records HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
               "5\r\nhello\r\n0\r\n\r\n") == 411);
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    std::string junk(rng.below(300), '\0');
    for (char& c : junk) c = static_cast<char>(rng.below(256));
    Client client(bed.api->port());
    client.send(junk + "\r\n\r\n");
    const int code = client.answer().status;
    CHECK((code == 400 || code == 505));
  }
  CHECK(bed.service.taken_count() == 0);
  CHECK(call(*bed.api, "GET", "/healthz").status == 200);
}

TEST_CASE("a body that never comes whole is not taken") {
  Bed bed(ApiOptions{.limits = {.patience = {.body = 200ms}}});
  const std::string head =
      "POST /v1/records HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n";
  Client slow(bed.api->port());
  slow.send(head + "abc");
  CHECK(slow.answer().status == 408);
  Client gone(bed.api->port());
  gone.send(head + "abc");
  ::shutdown(gone.socket(), SHUT_WR);
  CHECK(gone.answer().status == 400);
  CHECK(bed.service.taken_count() == 0);
}

TEST_CASE("drips are not time: the whole head has one deadline") {
  Bed bed(ApiOptions{.limits = {.head = 200ms}});
  Client client(bed.api->port());
  const auto began = std::chrono::steady_clock::now();
  for (const char c :
       std::string_view("GET / HTTP/1.1\r\nX: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")) {
    if (!client.send({&c, 1})) break;
    if (std::chrono::steady_clock::now() - began > 2s) break;
    std::this_thread::sleep_for(20ms);
  }
  CHECK(std::chrono::steady_clock::now() - began < 2s);
  CHECK(client.answer().status == 408);
}

TEST_CASE("several requests on one connection, also before their answers") {
  Bed bed;
  Client client(bed.api->port());
  std::string all;
  for (int i = 0; i < 20; ++i)
    all += Client::request("POST", "/v1/records", fmt::format("line {}", i));
  client.send(all);
  for (int i = 0; i < 20; ++i) CHECK(client.answer().status == 200);
  CHECK(bed.service.taken_count() == 20);
  // In pieces of any size.
  for (const std::string piece :
       {"\r\nGET /heal", "thz HTTP/1.1\r", "\nHost: localhost\r\n\r", "\n"}) {
    client.send(piece);
    std::this_thread::sleep_for(5ms);
  }
  CHECK(client.answer().status == 200);
}

TEST_CASE("a body that was not read is no request") {
  Bed bed;
  Client client(bed.api->port());
  client.send("POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 64\r\n\r\n" +
              Client::request("PUT", "/v1/kill-switch", R"({"reason":"smuggled"})"));
  const Answer answer = client.answer();
  CHECK(answer.status == 404);
  CHECK(answer.headers.at("connection") == "close");
  CHECK(client.receive_all().empty());
  CHECK(bed.service.commands.empty());
}

TEST_CASE("a refusal arrives though the client is still sending") {
  Bed bed(ApiOptions{.limits = {.body_bytes = 1000}});
  Client client(bed.api->port());
  client.send(fmt::format(
      "POST /v1/records HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", 8 << 20));
  std::thread sender([&] { client.send(std::string(8 << 20, 'x')); });
  CHECK(client.answer().status == 413);
  sender.join();
}

TEST_CASE("connections end after their last request and when idle") {
  Bed bed(ApiOptions{.limits = {.requests = 2, .idle = 100ms}});
  Client client(bed.api->port());
  CHECK_FALSE(client.call("GET", "/healthz").headers.contains("connection"));
  CHECK(client.call("GET", "/healthz").headers.at("connection") == "close");
  CHECK(client.receive_all().empty());
  Client idle(bed.api->port());
  CHECK(idle.receive(5s).empty());
  Client old(bed.api->port());
  old.send("GET /healthz HTTP/1.0\r\n\r\n");
  CHECK(parse_answer(old.receive_all()).status == 200);
}

TEST_CASE("when there are too many connections the idle make room") {
  Bed bed(ApiOptions{.limits = {.connections = 4}});
  std::vector<std::unique_ptr<Client>> idle;
  for (int i = 0; i < 12; ++i) {
    idle.push_back(std::make_unique<Client>(bed.api->port()));
    CHECK(idle.back()->call("GET", "/healthz").status == 200);
  }
  CHECK(call(*bed.api, "GET", "/metrics").body.find("weft_http_crowded_out_total 0\n") ==
        std::string::npos);
}

TEST_CASE("fifty who send at once") {
  Bed bed(ApiOptions{.limits = {.event_clients = 4}});
  std::vector<std::unique_ptr<Client>> watchers;
  for (int i = 0; i < 4; ++i) {
    watchers.push_back(std::make_unique<Client>(bed.api->port()));
    watchers.back()->send(Client::request("GET", "/v1/events"));
  }
  std::atomic<std::size_t> acknowledged = 0;
  std::vector<std::thread> senders;
  for (int s = 0; s < 50; ++s)
    senders.emplace_back([&, s] {
      Client client(bed.api->port());
      for (int i = 0; i < 20; ++i) {
        const Answer answer =
            client.call("POST", "/v1/records", fmt::format("{}.{}.a\n{}.{}.b\n", s, i, s, i));
        if (answer.status == 200) acknowledged += 2;
      }
    });
  for (std::thread& sender : senders) sender.join();
  CHECK(acknowledged == 2000);
  CHECK(bed.service.taken_count() == acknowledged);
}

TEST_CASE("requests wait for a free worker, and clients that left do not hold one") {
  Bed bed(ApiOptions{.limits = {.event_clients = 1, .workers = 1}});
  bed.service.delay = 50ms;
  for (int i = 0; i < 3; ++i) {
    Client watcher(bed.api->port());
    watcher.send(Client::request("GET", "/v1/events"));
    CHECK_FALSE(watcher.receive_until("event: hello").empty());
    ::shutdown(watcher.socket(), SHUT_RDWR);
    CHECK(eventually([&] {
      return call(*bed.api, "GET", "/metrics").body.find("weft_http_event_clients 0\n") !=
             std::string::npos;
    }));
  }
  std::vector<std::unique_ptr<Client>> senders;
  for (int i = 0; i < 8; ++i) {
    senders.push_back(std::make_unique<Client>(bed.api->port()));
    senders.back()->send(Client::request("POST", "/v1/records", "x"));
  }
  for (const auto& sender : senders) CHECK(sender->answer().status == 200);
  CHECK(bed.service.taken_count() == 8);
}

TEST_CASE(
    "an answer that is held keeps no worker busy, nor the next request of its connection out") {
  std::mutex mutex;
  std::vector<std::function<void(Result<std::string>)>> held;
  const auto count = [&] {
    const std::scoped_lock lock(mutex);
    return held.size();
  };
  Bed bed(ApiOptions{.limits = {.event_clients = 1, .workers = 1},
                     .te = {[&](auto, auto, auto, auto answer) {
                              const std::scoped_lock lock(mutex);
                              held.push_back(std::move(answer));
                            },
                            {}}});
  std::vector<std::unique_ptr<Client>> waiting;
  for (int i = 0; i < 20; ++i) {
    waiting.push_back(std::make_unique<Client>(bed.api->port()));
    waiting.back()->send(Client::request("POST", "/v1/te/switches/x", "{}"));
  }
  for (int i = 0; i < 500 && count() < 20; ++i) std::this_thread::sleep_for(10ms);
  REQUIRE(count() == 20);
  CHECK(call(*bed.api, "GET", "/healthz").status == 200);
  waiting[3].reset();  // who leaves is not missed
  for (std::size_t i = 0; i < held.size(); ++i)
    held[i](i == 5 ? Result<std::string>(fail(Errc::unknown, {}, "no such switch"))
                   : Result<std::string>("{\"a\":1}"));
  std::size_t answered = 0, refused = 0;
  for (const auto& client : waiting) {
    if (!client) continue;
    const Answer answer = client->answer();
    answered += answer.status == 200 && answer.body == "{\"a\":1}" ? 1 : 0;
    refused += answer.status == 404 ? 1 : 0;
    CHECK(client->call("GET", "/healthz").status == 200);
  }
  CHECK(answered == 18);
  CHECK(refused == 1);
}

TEST_CASE("stopping: what is under way is answered, the rest ends") {
  Bed bed;
  bed.service.delay = 200ms;
  Client idle(bed.api->port());
  CHECK(idle.call("GET", "/healthz").status == 200);
  Client watcher(bed.api->port());
  watcher.send(Client::request("GET", "/v1/events"));
  CHECK_FALSE(watcher.receive_until("event: hello").empty());
  Client sender(bed.api->port());
  sender.send(Client::request("POST", "/v1/records", "x"));
  std::this_thread::sleep_for(50ms);
  const auto began = std::chrono::steady_clock::now();
  bed.api->stop();
  CHECK(std::chrono::steady_clock::now() - began < 3s);
  const Answer answer = sender.answer();
  CHECK(answer.status == 200);
  CHECK(watcher.receive_all().find("event: closing") != std::string::npos);
  CHECK(idle.receive_all().empty());
  CHECK_FALSE(Client(bed.api->port()).is_connected());
  bed.api->stop();  // again does nothing
}

TEST_CASE("stopping does not wait for those who dawdle") {
  Bed bed(ApiOptions{.limits = {.farewell = 100ms}});
  Client client(bed.api->port());
  client.send("POST /v1/records HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nabc");
  std::this_thread::sleep_for(50ms);
  const auto began = std::chrono::steady_clock::now();
  bed.api->stop();
  CHECK(std::chrono::steady_clock::now() - began < 3s);
  CHECK(bed.service.taken_count() == 0);
}

TEST_CASE("stopping under load acknowledges only what was taken") {
  for (int round = 0; round < 5; ++round) {
    Bed bed;
    std::atomic<std::size_t> acknowledged = 0;
    std::vector<std::thread> senders;
    for (int s = 0; s < 8; ++s)
      senders.emplace_back([&] {
        for (;;) {
          Client client(bed.api->port());
          if (!client.is_connected()) return;
          while (client.call("POST", "/v1/records", "x").status == 200) ++acknowledged;
        }
      });
    std::this_thread::sleep_for(30ms);
    bed.api->stop();
    for (std::thread& sender : senders) sender.join();
    CHECK(acknowledged <= bed.service.taken_count());
    CHECK(acknowledged > 0);
  }
}

TEST_CASE("addresses") {
  CHECK(parse_listen_address("127.0.0.1:80")->is_local());
  CHECK(parse_listen_address("127.9.9.9:80")->is_local());
  CHECK(parse_listen_address("localhost:80")->text() == "127.0.0.1:80");
  CHECK(parse_listen_address("[::1]:80")->text() == "[::1]:80");
  CHECK(parse_listen_address("[::1]:80")->is_local());
  CHECK(parse_listen_address("unix:/x")->is_local());
  CHECK_FALSE(parse_listen_address("0.0.0.0:80")->is_local());
  CHECK_FALSE(parse_listen_address("[::]:80")->is_local());
  CHECK_FALSE(parse_listen_address("10.0.0.1:80")->is_local());
  CHECK_FALSE(parse_listen_address("unix:" + std::string(108, 'x')).has_value());
}

}  // namespace
}  // namespace weft::serve
