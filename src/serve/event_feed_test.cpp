#include "serve/event_feed.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "serve/api_kit.hpp"
#include "serve/listing.hpp"

namespace weft::serve {
namespace {

using namespace testing;

port::AuditEntry entry(std::int64_t t, std::string id) {
  return {0, {t}, "weft", std::move(id), "case_open", "{}"};
}

// What a service does: first the store, then the bus.
void happen(MemoryStore& store, Bus& bus, std::int64_t t) {
  const std::string id = fmt::format("c{}", t);
  const std::string body = fmt::format(R"({{"id":"{}"}})", id);
  REQUIRE(store.commit({.documents = {{"case", id, {t}, body}}, .audit = {entry(t, id)}}));
  bus.publish({"audit", "{}"});
  bus.publish({"case", body});
}

std::string watch(Client& client, std::string_view headers = "", std::string_view query = "") {
  client.send(Client::request("GET", fmt::format("/v1/events{}", query), "", headers));
  return client.receive_until("\r\n\r\n");
}

TEST_CASE("events come as they happen, with the numbers of the log") {
  Bed bed;
  happen(bed.store, bed.bus, 1);
  Client client(bed.api->port());
  const std::string head = watch(client);
  CHECK(head.find("Content-Type: text/event-stream\r\n") != std::string::npos);
  CHECK(head.find("Content-Length") == std::string::npos);
  CHECK(client.receive_until("\n\nid: 1\nevent: hello\ndata: {\"seq\":1}\n\n") ==
        "retry: 1000\n\nid: 1\nevent: hello\ndata: {\"seq\":1}\n\n");
  happen(bed.store, bed.bus, 2);
  // The entry may be read from the store before its case is announced.
  const std::string document = "event: case\ndata: {\"id\":\"c2\"}\n\n";
  const std::string text = client.receive_until("id: 2\nevent: audit\n");
  if (text.find(document) == std::string::npos)
    CHECK(client.receive_until(document).find(document) != std::string::npos);
}

TEST_CASE("whoever comes back gets all that it missed") {
  Bed bed;
  for (int t = 1; t <= 600; ++t) happen(bed.store, bed.bus, t);
  Client client(bed.api->port());
  watch(client, "Last-Event-ID: 299\r\n");
  const std::string text = client.receive_until("id: 600\nevent: audit\n");
  for (const int seq : {300, 301, 555, 600})
    CHECK(text.find(fmt::format("id: {}\nevent: audit\n", seq)) != std::string::npos);
  CHECK(text.find("id: 299\n") == std::string::npos);
  // Documents come first: were they last, a second break would lose them.
  CHECK(text.find("{\"id\":\"c600\"}") < text.find("id: 300\n"));
  CHECK(text.find("{\"id\":\"c298\"}") == std::string::npos);
  Client stranger(bed.api->port());
  watch(stranger, "Last-Event-ID: 5000\r\n");
  CHECK(stranger.receive_until("event: hello").find("event: reset") != std::string::npos);
  CHECK(call(*bed.api, "GET", "/v1/events", "", "Last-Event-ID: x\r\n").status == 400);
  Client by_query(bed.api->port());
  watch(by_query, "", "?since=598");
  CHECK(by_query.receive_until("id: 600\n").find("id: 599\n") != std::string::npos);
}

TEST_CASE("breaking off again and again loses nothing") {
  Bed bed;
  constexpr std::int64_t total = 400;
  std::thread world([&] {
    for (std::int64_t t = 1; t <= total; ++t) {
      happen(bed.store, bed.bus, t);
      if (t % 16 == 0) std::this_thread::sleep_for(1ms);
    }
  });
  // Per connection some bytes, wherever that cuts; only whole events count, as in browsers. Each
  // time somewhat more: documents come before the entries that move the resumption on.
  std::vector<int> entries(total + 1);
  std::vector<int> cases(total + 1);
  std::string last = "0";
  for (int round = 0; round < 500 && last != std::to_string(total); ++round) {
    Client client(bed.api->port());
    watch(client, fmt::format("Last-Event-ID: {}\r\n", last));
    std::string text;
    const std::size_t bytes = 3000 + 500 * static_cast<std::size_t>(round);
    while (text.size() < bytes && text.find(fmt::format("id: {}\n", total)) == std::string::npos)
      text += client.receive(50ms);
    text.resize(text.rfind("\n\n") == std::string::npos ? 0 : text.rfind("\n\n") + 2);
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find("\n\n", at) + 2;
      const std::string event = text.substr(at, end - at);
      if (event.starts_with("id: ")) last = event.substr(4, event.find('\n') - 4);
      if (event.starts_with("id: ") && event.find("event: audit") != std::string::npos)
        ++entries[std::stoul(last)];
      if (const auto id = event.find("{\"id\":\"c"); id != std::string::npos)
        ++cases[std::stoul(event.substr(id + 8))];
      at = end;
    }
  }
  world.join();
  for (std::size_t t = 1; t <= total; ++t) {
    INFO(t);
    CHECK(entries[t] == 1);
    CHECK(cases[t] >= 1);
  }
}

TEST_CASE("quiet streams show that they live, and notice who left") {
  Bed bed(ApiOptions{.limits = {.event_clients = 1, .heartbeat = 20ms}});
  {
    Client client(bed.api->port());
    watch(client);
    CHECK_FALSE(client.receive_until(": still here\n\n").empty());
    const Answer other = call(*bed.api, "GET", "/v1/events");
    CHECK(other.status == 503);
    CHECK(call(*bed.api, "GET", "/v1/cases").status == 200);
    // Asking for the head takes no seat for long.
  }
  CHECK(eventually([&] {
    Client client(bed.api->port());
    return watch(client).find(" 200 ") != std::string::npos;
  }));
}

TEST_CASE("who cannot keep up is told so and let go") {
  MemoryStore store;
  Bus bus({.rows = 8});
  Meters meters;
  const std::atomic<bool> is_stopping = false;
  EventFeed feed({store, bus, is_stopping, meters, 15s}, std::nullopt, {});
  REQUIRE(feed.next()->find("event: hello") != std::string::npos);
  for (int t = 1; t <= 20; ++t) happen(store, bus, t);
  const auto last = feed.next();
  REQUIRE(last.has_value());
  CHECK(last->find("event: dropped\ndata: {\"why\":\"too slow: 32 events were lost") == 0);
  CHECK_FALSE(feed.next().has_value());
  CHECK(meters.events_dropped == 1);
}

TEST_CASE("a client that reads nothing is dropped, and disturbs nobody") {
  Bed bed(ApiOptions{.limits = {.patience = {.write = 200ms}}});
  Client deaf(bed.api->port());
  watch(deaf);
  Client good(bed.api->port());
  watch(good);
  const std::string large(100'000, 'x');
  // As fast as the good one reads, however slow this machine is.
  for (int i = 0; i < 100; ++i) {
    bed.bus.publish({"case", large});
    bed.bus.publish({"case", large});
    const std::string mark = fmt::format("\"mark {}\"", i);
    bed.bus.publish({"case", mark});
    REQUIRE_FALSE(good.receive_until(mark).empty());
  }
  CHECK(eventually([&] {
    return call(*bed.api, "GET", "/metrics").body.find("weft_http_event_clients 1\n") !=
           std::string::npos;
  }));
}

TEST_CASE("a broken store ends the stream with its reason") {
  Bed bed;
  bed.store.is_broken = true;
  Client client(bed.api->port());
  watch(client);
  CHECK(client.receive_all().find("event: failed\ndata: {\"why\":\"the disk is gone\"}") == 0);
}

TEST_CASE("data of several lines stays one event") {
  CHECK(event_text("case", "", "{\n \"a\": 1\r\n}") ==
        "event: case\ndata: {\ndata:  \"a\": 1\ndata: }\n\n");
}

TEST_CASE("the last entry of the log is found without reading it") {
  for (const std::uint64_t count : {0U, 1U, 2U, 3U, 64U, 1000U}) {
    MemoryStore store;
    port::Commit commit;
    for (std::uint64_t i = 0; i < count; ++i) commit.audit.push_back(entry(1, "c"));
    REQUIRE(store.commit(commit));
    CHECK(last_audit(store, 0) == count);
    CHECK(last_audit(store, count / 2) == count);
  }
}

}  // namespace
}  // namespace weft::serve
