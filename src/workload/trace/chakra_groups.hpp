// Process groups of Chakra traces: which ranks a collective of group "7" involves.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "workload/trace/chakra_trace.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {

inline constexpr std::uint32_t trace_ranks_max = 1u << 20;

struct ChakraGroups {
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> ranks;  // empty: all ranks
  std::uint32_t ranks_named = 0;  // the largest rank, or size of the group of all, that was told

  const std::vector<std::uint32_t>* find(std::string_view name) const;
};

// A side file {"name": [ranks...], ...}. Fails: Errc::parse on broken JSON; Errc::value on ranks
// that are no numbers below 2^20 or stand in a group twice.
Result<ChakraGroups> read_group_file(const TraceFile& file);

// Adds the groups that a trace carries itself (PyTorch: a node whose inputs hold a JSON list of
// {pg_name, ranks, group_size}); groups that are known already stay as they are.
Status add_embedded_groups(const ChakraTrace& trace, const std::string& file, ChakraGroups& groups);

// All groups of the same shape as `group` that divide the ranks 0..count-1 among them, `group`
// itself included: what a program that was recorded on one rank means on the others. Shape: the
// differences between successive ranks.
// Fails: Errc::unsupported, saying which rank is in none.
Result<std::vector<std::vector<std::uint32_t>>> sibling_groups(const ChakraGroups& groups,
                                                               std::string_view name,
                                                               std::uint32_t count);

// Bytes of all tensors in a list of values as PyTorch records them: each tensor is
// [id, storage, offset, elements, bytes per element, "device"].
std::uint64_t tensor_bytes(std::string_view values);

}  // namespace weft::workload
