// Hosts in rank order as launchers read them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::plan::place {

// Names of the formats: slurm, openmpi, pytorch.
std::vector<std::string> rank_file_formats();

// `hosts`, the k-th with ranks k G to k G + G - 1.
//   slurm    a line for each rank: for SLURM_HOSTFILE with --distribution=arbitrary
//   openmpi  "rank 3=host0 slot=3": for mpirun --rankfile
//   pytorch  "0 host5": a line for each node rank of torchrun; the first is the master
// `format` must be one of the formats.
std::string rank_file(std::string_view format, std::span<const std::string> hosts,
                      std::uint32_t gpus_per_host);

}  // namespace weft::plan::place
