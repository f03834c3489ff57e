#include "model/generate/host.hpp"

#include <algorithm>
#include <array>

#include "base/check.hpp"

namespace weft::model {
namespace {

// How the GPUs of a host reach each other.
enum class Inside : std::uint8_t { nvswitch, mesh };

struct Preset {
  std::string_view name;
  Rate gpu_link;  // one direction: of one GPU to the NVSwitch, or to each other GPU of the mesh
  Rate pcie;      // x16, one direction
  Rate nic;
  HostCounts counts = {};
  Inside inside = Inside::nvswitch;
};

// 16 lanes at 16 and 32 GT/s with 128b/130b coding (PCI Express base specifications 4.0, 5.0), and
// at 64 GT/s in flits of 256 bytes that carry 242 (6.0).
constexpr Rate pcie_gen4{252'061'538'461};
constexpr Rate pcie_gen5{504'123'076'923};
constexpr Rate pcie_gen6{968'000'000'000};

// NVLink: 12 x 25 GB/s (NVIDIA A100 whitepaper), 18 x 25 GB/s (H100 whitepaper; H200 has the same
// links), 18 x 50 GB/s (DGX B200 user guide), each per direction. NICs: ConnectX-6 at 200 Gbps in
// DGX A100, ConnectX-7 at 400 Gbps in the others (DGX user guides), ConnectX-8 at 800 Gbps in DGX
// B300 and GB300 NVL72 (their user guides). A compute tray of NVL72 has 4 GPUs and 4 NICs; 18 trays
// share the rack's NVSwitches (GB200 NVL72 user guide). Its GPUs reach the Grace processors over
// NVLink-C2C, which is no bottleneck to a NIC: wires of a PCIe x16 stand for both.
// MI300X: each GPU has an Infinity Fabric (xGMI) link of 64 GB/s per direction to each of the seven
// others, and PCIe 5.0 (AMD Instinct MI300X platform data sheet; rocm.blogs.amd.com, "Understanding
// RCCL Bandwidth and xGMI Performance on AMD Instinct MI300X"). NICs at 400 Gbps, one per GPU.
constexpr std::array<Preset, 8> presets{{
    {"h100", 3600_Gbps, pcie_gen5, 400_Gbps},
    {"h200", 3600_Gbps, pcie_gen5, 400_Gbps},
    {"a100", 2400_Gbps, pcie_gen4, 200_Gbps},
    {"b200", 7200_Gbps, pcie_gen5, 400_Gbps},
    {"b300", 7200_Gbps, pcie_gen6, 800_Gbps},
    {"gb200", 7200_Gbps, pcie_gen5, 400_Gbps, {.gpus = 4, .domain_hosts = 18}},
    {"gb300", 7200_Gbps, pcie_gen6, 800_Gbps, {.gpus = 4, .domain_hosts = 18}},
    {"mi300x", 512_Gbps, pcie_gen5, 400_Gbps, {}, Inside::mesh},
}};

}  // namespace

std::uint32_t HostSpec::count(std::string_view role) const {
  return static_cast<std::uint32_t>(std::ranges::count(parts, role, &Part::role));
}

std::vector<std::string> host_preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : presets) names.emplace_back(preset.name);
  return names;
}

namespace {
const Preset& preset_of(std::string_view name) {
  const auto preset = std::ranges::find(presets, name, &Preset::name);
  WEFT_CHECK(preset != presets.end());
  return *preset;
}
}  // namespace

HostCounts host_counts(std::string_view name) { return preset_of(name).counts; }

std::uint32_t gpus_in_mesh_max(std::string_view name) {
  constexpr std::uint32_t mi300x_ports = 7;
  return preset_of(name).inside == Inside::mesh ? mi300x_ports + 1 : UINT32_MAX;
}

HostSpec host_preset(std::string_view name, std::uint32_t gpus, std::uint32_t nics,
                     std::uint32_t domain_hosts) {
  WEFT_CHECK(gpus > 0 && domain_hosts > 0);
  const Preset& preset = preset_of(name);
  WEFT_CHECK(domain_hosts == 1 || preset.inside == Inside::nvswitch);
  // A preset is called after its GPU.
  HostSpec host{std::string(name), std::string(name), {}, {}, preset.nic, domain_hosts,
                preset.gpu_link,   nvlink_latency};
  const auto add = [&](NodeKind kind, std::string_view role, std::uint32_t count) {
    const auto first = static_cast<std::uint32_t>(host.parts.size());
    host.parts.insert(host.parts.end(), count, {kind, std::string(role)});
    return first;
  };
  const std::uint32_t pcie_count = (gpus + 1) / 2;
  const std::uint32_t gpu = add(NodeKind::gpu, "gpu", gpus);
  const std::uint32_t nic = add(NodeKind::nic, "nic", nics);
  const std::uint32_t fe_nic = add(NodeKind::nic, "fe_nic", 1);
  const std::uint32_t pcie = add(NodeKind::pcie_switch, "pcie", pcie_count);

  if (preset.inside == Inside::mesh) {
    for (std::uint32_t i = 0; i < gpus; ++i)
      for (std::uint32_t j = i + 1; j < gpus; ++j)
        host.wires.push_back({gpu + i, gpu + j, preset.gpu_link, nvlink_latency});
  } else if (gpus > 1 && domain_hosts == 1) {
    const std::uint32_t nvswitch = add(NodeKind::nvswitch, "nvswitch", 1);
    for (std::uint32_t i = 0; i < gpus; ++i)
      host.wires.push_back({gpu + i, nvswitch, preset.gpu_link, nvlink_latency});
  }
  for (std::uint32_t i = 0; i < gpus; ++i)
    host.wires.push_back({gpu + i, pcie + i / 2, preset.pcie, {}});
  for (std::uint32_t i = 0; i < nics; ++i)
    host.wires.push_back({nic + i, pcie + i * pcie_count / nics, preset.pcie, {}});
  for (std::uint32_t i = 0; i < pcie_count; ++i)
    host.wires.push_back({pcie + i, HostSpec::host_part, preset.pcie, {}});
  host.wires.push_back({fe_nic, HostSpec::host_part, preset.pcie, {}});
  return host;
}

}  // namespace weft::model
