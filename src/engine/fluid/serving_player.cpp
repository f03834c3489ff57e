#include "engine/fluid/serving_player.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "engine/fluid/simulation.hpp"
#include "engine/fluid/stage.hpp"

namespace weft::engine::fluid {

Result<ServingPlayer> ServingPlayer::create(const ServingJob& job, std::uint64_t tag,
                                            Network& network) {
  const std::size_t replicas = std::size_t{job.cluster.replicas} + job.cluster.decode_replicas;
  WEFT_CHECK(job.cluster.decode_replicas == 0 || job.replicas.size() == replicas);
  WEFT_TRY(auto cluster, workload::ServingCluster::create(*job.requests, *job.times, job.cluster));
  ServingPlayer out(job, tag, network, std::move(cluster));
  out.routes_.resize(std::size_t{job.cluster.replicas} * job.cluster.decode_replicas);
  out.ends_.resize(job.requests->size());
  return out;
}

// A timer that was set before something else came first finds nothing to do.
void ServingPlayer::wake() {
  const Time next = cluster_.next();
  if (next == workload::never || next >= timer_) return;
  timer_ = next;
  network_->timer(next.seconds(), tag_);
}

void ServingPlayer::on_timer() {
  // A timer may fire with another that is not later by more than this share.
  const double due = network_->now() * (1 + Simulation::together);
  if (timer_ == workload::never || timer_.seconds() > due) return;
  timer_ = workload::never;
  // Seconds of the network are rounded: the cluster's own time counts.
  while (cluster_.next() != workload::never && cluster_.next().seconds() <= due) {
    now_ = cluster_.next();
    cluster_.step();
    for (const auto& transfer : cluster_.take_transfers()) send(transfer);
  }
  wake();
}

void ServingPlayer::send(const workload::ServingCluster::Transfer& transfer) {
  ends_[transfer.request] = {transfer.from, transfer.to};
  network_->send(route(transfer.from, transfer.to), static_cast<double>(transfer.bytes), 0,
                 tag_ + 1 + transfer.request);
}

RouteId ServingPlayer::route(std::uint32_t from, std::uint32_t to) {
  RouteId& known = routes_[std::size_t{from} * job_->cluster.decode_replicas + to];
  if (known.valid()) return known;
  const std::vector<NodeId>& senders = job_->replicas[from];
  const std::vector<NodeId>& receivers = job_->replicas[job_->cluster.replicas + to];
  WEFT_CHECK(senders.size() == receivers.size());
  std::vector<Part> parts;
  for (std::size_t rank = 0; rank < senders.size(); ++rank)
    parts.push_back({senders[rank], receivers[rank], 0, network_->router().stream_count(), 0,
                     1.0 / static_cast<double>(senders.size())});
  return known = network_->add_route(parts, Wire::counted);
}

void ServingPlayer::on_delivered(std::uint64_t tag) {
  now_ = std::clamp(Time{} + from_seconds(network_->now()), now_, cluster_.next());
  cluster_.deliver(static_cast<std::uint32_t>(tag - tag_ - 1), now_);
  wake();
}

bool ServingPlayer::is_over() const {
  if (cluster_.ended()) return true;
  if (cluster_.next() != workload::never || network_->changes_after(network_->now())) return false;
  if (now_ == Time{} + from_seconds(network_->now())) return false;  // rates are not known yet
  bool moves = false;
  network_->for_each_active([&](std::uint64_t tag, double, double rate) {
    moves |= rate > 0 && tag > tag_ && tag - tag_ <= ends_.size();
  });
  return !moves;
}

std::string ServingPlayer::why(std::uint64_t tag) const {
  const Ends ends = ends_[tag - tag_ - 1];
  const std::vector<NodeId>& senders = job_->replicas[ends.from];
  const std::vector<NodeId>& receivers = job_->replicas[job_->cluster.replicas + ends.to];
  for (std::size_t rank = 0; rank < senders.size(); ++rank) {
    const std::string path = describe_dead_path(senders[rank], receivers[rank], network_->router());
    if (!path.empty()) return fmt::format("{} (KV cache of request {})", path, tag - tag_ - 1);
  }
  return fmt::format("the KV cache of request {} has no bandwidth", tag - tag_ - 1);
}

}  // namespace weft::engine::fluid
