// Published rows of nccl-tests (out of place, all_reduce unless said), each with what ran them.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "workload/collective/traffic.hpp"

namespace weft::test {

struct PublishedRow {
  std::string_view system;           // a name for system_by_name()
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
// GB300 in a rack (18 trays of 4) and between racks (InfiniBand only; a ring over 8 trays here):
// Azure/ai-infrastructure-on-azure, "about" values. Its 450 GB/s for H100 ND v5 with SHARP is left
// out: the page gives neither hosts nor algorithm, so no row checks `sharp`.
// GB200, one rack of 72 and two racks with 64 GPUs each over InfiniBand (NCCL 2.26.2):
// github.com/coreweave/nccl-tests/pull/43.
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

    PublishedRow{"gb200", 72, 1, 72, "nvls", 512 * MiB, 1806.7, 586.06},
    PublishedRow{"gb200", 72, 1, 72, "nvls", 1 * GiB, 3108.8, 681.17},
    PublishedRow{"gb200", 72, 1, 72, "nvls", 2 * GiB, 5589.1, 757.78},
    PublishedRow{"gb200", 72, 1, 72, "nvls", 4 * GiB, 10094, 839.16},
    PublishedRow{"gb200", 72, 1, 72, "nvls", 8 * GiB, 20299, 834.57},
    PublishedRow{"gb200", 128, 2, 64, "nvls_tree", 512 * MiB, 0, 493.94},
    PublishedRow{"gb200", 128, 2, 64, "nvls_tree", 1 * GiB, 0, 596.10},
    PublishedRow{"gb200", 128, 2, 64, "nvls_tree", 2 * GiB, 0, 680.30},
    PublishedRow{"gb200", 128, 2, 64, "nvls_tree", 4 * GiB, 0, 743.09},
    PublishedRow{"gb200", 128, 2, 64, "nvls_tree", 8 * GiB, 0, 793.06},
    PublishedRow{"gb200", 128, 2, 64, "nvls_tree", 16 * GiB, 0, 810.41},
    PublishedRow{"gb300", 72, 1, 72, "nvls", 16 * GiB, 0, 937},
    PublishedRow{"gb200", 32, 8, 4, "ring", 16 * GiB, 0, 200},  // 4 ports of 400 Gbps a tray
};

// 8 x MI300X, RCCL 2.22.3: AMD, "Understanding RCCL Bandwidth and xGMI Performance on AMD Instinct
// MI300X", rocm.blogs.amd.com, March 2025.
inline constexpr std::array mi300x_rows{
    PublishedRow{"mi300x", 8, 1, 8, "auto", 1 * KiB, 13.11, 0.14},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 16 * KiB, 13.54, 2.12},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 128 * KiB, 14.14, 16.22},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 256 * KiB, 16.87, 27.20},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 512 * KiB, 24.41, 37.59},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 1 * MiB, 27.42, 66.93},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 2 * MiB, 34.81, 105.43},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 4 * MiB, 51.72, 141.91},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 8 * MiB, 83.68, 175.43},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 16 * MiB, 148.8, 197.26},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 32 * MiB, 244.1, 240.57},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 64 * MiB, 429.1, 273.66},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 128 * MiB, 797.4, 294.55},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 256 * MiB, 1537.1, 305.62},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 512 * MiB, 3026.2, 310.46},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 1 * GiB, 5970.6, 314.72},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 2 * GiB, 11891, 316.04},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 4 * GiB, 23680, 317.40},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 8 * GiB, 47278, 317.96},
    PublishedRow{"mi300x", 8, 1, 8, "auto", 16 * GiB, 94254, 318.98},
};

// Several hosts, where the tuner chooses unless the page names the algorithm.
// 2 x p5 (8 GPUs, 32 EFA NICs of 100 Gbps, counted as 8 of 400) and 2 x p4de:
// github.com/aws-samples/awsome-distributed-training, micro-benchmarks/nccl-tests/README.md; 16 of
// p5en: the same, slurm/topology-aware-nccl-tests/README.md. 4 of P6-B200 from 64 MiB, and 4 of
// p5en with both algorithms: github.com/stas00/ml-engineering, network/README.md. 4 of P6-B200
// again: github.com/awslabs/awsome-distributed-ai, architectures/aws-pcs/tests/compute-test.md.
// 2 x H100 and 2 x B200 on InfiniBand: github.com/coreweave/nccl-tests/pull/92; the H100's 2 and 4
// hosts: github.com/NVIDIA/nccl-tests/issues/309.
inline constexpr std::array several_hosts_rows{
    PublishedRow{"p5", 16, 2, 8, "auto", 8, 69.12, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 64 * KiB, 135.1, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 128 * KiB, 108.9, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 256 * KiB, 128.0, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 512 * KiB, 123.7, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 1 * MiB, 123.2, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 2 * MiB, 147.2, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 4 * MiB, 168.6, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 8 * MiB, 204.8, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 16 * MiB, 298.1, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 32 * MiB, 439.7, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 64 * MiB, 601.5, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 128 * MiB, 870.3, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 256 * MiB, 1468.2, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 512 * MiB, 2559.2, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 1 * GiB, 4607.6, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 2 * GiB, 9074.5, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 4 * GiB, 17286, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 8 * GiB, 33605, 0},
    PublishedRow{"p5", 16, 2, 8, "auto", 16 * GiB, 66132, 0},

    PublishedRow{"p4de", 16, 2, 4, "auto", 64 * KiB, 227.4, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 128 * KiB, 229.7, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 256 * KiB, 238.2, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 512 * KiB, 260.3, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 2 * MiB, 432.6, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 4 * MiB, 533.9, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 8 * MiB, 762.8, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 32 * MiB, 1540.2, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 128 * MiB, 3912.9, 0},
    PublishedRow{"p4de", 16, 2, 4, "auto", 512 * MiB, 13552, 0},

    PublishedRow{"p5", 32, 4, 8, "ring", 4 * GiB, 0, 364.87},
    PublishedRow{"p5", 32, 4, 8, "nvls_tree", 4 * GiB, 0, 310.07},
    PublishedRow{"p5", 128, 16, 8, "auto", 16 * GiB, 92173, 0},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 64 * MiB, 0, 156.74},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 128 * MiB, 0, 197.94},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 256 * MiB, 0, 229.09},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 512 * MiB, 0, 326.90},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 1 * GiB, 0, 361.99},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 4 * GiB, 0, 377.34},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 16 * GiB, 0, 381.80},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 1 * GiB, 0, 367},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 4 * GiB, 0, 375},
    PublishedRow{"b200-torch", 32, 4, 8, "auto", 16 * GiB, 0, 377},
    PublishedRow{"h100", 16, 2, 8, "auto", 8 * GiB, 0, 440.58},
    PublishedRow{"b200", 16, 2, 8, "auto", 8 * GiB, 0, 690.07},
    PublishedRow{"h100", 16, 2, 8, "auto", 16 * GiB, 0, 470},
    PublishedRow{"h100", 32, 4, 8, "auto", 16 * GiB, 0, 365.84},
};

// all_to_all of 56 MiB and of 8 GiB (the page's peak) over 2 to 32 hosts of P6-B300 (16 EFA NICs of
// 400 Gbps) and 4 and 8 of p5: github.com/awslabs/awsome-distributed-ai, micro-benchmarks/
// expert-parallelism/ep-backend-comparison/RESULTS.md and RESULTS-p5.md. 64 x H800:
// github.com/NVIDIA/nccl/issues/1531. In the column of systems: those of the same parts.
inline constexpr std::array all_to_all_rows{
    PublishedRow{"b300-efa", 16, 2, 16, "pairwise", 56 * MiB, 0, 104.9, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 32, 4, 16, "pairwise", 56 * MiB, 0, 94.0, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 64, 8, 16, "pairwise", 56 * MiB, 0, 74.0, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 128, 16, 16, "pairwise", 56 * MiB, 0, 73.8, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 256, 32, 16, "pairwise", 56 * MiB, 0, 54.7, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 16, 2, 16, "pairwise", 8 * GiB, 0, 179.6, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 32, 4, 16, "pairwise", 8 * GiB, 0, 116.9, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 64, 8, 16, "pairwise", 8 * GiB, 0, 103.2, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 128, 16, 16, "pairwise", 8 * GiB, 0, 84.0, workload::Op::all_to_all},
    PublishedRow{"b300-efa", 256, 32, 16, "pairwise", 8 * GiB, 0, 74.4, workload::Op::all_to_all},
    PublishedRow{"p5", 32, 4, 8, "pairwise", 56 * MiB, 0, 45.1, workload::Op::all_to_all},
    PublishedRow{"p5", 64, 8, 8, "pairwise", 56 * MiB, 0, 40.4, workload::Op::all_to_all},
    PublishedRow{"p5", 32, 4, 8, "pairwise", 8 * GiB, 0, 53.9, workload::Op::all_to_all},
    PublishedRow{"p5", 64, 8, 8, "pairwise", 8 * GiB, 0, 51.1, workload::Op::all_to_all},
    PublishedRow{"h100", 64, 8, 8, "pairwise", 8 * MiB, 337.8, 0, workload::Op::all_to_all},
};

// Shares of a 400 Gbps NIC that SimAI's tables give for 16, 32, 64 and 128 GPUs (aliyun/SimAI,
// astra-sim-alibabacloud/inputs/ratio). They contradict each other below 128 MiB: at 16 MiB and 64
// GPUs ata_ratio.csv has 0.64, nvlink_ratio.csv 0.16. The row of 64 x H800 above has 0.43 at 8 MiB.
struct NicShares {
  double bytes;
  std::array<double, 4> shares;  // of 16, 32, 64, 128 GPUs
};
inline constexpr std::array simai_ata_ratio{
    NicShares{16 * MiB, {.52, .67, .64, .62}},  NicShares{32 * MiB, {.63, .68, .67, .66}},
    NicShares{64 * MiB, {.72, .83, .82, .66}},  NicShares{128 * MiB, {.76, .90, .85, .72}},
    NicShares{256 * MiB, {.79, .92, .87, .75}}, NicShares{512 * MiB, {.80, .94, .89, .81}},
    NicShares{1 * GiB, {.81, .94, .92, .85}},   NicShares{4 * GiB, {.80, .95, .94, .89}},
    NicShares{16 * GiB, {.80, .95, .94, .90}},
};
inline constexpr std::array simai_nvlink_ratio{
    NicShares{16 * MiB, {.55, .34, .16, .08}},  NicShares{32 * MiB, {.68, .60, .34, .16}},
    NicShares{64 * MiB, {.74, .71, .62, .33}},  NicShares{128 * MiB, {.80, .74, .70, .65}},
    NicShares{256 * MiB, {.84, .79, .78, .72}}, NicShares{512 * MiB, {.86, .86, .82, .75}},
    NicShares{1 * GiB, {.87, .87, .86, .83}},   NicShares{4 * GiB, {.88, .88, .88, .87}},
    NicShares{16 * GiB, {.88, .88, .88, .88}},
};

// Sweeps over sizes of systems that are not among the rows above.
struct PublishedSweep {
  std::string_view label;
  std::string_view system;  // a preset of the same parts
  std::uint32_t ranks, hosts, nics;
  std::string_view algorithm;
  struct Point {
    double bytes, busbw;
  };
  std::vector<Point> points;
};

// One host of Azure ND A100 v4, H100 v5, H200 v5: Azure/AI-benchmarking-guide, Azure_Results (in
// place; sizes printed as rounded decimals of powers of two). 2 x p5: aws-samples/
// awsome-distributed-training, nccl-tests/README.md. 4 x P6-B200: stas00/ml-engineering,
// network/README.md (from PyTorch; the page does not name the algorithm).
inline const std::vector<PublishedSweep> other_sweeps{
    {"Azure ND A100 v4",
     "a100",
     8,
     1,
     8,
     "ring",
     {{2 * MiB, 53.54},
      {4 * MiB, 71.43},
      {8 * MiB, 89.99},
      {16 * MiB, 109.22},
      {32 * MiB, 132.77},
      {64 * MiB, 166.63},
      {128 * MiB, 174.18},
      {256 * MiB, 213.87},
      {512 * MiB, 221.58},
      {1 * GiB, 228.10},
      {2 * GiB, 230.22},
      {4 * GiB, 230.48},
      {8 * GiB, 231.58}}},
    {"Azure ND H100 v5",
     "h100",
     8,
     1,
     8,
     "nvls",
     {{2 * MiB, 81.93},
      {4 * MiB, 128.73},
      {8 * MiB, 172.13},
      {16 * MiB, 234.45},
      {32 * MiB, 295.53},
      {64 * MiB, 361.78},
      {128 * MiB, 400.61},
      {256 * MiB, 423.38},
      {512 * MiB, 438.46},
      {1 * GiB, 466.35},
      {2 * GiB, 472.36},
      {4 * GiB, 475.54},
      {8 * GiB, 478.87}}},
    {"Azure ND H200 v5",
     "h200",
     8,
     1,
     8,
     "nvls",
     {{2 * MiB, 88.78},
      {4 * MiB, 138.44},
      {8 * MiB, 181.94},
      {16 * MiB, 240.41},
      {32 * MiB, 300.91},
      {64 * MiB, 368.11},
      {128 * MiB, 412.45},
      {256 * MiB, 432.24},
      {512 * MiB, 442.72},
      {1 * GiB, 467.58},
      {2 * GiB, 472.57},
      {4 * GiB, 477.41},
      {8 * GiB, 479.98}}},
    {"2 x AWS p5",
     "p5",
     16,
     2,
     8,
     "nvls_tree",
     {{2 * MiB, 26.71},
      {4 * MiB, 46.64},
      {8 * MiB, 76.80},
      {16 * MiB, 105.53},
      {32 * MiB, 143.09},
      {64 * MiB, 209.19},
      {128 * MiB, 289.16},
      {256 * MiB, 342.81},
      {512 * MiB, 393.34},
      {1 * GiB, 436.94},
      {2 * GiB, 443.72},
      {4 * GiB, 465.87},
      {8 * GiB, 479.28},
      {16 * GiB, 487.09}}},
    {"4 x AWS P6-B200",
     "b200-torch",
     32,
     4,
     8,
     "ring",
     {{2 * MiB, 10.38},
      {4 * MiB, 18.90},
      {8 * MiB, 35.12},
      {16 * MiB, 64.43},
      {32 * MiB, 91.19},
      {64 * MiB, 156.74},
      {128 * MiB, 197.94},
      {256 * MiB, 229.09},
      {512 * MiB, 326.90},
      {1 * GiB, 361.99},
      {2 * GiB, 372.42},
      {4 * GiB, 377.34},
      {8 * GiB, 380.39},
      {16 * GiB, 381.80}}},
};

}  // namespace weft::test
