// Exchanges of equal parts between all pairs of a group.
#pragma once

#include <string>

#include "workload/collective/algorithm.hpp"

namespace weft::workload {

// Everybody sends `bytes` to everybody else, all at once.
Stage all_pairs(const Job& job, std::string name, double bytes);

}  // namespace weft::workload
