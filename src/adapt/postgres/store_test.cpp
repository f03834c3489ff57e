#include "adapt/postgres/store.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#include "adapt/postgres/schema.hpp"
#include "adapt/postgres/test_server.hpp"
#include "port/store_contract.hpp"
#include "port/store_schema.hpp"

using namespace weft;
using namespace weft::adapt::postgres;
using namespace weft::adapt::postgres::testing;
using port::testing::all;
using port::testing::lines;
using port::testing::must;

namespace {

// An empty database for the store.
void clear(const TestServer& server) {
  REQUIRE(server.sql("DROP SCHEMA IF EXISTS weft CASCADE").has_value());
}

class PostgresUnderTest final : public port::testing::StoreUnderTest {
 public:
  explicit PostgresUnderTest(const TestServer& server) : server_(server) {
    clear(server_);
    reopen();
  }
  port::Store& store() override { return *store_; }
  void reopen() override {
    store_.reset();
    store_ = must(open_postgres(server_.conninfo()));
  }
  bool execute(const std::string& sql) override {
    return server_.sql("SET search_path = weft; " + sql).has_value();
  }
  void refuse_documents_of(const std::string& kind) override {
    REQUIRE(execute("ALTER TABLE documents ADD CHECK (kind <> '" + kind + "')"));
  }

 private:
  const TestServer& server_;
  std::unique_ptr<port::Store> store_;
};

template <class T>
std::string text_of(const Result<T>& result) {
  return result.has_value() ? "no error" : result.error().text();
}

bool says(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("postgres keeps the contract of a store" * doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  port::testing::check_store_contract(
      [server] { return std::make_unique<PostgresUnderTest>(*server); });
}

TEST_CASE("truncating the audit log is refused too" * doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  PostgresUnderTest test(*server);
  must(test.store().commit({.audit = {{0, {1}, "weft", "", "did", ""}}}));
  CHECK_FALSE(test.execute("TRUNCATE audit"));
  CHECK_FALSE(
      test.execute("INSERT INTO audit VALUES (1, 1, 'x', '', '', '') ON CONFLICT (seq)"
                   " DO UPDATE SET actor = 'x'"));
  CHECK(must(test.store().audit(0, "", all)).front().actor == "weft");
}

TEST_CASE("a connection that cannot be: what and where, never a password") {
  for (const char* bad : {"password=secret is broken", "dbname='open", "nonsense", "host"}) {
    const std::string text = text_of(open_postgres(bad));
    CHECK(says(text, "not a PostgreSQL connection string"));
    CHECK_FALSE(says(text, "secret"));
  }
  CHECK_FALSE(open_postgres(std::string("host=a\0b", 8)).has_value());
  const std::string nobody = text_of(open_postgres("host=/nonexistent password=secret dbname=x"));
  CHECK(says(nobody, "database x at /nonexistent"));
  CHECK(says(nobody, "check that the server is running"));
  CHECK_FALSE(says(nobody, "secret"));
}

TEST_CASE("databases that are not fit for a store" * doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  SUBCASE("not there") {
    CHECK(says(text_of(open_postgres(server->conninfo("nowhere"))), "\"nowhere\" does not exist"));
  }
  SUBCASE("another encoding") {
    REQUIRE(server->sql("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"));
    const auto refused = open_postgres(server->conninfo("latin"));
    CHECK(says(text_of(refused), "encoding LATIN1"));
    CHECK(refused.error().code == Errc::unsupported);
    REQUIRE(server->sql("DROP DATABASE latin WITH (FORCE)"));
  }
  SUBCASE("a server that does not sync") {
    REQUIRE(server->sql("ALTER SYSTEM SET fsync = off"));
    REQUIRE(server->sql("SELECT pg_reload_conf()"));
    const auto is = [&](const char* value) {
      return wait_for([&] { return server->sql("SHOW fsync") == value; }, std::chrono::seconds(5));
    };
    REQUIRE(is("off"));
    CHECK(says(text_of(open_postgres(server->conninfo())), "fsync = off"));
    REQUIRE(server->sql("ALTER SYSTEM RESET fsync"));
    REQUIRE(server->sql("SELECT pg_reload_conf()"));
    REQUIRE(is("on"));
  }
  SUBCASE("read-only") {
    PostgresUnderTest test(*server);
    must(test.store().commit({.events = lines("a", 1)}));
    const std::string read_only =
        server->conninfo() + " options='-c default_transaction_read_only=on'";
    const auto store = must(open_postgres(read_only));
    CHECK(must(store->events(0, all)).size() == 1);
    test.reopen();  // so that the lock is free
    const std::string text = text_of(store->commit({.events = lines("b", 1)}));
    CHECK(says(text, "read-only transaction"));
    CHECK(says(text, "target_session_attrs=read-write"));
  }
  SUBCASE("no right to make it") {
    clear(*server);
    REQUIRE(server->sql("CREATE ROLE guest LOGIN"));
    const std::string text = text_of(open_postgres(server->conninfo() + " user=guest"));
    CHECK(says(text, "permission denied for database"));
    CHECK(says(text, "GRANT CREATE ON DATABASE"));
    REQUIRE(server->sql("DROP ROLE guest"));
  }
}

TEST_CASE("a server that syncs lazily by default is told not to" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  clear(*server);
  const Target lazy{server->conninfo() + " options='-c synchronous_commit=off'", "test", {}};
  auto session = must(Session::connect(lazy));
  CHECK(must(session.script("SHOW synchronous_commit")) == "on");
}

TEST_CASE("the schema of a newer weft is refused, that of an older one is brought up to date" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  PostgresUnderTest test(*server);
  must(test.store().commit({.events = lines("a", 2)}));
  auto steps = port::store_migrations(port::SqlDialect::postgres);
  const std::size_t now = steps.size();
  steps.emplace_back("CREATE TABLE more (a bigint); INSERT INTO nowhere VALUES (1)");
  auto session = must(Session::connect({server->conninfo(), "test", {}}));
  // While an instance writes, its tables stay.
  const auto busy = migrate(session, steps);
  CHECK(says(text_of(busy), "another instance is changing the schema"));
  test.reopen();
  // A step that fails changes nothing.
  const auto broken = migrate(session, steps);
  CHECK(says(text_of(broken), "nowhere"));
  CHECK(must(session.script(port::sql_version)) == std::to_string(now));
  steps.back() = "ALTER TABLE events ADD COLUMN more bigint NOT NULL DEFAULT 7";
  const auto done = migrate(session, steps);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().text()));
  CHECK(must(session.script("SELECT sum(more) FROM events")) == "14");
  const auto refused = open_postgres(server->conninfo());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(says(refused.error().text(), "its schema is 2, this weft supports 1"));
}

// Not made by store_migrations(), but written down as schema 1 was released: a step that is changed
// instead of followed by another one fails here.
constexpr const char* schema_1 = R"sql(
CREATE SCHEMA weft;
SET search_path = weft;
CREATE TABLE meta (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL);
INSERT INTO meta (name, value) VALUES ('schema', 1), ('events', 7), ('audit', 2);
CREATE TABLE events (seq bigint PRIMARY KEY, received bigint NOT NULL,
  feed text COLLATE "C" NOT NULL, line bytea NOT NULL);
CREATE TABLE documents (kind text COLLATE "C" NOT NULL, id text COLLATE "C" NOT NULL,
  updated bigint NOT NULL, body bytea NOT NULL, PRIMARY KEY (kind, id));
CREATE INDEX documents_by_time ON documents (kind, updated DESC, id);
CREATE TABLE audit (seq bigint PRIMARY KEY, t bigint NOT NULL, actor text COLLATE "C" NOT NULL,
  subject text COLLATE "C" NOT NULL, action text COLLATE "C" NOT NULL, detail bytea NOT NULL);
CREATE INDEX audit_by_subject ON audit (subject, seq);
CREATE FUNCTION audit_only_grows() RETURNS trigger LANGUAGE plpgsql AS
  $$ BEGIN RAISE EXCEPTION 'the audit log only grows'; END $$;
CREATE TRIGGER audit_only_grows BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION audit_only_grows();
CREATE TABLE writers (instance text PRIMARY KEY, holder text NOT NULL, since bigint NOT NULL,
  commit_number bigint NOT NULL, first_event bigint NOT NULL);
INSERT INTO writers VALUES ('0123456789abcdef', 'a host that is gone', 1, 4, 6);
INSERT INTO events VALUES (6, 60, 'syslog', 'six'), (7, 70, 'record', '\x00ff');
INSERT INTO documents VALUES ('case', 'c1', 5, '{"id":"c1"}');
INSERT INTO audit VALUES (1, 3, 'weft', 'c1', 'case_open', '{}'),
                         (2, 4, 'ann', 'c1', 'approved', '{"why":"x"}');
)sql";

TEST_CASE("a store as schema 1 was released is opened with all its rows, and goes on" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  clear(*server);
  REQUIRE(server->sql(schema_1).has_value());
  const auto store = must(open_postgres(server->conninfo()));
  port::testing::check_rows_of_schema_1(*store);
}

TEST_CASE("one instance writes, others read; who writes is named, and can be followed" *
          doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  clear(*server);
  auto first = must(open_postgres(server->conninfo()));
  const auto second = must(open_postgres(server->conninfo()));
  CHECK(must(first->commit({.events = lines("a", 2)})) == 1);
  CHECK(must(second->events(0, all)).size() == 2);
  const std::string text = text_of(second->commit({.events = lines("b", 1)}));
  CHECK(says(text, "another weft writes to this store"));
  CHECK(says(text, "process " + std::to_string(getpid())));
  CHECK_FALSE(second->forget_events(2).has_value());
  CHECK(must(first->commit({.events = lines("a", 2)})) == 3);
  first.reset();
  CHECK(must(second->commit({.events = lines("b", 1)})) == 5);
  CHECK(must(second->forget_events(3)) == 2);
}

TEST_CASE("several open an empty database at once" * doctest::test_suite("needs postgresql")) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  clear(*server);
  std::vector<std::string> errors(4);
  std::vector<std::thread> threads;
  for (std::string& error : errors)
    threads.emplace_back([&] { error = text_of(open_postgres(server->conninfo())); });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) CHECK(error == "no error");
}

// Not a test of speed: run with -ns -tc="measure*" on an idle machine, figures in docs/store.md.
TEST_CASE("measure: commits and events" * doctest::test_suite("needs postgresql") *
          doctest::skip()) {
  const TestServer* const server = test_server();
  if (server == nullptr) return;
  clear(*server);
  const auto store = must(open_postgres(server->conninfo()));
  port::testing::measure_commits(*store, 500);
}
