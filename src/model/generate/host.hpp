// The inside of one kind of host: a preset, or what an NCCL topology file describes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// Parts and the wires between them; put into a fabric once per host.
struct HostSpec {
  struct Part {
    NodeKind kind;     // gpu, nic, nvswitch or pcie_switch
    std::string role;  // "gpu", "nic", "fe_nic", "nvswitch", "pcie"; one kind per role
    std::int16_t rail = no_lane, plane = no_lane;  // where the source names them
  };
  // The same rate and latency in both directions.
  struct Wire {
    std::uint32_t a, b;  // indexes of parts, or host_part
    Rate rate;
    Duration latency;
  };
  // The host itself: its processors and memory.
  static constexpr std::uint32_t host_part = UINT32_MAX;

  std::string name;         // "h100"
  std::string gpu;          // product name of its GPUs, lower case; "": the source does not say
  std::vector<Part> parts;  // GPUs (role "gpu") and back-end NICs (role "nic") in index order
  std::vector<Wire> wires;
  Rate nic_rate;  // network side of one back-end NIC; 0 where the source does not say
  // Hosts whose GPUs meet at NVSwitches outside of them, each over `domain_rate`; 1: none do.
  std::uint32_t domain_hosts = 1;
  Rate domain_rate = {};
  Duration domain_latency = {};
  std::vector<std::string> notes = {};  // for Fabric::notes(): what the source leaves open

  std::uint32_t gpu_count() const { return count("gpu"); }
  std::uint32_t nic_count() const { return count("nic"); }
  // Inside the host, and to NVSwitches outside.
  std::size_t cable_count() const { return wires.size() + (domain_hosts > 1 ? gpu_count() : 0); }

 private:
  std::uint32_t count(std::string_view role) const;
};

// As in the topology templates of SimAI for HPN. PCIe hops carry none of their own: measured
// per-message latencies, of which the collectives declare one per system, contain them.
inline constexpr Duration nvlink_latency = 25_ns;

std::vector<std::string> host_preset_names();

// A product as it is sold: GPUs of a host, and hosts of an NVLink domain (1, or 18 trays of NVL72).
struct HostCounts {
  std::int64_t gpus = 8;
  std::int64_t domain_hosts = 1;
};
HostCounts host_counts(std::string_view name);
// Where the GPUs of a host are cabled one to each other: how many can be. UINT32_MAX: they meet at
// an NVSwitch.
std::uint32_t gpus_in_mesh_max(std::string_view name);

// A server of DGX kind: GPUs on one NVSwitch (the switch chips of a host form one crossbar) or in a
// full mesh (mi300x), a PCIe switch for each two GPUs and their NICs, and one front-end NIC (role
// "fe_nic") at the processors.
// With `domain_hosts` above 1 the NVSwitch stands outside, one for so many hosts.
// `name` is one of host_preset_names(); counts other than the product's scale it.
HostSpec host_preset(std::string_view name, std::uint32_t gpus, std::uint32_t nics,
                     std::uint32_t domain_hosts = 1);

}  // namespace weft::model
