// One rank's Chakra trace as a program of the operation graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "workload/trace/chakra_groups.hpp"
#include "workload/trace/chakra_trace.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {

// Streams of an actor (see model::Operation). Everything else overlaps freely.
inline constexpr std::uint8_t stream_cpu = 1, stream_gpu = 2;

// Labels of a graph with a quick answer to "is it there"; OpGraph::label() looks at all of them.
class LabelTable {
 public:
  explicit LabelTable(model::OpGraph& graph) : graph_(graph) {}
  std::uint32_t index(std::string_view text);

 private:
  model::OpGraph& graph_;
  std::unordered_map<std::string, std::uint32_t> index_;  // looked up only
};

// What was seen in all files together.
struct ChakraTally {
  std::uint64_t compute = 0, memory = 0, metadata = 0, send = 0, recv = 0, collective = 0;
  std::uint64_t with_size = 0;     // collectives that say their size
  std::uint64_t from_tensors = 0;  // size taken from the tensors
  std::uint64_t without_size = 0;  // nor tensors: 0 bytes
  std::uint64_t by_name = 0;       // kind taken from the name
  std::uint64_t host_calls = 0;    // the processor's call of a kernel that is a node itself
  std::uint64_t timeless = 0;      // compute nodes of 0 us
  std::uint64_t of_one_rank = 0;   // collectives of one rank: nothing to send
  std::uint64_t mapped_reduce = 0, mapped_gather = 0, mapped_scatter = 0, barrier = 0;
  std::uint64_t chained = 0;      // collectives that wait for the one before in their group
  std::uint64_t ctrl_unused = 0;  // control dependencies that are no order
  std::uint64_t dangling_ctrl = 0, dangling_data = 0;
  std::vector<std::string> dangling_examples;
};

struct ChakraProgram {
  model::Program program;
  std::vector<std::string> groups;   // by slot of collectives; "": all ranks
  std::vector<std::uint32_t> peers;  // by slot of sends and recvs: ranks
};

struct ChakraContext {
  const std::string& file;
  const ChakraGroups& groups;
  const TraceOptions& options;
  std::uint32_t rank = 0;
  std::uint32_t rank_count = 0;
  LabelTable& labels;
  ChakraTally& tally;
};

// Operations stand in the order of the file as far as dependencies allow: collectives of one group
// meet in that order.
// Fails: Errc::value on a circle (its nodes are named), nodes of type 0, communication that lacks
// its kind, size or peer, groups that are not known; Errc::unsupported on compute that is given as
// operations and bytes where `options` has no peak rates, and on involved_dim with a false in it.
// Cost: O(nodes log nodes + dependencies log nodes).
Result<ChakraProgram> chakra_program(const ChakraTrace& trace, const ChakraContext& context);

}  // namespace weft::workload
