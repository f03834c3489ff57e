// Programmer errors abort, always, with the place and the values.
#pragma once

#include <source_location>
#include <string_view>

namespace weft {
inline namespace base {

[[noreturn]] void check_failed(std::string_view condition, std::source_location where);

}  // namespace base
}  // namespace weft

#define WEFT_CHECK(condition)                                              \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::weft::check_failed(#condition, ::std::source_location::current()); \
  } while (false)

// For hot loops: only in builds without NDEBUG.
#ifdef NDEBUG
#define WEFT_DCHECK(condition) static_cast<void>(0)
#else
#define WEFT_DCHECK(condition) WEFT_CHECK(condition)
#endif
