// What a count of losses says about the rate behind it.
#pragma once

#include <cstdint>

namespace weft::observe::sli {

// P(X >= hits) of X ~ Bin(trials, p), 0 <= p <= 1, hits <= trials.
// Relative error below 1e-3 (1e-9 for less than 1e6 trials); beyond 100,000 hits the normal
// approximation. Cost: some microseconds at most.
// From: NIST Digital Library of Mathematical Functions, 8.17.5 and 8.17.22.
double upper_tail(std::uint64_t hits, std::uint64_t trials, double p);

struct Interval {
  double low = 0, high = 1;
};

// The rates that `hits` of `trials` do not exclude, (1 - confidence) / 2 on either side; [0, 1]
// for no trials.
// From: Clopper, Pearson, "The use of confidence or fiducial limits illustrated in the case of the
// binomial", Biometrika 26 (1934). Never too narrow.
Interval exact_interval(std::uint64_t hits, std::uint64_t trials, double confidence);

}  // namespace weft::observe::sli
