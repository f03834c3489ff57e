#include "plan/edge/measure.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "plan/edge/program.hpp"

namespace weft::plan::edge {
namespace {

// Requests of one service by their round trip.
class Sample {
 public:
  void add(double rtt_s, double requests) {
    if (requests > 0) requests_.emplace_back(rtt_s, requests);
  }
  RoundTrips round_trips(double within_s) {
    std::ranges::sort(requests_);
    double sum = 0, in_time = 0;
    for (const auto& [rtt, requests] : requests_) {
      sum += requests;
      if (rtt <= within_s) in_time += requests;
    }
    return {rank(0.5 * sum), rank(0.95 * sum), sum > 0 ? in_time / sum : NAN};
  }

 private:
  double rank(double wanted) const {
    double sum = 0;
    for (const auto& [rtt, requests] : requests_) {
      sum += requests;
      if (sum >= wanted * (1 - 1e-9)) return rtt;
    }
    return NAN;
  }
  std::vector<std::pair<double, double>> requests_;
};

class Measure {
 public:
  Measure(const Problem& problem, const Caches& caches)
      : problem_(problem),
        caches_(caches),
        samples_(problem.services.size()),
        gpus_(problem.metros.size() + problem.data_centres.size(), 0.0),
        uplink_(problem.metros.size(), 0.0) {}

  void add(const Way& way) {
    const Use use = use_of(problem_, caches_, way);
    const double requests = problem_.areas[way.area].requests[way.service] * way.share;
    const double left = missed(problem_, caches_, way.metro, way.service);
    samples_[way.service].add(problem_.rtt(way.area, way.metro), requests * (1 - left));
    samples_[way.service].add(use.rtt_s, requests * left);
    gpus_[way.centre == at_metro ? way.metro : problem_.metros.size() + way.centre] +=
        way.share * use.gpus;
    uplink_[way.metro] += way.share * use.uplink_bps;
    cost_ += way.share * use.cost();
  }
  void add_direct(std::uint32_t area, std::uint32_t service, std::uint32_t centre) {
    const double requests = problem_.areas[area].requests[service];
    const double rtt = problem_.rtt_direct(area, centre);
    const double gpus = requests * problem_.services[service].gpu_s;
    samples_[service].add(rtt, requests);
    gpus_[problem_.metros.size() + centre] += gpus;
    cost_ += gpus * problem_.data_centres[centre].gpu_price +
             requests * rtt * 3600 * 1e3 / 1e6 * problem_.delay_price;
  }

  Outcome outcome() && {
    Outcome out{.services = {}, .cost = cost_, .fullest = 0, .fullest_name = {}};
    for (std::size_t s = 0; s < samples_.size(); ++s)
      out.services.push_back(samples_[s].round_trips(problem_.services[s].within_s));
    const std::size_t metros = problem_.metros.size();
    for (std::size_t i = 0; i < gpus_.size(); ++i)
      offer(out, gpus_[i],
            i < metros ? problem_.metros[i].gpus : problem_.data_centres[i - metros].gpus,
            "GPUs of " +
                (i < metros ? problem_.metros[i].name : problem_.data_centres[i - metros].name));
    for (std::size_t m = 0; m < metros; ++m)
      offer(out, uplink_[m], problem_.metros[m].uplink_bps, "uplink of " + problem_.metros[m].name);
    return out;
  }

 private:
  static void offer(Outcome& out, double used, double capacity, std::string name) {
    if (used <= 0) return;
    const double share = capacity > 0 ? used / capacity : HUGE_VAL;
    if (share <= out.fullest) return;
    out.fullest = share;
    out.fullest_name = std::move(name);
  }

  const Problem& problem_;
  const Caches& caches_;
  std::vector<Sample> samples_;
  std::vector<double> gpus_, uplink_;
  double cost_ = 0;
};

template <class Distance>
std::uint32_t nearest(std::size_t count, const Distance& distance) {
  std::uint32_t out = 0;
  for (std::uint32_t i = 1; i < count; ++i)
    if (distance(i) < distance(out)) out = i;
  return out;
}

// Of a million answers.
double centre_cost(const Problem& problem, std::uint32_t service, std::uint32_t metro,
                   std::uint32_t centre) {
  const Service& s = problem.services[service];
  return 1e6 * (s.gpu_s / 3600 * problem.data_centres[centre].gpu_price +
                s.response_bytes / 1e9 * problem.metros[metro].uplink_price);
}

void finish_choice(const Problem& problem, const Plan& plan, Choice& out) {
  const Service& service = problem.services[out.service];
  const Metro& metro = problem.metros[out.metro];
  const std::size_t at = problem.at(out.metro, out.service);
  out.cache_bytes = plan.caches.bytes[at];
  out.hit = plan.caches.hit[at];
  const double answered = out.requests * service.content.share * out.hit;
  out.saved_gpus = answered * service.gpu_s;
  out.saved_bps = answered * service.response_bytes * 8;
  if (service.gpu_s > 0 && metro.gpus > 0)
    out.metro_cost = 1e6 * service.gpu_s / 3600 * metro.gpu_price;
  if (service.gpu_s > 0 && out.centre_cost)
    out.gpu_even = *out.centre_cost * 3600 / service.gpu_s / 1e6;
  if (answered <= 0) return;
  const double millions = answered * 3600 / 1e6, tb = out.cache_bytes / 1e12;
  out.cache_cost = metro.cache_price * tb / millions;
  double other = HUGE_VAL;
  if (out.metro_cost) other = *out.metro_cost;
  if (out.centre_cost) other = std::min(other, *out.centre_cost);
  if (std::isfinite(other)) out.cache_even = other * millions / tb;
}

}  // namespace

Outcome outcome_of(const Problem& problem, const Plan& plan, Rule rule) {
  Measure measure(problem, plan.caches);
  if (rule == Rule::plan) {
    for (const Way& way : plan.ways) measure.add(way);
    return std::move(measure).outcome();
  }
  for (std::uint32_t a = 0; a < problem.areas.size(); ++a) {
    const std::uint32_t metro =
        nearest(problem.metros.size(), [&](std::uint32_t m) { return problem.rtt(a, m); });
    const std::uint32_t behind = nearest(problem.data_centres.size(),
                                         [&](std::uint32_t d) { return problem.rtt_on(metro, d); });
    const std::uint32_t centre = nearest(problem.data_centres.size(),
                                         [&](std::uint32_t d) { return problem.rtt_direct(a, d); });
    for (std::uint32_t s = 0; s < problem.services.size(); ++s) {
      if (problem.areas[a].requests[s] <= 0) continue;
      if (rule == Rule::data_centre)
        measure.add_direct(a, s, centre);
      else
        measure.add({a, s, metro, problem.services[s].gpu_s > 0 ? at_metro : behind, 1});
    }
  }
  return std::move(measure).outcome();
}

std::vector<Choice> choices_of(const Problem& problem, const Plan& plan) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Choice> found;
  for (const Way& way : plan.ways) {
    Choice& out = found[{way.metro, way.service}];
    out.metro = way.metro;
    out.service = way.service;
    out.requests += problem.areas[way.area].requests[way.service] * way.share;
    for (std::uint32_t d = 0; d < problem.data_centres.size(); ++d) {
      const bool can_compute =
          problem.services[way.service].gpu_s <= 0 || problem.data_centres[d].gpus > 0;
      const double rtt = problem.rtt(way.area, way.metro) + problem.rtt_on(way.metro, d);
      if (!can_compute || problem.metros[way.metro].uplink_bps <= 0 ||
          rtt > problem.services[way.service].within_s)
        continue;
      const double cost = centre_cost(problem, way.service, way.metro, d);
      if (!out.centre_cost || cost < *out.centre_cost) out.centre_cost = cost;
    }
  }
  std::vector<Choice> out;
  for (auto& [key, choice] : found) {
    finish_choice(problem, plan, choice);
    out.push_back(choice);
  }
  return out;
}

Failure without_metro(const Problem& problem, const Plan& plan, std::uint32_t metro,
                      const PlanOptions& options) {
  PlanOptions after = options;
  after.down = metro;
  after.caches = plan.caches;
  for (std::size_t s = 0; s < problem.services.size(); ++s) {
    after.caches->bytes[problem.at(metro, s)] = 0;
    after.caches->hit[problem.at(metro, s)] = 0;
  }
  Failure out{.metro = metro, .plan = plan_edge(problem, after), .moves = {}};
  struct Pair {
    std::vector<double> before, now;  // shares by metro
    double rtt_before = 0, rtt = 0, served_before = 0, served = 0;
  };
  std::map<std::pair<std::uint32_t, std::uint32_t>, Pair> pairs;
  const auto mean = [&](const Caches& caches, const Way& way) {
    const double left = missed(problem, caches, way.metro, way.service);
    const double to_metro = problem.rtt(way.area, way.metro);
    return way.share * (to_metro + left * (use_of(problem, caches, way).rtt_s - to_metro));
  };
  const auto pair_of = [&](const Way& way) -> Pair& {
    Pair& pair = pairs[{way.area, way.service}];
    pair.before.resize(problem.metros.size());
    pair.now.resize(problem.metros.size());
    return pair;
  };
  for (const Way& way : plan.ways) {
    Pair& pair = pair_of(way);
    pair.before[way.metro] += way.share;
    pair.served_before += way.share;
    pair.rtt_before += mean(plan.caches, way);
  }
  for (const Way& way : out.plan.ways) {
    Pair& pair = pair_of(way);
    pair.now[way.metro] += way.share;
    pair.served += way.share;
    pair.rtt += mean(out.plan.caches, way);
  }
  for (const auto& [key, pair] : pairs) {
    if (pair.before[metro] <= 0) continue;
    Move move{.area = key.first,
              .service = key.second,
              .requests = problem.areas[key.first].requests[key.second] * pair.before[metro],
              .rtt_before_s = pair.rtt_before / pair.served_before,
              .rtt_s = pair.served > 0 ? pair.rtt / pair.served : NAN,
              .to = {}};
    // Gains of other metros may replace losses of others still: in proportion.
    double gained = std::max(0.0, pair.served_before - pair.served);
    const double lost = gained;
    for (std::size_t m = 0; m < pair.now.size(); ++m)
      gained += std::max(0.0, pair.now[m] - pair.before[m]);
    for (std::uint32_t m = 0; m < pair.now.size(); ++m)
      if (pair.now[m] - pair.before[m] > 1e-6)
        move.to.emplace_back(m, (pair.now[m] - pair.before[m]) / gained);
    move.unserved = gained > 0 && lost > 1e-6 ? lost / gained : 0;
    out.moves.push_back(std::move(move));
  }
  return out;
}

}  // namespace weft::plan::edge
