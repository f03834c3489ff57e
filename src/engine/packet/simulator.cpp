#include "engine/packet/simulator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <thread>
#include <tuple>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::engine::packet {
namespace {

constexpr Ps look_interval = 100'000'000;  // between looks for deadlocks, and progress

// All threads wait here for each other; windows are short, so they spin before they sleep.
class SpinBarrier {
 public:
  explicit SpinBarrier(std::uint32_t count) : count_(count) {}
  // `last` runs on the thread that comes last, before any goes on.
  template <class Last>
  void wait(Last last) {
    const std::uint32_t round = round_.load(std::memory_order_acquire);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == count_) {
      last();
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      round_.notify_all();
      return;
    }
    constexpr int spins = 4000;
    for (int i = 0; i < spins; ++i)
      if (round_.load(std::memory_order_acquire) != round) return;
    round_.wait(round, std::memory_order_acquire);
  }

 private:
  std::uint32_t count_;
  std::atomic<std::uint32_t> arrived_{0}, round_{0};
};

// So many links that a partition's state stays in a core's cache while its window runs, and enough
// partitions for all threads. The results do not depend on it.
std::uint32_t partition_count_for(const MessageSet& set, const Fabric& fabric,
                                  std::uint32_t threads) {
  constexpr std::size_t links_each = 400, links_of_a_path = 6;
  std::size_t wires = 0;
  for (const LinkId link : fabric.links()) wires += fabric.on_wire(link) ? 1 : 0;
  const std::size_t busy = std::min(wires, set.connections.size() * links_of_a_path);
  const auto by_cache = static_cast<std::uint32_t>(busy / links_each);
  return std::clamp(by_cache, threads > 1 ? 2 * threads : 1u, partition_count_max);
}

}  // namespace

WheelShape wheel_shape(const World& world, std::uint32_t partitions) {
  std::size_t wires = 0;
  Ps latency = 0;
  for (const LinkId link : world.fabric.links()) {
    if (!world.fabric.on_wire(link)) continue;
    ++wires;
    latency = std::max(latency, static_cast<Ps>(world.fabric.latency(link).ps));
  }
  wires /= partitions;
  const std::uint32_t width = wires <= 2'000 ? 9 : wires <= 10'000 ? 6 : 4;
  constexpr Ps packet_time = 500'000;
  constexpr std::uint32_t bits_max = 18;
  const auto bits = static_cast<std::uint32_t>(std::bit_width((latency + packet_time) >> width));
  const std::uint32_t fitted = bits > bits_max ? width + bits - bits_max : width;
  return {std::min(fitted, Wheel::width_max), std::min(bits, bits_max)};
}

Simulator::Simulator(World& world, std::span<const StateChange> changes, Partitioning partitioning,
                     Sampler sampler, Progress& progress)
    : world_(world),
      changes_(changes),
      partitioning_(std::move(partitioning)),
      sampler_(std::move(sampler)),
      progress_(progress),
      pauses_(world.options.pause_trees ? world.link_count : 0) {
  // The states up to time 0 are in the world already.
  while (next_change_ < changes_.size() && changes_[next_change_].at.ps <= 0) ++next_change_;
  open_shards();
  release_first();
  recorder_ = LoadRecorder(world_.options.load_windows);
  for (const LinkId link : world_.fabric.links())
    if (world_.options.load_windows > 0 && world_.fabric.on_wire(link))
      recorded_.push_back(link.value);
}

void Simulator::open_shards() {
  const WheelShape shape = wheel_shape(world_, partitioning_.count);
  for (std::uint32_t i = 0; i < partitioning_.count; ++i) {
    shards_.push_back(std::make_unique<Shard>(world_, i, partitioning_.count));
    shards_.back()->open(shape.width, shape.bits);
  }
  const auto fabric_links = static_cast<std::uint32_t>(world_.fabric.link_count());
  for (std::uint32_t id = 0; id < world_.link_count; ++id) {
    const NodeId to{world_.links[id].to};
    const NodeId from = id < fabric_links ? world_.fabric.from(LinkId(id)) : to;
    WEFT_CHECK(world_.partition[from.index()] < partitioning_.count);
    shards_[world_.partition[from.index()]]->own(id);
    if (world_.links[id].cross) shards_[world_.partition[to.index()]]->take_over(id);
  }
}

void Simulator::release_first() {
  for (std::uint32_t m = 0; m < world_.set.size(); ++m) {
    const Message& message = world_.set.messages[m];
    if (message.waits > 0) continue;
    const NodeId src = world_.set.connections[message.connection].src;
    shards_[world_.partition[src.index()]]->push(
        message.not_before_ps + Ps{message.delay_ns} * 1000, EventKind::start, m);
  }
}

void Simulator::run() {
  const std::uint32_t threads = std::min(std::max(world_.options.threads, 1u), partitioning_.count);
  if (threads > 1) return run_threads(threads);
  run_alone();
}

void Simulator::run_alone() {
  Ps first = never;
  for (const auto& shard : shards_) first = std::min(first, shard->open_window(shards_));
  for (Ps until = between_windows(0, first); until != never;) {
    for (const auto& shard : shards_) {
      shard->run(until);
      shard->close_window(until);
    }
    Ps next = never;
    for (const auto& shard : shards_) next = std::min(next, shard->open_window(shards_));
    for (const auto& shard : shards_) next = std::min(next, shard->forget_taken());
    until = between_windows(until, next);
  }
}

void Simulator::run_threads(std::uint32_t thread_count) {
  SpinBarrier barrier(thread_count);
  std::atomic<std::uint32_t> to_run{0}, to_open{0};
  std::vector<Ps> next(shards_.size(), never);
  Ps until = 0;
  const auto work = [&] {
    do {
      for (std::uint32_t i; (i = to_run.fetch_add(1)) < shards_.size();) {
        shards_[i]->run(until);
        shards_[i]->close_window(until);
      }
      barrier.wait([&] { to_open = 0; });
      for (std::uint32_t i; (i = to_open.fetch_add(1)) < shards_.size();)
        next[i] = shards_[i]->open_window(shards_);
      barrier.wait([&] {
        Ps first = std::ranges::min(next);
        for (const auto& shard : shards_) first = std::min(first, shard->forget_taken());
        until = between_windows(until, first);
        to_run = 0;
      });
    } while (until != never);
  };
  std::vector<std::thread> others;
  for (std::uint32_t i = 1; i < thread_count; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

Ps Simulator::next_appointment() const {
  Ps at = std::min({world_.options.end, next_look_, sampler_.next(), recorder_.next()});
  if (next_change_ < changes_.size())
    at = std::min(at, static_cast<Ps>(changes_[next_change_].at.ps));
  return at;
}

Ps Simulator::between_windows(Ps end, Ps next_event) {
  WEFT_CHECK(next_event >= end);  // nothing is left behind in a window that is over
  if (next_change_ < changes_.size() && static_cast<Ps>(changes_[next_change_].at.ps) <= end) {
    for (; next_change_ < changes_.size() && static_cast<Ps>(changes_[next_change_].at.ps) <= end;
         ++next_change_)
      apply_change(changes_[next_change_], end);
    next_event = end;
  }
  if (end >= sampler_.next()) sampler_.sample(world_, shards_, end);
  if (end >= recorder_.next()) record_loads(end);
  if (end >= next_look_) look(end, next_event);
  if (next_event == never && next_change_ < changes_.size())
    next_event = static_cast<Ps>(changes_[next_change_].at.ps);
  const bool idle = next_event == never;
  // Nothing will ever move again: two looks are enough for what stands in a circle.
  for (int i = 0; i < 2 && idle && !stopped_; ++i) look_for_deadlock(end);
  if (idle || end >= world_.options.end || stopped_) {
    end_ = std::min(stopped_ ? last_look_ : end, world_.options.end);
    if (!idle) return never;
    end_ = 0;
    for (const auto& shard : shards_) end_ = std::max(end_, shard->now());
    return never;
  }
  const Ps window = partitioning_.lookahead == never
                        ? never
                        : std::max(end, next_event) + partitioning_.lookahead;
  return std::min(window, next_appointment());
}

// Looks are at multiples of the interval, so that what they find does not depend on partitions.
void Simulator::look(Ps at, Ps next_event) {
  look_for_deadlock(at);
  show_progress();
  keep_counts();
  pauses_.take(shards_);
  stopped_ = stopped_ || overrun() != none;
  next_look_ = (at / look_interval + 1) * look_interval;
  Ps quiet_until = next_event;
  if (next_change_ < changes_.size())
    quiet_until = std::min(quiet_until, static_cast<Ps>(changes_[next_change_].at.ps));
  if (stopped_ || quiet_until == never || quiet_until <= next_look_) return;
  // All looks until then would see what this one saw; a circle that stays is a deadlock.
  if (!last_circle_.empty() && next_look_ <= world_.options.end) look_for_deadlock(next_look_);
  if (stopped_) return;
  last_look_ = quiet_until / look_interval * look_interval;
  next_look_ = last_look_ + look_interval;
}

// A link counts no more packets than all links together.
void Simulator::keep_counts() {
  constexpr std::uint64_t safe = std::uint64_t{1} << 31;
  std::uint64_t hops = 0;
  for (const auto& shard : shards_) hops += shard->counters().hops;
  WEFT_CHECK(hops >= kept_hops_);
  if (hops - kept_hops_ < safe) return;
  world_.keep_counts();
  kept_hops_ = hops;
}

std::uint32_t Simulator::overrun() const {
  std::uint32_t first = none;
  for (const auto& shard : shards_) first = std::min(first, shard->overrun());
  return first;
}

std::size_t Simulator::messages_over() const {
  std::size_t over = 0;
  for (const auto& shard : shards_) over += shard->messages_over();
  return over;
}

void Simulator::record_loads(Ps at) {
  for (const std::uint32_t id : recorded_)
    if (world_.links[id].waiting > 0)  // some of which may have left
      shards_[world_.partition[world_.fabric.from(LinkId(id)).index()]]->waiting_at(id, at);
  recorder_.sample(recorded_, [&](std::uint32_t id) { return world_.tallies[id].bytes; });
  // Behind the last message only timers are left, which may run long.
  if (messages_over() == world_.set.size()) recorder_.stop();
}

void Simulator::show_progress() {
  double done = 0;
  for (const auto& shard : shards_) done += static_cast<double>(shard->conservation().received);
  progress_.update(done);
}

void Simulator::watch(FailureLog& failures, Ps start) {
  start_ = start;
  watch_.emplace(failures, Time{static_cast<std::int64_t>(start)}, [this](LinkId link) {
    std::uint64_t lost = world_.rare[link.index()].dropped;
    for (const auto& shard : shards_) lost += shard->lost_at_far_end(link.value);
    return lost;
  });
}

// A link of the connection's path that is dead; `none` without.
std::uint32_t Simulator::dead_link(std::uint32_t connection) const {
  const auto path = world_.links_of(world_.senders[connection].path);
  const auto dead =
      std::ranges::find_if(path, [&](auto id) { return watch_->is_down(LinkId(id)); });
  return dead == path.end() ? none : *dead;
}

void Simulator::note_hits() {
  if (!watch_->any_down()) return;
  for (std::uint32_t c = 0; c < world_.senders.size(); ++c) {
    const std::uint32_t dead = is_busy(c) ? dead_link(c) : none;
    if (dead == none) continue;
    const Connection& connection = world_.set.connections[c / world_.fanout];
    watch_->hit({.key = c, .from = connection.src, .to = connection.dst, .qp = connection.qp},
                LinkId(dead));
  }
}

void Simulator::apply_change(const StateChange& change, Ps at) {
  for (const auto& shard : shards_) shard->settle_all(at);
  const Time now{static_cast<std::int64_t>(start_ + at)};
  if (watch_) {
    watch_->pass(now);
    note_hits();
  }
  world_.router.set_state(change.state);
  world_.protocols.routes_since = at;
  std::vector<std::uint32_t> died;
  apply_state(world_, change.state, died);
  const auto shard_of = [&](NodeId node) -> Shard& {
    return *shards_[world_.partition[node.index()]];
  };
  for (const std::uint32_t id : died)
    for (const LinkId link : {LinkId(id), LinkId(World::reverse(id))}) {
      shard_of(world_.fabric.from(link)).end_pause(link.value);
      shard_of(world_.fabric.to(link)).forget_pause(link.value);
    }
  for (const std::uint32_t id : died) shard_of(world_.fabric.from(LinkId(id))).drop_link(id);
  pauses_.take(shards_);
  for (const auto& shard : shards_) shard->watch_all();
  // Tables out of bounds would have shown at the start: their size is that of the whole fabric.
  if (needs_table(world_.options)) WEFT_CHECK(build_table(world_, change.state).has_value());
  for (std::uint32_t c = 0; c < world_.senders.size(); ++c) {
    const NodeId src = world_.set.connections[c / world_.fanout].src;
    shards_[world_.partition[src.index()]]->reroute(c, at);
  }
  if (world_.options.balance == Balance::ugal) find_candidates(world_);
  if (watch_)
    watch_->settle(now, [this](std::uint64_t key) {
      const auto connection = static_cast<std::uint32_t>(key);
      return !is_busy(key) ||
             (world_.senders[connection].path != none && dead_link(connection) == none);
    });
}

// The link that keeps a paused one waiting: at its far end, a paused link for which packets that
// came in by it wait. `none` when every such link moves.
std::uint32_t Simulator::blocked_by(std::uint32_t id) const {
  const Link& link = world_.links[id];
  const NodeBuffer& node = world_.nodes[link.to];
  for (std::uint32_t i = 0; i < node.port_count; ++i) {
    const std::uint32_t out_id = world_.ports[node.first_port + i];
    const Link& out = world_.links[out_id];
    if (!out.paused || out.waiting == 0 || !out.buffered) continue;
    if (shards_[world_.partition[link.to]]->holds_from(out_id, link.port)) return out_id;
  }
  return none;
}

// Paused links that wait for each other in a circle, none of which has moved since the last look,
// never will again.
void Simulator::look_for_deadlock(Ps at) {
  std::vector<std::uint32_t> mark(world_.link_count, 0);
  std::vector<LinkId> circle;
  for (std::uint32_t first = 0; first < world_.fabric.link_count() && circle.empty(); ++first) {
    std::uint32_t id = first;
    while (id != none && world_.links[id].paused && mark[id] == 0) {
      mark[id] = first + 1;
      id = blocked_by(id);
    }
    if (id == none || !world_.links[id].paused || mark[id] != first + 1) continue;
    for (std::uint32_t at_link = id; circle.empty() || at_link != id; at_link = blocked_by(at_link))
      circle.push_back(LinkId(at_link));
  }
  std::uint64_t sent = 0;
  for (const LinkId link : circle) sent += world_.sums_of(link.value).data;
  const auto still = [&](LinkId link) {
    return world_.rare[link.index()].paused_since <= last_look_;
  };
  if (!circle.empty() && circle == last_circle_ && sent == last_circle_sent_ &&
      std::ranges::all_of(circle, still)) {
    Ps since = 0;
    for (const LinkId link : circle)
      since = std::max(since, world_.rare[link.index()].paused_since);
    deadlocks_.push_back({since, circle});
    stopped_ = true;
  }
  last_circle_ = std::move(circle);
  last_circle_sent_ = sent;
  last_look_ = at;
}

// From the first start of a message to the last end; where not all ended, to the last arrival of a
// packet. Timers that find nothing to do run on for longer.
TrafficSpan Simulator::traffic_span() const {
  TrafficSpan span{never, 0};
  bool complete = true;
  for (const MessageEnd& message : world_.ends) {
    span.begin = std::min(span.begin, message.start);
    complete = complete && message.end != never;
    if (message.end != never) span.end = std::max(span.end, message.end);
  }
  for (const auto& shard : shards_)
    if (!complete) span.end = std::max(span.end, shard->last_arrival());
  span.begin = std::min(span.begin, span.end);
  return span;
}

PacketRunResult Simulator::result() {
  PacketRunResult out;
  if (watch_)
    watch_->finish(Time{static_cast<std::int64_t>(start_ + end_)},
                   [this](std::uint64_t key) { return is_busy(key); });
  if (end_ > 0)
    for (const auto& shard : shards_)
      shard->settle_all(end_ - 1);  // what has started has been sent
  out.complete = std::ranges::all_of(world_.ends, [](const auto& m) { return m.end != never; });
  if (out.complete) {
    // What is left behind the last message are timers that found nothing to do.
    end_ = 0;
    for (const MessageEnd& message : world_.ends) end_ = std::max(end_, message.end);
  }
  out.end = end_;
  for (const auto& shard : shards_) shard->end_pauses(end_);
  pauses_.take(shards_);
  out.pause_trees = pauses_.trees(world_);
  out.messages = std::move(world_.ends);
  out.links.resize(world_.fabric.link_count());
  for (std::uint32_t id = 0; id < world_.fabric.link_count(); ++id) {
    const LinkTally& t = world_.tallies[id];
    const LinkSums sums = world_.sums_of(id);
    const RareTally& p = world_.rare[id];
    const Ps still = world_.links[id].paused && end_ > p.paused_since ? end_ - p.paused_since : 0;
    out.links[id] = {t.bytes,   sums.data, sums.control, sums.marked,           p.dropped,
                     p.trimmed, p.pauses,  t.queue_max,  p.paused_total + still};
  }
  if (!world_.by_class.empty())
    world_.by_class.resize(world_.fabric.link_count() * world_.class_count);  // no drains
  for (const ClassTally& tally : world_.by_class) {
    out.class_links.push_back(tally.counts);
    if (tally.paused && end_ > tally.paused_since)
      out.class_links.back().paused_ps += end_ - tally.paused_since;
  }
  out.tiers.resize(world_.fabric.tiers().size());
  for (std::size_t i = 0; i < out.tiers.size(); ++i)
    out.tiers[i].tier = world_.fabric.tiers()[model::TierId(i)].name;
  for (const auto& shard : shards_) shard->add_to(out);
  WEFT_CHECK(out.conservation.holds());
  std::ranges::sort(out.lossless_drops, {}, [](const LosslessDrops& d) {
    return std::tuple(d.traffic_class, d.cause, d.link);
  });
  for (std::uint32_t id = 0; id < world_.fabric.link_count(); ++id) {
    auto& most = out.tiers[world_.fabric.tier_id(LinkId(id)).index()].queue_bytes_max;
    most = std::max<std::uint64_t>(most, out.links[id].queue_max);
  }
  for (std::size_t n = 0; n < world_.nodes.size(); ++n) {
    NodeBuffer& node = world_.nodes[n];
    shards_[world_.partition[n]]->close_batch(node);
    out.counters.buffer_max = std::max(out.counters.buffer_max, node.waiting_max);
  }
  out.series = sampler_.take();
  out.loads = recorder_.take(recorded_, [&](std::uint32_t id) { return world_.tallies[id].bytes; });
  out.deadlocks = std::move(deadlocks_);
  out.digest = digest_of(out);
  return out;
}

std::uint64_t expected_hops(const MessageSet& set, route::Router& router, const Options& options) {
  std::vector<std::uint64_t> packets(set.connections.size());
  const auto mtu = static_cast<std::uint64_t>(options.wire.mtu.count);
  for (std::size_t m = 0; m < set.size(); ++m) {
    const std::uint64_t data = (set.messages[m].bytes + mtu - 1) / mtu;
    const std::uint64_t gathered = options.ack_every > 0 ? data / options.ack_every : 0;
    const std::uint64_t answers =
        options.gathers_acks() && data > 0 ? std::max<std::uint64_t>(gathered, 1) : data;
    packets[set.messages[m].connection] += data + answers;
  }
  std::uint64_t out = 0;
  std::vector<route::Hop> path;
  for (std::size_t c = 0; c < packets.size(); ++c) {
    const Connection& one = set.connections[c];
    path.clear();
    if (packets[c] == 0 || !router.append_gpu_path(one.src, one.dst, one.qp, one.qp, path))
      continue;
    double length = 0;
    for (const route::Hop& hop : path) length += hop.share;
    out += packets[c] * static_cast<std::uint64_t>(std::llround(length));
  }
  return out;
}

void announce_hops(const MessageSet& set, route::Router& router, const Options& options,
                   double runs, Progress& progress, std::string_view advice) {
  // On one thread; docs/benchmarks.md has 3 (many pauses) to 9 million.
  constexpr double hops_per_s = 6e6;
  const double hops = runs * static_cast<double>(expected_hops(set, router, options));
  const double s = hops / hops_per_s;
  const double step = s < 60 ? 10 : 30;
  if (s >= 30)
    progress.announce(fmt::format("{:.2g} packet hops to simulate: some {} on one thread{}", hops,
                                  human_seconds(std::round(s / step) * step), advice));
}

Result<PacketRunResult> run_messages(const MessageSet& set, route::Router& router,
                                     std::span<const StateChange> changes, const Options& options,
                                     Progress& progress, FailureLog* failures, Ps start) {
  World world(set, router, options);
  const model::State healthy;
  const model::State* initial = &healthy;
  for (const StateChange& change : changes)
    if (change.at.ps <= 0) initial = &change.state;
  router.set_state(*initial);
  const std::uint32_t parts = partition_count_for(set, router.fabric(), options.threads);
  Partitioning partitioning = make_partitions(set, router.fabric(), parts);
  WEFT_TRY_STATUS(build_world(world, *initial, partitioning));
  WEFT_TRY(Sampler sampler, Sampler::create(world));
  Simulator simulator(world, changes, std::move(partitioning), std::move(sampler), progress);
  if (failures != nullptr) simulator.watch(*failures, start);
  simulator.run();
  if (const std::uint32_t id = simulator.overrun(); id != none)
    return fail(Errc::infeasible, {},
                fmt::format("more than 4 GiB are queued for {}",
                            id < router.fabric().link_count() ? router.fabric().name(LinkId(id))
                                                              : std::string("a slow receiver")),
                "limit it with transport.pfc, transport.buffers or transport.window");
  std::vector<std::string> unfinished, storms;
  describe_unfinished(world, simulator.end(), unfinished);
  describe_storms(world, simulator.traffic_span(), storms);
  PacketRunResult out = simulator.result();
  out.unfinished = std::move(unfinished);
  out.storms = std::move(storms);
  return out;
}

}  // namespace weft::engine::packet
