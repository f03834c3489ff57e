// How sources say what they see: clocks, grids, delays, losses, duplicates. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "adapt/sim/storm.hpp"
#include "adapt/sim/storm_context.hpp"
#include "base/rng.hpp"
#include "model/events/entity.hpp"

namespace weft::adapt::sim {

// What is said, without when and by whom.
struct StormWord {
  model::EventKind kind = model::EventKind::info;
  model::Entity entity;
  double value = 1;
  observe::telemetry::Reason reason = observe::telemetry::Reason::none;
  std::uint32_t change = 0;
  std::uint32_t stray = 0;
};

// All times are ns from the start of the storm, by a perfect clock. Constants: docs/storm.md,
// "Sources".
class StormVoice {
 public:
  StormVoice(const StormContext& context, const StormOptions& options);

  // What follows is of that fault (0: background), with draws from a stream of its own.
  void turn_to(std::uint32_t fault, std::uint64_t stream);
  Rng& rng() { return rng_; }
  double between(double low, double high) { return low + (high - low) * rng_.uniform(); }
  bool chance(double p) { return rng_.uniform() < p; }

  void log(model::NodeId speaker, std::int64_t t, const StormWord& word);    // syslog
  void stream(model::NodeId device, std::int64_t t, const StormWord& word);  // gNMI, on change
  void sample(model::NodeId device, std::int64_t t, const StormWord& word);  // gNMI, sampled
  void poll(model::NodeId device, std::int64_t t, const StormWord& word);    // SNMP
  void miss(model::NodeId device, std::int64_t t, const StormWord& word);    // SNMP, no answer
  void probe(std::int64_t t, const StormWord& word);                         // probe window
  void agent(model::NodeId host, std::int64_t t, const StormWord& word);     // host agent
  void agent_sample(model::NodeId host, std::int64_t t, const StormWord& word);
  void heartbeat(std::int64_t t, const StormWord& word);  // the agents' collector
  void out_of_band(std::int64_t t, const StormWord& word);

  // The first poll of `device` at or after `t`.
  std::int64_t poll_at(model::NodeId device, std::int64_t t) const;
  bool streams(model::NodeId device) const;  // speaks gNMI
  bool has_bfd(model::NodeId device) const;
  observe::telemetry::Dialect dialect(model::NodeId device) const {
    return dialect_of_role_[context_.fabric.role_id(device).index()];
  }

  static constexpr std::int64_t poll_step = 30 * ns_per_s;
  static constexpr std::int64_t window_step = 10 * ns_per_s;
  static constexpr std::int64_t sample_step = 10 * ns_per_s;

  std::vector<StormLine> take() { return std::move(lines_); }
  std::size_t size() const { return lines_.size(); }

 private:
  struct Span {
    std::int64_t t, until, delay;
  };
  void say(model::Source source, const Span& span, model::NodeId speaker, const StormWord& word);
  std::int64_t own_clock(model::NodeId node, std::int64_t t) const {
    return t + clock_[node.index()];
  }
  std::int64_t ns_between(double low_s, double high_s) {
    return static_cast<std::int64_t>(between(low_s, high_s) * 1e9);
  }

  const StormContext& context_;
  const StormOptions& options_;
  std::vector<observe::telemetry::Dialect> dialect_of_role_;
  std::vector<std::int64_t> clock_;  // ns ahead, by node
  std::vector<StormLine> lines_;
  Rng rng_{0};
  std::uint32_t fault_ = 0;
};

}  // namespace weft::adapt::sim
