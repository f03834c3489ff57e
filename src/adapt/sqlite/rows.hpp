// Rows of a store, to and from SQLite's statements.
#pragma once

#include <cstdint>
#include <vector>

#include "adapt/sqlite/database.hpp"
#include "base/result.hpp"
#include "port/store.hpp"

namespace weft::adapt::sqlite {

inline constexpr const char* insert_event =
    "INSERT INTO events (seq, received, feed, line) VALUES ($1, $2, $3, $4)";
inline constexpr const char* insert_document =
    "INSERT INTO documents (kind, id, updated, body) VALUES ($1, $2, $3, $4)"
    " ON CONFLICT (kind, id) DO UPDATE SET updated = excluded.updated, body = excluded.body";
inline constexpr const char* insert_audit =
    "INSERT INTO audit (seq, t, actor, subject, action, detail) VALUES ($1, $2, $3, $4, $5, $6)";

inline port::StoredEvent event_of(const Statement& row) {
  return {static_cast<std::uint64_t>(row.integer(0)), {row.integer(1)}, row.bytes(2), row.bytes(3)};
}

inline port::Document document_of(const Statement& row) {
  return {row.bytes(0), row.bytes(1), {row.integer(2)}, row.bytes(3)};
}

inline port::AuditEntry audit_of(const Statement& row) {
  return {static_cast<std::uint64_t>(row.integer(0)),
          {row.integer(1)},
          row.bytes(2),
          row.bytes(3),
          row.bytes(4),
          row.bytes(5)};
}

template <class Row>
Result<std::vector<Row>> rows_of(Statement& statement, Row (*make)(const Statement&)) {
  std::vector<Row> out;
  WEFT_TRY_STATUS(statement.each([&](const Statement& row) { out.push_back(make(row)); }));
  return out;
}

// Of the statements above.
inline Status insert(Statement& statement, std::uint64_t seq, const port::StoredEvent& row) {
  return statement
      .bind(static_cast<std::int64_t>(seq), row.received.ns, Text{row.feed}, Blob{row.line})
      .run();
}

inline Status insert(Statement& statement, const port::Document& row) {
  return statement.bind(Text{row.kind}, Text{row.id}, row.updated.ns, Blob{row.body}).run();
}

inline Status insert(Statement& statement, std::uint64_t seq, const port::AuditEntry& row) {
  return statement
      .bind(static_cast<std::int64_t>(seq), row.t.ns, Text{row.actor}, Text{row.subject},
            Text{row.action}, Blob{row.detail})
      .run();
}

}  // namespace weft::adapt::sqlite
