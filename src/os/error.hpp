// System calls that failed, as errors.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace weft {
inline namespace os {

// Errc::io with "what: <the system's text for `error`>".
[[nodiscard]] std::unexpected<Error> system_failure(std::string_view what, int error,
                                                    std::string hint = {}, Where where = {});

}  // namespace os
}  // namespace weft
