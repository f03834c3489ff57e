// Columns of one table, walked together by GETBULK. Pure: says what to ask next and takes answers.
#pragma once

#include <cstdint>
#include <vector>

#include "adapt/snmp/session.hpp"
#include "adapt/snmp/value.hpp"

namespace weft::adapt::snmp {

struct WalkCounts {
  std::uint64_t loops = 0, garbage = 0, cut = 0;
};

// Ends for every agent: each answer moves a column on or ends one, and no column passes rows_max.
class Walk {
 public:
  Walk(const std::vector<Oid>& columns, std::size_t rows_max);

  // What to ask for next; empty at the end.
  std::vector<Oid> next() const;
  void take(const VarBinds& values, Answers& into, WalkCounts& counts);

 private:
  struct Cursor {
    Oid column, last;
    std::size_t rows = 0;
    bool is_done = false;
  };
  void take_one(Cursor& cursor, const Oid& oid, const Value& value, Answers& into,
                WalkCounts& counts);

  std::vector<Cursor> cursors_;
  std::size_t rows_max_;
};

}  // namespace weft::adapt::snmp
