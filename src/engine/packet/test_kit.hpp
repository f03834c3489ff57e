// For tests of this room: small fabrics and loads, and runs that check what holds for every run.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/packet/packet_run.hpp"
#include "engine/packet/random_case.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::engine::packet::testing {

using model::FabricBuilder;
using model::Health;
using model::NodeKind;
using model::State;

inline constexpr std::uint64_t payload = 4096;
inline constexpr std::uint64_t full_bytes = 4160;
inline constexpr Ps us = 1'000'000;
inline constexpr Ps full = 83'200;  // a full packet at 400 Gb/s

inline Bytes packets_of(std::int64_t count) { return 4160_B * count; }
inline std::vector<Rate> equal(std::size_t count, Rate rate = 400_Gbps) {
  return std::vector<Rate>(count, rate);
}

// Fabrics. ----------------------------------------------------------------------------------------

//   nic:0 --- s:0 --- s:1 --- ... --- nic:1        `rates.size()` cables
inline Fabric chain(const std::vector<Rate>& rates, Duration latency = 1_us) {
  FabricBuilder builder;
  std::vector<NodeId> nodes{builder.add_node({NodeKind::nic, "nic", {}})};
  for (std::size_t i = 1; i < rates.size(); ++i)
    nodes.push_back(builder.add_node({NodeKind::fabric_switch, "s", {}}));
  nodes.push_back(builder.add_node({NodeKind::nic, "nic", {}}));
  for (std::size_t i = 0; i < rates.size(); ++i)
    builder.add_circuit(nodes[i], nodes[i + 1], {.rate = rates[i], .latency = latency});
  return builder.freeze();
}

//   nic:0 ---+
//   nic:1 --- s:0        cable i is that of nic:i
//    ...  ---+
inline Fabric star(const std::vector<Rate>& rates, Duration latency = 1_us) {
  FabricBuilder builder;
  const NodeId center = builder.add_node({NodeKind::fabric_switch, "s", {}});
  for (const Rate rate : rates)
    builder.add_circuit(builder.add_node({NodeKind::nic, "nic", {}}), center,
                        {.rate = rate, .latency = latency});
  return builder.freeze();
}

//   nic:0 ...  -- leaf:0 === spine:0 .. === leaf:1 -- nic:n ...     `leaves` x `per_leaf` NICs
inline Fabric leaf_spine(std::size_t leaves, std::size_t per_leaf, std::size_t spines,
                         Rate rate = 400_Gbps) {
  FabricBuilder builder;
  const FabricBuilder::LinkSpec cable{.rate = rate, .latency = 1_us};
  std::vector<NodeId> tops;
  for (std::size_t i = 0; i < spines; ++i)
    tops.push_back(builder.add_node({NodeKind::fabric_switch, "spine", {}}));
  for (std::size_t i = 0; i < leaves; ++i) {
    const model::ScopeId rack = builder.add_scope(model::ScopeKind::rack, {});
    const NodeId leaf = builder.add_node({NodeKind::fabric_switch, "leaf", rack});
    for (std::size_t n = 0; n < per_leaf; ++n)
      builder.add_circuit(builder.add_node({NodeKind::nic, "nic", rack}), leaf, cable);
    for (const NodeId top : tops) builder.add_circuit(leaf, top, cable);
  }
  return builder.freeze();
}

// `planes` such fabrics, which meet in the NICs alone, by the generator. Leaves are counted plane
// by plane, and so are spines.
inline Fabric multi_plane(std::size_t planes, std::size_t leaves, std::size_t per_leaf,
                          std::size_t spines) {
  return model::testing::make_fabric(fmt::format(
      "{{generator: multi_plane, planes: {}, racks: {}, hosts_per_rack: {}, spines: {}, "
      "gpus_per_host: 1, link: {} Gbps, uplink: 400 Gbps, latency: 1 us}}",
      planes, leaves, per_leaf, spines, 400 * planes));
}

// Three tiers of k = 4: 4 pods of 2 edges, 2 aggs and 4 NICs; 4 cores. All links 400 Gb/s, 1 us.
inline Fabric fat_tree() {
  FabricBuilder builder;
  const FabricBuilder::LinkSpec cable{.rate = 400_Gbps, .latency = 1_us};
  std::vector<NodeId> cores;
  for (int i = 0; i < 4; ++i)
    cores.push_back(builder.add_node({NodeKind::fabric_switch, "core", {}}));
  for (int p = 0; p < 4; ++p) {
    const model::ScopeId pod = builder.add_scope(model::ScopeKind::pod, {});
    std::array<NodeId, 2> aggs;
    for (std::size_t a = 0; a < 2; ++a) {
      aggs[a] = builder.add_node({NodeKind::fabric_switch, "agg", pod});
      for (std::size_t c = 0; c < 2; ++c) builder.add_circuit(aggs[a], cores[2 * a + c], cable);
    }
    for (int e = 0; e < 2; ++e) {
      const NodeId edge = builder.add_node({NodeKind::fabric_switch, "edge", pod});
      for (const NodeId agg : aggs) builder.add_circuit(edge, agg, cable);
      for (int n = 0; n < 2; ++n)
        builder.add_circuit(builder.add_node({NodeKind::nic, "nic", pod}), edge, cable);
    }
  }
  return builder.freeze();
}

inline LinkId link(const Fabric& fabric, std::string_view name) {
  const auto found = fabric.find_link({name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

inline NodeId node(const Fabric& fabric, std::string_view name) {
  const auto found = fabric.find_node({name, {}});
  REQUIRE_MESSAGE(found.has_value(), name);
  return *found;
}

// Loads. ------------------------------------------------------------------------------------------

struct Load {
  std::vector<Connection> connections;
  std::vector<MessageDraft> drafts;
  std::vector<NodeId> via;

  // A message on a new connection from nic:src to nic:dst.
  Load& add(const Fabric& fabric, std::size_t src, std::size_t dst, std::uint64_t bytes,
            Ps not_before = 0, std::uint8_t traffic_class = 0) {
    const auto index = static_cast<std::uint32_t>(connections.size());
    connections.push_back({.src = fabric.nics()[src],
                           .dst = fabric.nics()[dst],
                           .qp = index,
                           .traffic_class = traffic_class});
    drafts.push_back({.connection = index, .bytes = bytes, .not_before_ps = not_before});
    return *this;
  }
};

// Every NIC sends to the one `shift` places on.
inline Load permutation(const Fabric& fabric, std::uint64_t bytes, std::size_t shift) {
  Load load;
  const std::size_t n = fabric.nics().size();
  for (std::size_t i = 0; i < n; ++i) load.add(fabric, i, (i + shift) % n, bytes);
  return load;
}

// nic:0 .. nic:senders-1 send to the last one.
inline Load incast(const Fabric& fabric, std::size_t senders, std::uint64_t bytes) {
  Load load;
  for (std::size_t i = 0; i < senders; ++i) load.add(fabric, i, fabric.nics().size() - 1, bytes);
  return load;
}

inline Load all_to_all(const Fabric& fabric, std::uint64_t bytes) {
  Load load;
  const std::size_t n = fabric.nics().size();
  for (std::size_t shift = 1; shift < n; ++shift)
    for (std::size_t i = 0; i < n; ++i) load.add(fabric, i, (i + shift) % n, bytes);
  return load;
}

// `steps` rounds of a ring: what a NIC sends on waits for what came from the one before it.
inline Load ring(const Fabric& fabric, std::size_t steps, std::uint64_t bytes) {
  Load load = permutation(fabric, bytes, 1);
  const auto n = static_cast<std::uint32_t>(fabric.nics().size());
  for (std::uint32_t m = n; m < n * steps; ++m) {
    const std::uint32_t from = (m + n - 1) % n;
    load.drafts.push_back({.connection = m % n,
                           .bytes = bytes,
                           .waits = {{m / n * n - n + from, Dependent::When::arrived}}});
  }
  return load;
}

// Runs. -------------------------------------------------------------------------------------------

struct Setting {
  Options options = {};
  std::vector<StateChange> changes = {};
  route::RoutingConfig routing = {};
  std::uint64_t seed = 1;
};

inline Result<PacketRunResult> try_run(const Fabric& fabric, const Load& load,
                                       const Setting& setting) {
  auto router = route::Router::create(fabric, setting.routing, setting.seed);
  REQUIRE_MESSAGE(router.has_value(), (router ? "" : router.error().text()));
  MessageSet set = make_messages(load.connections, load.drafts);
  set.via = load.via;
  Progress progress("", 0, Progress::Show::never);
  return run_messages(set, *router, setting.changes, setting.options, progress);
}

inline PacketRunResult run(const Fabric& fabric, const Load& load, const Setting& setting) {
  auto result = try_run(fabric, load, setting);
  REQUIRE_MESSAGE(result.has_value(), (result ? "" : result.error().text()));
  CHECK(result->conservation.holds());
  CHECK(result->complete == result->unfinished.empty());
  if (result->complete && result->counters.retransmissions == 0)
    CHECK(result->conservation.in_flight == 0);
  return *std::move(result);
}

inline PacketRunResult run(const Fabric& fabric, const Load& load, const Options& options = {}) {
  return run(fabric, load, Setting{.options = options});
}

inline Ps last_end(const PacketRunResult& result) {
  return std::ranges::max(result.messages, {}, &MessageEnd::end).end;
}

inline double microseconds(Ps t) { return static_cast<double>(t) * 1e-6; }

// Mean time from start to end of the messages, in us.
inline double mean_time(const PacketRunResult& result) {
  double sum = 0;
  for (const MessageEnd& m : result.messages) sum += microseconds(m.end - m.start);
  return sum / static_cast<double>(result.messages.size());
}

inline Pfc fixed_pfc(std::int64_t xoff_packets = 20, std::int64_t xon_packets = 15) {
  return {.on = true,
          .threshold = Pfc::Threshold::fixed,
          .xoff = packets_of(xoff_packets),
          .xon = packets_of(xon_packets)};
}

}  // namespace weft::engine::packet::testing
