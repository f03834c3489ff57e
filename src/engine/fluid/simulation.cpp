#include "engine/fluid/simulation.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "engine/fluid/reference.hpp"

namespace weft::engine::fluid {
namespace {

constexpr double same_rate = 1e-9;           // rates closer than this share are one
constexpr std::size_t shared_hops_max = 16;  // of flows that may be one bundle

}  // namespace

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
    queue_position_.push_back(KeyHeap::absent);
  } else {
    id = free_flows_.back();
    free_flows_.pop_back();
  }
  WEFT_CHECK(!flow_[id].active);
  flow_[id] = {.entity = {}, .active = true, .tag = tag, .order = next_order_++};
  join(id, hops, bytes);
  ++active_count_;
  if (options_.limits) {
    limits_.resize(flow_.size());
    limits_[id].clear();
  }
  return FlowId(id);
}

// ---- bundles

void Simulation::join(std::uint32_t id, std::span<const Hop> hops, double bytes) {
  if (!is_merged(hops)) {
    merger_.merge(hops, merged_);
    hops = merged_;
  }
  // Without hops there is no limit and no clock. Rings and sprayed flows have paths of their own,
  // so long that looking for another one costs more than it can save.
  const bool may_share =
      options_.bundles == Options::Bundles::on && !hops.empty() && hops.size() <= shared_hops_max;
  const std::uint64_t hash = may_share ? path_hash(hops) : 0;
  EntityId entity = may_share ? paths_.find(hash, hops, solver_) : EntityId();
  const bool is_new = !entity.valid();
  if (is_new) {
    entity = new_bundle(hops);
    if (may_share) paths_.add(hash, entity);
  } else {
    resized_.push_back(entity);
  }
  Bundle& b = bundle(entity);
  Flow& flow = flow_[id];
  flow.entity = entity;
  flow.since = now_;
  flow.left_at_start = bytes;
  ++b.flows;
  if (is_new) {
    flow.mark = b.left = bytes;
    b.head = id;
    return;
  }
  WEFT_CHECK(b.rate != unlimited);  // such a one has ended
  const double sent = b.rate * (now_ - b.since);
  flow.mark = flow_[b.head].mark - b.left + sent + bytes;
  if (flow.mark >= flow_[b.head].mark) return add_other(b, id);
  add_other(b, b.head);
  b.head = id;
  b.left = sent + bytes;
  set_end(entity.value, end_time(b));
}

EntityId Simulation::new_bundle(std::span<const Hop> hops) {
  const EntityId entity = solver_.insert_merged(hops);
  if (bundle_.size() <= entity.index()) {
    bundle_.resize(entity.index() + 1);
    end_position_.resize(bundle_.size(), KeyHeap::absent);
  }
  WEFT_CHECK(bundle(entity).flows == 0 && end_position_[entity.index()] == KeyHeap::absent);
  bundle(entity) = {.since = now_};
  return entity;
}

void Simulation::add_other(Bundle& b, std::uint32_t flow) {
  if (b.others == none && free_queues_.empty()) {
    b.others = static_cast<std::uint32_t>(queues_.size());
    queues_.emplace_back();
  } else if (b.others == none) {
    b.others = free_queues_.back();
    free_queues_.pop_back();
  }
  queues_[b.others].set(flow, flow_[flow].mark, queue_position_);
}

void Simulation::drop_head(Bundle& b) {
  const std::uint32_t head = b.head;
  b.head = none;
  if (b.others == none || queues_[b.others].empty()) return;
  KeyHeap& others = queues_[b.others];
  b.head = others.top().id;
  b.left += flow_[b.head].mark - flow_[head].mark;
  others.erase(b.head, queue_position_);
}

void Simulation::leave(std::uint32_t id) {
  const EntityId entity = flow_[id].entity;
  Bundle& b = bundle(entity);
  if (b.head == id) {
    drop_head(b);
  } else {
    queues_[b.others].erase(id, queue_position_);
  }
  shrink(entity);
}

void Simulation::shrink(EntityId entity) {
  Bundle& b = bundle(entity);
  if (--b.flows > 0) return resized_.push_back(entity);
  WEFT_CHECK(b.head == none);
  if (b.others != none) free_queues_.push_back(b.others);
  ends_.erase(entity.value, end_position_);
  paths_.erase(entity);
  solver_.remove(entity);
}

template <class Visit>
void Simulation::for_each_flow(const Bundle& b, Visit visit) const {
  visit(b.head);
  if (b.others == none) return;
  for (const KeyHeap::Item& item : queues_[b.others].items()) visit(item.id);
}

// Rounding must not give back what was sent.
double Simulation::left_at(const Flow& flow, double at) const {
  const Bundle& b = bundle(flow.entity);
  if (b.rate == unlimited) return 0;
  const double left = b.left - b.rate * std::max(0.0, at - b.since);
  const double behind = flow.mark - flow_[b.head].mark;
  return std::clamp(left + behind, 0.0, flow.left_at_start);
}

double Simulation::bytes_left(FlowId flow) const {
  const Flow& f = flow_[flow.index()];
  return f.active ? left_at(f, now_) : 0;
}

double Simulation::rate(FlowId flow) const {
  const Flow& f = flow_[flow.index()];
  return f.active ? bundle(f.entity).rate : 0;
}

double Simulation::rate_since(FlowId flow) const {
  const Flow& f = flow_[flow.index()];
  return std::max(f.since, bundle(f.entity).since);
}

void Simulation::account(const Flow& flow, double left) {
  const double bytes = flow.left_at_start - left;
  WEFT_CHECK(!(bytes < 0));
  solver_.for_each_hop(flow.entity,
                       [&](LinkId link, double share) { carried_[link.index()] += bytes * share; });
}

void Simulation::account_active() {
  for (Flow& flow : flow_) {
    if (!flow.active) continue;
    const double left = left_at(flow, now_);
    account(flow, left);
    flow.left_at_start = left;
  }
}

void Simulation::carried_at(double at, std::vector<double>& out) const {
  out = carried_;
  for (const Flow& flow : flow_) {
    if (!flow.active) continue;
    const double bytes = flow.left_at_start - left_at(flow, at);
    if (bytes <= 0) continue;
    solver_.for_each_hop(flow.entity,
                         [&](LinkId link, double share) { out[link.index()] += bytes * share; });
  }
}

void Simulation::move(FlowId flow, std::span<const Hop> hops, double extra_bytes) {
  Flow& f = flow_[flow.index()];
  WEFT_CHECK(f.active);
  const double left = left_at(f, now_);
  account(f, left);
  leave(flow.value);
  join(flow.value, hops, left + extra_bytes);
}

double Simulation::stop(FlowId flow) {
  Flow& f = flow_[flow.index()];
  WEFT_CHECK(f.active);
  const double left = left_at(f, now_);
  account(f, left);
  leave(flow.value);
  f.active = false;
  free_flows_.push_back(flow.value);
  --active_count_;
  return left;
}

void Simulation::timer(double at, std::uint64_t tag) { timers_.push(std::max(at, now_), tag); }

// ---- time

double Simulation::end_time(const Bundle& b) const {
  if (b.left <= 0 || b.rate == unlimited) return b.since;
  return b.rate > 0 ? b.since + b.left / b.rate : unlimited;
}

void Simulation::set_end(std::uint32_t entity, double end) {
  if (end == unlimited) return ends_.erase(entity, end_position_);
  ends_.set(entity, end, end_position_);
}

double Simulation::end_key(std::uint32_t entity) const {
  const std::uint32_t at = end_position_[entity];
  return at == KeyHeap::absent ? unlimited : ends_.items()[at].key;
}

void Simulation::refresh_top() {
  while (!ends_.empty()) {
    const KeyHeap::Item top = ends_.top();
    const double end = end_time(bundle_[top.id]);
    if (end <= top.key * (1 + 1e-15)) return;
    set_end(top.id, end);
  }
}

void Simulation::refresh_rates() {
  for (const EntityId entity : resized_)
    if (solver_.alive(entity)) solver_.set_flows(entity, bundle(entity).flows);
  resized_.clear();
  solver_.settle();
  for (const EntityId entity : solver_.changed()) {
    if (!solver_.alive(entity)) continue;
    Bundle& b = bundle(entity);
    const double rate = solver_.rate(entity);
    if (options_.limits) note_limit(entity);
    if (rate == b.rate && b.since != now_) continue;
    b.left = b.rate == unlimited ? 0 : std::max(0.0, b.left - b.rate * (now_ - b.since));
    b.since = now_;
    b.rate = rate;
    const double end = end_time(b);
    if (end < end_key(entity.value)) set_end(entity.value, end);
  }
  solver_.clear_changed();
}

// Resources whose level, or whose capacity where nobody else is there, is the rate of its flows.
void Simulation::note_limit(EntityId entity) {
  const Bundle& b = bundle(entity);
  const double most = solver_.rate(entity) * (1 + same_rate);
  limiting_.clear();
  solver_.for_each_hop(entity, [&](LinkId link, double share) {
    if (std::min(solver_.level(link), solver_.capacity(link) / (share * b.flows)) <= most)
      limiting_.push_back(link);
  });
  const LimitId what = limiting_.empty() ? limit::latency : limit_sets_.id_of(limiting_);
  for_each_flow(b, [&](std::uint32_t flow) {
    LimitHistory& history = limits_[flow];
    if (!history.empty() && history.back().from_s == now_) history.pop_back();
    if (history.empty() || history.back().what != what) history.push_back({what, now_});
  });
}

void Simulation::collect_ends() {
  ended_.clear();
  const double limit = now_ + now_ * together;
  for (refresh_top(); !ends_.empty() && ends_.top().key <= limit; refresh_top()) {
    const std::uint32_t entity = ends_.top().id;
    Bundle& b = bundle_[entity];
    ended_.push_back(b.head);
    drop_head(b);
    set_end(entity, b.head == none ? unlimited : end_time(b));
  }
  std::ranges::sort(ended_, {}, [&](std::uint32_t id) { return flow_[id].order; });
  for (const std::uint32_t id : ended_) {
    Flow& flow = flow_[id];
    WEFT_CHECK(flow.active && active_count_ > 0);
    account(flow, 0);
    shrink(flow.entity);
    flow.active = false;
    --active_count_;
  }
}

void Simulation::run(Listener& listener) {
  for (;;) {
    refresh_rates();
    refresh_top();
    const double end = ends_.empty() ? unlimited : ends_.top().key;
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
    rates.push_back(bundle(flow.entity).rate);
  }
  const std::vector<double> exact = reference_rates(capacity, paths);
  for (std::size_t i = 0; i < rates.size(); ++i)
    if (exact[i] != rates[i] && exact[i] > 0)
      rate_error_ = std::max(rate_error_, std::abs(rates[i] - exact[i]) / exact[i]);
}

}  // namespace weft::engine::fluid
