// What targets sent and nobody understood, by path, in a table of bounded size.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft::adapt::gnmi {

enum class Misread : std::uint8_t {
  unmapped,      // no metric is made of this path
  bad_value,     // not of the type or range that the path has
  says_nothing,  // a state such as UNKNOWN
  no_key,        // the list entry or its number is not named
  bad_json,
  bad_encoding,  // a kind of value that is not read
  bad_path,      // too deep, too long, or without a name
  unknown_part,  // a component that does not say what it is
  too_many,      // more components than are remembered
};
inline constexpr std::size_t misread_count = 9;
std::string_view to_text(Misread why);

class MisreadTable {
 public:
  static constexpr std::size_t paths_max = 256, path_bytes_shown = 256;

  struct Row {
    std::string path;
    Misread why = Misread::unmapped;
    std::uint64_t count = 0;
  };

  // Cost: a look-up; paths beyond the bound are only counted.
  void add(std::string_view path, Misread why);
  // Ascending by path.
  std::vector<Row> rows() const;
  std::uint64_t total(Misread why) const { return totals_[static_cast<std::size_t>(why)]; }

 private:
  using Counts = std::array<std::uint64_t, misread_count>;
  std::map<std::string, Counts, std::less<>> by_path_;
  Counts totals_{};
};

}  // namespace weft::adapt::gnmi
