#include "engine/fluid/traffic_player.hpp"

#include <algorithm>

namespace weft::engine::fluid {
namespace {

template <class T>
std::uint32_t take(std::vector<T>& rows, Ids& free) {
  if (free.empty()) {
    rows.emplace_back();
    return static_cast<std::uint32_t>(rows.size() - 1);
  }
  const std::uint32_t id = free.back();
  free.pop_back();
  return id;
}

}  // namespace

TrafficPlayer::TrafficId TrafficPlayer::add(const workload::Traffic& traffic) {
  Known& known = known_.emplace_back(Known{&traffic, {}});
  for (const workload::StageShare& share : stage_shares(traffic, network_.fabric()))
    known.stages.emplace_back().share = share;
  return TrafficId(known_.size() - 1);
}

void TrafficPlayer::play(const Play& play) {
  const std::uint32_t id = take(playing_, free_playing_);
  playing_[id].play = play;
  playing_[id].stage = 0;
  playing_[id].limits.clear();
  prepare_stage(id);
}

void TrafficPlayer::set_timer(double at_s, const Timer& timer) {
  const std::uint32_t id = take(timers_, free_timers_);
  timers_[id] = timer;
  network_.timer(at_s, owner_tag(Owner::player, id));
}

void TrafficPlayer::on_timer(std::uint64_t value) {
  const Timer timer = timers_[value];
  free_timers_.push_back(static_cast<std::uint32_t>(value));
  switch (timer.what) {
    case Timer::What::begin_stage:
      return begin_stage(timer.playing);
    case Timer::What::begin_chain:
      return begin_chain(timer.playing, timer.item);
    case Timer::What::begin_flow:
      return begin_flow(timer.playing, stage_of(timer.playing).flows[timer.item]);
    case Timer::What::wake_rank:
      playing_[timer.playing].exchanges[timer.item].wake(timer.rank);
      return send_ready(timer.playing, timer.item);
    case Timer::What::paced:
      // Its lead is the library's, too.
      if (network_.notes_limits() && playing_[timer.playing].outstanding == 1)
        playing_[timer.playing].limits.back().what = limit::library;
      return release(timer.playing);
  }
}

// Latency first, then bytes.
void TrafficPlayer::prepare_stage(std::uint32_t id) {
  Playing& playing = playing_[id];
  if (playing.stage == known_[playing.play.traffic.index()].stages.size()) {
    const std::uint64_t token = playing.play.token;
    free_playing_.push_back(id);
    if (network_.notes_limits()) std::swap(played_limits_, playing.limits);
    return listener_.on_played(token);
  }
  playing.stage_start_s = network_.now();
  if (network_.notes_limits()) playing.limits.push_back({limit::latency, network_.now()});
  const double lead = lead_s(id);
  if (lead <= 0) return begin_stage(id);
  set_timer(network_.now() + lead, {.playing = id, .what = Timer::What::begin_stage});
}

// Of the stage at hand, before its first byte.
double TrafficPlayer::lead_s(std::uint32_t id) {
  StageCache& cache = cache_of(id);
  const Play& play = playing_[id].play;
  if (cache.latency_round != network_.state_round()) {
    const StageLatency latency(stage_of(id), network_.router());
    cache.latency_round = network_.state_round();
    cache.latency_s = latency.seconds(play.step_overhead);
    cache.excess_latency_s = play.cost ? latency.beyond_s(*play.cost, play.step_overhead) : 0;
  }
  return play.cost ? play.cost->lead_s * cache.share.lead + cache.excess_latency_s
                   : cache.latency_s;
}

void TrafficPlayer::begin_stage(std::uint32_t id) {
  const workload::Stage& stage = stage_of(id);
  playing_[id].outstanding = 1;  // held until everything has been started
  double last_delay = 0;
  for (std::uint32_t c = 0; c < stage.chains.size(); ++c) {
    const double delay = late_applies(id) ? chain_delay_s(*playing_[id].play.late, stage.chains[c],
                                                          network_.router())
                                          : 0;
    last_delay = std::max(last_delay, delay);
    ++playing_[id].outstanding;
    if (delay > 0) {
      set_timer(network_.now() + delay,
                {.playing = id, .what = Timer::What::begin_chain, .item = c});
    } else {
      begin_chain(id, c);
    }
  }
  for (std::uint32_t f = 0; f < stage.flows.size(); ++f) {
    const workload::Edge& flow = stage.flows[f];
    const double delay = std::max(late_s(id, flow.from), late_s(id, flow.to));
    last_delay = std::max(last_delay, delay);
    ++playing_[id].outstanding;
    if (delay > 0) {
      set_timer(network_.now() + delay,
                {.playing = id, .what = Timer::What::begin_flow, .item = f});
    } else {
      begin_flow(id, flow);
    }
  }
  playing_[id].exchanges.clear();
  for (std::uint32_t x = 0; x < stage.exchanges.size(); ++x) begin_exchange(id, x);
  if (const auto& cost = playing_[id].play.cost) {
    const double least = cost->bytes_s * cache_of(id).share.bytes;
    ++playing_[id].outstanding;
    set_timer(network_.now() + last_delay + least, {.playing = id, .what = Timer::What::paced});
  }
  release(id);
}

std::uint64_t TrafficPlayer::note_sent(const Sent& sent) {
  const std::uint32_t id = take(sent_, free_sent_);
  sent_[id] = sent;
  sent_[id].start_s = network_.now();
  return owner_tag(Owner::player, id);
}

TrafficPlayer::ChainRoute& TrafficPlayer::chain_route(std::uint32_t id, std::uint32_t chain) {
  StageCache& cache = cache_of(id);
  const workload::Stage& stage = stage_of(id);
  if (cache.routes.empty()) cache.routes.resize(stage.chains.size());
  ChainRoute& entry = cache.routes[chain];
  if (!entry.route.valid())
    entry.route = network_.add_route(
        chain_parts(stage.chains[chain], network_.router(), entry.bytes), Wire::ignored);
  return entry;
}

void TrafficPlayer::begin_chain(std::uint32_t id, std::uint32_t chain) {
  ChainRoute& entry = chain_route(id, chain);
  const double bytes = entry.bytes * scale_of(playing_[id].play);
  entry.sent += bytes;
  network_.send(entry.route, bytes, 0, note_sent({.playing = id}));
}

// When both its ends have arrived.
void TrafficPlayer::begin_flow(std::uint32_t id, const workload::Edge& edge) {
  const Play& play = playing_[id].play;
  const Part part{edge.from, edge.to, 0, network_.router().stream_count(), play.message, 1};
  network_.send({.parts = {&part, 1},
                 .bytes = edge.bytes * scale_of(play),
                 .tag = note_sent({.playing = id})});
}

void TrafficPlayer::begin_exchange(std::uint32_t id, std::uint32_t index) {
  const workload::Exchange& exchange = stage_of(id).exchanges[index];
  const auto ranks = static_cast<std::uint32_t>(exchange.ranks.size());
  playing_[id].exchanges.emplace_back(exchange);
  ++playing_[id].outstanding;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (const double delay = late_s(id, exchange.ranks[r]); delay > 0) {
      set_timer(network_.now() + delay,
                {.playing = id, .what = Timer::What::wake_rank, .item = index, .rank = r});
    } else {
      playing_[id].exchanges[index].wake(r);
    }
  }
  send_ready(id, index);
}

void TrafficPlayer::send_ready(std::uint32_t id, std::uint32_t index) {
  const workload::Exchange& exchange = stage_of(id).exchanges[index];
  // Nothing is played or ends while it sends: `rounds` stays where it is.
  ExchangeRounds& rounds = playing_[id].exchanges[index];
  const double scale = scale_of(playing_[id].play);
  const std::uint32_t first_message = playing_[id].play.message;
  while (const auto message = rounds.next_ready()) {
    const std::uint32_t peer = exchange.receiver(message->rank, message->round);
    const double bytes = exchange.bytes(message->rank, peer) * scale;
    if (bytes <= 0) {
      rounds.ended(*message);
      continue;
    }
    const Part part{exchange.ranks[message->rank],    exchange.ranks[peer], 0,
                    network_.router().stream_count(), first_message,        1};
    network_.send({.parts = {&part, 1},
                   .bytes = bytes,
                   .tag = note_sent({.playing = id, .exchange = index, .message = *message})});
  }
  if (rounds.finished()) release(id);
}

void TrafficPlayer::on_delivered(std::uint64_t value) {
  const Sent sent = sent_[value];
  free_sent_.push_back(static_cast<std::uint32_t>(value));
  transfer_times_.add(network_.now() - sent.start_s);
  if (Playing& playing = playing_[sent.playing];
      network_.notes_limits() && playing.outstanding == 1)
    playing.limits.insert(playing.limits.end(), network_.limits().begin(), network_.limits().end());
  if (sent.exchange == no_exchange) return release(sent.playing);
  playing_[sent.playing].exchanges[sent.exchange].ended(sent.message);
  send_ready(sent.playing, sent.exchange);
}

void TrafficPlayer::release(std::uint32_t id) {
  if (--playing_[id].outstanding > 0) return;
  listener_.on_stage(playing_[id].play.token, stage_of(id), playing_[id].stage_start_s);
  ++playing_[id].stage;
  prepare_stage(id);
}

TrafficPlayer::Origin TrafficPlayer::origin(std::uint64_t value) const {
  const Sent& sent = sent_[value];
  const workload::Stage& stage = stage_of(sent.playing);
  Origin out{playing_[sent.playing].play.token, &stage, {}, {}};
  if (sent.exchange == no_exchange) return out;
  const workload::Exchange& exchange = stage.exchanges[sent.exchange];
  out.sender = exchange.ranks[sent.message.rank];
  out.receiver = exchange.ranks[exchange.receiver(sent.message.rank, sent.message.round)];
  return out;
}

}  // namespace weft::engine::fluid
