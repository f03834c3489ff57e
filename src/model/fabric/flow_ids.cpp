#include "model/fabric/flow_ids.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::model {
namespace {

// The number that `id` is, spelt as std::to_string does.
std::optional<std::uint32_t> plain_number(std::string_view id) {
  std::uint32_t value = 0;
  const char* const end = id.data() + id.size();
  const auto [rest, error] = std::from_chars(id.data(), end, value);
  const bool spelt_otherwise = id.size() > 1 && id.front() == '0';
  if (id.empty() || error != std::errc{} || rest != end || spelt_otherwise) return std::nullopt;
  return value;
}

}  // namespace

std::string_view FlowIds::text(std::size_t row) const {
  const std::size_t begin = row == 0 ? 0 : ends_[row - 1];
  return std::string_view(text_).substr(begin, ends_[row] - begin);
}

std::string FlowIds::operator[](std::size_t row) const {
  return numbered() ? std::to_string(first_ + row) : std::string(text(row));
}

bool FlowIdIndex::is_next_number(std::string_view id) {
  const auto number = plain_number(id);
  if (!number) return false;
  if (count_ == 0 && *number <= 1) ids_.first_ = *number;
  return *number == ids_.first_ + count_;
}

bool FlowIdIndex::add(std::string_view id) {
  if (ids_.numbered()) {
    if (is_next_number(id)) {
      ++count_;
      return true;
    }
    spell_out();
  }
  return insert(id);
}

// Numbers become texts like all others.
void FlowIdIndex::spell_out() {
  const std::uint32_t numbered = std::exchange(count_, 0);
  for (std::uint32_t row = 0; row < numbered; ++row) insert(std::to_string(ids_.first_ + row));
}

bool FlowIdIndex::insert(std::string_view id) {
  if (slots_.size() * 3 <= std::size_t{count_} * 4) grow();
  WEFT_CHECK(ids_.text_.size() + id.size() < UINT32_MAX);
  ids_.text_ += id;
  ids_.ends_.push_back(static_cast<std::uint32_t>(ids_.text_.size()));
  std::uint32_t& slot = slots_[slot_of(id)];
  ++count_;
  if (slot != 0) return false;
  slot = count_;
  return true;
}

std::size_t FlowIdIndex::slot_of(std::string_view id) const {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = mix64(hash_text(id)) & mask;
  while (slots_[at] != 0 && ids_.text(slots_[at] - 1) != id) at = (at + 1) & mask;
  return at;
}

void FlowIdIndex::grow() {
  constexpr std::size_t slots_least = 64;
  const std::size_t size = std::max(slots_least, slots_.size() * 2);
  const std::vector<std::uint32_t> old = std::exchange(slots_, std::vector<std::uint32_t>(size));
  for (const std::uint32_t slot : old)
    if (slot != 0) slots_[slot_of(ids_.text(slot - 1))] = slot;
}

std::optional<std::uint32_t> FlowIdIndex::find(std::string_view id) const {
  if (ids_.numbered()) {
    const auto number = plain_number(id);
    if (!number || *number < ids_.first_ || *number - ids_.first_ >= count_) return std::nullopt;
    return *number - ids_.first_;
  }
  const std::uint32_t slot = slots_[slot_of(id)];
  if (slot == 0) return std::nullopt;
  return slot - 1;
}

}  // namespace weft::model
