#include "adapt/snmp/walk.hpp"

namespace weft::adapt::snmp {

Walk::Walk(const std::vector<Oid>& columns, std::size_t rows_max) : rows_max_(rows_max) {
  for (const Oid& column : columns) cursors_.push_back({column, column});
}

std::vector<Oid> Walk::next() const {
  std::vector<Oid> out;
  for (const Cursor& cursor : cursors_)
    if (!cursor.is_done) out.push_back(cursor.last);
  return out;
}

void Walk::take_one(Cursor& cursor, const Oid& oid, const Value& value, Answers& into,
                    WalkCounts& counts) {
  if (value.kind == Value::Kind::absent || !starts_with(oid, cursor.column)) {
    cursor.is_done = true;
  } else if (oid <= cursor.last) {
    cursor.is_done = true;
    ++counts.loops;
  } else if (cursor.rows == rows_max_) {
    cursor.is_done = true;
    ++counts.cut;
  } else {
    ++cursor.rows;
    cursor.last = oid;
    into.insert_or_assign(oid, value);
  }
}

// Values stand row by row, in the order of what was asked (RFC 3416, 4.2.3); the last row may be
// cut short where the message was full.
void Walk::take(const VarBinds& values, Answers& into, WalkCounts& counts) {
  std::vector<Cursor*> asked;
  for (Cursor& cursor : cursors_)
    if (!cursor.is_done) asked.push_back(&cursor);
  if (asked.empty()) return;
  if (values.empty()) {
    ++counts.garbage;
    for (Cursor* const cursor : asked) cursor->is_done = true;
    return;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    Cursor& cursor = *asked[i % asked.size()];
    if (!cursor.is_done) take_one(cursor, values[i].first, values[i].second, into, counts);
  }
}

}  // namespace weft::adapt::snmp
