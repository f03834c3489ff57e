// What the collectives of a job should take by the cost model. Internal to the room.
#pragma once

#include <optional>
#include <vector>

#include "observe/colltrace/network.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::observe::colltrace {

struct KnownCall {
  workload::Op op;
  double bytes;  // as nccl-tests count them
};
// A signature as a call, if it is one that the cost model knows; `members`: of its group.
std::optional<KnownCall> known_call(const Signature& signature, std::size_t members);

// Kinds of at least 2 MiB whose groups reach over hosts, by description, call and size.
std::vector<Expected> expected_times(const Job& job, const Report& report,
                                     const NetworkInput& input);

}  // namespace weft::observe::colltrace
