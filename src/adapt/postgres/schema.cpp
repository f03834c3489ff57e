#include "adapt/postgres/schema.hpp"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "port/store_schema.hpp"

namespace weft::adapt::postgres {
namespace {

// 0 where there is nothing yet. A query that reads the catalogue, since to_regclass() may answer
// from what the session remembers of it from before it waited for a lock.
Result<std::int64_t> version_of(Session& session) {
  WEFT_TRY(const std::string meta,
           session.script("SELECT tablename FROM pg_tables"
                          " WHERE schemaname = 'weft' AND tablename = 'meta'"));
  if (meta.empty()) return 0;
  WEFT_TRY(const std::string text, session.script(port::sql_version));
  std::int64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

Status migrate(Session& session, std::span<const std::string> steps) {
  WEFT_TRY(std::int64_t found, version_of(session));
  WEFT_TRY_STATUS(port::check_store_version(found, steps.size(), {session.where()}));
  if (std::cmp_equal(found, steps.size())) return {};
  // A writer keeps this lock for as long as it lives, and would trip over other tables.
  WEFT_TRY_STATUS(session.script(fmt::format(
      "BEGIN; SET LOCAL lock_timeout = '2s'; SELECT pg_advisory_xact_lock({})", writer_lock)));
  WEFT_TRY(found, version_of(session));  // another may have done it while we waited
  for (auto version = static_cast<std::size_t>(found); version < steps.size(); ++version) {
    if (version == 0) WEFT_TRY_STATUS(session.script("CREATE SCHEMA IF NOT EXISTS weft"));
    WEFT_TRY_STATUS(session.script(steps[version]));
    WEFT_TRY_STATUS(session.script(
        fmt::format("UPDATE meta SET value = {} WHERE name = 'schema'", version + 1)));
  }
  WEFT_TRY_STATUS(session.script("COMMIT"));
  return {};
}

Status check_current(Session& session) {
  WEFT_TRY(const std::int64_t found, version_of(session));
  const std::size_t known = port::store_migrations(port::SqlDialect::postgres).size();
  return port::check_store_is_current(found, known, {session.where()});
}

Result<Session> connect_store(const Target& target, std::span<const Prepared> statements) {
  WEFT_TRY(Session session, Session::connect(target));
  WEFT_TRY_STATUS(migrate(session, port::store_migrations(port::SqlDialect::postgres)));
  WEFT_TRY_STATUS(session.prepare(statements));
  return session;
}

}  // namespace weft::adapt::postgres
