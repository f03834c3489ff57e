// Text inside XML, HTML and URIs.
#pragma once

#include <string>
#include <string_view>

namespace weft {
inline namespace base {

// `text` with & < > " ' escaped, so that it stays text between elements and in quoted attributes.
std::string escape_markup(std::string_view text);

// `text` as a piece of a URI's path or query: all but letters, digits and "-_.~" becomes %XX
// (RFC 3986, 2.1 to 2.3).
std::string percent_encoded(std::string_view text);

}  // namespace base
}  // namespace weft
