#include "workload/collective/cost.hpp"

#include <algorithm>

namespace weft::workload {

Library read_library(const Config& section, Errors& errors) {
  Library library;
  Reader reader(section, "collectives", errors);
  const std::vector<std::string> costs{"nccl", "line_rate"};
  library.cost = static_cast<Library::Cost>(reader.choice("cost", costs, 0));
  const std::vector<std::string> systems = system_names();
  if (reader.has("system"))
    library.system = systems[reader.choice("system", systems, std::nullopt)];
  if (reader.has("transport"))
    library.transport =
        static_cast<Transport>(reader.choice("transport", transport_names(), std::nullopt));
  if (reader.has("launch")) library.launch = read_latency(reader, "launch", {});
  if (reader.has("step")) library.step = read_latency(reader, "step", {});
  if (const Config* nic = reader.child("nic")) library.nic = read_nic(*nic, errors);
  if (library.nic && library.step)
    reader.error(Errc::value, reader.where("step"), "step and nic both say what a step costs",
                 "remove one of them");
  if (library.nic && library.cost == Library::Cost::line_rate)
    reader.error(Errc::value, reader.where("nic"), "nic has no effect with cost line_rate",
                 "remove it, or the cost");
  library.adaptive = reader.flag("adaptive", library.adaptive);
  reader.finish();
  return library;
}

Result<Machine> machine_of(const Library& library, const Fabric& fabric,
                           std::span<const NodeId> ranks) {
  Machine machine;
  WEFT_TRY(machine.shape, shape_of(fabric, ranks));
  if (library.system.empty()) {
    WEFT_TRY(machine.system, system_of(fabric, ranks, library.transport.value_or(Transport::roce)));
  } else {
    WEFT_TRY(machine.system, system_by_name(library.system));
    if (library.transport) set_network(machine.system, machine.system.nic_rate, *library.transport);
  }
  if (library.launch) machine.system.host_latency = *library.launch;
  if (library.step) machine.system.network_latency = *library.step;
  if (library.nic) set_nic(machine.system, *library.nic);
  return machine;
}

Result<PlannedCall> plan_call(const Machine& machine, Op op, double bytes,
                              const TunerRules& rules) {
  WEFT_TRY(Pick chosen, pick(machine.system, machine.shape, op, bytes, rules));
  WEFT_TRY(const Terms terms,
           predict(machine.system, machine.shape, {op, chosen.algorithm, chosen.protocol, bytes}));
  const double total = terms.seconds();
  const double lead = std::clamp(terms.launch + terms.latency, 0.0, total);
  const double wire = machine.shape.hosts > 1 ? 1 / machine.system.nic_efficiency : 1;
  return PlannedCall{std::move(chosen),
                     {lead, total - lead, wire, machine.system.network_path.seconds()}};
}

CallCost deepep_cost(const Machine& machine, double bytes) {
  constexpr double nic_share = 0.9, launch_s = 7e-6;
  const GroupShape& shape = machine.shape;
  const double n = shape.ranks, local = shape.gpus_per_host;
  const double out = bytes * local * (n - local) / n;
  const System& system = machine.system;
  return {launch_s + system.network_latency.seconds() + system.network_hardware.seconds(),
          out / (system.nic_rate.bytes_per_s() * shape.nics_per_host * nic_share), 1 / nic_share,
          system.network_path.seconds()};
}

}  // namespace weft::workload
