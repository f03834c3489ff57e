// Between the files of this room: the tracks of spans, in the order in which people look for them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "model/work/outcome.hpp"

namespace weft::plan::report {

// "llama3 / pp 3" is the role "pp 3" of the job "llama3"; other tracks have no role.
struct Track {
  std::string_view job, role;
};
Track parts_of(std::string_view track);

// Compares numbers inside the texts by value: "pp 3" stands before "pp 12".
bool natural_less(std::string_view a, std::string_view b);

// Each track once: jobs in order of their first span, roles of a job in natural order. The views
// point into `spans`. Cost: O(spans log tracks).
std::vector<std::string_view> tracks_of(std::span<const model::Span> spans);

}  // namespace weft::plan::report
