// The sections of a problem file that say what regions send each other.
#pragma once

#include "base/config.hpp"
#include "plan/regions/regions.hpp"

namespace weft::plan::regions {

// ingest:, freshness:, checkpoints:, inference:, other:, replication:, day: and classes:, into
// problem.life_cycle; the regions, data sets and jobs are read before. Adds every error.
void read_life_cycle(Reader& reader, Problem& problem, Errors& errors);

}  // namespace weft::plan::regions
