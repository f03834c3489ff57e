#include "plan/scale/scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "base/check.hpp"
#include "base/parallel.hpp"
#include "plan/scale/predictor.hpp"

namespace weft::plan::scale {
namespace {

constexpr double reactive_tolerance = 0.1;  // of the HPA's controller, by default
constexpr double hybrid_target = 0.75;

std::uint32_t replicas_for(const Service& service, double demand, double utilisation) {
  const double wanted = std::ceil(demand / service.capacity / utilisation);
  return static_cast<std::uint32_t>(
      std::clamp(wanted, static_cast<double>(service.least), static_cast<double>(service.most)));
}

// Replicas that serve and those that start, oldest first.
class Replicas {
 public:
  Replicas(const Service& service, std::uint32_t serving) : service_(service), serving_(serving) {}

  void arrive(std::size_t now) {
    for (; !starting_.empty() && starting_.front().ready <= now; starting_.pop_front()) {
      serving_ += starting_.front().count;
      pending_ -= starting_.front().count;
    }
  }
  // Fewer only where fewer were asked for all through the stabilisation window.
  void ask(std::size_t now, std::uint32_t wanted) {
    asked_.push_back(wanted);
    if (asked_.size() > std::max<std::size_t>(1, service_.stabilisation)) asked_.pop_front();
    if (wanted > all()) {
      starting_.push_back({now + std::max<std::size_t>(1, service_.start_up), wanted - all()});
      pending_ += starting_.back().count;
      return;
    }
    const std::uint32_t keep = *std::ranges::max_element(asked_);
    std::uint32_t surplus = all() - std::min(all(), keep);
    for (; surplus > 0 && !starting_.empty();) {  // those that serve nobody yet, youngest first
      const std::uint32_t gone = std::min(surplus, starting_.back().count);
      starting_.back().count -= gone;
      pending_ -= gone;
      surplus -= gone;
      if (starting_.back().count == 0) starting_.pop_back();
    }
    serving_ -= surplus;
  }
  std::uint32_t serving() const { return serving_; }
  std::uint32_t all() const { return serving_ + pending_; }

 private:
  struct Batch {
    std::size_t ready;
    std::uint32_t count;
  };
  const Service& service_;
  std::uint32_t serving_, pending_ = 0;
  std::deque<Batch> starting_;
  std::deque<std::uint32_t> asked_;
};

class Scaler {
 public:
  Scaler(const Demand& demand, const Service& service, const Policy& policy)
      : demand_(demand), service_(service), policy_(policy) {
    if (policy.kind == PolicyKind::predictive || policy.kind == PolicyKind::hybrid)
      peaks_ = predict_peaks(
          demand, {.lead = service.start_up + lead_margin(), .quantile = policy.setting});
  }

  std::uint32_t wish(std::size_t t, std::uint32_t serving) const {
    switch (policy_.kind) {
      case PolicyKind::reactive:
        return reactive(t, serving, policy_.setting);
      case PolicyKind::predictive:
        return predictive(t);
      case PolicyKind::hybrid:
        return std::max(predictive(t), reactive(t, serving, hybrid_target));
      case PolicyKind::oracle:
        return oracle(t);
    }
    std::unreachable();
  }

 private:
  // Smoothing looks back some minutes.
  std::size_t lead_margin() const { return std::max<std::size_t>(1, demand_.steps_a_day / 720); }

  std::uint32_t reactive(std::size_t t, std::uint32_t serving, double target) const {
    const double utilisation =
        demand_.values[t] / service_.capacity / std::max<std::uint32_t>(1, serving);
    if (std::abs(utilisation / target - 1) <= reactive_tolerance) return serving;
    return replicas_for(service_, demand_.values[t], target);
  }
  std::uint32_t predictive(std::size_t t) const {
    return replicas_for(service_, std::max(peaks_[t], demand_.values[t]), service_.limit);
  }
  // Demand until what is asked for at the next step would be there.
  std::uint32_t oracle(std::size_t t) const {
    const std::size_t end = std::min(demand_.values.size(), t + service_.start_up + 1);
    return replicas_for(
        service_,
        *std::max_element(demand_.values.begin() + static_cast<std::ptrdiff_t>(t),
                          demand_.values.begin() + static_cast<std::ptrdiff_t>(end)),
        service_.limit);
  }

  const Demand& demand_;
  const Service& service_;
  const Policy& policy_;
  std::vector<double> peaks_;
};

}  // namespace

Result<Policy> parse_policy(const Token& token) {
  const std::string_view text = token.text;
  const std::size_t colon = text.find(':');
  WEFT_TRY(const auto kind,
           from_name<PolicyKind>({std::string(text.substr(0, colon)), token.where}));
  Policy out{.kind = kind, .setting = kind == PolicyKind::reactive ? 0.6 : 0.99};
  if (colon == std::string_view::npos) return out;
  WEFT_TRY(out.setting, parse_number({std::string(text.substr(colon + 1)), token.where}));
  if (!(out.setting > 0 && out.setting < 1) || kind == PolicyKind::oracle)
    return fail(
        Errc::value, token.where,
        fmt::format("\"{}\" has a setting that is not between 0 and 1, or needs none", text),
        "write e.g. reactive:0.6 (target utilisation), predictive:0.99 (quantile), oracle");
  return out;
}

std::string to_text(const Policy& policy) {
  if (policy.kind == PolicyKind::oracle) return "oracle";
  return fmt::format("{} {:g}", to_text(policy.kind), policy.setting);
}

Outcome simulate(const Demand& demand, std::size_t from, const Service& service,
                 const Policy& policy) {
  WEFT_CHECK(from < demand.values.size() && service.capacity > 0);
  const Scaler scaler(demand, service, policy);
  Replicas replicas(service, replicas_for(service, demand.values[from], service.limit));
  Outcome out{.policy = policy};
  double all = 0, violated = 0, steps = 0;
  for (std::size_t t = from; t < demand.values.size(); ++t) {
    replicas.arrive(t);
    const double now = demand.values[t];
    all += now;
    if (now > service.limit * service.capacity * replicas.serving()) violated += now;
    out.serving.push_back(replicas.serving());
    replicas.ask(t, scaler.wish(t, replicas.serving()));
    out.asked.push_back(replicas.all());
    steps += replicas.all();
    out.peak = std::max(out.peak, replicas.all());
  }
  out.violated = all > 0 ? violated / all : 0;
  out.replica_hours = steps * service.step_hours;
  return out;
}

std::vector<Outcome> simulate_all(const Demand& demand, std::size_t from, const Service& service,
                                  std::span<const Policy> policies, unsigned threads) {
  std::vector<Outcome> out(policies.size());
  parallel_for(policies.size(), threads,
               [&](std::size_t i) { out[i] = simulate(demand, from, service, policies[i]); });
  return out;
}

std::vector<Policy> curve_of(PolicyKind kind) {
  std::vector<Policy> out;
  if (kind == PolicyKind::oracle) return {{kind, 0.5}};
  if (kind == PolicyKind::reactive) {
    for (int percent = 30; percent <= 85; ++percent) out.push_back({kind, percent / 100.0});
    return out;
  }
  for (const double quantile :
       {0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.997, 0.999, 0.9995})
    out.push_back({kind, quantile});
  return out;
}

double hours_at(std::span<const Outcome> outcomes, PolicyKind kind, double violated) {
  std::vector<std::pair<double, double>> curve;
  for (const Outcome& outcome : outcomes)
    if (outcome.policy.kind == kind) curve.emplace_back(outcome.violated, outcome.replica_hours);
  std::ranges::sort(curve);
  // A setting that violates more and costs more is nobody's choice.
  std::vector<std::pair<double, double>> lower;
  for (const auto& point : curve)
    if (lower.empty() || point.second < lower.back().second) lower.push_back(point);
  for (std::size_t i = 0; i < lower.size(); ++i) {
    if (lower[i].first == violated) return lower[i].second;
    if (i + 1 == lower.size() || lower[i].first > violated || lower[i + 1].first <= violated)
      continue;
    const double a = std::log(std::max(lower[i].first, 1e-9)), b = std::log(lower[i + 1].first);
    const double at = (std::log(violated) - a) / (b - a);
    return lower[i].second + at * (lower[i + 1].second - lower[i].second);
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace weft::plan::scale
