// Copies of tokens that travel to their experts.
#pragma once

#include <cstdint>
#include <functional>

#include "model/work/step_cost.hpp"

namespace weft::workload {

// How many of `parts` equal parts of all experts a token's experts are in, on average, where it
// takes any `per_token` of the experts of any `groups_per_token` groups. The limit counts where
// groups and parts nest.
double parts_met(const model::CommWork::OncePerHost& tokens, std::uint32_t parts);

// Reduces the bytes of expert exchanges to one copy for each host, or for each rank of a group
// inside one host, and marks them as done. `host_of` a rank: any number. Groups need not lie alike:
// the mean of their hosts counts. Cost: O(ranks).
void send_once_per_host(model::StepCost& cost,
                        const std::function<std::uint32_t(std::uint32_t)>& host_of);

}  // namespace weft::workload
