// What stores on SQL databases share, so that they cannot drift apart: schema, queries, limits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "port/store.hpp"

namespace weft::port {

enum class SqlDialect : std::uint8_t { sqlite, postgres };

// Step i, of several statements, takes a database from version i to i + 1; it does not write the
// version down, which is the row "schema" of table meta. Step 0 finds an empty database.
std::vector<std::string> store_migrations(SqlDialect dialect);

// Fails: Errc::unsupported when a newer weft has been there. `where` names the database.
Status check_store_version(std::int64_t found, std::size_t known, const Where& where);

// The same where nothing may be upgraded: also when an older weft has been there and no newer.
Status check_store_is_current(std::int64_t found, std::size_t known, const Where& where);

// feed, kind, id, actor, subject and action are UTF-8 without control characters but tabs and line
// ends, and short enough for an index. line, body and detail are any bytes.
inline constexpr std::size_t store_name_bytes_max = 512;
inline constexpr std::size_t store_value_bytes_max = std::size_t{64} << 20;
inline constexpr std::size_t store_commit_bytes_max = std::size_t{256} << 20;

// Fails: Errc::value, naming what is too large or no text.
Status check_commit(const Commit& commit);
Status check_store_name(std::string_view what, std::string_view name);

// What Store::document answers where there is none.
[[nodiscard]] std::unexpected<Error> no_document(std::string_view kind, std::string_view id);

// Databases count to 2^63 - 1.
constexpr std::int64_t sql_number(std::uint64_t n) {
  return static_cast<std::int64_t>(
      std::min<std::uint64_t>(n, std::numeric_limits<std::int64_t>::max()));
}

// Parameters appear in the order of their numbers, which is how SQLite counts them.
inline constexpr const char* sql_events =
    "SELECT seq, received, feed, line FROM events WHERE seq >= $1 ORDER BY seq LIMIT $2";
inline constexpr const char* sql_document =
    "SELECT kind, id, updated, body FROM documents WHERE kind = $1 AND id = $2";
inline constexpr const char* sql_documents =
    "SELECT kind, id, updated, body FROM documents WHERE kind = $1 AND updated < $2"
    " ORDER BY updated DESC, id LIMIT $3";
inline constexpr const char* sql_audit =
    "SELECT seq, t, actor, subject, action, detail FROM audit WHERE seq >= $1"
    " ORDER BY seq LIMIT $2";
inline constexpr const char* sql_audit_of =
    "SELECT seq, t, actor, subject, action, detail FROM audit WHERE subject = $1 AND seq >= $2"
    " ORDER BY seq LIMIT $3";
inline constexpr const char* sql_forget_events = "DELETE FROM events WHERE seq < $1";
inline constexpr const char* sql_forget_documents =
    "DELETE FROM documents WHERE kind = $1 AND updated < $2";
// Numbers come from counters, not from the rows that are left, so that none is given twice; the
// counters are part of the transaction, so that there are no gaps and readers see rows in order.
inline constexpr const char* sql_count_events =
    "UPDATE meta SET value = value + $1 WHERE name = 'events' RETURNING value";
inline constexpr const char* sql_count_audit =
    "UPDATE meta SET value = value + $1 WHERE name = 'audit' RETURNING value";
// Of a whole store: all documents by name, and the counters.
inline constexpr const char* sql_documents_from =
    "SELECT kind, id, updated, body FROM documents WHERE (kind, id) >= ($1, $2)"
    " ORDER BY kind, id LIMIT $3";
inline constexpr const char* sql_last_event = "SELECT value FROM meta WHERE name = 'events'";
inline constexpr const char* sql_last_audit = "SELECT value FROM meta WHERE name = 'audit'";
inline constexpr const char* sql_version = "SELECT value FROM meta WHERE name = 'schema'";

}  // namespace weft::port
