// The files of scenarios/, which are part of the program.
#pragma once

#include <span>
#include <string_view>

namespace weft::cli {

struct Example {
  std::string_view name;  // "llama3-405b.yaml", "backbone/abilene.csv"
  std::string_view text;
};
// By name. The source is made by CMake.
std::span<const Example> examples();

}  // namespace weft::cli
