#include "base/hash.hpp"

#include <fmt/format.h>

namespace weft::inline base {

std::string Digest::hex() const { return fmt::format("{:016x}", value()); }

}  // namespace weft::base
