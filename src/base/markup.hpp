// Text inside XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace weft {
inline namespace base {

// `text` with & < > " ' escaped, so that it stays text between elements and in quoted attributes.
std::string escape_markup(std::string_view text);

}  // namespace base
}  // namespace weft
