// Measured compute times of a job's ranks.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::plan {

// Reads a CSV with the columns rank and seconds, and maybe step (not used: rows of one rank are its
// samples). Out: for each of `ranks` the median of its samples by the median over all ranks.
// Fails: Errc::parse on what is not such a file, Errc::value on a time that is not above 0, a rank
// beyond the job's or one without a sample, and a factor above 1e6. Cost: O(rows log rows).
Result<std::vector<double>> read_compute_factors(std::string_view csv, const std::string& file,
                                                 std::size_t ranks);

}  // namespace weft::plan
