// Times at which nothing was measured because nothing worked: no lesson about demand.
#pragma once

#include <cstddef>
#include <cstdint>

#include "observe/forecast/series.hpp"

namespace weft::observe::forecast {

// live: each value is judged by those before it alone, so that a series which grows keeps its
// marks. afterwards: by what followed, too.
enum class Hindsight : std::uint8_t { live, afterwards };

// Makes gaps of outages; returns how many values. An outage is a value below a tenth of the least
// at the same time of the seven days before (three of them known, none within the outage itself):
// what is down at the same time again is a habit. Live, what stays down for more than a day is the
// new level from then on; afterwards, only what came back within three days was an outage. Values
// under an event stay. Nothing where some value is negative (no demand), and where a day is no
// whole number of steps, or there are no such days. Cost: O(values).
std::size_t drop_outages(Series& series, Hindsight hindsight);

}  // namespace weft::observe::forecast
