// What was found about a job, as `weft colltrace --json` and the service's API give it.
#pragma once

#include "base/json_text.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/colltrace/network.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::observe::colltrace {

struct JudgedNetwork {
  const model::Fabric& fabric;
  const NetworkReport& report;
};

// Keys: ranks, missing, operations, waiting (counts), hang, verdicts (finding, ranks, hosts where
// traces name them, groups, factor or seq, operation, expected, found, meaning), network where it
// was judged (sums, suspects, expected, slow_fabric, counts of evidence), unknown_keys, notes.
JsonObject to_json(const Job& job, const Report& report, const JudgedNetwork* network);

}  // namespace weft::observe::colltrace
