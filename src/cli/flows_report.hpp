// What `weft flows` says of a result.
#pragma once

#include <string>

#include "model/fabric/flow_ids.hpp"
#include "plan/flows/flow_runs.hpp"

namespace weft::cli {

inline constexpr double us_per_s = 1e6;  // results have microseconds, JSON has seconds

// On standard output. JSON goes out flow by flow: two million of them as a tree would take a
// gigabyte. `ports_of`: the fabric, to show the counters of its ports too; may be null.
void print_json(const model::FlowIds& ids, const plan::FlowsResult& result,
                const model::Fabric* ports_of);
void print_text(const plan::FlowsResult& result, const model::Fabric* ports_of);

// What went wrong, on standard error: flows that did not finish, deadlocks, bytes that got lost in
// the books. The exit status.
int print_troubles(const plan::FlowsResult& result);

}  // namespace weft::cli
