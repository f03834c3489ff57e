#include "engine/fluid/simulation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "engine/fluid/reference.hpp"

namespace weft::engine::fluid {
namespace {

constexpr double same_rate = 1e-9;  // rates closer than this share are one
constexpr double together = 1e-11;  // events closer than this share of the time are one

}  // namespace

// ---- the queue of ends: a 4-ary heap with positions

void Simulation::EndQueue::resize(std::size_t flows) {
  if (position_.size() < flows) position_.resize(flows, UINT32_MAX);
}

double Simulation::EndQueue::key(std::uint32_t flow) const {
  const std::uint32_t at = position_[flow];
  return at == UINT32_MAX ? unlimited : heap_[at].key;
}

void Simulation::EndQueue::up(std::size_t at, Item item) {
  while (at > 0) {
    const std::size_t parent = (at - 1) / 4;
    if (heap_[parent].key <= item.key) break;
    place(at, heap_[parent]);
    at = parent;
  }
  place(at, item);
}

void Simulation::EndQueue::down(std::size_t at, Item item) {
  for (;;) {
    const std::size_t first = 4 * at + 1;
    if (first >= heap_.size()) break;
    std::size_t best = first;
    for (std::size_t c = first + 1; c < std::min(first + 4, heap_.size()); ++c)
      if (heap_[c].key < heap_[best].key) best = c;
    if (heap_[best].key >= item.key) break;
    place(at, heap_[best]);
    at = best;
  }
  place(at, item);
}

void Simulation::EndQueue::set(std::uint32_t flow, double key) {
  if (key == unlimited) return erase(flow);
  const std::uint32_t at = position_[flow];
  if (at == UINT32_MAX) {
    heap_.push_back({key, flow});
    return up(heap_.size() - 1, {key, flow});
  }
  if (key < heap_[at].key) {
    up(at, {key, flow});
  } else {
    down(at, {key, flow});
  }
}

void Simulation::EndQueue::erase(std::uint32_t flow) {
  const std::uint32_t at = position_[flow];
  if (at == UINT32_MAX) return;
  WEFT_CHECK(heap_[at].flow == flow);
  position_[flow] = UINT32_MAX;
  const Item last = heap_.back();
  heap_.pop_back();
  if (last.flow == flow) return;
  if (at > 0 && heap_[(at - 1) / 4].key > last.key) {
    up(at, last);
  } else {
    down(at, last);
  }
}

// ---- the queue of timers

void Simulation::TimerQueue::push(double at, std::uint64_t tag) {
  std::uint32_t& recent = recent_[mix64(std::bit_cast<std::uint64_t>(at)) % recent_.size()];
  if (recent < buckets_.size() && buckets_[recent].at == at)
    return buckets_[recent].tags.push_back(tag);
  if (free_.empty()) {
    recent = static_cast<std::uint32_t>(buckets_.size());
    buckets_.emplace_back();
  } else {
    recent = free_.back();
    free_.pop_back();
  }
  buckets_[recent].at = at;
  buckets_[recent].tags.push_back(tag);
  heap_.push_back({at, next_order_++, recent});
  std::push_heap(heap_.begin(), heap_.end());
}

std::uint64_t Simulation::TimerQueue::pop() {
  const std::uint32_t id = heap_.front().bucket;
  Bucket& bucket = buckets_[id];
  const std::uint64_t tag = bucket.tags[bucket.next++];
  if (bucket.next < bucket.tags.size()) return tag;
  bucket.at = -1;
  bucket.next = 0;
  bucket.tags.clear();
  free_.push_back(id);
  std::pop_heap(heap_.begin(), heap_.end());
  heap_.pop_back();
  return tag;
}

// ---- flows

Simulation::Simulation(std::span<const double> capacity, const Options& options)
    : options_(options),
      solver_(capacity, options.solver),
      carried_(capacity.size(), 0),
      windows_(options.load_windows) {}

void Simulation::add_resource(double capacity) {
  solver_.add_resource(capacity);
  carried_.push_back(0);
  WEFT_CHECK(carried_.size() == solver_.resource_count());
}

void Simulation::set_capacity(LinkId resource, double capacity) {
  solver_.set_capacity(resource, capacity);
}

FlowId Simulation::start(std::span<const Hop> hops, double bytes, std::uint64_t tag) {
  WEFT_CHECK(bytes >= 0);
  std::uint32_t id = 0;
  if (free_flows_.empty()) {
    id = static_cast<std::uint32_t>(flow_.size());
    flow_.emplace_back();
    ends_.resize(flow_.size());
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
  }
  WEFT_CHECK(!flow_[id].active && ends_.key(id) == unlimited);
  const EntityId entity = solver_.insert(hops);
  if (flow_of_entity_.size() <= entity.index()) flow_of_entity_.resize(entity.index() + 1);
  flow_of_entity_[entity.index()] = FlowId(id);
  flow_[id] = {.entity = entity,
               .left = bytes,
               .since = now_,
               .rate = 0,
               .left_at_start = bytes,
               .tag = tag,
               .order = next_order_++,
               .active = true};
  ++active_count_;
  if (options_.limits) {
    limits_.resize(flow_.size());
    limits_[id].clear();
  }
  return FlowId(id);
}

double Simulation::bytes_left(FlowId flow) const {
  const Flow& f = flow_[flow.index()];
  if (f.rate == unlimited) return 0;
  return std::max(0.0, f.left - f.rate * (now_ - f.since));
}

double Simulation::rate(FlowId flow) const { return flow_[flow.index()].rate; }

void Simulation::account(const Flow& flow, double left) {
  const double bytes = flow.left_at_start - left;
  WEFT_CHECK(!(bytes < 0));
  solver_.for_each_hop(flow.entity,
                       [&](LinkId link, double share) { carried_[link.index()] += bytes * share; });
}

void Simulation::account_active() {
  for (std::uint32_t id = 0; id < flow_.size(); ++id) {
    Flow& flow = flow_[id];
    if (!flow.active) continue;
    flow.left = bytes_left(FlowId(id));
    flow.since = now_;
    account(flow, flow.left);
    flow.left_at_start = flow.left;
  }
}

void Simulation::carried_at(double at, std::vector<double>& out) const {
  out = carried_;
  for (const Flow& flow : flow_) {
    if (!flow.active) continue;
    const double left = flow.rate == unlimited
                            ? 0
                            : std::max(0.0, flow.left - flow.rate * std::max(0.0, at - flow.since));
    const double bytes = flow.left_at_start - left;
    if (bytes <= 0) continue;
    solver_.for_each_hop(flow.entity,
                         [&](LinkId link, double share) { out[link.index()] += bytes * share; });
  }
}

void Simulation::move(FlowId flow, std::span<const Hop> hops, double extra_bytes) {
  Flow& f = flow_[flow.index()];
  WEFT_CHECK(f.active);
  f.left = bytes_left(flow);
  f.since = now_;
  account(f, f.left);
  f.left += extra_bytes;
  f.left_at_start = f.left;
  f.rate = 0;
  ends_.erase(flow.value);
  solver_.remove(f.entity);
  f.entity = solver_.insert(hops);
  if (flow_of_entity_.size() <= f.entity.index()) flow_of_entity_.resize(f.entity.index() + 1);
  flow_of_entity_[f.entity.index()] = flow;
}

double Simulation::stop(FlowId flow) {
  Flow& f = flow_[flow.index()];
  WEFT_CHECK(f.active);
  const double left = bytes_left(flow);
  account(f, left);
  ends_.erase(flow.value);
  solver_.remove(f.entity);
  f.active = false;
  free_flows_.push_back(flow.value);
  --active_count_;
  return left;
}

void Simulation::timer(double at, std::uint64_t tag) { timers_.push(std::max(at, now_), tag); }

// ---- time

double Simulation::end_time(const Flow& flow) const {
  if (flow.left <= 0 || flow.rate == unlimited) return flow.since;
  return flow.rate > 0 ? flow.since + flow.left / flow.rate : unlimited;
}

void Simulation::refresh_top() {
  while (!ends_.empty()) {
    const std::uint32_t id = ends_.top();
    const double end = end_time(flow_[id]);
    if (end <= ends_.top_key() * (1 + 1e-15)) return;
    ends_.set(id, end);
  }
}

void Simulation::refresh_rates() {
  solver_.settle();
  for (const EntityId entity : solver_.changed()) {
    if (!solver_.alive(entity)) continue;
    const std::uint32_t id = flow_of_entity_[entity.index()].value;
    Flow& flow = flow_[id];
    const double rate = solver_.rate(entity);
    if (options_.limits) note_limit(id);
    if (rate == flow.rate && flow.since != now_) continue;
    if (flow.rate == unlimited) {
      flow.left = 0;
    } else {
      flow.left = std::max(0.0, flow.left - flow.rate * (now_ - flow.since));
    }
    flow.since = now_;
    flow.rate = rate;
    const double end = end_time(flow);
    if (end < ends_.key(id)) ends_.set(id, end);
  }
  solver_.clear_changed();
}

// Resources whose level, or whose capacity where nobody else is there, is the flow's rate.
void Simulation::note_limit(std::uint32_t flow) {
  const EntityId entity = flow_[flow].entity;
  const double most = solver_.rate(entity) * (1 + same_rate);
  limiting_.clear();
  solver_.for_each_hop(entity, [&](LinkId link, double share) {
    if (std::min(solver_.level(link), solver_.capacity(link) / share) <= most)
      limiting_.push_back(link);
  });
  const LimitId what = limiting_.empty() ? limit::latency : limit_sets_.id_of(limiting_);
  LimitHistory& history = limits_[flow];
  if (!history.empty() && history.back().from_s == now_) history.pop_back();
  if (history.empty() || history.back().what != what) history.push_back({what, now_});
}

void Simulation::collect_ends() {
  ended_.clear();
  const double limit = now_ + now_ * together;
  for (refresh_top(); !ends_.empty() && ends_.top_key() <= limit; refresh_top()) {
    ended_.push_back(ends_.top());
    ends_.erase(ends_.top());
  }
  std::ranges::sort(ended_, {}, [&](std::uint32_t id) { return flow_[id].order; });
  for (const std::uint32_t id : ended_) {
    Flow& flow = flow_[id];
    WEFT_CHECK(flow.active && active_count_ > 0);
    account(flow, 0);
    solver_.remove(flow.entity);
    flow.active = false;
    --active_count_;
  }
}

void Simulation::run(Listener& listener) {
  for (;;) {
    refresh_rates();
    refresh_top();
    const double end = ends_.empty() ? unlimited : ends_.top_key();
    const double timer = timers_.empty() ? unlimited : timers_.top_at();
    if (end == unlimited && timer == unlimited) return;
    WEFT_CHECK(timer >= now_);
    const double next = std::max(now_, std::min(end, timer));
    // Nothing is carried between flows: what ends there is caught up with when one is under way.
    if (options_.load_windows > 0 && active_count_ > 0)
      windows_.advance(next, [this](double at, auto& out) { carried_at(at, out); });
    now_ = next;
    ++events_;
    collect_ends();
    for (std::size_t i = 0; i < ended_.size(); ++i) {
      const std::uint32_t id = ended_[i];
      listener.on_flow_end(FlowId(id), flow_[id].tag);
      free_flows_.push_back(id);
    }
    const double limit = now_ + now_ * together;
    while (!timers_.empty() && timers_.top_at() <= limit) listener.on_timer(timers_.pop());
    if (options_.audit_every > 0 && events_ % options_.audit_every == 0) audit();
  }
}

void Simulation::audit() {
  refresh_rates();
  std::vector<double> capacity;
  for (const LinkId id : ids<LinkId>(solver_.resource_count()))
    capacity.push_back(solver_.capacity(id));
  std::vector<std::vector<Hop>> paths;
  std::vector<double> rates;
  for (const Flow& flow : flow_) {
    if (!flow.active) continue;
    std::vector<Hop>& path = paths.emplace_back();
    solver_.for_each_hop(flow.entity,
                         [&](LinkId link, double share) { path.push_back({link, share}); });
    rates.push_back(flow.rate);
  }
  const std::vector<double> exact = reference_rates(capacity, paths);
  for (std::size_t i = 0; i < rates.size(); ++i)
    if (exact[i] != rates[i] && exact[i] > 0)
      rate_error_ = std::max(rate_error_, std::abs(rates[i] - exact[i]) / exact[i]);
}

}  // namespace weft::engine::fluid
