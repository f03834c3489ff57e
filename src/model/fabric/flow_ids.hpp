// The ids of flows, packed: two million of them in as many bytes as their texts, or in none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft::model {

// Ids by row. Those that are the row numbers, from 0 or from 1, take no memory; nobody having given
// any, they are the row numbers from 0.
class FlowIds {
 public:
  std::string operator[](std::size_t row) const;

 private:
  friend class FlowIdIndex;
  bool numbered() const { return ends_.empty(); }
  std::string_view text(std::size_t row) const;

  std::uint32_t first_ = 0;  // the number of row 0
  std::string text_;         // all ids, one after the other
  std::vector<std::uint32_t> ends_;
};

// Gives rows their ids and finds rows by id. Some 8 bytes an id that is no row number, in the
// index.
class FlowIdIndex {
 public:
  explicit FlowIdIndex(FlowIds& ids) : ids_(ids) {}

  // The id of the next row. False when an earlier row has it.
  bool add(std::string_view id);
  std::optional<std::uint32_t> find(std::string_view id) const;

 private:
  // The slot that holds `id`, or the empty one where it belongs.
  std::size_t slot_of(std::string_view id) const;
  bool is_next_number(std::string_view id);
  void spell_out();
  bool insert(std::string_view id);
  void grow();

  FlowIds& ids_;
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> slots_;  // row + 1, or 0; a power of two of them
};

}  // namespace weft::model
