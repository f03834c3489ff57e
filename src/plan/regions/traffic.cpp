#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

#include "base/csv.hpp"
#include "plan/regions/regions.hpp"

namespace weft::plan::regions {
namespace {

constexpr double hour_seconds = day_seconds / hours;

std::uint32_t first_of(std::uint64_t set) {
  return static_cast<std::uint32_t>(std::countr_zero(set));
}
template <class Use>
void each_region(std::uint64_t set, const Use& use) {
  for (; set != 0; set &= set - 1) use(first_of(set));
}

const std::string& site_of(const Region& region) {
  return region.site.empty() ? region.name : region.site;
}

Hourly constant(double bps) {
  Hourly out;
  out.fill(bps);
  return out;
}

// Of windows that begin at `at`, `at` + `every`, ... and go on past midnight into the morning.
Hourly periodic(double bytes, const Period& period) {
  if (period.within >= period.every) return constant(8 * bytes / period.every);
  Hourly out{};
  const double bps = 8 * bytes / period.within;
  const auto windows = static_cast<std::uint32_t>(std::llround(day_seconds / period.every));
  for (std::uint32_t k = 0; k < windows; ++k) {
    const double begin = std::fmod(period.at + k * period.every, day_seconds);
    for (std::size_t h = 0; h < 2 * hours; ++h) {
      const double hour = static_cast<double>(h) * hour_seconds;
      const double shared =
          std::min(begin + period.within, hour + hour_seconds) - std::max(begin, hour);
      if (shared > 0) out[h % hours] += bps * shared / hour_seconds;
    }
  }
  return out;
}

class Collector {
 public:
  Collector(const Problem& problem, const Plan& plan)
      : problem_(problem), plan_(plan), cycle_(problem.life_cycle) {}

  Traffic collect() {
    add_replication();
    for (const Ingest& row : cycle_.ingest)
      add(row.from, first_of(problem_.data[row.data].at), Cause::ingest,
          daily(row.from, 8 * row.bytes / day_seconds));
    add_freshness();
    for (const Checkpoints& row : cycle_.checkpoints)
      each_region(row.to, [&](std::uint32_t to) {
        add(plan_.region[row.job], to, Cause::checkpoints, periodic(row.bytes, row.period));
      });
    for (const Inference& row : cycle_.inference) add_inference(row);
    for (const Other& row : cycle_.other) add(row.from, row.to, Cause::other, constant(row.bps));
    return finish();
  }

 private:
  void add(std::uint32_t from, std::uint32_t to, Cause cause, const Hourly& bps) {
    const auto c = static_cast<std::size_t>(cause);
    const std::string &a = site_of(problem_.regions[from]), &b = site_of(problem_.regions[to]);
    if (a == b) {
      local_[c] += std::accumulate(bps.begin(), bps.end(), 0.0) / hours;
      return;
    }
    Hourly& sum = sums_.try_emplace({cause, a, b}).first->second;
    for (std::size_t h = 0; h < hours; ++h) sum[h] += bps[h];
  }

  // `mean` spread over the day as the users of a region live it.
  Hourly daily(std::uint32_t region, double mean) const {
    Hourly out;
    for (std::size_t h = 0; h < hours; ++h) {
      const auto local = static_cast<std::int32_t>(h + hours) + problem_.regions[region].utc;
      out[h] = mean * cycle_.day[static_cast<std::size_t>(local) % hours];
    }
    return out;
  }

  void add_replication() {
    for (const Copy& copy : plan_.copies)
      add(copy.from, copy.to, Cause::replication,
          periodic(problem_.data[copy.data].bytes * due_in_a_day(),
                   {.within = std::min(cycle_.replication_seconds, day_seconds)}));
  }
  double due_in_a_day() const { return std::min(1.0, day_seconds / cycle_.replication_seconds); }

  void add_freshness() {
    std::vector<std::uint64_t> held;
    for (const DataSet& set : problem_.data) held.push_back(set.at);
    for (const Copy& copy : plan_.copies) held[copy.data] |= std::uint64_t{1} << copy.to;
    for (const Freshness& row : cycle_.freshness) {
      const std::uint32_t home = first_of(problem_.data[row.data].at);
      each_region(held[row.data] & ~(std::uint64_t{1} << home), [&](std::uint32_t to) {
        add(home, to, Cause::freshness, periodic(row.bytes, row.period));
      });
    }
  }

  void add_inference(const Inference& row) {
    const auto send = [&](std::uint32_t from, std::uint32_t to, double bytes_per_s) {
      if (bytes_per_s > 0) add(from, to, Cause::inference, daily(row.users, 8 * bytes_per_s));
    };
    const std::uint32_t decodes = plan_.region[row.job];
    const std::uint32_t reads = row.prefill ? plan_.region[*row.prefill] : decodes;
    send(row.users, reads, row.prompt_tokens_per_s * row.bytes_per_token);
    if (row.prefill) send(reads, decodes, row.prompt_tokens_per_s * row.kv_bytes_per_token);
    send(decodes, row.users, row.tokens_per_s * row.bytes_per_token);
  }

  Traffic finish() {
    Traffic out{.demands = {}, .local_bps = local_};
    for (const auto& [key, bps] : sums_) {
      const auto& [cause, from, to] = key;
      out.demands.push_back(
          {from, to, cause, cycle_.classes[static_cast<std::size_t>(cause)], bps});
    }
    return out;
  }

  const Problem& problem_;
  const Plan& plan_;
  const LifeCycle& cycle_;
  std::map<std::tuple<Cause, std::string, std::string>, Hourly> sums_;
  std::array<double, cause_count> local_{};
};

}  // namespace

Traffic traffic_of(const Problem& problem, const Plan& plan) {
  return Collector(problem, plan).collect();
}

std::string demands_csv(const Traffic& traffic, Replication replication) {
  std::string out = "src,dst,rate,class,cause,time\n";
  for (std::size_t h = 0; h < hours; ++h)
    for (const TrafficDemand& d : traffic.demands)
      if (d.cause != Cause::replication || replication == Replication::as_demands)
        out += fmt::format("{},{},{:.0f} bps,{},{},{:02}:00\n", csv_cell(d.from), csv_cell(d.to),
                           d.bps[h], d.priority, to_text(d.cause), h);
  return out;
}

std::string transfers_csv(const Problem& problem, const Plan& plan) {
  const double within = problem.life_cycle.replication_seconds;
  std::string out = "id,src,dst,size,release,deadline\n";
  for (std::size_t i = 0; i < plan.copies.size();) {
    const Copy& first = plan.copies[i];
    const std::string& from = site_of(problem.regions[first.from]);
    std::vector<std::string> to;
    for (; i < plan.copies.size() && plan.copies[i].data == first.data; ++i)
      to.push_back(site_of(problem.regions[plan.copies[i].to]));
    std::ranges::sort(to);
    to.erase(std::ranges::unique(to).begin(), to.end());
    std::erase(to, from);
    if (to.empty()) continue;
    const DataSet& set = problem.data[first.data];
    out += fmt::format("{},{},{},{:.0f} B,0 h,{} s\n", csv_cell(set.name), csv_cell(from),
                       csv_cell(fmt::format("{}", fmt::join(to, ";"))),
                       std::ceil(set.bytes * std::min(1.0, day_seconds / within)),
                       std::min(within, day_seconds));
  }
  return out;
}

}  // namespace weft::plan::regions
