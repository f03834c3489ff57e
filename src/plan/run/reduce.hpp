// From bytes per link to what the report shows: loads per tier, heat maps, completion curves.
#pragma once

#include <span>
#include <vector>

#include "engine/fluid/job_run.hpp"
#include "model/fabric/fabric.hpp"
#include "model/work/outcome.hpp"
#include "route/router.hpp"

namespace weft::plan {

// Tiers between NICs and switches, in the order of first use going up, with the load of every
// link in `usable`: bytes over capacity and makespan. A makespan of 0 gives loads of 0.
std::vector<model::TierOutcome> tier_loads(const model::Fabric& fabric,
                                           std::span<const double> link_bytes,
                                           const std::vector<bool>& usable, double makespan_s);

// One map per pair of switch roles that are joined, lowest first.
std::vector<model::HeatMap> heat_maps(const model::Fabric& fabric,
                                      std::span<const double> link_bytes,
                                      std::span<const double> capacity, double makespan_s);

// Links that some flow of the jobs could use. Exact for chains and flows; for an exchange, between
// one NIC of each leaf switch and all others, and each NIC's own ports.
std::vector<bool> usable_links(std::span<const engine::Job> jobs, route::Router& router);

// Adds the links that carried something: those of graphs, whose flows nobody enumerates.
void mark_used(std::span<const double> link_bytes, std::vector<bool>& usable);

}  // namespace weft::plan
