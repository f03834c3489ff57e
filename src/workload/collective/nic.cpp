#include "workload/collective/nic.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

namespace weft::workload {
namespace {

// One step of NCCL over InfiniBand is 9 us (system.cpp), of which a card takes 2 x 550 + 1000 ns.
constexpr Duration cpu_trigger = 6900_ns;
// Half of 16.7 us there and back, between kernels on H100 (arXiv 2511.15076), less the same.
constexpr Duration gpu_trigger = 6250_ns;
// Guesses: a counter in the NIC, and a core of its own that looks at one.
constexpr Duration event_trigger = 200_ns, core_trigger = 1_us;

// A read of 64 bytes by a card: median of Haswell servers (Neugebauer et al., SIGCOMM 2018).
constexpr Duration pcie_crossing = 550_ns;
// Guesses: a switch more on the way, and none.
constexpr Duration smartnic_crossing = 700_ns, package_crossing = 150_ns;
constexpr Duration nic_latency = 1_us;  // a guess

constexpr double cpu_rate = default_message_rate;
// 9.5 times the proxy's, below 1 KiB (NVIDIA, "Improving network performance of HPC systems using
// NVIDIA Magnum IO NVSHMEM and GPUDirect Async", 2022).
constexpr double gpu_rate = 9.5 * cpu_rate;
constexpr double event_rate = 215e6;  // the card's own: ConnectX-6, as its maker says

constexpr Duration latency_max = 1_s;
constexpr double rate_least = 1, rate_most = 1e12;

template <Named Enum>
Enum read_choice(Reader& reader, std::string_view key, Enum fallback) {
  const std::vector<std::string> names(names_of(fallback).begin(), names_of(fallback).end());
  return static_cast<Enum>(reader.choice(key, names, static_cast<std::size_t>(fallback)));
}

}  // namespace

Nic usual_nic(Nic::Attach attach, Nic::Drive drive) {
  Nic nic{.latency = nic_latency};
  const bool has_cores = attach == Nic::Attach::smartnic;
  switch (drive) {
    case Nic::Drive::cpu:
      nic.trigger = cpu_trigger;
      nic.message_rate = cpu_rate;
      break;
    case Nic::Drive::gpu:
      nic.trigger = gpu_trigger;
      nic.message_rate = gpu_rate;
      break;
    case Nic::Drive::event:
      nic.trigger = has_cores ? core_trigger : event_trigger;
      nic.message_rate = event_rate;
      break;
  }
  nic.crossing = attach == Nic::Attach::package ? package_crossing
                 : has_cores                    ? smartnic_crossing
                                                : pcie_crossing;
  return nic;
}

Duration read_latency(Reader& reader, std::string_view key, Duration fallback) {
  const Duration out = reader.duration(key, fallback);
  if (out > latency_max)
    reader.error(Errc::value, reader.where(key), fmt::format("{} is above 1 s", key),
                 "write what a call or a step costs, e.g. 15 us");
  return out;
}

Nic read_nic(const Config& section, Errors& errors) {
  Reader reader(section, "collectives.nic", errors);
  const auto attach = read_choice(reader, "attach", Nic::Attach::pcie);
  Nic nic = usual_nic(attach, read_choice(reader, "drive", Nic::Drive::cpu));
  nic.trigger = read_latency(reader, "trigger", nic.trigger);
  nic.crossing = read_latency(reader, "crossing", nic.crossing);
  nic.latency = read_latency(reader, "latency", nic.latency);
  nic.message_rate = reader.number("message_rate", nic.message_rate, rate_least, rate_most);
  reader.finish();
  return nic;
}

void set_nic(System& system, const Nic& nic) {
  system.network_latency = nic.trigger;
  system.network_hardware = nic.hardware();
  system.network_path = {};
  system.message_rate = nic.message_rate;
}

}  // namespace weft::workload
