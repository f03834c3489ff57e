// Fabrics that reach so many NICs with a given switch: counts, and the `fabric:` section of each.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "plan/design/bill.hpp"

namespace weft::plan {

struct PlanRequest {
  std::int64_t nics = 0;
  Rate rate;                       // of a NIC
  std::int64_t radix = 0;          // ports of a switch at `port` or less
  Rate port;                       // faster ports are so many fewer
  double oversubscription = 1;     // at most
  std::int64_t nics_per_host = 8;  // of as many GPUs

  // Ports of a switch at that rate.
  std::int64_t ports(Rate each) const;
};
// "131072 x 800G, radix 512 x 100G, oversubscription 2, hosts of 8"; the last two and the rate
// behind the radix, which is that of the NICs then, may be left out. Fails with all that is wrong.
Result<PlanRequest> parse_plan(const Token& token);

struct Candidate {
  std::string generator;
  int tiers = 2;
  std::int64_t planes = 1;
  std::int64_t nics = 0;  // built: those asked for, up to whole hosts, racks and pods
  std::int64_t switches = 0, links = 0;
  double oversubscription = 1;  // of the tier where it is largest
  std::string yaml;             // "{generator: ai_zone, ...}"
  std::optional<Bill> bill;     // with a price table
};

// The best of each generator and number of planes, by tiers, then switches, then links. Fails:
// Errc::infeasible where nothing reaches so many NICs, and what a price table lacks.
Result<std::vector<Candidate>> plan_fabric(const PlanRequest& request, const Prices* prices);

std::string to_table(std::span<const Candidate> plans);
std::string to_json(std::span<const Candidate> plans);

}  // namespace weft::plan
