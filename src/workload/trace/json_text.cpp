#include "workload/trace/json_text.hpp"

namespace weft::workload {

bool is_nested_too_deep(std::string_view json) {
  std::size_t depth = 0;
  bool in_text = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') {
      ++i;
    } else if (c == '"') {
      in_text = !in_text;
    } else if (in_text) {
      continue;
    } else if (c == '[' || c == '{') {
      if (++depth > json_depth_max) return true;
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace weft::workload
