// Which part of an output to keep.
#pragma once

#include <cstdint>

namespace weft {
inline namespace os {

// Which part of an output that is too long says more: the end, of logs.
enum class Keep : std::uint8_t { begin, end };

}  // namespace os
}  // namespace weft
