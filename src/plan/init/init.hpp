// A first scenario from four answers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"

namespace weft::plan::init {

struct Wish {
  std::uint64_t gpus = 0;
  std::string gpu = "h100";         // of gpu_choices()
  std::string model = "llama3-8b";  // of workload::model_names()
  std::string fabric = "ai_zone";   // of fabric_choices()
};

// Products that both a host and compute times are known of.
std::vector<std::string> gpu_choices();
struct FabricChoice {
  std::string name, what;
};
// Generators for which sizes follow from the number of hosts.
std::vector<FabricChoice> fabric_choices();

// The scenario as YAML, a comment beside every number that was chosen. `weft run` accepts it.
// Fails: Errc::unknown for a name that is none; Errc::infeasible where the GPUs are no whole hosts
// or NVLink domains, with the nearest numbers that are, or where the model does not fit.
// Cost: milliseconds.
Result<std::string> first_scenario(const Wish& wish);

}  // namespace weft::plan::init
