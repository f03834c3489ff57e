// Rows of a store, as its queries give them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapt/postgres/wire.hpp"
#include "port/store.hpp"
#include "port/store_schema.hpp"

namespace weft::adapt::postgres {

// A parameter.
inline std::string count(std::uint64_t n) { return number(port::sql_number(n)); }

inline port::StoredEvent event_of(const Rows& rows, int row) {
  return {static_cast<std::uint64_t>(rows.integer(row, 0)),
          {rows.integer(row, 1)},
          rows.bytes(row, 2),
          rows.bytes(row, 3)};
}

inline port::Document document_of(const Rows& rows, int row) {
  return {rows.bytes(row, 0), rows.bytes(row, 1), {rows.integer(row, 2)}, rows.bytes(row, 3)};
}

inline port::AuditEntry audit_of(const Rows& rows, int row) {
  return {static_cast<std::uint64_t>(rows.integer(row, 0)),
          {rows.integer(row, 1)},
          rows.bytes(row, 2),
          rows.bytes(row, 3),
          rows.bytes(row, 4),
          rows.bytes(row, 5)};
}

template <class Row>
std::vector<Row> rows_of(const Rows& rows, Row (*make)(const Rows&, int)) {
  std::vector<Row> out;
  out.reserve(static_cast<std::size_t>(rows.count()));
  for (int row = 0; row < rows.count(); ++row) out.push_back(make(rows, row));
  return out;
}

}  // namespace weft::adapt::postgres
