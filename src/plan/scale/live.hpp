// An auto-scaler on a series that still grows: what weft scale tries out, carried on as demand is
// measured.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "plan/scale/scale.hpp"

namespace weft::plan::scale {

// Where replicas may run, and how many: `most` of all pools is the budget.
struct Pool {
  std::string site;
  std::uint32_t most = 0;
};

struct Sample {
  Timestamp t;
  double value = 0;
};

struct LiveSettings {
  std::string name, tenant;  // the tenant is the namespace of its replicas
  std::string series;        // path of the history; "": none
  std::string query;         // of Prometheus; "": samples are pushed
  std::int64_t step_ns = 0;
  Service service;
  Policy policy;
  std::size_t stale_steps = 5;  // without a value, until nothing is said any more
  std::vector<Pool> pools;      // none: one, without a name
};

inline constexpr std::size_t live_services_max = 100;

// YAML: prometheus: {url, token, ca_file}; services: [{name, tenant, series, query, step, capacity,
// start_up, limit, policy, min, max, pools: [{site, max}], stale}]. Fails with all that is wrong.
struct LiveConfig {
  std::string prometheus, token_file, ca_file;
  std::vector<LiveSettings> services;
};
Result<LiveConfig> read_live(const Config& config);

// Any thread.
class LiveScaler {
 public:
  struct Wish {
    Timestamp t;  // of the last value
    double demand = 0;
    std::vector<std::pair<std::string, std::uint32_t>> replicas;  // by pool, in the order given
    std::uint32_t all() const;
  };

  // `history`: of the same step, or without values. Fails: Errc::value where steps differ.
  static Result<std::unique_ptr<LiveScaler>> open(LiveSettings settings,
                                                  observe::forecast::Series history);

  // Takes samples behind the last one, in order of time; steps without one are gaps. A sample
  // belongs to the step that it lies nearest to. Returns how many were taken: those not behind the
  // last are left out. Fails and takes nothing: Errc::value for values that are no demand, times
  // out of order, and more than a month ahead of the last.
  // Cost: some 20 us for each step of the last 23 days.
  Result<std::size_t> push(std::span<const Sample> samples);

  // What the policy asks for after the last value; filled into pools in their order. Fails:
  // Errc::infeasible where there is no value, or the last one is stale at `now`.
  Result<Wish> wish(Timestamp now) const;
  // Behind which samples are new; none at the start.
  std::optional<Timestamp> last() const;
  const LiveSettings& settings() const { return settings_; }

  LiveScaler(LiveSettings settings, observe::forecast::Series series);  // for open()

 private:
  void decide();  // with the lock held

  const LiveSettings settings_;
  mutable std::mutex mutex_;
  observe::forecast::Series series_;
  std::size_t from_ = 0;  // since when it asks for replicas
  bool has_begun_ = false;
  std::uint32_t asked_ = 0;
};

// "time,value" lines under that header, times RFC 3339 or nanoseconds. Fails: as a CSV.
Result<std::vector<Sample>> read_samples(std::string_view csv, const std::string& file);
// Prometheus's answer to a range query. Fails: Errc::value where it is none, holds more than one
// series, or a value that is no number; an empty one gives no samples.
Result<std::vector<Sample>> read_range_answer(std::string_view json, const std::string& what);

}  // namespace weft::plan::scale
