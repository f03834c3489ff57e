// Files of recorded workloads from disk, with bounds on what a file may cost before it is refused.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {

// Of all input of a workload.
inline constexpr std::uint64_t trace_bytes_max = std::uint64_t{2} << 30;
// A format shows in so many bytes, unpacked where the file is compressed; nothing more is read of a
// file in which none does.
inline constexpr std::uint64_t trace_head_bytes = 64 << 10;
// Of one line of a text (SimAI, AICB, GOAL).
inline constexpr std::uint64_t trace_line_bytes_max = 16 << 20;
// Of a trace in JSON, which takes many times its size in memory.
inline constexpr std::uint64_t trace_json_bytes_max = 256 << 20;
// Of a side file: process groups, an ASTRA-sim system.
inline constexpr std::uint64_t trace_side_bytes_max = 64 << 20;

// The file as it is on disk. Where it is longer than its head, only what the head holds says which
// format it has, not its name.
// Fails: Errc::io; Errc::parse where no format is known, Errc::value beyond the bounds above.
// Memory: what is accepted of the file, and one block.
Result<TraceFile> load_trace(const std::string& path);

}  // namespace weft::workload
