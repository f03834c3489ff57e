// Published rows of nccl-tests (out of place, all_reduce unless said), each with what ran them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "workload/collective/traffic.hpp"

namespace weft::test {

struct PublishedRow {
  std::string_view system;  // a name for system_by_name()
  std::uint32_t ranks, hosts, nics;  // NICs per host
  std::string_view algorithm;        // "auto": the tuner chooses, as NCCL did
  double bytes;
  double time_us, busbw;  // one of them is 0 where the source gives the other
  workload::Op op = workload::Op::all_reduce;
};

inline constexpr double KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30;

// 8 x H100, one AWS p5: aws-samples/awsome-distributed-training,
// micro-benchmarks/nccl-tests/aws-batch/README.md (MIT-0).
// 16 x A100, two AWS p4de with 4 EFA NICs of 100 Gbps each: the same, nccl-tests/README.md.
// 8 x A100, H200 (NCCL 2.27.7), B200 (NCCL 2.27.7): stas00/ml-engineering, network/README.md; the
// H200 and B200 sweeps over GPU counts at 8 GiB with NVLS on and off from the same page.
// H100 ND v5 (8 hosts, SHARP), GB300 in a rack (18 trays of 4) and between racks (IB only, 2 x 4
// here): Azure/ai-infrastructure-on-azure, "about" values.
inline constexpr std::array published_rows{
    PublishedRow{"p5", 8, 1, 8, "auto", 8, 12.9, 0},
    PublishedRow{"p5", 8, 1, 8, "auto", 64 * KiB, 19.09, 6.01},
    PublishedRow{"p5", 8, 1, 8, "auto", 1 * MiB, 28.56, 64.24},
    PublishedRow{"p5", 8, 1, 8, "auto", 2 * MiB, 0, 84.47},
    PublishedRow{"p5", 8, 1, 8, "auto", 4 * MiB, 0, 132.41},
    PublishedRow{"p5", 8, 1, 8, "auto", 8 * MiB, 0, 174.16},
    PublishedRow{"p5", 8, 1, 8, "auto", 16 * MiB, 0, 236.82},
    PublishedRow{"p5", 8, 1, 8, "auto", 32 * MiB, 0, 295.63},
    PublishedRow{"p5", 8, 1, 8, "auto", 64 * MiB, 0, 359.54},
    PublishedRow{"p5", 8, 1, 8, "auto", 128 * MiB, 0, 396.19},
    PublishedRow{"p5", 8, 1, 8, "auto", 256 * MiB, 0, 418.91},
    PublishedRow{"p5", 8, 1, 8, "auto", 512 * MiB, 0, 433.90},
    PublishedRow{"p5", 8, 1, 8, "auto", 1 * GiB, 0, 441.81},
    PublishedRow{"p5", 8, 1, 8, "auto", 2 * GiB, 0, 444.02},
    PublishedRow{"p5", 8, 1, 8, "auto", 4 * GiB, 0, 475.97},
    PublishedRow{"p5", 8, 1, 8, "auto", 8 * GiB, 0, 480.43},
    PublishedRow{"p5", 8, 1, 8, "auto", 16 * GiB, 0, 483.05},

    PublishedRow{"p4de", 16, 2, 4, "auto", 8, 163, 0},  // 161 to 165
    PublishedRow{"p4de", 16, 2, 4, "auto", 1 * MiB, 309.4, 6.35},
    PublishedRow{"p4de", 16, 2, 4, "auto", 16 * MiB, 0, 26.39},
    PublishedRow{"p4de", 16, 2, 4, "auto", 64 * MiB, 0, 47.58},
    PublishedRow{"p4de", 16, 2, 4, "auto", 256 * MiB, 0, 69.89},
    PublishedRow{"p4de", 16, 2, 4, "auto", 1 * GiB, 0, 76.79},
    PublishedRow{"p4de", 16, 2, 4, "auto", 2 * GiB, 0, 78.33},

    PublishedRow{"a100-torch", 8, 1, 8, "auto", 1 * MiB, 101.9, 18.00},
    PublishedRow{"a100-torch", 8, 1, 8, "auto", 16 * MiB, 0, 106.16},
    PublishedRow{"a100-torch", 8, 1, 8, "auto", 128 * MiB, 0, 176.92},
    PublishedRow{"a100-torch", 8, 1, 8, "auto", 1 * GiB, 0, 229.04},
    PublishedRow{"a100-torch", 8, 1, 8, "auto", 16 * GiB, 0, 234.89},

    PublishedRow{"h200-torch", 8, 1, 8, "auto", 32 * KiB, 0, 1.44},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 1 * MiB, 0, 39.93},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 4 * MiB, 0, 107.16},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 16 * MiB, 0, 219.89},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 64 * MiB, 0, 346.51},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 256 * MiB, 0, 436.15},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 1 * GiB, 0, 463.58},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 4 * GiB, 0, 473.10},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 16 * GiB, 0, 482.26},
    PublishedRow{"h200-torch", 8, 1, 8, "ring", 16 * GiB, 0, 367.4},  // 367.2 to 367.6
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 16 * GiB, 0, 361.4, workload::Op::all_gather},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 16 * GiB, 0, 362.9, workload::Op::reduce_scatter},

    PublishedRow{"h200-torch", 4, 1, 8, "auto", 8 * GiB, 0, 363.3},
    PublishedRow{"h200-torch", 5, 1, 8, "auto", 8 * GiB, 0, 414.2},
    PublishedRow{"h200-torch", 6, 1, 8, "auto", 8 * GiB, 0, 435.6},
    PublishedRow{"h200-torch", 7, 1, 8, "auto", 8 * GiB, 0, 460.0},
    PublishedRow{"h200-torch", 8, 1, 8, "auto", 8 * GiB, 0, 473.1},
    PublishedRow{"h200-torch", 4, 1, 8, "ring", 8 * GiB, 0, 363.3},
    PublishedRow{"h200-torch", 5, 1, 8, "ring", 8 * GiB, 0, 364.4},
    PublishedRow{"h200-torch", 6, 1, 8, "ring", 8 * GiB, 0, 365.1},
    PublishedRow{"h200-torch", 7, 1, 8, "ring", 8 * GiB, 0, 365.7},
    PublishedRow{"h200-torch", 8, 1, 8, "ring", 8 * GiB, 0, 365.6},
    PublishedRow{"b200-torch", 4, 1, 8, "auto", 8 * GiB, 0, 673.2},
    PublishedRow{"b200-torch", 5, 1, 8, "auto", 8 * GiB, 0, 677.8},
    PublishedRow{"b200-torch", 6, 1, 8, "auto", 8 * GiB, 0, 778.2},
    PublishedRow{"b200-torch", 7, 1, 8, "auto", 8 * GiB, 0, 811.2},
    PublishedRow{"b200-torch", 8, 1, 8, "auto", 8 * GiB, 0, 838.0},
    PublishedRow{"b200-torch", 4, 1, 8, "ring", 8 * GiB, 0, 673.8},
    PublishedRow{"b200-torch", 5, 1, 8, "ring", 8 * GiB, 0, 677.8},
    PublishedRow{"b200-torch", 6, 1, 8, "ring", 8 * GiB, 0, 677.8},
    PublishedRow{"b200-torch", 7, 1, 8, "ring", 8 * GiB, 0, 680.5},
    PublishedRow{"b200-torch", 8, 1, 8, "ring", 8 * GiB, 0, 682.2},

    PublishedRow{"b200-torch", 8, 1, 8, "auto", 1 * MiB, 0, 36.06},
    PublishedRow{"b200-torch", 8, 1, 8, "auto", 16 * MiB, 0, 254.96},
    PublishedRow{"b200-torch", 8, 1, 8, "auto", 64 * MiB, 0, 400.60},
    PublishedRow{"b200-torch", 8, 1, 8, "auto", 256 * MiB, 0, 646.11},
    PublishedRow{"b200-torch", 8, 1, 8, "auto", 1 * GiB, 0, 723.34},
    PublishedRow{"b200-torch", 8, 1, 8, "auto", 4 * GiB, 0, 740.64},
    PublishedRow{"b200-torch", 8, 1, 8, "auto", 16 * GiB, 0, 845.67},

    PublishedRow{"h100", 64, 8, 8, "sharp", 16 * GiB, 0, 450},
    PublishedRow{"gb300", 72, 1, 72, "nvls", 16 * GiB, 0, 937},
};

}  // namespace weft::test
