// For tests of published numbers that need packets: messages between NICs, and one run of them.
#pragma once

#include "engine/packet/packet_run.hpp"
#include "engine/packet/random_case.hpp"
#include "kit.hpp"

namespace weft::paper {

namespace packet = engine::packet;

// Messages between NICs, each pair of ends a connection of its own.
struct Load {
  std::vector<packet::Connection> connections;
  std::vector<packet::MessageDraft> drafts;

  std::uint32_t connect(const Fabric& fabric, std::size_t src, std::size_t dst) {
    const auto index = static_cast<std::uint32_t>(connections.size());
    connections.push_back({.src = fabric.nics()[src], .dst = fabric.nics()[dst], .qp = index});
    return index;
  }

  void send(std::uint32_t connection, std::uint64_t bytes) {
    drafts.push_back({.connection = connection, .bytes = bytes});
  }

  // `members.size() - 1` rounds of a ring (an all-gather): what a member passes on has come to it
  // in the round before. Twice as many are an all-reduce.
  void ring(const Fabric& fabric, const std::vector<std::size_t>& members, std::size_t rounds,
            std::uint64_t bytes) {
    const std::size_t n = members.size();
    const auto first_connection = static_cast<std::uint32_t>(connections.size());
    const auto first = static_cast<std::uint32_t>(drafts.size());
    for (std::size_t i = 0; i < n; ++i) connect(fabric, members[i], members[(i + 1) % n]);
    for (std::size_t m = 0; m < n * rounds; ++m) {
      const auto from = static_cast<std::uint32_t>(first + m - n - m % n + (m + n - 1) % n);
      drafts.push_back(
          {.connection = static_cast<std::uint32_t>(first_connection + m % n), .bytes = bytes});
      if (m >= n) drafts.back().waits = {{from, packet::Dependent::When::arrived}};
    }
  }
};

// A lossless zone of shallow racks and deep spines, whose receivers admit senders.
inline packet::Options admitted(std::uint32_t channels, Bytes buffer) {
  packet::Options options;
  options.transport = "cts";
  options.admission = packet::Admission::cts;
  options.cts = {.channel_buffer = buffer, .channels = channels};
  options.scheduler = {.weights = {4160, 0}, .control_class = 1};
  options.pfc.on = true;
  options.buffers = {{"rtsw", {.shared = 32_MB}}, {"ctsw", {.shared = 640_MB}}};
  return options;
}

// Every message must end, and none may lose a packet: these fabrics are lossless.
inline packet::PacketRunResult run(const Fabric& fabric, const Load& load,
                                   const packet::Options& options,
                                   const route::RoutingConfig& routing = {},
                                   std::uint64_t seed = 1) {
  route::Router router = router_of(fabric, routing, seed);
  const packet::MessageSet set = packet::make_messages(load.connections, load.drafts);
  Progress progress("", 0, Progress::Show::never);
  auto result = packet::run_messages(set, router, {}, options, progress);
  if (!result) FAIL(result.error().text());
  REQUIRE(result->complete);
  REQUIRE(result->conservation.holds());
  REQUIRE(result->counters.drops == 0);
  return *std::move(result);
}

// When the last of messages [first, last) ended, in us.
inline double end_of(const packet::PacketRunResult& result, std::size_t first, std::size_t last) {
  packet::Ps end = 0;
  for (std::size_t m = first; m < last; ++m) end = std::max(end, result.messages[m].end);
  return static_cast<double>(end) * 1e-6;
}
inline double end_of(const packet::PacketRunResult& result) {
  return end_of(result, 0, result.messages.size());
}

}  // namespace weft::paper
