#include "model/work/outcome.hpp"

#include <fmt/format.h>

#include "base/text.hpp"

namespace weft::model {

std::string to_text(const Unfinished& unfinished) {
  return fmt::format("unfinished at {}: {}", human_seconds(unfinished.at_s), unfinished.why);
}

}  // namespace weft::model
