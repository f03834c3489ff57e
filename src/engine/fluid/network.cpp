#include "engine/fluid/network.hpp"

#include <algorithm>
#include <utility>

namespace weft::engine::fluid {
namespace {

// Timers of the network itself and of its client share the simulation's queue.
enum class TimerKind : std::uint64_t { change = 0, delivery = 1, client = 2 };
constexpr std::uint64_t kind_shift = 62;
constexpr std::uint64_t tag_mask = (std::uint64_t{1} << kind_shift) - 1;

constexpr std::uint64_t timer_tag(TimerKind kind, std::uint64_t value) {
  return (static_cast<std::uint64_t>(kind) << kind_shift) | value;
}

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

}  // namespace

Network::Network(Router& router, std::span<const StateChange> changes,
                 const Simulation::Options& options)
    : router_(in_first_state(router, changes)),
      changes_(changes),
      simulation_(capacities(router), options) {
  for (std::size_t i = 0; i < changes_.size(); ++i)
    if (changes_[i].at.ps > 0)
      simulation_.timer(changes_[i].at.seconds(), timer_tag(TimerKind::change, i));
}

void Network::send(const TransferSpec& spec) {
  std::uint32_t id = 0;
  if (free_transfers_.empty()) {
    id = static_cast<std::uint32_t>(transfers_.size());
    transfers_.emplace_back();
  } else {
    id = free_transfers_.back();
    free_transfers_.pop_back();
  }
  const auto count = static_cast<std::uint32_t>(spec.parts.size());
  const std::uint32_t first = parts_.take(BlockArena<Part>::class_for(count));
  std::ranges::copy(spec.parts, parts_.at(first));
  transfers_[id] = {.flow = {},
                    .parts = first,
                    .part_count = count,
                    .waiting_bytes = 0,
                    .overhead_s = spec.overhead_s,
                    .wire = spec.wire,
                    .tag = spec.tag,
                    .via = spec.via,
                    .active = true};
  launch(id, spec.bytes);
}

void Network::timer(double at_s, std::uint64_t tag) {
  WEFT_CHECK(tag <= tag_mask);
  simulation_.timer(at_s, timer_tag(TimerKind::client, tag));
}

void Network::run(Client& client) {
  client_ = &client;
  simulation_.run(*this);
  simulation_.account_active();
}

void Network::launch(std::uint32_t id, double bytes) {
  Transfer& transfer = transfers_[id];
  if (find_path(transfer)) {
    update_latency(transfer);
    transfer.flow = simulation_.start(path_, bytes, id);
  } else {
    transfer.flow = {};
    transfer.waiting = true;
    transfer.waiting_bytes = bytes;
  }
}

void Network::update_latency(Transfer& transfer) {
  transfer.latency_s = transfer.overhead_s;
  if (transfer.wire == TransferSpec::Wire::ignored) return;
  const Part& part = parts_[transfer.parts];
  transfer.latency_s += router_.latency(part.from, part.to).seconds();
}

bool Network::find_path(const Transfer& transfer) {
  path_.clear();
  reachable_ = true;
  const Part* const parts = parts_.at(transfer.parts);
  for (std::uint32_t i = 0; i < transfer.part_count && reachable_; ++i)
    append_part(parts[i], transfer.via);
  add_new_pools();
  return reachable_;
}

void Network::append_part(const Part& part, std::span<const NodeId> via) {
  using model::NodeKind;
  const Fabric& fabric = router_.fabric();
  const NodeKind from = fabric.kind(part.from), to = fabric.kind(part.to);
  const bool wire = from == NodeKind::nic && to == NodeKind::nic;
  const bool cable = from == NodeKind::nvswitch || to == NodeKind::nvswitch ||
                     (fabric.is_switch(part.from) && fabric.is_switch(part.to));
  for (std::uint32_t s = 0; s < part.streams && reachable_; ++s) {
    const std::size_t before = path_.size();
    const std::uint32_t qp = part.qp + s, message = part.message + s;
    if (cable) {
      reachable_ = append_cable(part.from, part.to);
    } else if (wire) {
      reachable_ = router_.append_path({part.from, part.to, qp, message, via}, path_);
    } else {
      reachable_ = router_.append_gpu_path(part.from, part.to, qp, message, path_);
    }
    const double scale = part.weight / part.streams;
    if (scale != 1)
      for (std::size_t h = before; h < path_.size(); ++h) path_[h].share *= scale;
  }
}

// Neighbours, such as a GPU and its NVSwitch: parallel cables share by what they can carry.
bool Network::append_cable(NodeId from, NodeId to) {
  double total = 0;
  for (const LinkId link : router_.fabric().out(from))
    if (router_.fabric().to(link) == to) total += router_.capacity(link);
  if (total <= 0) return false;
  for (const LinkId link : router_.fabric().out(from))
    if (router_.fabric().to(link) == to && router_.capacity(link) > 0)
      path_.push_back({link, router_.capacity(link) / total});
  return true;
}

void Network::add_new_pools() {
  for (std::size_t r = simulation_.carried().size(); r < router_.resource_count(); ++r)
    simulation_.add_resource(router_.capacity(LinkId(r)));
}

void Network::on_flow_end(FlowId, std::uint64_t tag) {
  const auto id = static_cast<std::uint32_t>(tag);
  const Transfer& transfer = transfers_[id];
  if (transfer.latency_s <= 0) return deliver(id);
  transfers_[id].flow = {};
  simulation_.timer(now() + transfer.latency_s, timer_tag(TimerKind::delivery, id));
}

void Network::deliver(std::uint32_t id) {
  Transfer& transfer = transfers_[id];
  transfer.active = false;
  parts_.give_back(transfer.parts, BlockArena<Part>::class_for(transfer.part_count));
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

void Network::apply_change(std::size_t index) {
  router_.set_state(changes_[index].state);
  for (const LinkId id : ids<LinkId>(router_.resource_count()))
    simulation_.set_capacity(id, router_.capacity(id));
  for (std::uint32_t id = 0; id < transfers_.size(); ++id)
    if (transfers_[id].active) reroute(id);
}

void Network::reroute(std::uint32_t id) {
  Transfer& transfer = transfers_[id];
  if (!transfer.flow.valid()) {
    // Waiting for a path, or sent and on its way: the latter has nothing to move.
    if (std::exchange(transfer.waiting, false)) launch(id, transfer.waiting_bytes);
    return;
  }
  bool dead = false;
  simulation_.for_each_hop(
      transfer.flow, [&](LinkId link, double) { dead = dead || router_.capacity(link) <= 0; });
  const double in_flight = dead ? simulation_.rate(transfer.flow) * transfer.latency_s : 0;
  if (!find_path(transfer)) {
    transfer.waiting_bytes = simulation_.stop(transfer.flow) + in_flight;
    transfer.waiting = true;
    transfer.flow = {};
  } else if (!same_path(transfer.flow)) {
    simulation_.move(transfer.flow, path_, in_flight);
    update_latency(transfer);
  }
}

bool Network::same_path(FlowId flow) const {
  std::vector<Hop> now = path_;
  std::ranges::sort(now, {}, &Hop::link);
  std::size_t kept = 0;
  for (const Hop& hop : now) {
    if (kept > 0 && now[kept - 1].link == hop.link) {
      now[kept - 1].share += hop.share;
    } else {
      now[kept++] = hop;
    }
  }
  std::size_t at = 0;
  bool same = true;
  simulation_.for_each_hop(flow, [&](LinkId link, double share) {
    same = same && at < kept && now[at].link == link && now[at].share == share;
    ++at;
  });
  return same && at == kept;
}

std::vector<std::uint64_t> Network::undelivered() const {
  std::vector<std::uint64_t> out;
  for (const Transfer& transfer : transfers_)
    if (transfer.active) out.push_back(transfer.tag);
  std::ranges::sort(out);
  return out;
}

std::vector<double> Network::link_bytes() const {
  const std::vector<double>& carried = simulation_.carried();
  std::vector<double> out(carried.begin(), carried.begin() + static_cast<std::ptrdiff_t>(
                                                                 router_.fabric().link_count()));
  for (std::size_t r = out.size(); r < carried.size(); ++r) {
    if (carried[r] == 0) continue;
    const std::span<const LinkId> members = router_.members(LinkId(r));
    double total = 0;
    for (const LinkId link : members) total += router_.capacity(link);
    for (const LinkId link : members)
      out[link.index()] += total > 0 ? carried[r] * router_.capacity(link) / total
                                     : carried[r] / static_cast<double>(members.size());
  }
  return out;
}

}  // namespace weft::engine::fluid
