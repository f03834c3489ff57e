// Fabrics from the `fabric:` section of a scenario.
#pragma once

#include <string>
#include <vector>

#include "base/config.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// Builds the fabric that `section` describes: `generator: NAME` with its keys, `file: PATH` (a
// scenario, an exported fabric, a Slurm topology, the output of ibnetdiscover, a list of cables
// or an ASTRA-sim network; relative to the naming file), or nodes and links written out. Fails with
// every error found, each with its position.
Result<Fabric> build_fabric(const Config& section);

std::vector<std::string> generator_names();

}  // namespace weft::model
