// What tests of this room share.
#pragma once

#include <doctest/doctest.h>

#include "base/config.hpp"
#include "model/generate.hpp"

namespace weft::serve::testing {

//  ctsw:0 .. ctsw:3        every rack switch to every spine
//   |  X  X  X  |
//  rtsw:0 .. rtsw:3        two hosts each, one GPU and NIC a host
inline model::Fabric small_zone() {
  const auto config = parse_yaml(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}", "test");
  REQUIRE(config.has_value());
  auto fabric = model::build_fabric(*config);
  REQUIRE(fabric.has_value());
  return *std::move(fabric);
}

}  // namespace weft::serve::testing
