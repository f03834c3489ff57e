// Files that are part of the program. Their sources are made by CMake.
#pragma once

#include <span>
#include <string_view>

namespace weft::cli {

struct Embedded {
  std::string_view name;  // "llama3-405b.yaml", "backbone/abilene.csv"
  std::string_view text;
};
// By name: the files of scenarios/, and those of schemas/ beside this one.
std::span<const Embedded> examples();
std::span<const Embedded> schemas();

}  // namespace weft::cli
