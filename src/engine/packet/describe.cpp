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
  if (world.message_states[m].waits > 0)
    return out + fmt::format(" waits for {} other events", world.message_states[m].waits);
  if (world.ends[m].start == never) return out + " had not begun";
  out += fmt::format(": {} of {} packets are acknowledged", world.acknowledged(sender, m),
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

// Links that stood still for most of the run because of pauses.
void describe_storms(const World& world, Ps end, std::vector<std::string>& out) {
  constexpr double most = 0.5;
  constexpr Ps short_run = 10'000'000;
  if (end < short_run) return;
  for (std::uint32_t id = 0; id < world.fabric.link_count(); ++id) {
    const RareTally& rare = world.rare[id];
    const Ps still =
        world.links[id].paused && end > rare.paused_since ? end - rare.paused_since : 0;
    const double share = static_cast<double>(rare.paused_total + still) / static_cast<double>(end);
    if (share <= most) continue;
    if (out.size() == lines_max) {
      out.emplace_back("... and more");
      return;
    }
    out.push_back(fmt::format("{} was paused for {:.0f} % of the run ({} pauses)",
                              world.fabric.name(LinkId(id)), share * 100, rare.pauses));
  }
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
    digest.add(std::uint64_t{link.packets} << 32 | link.control);
    digest.add(std::uint64_t{link.ecn_marked} << 32 | link.dropped);
    digest.add(link.paused_ps);
    digest.add(std::uint64_t{link.pauses} << 32 | link.queue_max);
  }
  return digest.hex();
}

}  // namespace weft::engine::packet
