// Plays collectives on a network: stage after stage, each with its latency, chains, flows and
// exchanges.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.hpp"
#include "engine/fluid/exchange_rounds.hpp"
#include "engine/fluid/network.hpp"
#include "engine/fluid/stage.hpp"
#include "engine/jobs/time_histogram.hpp"
#include "workload/collective/cost.hpp"
#include "workload/collective/traffic.hpp"

namespace weft::engine::fluid {

// Who uses the network: tags of its transfers and timers begin with the owner.
enum class Owner : std::uint8_t { player, job, graph, graph_collective, front_end, serving };
inline constexpr std::uint64_t owner_shift = 58;
constexpr std::uint64_t owner_tag(Owner owner, std::uint64_t value) {
  return static_cast<std::uint64_t>(owner) << owner_shift | value;
}
constexpr Owner owner_of(std::uint64_t tag) { return static_cast<Owner>(tag >> owner_shift); }
constexpr std::uint64_t owned_value(std::uint64_t tag) {
  return tag & ((std::uint64_t{1} << owner_shift) - 1);
}

class TrafficPlayer {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    virtual void on_played(std::uint64_t token) = 0;
    // A stage has ended that began at `start_s`.
    virtual void on_stage(std::uint64_t token, const workload::Stage& stage, double start_s) = 0;
  };
  using TrafficId = Id<struct TrafficTag>;
  struct Play {
    TrafficId traffic;
    double scale = 1;        // of all bytes
    Duration step_overhead;  // added to every step of a stage
    // What the library needs for it; none: nothing but bytes at line rate and the paths' latency.
    std::optional<workload::CallCost> cost = {};
    std::uint32_t message = 0;        // where whole messages take turns on QPs
    const LateRanks* late = nullptr;  // of the first stage; must last until it has begun
    std::uint64_t token = 0;
  };

  TrafficPlayer(Network& network, Listener& listener) : network_(network), listener_(listener) {}

  // To be played any number of times; must outlive the player, at one address.
  TrafficId add(const workload::Traffic& traffic);
  void play(const Play& play);
  void on_delivered(std::uint64_t value);
  void on_timer(std::uint64_t value);

  // What the play whose end is being reported waited for, from its begin on, along the last of each
  // stage; only where the network notes_limits().
  const LimitHistory& limits() const { return played_limits_; }
  const TimeHistogram& transfer_times() const { return transfer_times_; }
  // What an undelivered transfer belongs to: its play's token, stage, and the ends of a message of
  // an exchange (else invalid nodes).
  struct Origin {
    std::uint64_t token;
    const workload::Stage* stage;
    NodeId sender, receiver;
  };
  Origin origin(std::uint64_t value) const;
  // Kept routes of a traffic's chains, as far as it was played.
  struct ChainRoute {
    RouteId route;
    double bytes = 0;  // of one play at scale 1
    double sent = 0;   // by all plays
  };
  std::span<const ChainRoute> routes_of(TrafficId traffic, std::size_t stage) const {
    return known_[traffic.index()].stages[stage].routes;
  }

 private:
  struct Playing {
    Play play;
    std::size_t stage = 0;
    std::size_t outstanding = 0;  // transfers and timers that this stage waits for
    double stage_start_s = 0;
    std::vector<ExchangeRounds> exchanges;
    LimitHistory limits;
  };
  // What a transfer's tag stands for.
  struct Sent {
    std::uint32_t playing = 0;
    std::uint32_t exchange = no_exchange;
    ExchangeRounds::Message message{};
    double start_s = 0;
  };
  static constexpr std::uint32_t no_exchange = UINT32_MAX;
  struct Timer {
    enum class What : std::uint8_t { begin_stage, begin_chain, begin_flow, wake_rank, paced };
    std::uint32_t playing = 0;
    What what = What::begin_stage;
    std::uint32_t item = 0;  // chain, flow or exchange
    std::uint32_t rank = 0;
  };
  struct StageCache {
    std::vector<ChainRoute> routes;
    workload::StageShare share;
    std::uint32_t latency_round = 0;
    double latency_s = 0, excess_latency_s = 0;
  };

  struct Known {
    const workload::Traffic* traffic;
    std::vector<StageCache> stages;
  };

  const workload::Stage& stage_of(std::uint32_t id) const {
    return known_[playing_[id].play.traffic.index()].traffic->stages[playing_[id].stage];
  }
  StageCache& cache_of(std::uint32_t id) {
    return known_[playing_[id].play.traffic.index()].stages[playing_[id].stage];
  }
  // Of all bytes of a play, as links carry them.
  static double scale_of(const Play& play) {
    return play.cost ? play.scale * play.cost->wire_bytes : play.scale;
  }
  double lead_s(std::uint32_t id);
  ChainRoute& chain_route(std::uint32_t id, std::uint32_t chain);
  bool late_applies(std::uint32_t id) const {
    return playing_[id].play.late != nullptr && playing_[id].stage == 0;
  }
  // How much later than the others the rank enters the stage at hand.
  double late_s(std::uint32_t id, NodeId rank) const {
    return late_applies(id) ? late_of(*playing_[id].play.late, rank) : 0;
  }
  void set_timer(double at_s, const Timer& timer);
  void prepare_stage(std::uint32_t id);
  void begin_stage(std::uint32_t id);
  void begin_chain(std::uint32_t id, std::uint32_t chain);
  void begin_flow(std::uint32_t id, const workload::Edge& edge);
  void begin_exchange(std::uint32_t id, std::uint32_t index);
  void send_ready(std::uint32_t id, std::uint32_t index);
  std::uint64_t note_sent(const Sent& sent);
  void release(std::uint32_t id);

  Network& network_;
  Listener& listener_;
  std::vector<Playing> playing_;
  Ids free_playing_;
  std::vector<Sent> sent_;
  Ids free_sent_;
  std::vector<Timer> timers_;
  Ids free_timers_;
  std::vector<Known> known_;
  TimeHistogram transfer_times_;
  LimitHistory played_limits_;
};

}  // namespace weft::engine::fluid
