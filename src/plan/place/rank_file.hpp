// Hosts in rank order as launchers read them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::plan::place {

// Names of the formats: slurm, openmpi, pytorch.
std::vector<std::string> rank_file_formats();

// `hosts`, the k-th with ranks k G to k G + G - 1.
//   slurm    a line for each rank: for SLURM_HOSTFILE with --distribution=arbitrary
//   openmpi  "rank 3=host0 slot=3": for mpirun --rankfile
//   pytorch  "0 host5": a line for each node rank of torchrun; the first is the master
// `ranks` of them: the last host may have fewer, all others have G. `format` must be one of the
// formats.
std::string rank_file(std::string_view format, std::span<const std::string> hosts,
                      std::uint32_t gpus_per_host, std::uint64_t ranks);

// The next ranks of a job, as one line of a rank file gives them.
struct RankLine {
  enum class Gpus : std::uint8_t {
    slot,   // one rank, on GPU `number` of the host
    next,   // `number` ranks, on the host's next GPUs
    whole,  // a rank for every GPU of the host
  };
  std::string host;
  Gpus gpus = Gpus::next;
  std::uint32_t number = 1;
  Where where;
};

// What rank_file() writes, in rank order whatever the order of lines, and MPI host files
// ("host0 slots=8"); "#" begins a comment. The form is told from the first line and is that of all.
// Fails: Errc::parse on a line of no form or of another one, Errc::value on ranks that repeat or
// leave a gap, on no line at all, and on more than 10^6.
Result<std::vector<RankLine>> read_rank_file(std::string_view text, const std::string& file);

}  // namespace weft::plan::place
