// Lines and columns of byte offsets, for parsers that count bytes only.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft {
inline namespace base {

// Cost: O(text) once, O(log lines) per lookup.
class LineIndex {
 public:
  LineIndex(std::string_view text, std::string file) : file_(std::move(file)) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] == '\n') begins_.push_back(static_cast<std::ptrdiff_t>(i) + 1);
  }
  Where at(std::ptrdiff_t offset) const {
    const std::ptrdiff_t inside = std::max<std::ptrdiff_t>(offset, 0);
    const auto next = std::ranges::upper_bound(begins_, inside);
    return {file_, static_cast<std::uint32_t>(next - begins_.begin()),
            static_cast<std::uint32_t>(inside - *std::prev(next) + 1)};
  }

 private:
  std::string file_;
  std::vector<std::ptrdiff_t> begins_{0};
};

}  // namespace base
}  // namespace weft
