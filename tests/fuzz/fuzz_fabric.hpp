// A fabric for fuzz targets that need one.
#pragma once

#include <string_view>
#include <utility>

#include "fuzz.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::fuzz {

inline model::Fabric make_fabric(std::string_view yaml) {
  const auto section = parse_yaml(yaml, "fuzz.yaml");
  WEFT_CHECK(section.has_value());
  auto fabric = model::build_fabric(*section);
  WEFT_CHECK(fabric.has_value());
  return *std::move(fabric);
}

}  // namespace weft::fuzz
