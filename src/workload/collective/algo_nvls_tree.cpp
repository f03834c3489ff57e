// NVLink SHARP inside every host, a double binary tree between hosts on every NIC.
#include <algorithm>

#include "workload/collective/double_tree.hpp"
#include "workload/collective/nvswitch.hpp"

namespace weft::workload {
namespace {

using HostSwitches = std::vector<std::vector<SwitchShare>>;

// The rank beside the NIC pulls its channel's part, summed, out of the switch, takes part in the
// trees, and multicasts the result through the switch.
void append_host(const Job& job, std::uint32_t host, std::uint32_t channel,
                 const std::vector<SwitchShare>& switches, Chain& chain) {
  const double bytes = job.bytes() / job.channels;
  const NodeId head = job.node(job.layout.lane(host, channel).in);
  using enum Direction;
  constexpr std::uint32_t last = UINT32_MAX;
  for (const Rank r : job.layout.members(host)) {
    append_nvlink(chain, job.node(r), switches, bytes, to_switches, 0);
    append_nvlink(chain, job.node(r), switches, bytes, from_switches, last);
  }
  append_nvlink(chain, head, switches, bytes, from_switches, 1);
  append_nvlink(chain, head, switches, bytes, to_switches, last - 1);
}

void append_host_tree(const Job& job, const std::vector<std::uint32_t>& parent,
                      std::uint32_t channel, Chain& chain) {
  const double bytes = job.bytes() / (job.channels * tree_count);
  for (std::uint32_t h = 0; h < parent.size(); ++h) {
    if (parent[h] == no_rank) continue;
    const NodeId node = job.node(job.layout.lane(h, channel).in);
    const NodeId up = job.node(job.layout.lane(parent[h], channel).in);
    const std::uint32_t d = depth_of(parent, h);
    append(chain, {node, up, bytes}, root_level - d);
    append(chain, {up, node, bytes}, root_level + d);
  }
}

Result<std::vector<Stage>> nvls_tree_stages(const Job& job) {
  const std::uint32_t hosts = job.layout.host_count();
  if (hosts == 1) return cannot("nvls_tree", "they are on one host", "use nvls");
  WEFT_TRY(const HostSwitches switches, nvswitches(job, "nvls_tree"));
  const std::vector<std::uint32_t> trees[] = {binary_tree(hosts, 0), binary_tree(hosts, 1)};
  Stage stage{.name = "nvls_tree", .divisible = true};
  for (std::uint32_t c = 0; c < job.channels; ++c) {
    Chain& chain = stage.chains.emplace_back();
    for (std::uint32_t h = 0; h < hosts; ++h) append_host(job, h, c, switches[h], chain);
    for (const auto& tree : trees) append_host_tree(job, tree, c, chain);
  }
  stage.latency_steps = 2 * std::max(depth(trees[0]), depth(trees[1]));
  stage.inner_steps = 4;  // GPU to switch to head, and back
  return std::vector{std::move(stage)};
}

}  // namespace

constinit const Algorithm algo::nvls_tree{"nvls_tree", {Op::all_reduce}, nvls_tree_stages};

}  // namespace weft::workload
