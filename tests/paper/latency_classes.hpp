// A small fabric with the latency classes of Meta's Llama 4 network, for P-06 and P-07.
#pragma once

#include <array>

#include "kit.hpp"

namespace weft::paper {

// nic:0  nic:1   nic:2   nic:3   nic:4     One way from nic:0: 5 us to nic:1, 35 to nic:2,
//  2.5 us |  |     |       |       |       75 to nic:3, 150 to nic:4. Every NIC has two cables.
//        rtsw:0  rtsw:1  rtsw:2  rtsw:3
//         15 us |  |       |       |
//              ctsw:0   ctsw:1   ctsw:2
//                20 us |  |        |
//                     atsw:0 ---- atsw:1
//                           75 us
inline constexpr std::string_view latency_classes = R"(
rate: 400 Gbps
nodes:
  - {role: nic, count: 5}
  - {role: rtsw, count: 4}
  - {role: ctsw, count: 3}
  - {role: atsw, count: 2}
links:
  - {link: "nic:0..1--rtsw:0", latency: 2500 ns, count: 2}
  - {pairs: "nic:2..4--rtsw:1..3", latency: 2500 ns, count: 2}
  - {link: "rtsw:0..1--ctsw:0", latency: 15 us}
  - {pairs: "rtsw:2..3--ctsw:1..2", latency: 15 us}
  - {link: "ctsw:0..1--atsw:0", latency: 20 us}
  - {link: "ctsw:2--atsw:1", latency: 20 us}
  - {link: "atsw:0--atsw:1", latency: 75 us}
)";

struct LatencyClass {
  const char* what;
  const char* to;      // from nic:0
  std::int64_t ratio;  // to the rack's
  double bdp_mb;       // at 400 Gbps
};
inline constexpr std::array<LatencyClass, 4> published_classes{
    {{"rack", "nic:1", 1, 0.25},
     {"cross-rack", "nic:2", 7, 1.75},
     {"cross-zone", "nic:3", 15, 3.75},
     {"cross-building", "nic:4", 30, 7.5}}};

}  // namespace weft::paper
