#include "engine/fluid/network.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "engine/jobs/busiest.hpp"
#include "engine/jobs/host_load.hpp"
#include "engine/jobs/stage_cost.hpp"
#include "model/fabric/frontend.hpp"
#include "model/fabric/goback_n.hpp"

namespace weft::engine::fluid {
namespace {

// Timers of the network itself and of its client share the simulation's queue.
enum class TimerKind : std::uint64_t { change = 0, delivery = 1, client = 2 };
constexpr std::uint64_t kind_shift = 62;
constexpr std::uint64_t tag_mask = (std::uint64_t{1} << kind_shift) - 1;

constexpr std::uint64_t timer_tag(TimerKind kind, std::uint64_t value) {
  return (static_cast<std::uint64_t>(kind) << kind_shift) | value;
}

// How a FailureWatch knows a stream: its transfer, and its place among the streams of its parts.
constexpr std::uint64_t stream_key(std::uint32_t transfer, std::uint32_t stream) {
  return std::uint64_t{transfer} << 32 | stream;
}
constexpr std::uint32_t transfer_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key >> 32);
}
constexpr std::uint32_t stream_of(std::uint64_t key) { return static_cast<std::uint32_t>(key); }

std::vector<double> capacities(const Router& router) {
  std::vector<double> out;
  out.reserve(router.resource_count());
  for (const LinkId id : ids<LinkId>(router.resource_count())) out.push_back(router.capacity(id));
  return out;
}

// The router has to be in the first state before capacities are read.
Router& in_first_state(Router& router, std::span<const StateChange> changes) {
  for (const StateChange& change : changes)
    if (change.at.ps <= 0) router.set_state(change.state);
  return router;
}

std::uint64_t hash_of(std::span<const Part> parts) {
  Digest digest;
  for (const Part& part : parts) {
    digest.add(std::uint64_t{part.from.value} << 32 | part.to.value);
    digest.add(std::bit_cast<std::uint64_t>(part.weight));
  }
  return digest.value();
}

}  // namespace

Network::Network(Router& router, std::span<const StateChange> changes,
                 const NetworkOptions& options)
    : router_(in_first_state(router, changes)),
      changes_(changes),
      options_(options),
      simulation_(capacities(router), options.simulation) {
  if (options.failures != nullptr) watch_.emplace(*options.failures, Time{});
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i].at.ps > 0) {
      simulation_.timer(changes_[i].at.seconds(), timer_tag(TimerKind::change, i));
    } else {
      enter_state(i);
    }
  }
}

std::uint32_t Network::new_route(std::span<const Part> parts, Wire wire) {
  std::uint32_t id = 0;
  if (free_routes_.empty()) {
    id = static_cast<std::uint32_t>(routes_.size());
    routes_.emplace_back();
  } else {
    id = free_routes_.back();
    free_routes_.pop_back();
  }
  const auto count = static_cast<std::uint32_t>(parts.size());
  Route& route = routes_[id] = {.only = {}, .part_count = count, .wire = wire, .via = {}};
  if (count == 1) {
    route.only = parts.front();
  } else {
    route.parts = parts_.take(BlockArena<Part>::class_for(count));
    std::ranges::copy(parts, parts_.at(route.parts));
  }
  return id;
}

RouteId Network::add_route(std::span<const Part> parts, Wire wire) {
  const auto is_that = [&](std::uint32_t id) {
    const Route& route = routes_[id];
    return route.wire == wire && route.part_count == parts.size() &&
           std::ranges::equal(parts, std::span(parts_.at(route.parts), parts.size()));
  };
  const bool is_ring = parts.size() > 1;
  const std::uint64_t hash = is_ring ? hash_of(parts) : 0;
  if (is_ring)
    for (auto [it, end] = rings_.equal_range(hash); it != end; ++it)
      if (is_that(it->second)) return RouteId(it->second);
  const std::uint32_t id = new_route(parts, wire);
  routes_[id].life = Route::Life::kept;
  if (is_ring) rings_.emplace(hash, id);
  return RouteId(id);
}

void Network::send(const TransferSpec& spec) {
  const std::uint32_t route = new_route(spec.parts, spec.wire);
  routes_[route].via = spec.via;
  send_along(route, spec.bytes, spec.overhead_s, spec.tag);
}

void Network::send(RouteId route, double bytes, double overhead_s, std::uint64_t tag) {
  send_along(route.value, bytes, overhead_s, tag);
}

void Network::send_along(std::uint32_t route, double bytes, double overhead_s, std::uint64_t tag) {
  std::uint32_t id = 0;
  if (free_transfers_.empty()) {
    id = static_cast<std::uint32_t>(transfers_.size());
    transfers_.emplace_back();
  } else {
    id = free_transfers_.back();
    free_transfers_.pop_back();
  }
  WEFT_CHECK(!transfers_[id].active);
  transfers_[id] = {
      .flow = {}, .route = route, .active = true, .overhead_s = overhead_s, .tag = tag};
  if (notes_limits()) {
    limits_.resize(transfers_.size());
    limits_[id].clear();
  }
  launch(id, bytes);
}

void Network::timer(double at_s, std::uint64_t tag) {
  WEFT_CHECK(tag <= tag_mask);
  simulation_.timer(at_s, timer_tag(TimerKind::client, tag));
}

void Network::run(Client& client) {
  client_ = &client;
  simulation_.run(*this);
  for (Transfer& transfer : transfers_)
    if (transfer.active && transfer.flow.valid())
      transfer.still_since_s = simulation_.rate_since(transfer.flow);
  simulation_.account_active();
  if (watch_)
    watch_->finish(Time{from_seconds(now()).ps},
                   [&](std::uint64_t key) { return transfers_[transfer_of(key)].active; });
}

double Network::delay_s(const Transfer& transfer) const {
  return transfer.overhead_s + routes_[transfer.route].latency_s;
}

void Network::launch(std::uint32_t id, double bytes) {
  Transfer& transfer = transfers_[id];
  WEFT_CHECK(transfer.active && !transfer.waiting && !transfer.flow.valid());
  if (options_.contention == NetworkOptions::Contention::off) {
    const double seconds = bytes * route_floor(RouteId(transfer.route));
    Route& route = routes_[transfer.route];
    if (route.latency_s < 0) route.latency_s = latency_alone_s(route);
    return simulation_.timer(now() + seconds + delay_s(transfer),
                             timer_tag(TimerKind::delivery, id));
  }
  refresh(transfer.route);
  const Route& route = routes_[transfer.route];
  if (route.reachable) {
    transfer.flow = simulation_.start(path_of(route), bytes, id);
  } else {
    transfer.flow = {};
    transfer.waiting = true;
    transfer.waiting_bytes = bytes;
    transfer.still_since_s = now();
    if (notes_limits()) limits_[id].push_back({limit::no_path, now()});
  }
}

// The path of a route that is used once stays in path_ until the next refresh().
std::span<const Hop> Network::path_of(const Route& route) {
  if (route.life == Route::Life::once) return path_;
  path_.clear();
  kept_.for_each_hop(route.hops, route.hop_count, [&](const Hop& hop) { path_.push_back(hop); });
  return path_;
}

void Network::refresh(std::uint32_t id) {
  Route& route = routes_[id];
  if (route.round == round_) return;
  route.round = route.life == Route::Life::kept ? round_ : 0;
  route.reachable = find_path(route);
  if (!route.reachable) raw_.clear();
  merger_.merge(raw_, path_);
  route.latency_s = route.reachable && route.wire == Wire::counted ? first_latency_s_ : 0;
  if (route.life == Route::Life::once) return;
  route.hops = kept_.add(path_);
  route.hop_count = static_cast<std::uint32_t>(path_.size());
}

double Network::latency_alone_s(const Route& route) {
  if (route.wire == Wire::ignored || route.part_count == 0) return 0;
  const Part part = part_of(route, 0);
  double out = 0;
  for (std::uint32_t s = 0; s < part.streams; ++s) {
    raw_.clear();
    if (!append_stream(part, s, route.via, raw_)) return 0;
    out = std::max(out, router_.path_latency_s(part.from, part.to, raw_));
  }
  return out;
}

double Network::route_floor(RouteId id) {
  Route& route = routes_[id.index()];
  if (route.floor >= 0) return route.floor;
  HostLoad load(router_.fabric());
  for (std::uint32_t i = 0; i < route.part_count; ++i) {
    const Part& part = part_of(route, i);
    load.add(part.from, part.to, part.weight);
  }
  return route.floor = load.seconds();
}

bool Network::find_path(const Route& route) {
  raw_.clear();
  reachable_ = true;
  first_latency_s_ = 0;
  for (std::uint32_t i = 0; i < route.part_count && reachable_; ++i)
    append_part(part_of(route, i), route.via, i == 0 && route.wire == Wire::counted);
  add_new_pools();
  return reachable_;
}

bool Network::append_stream(const Part& part, std::uint32_t stream, std::span<const NodeId> via,
                            std::vector<Hop>& out) {
  using model::NodeKind;
  const Fabric& fabric = router_.fabric();
  const std::uint32_t qp = part.qp + stream, message = part.message + stream;
  if (is_cable(fabric, part.from, part.to)) return append_cable(part.from, part.to, router_, out);
  if (fabric.kind(part.from) == NodeKind::nic && fabric.kind(part.to) == NodeKind::nic)
    return router_.append_path({part.from, part.to, qp, message, via}, out);
  return router_.append_gpu_path(part.from, part.to, qp, message, out);
}

std::span<const double> Network::shares_of(const Part& part) {
  const bool divided = part.streams > 1 && part.streams == router_.stream_count();
  return divided && !is_cable(router_.fabric(), part.from, part.to)
             ? router_.qp_shares(part.from, part.to)
             : std::span<const double>();
}

void Network::append_part(const Part& part, std::span<const NodeId> via, bool is_measured) {
  const std::span<const double> shares = shares_of(part);
  for (std::uint32_t s = 0; s < part.streams && reachable_; ++s) {
    const std::size_t before = raw_.size();
    reachable_ = append_stream(part, s, via, raw_);
    double latency_s = 0;
    if (is_measured || lossy_state_ != nullptr)
      latency_s = router_.path_latency_s(part.from, part.to, std::span(raw_).subspan(before));
    if (is_measured) first_latency_s_ = std::max(first_latency_s_, latency_s);
    const double scale = part.weight * (shares.empty() ? 1.0 / part.streams : shares[s]);
    if (scale != 1)
      for (std::size_t h = before; h < raw_.size(); ++h) raw_[h].share *= scale;
    if (lossy_state_ != nullptr) inflate_for_loss(before, part, latency_s);
  }
}

// The QP's window: what its share of the slowest link sends in one round trip.
void Network::inflate_for_loss(std::size_t first_hop, const Part& part, double latency_s) {
  double kept = 1, slowest = unlimited;
  for (std::size_t h = first_hop; h < raw_.size(); ++h) {
    if (raw_[h].link.index() >= router_.fabric().link_count()) continue;  // pools balance it away
    kept *= 1 - lossy_state_->link(raw_[h].link).loss;
    slowest = std::min(slowest, router_.capacity(raw_[h].link));
  }
  if (kept >= 1) return;
  const double window =
      slowest / part.streams * 2 * latency_s / static_cast<double>(options_.mtu.count);
  const double share = model::goodput_share(1 - kept, std::max(1.0, window));
  for (std::size_t h = first_hop; h < raw_.size(); ++h) raw_[h].share /= share;
}

void Network::add_new_pools() {
  for (std::size_t r = simulation_.carried().size(); r < router_.resource_count(); ++r)
    simulation_.add_resource(router_.capacity(LinkId(r)));
}

void Network::on_flow_end(FlowId, std::uint64_t tag) {
  const auto id = static_cast<std::uint32_t>(tag);
  WEFT_CHECK(transfers_[id].active && transfers_[id].flow.valid());
  if (notes_limits()) note_limits(id, limit::latency);
  const double delay = delay_s(transfers_[id]);
  if (delay <= 0) return deliver(id);
  transfers_[id].flow = {};
  simulation_.timer(now() + delay, timer_tag(TimerKind::delivery, id));
}

// What its flow has met so far, which ends here, and what follows.
void Network::note_limits(std::uint32_t id, LimitId next) {
  const LimitHistory& met = simulation_.limits(transfers_[id].flow);
  limits_[id].insert(limits_[id].end(), met.begin(), met.end());
  limits_[id].push_back({next, now()});
}

void Network::deliver(std::uint32_t id) {
  Transfer& transfer = transfers_[id];
  delivered_ = id;
  WEFT_CHECK(transfer.active && !transfer.waiting);
  transfer.active = false;
  const Route& route = routes_[transfer.route];
  if (route.life == Route::Life::once) {
    if (route.part_count != 1)
      parts_.give_back(route.parts, BlockArena<Part>::class_for(route.part_count));
    free_routes_.push_back(transfer.route);
  }
  const std::uint64_t tag = transfer.tag;
  free_transfers_.push_back(id);
  client_->on_delivered(tag);
}

void Network::on_timer(std::uint64_t tag) {
  const std::uint64_t value = tag & tag_mask;
  switch (static_cast<TimerKind>(tag >> kind_shift)) {
    case TimerKind::change:
      return apply_change(value);
    case TimerKind::delivery:
      return deliver(static_cast<std::uint32_t>(value));
    case TimerKind::client:
      return client_->on_timer(value);
  }
}

void Network::enter_state(std::size_t change) {
  WEFT_CHECK(change < changes_.size());
  const model::State& state = changes_[change].state;
  state_ = &state;
  const bool lossy = std::ranges::any_of(state.troubled_links(),
                                         [](const auto& entry) { return entry.second.loss > 0; });
  lossy_state_ = lossy ? &state : nullptr;
  ++round_;
  kept_.clear();  // all kept routes are looked for again
}

void Network::apply_change(std::size_t index) {
  if (watch_) {
    watch_->pass(changes_[index].at);
    note_hits();
  }
  router_.set_state(changes_[index].state);
  enter_state(index);
  if (options_.contention == NetworkOptions::Contention::off) {
    for (Route& route : routes_) route.latency_s = -1;
    return;
  }
  add_new_pools();
  for (const LinkId id : ids<LinkId>(router_.resource_count()))
    simulation_.set_capacity(id, router_.capacity(id));
  for (std::uint32_t id = 0; id < transfers_.size(); ++id)
    if (transfers_[id].active) reroute(id);
  if (watch_)
    watch_->settle(changes_[index].at, [&](std::uint64_t key) { return stream_has_path(key); });
}

void Network::note_hits() {
  if (!watch_->any_down()) return;
  for (std::uint32_t id = 0; id < transfers_.size(); ++id) {
    if (!transfers_[id].active || !transfers_[id].flow.valid()) continue;
    bool meets = false;
    simulation_.for_each_hop(transfers_[id].flow,
                             [&](LinkId link, double) { meets = meets || is_dead(link); });
    if (meets) note_hits(id);
  }
}

// Paths are still those of the state before.
void Network::note_hits(std::uint32_t id) {
  const Transfer& transfer = transfers_[id];
  const Route& route = routes_[transfer.route];
  const double rate = simulation_.rate(transfer.flow);
  std::uint32_t stream = 0;  // over all parts
  for (std::uint32_t p = 0; p < route.part_count; ++p) {
    const Part part = part_of(route, p);
    for (std::uint32_t s = 0; s < part.streams; ++s, ++stream) {
      raw_.clear();
      if (!append_stream(part, s, route.via, raw_)) continue;
      const auto dead =
          std::ranges::find_if(raw_, [&](const Hop& hop) { return is_dead(hop.link); });
      if (dead == raw_.end()) continue;
      double latency_s = 0;  // of its path
      for (const Hop& hop : raw_)
        if (hop.link.index() < fabric().link_count())
          latency_s += fabric().latency(hop.link).seconds();
      const std::span<const double> shares = shares_of(part);
      const double bytes_per_s =
          rate * part.weight * (shares.empty() ? 1.0 / part.streams : shares[s]);
      watch_->hit({.key = stream_key(id, stream),
                   .from = part.from,
                   .to = part.to,
                   .qp = part.qp + s,
                   .bytes_per_s = bytes_per_s,
                   .lost_bytes = bytes_per_s * latency_s},
                  dead->link);
    }
  }
}

bool Network::stream_has_path(std::uint64_t key) {
  const Transfer& transfer = transfers_[transfer_of(key)];
  if (!transfer.active) return true;  // got through
  const Route& route = routes_[transfer.route];
  std::uint32_t stream = stream_of(key);
  for (std::uint32_t p = 0; p < route.part_count; ++p) {
    const Part part = part_of(route, p);
    if (stream >= part.streams) {
      stream -= part.streams;
      continue;
    }
    raw_.clear();
    return append_stream(part, stream, route.via, raw_) &&
           std::ranges::none_of(raw_, [&](const Hop& hop) { return is_dead(hop.link); });
  }
  return true;
}

void Network::reroute(std::uint32_t id) {
  Transfer& transfer = transfers_[id];
  if (!transfer.flow.valid()) {
    // Waiting for a path, or sent and on its way: the latter has nothing to move.
    if (!std::exchange(transfer.waiting, false)) return;
    const double since_s = transfer.still_since_s;
    launch(id, transfer.waiting_bytes);
    if (transfer.waiting) transfer.still_since_s = since_s;  // the change did not help
    return;
  }
  bool dead = false;
  simulation_.for_each_hop(
      transfer.flow, [&](LinkId link, double) { dead = dead || router_.capacity(link) <= 0; });
  const double in_flight = dead ? simulation_.rate(transfer.flow) * delay_s(transfer) : 0;
  refresh(transfer.route);
  const Route& route = routes_[transfer.route];
  if (!route.reachable) {
    if (notes_limits()) note_limits(id, limit::no_path);
    transfer.waiting_bytes = simulation_.stop(transfer.flow) + in_flight;
    transfer.waiting = true;
    transfer.still_since_s = now();
    transfer.flow = {};
  } else if (in_flight > 0 || !same_path(transfer.flow, path_of(route))) {
    simulation_.move(transfer.flow, path_of(route), in_flight);
  }
}

bool Network::same_path(FlowId flow, std::span<const Hop> path) const {
  std::size_t at = 0;
  bool same = true;
  simulation_.for_each_hop(flow, [&](LinkId link, double share) {
    same = same && at < path.size() && path[at].link == link && path[at].share == share;
    ++at;
  });
  return same && at == path.size();
}

std::vector<Network::Undelivered> Network::undelivered() const {
  std::vector<Undelivered> out;
  for (const Transfer& transfer : transfers_)
    if (transfer.active) out.push_back({transfer.tag, transfer.still_since_s});
  std::ranges::sort(out, {}, [](const Undelivered& u) { return std::pair(u.tag, u.since_s); });
  return out;
}

template <class Numbers>
std::vector<double> Network::on_links(const Numbers& carried) const {
  std::vector<double> out(router_.fabric().link_count(), 0);
  WEFT_CHECK(carried.size() >= out.size());
  std::copy_n(carried.begin(), out.size(), out.begin());
  for (std::size_t r = out.size(); r < carried.size(); ++r) {
    if (carried[r] == 0) continue;
    const auto bytes = static_cast<double>(carried[r]);
    const std::span<const LinkId> members = router_.members(LinkId(r));
    double total = 0;
    for (const LinkId link : members) total += router_.capacity(link);
    for (const LinkId link : members)
      out[link.index()] += total > 0 ? bytes * router_.capacity(link) / total
                                     : bytes / static_cast<double>(members.size());
  }
  return out;
}

std::vector<double> Network::link_bytes() const { return on_links(simulation_.carried()); }

std::optional<BusyInterval> Network::busiest_interval() const {
  const LoadWindows& windows = simulation_.windows();
  return engine::busiest_interval(fabric(), windows.width_s(), windows.size(),
                                  [&](std::size_t i) { return on_links(windows.bytes(i)); });
}

}  // namespace weft::engine::fluid
