// Strong 32-bit ids that index columns, and the column type they index.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

namespace weft {
inline namespace base {

// An index into the columns of one table. Ids of different tables do not mix.
template <class Tag>
struct Id {
  static constexpr std::uint32_t none_value = UINT32_MAX;
  std::uint32_t value = none_value;

  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t index) : value(index) {}
  constexpr explicit Id(std::size_t index) : value(static_cast<std::uint32_t>(index)) {}
  constexpr explicit Id(int index) : value(static_cast<std::uint32_t>(index)) {}

  constexpr bool valid() const { return value != none_value; }
  constexpr std::size_t index() const { return value; }
  friend constexpr auto operator<=>(Id, Id) = default;
};

// A vector that only the matching id can index.
template <class IdType, class T>
class Column {
 public:
  Column() = default;
  explicit Column(std::size_t size, const T& value = T{}) : rows_(size, value) {}

  decltype(auto) operator[](IdType id) { return rows_[id.index()]; }
  decltype(auto) operator[](IdType id) const { return rows_[id.index()]; }

  IdType push_back(T value) {
    rows_.push_back(std::move(value));
    return IdType(rows_.size() - 1);
  }
  std::size_t size() const { return rows_.size(); }
  bool empty() const { return rows_.empty(); }
  void reserve(std::size_t size) { rows_.reserve(size); }
  void resize(std::size_t size, const T& value = T{}) { rows_.resize(size, value); }
  void assign(std::size_t size, const T& value) { rows_.assign(size, value); }
  bool contains(IdType id) const { return id.index() < rows_.size(); }

  auto begin() const { return rows_.begin(); }
  auto end() const { return rows_.end(); }
  const std::vector<T>& raw() const { return rows_; }
  std::vector<T>& raw() { return rows_; }

 private:
  std::vector<T> rows_;
};

// for (NodeId id : ids<NodeId>(count)) ...
template <class IdType>
class IdRange {
 public:
  struct Iterator {
    std::uint32_t at;
    IdType operator*() const { return IdType(at); }
    Iterator& operator++() {
      ++at;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
  };
  IdRange(std::size_t first, std::size_t last)
      : first_(static_cast<std::uint32_t>(first)), last_(static_cast<std::uint32_t>(last)) {}
  Iterator begin() const { return {first_}; }
  Iterator end() const { return {last_}; }
  std::size_t size() const { return last_ - first_; }

 private:
  std::uint32_t first_, last_;
};

template <class IdType>
IdRange<IdType> ids(std::size_t count) {
  return {0, count};
}

}  // namespace base
}  // namespace weft

template <class Tag>
struct std::hash<weft::Id<Tag>> {
  std::size_t operator()(weft::Id<Tag> id) const noexcept { return id.value; }
};
