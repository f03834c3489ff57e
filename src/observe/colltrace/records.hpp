// What traces say of a job, as records for triage.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/timestamp.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/colltrace/network.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::observe::colltrace {

// What the report holds against parts of the fabric with a probability of at least 0.5, and with
// some effect on the job, as records for triage: of kind job_slow, or queue_depth where it is load.
// Attributes: "job", "cause", "factor", "message". At the time of the job's latest event, which
// their ids end with; or `at`, for whoever judges a job while it runs.
model::RecordSet to_records(const model::Fabric& fabric, const Job& job, std::string_view job_name,
                            const NetworkReport& report, std::optional<Timestamp> at = {});

// Of a job that is stalled, for each host with a rank that is stuck or dead: a record of kind
// job_hang, with the attributes "job", "finding", "ranks" and "message", and an id as above. None
// where the ranks of one verdict are on several hosts, or where none is known, and none of what the
// program did (another operation, size, type or order): that is no fault of a host. `gpus`: by
// rank, as place_ranks() has them.
void add_hang_records(const model::Fabric& fabric, const Job& job, const Report& report,
                      std::span<const model::NodeId> gpus, std::string_view job_name,
                      std::optional<Timestamp> at, model::RecordSet& to);

}  // namespace weft::observe::colltrace
