#include "base/check.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace weft::inline base {

void check_failed(std::string_view condition, std::source_location where) {
  fmt::print(stderr, "weft: internal error: {}:{}: {}: check failed: {}\n", where.file_name(),
             where.line(), where.function_name(), condition);
  std::abort();
}

}  // namespace weft::base
