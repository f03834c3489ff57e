// How many hosts are out of service at once, by simulation.
#pragma once

#include <cstdint>
#include <vector>

#include "plan/spares/hosts_out.hpp"
#include "plan/spares/outages.hpp"

namespace weft::plan::spares {

struct SimulateOptions {
  double years = 1000;
  std::uint64_t seed = 1;
  std::uint32_t threads = 1;
};

struct Simulated {
  double years = 0;
  double mean = 0;
  Tail above;
  std::vector<double> crossings_per_year;  // by s: from s or less to more than s
  std::vector<Tail> above_of_zone;
  double waiting = 0;  // repairs that wait for a crew, in the mean
};

// Beyond the closed form: a host that is out does not fail, nor count twice; lemons fail more
// often, the total rate being what the events say; repairs wait for one of `crews`, first come,
// first served. Spares are among the hosts and fail like others. Hosts of an event come back
// together. The years are divided into runs of at most 50, each begun with everything in service
// and watched after a start of ten mean repairs. Same seed, same numbers, on any number of threads.
// Cost: some 70 ns an event and thread; 10,000 years of 3,072 hosts have 66 million.
Simulated simulate(const Outages& outages, const SimulateOptions& options);

}  // namespace weft::plan::spares
