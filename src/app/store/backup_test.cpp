#include "app/store/backup.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "adapt/postgres/test_server.hpp"
#include "adapt/sqlite/store.hpp"
#include "app/store/open_store.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/rng.hpp"
#include "base/test_folder.hpp"
#include "os/digest.hpp"
#include "os/tar.hpp"
#include "port/store_contract.hpp"

namespace weft::app {
namespace {

namespace fs = std::filesystem;
using adapt::postgres::testing::test_server;
using adapt::postgres::testing::TestServer;
using port::testing::all;
using port::testing::must;

// Everything in a store.
struct Everything {
  port::StoreNumbers numbers;
  port::Commit rows;

  friend bool operator==(const Everything&, const Everything&) = default;
};

Everything read(const std::string& where) {
  const auto image = must(open_store_image(where));
  Everything out{must(image->numbers()), {}};
  const Status done = port::each_piece(*image, [&](const port::Commit& piece) -> Status {
    CHECK(piece.events.size() + piece.documents.size() + piece.audit.size() <= 1'000);
    std::ranges::copy(piece.events, std::back_inserter(out.rows.events));
    std::ranges::copy(piece.documents, std::back_inserter(out.rows.documents));
    std::ranges::copy(piece.audit, std::back_inserter(out.rows.audit));
    return {};
  });
  REQUIRE(done.has_value());
  return out;
}

void ok(const Status& status) {
  if (!status) FAIL(status.error().text());
}

std::string error_of(const auto& result) {
  REQUIRE_FALSE(result.has_value());
  return result.error().text();
}

bool says(const std::string& text, const std::string& part) {
  if (text.find(part) == text.npos) MESSAGE(text);
  INFO(text);
  return text.find(part) != std::string::npos;
}

port::Document snapshot_document(const std::string& path) {
  return {"snapshot", path, {4}, JsonObject().add("id", path).add("path", path).text()};
}

// 3,000 events of which the first 500 are forgotten, documents, audit entries and two snapshots, of
// which one is gone.
void fill(const std::string& where, const TestFolder& folder) {
  const auto store = must(open_store(where));
  const std::string bytes = port::testing::every_byte();
  for (int i = 0; i < 3; ++i) {
    port::Commit commit{.events = port::testing::lines(fmt::format("e{}", i), 1'000)};
    commit.events[7] = {0, {-3}, "Grüße", bytes};
    for (int k = 0; k < 700; ++k)
      commit.documents.push_back({"case", fmt::format("{}-{}", i, k), {k}, bytes});
    commit.audit.assign(600, {0, {5}, "weft", "c1", "did", bytes});
    must(store->commit(commit));
  }
  must(store->forget_events(501));
  must(store->commit({.events = {},
                      .documents = {{"", "", {9}, ""},
                                    snapshot_document(folder.write("c1.7.tar.gz", "evidence")),
                                    snapshot_document(folder.file("c2.8.tar.gz"))},
                      .audit = {}}));
}

BackupManifest back_up_store(const std::string& store, const std::string& file,
                             const std::string& snapshots = "") {
  const auto image = must(open_store_image(store));
  return must(back_up(*image, file, {.snapshots = snapshots, .weft = "9", .now = {1'000}}));
}

Result<Restored> restore_to(const std::string& file, const std::string& store,
                            const std::string& snapshots,
                            port::IfUsed if_used = port::IfUsed::refuse) {
  return restore(file,
                 {.store = store, .snapshots = snapshots, .if_used = if_used, .now = {2'000}});
}

// What the restored store has to be: the same, the snapshot's path and a line of audit apart.
Everything as_restored(Everything of, const std::string& snapshots) {
  for (port::Document& document : of.rows.documents)
    if (document.kind == "snapshot" && document.id.ends_with("c1.7.tar.gz"))
      document.body =
          JsonObject().add("id", document.id).add("path", snapshots + "/c1.7.tar.gz").text();
  of.rows.audit.push_back(
      {++of.numbers.audit,
       {2'000},
       "weft",
       "",
       "store_restored",
       R"({"taken":"1970-01-01T00:00:00.000001Z","weft":"9","last_event":3000})"});
  return of;
}

// From `from` to `to`, which has not been used.
void check_round_trip(const std::string& from, const std::string& to) {
  const TestFolder folder;
  fill(from, folder);
  const Everything before = read(from);
  const BackupManifest manifest = back_up_store(from, folder.file("b.tar"));
  CHECK(manifest.store.events == 2'500);
  CHECK(manifest.store.last_event == 3'000);
  CHECK(manifest.store.audit == 1'800);
  REQUIRE(manifest.store.documents.size() == 3);
  CHECK(manifest.store.documents[1].count == 2'100);
  REQUIRE(manifest.snapshots.size() == 1);
  CHECK(manifest.snapshots[0].name == "c1.7.tar.gz");
  CHECK(manifest.missing == std::vector<std::string>{"c2.8.tar.gz"});
  CHECK(read(from) == before);
  const std::string snapshots = folder.file("there");
  must(restore_to(folder.file("b.tar"), to, snapshots));
  CHECK(read(to) == as_restored(before, snapshots));
  CHECK(*read_file(snapshots + "/c1.7.tar.gz") == "evidence");
  // It goes on where the other one was.
  CHECK(must(must(open_store(to))->commit({.events = port::testing::lines("more", 1)})) == 3'001);
}

// The store, not the snapshots.
std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& entry : fs::directory_iterator(folder))
    out.push_back(entry.path().filename().native());
  std::ranges::sort(out);
  return out;
}

// An empty database for a store.
std::string database(const TestServer& server, const std::string& name) {
  server.sql("DROP DATABASE IF EXISTS " + name + " WITH (FORCE)");
  REQUIRE(server.sql("CREATE DATABASE " + name).has_value());
  return server.conninfo(name);
}

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &old_) == 0);
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, old_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
};

TEST_CASE("a store comes back from its backup as it was, with its numbers and snapshots") {
  const TestFolder folder;
  check_round_trip(folder.file("a.db"), folder.file("b.db"));
}

TEST_CASE("an empty store comes back, too") {
  const TestFolder folder;
  must(open_store(folder.file("a.db")));
  back_up_store(folder.file("a.db"), folder.file("b.tar"));
  must(restore_to(folder.file("b.tar"), folder.file("b.db"), ""));
  CHECK(read(folder.file("b.db")).numbers == port::StoreNumbers{0, 1});
}

TEST_CASE("from either database into the other" * doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  const TestFolder folder;
  SUBCASE("SQLite to PostgreSQL") { check_round_trip(folder.file("a.db"), database(*server, "b")); }
  SUBCASE("PostgreSQL to SQLite") { check_round_trip(database(*server, "a"), folder.file("b.db")); }
  SUBCASE("PostgreSQL to PostgreSQL, with tables that were never used") {
    const std::string to = database(*server, "b");
    must(open_store(to));
    check_round_trip(database(*server, "a"), to);
  }
}

// One commit after another: event n, document "last" and audit entry n belong together.
class Writing {
 public:
  explicit Writing(const std::string& where)
      : thread_([this, where](const std::stop_token& stop) {
          const auto store = must(open_store(where));
          while (!stop.stop_requested()) {
            const std::string n = std::to_string(++count_);
            must(store->commit({.events = {port::testing::event(n)},
                                .documents = {{"case", "last", {1}, n}},
                                .audit = {{0, {1}, "weft", "", "did", n}}}));
          }
        }) {
    while (count_ < 50) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::atomic<int> count_ = 0;
  std::jthread thread_;
};

void check_beside_a_writer(const std::string& from) {
  const TestFolder folder;
  const Writing writing(from);
  for (int round = 0; round < 3; ++round) {
    const std::string file = folder.file(fmt::format("{}.tar", round));
    const BackupManifest manifest = back_up_store(from, file);
    const std::string to = folder.file(fmt::format("{}.db", round));
    must(restore_to(file, to, ""));
    const Everything found = read(to);
    REQUIRE(found.rows.events.size() >= 49);
    CHECK(found.rows.events.size() == manifest.store.events);
    CHECK(found.rows.documents.front().body == found.rows.events.back().line);
    CHECK(found.rows.audit[found.rows.audit.size() - 2].detail == found.rows.events.back().line);
    CHECK(found.rows.audit.size() == found.rows.events.size() + 1);
  }
}

TEST_CASE("a backup beside a writer is that of one moment") {
  const TestFolder folder;
  check_beside_a_writer(folder.file("a.db"));
}

TEST_CASE("a backup beside a writer, PostgreSQL" * doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  check_beside_a_writer(database(*server, "a"));
}

TEST_CASE("a cut or changed backup is refused by name, and nothing is written") {
  const TestFolder folder, other;
  {
    const auto store = must(open_store(folder.file("a.db")));
    must(store->commit({.events = port::testing::lines("e", 10),
                        .documents = {snapshot_document(folder.write("c1.7.tar.gz", "evidence"))},
                        .audit = {}}));
  }
  back_up_store(folder.file("a.db"), folder.file("b.tar"));
  const std::string whole = *read_file(folder.file("b.tar"));
  const auto refused = [&](const std::string& bytes) {
    const std::string file = other.write("b.tar", bytes);
    const std::string text = error_of(restore_to(file, other.file("b.db"), other.file("s")));
    CHECK(says(text, file));
    CHECK(files_in(other.path()) == std::vector<std::string>{"b.tar"});
  };
  Rng rng(7);
  for (int i = 0; i < 300; ++i) {
    std::string changed = whole;
    const std::size_t at = rng.below(changed.size());
    changed[at] = static_cast<char>(changed[at] ^ (1 << rng.below(8)));
    refused(changed);
    refused(whole.substr(0, rng.below(whole.size())));
  }
  refused(whole + whole);
  refused("");
  refused(whole.substr(512));
  must(restore_to(folder.file("b.tar"), other.file("b.db"), other.file("s")));
}

TEST_CASE("a used store, a service's, and another snapshot are not written over") {
  const TestFolder folder;
  fill(folder.file("a.db"), folder);
  const std::string file = folder.file("b.tar"), used = folder.file("used.db");
  back_up_store(folder.file("a.db"), file);
  must(must(open_store(used))->commit({.events = port::testing::lines("old", 5)}));
  CHECK(says(error_of(restore_to(file, used, folder.file("s"))), "has been used"));
  CHECK(says(error_of(restore_to(file, folder.file("new.db"), "")), "the backup has 1 snapshots"));
  CHECK(says(error_of(back_up(*must(open_store_image(used)), file, {})), "this file exists"));
  {
    const auto service = must(open_store(used));
    const auto busy = restore_to(file, used, folder.file("s"), port::IfUsed::replace);
    CHECK(says(error_of(busy), "in use by process"));
  }
  CHECK(read(used).rows.events.size() == 5);
  const Restored done = must(restore_to(file, used, folder.file("s"), port::IfUsed::replace));
  CHECK(done.replaced == used + ".replaced-1");
  CHECK(read(done.replaced).rows.events.size() == 5);
  CHECK(read(used).rows.events.size() == 2'500);

  const TestFolder other;
  other.write("c1.7.tar.gz", "something else");
  CHECK(says(error_of(restore_to(file, folder.file("new.db"), other.path())),
             "another snapshot has this name"));
  CHECK_FALSE(fs::exists(folder.file("new.db")));
  other.write("c1.7.tar.gz", "evidence");
  must(restore_to(file, folder.file("new.db"), other.path()));
}

TEST_CASE("a damaged store is put aside with its log when it is replaced") {
  const TestFolder folder;
  fill(folder.file("a.db"), folder);
  back_up_store(folder.file("a.db"), folder.file("b.tar"));
  const std::string path = folder.write("damaged.db", std::string(8'192, 'x'));
  folder.write("damaged.db-wal", "log");
  CHECK(says(error_of(restore_to(folder.file("b.tar"), path, folder.path())), "has been used"));
  const Restored done =
      must(restore_to(folder.file("b.tar"), path, folder.path(), port::IfUsed::replace));
  CHECK(*read_file(done.replaced + "-wal") == "log");
  CHECK(read(path).rows.events.size() == 2'500);
}

TEST_CASE("used tables are emptied only on request" * doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  const TestFolder folder;
  fill(folder.file("a.db"), folder);
  const std::string file = folder.file("b.tar"), there = database(*server, "b");
  back_up_store(folder.file("a.db"), file);
  auto service = must(open_store(there));
  must(service->commit({.events = port::testing::lines("old", 5),
                        .documents = {},
                        .audit = {{0, {1}, "weft", "", "did", ""}}}));
  const Everything before = read(there);
  CHECK(says(error_of(restore_to(file, there, folder.path())), "has been used"));
  const auto busy = restore_to(file, there, folder.path(), port::IfUsed::replace);
  CHECK(says(error_of(busy), "another weft writes to this store"));
  CHECK(read(there) == before);
  REQUIRE(
      server->sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                  " WHERE application_name LIKE 'weft %'"));
  must(restore_to(file, there, folder.path(), port::IfUsed::replace));
  CHECK(read(there) == as_restored(read(folder.file("a.db")), folder.path()));
  // The service that lost its connection knows what is no longer true.
  CHECK_FALSE(service->commit({.events = port::testing::lines("late", 1)}).has_value());
  CHECK(service->is_superseded());
  CHECK(says(error_of(service->commit({.events = port::testing::lines("late", 1)})), "took over"));
}

TEST_CASE("a full disk: the cause is said, and nothing is left behind") {
  const TestFolder folder, other;
  fill(folder.file("a.db"), folder);
  const std::string file = folder.file("b.tar");
  back_up_store(folder.file("a.db"), file);
  const auto size = fs::file_size(file);
  const auto image = must(open_store_image(folder.file("a.db")));
  for (const double share : {0.1, 0.5, 0.99}) {
    const FileSizeLimit limit(static_cast<rlim_t>(share * static_cast<double>(size)));
    const std::string text = error_of(back_up(*image, other.file("c.tar"), {}));
    CHECK(says(text, other.file("c.tar")));
    CHECK(says(text, "free"));
    CHECK(files_in(other.path()).empty());
  }
  {
    const FileSizeLimit limit(size / 2);
    const std::string text = error_of(restore_to(file, other.file("c.db"), folder.path()));
    CHECK(says(text, other.file("c.db")));
    CHECK(says(text, "free"));
    CHECK(files_in(other.path()).empty());
  }
}

// An archive with another manifest, and the checksums that belong to it.
void write_with(const BackupManifest& manifest, const std::string& store, const std::string& to) {
  const std::string described = write_fields(manifest);
  const std::string sums = sums_line(sha256_hex(store), store_member) +
                           sums_line(sha256_hex(described), manifest_member);
  const auto tar = must(write_tar({{std::string(store_member), store},
                                   {std::string(manifest_member), described},
                                   {std::string(sums_member), sums}},
                                  {}));
  ok(write_file(to, tar));
}

TEST_CASE("manifests that are not ours to read, or that lead elsewhere") {
  const TestFolder folder;
  must(open_store(folder.file("a.db")));
  const BackupManifest good = back_up_store(folder.file("a.db"), folder.file("b.tar"));
  const std::string tar = *read_file(folder.file("b.tar"));
  const std::string store(must(read_tar(tar, "b.tar")).front().content);
  const auto refusal = [&](const BackupManifest& manifest) {
    write_with(manifest, store, folder.file("c.tar"));
    return error_of(restore_to(folder.file("c.tar"), folder.file("c.db"), folder.file("s")));
  };
  write_with(good, store, folder.file("c.tar"));
  must(check_backup(folder.file("c.tar")));
  BackupManifest other = good;
  other.schema = 99;
  CHECK(says(refusal(other), "written by a newer weft: its schema is 99"));
  other = good;
  other.version = 2;
  CHECK(says(refusal(other), "written by weft 9, whose backups this weft cannot read"));
  other = good;
  other.format = "weft snapshot";
  CHECK(says(refusal(other), "its format is"));
  other = good;
  other.bytes += 1;
  CHECK(says(refusal(other), "weft.db is not the one of its manifest"));
  other = good;
  other.snapshots = {{"snapshots/1.tar.gz", "x.tar.gz", 0, ""}};
  CHECK(says(refusal(other), "snapshots/1.tar.gz is missing"));
  for (const char* name : {"../x.tar.gz", "/x.tar.gz", ".tar.gz", "x"}) {
    other.snapshots[0].name = name;
    CHECK(says(refusal(other), "is not the name of a snapshot"));
  }
  CHECK_FALSE(fs::exists(folder.file("c.db")));
}

TEST_CASE("measure a backup of 200,000 events" * doctest::skip(true)) {
  const TestFolder folder;
  const std::string store = folder.file("a.db");
  for (int i = 0; i < 200; ++i) {
    std::vector<port::StoredEvent> events = port::testing::lines(std::string(140, 'x'), 1'000);
    must(must(open_store(store))
             ->commit({.events = std::move(events), .documents = {}, .audit = {}}));
  }
  const auto timed = [](const char* what, const auto& work) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    MESSAGE(std::string(what) << " took " << took.count() << " s");
  };
  timed("a backup", [&] { back_up_store(store, folder.file("b.tar")); });
  timed("checking it", [&] { must(check_backup(folder.file("b.tar"))); });
  timed("restoring it", [&] { must(restore_to(folder.file("b.tar"), folder.file("b.db"), "")); });
  MESSAGE("store " << fs::file_size(store) << " bytes, backup "
                   << fs::file_size(folder.file("b.tar")) << " bytes");
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  const std::string there = database(*server, "b");
  timed("restoring it into PostgreSQL", [&] { must(restore_to(folder.file("b.tar"), there, "")); });
  timed("a backup of that", [&] { back_up_store(there, folder.file("c.tar")); });
}

}  // namespace
}  // namespace weft::app
