// The interval of a run in which the fabric was busiest.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "engine/jobs/jobs.hpp"

namespace weft::engine {

// Of `count` intervals of `width_s` seconds from the start on, that in which the fullest cable
// between NICs and switches of the back end is fullest (to 1 %) and, of several, that in which
// these cables carry most. `bytes_of(i)`: by LinkId. Nothing where they carry nothing.
std::optional<BusyInterval> busiest_interval(
    const Fabric& fabric, double width_s, std::size_t count,
    const std::function<std::vector<double>(std::size_t interval)>& bytes_of);

}  // namespace weft::engine
