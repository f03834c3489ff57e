#include "port/store_schema.hpp"

#include <doctest/doctest.h>

using namespace weft;
using namespace weft::port;

TEST_CASE("both dialects say every word of the schema") {
  const auto sqlite = store_migrations(SqlDialect::sqlite);
  const auto postgres = store_migrations(SqlDialect::postgres);
  REQUIRE(sqlite.size() == postgres.size());
  for (const auto& steps : {sqlite, postgres})
    for (const std::string& step : steps)
      for (const char* word : {"<int>", "<text>", "<bytes>", "<end>"})
        CHECK(step.find(word) == std::string::npos);
}

TEST_CASE("a newer schema is refused, an older one is not") {
  CHECK(check_store_version(0, 3, {"weft.db"}).has_value());
  CHECK(check_store_version(3, 3, {"weft.db"}).has_value());
  const auto refused = check_store_version(4, 3, {"weft.db"});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::unsupported);
  CHECK(refused.error().where.file == "weft.db");
}

TEST_CASE("what only reads takes neither a newer schema, nor an older one, nor none") {
  CHECK(check_store_is_current(3, 3, {"weft.db"}).has_value());
  CHECK(check_store_is_current(4, 3, {"weft.db"}).error().code == Errc::unsupported);
  CHECK(check_store_is_current(2, 3, {"weft.db"}).error().code == Errc::unsupported);
  CHECK(check_store_is_current(0, 3, {"weft.db"}).error().code == Errc::unknown);
}

TEST_CASE("a commit has a bound") {
  Commit commit;
  for (std::size_t bytes = 0; bytes + (60 << 20) < store_commit_bytes_max; bytes += 60 << 20)
    commit.events.push_back({0, {}, "syslog", std::string(60 << 20, 'x')});
  CHECK(check_commit(commit).has_value());
  commit.audit.push_back({0, {}, "", "", "", std::string(60 << 20, 'x')});
  const auto refused = check_commit(commit);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::value);
  CHECK(refused.error().hint == "split the commit");
}

TEST_CASE("numbers stay below what databases count to") {
  CHECK(sql_number(7) == 7);
  CHECK(sql_number(UINT64_MAX) == INT64_MAX);
}
