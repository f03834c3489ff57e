#include "os/error.hpp"

#include <fmt/format.h>

#include "base/fd.hpp"

namespace weft {
inline namespace os {

std::unexpected<Error> system_failure(std::string_view what, int error, std::string hint,
                                      Where where) {
  return fail(Errc::io, std::move(where), fmt::format("{}: {}", what, errno_text(error)),
              std::move(hint));
}

}  // namespace os
}  // namespace weft
