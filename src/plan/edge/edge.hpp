// Users, edge metros and data centres: where requests end, where answers are computed, and what
// metros keep in their caches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "plan/edge/popularity.hpp"

namespace weft::plan::edge {

inline constexpr std::uint32_t areas_max = 2'000, metros_max = 200, data_centres_max = 50,
                               services_max = 50;
inline constexpr std::uint64_t columns_max = 5'000'000;

// Objects all of one size that may be answered again from a cache.
struct Content {
  double share = 0;  // of the service's requests; the others are generated anew
  std::uint64_t objects = 1;
  double object_bytes = 0, zipf = 0;
};
struct Service {
  std::string name;
  double within_s = 0;  // round trip in the network, user to where it is answered
  double response_bytes = 0;
  double gpu_s = 0;  // of each request that no cache answers; 0: stored in data centres
  Content content;
};
struct Area {
  std::string name;
  std::vector<double> requests;  // per second at the peak, of each service
};
struct Metro {
  std::string name;
  double gpus = 0, gpu_price = 0;           // per GPU and hour
  double cache_bytes = 0, cache_price = 0;  // per TB and hour
  double uplink_bps = 0, uplink_price = 0;  // to the backbone; per GB
};
struct DataCentre {
  std::string name;
  double gpus = 0, gpu_price = 0;
};

struct Place {
  double latitude, longitude;  // degrees
};

struct Problem {
  std::vector<Area> areas;
  std::vector<Service> services;
  std::vector<Metro> metros;
  std::vector<DataCentre> data_centres;
  std::string currency = "USD";
  double use_max = 1;         // share of every pool and uplink that a plan may use
  double detour = 1.5;        // of fibre over the great circle
  double delay_price = 0.01;  // of a million requests that take 1 ms longer
  // Round trips in seconds, row by row: areas x metros, metros x data centres, areas x data centres
  // (direct, for comparison). `measured`: how many of the first two kinds were given.
  std::vector<double> to_metro, to_centre, direct;
  std::size_t measured = 0;
  std::vector<Place> places;  // areas, metros, data centres; none where any has none

  double rtt(std::size_t area, std::size_t metro) const {
    return to_metro[area * metros.size() + metro];
  }
  double rtt_on(std::size_t metro, std::size_t centre) const {
    return to_centre[metro * data_centres.size() + centre];
  }
  double rtt_direct(std::size_t area, std::size_t centre) const {
    return direct[area * data_centres.size() + centre];
  }
  std::size_t at(std::size_t metro, std::size_t service) const {
    return metro * services.size() + service;
  }
};

// A YAML file with areas:, services:, metros: and data_centres:, and perhaps rtt: with the path of
// a CSV file from,to,rtt, relative to the file; see docs/commands/edge.md. A pair that the CSV file
// lacks gets the time over fibre between places, at 2/3 of the speed of light in vacuum times
// `detour`. Fails with every error found: unknown or double names, pairs with neither a row nor
// places, a service that no site can answer in time, numbers out of bounds.
Result<Problem> read_problem(std::string_view yaml, const std::string& file);

inline constexpr std::uint32_t at_metro = UINT32_MAX;

// One way to answer: from `area` to `metro`, and what the cache there does not have is computed at
// the metro, or in a data centre.
struct Way {
  std::uint32_t area, service, metro;
  std::uint32_t centre;  // or at_metro
  double share;          // of the area's requests for the service
};
struct Unserved {
  std::uint32_t area, service;
  double share;
};

// Hit rates of content (of each metro and service, see Problem::at()) and bytes behind them.
struct Caches {
  std::vector<double> bytes, hit;
};
// All of each metro's cache for every service at once: more than any split can reach.
Caches whole_caches(const Problem& problem);
// The split of each metro's cache that saves most, where what the cache answers at
// metro m, service s saves at rate savings[problem.at(m, s)] (money an hour, were all its requests
// for content answered so): equal marginal savings, as Che's hit rates are concave.
Caches split_caches(const Problem& problem, const std::vector<double>& savings);

struct Plan {
  std::vector<Way> ways;  // of shares above 0, by area, service, metro, centre
  std::vector<Unserved> unserved;
  double unserved_least = 0;  // requests per second that no plan with these caches serves: proven
  Caches caches;
  double cost = 0;   // an hour at the peak
  double bound = 0;  // no plan with these caches that serves as much costs less
  double gap = 0;
  std::optional<double> bound_any;  // none with any split of the caches that serves everything
  // By site: metros, then data centres.
  std::vector<double> gpus_used, gpu_worth;       // per GPU and hour: what one more saves
  std::vector<double> uplink_used, uplink_worth;  // of metros; bit/s; per Gbit/s and hour
  std::vector<double> prices;  // of the rows of the linear program: the certificate
  std::uint32_t iterations = 0;
  double seconds = 0;
};

struct PlanOptions {
  double gap = 1e-4;
  std::uint32_t rounds_max = 4;            // of plan, split of caches, plan ... from each start
  std::optional<std::uint32_t> down = {};  // a metro that has failed
  std::optional<Caches> caches = {};       // as they are, instead of a split
};

// The plan of least cost: every request goes to one metro and is answered from its cache, or
// computed there or in a data centre behind it, all within the service's round trip. Costs: GPUs
// used, bytes over uplinks, delay; caches are there already.
// With the caches given this is a linear program, solved to `gap` with prices that prove the bound
// (see bound_at()); the split of caches is then adapted to the plan, from three first splits, and
// the best is kept. Shares stay unserved, at 200 times the cost of their dearest way, where no plan
// was found without. Same problem and options: the same plan.
Plan plan_edge(const Problem& problem, const PlanOptions& options = {});

// What no plan with these caches, that serves everything, costs less than: from prices (not
// negative) alone.
double bound_at(const Problem& problem, const Caches& caches, std::optional<std::uint32_t> down,
                const std::vector<double>& prices);
// What has no room left among what could serve it: "GPUs of paris", "uplink of oslo".
std::vector<std::string> full_sites(const Problem& problem, const Plan& plan, const Unserved& one,
                                    std::optional<std::uint32_t> down);
// What is wrong with a plan, by definition and not by the planner's own books; "" for nothing.
std::string check_plan(const Problem& problem, const Plan& plan);

}  // namespace weft::plan::edge
