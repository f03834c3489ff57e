// P-30: headroom(100 Gbps, 1 us) = 37,500 B, as the simulator of HPCC reserves it (Li et al.,
// SIGCOMM 2019; public code: rate x delay x 3). Tolerance: none. The packet engine uses the parts
// of IEEE 802.1Qbb instead, which for packets of 4,160 B come to less than that here and to more on
// short cables, where packets and pause frame have a size of their own.
#include <doctest/doctest.h>

#include "transport/headroom.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-30: 37,500 B of headroom at 100 Gbps and 1 us") {
  CHECK(transport::simulator_headroom(100_Gbps, 1_us) == 37'500_B);
  CHECK(transport::standard_headroom({.rate = 100_Gbps, .latency = 1_us}) == 33'384_B);
  CHECK(transport::simulator_headroom(100_Gbps, 100_ns) == 3'750_B);
  CHECK(transport::standard_headroom({.rate = 100_Gbps, .latency = 100_ns}) == 10'884_B);
}

}  // namespace
}  // namespace weft::paper
