#include "workload/collective/nvswitch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace weft::workload {
namespace {

std::vector<SwitchShare> nvswitches_of_gpu(const Fabric& fabric, NodeId gpu) {
  std::vector<SwitchShare> found;
  double total = 0;
  for (const model::LinkId link : fabric.out(gpu)) {
    const NodeId node = fabric.to(link);
    if (fabric.kind(node) != model::NodeKind::nvswitch) continue;
    auto it = std::ranges::find(found, node, &SwitchShare::node);
    if (it == found.end()) it = found.insert(it, {node, 0});
    it->share += fabric.rate(link).bytes_per_s();
    total += fabric.rate(link).bytes_per_s();
  }
  for (SwitchShare& s : found) s.share /= total;
  std::ranges::sort(found, {}, &SwitchShare::node);
  return found;
}

}  // namespace

std::vector<SwitchShare> nvswitches_of(const Job& job, std::uint32_t host) {
  const auto members = job.layout.members(host);
  std::vector<SwitchShare> first = nvswitches_of_gpu(job.fabric, job.node(members[0]));
  for (const Rank r : members)
    if (nvswitches_of_gpu(job.fabric, job.node(r)) != first) return {};
  return first;
}

Result<std::vector<std::vector<SwitchShare>>> nvswitches(const Job& job,
                                                         std::string_view algorithm) {
  std::vector<std::vector<SwitchShare>> all;
  for (std::uint32_t h = 0; h < job.layout.host_count(); ++h) {
    all.push_back(nvswitches_of(job, h));
    if (all.back().empty())
      return cannot(algorithm,
                    fmt::format("no NVSwitch connects {} to the other GPUs of its host",
                                job.fabric.name(job.node(job.layout.members(h)[0]))),
                    "use ring or tree");
  }
  return all;
}

void append_nvlink(Chain& chain, NodeId gpu, const std::vector<SwitchShare>& switches, double bytes,
                   Direction direction, std::uint32_t level) {
  for (const SwitchShare& s : switches)
    append(chain,
           direction == Direction::to_switches ? Edge{gpu, s.node, bytes * s.share}
                                               : Edge{s.node, gpu, bytes * s.share},
           level);
}

}  // namespace weft::workload
