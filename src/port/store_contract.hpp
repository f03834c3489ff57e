// What every port::Store must do, as tests. An adapter's test calls check_store_contract once.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/rng.hpp"
#include "port/store.hpp"
#include "port/store_schema.hpp"

namespace weft::port::testing {

// An empty store, and what only its database can do to it.
class StoreUnderTest {
 public:
  virtual ~StoreUnderTest() = default;
  virtual Store& store() = 0;
  // Closes it and opens it again.
  virtual void reopen() = 0;
  // One statement past the store, as an operator with a shell would. Whether it was carried out.
  virtual bool execute(const std::string& sql) = 0;
  // From now on the database itself refuses documents of that kind.
  virtual void refuse_documents_of(const std::string& kind) = 0;
};
using MakeStore = std::function<std::unique_ptr<StoreUnderTest>()>;

inline constexpr std::size_t all = 1'000'000;
inline constexpr Timestamp end_of_time{std::numeric_limits<std::int64_t>::max()};

inline StoredEvent event(std::string line, std::int64_t at = 1, std::string feed = "syslog") {
  return {0, {at}, std::move(feed), std::move(line)};
}

// `count` lines "<name>:0", "<name>:1", ...
inline std::vector<StoredEvent> lines(const std::string& name, std::size_t count) {
  std::vector<StoredEvent> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(event(fmt::format("{}:{}", name, i)));
  return out;
}

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().text());
  return *std::move(result);
}

inline std::string every_byte() {
  std::string out;
  for (int byte = 0; byte < 256; ++byte) out.push_back(static_cast<char>(byte));
  return out;
}

inline void check_round_trip(StoreUnderTest& test) {
  const std::string garbage = every_byte() + "\xff\xfe\xc3(" + every_byte();
  const std::string name = "Grüße, \xe6\x97\xa5\xe6\x9c\xac 'quoted' \"twice\" \\ % $1 ?";
  Commit commit;
  commit.events = {event("plain"), event(garbage, -5, name), event("", 0, ""),
                   event("ends in NUL" + std::string(3, '\0'), end_of_time.ns)};
  commit.documents = {{name, name, {-7}, garbage}, {"", "", {0}, ""}};
  commit.audit = {{0, {11}, name, name, name, garbage}, {0, {-12}, "", "", "", ""}};
  CHECK(must(test.store().commit(commit)) == 1);
  for (int round = 0; round < 2; ++round) {
    const auto events = must(test.store().events(0, all));
    REQUIRE(events.size() == commit.events.size());
    for (std::size_t i = 0; i < events.size(); ++i) {
      CHECK(events[i].seq == i + 1);
      CHECK(events[i].received == commit.events[i].received);
      CHECK(events[i].feed == commit.events[i].feed);
      CHECK(events[i].line == commit.events[i].line);
    }
    for (const Document& wanted : commit.documents) {
      const Document found = must(test.store().document(wanted.kind, wanted.id));
      CHECK(found.kind == wanted.kind);
      CHECK(found.id == wanted.id);
      CHECK(found.updated == wanted.updated);
      CHECK(found.body == wanted.body);
    }
    const auto audit = must(test.store().audit(0, "", all));
    REQUIRE(audit.size() == 2);
    for (std::size_t i = 0; i < audit.size(); ++i) {
      CHECK(audit[i].seq == i + 1);
      CHECK(audit[i].t == commit.audit[i].t);
      CHECK(audit[i].actor == commit.audit[i].actor);
      CHECK(audit[i].subject == commit.audit[i].subject);
      CHECK(audit[i].action == commit.audit[i].action);
      CHECK(audit[i].detail == commit.audit[i].detail);
    }
    test.reopen();
  }
}

inline void check_events(StoreUnderTest& test) {
  Store& store = test.store();
  CHECK(must(store.events(0, all)).empty());
  CHECK(must(store.commit({})) == 0);
  CHECK(must(store.commit({.events = lines("a", 3)})) == 1);
  CHECK(must(store.commit({.audit = {{0, {1}, "weft", "", "start", "{}"}}})) == 0);
  CHECK(must(store.commit({.events = lines("b", 2)})) == 4);
  const auto page = must(store.events(2, 3));
  REQUIRE(page.size() == 3);
  CHECK(page[0].line == "a:1");
  CHECK(page[1].line == "a:2");
  CHECK(page[2].line == "b:0");
  CHECK(page[2].seq == 4);
  CHECK(must(store.events(1, 0)).empty());
  CHECK(must(store.events(5, SIZE_MAX)).size() == 1);
  CHECK(must(store.events(6, all)).empty());
  CHECK(must(store.events(UINT64_MAX, all)).empty());
}

inline void check_documents(StoreUnderTest& test) {
  Store& store = test.store();
  const auto missing = store.document("case", "1");
  REQUIRE_FALSE(missing.has_value());
  CHECK(missing.error().code == Errc::unknown);
  must(store.commit({.documents = {{"case", "b", {20}, "B"},
                                   {"case", "a", {20}, "A"},
                                   {"case", "old", {10}, "O"},
                                   {"repair", "a", {30}, "R"}}}));
  // The last of a commit's own says it, and later ones replace.
  must(
      store.commit({.documents = {{"case", "new", {40}, "first"}, {"case", "new", {50}, "last"}}}));
  must(store.commit({.documents = {{"case", "old", {15}, "O2"}}}));
  CHECK(must(store.document("case", "new")).body == "last");
  const auto ids = [](const std::vector<Document>& rows) {
    std::string out;
    for (const Document& row : rows) fmt::format_to(std::back_inserter(out), "{} ", row.id);
    return out;
  };
  CHECK(ids(must(store.documents("case", end_of_time, all))) == "new a b old ");
  CHECK(ids(must(store.documents("case", end_of_time, 2))) == "new a ");
  CHECK(ids(must(store.documents("case", {20}, all))) == "old ");
  CHECK(must(store.documents("case", {20}, all))[0].body == "O2");
  CHECK(must(store.documents("case", {15}, all)).empty());
  CHECK(must(store.documents("snapshot", end_of_time, all)).empty());
  CHECK(must(store.forget_documents("case", {20})) == 1);
  CHECK(must(store.forget_documents("case", {20})) == 0);
  CHECK(ids(must(store.documents("case", end_of_time, all))) == "new a b ");
  CHECK(must(store.document("repair", "a")).body == "R");
}

inline void check_audit(StoreUnderTest& test) {
  Store& store = test.store();
  Commit commit;
  for (int i = 0; i < 10; ++i)
    commit.audit.push_back({0, {i}, "weft", i % 2 == 0 ? "case-1" : "case-2", "did", "{}"});
  must(store.commit(commit));
  CHECK(must(store.audit(0, "", all)).size() == 10);
  CHECK(must(store.audit(0, "", 4)).back().seq == 4);
  const auto of_one = must(store.audit(4, "case-1", 2));
  REQUIRE(of_one.size() == 2);
  CHECK(of_one[0].seq == 5);
  CHECK(of_one[1].seq == 7);
  CHECK(must(store.audit(0, "case-3", all)).empty());
  CHECK_FALSE(test.execute("UPDATE audit SET actor = 'nobody'"));
  CHECK_FALSE(test.execute("UPDATE audit SET actor = 'nobody' WHERE seq = 3"));
  CHECK_FALSE(test.execute("DELETE FROM audit"));
  CHECK_FALSE(test.execute("DELETE FROM audit WHERE seq = 10"));
  for (const AuditEntry& entry : must(store.audit(0, "", all))) CHECK(entry.actor == "weft");
  CHECK(must(store.audit(0, "", all)).size() == 10);
}

// Numbers are not given again, whatever was forgotten.
inline void check_forgetting(StoreUnderTest& test) {
  must(test.store().commit({.events = lines("a", 10), .audit = {{0, {1}, "weft", "", "x", ""}}}));
  CHECK(must(test.store().forget_events(4)) == 3);
  CHECK(must(test.store().events(0, all)).front().seq == 4);
  CHECK(must(test.store().forget_events(4)) == 0);
  CHECK(must(test.store().forget_events(UINT64_MAX)) == 7);
  CHECK(must(test.store().events(0, all)).empty());
  test.reopen();
  CHECK(must(test.store().commit({.events = lines("b", 2)})) == 11);
  CHECK(must(test.store().forget_events(13)) == 2);
  CHECK(must(test.store().commit({.events = lines("c", 1)})) == 13);
  CHECK(must(test.store().audit(0, "", all)).size() == 1);
}

// Events, documents before the bad one and numbers: as if it had never been tried.
inline void check_all_or_nothing(StoreUnderTest& test) {
  Store& store = test.store();
  test.refuse_documents_of("bomb");
  must(store.commit({.events = lines("a", 3), .documents = {{"case", "1", {1}, "before"}}}));
  Commit bad;
  bad.events = lines("bad", 1000);
  bad.documents = {{"case", "1", {2}, "after"}, {"case", "2", {2}, "new"}, {"bomb", "", {2}, ""}};
  bad.audit = {{0, {1}, "weft", "", "bad", ""}};
  for (int tries = 0; tries < 3; ++tries) {
    const auto refused = store.commit(bad);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == Errc::io);
  }
  for (int round = 0; round < 2; ++round) {
    CHECK(must(test.store().events(0, all)).size() == 3);
    CHECK(must(test.store().document("case", "1")).body == "before");
    CHECK_FALSE(test.store().document("case", "2").has_value());
    CHECK(must(test.store().audit(0, "", all)).empty());
    test.reopen();
  }
  CHECK(must(test.store().commit({.events = lines("b", 1)})) == 4);
}

inline void check_limits(StoreUnderTest& test) {
  Store& store = test.store();
  const auto refused = [](const auto& result) {
    return !result.has_value() && result.error().code == Errc::value;
  };
  const std::string long_name(store_name_bytes_max + 1, 'n');
  for (const std::string& bad : {long_name, std::string("\xff"), std::string("a\0b", 3),
                                 std::string("\xed\xa0\x80"), std::string("\x01")}) {
    CHECK(refused(store.commit({.events = {event("", 1, bad)}})));
    CHECK(refused(store.commit({.documents = {{bad, "", {1}, ""}}})));
    CHECK(refused(store.commit({.documents = {{"", bad, {1}, ""}}})));
    CHECK(refused(store.commit({.audit = {{0, {1}, bad, "", "", ""}}})));
    CHECK(refused(store.commit({.audit = {{0, {1}, "", bad, "", ""}}})));
    CHECK(refused(store.commit({.audit = {{0, {1}, "", "", bad, ""}}})));
    CHECK(refused(store.document("case", bad)));
    CHECK(refused(store.document(bad, "")));
    CHECK(refused(store.documents(bad, end_of_time, 1)));
    CHECK(refused(store.audit(0, bad, 1)));
    CHECK(refused(store.forget_documents(bad, end_of_time)));
  }
  CHECK(refused(store.commit({.events = {event(std::string(store_value_bytes_max + 1, 'x'))}})));
  CHECK(must(store.events(0, all)).empty());
  // Names of the full length fit into every index.
  const std::string name(store_name_bytes_max, 'n');
  must(store.commit({.events = {event("", 1, name)},
                     .documents = {{name, name, {1}, ""}},
                     .audit = {{0, {1}, name, name, name, ""}}}));
  CHECK(must(store.document(name, name)).id == name);
  CHECK(must(store.audit(0, name, all)).size() == 1);
}

inline void check_big_lines(StoreUnderTest& test) {
  const Rng rng(7);
  std::vector<std::string> wanted;
  for (const std::size_t size :
       {std::size_t{64} << 10, std::size_t{1} << 20, std::size_t{9} << 20}) {
    Rng bytes = rng.stream(size);
    std::string line(size, '\0');
    for (char& byte : line) byte = static_cast<char>(bytes.next());
    wanted.push_back(std::move(line));
  }
  Commit commit;
  for (const std::string& line : wanted) commit.events.push_back(event(line));
  commit.documents = {{"snapshot", "1", {1}, wanted.back()}};
  must(test.store().commit(commit));
  test.reopen();
  const auto events = must(test.store().events(0, all));
  REQUIRE(events.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) CHECK((events[i].line == wanted[i]));
  CHECK((must(test.store().document("snapshot", "1")).body == wanted.back()));
}

inline void check_many_events(StoreUnderTest& test) {
  constexpr std::uint64_t count = 100'000;
  constexpr std::uint64_t batch = 1000;
  for (std::uint64_t at = 0; at < count; at += batch)
    REQUIRE(must(test.store().commit({.events = lines(std::to_string(at), batch)})) == at + 1);
  test.reopen();
  std::uint64_t next = 1;
  for (;;) {
    const auto page = must(test.store().events(next, 777));
    if (page.empty()) break;
    for (const StoredEvent& found : page) {
      REQUIRE(found.seq == next);
      const std::uint64_t i = next - 1;
      REQUIRE(found.line == fmt::format("{}:{}", i / batch * batch, i % batch));
      ++next;
    }
  }
  CHECK(next == count + 1);
  CHECK(must(test.store().forget_events(count)) == count - 1);
  CHECK(must(test.store().events(0, all)).size() == 1);
}

// What one thread sees while others write: no commit in parts, no number before a smaller one.
class Watcher {
 public:
  explicit Watcher(Store& store) : store_(store) {}
  // Commits hold 7 events and an audit entry each, and say in a document how many there were.
  void look() {
    const auto before = store_.document("count", "commits");
    const auto fresh = store_.events(seen_ + 1, 7'000'000);
    const auto audit = store_.audit(0, "", all);
    if (!fresh || !audit || (!before && before.error().code != Errc::unknown)) return complain();
    for (const StoredEvent& event : *fresh)
      if (event.seq != ++seen_) complain();
    if (seen_ % 7 != 0 || audit->size() < seen_ / 7) complain();
    if (before && seen_ / 7 < std::stoull(before->body)) complain();
  }
  std::uint64_t seen() const { return seen_; }
  int complaints() const { return complaints_; }

 private:
  void complain() { ++complaints_; }
  Store& store_;
  std::uint64_t seen_ = 0;
  int complaints_ = 0;
};

inline void check_threads(StoreUnderTest& test) {
  constexpr std::uint64_t commit_count = 60;
  Store& store = test.store();
  std::atomic<int> failures{0};
  std::atomic<bool> writing{true};
  std::vector<Watcher> watchers(4, Watcher(store));
  std::vector<std::thread> readers;
  readers.reserve(watchers.size());
  for (Watcher& watcher : watchers)
    readers.emplace_back([&watcher, &writing] {
      while (writing) watcher.look();
      watcher.look();
    });
  // Two writers take turns; the document counts on one thread's commits only.
  std::thread other([&] {
    for (std::uint64_t i = 0; i < commit_count; ++i)
      if (!store.commit({.events = lines("other", 7), .audit = {{0, {1}, "w", "", "x", ""}}}))
        ++failures;
  });
  for (std::uint64_t i = 1; i <= commit_count; ++i)
    if (!store.commit({.events = lines("one", 7),
                       .documents = {{"count", "commits", {1}, std::to_string(i)}},
                       .audit = {{0, {1}, "w", "", "x", ""}}}))
      ++failures;
  other.join();
  writing = false;
  for (std::thread& reader : readers) reader.join();
  CHECK(failures == 0);
  for (const Watcher& watcher : watchers) {
    CHECK(watcher.complaints() == 0);
    CHECK(watcher.seen() == std::uint64_t{2} * 7 * commit_count);
  }
}

// To be called from one TEST_CASE; `make` gives a new, empty store each time.
inline void check_store_contract(const MakeStore& make) {
  const auto test = make();
  SUBCASE("bytes come back as they were") { check_round_trip(*test); }
  SUBCASE("events: numbers, order, limits") { check_events(*test); }
  SUBCASE("documents: the last word, order, limits, forgetting") { check_documents(*test); }
  SUBCASE("the audit log: order, subjects, only grows") { check_audit(*test); }
  SUBCASE("numbers are never used again") { check_forgetting(*test); }
  SUBCASE("a commit that fails half-way leaves nothing") { check_all_or_nothing(*test); }
  SUBCASE("names and values that are refused") { check_limits(*test); }
  SUBCASE("big lines") { check_big_lines(*test); }
  SUBCASE("a hundred thousand events") { check_many_events(*test); }
  SUBCASE("readers while others write") { check_threads(*test); }
}

// How fast commits of one, a hundred and a thousand events are; a line each.
inline void measure_commits(Store& store, int rounds) {
  for (const std::size_t batch : {std::size_t{1}, std::size_t{100}, std::size_t{1000}}) {
    Commit commit;
    for (std::size_t i = 0; i < batch; ++i) commit.events.push_back(event(std::string(150, 'x')));
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < rounds; ++i) must(store.commit(commit));
    const double s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    MESSAGE(batch << " events a commit: " << rounds / s << " commits/s, "
                  << rounds * static_cast<double>(batch) / s << " events/s");
  }
}

// The rows that databases as schema 1 was released hold in the tests of each dialect; goes on.
inline void check_rows_of_schema_1(Store& store) {
  const std::vector<StoredEvent> events{{6, {60}, "syslog", "six"},
                                        {7, {70}, "record", std::string("\0\xff", 2)}};
  CHECK(must(store.events(0, all)) == events);
  const std::vector<AuditEntry> audit{{1, {3}, "weft", "c1", "case_open", "{}"},
                                      {2, {4}, "ann", "c1", "approved", R"({"why":"x"})"}};
  CHECK(must(store.audit(0, "", all)) == audit);
  CHECK(must(store.document("case", "c1")).body == R"({"id":"c1"})");
  CHECK(must(store.commit({.events = lines("next", 1), .documents = {}, .audit = {}})) == 8);
}

}  // namespace weft::port::testing
