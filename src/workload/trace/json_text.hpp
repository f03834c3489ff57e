// JSON of recorded workloads, which may be hostile.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft::workload {

inline constexpr std::size_t json_depth_max = 64;
inline constexpr const char* json_too_deep = "nested deeper than 64 levels";

// Whether lists and objects of the text are nested deeper than json_depth_max: opening brackets
// alone would take some fifty times their size in memory. To be asked before the text is parsed,
// of any text, JSON or not.
bool is_nested_too_deep(std::string_view json);

}  // namespace weft::workload
