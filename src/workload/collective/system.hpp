// What a machine brings to a collective: link bandwidths, NICs and one declared latency.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::workload {

// Of the links between GPUs: A100; H100, H200; B200, B300; MI300X, whose GPUs are a full mesh.
enum class Generation : std::uint8_t { nvlink3, nvlink4, nvlink5, xgmi };
enum class Transport : std::uint8_t { infiniband, roce, efa };
std::string_view to_text(Generation generation);
std::string_view to_text(Transport transport);
std::vector<std::string> transport_names();

// Bytes per second and direction that a GPU sustains, by what limits it.
struct LinkSpeed {
  double ring = 0;  // rings over all its links, Simple protocol
  double nvls = 0;  // reduction in the NVSwitch; 0 where the switch cannot
  double pair = 0;  // of a mesh: the link to one other GPU; 0: all links lead everywhere
  bool operator==(const LinkSpeed&) const = default;
};

// Messages a second that a proxy thread starts for its GPU: one all-to-all's peer in 0.7 us, fitted
// to 2 to 32 hosts.
inline constexpr double default_message_rate = 1e7 / 7;

// The latency of cables and switches that the steps of systems have in them, as measured.
inline constexpr Duration measured_path = 5_us;

// Everything the time model knows of a machine. Only `latency` belongs to one system; the rest is
// shared by all systems of a GPU or NIC generation (docs/collectives-timing.md has the sources).
struct System {
  std::string name;
  Generation generation = Generation::nvlink4;
  LinkSpeed link;
  Rate nic_rate;              // of one NIC
  double nic_efficiency = 1;  // share of nic_rate that a steady stream of data gets
  Transport transport = Transport::infiniband;
  // In one NVLink domain: what a call costs beyond the hops of the algorithm, once. It may be
  // slightly negative: the hops are NCCL's published figures, and a machine can beat them.
  // Between hosts: what a serial step over the network costs a tree with LL; the other algorithms
  // and protocols take a fixed multiple.
  Duration host_latency, network_latency;
  // Beside it, once a step whatever the protocol: 0 where network_latency was measured with it.
  Duration network_hardware;
  // The latency of cables and switches that a step has in it; what a path takes beyond comes on
  // top.
  Duration network_path = measured_path;
  double message_rate = default_message_rate;  // over the network, of one GPU
  bool operator==(const System&) const = default;
};

// How the ranks lie on the machine. "Host" is an NVLink domain here, as in NCCL's models: a rack of
// NVL72 counts as one.
struct GroupShape {
  std::uint32_t ranks = 8;
  std::uint32_t hosts = 1;
  std::uint32_t gpus_per_host = 8;  // ranks on the fullest host
  std::uint32_t nics_per_host = 8;  // that stand beside those ranks
  bool operator==(const GroupShape&) const = default;
};

// Presets: a generation with its usual NICs ("a100", "h100", "h200", "b200", "gb200", "gb300",
// "mi300x"), and
// systems whose latency was measured ("p5", "p4de", "a100-torch", "h200-torch", "b200-torch").
std::vector<std::string> system_names();
// Fails: Errc::unknown with the nearest name.
Result<System> system_by_name(std::string_view name);

// Sets NIC speed and transport, with the efficiency and the default latency that go with them.
void set_network(System& system, Rate nic_rate, Transport transport);

// The machine under `ranks` (GPUs): generation by the NVLink rate of the first GPU, scaled where
// the rate is none of a product; xgmi where its GPUs are cabled one to each other; NIC rate by the
// network side of its NIC. Latencies are defaults.
// Fails: Errc::infeasible when the GPU has no NVLink, or hosts lie apart and it has no NIC.
Result<System> system_of(const model::Fabric& fabric, std::span<const model::NodeId> ranks,
                         Transport transport);

// Hosts with fewer ranks than the fullest count like it. Fails: Errc::infeasible with fewer than 2
// ranks.
Result<GroupShape> shape_of(const model::Fabric& fabric, std::span<const model::NodeId> ranks);

// Fails: Errc::value where there are fewer than 2 ranks, more or fewer than fit such hosts, or no
// NICs where they are needed.
Status check(const GroupShape& shape);

// Rings over the ranks of one host, bytes per second and direction: of a mesh, only the links
// between these ranks count.
double ring_bytes_per_s(const System& system, const GroupShape& shape);
// From one GPU to one other of its host.
double pair_bytes_per_s(const System& system);

// What all NICs of a host carry, payload bytes per second and direction.
double network_bytes_per_s(const System& system, const GroupShape& shape);

}  // namespace weft::workload
