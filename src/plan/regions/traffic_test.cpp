#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "plan/backbone/bulk.hpp"
#include "plan/regions/regions.hpp"

namespace weft::plan::regions {
namespace {

constexpr std::uint32_t minutes = 1440;

std::uint32_t below(Rng& rng, std::size_t n) { return static_cast<std::uint32_t>(rng.below(n)); }

Period draw_period(Rng& rng) {
  constexpr std::array<std::uint32_t, 7> periods{60, 120, 180, 240, 480, 720, 1440};
  const std::uint32_t every = periods[below(rng, periods.size())];
  const std::uint32_t within = rng.below(3) == 0 ? every : 1 + below(rng, every);
  return {60.0 * every, 60.0 * within, 60.0 * below(rng, minutes)};
}

// Jobs and sets here and there; what the plan says of loads and bytes is not read.
std::pair<Problem, Plan> draw_case(std::uint64_t seed) {
  Rng rng(seed);
  Problem p;
  Plan plan;
  const std::uint32_t regions = 5;
  for (std::uint32_t r = 0; r < regions; ++r)
    p.regions.push_back({.name = fmt::format("r{}", r),
                         .gpus = 8,
                         .site = fmt::format("s{}", r == 4 ? 3 : r),  // two at one site
                         .utc = static_cast<std::int32_t>(rng.below(27)) - 12});
  for (std::uint32_t d = 0; d < 4; ++d) {
    p.data.push_back({fmt::format("d{}", d), 1e12 * (1 + below(rng, 9)), 1 + rng.below(30)});
    for (std::uint32_t r = 0; r < regions; ++r)
      if ((p.data[d].at >> r & 1) == 0 && rng.below(3) == 0)
        plan.copies.push_back({d, static_cast<std::uint32_t>(std::countr_zero(p.data[d].at)), r});
  }
  for (std::uint32_t j = 0; j < 6; ++j) {
    p.jobs.push_back({.name = fmt::format("j{}", j), .gpus = 1, .data = {}, .within = 31});
    plan.region.push_back(below(rng, regions));
  }
  LifeCycle& l = p.life_cycle;
  for (double& users : l.day) users = static_cast<double>(rng.below(10));
  l.day[7] += 1;
  const double sum = std::accumulate(l.day.begin(), l.day.end(), 0.0);
  for (double& users : l.day) users *= hours / sum;
  l.replication_seconds = rng.below(2) == 0 ? 3600.0 * (1 + below(rng, 23)) : 86'400.0 * 3;
  for (int i = 0; i < 3; ++i) {
    l.ingest.push_back({below(rng, 4), below(rng, regions), 1e12 * (1 + below(rng, 9))});
    l.freshness.push_back({below(rng, 4), 1e11 * (1 + below(rng, 9)), draw_period(rng)});
    l.checkpoints.push_back(
        {below(rng, 6), 1e11 * (1 + below(rng, 9)), 1 + rng.below(31), draw_period(rng)});
    l.inference.push_back({.job = below(rng, 6),
                           .users = below(rng, regions),
                           .prompt_tokens_per_s = 1e5 * below(rng, 9),
                           .tokens_per_s = 1e5 * below(rng, 9),
                           .bytes_per_token = 8,
                           .prefill = std::nullopt,
                           .kv_bytes_per_token = 1000});
    if (rng.below(2) == 0) l.inference.back().prefill = below(rng, 6);
    l.other.push_back({below(rng, regions), below(rng, regions), 1e9});
  }
  return {std::move(p), std::move(plan)};
}

// The second hand: bytes of each minute of the day, from what the rows say.
class Minutes {
 public:
  Minutes(const Problem& p, const Plan& plan) : p_(p) {
    const LifeCycle& l = p.life_cycle;
    for (const Copy& c : plan.copies) {
      const double span = l.replication_seconds / 60;
      for (std::uint32_t m = 0; m < minutes && m < span; ++m)
        put(Cause::replication, c.from, c.to, m, p.data[c.data].bytes / span);
    }
    for (const Ingest& row : l.ingest)
      for (std::uint32_t m = 0; m < minutes; ++m)
        put(Cause::ingest, row.from, home(row.data), m, row.bytes * share(row.from, m));
    for (const Freshness& row : l.freshness)
      for (std::uint32_t r = 0; r < p.regions.size(); ++r)
        if (r != home(row.data) && holds(plan, row.data, r))
          windows(Cause::freshness, home(row.data), r, row.bytes, row.period);
    for (const Checkpoints& row : l.checkpoints)
      for (std::uint32_t r = 0; r < p.regions.size(); ++r)
        if ((row.to >> r & 1) != 0)
          windows(Cause::checkpoints, plan.region[row.job], r, row.bytes, row.period);
    for (const Inference& row : l.inference)
      for (std::uint32_t m = 0; m < minutes; ++m) {
        const std::uint32_t at = plan.region[row.job], users = row.users;
        const std::uint32_t reads = row.prefill ? plan.region[*row.prefill] : at;
        const double part = 86'400 * share(users, m);
        put(Cause::inference, users, reads, m, row.prompt_tokens_per_s * 8 * part);
        if (row.prefill) put(Cause::inference, reads, at, m, row.prompt_tokens_per_s * 1000 * part);
        put(Cause::inference, at, users, m, row.tokens_per_s * 8 * part);
      }
    for (const Other& row : l.other)
      for (std::uint32_t m = 0; m < minutes; ++m)
        put(Cause::other, row.from, row.to, m, row.bps * 60 / 8);
  }

  double bps(Cause cause, const std::string& from, const std::string& to, std::size_t hour) {
    const std::array<double, minutes>& all = bytes_[{cause, from, to}];
    double sum = 0;
    for (std::size_t m = 60 * hour; m < 60 * hour + 60; ++m) sum += all[m];
    return sum * 8 / 3600;
  }
  double total() const {
    double sum = 0;
    for (const auto& [key, all] : bytes_) sum += std::accumulate(all.begin(), all.end(), 0.0);
    return sum;
  }
  double local = 0;  // bytes

 private:
  std::uint32_t home(std::uint32_t data) const {
    std::uint32_t r = 0;
    while ((p_.data[data].at >> r & 1) == 0) ++r;
    return r;
  }
  bool holds(const Plan& plan, std::uint32_t data, std::uint32_t region) const {
    return (p_.data[data].at >> region & 1) != 0 ||
           std::ranges::any_of(plan.copies,
                               [&](const Copy& c) { return c.data == data && c.to == region; });
  }
  // Of a day's users, in a minute of the day in UTC.
  double share(std::uint32_t region, std::uint32_t minute) const {
    const std::int32_t local =
        (static_cast<std::int32_t>(minute) + 60 * p_.regions[region].utc + 1440) % 1440;
    return p_.life_cycle.day[static_cast<std::size_t>(local / 60)] / 24 / 60;
  }
  void windows(Cause cause, std::uint32_t from, std::uint32_t to, double bytes, const Period& w) {
    const auto every = static_cast<std::uint32_t>(w.every / 60),
               within = static_cast<std::uint32_t>(w.within / 60),
               at = static_cast<std::uint32_t>(w.at / 60);
    for (std::uint32_t m = 0; m < minutes; ++m)
      if ((m + minutes - at) % every < within) put(cause, from, to, m, bytes / within);
  }
  void put(Cause cause, std::uint32_t from, std::uint32_t to, std::uint32_t minute, double bytes) {
    if (p_.regions[from].site == p_.regions[to].site)
      local += bytes;
    else
      bytes_.try_emplace({cause, p_.regions[from].site, p_.regions[to].site})
          .first->second[minute] += bytes;
  }

  const Problem& p_;
  std::map<std::tuple<Cause, std::string, std::string>, std::array<double, minutes>> bytes_;
};

TEST_CASE("traffic of jobs: hour by hour what each minute sends") {
  double local = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    const auto [problem, plan] = draw_case(seed);
    const Traffic traffic = traffic_of(problem, plan);
    Minutes by_minute(problem, plan);
    double total = 0;
    for (const TrafficDemand& d : traffic.demands)
      for (std::size_t h = 0; h < hours; ++h) {
        CAPTURE(to_text(d.cause));
        CHECK(d.bps[h] == approx(by_minute.bps(d.cause, d.from, d.to, h)).epsilon(1e-9));
        total += d.bps[h] * 3600 / 8;
      }
    CHECK(total == approx(by_minute.total()).epsilon(1e-9));  // and none is missing
    CHECK(86'400.0 / 8 * std::accumulate(traffic.local_bps.begin(), traffic.local_bps.end(), 0.0) ==
          approx(by_minute.local).epsilon(1e-9));
    local += by_minute.local;
  }
  CHECK(local > 0);
}

constexpr std::string_view head =
    "regions: [{name: e, gpus: 8, site: Boston}, {name: w, gpus: 8}, {name: u, gpus: 0, utc: -8}]\n"
    "data: [{name: x, bytes: 86400 GB, at: e}]\n"
    "jobs: [{name: a, gpus: 8, data: x, within: e}, {name: b, gpus: 8, data: x, within: w}]\n";

TEST_CASE("demands and transfers: read again by weft te and weft bulk") {
  const std::string text =
      std::string(head) +
      "ingest: [{data: x, from: u, per_day: 864 GB}]\n"
      "freshness: [{data: x, every: 6 h, within: 1 h, at: 2 h}]\n"
      "checkpoints: [{job: a, bytes: 360 GB, every: 1 h, to: w}]\n"
      "inference: [{job: b, users: u, tokens_per_s: 1000000, bytes_per_token: 10}]\n"
      "replication: {within: 2 d}\nclasses: {ingest: 2}\n";
  const auto problem = read_problem(text, "p.yaml");
  if (!problem) FAIL(problem.error().text());
  const auto plan = plan_regions(*problem, {.effort = 0.01});
  REQUIRE(plan.has_value());
  const Traffic traffic = traffic_of(*problem, *plan);
  const backbone::Wan wan{.sites = {"Boston", "w", "u"},
                          .cables = {{0, 1, 100, {}}, {1, 2, 9, {}}}};
  const std::string csv = demands_csv(traffic, Replication::as_demands);
  const auto at_two = backbone::read_demands(csv, "d", wan, "02:00");
  if (!at_two) FAIL(at_two.error().text());
  std::map<Cause, double> gbps;
  std::map<Cause, int> classes;
  for (const backbone::Demand& d : *at_two) {
    gbps[d.cause] += d.gbps;
    classes[d.cause] = d.priority + 1;
  }
  CHECK(gbps[Cause::ingest] == approx(0.08));
  CHECK(gbps[Cause::freshness] == approx(0.48));   // 216 GB in the hour
  CHECK(gbps[Cause::checkpoints] == approx(0.8));  // 360 GB an hour
  CHECK(gbps[Cause::inference] == approx(0.08));   // 10 MB/s
  CHECK(gbps[Cause::replication] == approx(4));    // 86.4 TB in 2 days
  CHECK(classes == std::map<Cause, int>{{Cause::ingest, 2},
                                        {Cause::replication, 4},
                                        {Cause::freshness, 3},
                                        {Cause::checkpoints, 2},
                                        {Cause::inference, 1}});
  CHECK(backbone::read_demands(csv, "d", wan, "03:00")->size() == at_two->size() - 1);
  // What bulk has: all but the copies, and the copies as transfers, half of each on one day.
  const backbone::Slots slots{.count = 24, .seconds = 3600};
  const auto series =
      backbone::read_series(demands_csv(traffic, Replication::as_transfers), "d", wan);
  if (!series) FAIL(series.error().text());
  const auto loads = backbone::background(*series, "", wan, slots);
  REQUIRE(loads.has_value());
  CHECK((*loads)[0 * 24 + 2] == approx(0.48 + 0.8));  // Boston to w
  CHECK((*loads)[0 * 24 + 3] == approx(0.8));
  const std::string copies = transfers_csv(*problem, *plan);
  CHECK(copies == "id,src,dst,size,release,deadline\nx,Boston,w,43200000000000 B,0 h,86400 s\n");
  const auto transfers = backbone::read_transfers(copies, "t", wan, slots);
  if (!transfers) FAIL(transfers.error().text());
  CHECK(transfers->at(0).deadline == 24);
}

std::string error_in(std::string_view sections) {
  const auto out = read_problem(std::string(head) + std::string(sections), "r.yaml");
  return out ? "none" : out.error().text();
}

TEST_CASE("what is wrong with the life cycle is said at once, with lines") {
  CHECK(error_in("ingest: [{data: y, from: u, per_day: 1 TB}]\n"
                 "checkpoints: [{job: a, bytes: 1 TB, every: 5 h, within: 1 h, to: w}]\n"
                 "day: [1, 2]\nother: []\n") ==
        "r.yaml:6:6: \"day\" must be 24 numbers of 0 or more, not all 0; write the users of each "
        "hour, from midnight of their clocks\n"
        "r.yaml:4:17: there is no data set \"y\" (did you mean \"x\"?); name one of the file's "
        "data sets\n"
        "r.yaml:5:44: \"within\" needs an \"every\" that divides a day; give e.g. every: 6 h, or "
        "leave within out: then it is sent evenly\n"
        "r.yaml:7:8: \"other\" must be a list of 1 to 100000; write one {...} for each");
  CHECK(error_in("freshness: [{data: x, every: 6 h}]\n") ==
        "r.yaml:4:13: \"bytes\" is missing, and nothing is ingested; give the bytes that change in "
        "each period, or the set's ingest:");
  const auto half = read_problem(
      "regions: [{name: u, gpus: 1, utc: 5.5}]\ndata: [{name: x, bytes: 1 TB, at: u}]\n"
      "jobs: [{name: a, gpus: 1, data: x}]\n",
      "r.yaml");
  REQUIRE_FALSE(half.has_value());
  CHECK(half.error().text() ==
        "r.yaml:1:35: \"utc\" must be whole hours; round it: traffic is by the hour");
  CHECK(error_in("replication: {within: 1 s}\n") ==
        "r.yaml:4:23: \"within\" below 1 min; give 1 min or more");
  CHECK(error_in("inference: [{job: a, users: u, tokens_per_s: 1, bytes_per_token: 1}]\n") ==
        "none");
}

}  // namespace
}  // namespace weft::plan::regions
