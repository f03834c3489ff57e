// The words of a result.
#include <fmt/format.h>

#include <algorithm>

#include "base/hash.hpp"
#include "engine/packet/simulator.hpp"

namespace weft::engine::packet {
namespace {

constexpr std::size_t lines_max = 100;

double microseconds(Ps t) { return static_cast<double>(t) * 1e-6; }

std::string describe(const World& world, std::uint32_t m) {
  const Message& message = world.set.messages[m];
  const Connection& c = world.set.connections[message.connection];
  const Sender& sender = world.senders[std::size_t{message.connection} * world.fanout];
  std::string out = fmt::format("message {} ({} to {}, {} B)", m, world.fabric.name(c.src),
                                world.fabric.name(c.dst), message.bytes);
  const std::uint32_t waits = world.message_states[m].waits_or_end_high;
  if (world.ends[m].start == never)
    return out +
           (waits > 0 ? fmt::format(" waits for {} other events", waits) : " had not started");
  out += fmt::format(": {} of {} packets acknowledged", world.acknowledged(sender, m),
                     world.packet_count(sender, m));
  if (sender.failed) return out + "; its queue pair gave up after 7 timeouts";
  if (sender.source == none) return out + "; it has no live path";
  return out;
}

}  // namespace

void describe_unfinished(const World& world, Ps end, std::vector<std::string>& out) {
  std::size_t more = 0;
  for (std::uint32_t m = 0; m < world.set.size(); ++m) {
    if (world.ends[m].end != never) continue;
    if (out.size() == lines_max) {
      ++more;
    } else {
      out.push_back(fmt::format("{}, {:.3f} us", describe(world, m), microseconds(end)));
    }
  }
  if (more > 0) out.push_back(fmt::format("... and {} more", more));
}

// Links that were paused for most of the time that traffic lasted, because of pauses.
void describe_storms(const Fabric& fabric, std::span<const LinkCounters> links, TrafficSpan traffic,
                     std::vector<std::string>& out) {
  constexpr double most = 0.5;
  constexpr Ps short_run = 10'000'000;
  const Ps length = traffic.end - traffic.begin;
  if (length < short_run) return;
  for (std::uint32_t id = 0; id < links.size(); ++id) {
    // The last pauses may outlast the traffic by the time of a frame on its way.
    const Ps paused = std::min(links[id].paused_ps, length);
    const double share = static_cast<double>(paused) / static_cast<double>(length);
    if (share <= most) continue;
    if (out.size() == lines_max) {
      out.emplace_back("... and more");
      return;
    }
    out.push_back(fmt::format("{} was paused for {:.0f} % of {:.3f} us of traffic ({} pauses)",
                              fabric.name(LinkId(id)), share * 100, microseconds(length),
                              links[id].pauses));
  }
}

void describe_storms(const World& world, TrafficSpan traffic, std::vector<std::string>& out) {
  std::vector<LinkCounters> links(world.fabric.link_count());
  for (std::uint32_t id = 0; id < links.size(); ++id) {
    const RareTally& rare = world.rare[id];
    const bool still = world.links[id].paused && traffic.end > rare.paused_since;
    links[id].paused_ps = rare.paused_total + (still ? traffic.end - rare.paused_since : 0);
    links[id].pauses = rare.pauses;
  }
  describe_storms(world.fabric, links, traffic, out);
}

std::string digest_of(const PacketRunResult& result) {
  Digest digest;
  for (const MessageEnd& end : result.messages) {
    digest.add(end.start);
    digest.add(end.arrived);
    digest.add(end.end);
  }
  for (const LinkCounters& link : result.links) {
    digest.add(link.bytes);
    digest.add(link.packets);
    digest.add(link.control);
    digest.add(link.ecn_marked);
    digest.add(link.dropped);
    digest.add(link.trimmed);
    digest.add(link.paused_ps);
    digest.add(link.pauses);
    digest.add(std::uint64_t{link.queue_max});
  }
  const Counters& c = result.counters;
  for (const std::uint64_t count :
       {c.hops, c.pause_frames, c.ecn_marks, c.cnps, c.drops, c.drops_headroom, c.drops_link,
        c.drops_control, c.trims, c.retransmissions, c.timeouts, c.buffer_max})
    digest.add(count);
  const Conservation& payload = result.conservation;
  for (const std::uint64_t bytes :
       {payload.sent, payload.received, payload.dropped, payload.in_flight})
    digest.add(bytes);
  for (const TierCounters& tier : result.tiers) {
    for (const std::uint64_t count : tier.queue_bytes) digest.add(count);
    for (const std::uint64_t count : tier.pause_ps) digest.add(count);
  }
  for (const Deadlock& deadlock : result.deadlocks) digest.add(deadlock.since);
  return digest.hex();
}

}  // namespace weft::engine::packet
