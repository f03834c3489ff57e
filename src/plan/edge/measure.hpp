// What a plan means: round trips against simpler plans, cache against compute, a metro that fails.
#pragma once

#include "plan/edge/edge.hpp"

namespace weft::plan::edge {

struct RoundTrips {
  double median_s = 0, p95_s = 0;  // nearest rank, by requests
  double within = 0;               // share of requests in time
};

enum class Rule : std::uint8_t {
  plan,
  nearest,      // everyone to the nearest metro; computed there, stored content behind it
  data_centre,  // everyone to the nearest data centre, no metros
};
// What everyone would get by a rule, whether or not there is room: no limit is looked at.
struct Outcome {
  std::vector<RoundTrips> services;
  double cost = 0;     // without the bytes between users and data centres
  double fullest = 0;  // most used share of a pool or uplink; infinite where it has nothing
  std::string fullest_name;
};
// `nearest` has the plan's caches.
Outcome outcome_of(const Problem& problem, const Plan& plan, Rule rule);

// A service at a metro that the plan sends requests to; prices are list prices.
struct Choice {
  std::uint32_t metro = 0, service = 0;
  double requests = 0;                   // per second
  double cache_bytes = 0, hit = 0;       // of requests for content that may be cached
  double saved_gpus = 0, saved_bps = 0;  // by the cache: at the origin, on the uplink
  // Of a million answers: from the cache as it is, computed at the metro, at the cheapest data
  // centre in time; none where that cannot be.
  std::optional<double> cache_cost, metro_cost, centre_cost;
  // The price of a TB of cache and hour at which the cache costs what the cheapest other does, and
  // of a GPU and hour at the metro at which computing there costs what the data centre does.
  std::optional<double> cache_even, gpu_even;
};
std::vector<Choice> choices_of(const Problem& problem, const Plan& plan);

// Where requests go that ended at a metro which has failed, others as they then must; caches stay.
struct Move {
  std::uint32_t area = 0, service = 0;
  double requests = 0;                 // per second that ended there
  double rtt_before_s = 0, rtt_s = 0;  // means of all the area's requests for the service
  std::vector<std::pair<std::uint32_t, double>> to;  // metro, gained share of `requests`
  double unserved = 0;                               // of `requests`
};
struct Failure {
  std::uint32_t metro = 0;
  Plan plan;
  std::vector<Move> moves;
};
Failure without_metro(const Problem& problem, const Plan& plan, std::uint32_t metro,
                      const PlanOptions& options);

std::string to_table(const Problem& problem, const Plan& plan, const Failure* failure,
                     std::size_t rows);
std::string to_json(const Problem& problem, const Plan& plan, const Failure* failure);
// area,service,metro,computed_at,share,requests_per_s,from_cache,rtt_ms; no metro:
// not served.
std::string ways_csv(const Problem& problem, const Plan& plan);

// Map of the sites, of requests to metros and of loads on uplinks; with a failure, as it is then.
// Fails: Errc::value where the problem lacks places.
Result<std::string> to_svg(const Problem& problem, const Plan& plan, const Failure* failure);

}  // namespace weft::plan::edge
