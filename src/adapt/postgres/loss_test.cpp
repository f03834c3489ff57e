// Servers and answers that are lost: every commit that was acknowledged is there, and once.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "adapt/postgres/store.hpp"
#include "adapt/postgres/test_proxy.hpp"
#include "adapt/postgres/test_server.hpp"
#include "base/rng.hpp"
#include "port/store_contract.hpp"

using namespace weft;
using namespace weft::adapt::postgres;
using namespace weft::adapt::postgres::testing;
using port::testing::all;
using port::testing::must;
using Fault = TestProxy::Fault;

namespace {

// Batch k: as many lines as k says, a document that is replaced each time, an audit entry.
port::Commit batch(int k) {
  port::Commit out;
  out.events = port::testing::lines(std::to_string(k), static_cast<std::size_t>(k % 7));
  out.documents = {{"count", "batches", {k}, std::to_string(k)}};
  out.audit = {{0, {k}, "test", "", "batch", std::to_string(k)}};
  return out;
}

// Batches 1 .. last, each once, whole and in order.
void check_holds(port::Store& store, int last) {
  const auto events = must(store.events(0, all));
  std::size_t at = 0;
  for (int k = 1; k <= last; ++k)
    for (const port::StoredEvent& wanted : batch(k).events) {
      REQUIRE(at < events.size());
      REQUIRE(events[at].line == wanted.line);
      REQUIRE(events[at].seq == at + 1);
      ++at;
    }
  CHECK(at == events.size());
  const auto audit = must(store.audit(0, "", all));
  REQUIRE(audit.size() == static_cast<std::size_t>(last));
  for (int k = 1; k <= last; ++k)
    REQUIRE(audit[static_cast<std::size_t>(k) - 1].detail == std::to_string(k));
  CHECK(must(store.document("count", "batches")).body == std::to_string(last));
}

// Tries until it is done; how many tries failed.
int persist(port::Store& store, int k) {
  int failures = 0;
  const auto is_done = [&] {
    const auto done = store.commit(batch(k));
    if (!done) ++failures;
    return done.has_value();
  };
  REQUIRE(wait_for(is_done, std::chrono::seconds(20)));
  return failures;
}

std::unique_ptr<port::Store> open_empty(const TestServer& server, const std::string& more = {},
                                        Patience patience = {}) {
  REQUIRE(server.sql("DROP SCHEMA IF EXISTS weft CASCADE").has_value());
  return must(open_postgres(server.conninfo() + more, patience));
}

}  // namespace

TEST_CASE("a commit whose request is lost is not there, and can be tried again" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  TestProxy proxy(server->folder());
  const auto store = open_empty(*server, " port=1");
  for (int k = 1; k <= 10; ++k) {
    if (k % 2 == 0) proxy.next(Fault::lose_request);
    CHECK(persist(*store, k) == (k % 2 == 0 ? 1 : 0));
  }
  check_holds(*store, 10);
}

TEST_CASE("a commit whose answer is lost is found by the same call" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  TestProxy proxy(server->folder());
  const auto store = open_empty(*server, " port=1");
  for (int k = 1; k <= 10; ++k) {
    if (k % 2 == 0) proxy.next(Fault::lose_answer);
    CHECK(persist(*store, k) == 0);
  }
  check_holds(*store, 10);
  proxy.next(Fault::lose_answer);
  const auto first = store->commit({.events = port::testing::lines("x", 3)});
  const auto events = must(store->events(0, all));
  CHECK(must(first) == events.size() - 2);
}

TEST_CASE("a commit whose answer is lost is not done twice when it is tried again later" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  TestProxy proxy(server->folder());
  const auto store = open_empty(*server, " port=1");
  must(store->commit(batch(1)));
  for (int k = 2; k <= 6; ++k) {
    const bool carried_out = k % 2 == 0;
    proxy.next(carried_out ? Fault::lose_answer : Fault::lose_request);
    proxy.shut_after_fault();
    const auto unknown = store->commit(batch(k));
    REQUIRE_FALSE(unknown.has_value());
    CHECK(unknown.error().hint.find("not known whether the commit was applied") !=
          std::string::npos);
    CHECK_FALSE(store->commit(batch(k)).has_value());  // still nobody there
    CHECK_FALSE(store->forget_events(1).has_value());
    proxy.let_in();
    if (k == 4) must(store->forget_events(1));  // which connects again, and forgets no doubt
    CHECK(persist(*store, k) == 0);
  }
  check_holds(*store, 6);
}

TEST_CASE("a commit that is given up for another does not hold that up" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  TestProxy proxy(server->folder());
  const auto store = open_empty(*server, " port=1");
  proxy.next(Fault::lose_answer);
  proxy.shut_after_fault();
  REQUIRE_FALSE(store->commit(batch(1)).has_value());
  proxy.let_in();
  must(store->commit(batch(2)));
  must(store->commit(batch(3)));
  check_holds(*store, 3);
}

TEST_CASE("connections ended by the administrator, all the time" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  const auto store = open_empty(*server);
  std::atomic<bool> going{true};
  std::atomic<int> ended{0};
  std::thread administrator([&] {
    Rng rng(2);
    while (going) {
      std::this_thread::sleep_for(std::chrono::microseconds(rng.below(20'000)));
      const auto count = server->sql(
          "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
          " WHERE application_name LIKE 'weft%'");
      if (count && *count != "0") ++ended;
    }
  });
  int failures = 0;
  int k = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < end) failures += persist(*store, ++k);
  going = false;
  administrator.join();
  MESSAGE(k << " commits, " << ended.load() << " times ended, " << failures << " failed tries");
  CHECK(ended > 10);
  check_holds(*store, k);
}

TEST_CASE("a server that crashes and comes back" * doctest::test_suite("needs postgresql")) {
  TestServer* const server = test_server();
  if (server == nullptr) return;
  const auto store = open_empty(*server);
  std::atomic<bool> going{true};
  int failures = 0;
  int k = 0;
  std::thread client([&] {
    while (going) failures += persist(*store, ++k);
  });
  for (const int signal : {SIGQUIT, SIGINT}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
    server->stop(signal);
    server->start();
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  going = false;
  client.join();
  MESSAGE(k << " commits, " << failures << " failed tries");
  CHECK(failures > 0);
  check_holds(*store, k);
}

TEST_CASE("without a server calls fail, and say so; they work again when it is back" *
          doctest::test_suite("needs postgresql")) {
  TestServer* const server = test_server();
  if (server == nullptr) return;
  const auto store = open_empty(*server);
  must(store->commit(batch(1)));
  server->stop(SIGINT);
  for (int tries = 0; tries < 2; ++tries) {
    const auto read = store->events(0, all);
    const auto written = store->commit(batch(2));
    REQUIRE_FALSE(read.has_value());
    REQUIRE_FALSE(written.has_value());
    for (const Error& error : {read.error(), written.error()}) {
      CHECK(error.code == Errc::io);
      CHECK(error.text().find("database postgres at " + server->folder()) != std::string::npos);
    }
  }
  server->start();
  must(store->commit(batch(2)));
  check_holds(*store, 2);
}

// Our connection is cut off, and the server works on: the next session must not believe that
// nothing will come of it, since the lock is not free.
TEST_CASE("a server process that hangs with a commit in hand" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  const auto store = open_empty(
      *server, {}, {.connect = std::chrono::seconds(2), .answer = std::chrono::seconds(1)});
  must(store->commit(batch(1)));
  const auto writer = server->sql(
      "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 1");
  REQUIRE(writer.has_value());
  const auto pid = static_cast<pid_t>(std::stol(*writer));
  REQUIRE(pid > 1);
  REQUIRE(kill(pid, SIGSTOP) == 0);
  const auto hung = store->commit(batch(2));
  const auto later = store->commit(batch(2));
  kill(pid, SIGCONT);
  REQUIRE_FALSE(hung.has_value());
  CHECK(hung.error().text().find("no answer in 1 s") != std::string::npos);
  CHECK(hung.error().hint.find("not known whether the commit was applied") != std::string::npos);
  REQUIRE_FALSE(later.has_value());
  persist(*store, 2);
  persist(*store, 3);
  check_holds(*store, 3);
}
