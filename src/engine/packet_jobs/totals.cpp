#include "engine/packet_jobs/totals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

namespace weft::engine::packet {
namespace {

constexpr std::size_t lines_max = 100;

void add_multiple(LogHistogram& sum, const LogHistogram& more, std::uint64_t times) {
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i] * times;
}

// Upper edge of the bin in which `share` of all values is reached; no number without values.
double quantile(const LogHistogram& bins, double share) {
  std::uint64_t all = 0, seen = 0;
  for (const std::uint64_t n : bins) all += n;
  for (std::size_t i = 0; i < bins.size(); ++i) {
    seen += bins[i];
    if (seen > 0 && static_cast<double>(seen) >= share * static_cast<double>(all))
      return i == 0 ? 0 : std::ldexp(1.0, static_cast<int>(i));
  }
  return model::no_number;
}

std::vector<std::uint64_t> trimmed(const LogHistogram& bins) {
  std::size_t n = bins.size();
  while (n > 0 && bins[n - 1] == 0) --n;
  return {bins.begin(), bins.begin() + static_cast<std::ptrdiff_t>(n)};
}

std::string circle_text(const model::Fabric& fabric, const Deadlock& deadlock, Ps offset) {
  std::string links;
  for (const model::LinkId link : deadlock.circle)
    links += (links.empty() ? "" : ", ") + fabric.name(link);
  return fmt::format(
      "deadlock: no packet has moved on these links since {:.3f} us, each paused because the next "
      "is full: {}",
      seconds(offset + deadlock.since) * 1e6, links);
}

// "lossless class 0 lost 46 packets, as the headroom is too small at nic:3->rtsw:0 (20), ..."; a
// line for each class and cause. `drops`: in the order of class and cause.
std::vector<std::string> lossless_texts(std::span<const LosslessDrops> drops) {
  constexpr std::size_t ports_shown = 8;
  std::vector<std::string> out;
  for (std::size_t begin = 0, end = 0; begin < drops.size(); begin = end) {
    const LosslessDrops& first = drops[begin];
    std::uint64_t packets = 0;
    for (; end < drops.size() && drops[end].traffic_class == first.traffic_class &&
           drops[end].cause == first.cause;
         ++end)
      packets += drops[end].packets;
    std::string ports;
    for (const LosslessDrops& d : drops.subspan(begin, std::min(end - begin, ports_shown)))
      ports += fmt::format("{}{} ({})", ports.empty() ? "" : ", ", d.port, d.packets);
    if (end - begin > ports_shown)
      ports += fmt::format(" and {} more ports", end - begin - ports_shown);
    const bool headroom = first.cause == LosslessDrops::Cause::small_headroom;
    out.push_back(fmt::format("lossless class {} lost {} packets, e.g. {} at {}",
                              first.traffic_class, packets,
                              headroom ? "the PFC headroom is too small for the incoming traffic"
                                       : "the per_port buffer is full",
                              ports));
  }
  return out;
}

}  // namespace

PacketTotals::PacketTotals(const model::Fabric& fabric)
    : fabric_(fabric),
      link_bytes_(fabric.link_count(), 0),
      paused_s_(fabric.link_count(), 0),
      tiers_(fabric.tiers().size()) {}

void PacketTotals::repeat(const PacketRunResult& run, std::uint64_t times) {
  const auto factor = static_cast<double>(times);
  for (std::size_t i = 0; i < run.links.size(); ++i) {
    const LinkCounters& link = run.links[i];
    link_bytes_[i] += static_cast<double>(link.bytes) * factor;
    paused_s_[i] += seconds(link.paused_ps) * factor;
    TierSums& tier = tiers_[fabric_.tier_id(model::LinkId(i)).index()];
    tier.packets += link.packets * times;
    tier.drops += link.dropped * times;
    tier.ecn_marks += link.ecn_marked * times;
    tier.pauses += link.pauses * times;
  }
  for (std::size_t i = 0; i < std::min(run.tiers.size(), tiers_.size()); ++i) {
    add_multiple(tiers_[i].queue_bytes, run.tiers[i].queue_bytes, times);
    add_multiple(tiers_[i].pause_ps, run.tiers[i].pause_ps, times);
    tiers_[i].queue_bytes_max = std::max(tiers_[i].queue_bytes_max, run.tiers[i].queue_bytes_max);
  }
  const Counters& c = run.counters;
  counters_.hops += c.hops * times;
  counters_.pause_frames += c.pause_frames * times;
  counters_.ecn_marks += c.ecn_marks * times;
  counters_.cnps += c.cnps * times;
  counters_.drops += c.drops * times;
  counters_.drops_headroom += c.drops_headroom * times;
  counters_.drops_link += c.drops_link * times;
  counters_.drops_control += c.drops_control * times;
  counters_.trims += c.trims * times;
  counters_.retransmissions += c.retransmissions * times;
  counters_.timeouts += c.timeouts * times;
  counters_.buffer_max = std::max(counters_.buffer_max, c.buffer_max);
  conservation_.sent += run.conservation.sent * times;
  conservation_.received += run.conservation.received * times;
  conservation_.dropped += run.conservation.dropped * times;
  conservation_.in_flight += run.conservation.in_flight * times;
  const auto key = [](const LosslessDrops& d) {
    return std::tuple(d.traffic_class, d.cause, d.link);
  };
  for (LosslessDrops more : run.lossless_drops) {
    more.packets *= times;
    const auto at = std::ranges::lower_bound(lossless_drops_, key(more), {}, key);
    if (at != lossless_drops_.end() && key(*at) == key(more)) {
      at->packets += more.packets;
    } else {
      lossless_drops_.insert(at, std::move(more));
    }
  }
}

void PacketTotals::add(const PacketRunResult& run, Ps offset) {
  repeat(run, 1);
  for (const Series& series : run.series) {
    auto known = std::ranges::find(series_, series.name, &model::PacketOutcome::Series::name);
    if (known == series_.end()) known = series_.insert(known, {series.name, series.unit, {}, {}});
    for (const double t : series.time_s) known->time_s.push_back(t + seconds(offset));
    known->value.insert(known->value.end(), series.value.begin(), series.value.end());
  }
  for (const Deadlock& deadlock : run.deadlocks)
    if (deadlocks_.size() < lines_max) deadlocks_.push_back(circle_text(fabric_, deadlock, offset));
  for (const std::string& storm : run.storms)
    if (storms_.size() < lines_max && std::ranges::find(storms_, storm) == storms_.end())
      storms_.push_back(storm);
}

model::PacketOutcome::Tier PacketTotals::tier_outcome(const model::Fabric::Tier& tier,
                                                      const TierSums& sums) const {
  model::PacketOutcome::Tier out{.name = tier.name};
  out.packets = sums.packets;
  out.drops = sums.drops;
  out.ecn_marks = sums.ecn_marks;
  out.pauses = sums.pauses;
  out.queue_max_bytes = static_cast<double>(sums.queue_bytes_max);
  out.queue_p50_bytes = std::min(quantile(sums.queue_bytes, 0.5), out.queue_max_bytes);
  out.queue_p99_bytes = std::min(quantile(sums.queue_bytes, 0.99), out.queue_max_bytes);
  out.pause_p50_s = quantile(sums.pause_ps, 0.5) * 1e-12;
  out.pause_p99_s = quantile(sums.pause_ps, 0.99) * 1e-12;
  for (const model::LinkId link : tier.links) {
    out.paused_max_s = std::max(out.paused_max_s, paused_s_[link.index()]);
    out.paused_total_s += paused_s_[link.index()];
  }
  out.queue_histogram = trimmed(sums.queue_bytes);
  out.pause_histogram = trimmed(sums.pause_ps);
  return out;
}

model::PacketOutcome PacketTotals::outcome(std::string transport) const {
  model::PacketOutcome out{.transport = std::move(transport)};
  out.hops = counters_.hops;
  out.pause_frames = counters_.pause_frames;
  out.ecn_marks = counters_.ecn_marks;
  out.cnps = counters_.cnps;
  out.drops = counters_.drops;
  out.drops_headroom = counters_.drops_headroom;
  out.drops_link = counters_.drops_link;
  out.drops_control = counters_.drops_control;
  out.trims = counters_.trims;
  out.retransmissions = counters_.retransmissions;
  out.timeouts = counters_.timeouts;
  out.buffer_max_bytes = static_cast<double>(counters_.buffer_max);
  out.sent_bytes = static_cast<double>(conservation_.sent);
  out.received_bytes = static_cast<double>(conservation_.received);
  out.dropped_bytes = static_cast<double>(conservation_.dropped);
  out.in_flight_bytes = static_cast<double>(conservation_.in_flight);
  for (const model::Fabric::Tier& tier : fabric_.tiers()) {
    if (tier.links.empty() || !fabric_.on_wire(tier.links.front())) continue;
    const TierSums& sums = tiers_[fabric_.tier_id(tier.links.front()).index()];
    if (sums.packets > 0) out.tiers.push_back(tier_outcome(tier, sums));
  }
  out.series = series_;
  out.deadlocks = deadlocks_;
  out.storms = storms_;
  out.lossless_drops = lossless_texts(lossless_drops_);
  return out;
}

}  // namespace weft::engine::packet
