// weft colltrace --hashes: which rank, edge or input makes replicas differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cli.hpp"

namespace weft::cli {

struct HashesArgs {
  std::vector<std::string> paths;      // CSV files, or folders with them
  std::string fabric, hosts, records;  // as of weft colltrace
  std::string job;
  std::uint32_t ranks_per_host = 8;
};

int run_hashes(const Common& common, const HashesArgs& args);

}  // namespace weft::cli
