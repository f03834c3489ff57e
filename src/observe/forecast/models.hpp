// Simple forecasters. Each reads the past alone and knows nothing of the others.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace weft::observe::forecast {

struct Candidate {
  std::string name;
  std::vector<double> values;  // of the next steps
};

// Every forecaster on the values and, where all are positive, on their logarithms. `seasons` in
// steps, ascending; those with less than 2.5 periods in `past` are not used. The list of names
// depends on `seasons` alone where all values are positive and the past is long enough.
std::vector<Candidate> candidates(std::span<const double> past, std::vector<std::size_t> seasons,
                                  std::size_t horizon);

}  // namespace weft::observe::forecast
