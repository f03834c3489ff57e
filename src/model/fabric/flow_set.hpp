// Flows between NICs: what `weft flows` runs on any engine.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/flow_ids.hpp"

namespace weft::model {

// In file order. 32 bytes a flow, and its id and `via` where it has them.
struct FlowSet {
  static constexpr std::uint32_t none = UINT32_MAX;
  struct Flow {
    NodeId src, dst;  // NICs
    Bytes size;
    Time start;                  // not before
    std::uint32_t after = none;  // index of the flow that must end first
    std::uint32_t via = none;    // a list of switches; see via_of
  };

  std::vector<Flow> flows;
  FlowIds ids;                            // by flow
  std::vector<NodeId> via;                // lists, one after the other
  std::vector<std::uint32_t> via_ends{};  // of each list, in `via`
  // By flow: the class of its data on the packet engine; 0: the transport's. Empty: all 0.
  std::vector<std::uint8_t> classes{};

  // Switches that the flow's path passes, in order.
  std::span<const NodeId> via_of(const Flow& flow) const {
    if (flow.via == none) return {};
    const std::uint32_t begin = flow.via == 0 ? 0 : via_ends[flow.via - 1];
    return std::span(via).subspan(begin, via_ends[flow.via] - begin);
  }
  std::uint8_t class_of(std::size_t flow) const { return classes.empty() ? 0 : classes[flow]; }
  // For Flow::via: `none` for an empty list.
  std::uint32_t add_via(std::span<const NodeId> list);
};
static_assert(sizeof(FlowSet::Flow) == 32);

inline constexpr std::size_t flow_count_max = 50'000'000;
inline constexpr std::uint8_t flow_class_max = 7;

// Reads the CSV `id,src,dst,bytes,start,after,via,class` (from start on they may be missing or
// empty).
// Ends are GPUs (bare index or name: their NIC is meant) or NICs. Fails with every error up to a
// hundred, each with line and column: unknown nodes, flows from a node to itself, ids that stand
// twice, `after` of an unknown flow or in a circle (the circle is named). Reads twice where a flow
// waits for one that stands below it.
Result<FlowSet> read_flows(const Fabric& fabric, std::string_view text, const std::string& file);

// The first flow, in file order, of a circle of flows that wait for each other; `none` where there
// is no such circle. Cost: O(flows), 4 bytes a flow.
std::uint32_t find_circle(const FlowSet& set);
// "3 flows wait for each other in a circle: a after b after c after a".
std::string circle_text(const FlowSet& set, std::uint32_t start);

}  // namespace weft::model
