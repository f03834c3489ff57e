// What tests of this room share.
#pragma once

#include <doctest/doctest.h>

#include "model/formats/test_fabric.hpp"

namespace weft::serve::testing {

//  ctsw:0 .. ctsw:3        every rack switch to every spine
//   |  X  X  X  |
//  rtsw:0 .. rtsw:3        two hosts each, one GPU and NIC a host
inline model::Fabric small_zone() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
}

}  // namespace weft::serve::testing
