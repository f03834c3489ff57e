// What a controller that assigns paths is told of the work.
#pragma once

#include <string>
#include <vector>

#include "engine/jobs/jobs.hpp"
#include "route/router.hpp"

namespace weft::engine {

// Declares the flows of all jobs to the router: those of one stage of the collectives together, and
// of graphs those of one kind (dimension and operation), each at its largest size. The front-end
// network is not the controller's. Returns notes on what was left out: exchanges of too many pairs
// to be assigned one by one, and what runs over them. Nothing, and no cost, unless the scheme is
// `te`.
std::vector<model::Note> declare_flows(const Work& work, route::Router& router);

}  // namespace weft::engine
