#include "adapt/sqlite/store.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "adapt/sqlite/database.hpp"
#include "adapt/sqlite/schema.hpp"
#include "adapt/sqlite/test_kit.hpp"
#include "base/file.hpp"
#include "port/store_contract.hpp"
#include "port/store_schema.hpp"

using namespace weft;
using namespace weft::adapt::sqlite;
using namespace weft::adapt::sqlite::testing;
using port::testing::all;
using port::testing::lines;
using port::testing::must;

namespace {

class SqliteUnderTest final : public port::testing::StoreUnderTest {
 public:
  port::Store& store() override { return *store_; }
  void reopen() override {
    store_.reset();
    store_ = open_store(path_);
  }
  bool execute(const std::string& sql) override {
    return testing::execute(path_, sql) == SQLITE_OK;
  }
  void refuse_documents_of(const std::string& kind) override {
    REQUIRE(execute("CREATE TRIGGER refused BEFORE INSERT ON documents WHEN NEW.kind = '" + kind +
                    "' BEGIN SELECT RAISE(ABORT, 'refused'); END"));
  }

 private:
  TestFolder folder_;
  std::string path_ = folder_.file("weft.db");
  std::unique_ptr<port::Store> store_ = open_store(path_);
};

std::string text_of(const Result<std::unique_ptr<port::Store>>& result) {
  return result ? "opened" : result.error().text();
}

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("sqlite keeps the contract of a store") {
  port::testing::check_store_contract([] { return std::make_unique<SqliteUnderTest>(); });
}

TEST_CASE("INSERT OR REPLACE does not get past the audit log's guards") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  const auto store = open_store(path);
  must(store->commit({.audit = {{0, {1}, "weft", "", "a", ""}, {0, {2}, "weft", "", "b", ""}}}));
  for (const char* seq : {"1", "2", "0", "-1"})
    CHECK(execute(path, fmt::format("INSERT OR REPLACE INTO audit VALUES ({}, 1, 'x', '', '', x'')",
                                    seq)) == SQLITE_CONSTRAINT);
  const auto audit = must(store->audit(0, "", all));
  REQUIRE(audit.size() == 2);
  CHECK(audit[0].actor == "weft");
}

TEST_CASE("a second service is kept out, and told whom to stop") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  auto store = open_store(path);
  const std::string error = text_of(open_sqlite(path));
  CHECK(says(error, path));
  CHECK(says(error, "in use by process " + std::to_string(getpid())));
  // By another way to the same file, too.
  std::filesystem::create_symlink(path, folder.file("link.db"));
  CHECK(says(text_of(open_sqlite(folder.file("link.db"))), "in use"));
  CHECK(says(text_of(open_sqlite(folder.path() + "/./weft.db")), "in use"));
  must(store->commit({.events = lines("a", 1)}));
  store.reset();
  CHECK(must(open_store(path)->events(0, all)).size() == 1);
}

TEST_CASE("files that are no store are refused and left alone") {
  const TestFolder folder;
  SUBCASE("no directory") {
    const std::string error = text_of(open_sqlite(folder.file("none/weft.db")));
    CHECK(says(error, "No such file or directory"));
    CHECK(says(error, "create the directory first"));
  }
  SUBCASE("a directory") {
    CHECK(says(text_of(open_sqlite(folder.path())), "Is a directory"));
    std::filesystem::remove(folder.path() + ".lock");
  }
  SUBCASE("no name") {
    CHECK(says(text_of(open_sqlite("")), "not a file name"));
    CHECK(says(text_of(open_sqlite(std::string("a\0b", 3))), "not a file name"));
  }
  SUBCASE("text") {
    const std::string path = folder.file("weft.db");
    REQUIRE(write_file(path, std::string(5000, 'x')));
    const std::string error = text_of(open_sqlite(path));
    CHECK(says(error, path));
    CHECK(says(error, "not a SQLite database"));
    CHECK(*read_file(path) == std::string(5000, 'x'));
  }
  SUBCASE("the database of another program") {
    const std::string path = folder.file("other.db");
    REQUIRE(execute(path, "CREATE TABLE events (a); INSERT INTO events VALUES (1)") == SQLITE_OK);
    const std::string before = *read_file(path);
    CHECK(says(text_of(open_sqlite(path)), "not a weft database"));
    CHECK((*read_file(path) == before));
  }
  SUBCASE("one that its user may not write") {
    const std::string path = folder.file("weft.db");
    open_store(path);
    const bool root = geteuid() == 0;
    REQUIRE(chmod(folder.path().c_str(), 0755) == 0);
    if (root) REQUIRE(seteuid(65534) == 0);
    if (!root) REQUIRE(chmod((path + ".lock").c_str(), 0400) == 0);
    const std::string error = text_of(open_sqlite(path));
    if (root) REQUIRE(seteuid(0) == 0);
    CHECK(says(error, "Permission denied"));
    CHECK(says(error, "give the user of this service write access"));
  }
}

TEST_CASE("the schema of a newer weft is refused, that of an older one is brought up to date") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  {
    const auto store = open_store(path);
    must(store->commit({.events = lines("a", 2)}));
  }
  auto steps = port::store_migrations(port::SqlDialect::sqlite);
  const std::size_t now = steps.size();
  {
    auto db = must(Database::open(path, Access::write));
    // A step that fails changes nothing.
    steps.emplace_back("CREATE TABLE more (a INTEGER); INSERT INTO nowhere VALUES (1)");
    CHECK_FALSE(migrate(db, path, steps).has_value());
    CHECK(must(db.integer(port::sql_version)) == static_cast<std::int64_t>(now));
    steps.back() = "ALTER TABLE events ADD COLUMN more INTEGER NOT NULL DEFAULT 7";
    steps.emplace_back("CREATE TABLE more (a INTEGER)");
    const auto status = migrate(db, path, steps);
    REQUIRE_MESSAGE(status.has_value(), (status ? "" : status.error().text()));
    CHECK(must(db.integer(port::sql_version)) == static_cast<std::int64_t>(now) + 2);
    CHECK(must(db.integer("SELECT sum(more) FROM events")) == 14);
  }
  const auto refused = open_sqlite(path);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(says(refused.error().text(), "this store was written by a newer weft: its schema is 3"));
  CHECK(says(refused.error().text(), "run that version"));
}

// Not made by store_migrations(), but written down as schema 1 was released: a step that is changed
// instead of followed by another one fails here.
constexpr const char* schema_1 = R"sql(
PRAGMA application_id = 0x77656674;
CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT;
INSERT INTO meta (name, value) VALUES ('schema', 1), ('events', 7), ('audit', 2);
CREATE TABLE events (seq INTEGER PRIMARY KEY, received INTEGER NOT NULL, feed TEXT NOT NULL,
  line BLOB NOT NULL) STRICT;
CREATE TABLE documents (kind TEXT NOT NULL, id TEXT NOT NULL, updated INTEGER NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY (kind, id)) STRICT;
CREATE INDEX documents_by_time ON documents (kind, updated DESC, id);
CREATE TABLE audit (seq INTEGER PRIMARY KEY, t INTEGER NOT NULL, actor TEXT NOT NULL,
  subject TEXT NOT NULL, action TEXT NOT NULL, detail BLOB NOT NULL) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, seq);
CREATE TRIGGER audit_not_updated BEFORE UPDATE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_not_deleted BEFORE DELETE ON audit
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
CREATE TRIGGER audit_not_replaced BEFORE INSERT ON audit
  WHEN NEW.seq <= (SELECT max(seq) FROM audit)
  BEGIN SELECT RAISE(ABORT, 'the audit log only grows'); END;
INSERT INTO events VALUES (6, 60, 'syslog', CAST('six' AS BLOB)), (7, 70, 'record', x'00ff');
INSERT INTO documents VALUES ('case', 'c1', 5, CAST('{"id":"c1"}' AS BLOB));
INSERT INTO audit VALUES (1, 3, 'weft', 'c1', 'case_open', CAST('{}' AS BLOB)),
                         (2, 4, 'ann', 'c1', 'approved', CAST('{"why":"x"}' AS BLOB));
)sql";

TEST_CASE("a store as schema 1 was released is opened with all its rows, and goes on") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  REQUIRE(testing::execute(path, schema_1) == SQLITE_OK);
  const auto store = open_store(path);
  port::testing::check_rows_of_schema_1(*store);
}

TEST_CASE("a damaged file is an error, not the end") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  open_store(path)->commit({.events = lines(std::string(500, 'x'), 1000)}).value();
  const auto size = std::filesystem::file_size(path);
  Rng rng(3);
  int reported = 0;
  for (int round = 0; round < 40; ++round) {
    const std::string copy = folder.file("copy.db");
    std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
    if (round % 4 == 0) {
      std::filesystem::resize_file(copy, rng.below(size));
    } else {
      std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(static_cast<std::streamoff>(rng.below(size / 4096) * 4096));
      for (int i = 0; i < 4096; ++i) file.put(static_cast<char>(rng.next()));
    }
    auto store = open_sqlite(copy);
    if (!store) {
      CHECK_FALSE(store.error().hint.empty());
      ++reported;
      continue;
    }
    const auto events = (*store)->events(0, all);
    if (!events) {
      CHECK(says(events.error().text(), "damaged"));
      CHECK(says(events.error().text(), "restore a backup"));
      ++reported;
    }
    static_cast<void>((*store)->commit({.events = lines("b", 100)}));
  }
  CHECK(reported > 10);
}

TEST_CASE("another program's lock is waited for, then reported") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  const auto store = open_store(path);
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) == SQLITE_OK);
  const auto refused = store->commit({.events = lines("a", 1)});
  REQUIRE_FALSE(refused.has_value());
  CHECK(says(refused.error().text(), "another program holds a lock"));
  CHECK(must(store->events(0, all)).empty());  // readers go on
  sqlite3_close(other);
  CHECK(must(store->commit({.events = lines("a", 1)})) == 1);
}

TEST_CASE("a backup made beside the running service is a store") {
  const TestFolder folder;
  const auto store = open_store(folder.file("weft.db"));
  must(store->commit({.events = lines("a", 5), .audit = {{0, {1}, "weft", "", "x", ""}}}));
  must(store->forget_events(6));
  REQUIRE(execute(folder.file("weft.db"), "VACUUM INTO '" + folder.file("copy.db") + "'") ==
          SQLITE_OK);
  const auto copy = open_store(folder.file("copy.db"));
  CHECK(must(copy->commit({.events = lines("b", 1)})) == 6);
  CHECK(must(copy->audit(0, "", all)).size() == 1);
  CHECK(must(store->events(0, all)).empty());
}

TEST_CASE("the file is not for everybody") {
  const TestFolder folder;
  const std::string path = folder.file("weft.db");
  const auto store = open_store(path);
  must(store->commit({.events = lines("a", 1)}));
  for (const char* ending : {"", "-wal", "-shm", ".lock"}) {
    struct stat found{};
    REQUIRE(stat((path + ending).c_str(), &found) == 0);
    CHECK((found.st_mode & 0007) == 0);
  }
}

// Not a test of speed: run with -ns -tc="measure*" on an idle machine, figures in docs/store.md.
TEST_CASE("measure: commits and events" * doctest::skip()) {
  const TestFolder folder;
  const auto store = open_store(folder.file("weft.db"));
  port::testing::measure_commits(*store, 1000);
}
