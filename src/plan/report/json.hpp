// Between the files of this room: JSON without its heavy header.
#pragma once

#include <string>
#include <string_view>

namespace weft::plan::report {

// `text` as a JSON string with its quotes. Bytes that are not UTF-8 become U+FFFD.
std::string json_string(std::string_view text);

}  // namespace weft::plan::report
