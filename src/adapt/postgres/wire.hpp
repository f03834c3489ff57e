// Values in PostgreSQL's binary format, both ways.
#pragma once

#include <libpq-fe.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::adapt::postgres {

// A number of `size` bytes, most significant first.
void append_number(std::string& out, std::int64_t value, int size);
std::string number(std::int64_t value);  // bigint

// The types of array elements, by the object numbers of pg_type.
enum class Element : std::int32_t { bytea = 17, bigint = 20, text = 25 };

// A one-dimensional array, element by element.
// From: PostgreSQL, src/backend/utils/adt/arrayfuncs.c, array_recv.
class Array {
 public:
  Array(Element type, std::size_t count);
  void add(std::int64_t value);
  void add(std::string_view bytes);
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

// A prepared statement with its parameters: number(...)s, arrays, or the bytes of texts and byteas.
struct Call {
  const char* statement;
  std::vector<std::string> parameters;
};

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};

// What a statement gave.
class Rows {
 public:
  explicit Rows(PGresult* result) : result_(result) {}
  int count() const { return PQntuples(result_.get()); }
  // Rows that a statement changed.
  std::uint64_t changed() const;
  std::int64_t integer(int row, int column) const;  // of any whole number
  std::string bytes(int row, int column) const;     // of a text or bytea

 private:
  std::unique_ptr<PGresult, ClearResult> result_;
};

}  // namespace weft::adapt::postgres
