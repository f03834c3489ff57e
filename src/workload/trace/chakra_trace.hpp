// One Chakra execution trace (the file of one rank) in memory.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::workload {

enum class ChakraType : std::uint8_t {
  invalid,
  metadata,
  mem_load,
  mem_store,
  compute,
  send,
  recv,
  collective
};

// What a node says; texts point into the stream. An attribute that is not there is nullopt.
struct ChakraNode {
  std::uint64_t id = 0;
  std::uint64_t at = 0;  // byte of the stream, for messages
  std::string_view name;
  std::string_view inputs, outputs;  // Python-like lists of values
  std::string_view group;            // pg_name
  ChakraType type = ChakraType::invalid;
  bool cpu_op = true;         // what readers of the format take where it is not said
  bool all_dims = true;       // every element of involved_dim is true
  std::uint64_t time_us = 0;  // duration; 0 is not on the wire
  std::optional<std::int64_t> comm_type, comm_size, comm_src, comm_dst, comm_tag;
  std::optional<std::int64_t> num_ops, tensor_size;
  std::uint32_t ctrl_first = 0, ctrl_count = 0;  // into ChakraTrace::ctrl
  std::uint32_t data_first = 0, data_count = 0;  // into ChakraTrace::data
};

inline constexpr std::size_t chakra_nodes_max = 16'000'000;

struct ChakraTrace {
  // Made from a PyTorch trace: the order is in the data dependencies, and control dependencies name
  // the call that a node was made in (in numbers of the trace before its conversion).
  bool from_pytorch = false;
  std::vector<ChakraNode> nodes;
  std::vector<std::uint64_t> ctrl, data;  // node ids
  std::vector<std::uint32_t> by_id;       // indexes of nodes, by rising id
  std::deque<std::string> made_texts;     // texts of nodes that are not in the stream as such

  std::span<const std::uint64_t> ctrl_of(const ChakraNode& node) const {
    return std::span(ctrl).subspan(node.ctrl_first, node.ctrl_count);
  }
  std::span<const std::uint64_t> data_of(const ChakraNode& node) const {
    return std::span(data).subspan(node.data_first, node.data_count);
  }
  // Index of the node, or nullopt. O(log nodes).
  std::optional<std::uint32_t> find(std::uint64_t id) const;
};

// Sorts by_id. Fails: Errc::parse on a node number used twice, with the byte of the second.
Status index_nodes(ChakraTrace& trace, const std::string& file);

// Reads an uncompressed stream, which must outlive the result. Integer attributes may be of any
// kind (int32 ... sfixed64, bool).
// Fails: Errc::parse with the byte of the stream on lengths past the end, numbers of more than 64
// bits, fields of another kind than the format's, a node where the metadata should be, a node
// number used twice. Bounds: 16 M nodes.
// From: the published schema et_def.proto of MLCommons Chakra.
Result<ChakraTrace> parse_chakra(std::string_view stream, const std::string& file);

// Whether the bytes begin like such a stream.
bool looks_like_chakra(std::string_view stream);

}  // namespace weft::workload
