// Traces of others: NCCL Inspector (JSON lines), PyTorch's profiler (Kineto), NCCL's RAS (JSON).
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "observe/colltrace/job.hpp"
#include "observe/colltrace/ring.hpp"

namespace weft::observe::colltrace {

// One process's file of NCCL Inspector, format v4: completed operations with their times on the
// device, and nothing of when they were. A communicator's functions are numbered apart, and become
// communicators of their own. Lines that are no JSON (marks of `tail`) are skipped and counted.
// `content` has json_padding more bytes of capacity, here and below.
// Fails: Errc::parse, naming the line, when no line is one of Inspector's.
Result<RingTrace> read_inspector(std::string& content, const std::string& file);

// A rank's trace of PyTorch's profiler: the kernels of collectives that say what they are
// (PyTorch 2.2 on). Fails: Errc::parse.
Status read_kineto(std::string& content, const std::string& file, JobBuilder& job);

// What `ncclras -f json` prints: how many operations of each kind the ranks have begun. A rank that
// has begun fewer than others keeps them waiting. Fails: Errc::parse.
Status read_ras(std::string& content, const std::string& file, JobBuilder& job);

}  // namespace weft::observe::colltrace
