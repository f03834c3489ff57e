// PyTorch execution traces (JSON), from which Chakra traces are made.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "workload/trace/chakra_trace.hpp"

namespace weft::workload {

// A JSON object with a schema at its beginning.
bool is_pytorch_trace(std::string_view content);

// What a host trace of PyTorch tells, as Chakra nodes: one for each operator, none with a time;
// the collective is the record_param_comms node, with its kind and tensors. Nodes of a thread
// follow one another.
// Fails: Errc::parse on broken JSON; Errc::value on nodes without number or name, or a number
// used twice. Bounds: 16 M nodes.
Result<ChakraTrace> parse_pytorch_trace(std::string_view content, const std::string& file);

}  // namespace weft::workload
