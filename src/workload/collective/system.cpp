#include "workload/collective/system.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "base/text.hpp"
#include "workload/collective/mesh.hpp"

namespace weft::workload {
namespace {

struct GenerationFacts {
  Generation generation;
  std::string_view name;
  Rate nvlink;  // of one GPU, one direction; of a mesh, to one other GPU
  LinkSpeed link;
};

// Bandwidths are fitted to published nccl-tests rows, docs/collectives-timing.md: 81 %, 84 % and
// 79 % of the line rate for a ring, which is what NCCL's own per-link figures (20.0, 20.6, 40.1
// GB/s) and its maintainers say of the protocol overhead.
// xGMI: 71 % of seven links of 64 GB/s, from AMD's table for 8 x MI300X; AMD itself measures 45 to
// 48 GB/s a link, and says that a ring goes at the pace of the slowest.
constexpr std::array<GenerationFacts, 4> generations{{
    {Generation::nvlink3, "nvlink3", 2400_Gbps, {.ring = 244e9, .nvls = 0}},
    {Generation::nvlink4, "nvlink4", 3600_Gbps, {.ring = 383e9, .nvls = 313e9}},
    {Generation::nvlink5, "nvlink5", 7200_Gbps, {.ring = 714e9, .nvls = 545e9}},
    {Generation::xgmi, "xgmi", 512_Gbps, {.ring = 319.5e9, .nvls = 0, .pair = 319.5e9 / 7}},
}};

const GenerationFacts& facts(Generation generation) {
  return generations[static_cast<std::size_t>(generation)];
}

// A step over the network of a tree with LL, with the software that starts it (timing.cpp has what
// other steps take). EFA from the rows of 2 x p5, InfiniBand from those of H20 machines; RoCE is a
// guess between.
constexpr Duration infiniband_step = 9_us;
constexpr Duration roce_step = 15_us;
constexpr Duration efa_step = 23_us;
// A GPU of a rack reaches its NIC through the Grace processor. From two racks of GB200.
constexpr Duration rack_step = 40_us;
// What a call costs on top of NCCL's table where nobody has measured.
constexpr Duration host_default = 5_us;
// RCCL on 8 x MI300X: less than NCCL's table has. From the rows up to 128 KiB.
constexpr Duration xgmi_host{-2'000'000};

Duration default_step(Transport transport) {
  switch (transport) {
    case Transport::infiniband:
      return infiniband_step;
    case Transport::roce:
      return roce_step;
    case Transport::efa:
      return efa_step;
  }
  return infiniband_step;
}

// Of one NIC generation. 48 of 50 GB/s: NCCL's maintainers on NDR InfiniBand (nccl-tests issue 290;
// 24 of 25 GB/s at 200 Gbps: issue 119). 96 %: the plateau of SimAI's table for RoCE. EFA: fitted.
double default_efficiency(Rate nic_rate, Transport transport) {
  if (transport != Transport::efa) return 0.96;
  return nic_rate <= 100_Gbps ? 0.93 : 0.955;
}

struct Preset {
  std::string_view name;
  Generation generation;
  Rate nic;
  Transport transport;
  Duration host_latency;
  Duration network_latency;  // 0: the transport's default
};

constexpr Duration tenths_us(std::int64_t tenths) { return {tenths * 100'000}; }

constexpr std::array<Preset, 12> presets{{
    {"a100", Generation::nvlink3, 200_Gbps, Transport::infiniband, host_default, {}},
    {"h100", Generation::nvlink4, 400_Gbps, Transport::infiniband, host_default, {}},
    {"h200", Generation::nvlink4, 400_Gbps, Transport::infiniband, host_default, {}},
    {"b200", Generation::nvlink5, 400_Gbps, Transport::infiniband, host_default, {}},
    {"gb200", Generation::nvlink5, 400_Gbps, Transport::infiniband, host_default, rack_step},
    {"gb300", Generation::nvlink5, 800_Gbps, Transport::infiniband, host_default, rack_step},
    {"mi300x", Generation::xgmi, 400_Gbps, Transport::roce, xgmi_host, {}},
    // Declared from the rows of that system. "torch": measured from PyTorch, whose launch costs
    // more.
    {"p5", Generation::nvlink4, 400_Gbps, Transport::efa, {}, {}},
    {"p4de", Generation::nvlink3, 100_Gbps, Transport::efa, host_default, 71_us},
    {"a100-torch", Generation::nvlink3, 200_Gbps, Transport::infiniband, tenths_us(645), {}},
    {"h200-torch", Generation::nvlink4, 400_Gbps, Transport::infiniband, tenths_us(190), {}},
    {"b200-torch", Generation::nvlink5, 400_Gbps, Transport::efa, tenths_us(275), 20_us},
}};

using model::Fabric;
using model::LinkId;
using model::NodeId;
using model::NodeKind;

// Sum over the links of `node` to nodes of `kind`.
Rate rate_to(const Fabric& fabric, NodeId node, NodeKind kind) {
  Rate sum;
  for (const LinkId link : fabric.out(node))
    if (fabric.kind(fabric.to(link)) == kind) sum = sum + fabric.rate(link);
  return sum;
}

// The product with that NVLink rate, or the nearest one scaled to it.
void set_generation(System& system, Rate nvlink) {
  const auto distance = [&](const GenerationFacts& f) {
    return std::abs(std::log(static_cast<double>(f.nvlink.bps) / static_cast<double>(nvlink.bps)));
  };
  const auto switched = std::span(generations).first<static_cast<std::size_t>(Generation::xgmi)>();
  const auto nearest = std::ranges::min_element(switched, {}, distance);
  const double scale = static_cast<double>(nvlink.bps) / static_cast<double>(nearest->nvlink.bps);
  system.generation = nearest->generation;
  system.link = {nearest->link.ring * scale, nearest->link.nvls * scale};
  system.name = nearest->name;
}

// From `gpu` to one other GPU, one direction, where it has a cable to each of the ranks of its host
// and they have them to each other; 0 elsewhere (GPUs in a cube, a ring, or behind a switch).
Rate mesh_rate(const Fabric& fabric, std::span<const NodeId> ranks, NodeId gpu) {
  std::vector<NodeId> mates;
  for (const NodeId rank : ranks)
    if (fabric.share_domain(rank, gpu)) mates.push_back(rank);
  if (mates.size() > 1 && !is_mesh(fabric, mates)) return {};
  NodeId other;
  Rate rate;
  for (const LinkId link : fabric.out(gpu)) {
    if (fabric.kind(fabric.to(link)) != NodeKind::gpu) continue;
    if (!other.valid()) other = fabric.to(link);
    if (fabric.to(link) == other) rate = rate + fabric.rate(link);
  }
  return rate;
}

void set_mesh(System& system, Rate link) {
  const GenerationFacts& known = facts(Generation::xgmi);
  const double scale = link.bytes_per_s() / known.nvlink.bytes_per_s();
  system.generation = Generation::xgmi;
  system.link = {.ring = known.link.ring * scale, .nvls = 0, .pair = known.link.pair * scale};
  system.name = known.name;
  system.host_latency = xgmi_host;
}

}  // namespace

std::string_view to_text(Generation generation) { return facts(generation).name; }

namespace {
constexpr std::array<std::string_view, 3> transports{"infiniband", "roce", "efa"};
}

std::string_view to_text(Transport transport) {
  return transports[static_cast<std::size_t>(transport)];
}

std::vector<std::string> transport_names() { return {transports.begin(), transports.end()}; }

std::vector<std::string> system_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  return names;
}

Result<System> system_by_name(std::string_view name) {
  const auto preset = std::ranges::find(presets, name, &Preset::name);
  if (preset == presets.end()) {
    const auto names = system_names();
    return fail(Errc::unknown, {},
                fmt::format("unknown system \"{}\"{}", name, did_you_mean(name, names)),
                fmt::format("known: {}", fmt::join(names, ", ")));
  }
  System system;
  system.name = preset->name;
  system.generation = preset->generation;
  system.link = facts(preset->generation).link;
  set_network(system, preset->nic, preset->transport);
  system.host_latency = preset->host_latency;
  if (preset->network_latency.ps > 0) system.network_latency = preset->network_latency;
  return system;
}

void set_network(System& system, Rate nic_rate, Transport transport) {
  system.nic_rate = nic_rate;
  system.transport = transport;
  system.nic_efficiency = default_efficiency(nic_rate, transport);
  system.network_latency = default_step(transport);
}

Result<System> system_of(const Fabric& fabric, std::span<const NodeId> ranks, Transport transport) {
  WEFT_TRY(const GroupShape shape, shape_of(fabric, ranks));
  const NodeId gpu = ranks.front();
  const Rate nvlink = rate_to(fabric, gpu, NodeKind::nvswitch),
             mesh = mesh_rate(fabric, ranks, gpu);
  if (nvlink.bps == 0 && mesh.bps == 0 && shape.gpus_per_host > 1)
    return fail(
        Errc::infeasible, {}, fmt::format("{} has no NVLink", fabric.name(gpu)),
        "the time model covers GPUs on an NVSwitch, or with a cable between each two; give the "
        "host a preset such as h100");
  System system;
  system.host_latency = host_default;
  if (nvlink.bps == 0 && mesh.bps > 0)
    set_mesh(system, mesh);
  else
    set_generation(system, nvlink.bps > 0 ? nvlink : generations[1].nvlink);
  const NodeId nic = fabric.nic_of(gpu);
  if (nic.valid()) set_network(system, rate_to(fabric, nic, NodeKind::fabric_switch), transport);
  if (shape.hosts > 1 && system.nic_rate.bps == 0)
    return fail(Errc::infeasible, {}, fmt::format("{} has no NIC on the network", fabric.name(gpu)),
                "give the hosts NICs, or choose ranks on one host");
  return system;
}

Result<GroupShape> shape_of(const Fabric& fabric, std::span<const NodeId> ranks) {
  if (ranks.size() < 2)
    return fail(Errc::infeasible, {},
                fmt::format("a collective needs at least 2 ranks, not {}", ranks.size()));
  struct Domain {
    std::uint32_t ranks = 0;
    std::set<NodeId> nics;
  };
  std::map<NodeId, Domain> domains;
  for (const NodeId rank : ranks) {
    Domain& domain = domains[fabric.domain_of(rank)];
    ++domain.ranks;
    if (const NodeId nic = fabric.nic_of(rank); nic.valid()) domain.nics.insert(nic);
  }
  const auto& fullest = std::ranges::max_element(domains, {}, [](const auto& entry) {
                          return entry.second.ranks;
                        })->second;
  return GroupShape{.ranks = static_cast<std::uint32_t>(ranks.size()),
                    .hosts = static_cast<std::uint32_t>(domains.size()),
                    .gpus_per_host = fullest.ranks,
                    .nics_per_host = static_cast<std::uint32_t>(fullest.nics.size())};
}

Status check(const GroupShape& shape) {
  const std::uint64_t places = std::uint64_t{shape.hosts} * shape.gpus_per_host;
  const std::uint64_t least = std::uint64_t{shape.gpus_per_host} + shape.hosts - 1;
  if (shape.ranks < 2 || shape.hosts == 0 || shape.ranks < least || shape.ranks > places)
    return fail(Errc::value, {},
                fmt::format("{} ranks do not fit {} hosts with {} GPUs each", shape.ranks,
                            shape.hosts, shape.gpus_per_host),
                "use at least 2 ranks: so many on one host, and one or more on every other");
  if (shape.hosts > 1 && shape.nics_per_host == 0)
    return fail(Errc::value, {}, fmt::format("{} hosts without NICs", shape.hosts),
                "set nics_per_host");
  return {};
}

double pair_bytes_per_s(const System& system) {
  return system.link.pair > 0 ? system.link.pair : system.link.ring;
}

double ring_bytes_per_s(const System& system, const GroupShape& shape) {
  if (system.link.pair == 0 || shape.gpus_per_host < 2) return system.link.ring;
  return std::min(system.link.ring, system.link.pair * (shape.gpus_per_host - 1));
}

double network_bytes_per_s(const System& system, const GroupShape& shape) {
  return system.nic_rate.bytes_per_s() * system.nic_efficiency * shape.nics_per_host;
}

}  // namespace weft::workload
