// Auto-scalers on a series of demand, as a dry run: what each would have violated, and cost.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "plan/scale/demand.hpp"

namespace weft::plan::scale {

struct Service {
  double capacity = 1;        // demand of a step that one replica can serve
  double limit = 0.9;         // utilisation above which a step's demand counts as violated
  std::size_t start_up = 15;  // steps from asking for a replica to its serving; at least 1
  std::size_t stabilisation =
      5;  // steps: fewer replicas than at any time in these are not asked for
  std::uint32_t least = 1, most = 1'000'000;
  double step_hours = 1.0 / 60;
};

// reactive: the Kubernetes Horizontal Pod Autoscaler: replicas x utilisation / target, and nothing
// within its tolerance of 10 %. predictive: predict_peaks(), and never less than demand now.
// hybrid: the larger of that and reactive with a target of 0.75. oracle: knows what comes.
enum class PolicyKind : std::uint8_t { reactive, predictive, hybrid, oracle };
inline constexpr auto policy_kind_names =
    std::to_array<std::string_view>({"reactive", "predictive", "hybrid", "oracle"});
constexpr std::span<const std::string_view> names_of(PolicyKind) { return policy_kind_names; }
constexpr std::string_view to_text(PolicyKind kind) { return name_of(kind); }

struct Policy {
  PolicyKind kind = PolicyKind::reactive;
  double setting = 0.6;  // reactive: target utilisation; predictive, hybrid: quantile
};
// "reactive:0.6"; "oracle". Fails: Errc::unknown, Errc::parse, Errc::value.
Result<Policy> parse_policy(const Token& token);
std::string to_text(const Policy& policy);

struct Outcome {
  Policy policy;
  double violated = 0;       // share of all demand that came in steps above the limit
  double replica_hours = 0;  // replicas that start count too
  std::uint32_t peak = 0;    // replicas
  // By step from `from` on: serving, and asked for.
  std::vector<std::uint32_t> serving, asked;
};

// Runs one policy over [from, end). What is decided at a step depends on the demand up to it alone
// (but for oracle). Starts with what the demand at `from` needs. Cost: O(steps).
Outcome simulate(const Demand& demand, std::size_t from, const Service& service,
                 const Policy& policy);

// Many, on `threads` threads, in order.
std::vector<Outcome> simulate_all(const Demand& demand, std::size_t from, const Service& service,
                                  std::span<const Policy> policies, unsigned threads);

// Settings that draw the curve of a kind.
std::vector<Policy> curve_of(PolicyKind kind);

// Replica-hours of a kind's curve where it violates that share, on a line in the logarithm of the
// share between its neighbours, the cheaper one of equals; NaN outside the curve.
double hours_at(std::span<const Outcome> outcomes, PolicyKind kind, double violated);

}  // namespace weft::plan::scale
