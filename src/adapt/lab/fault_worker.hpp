// A process that plays a fault in time: a wire, or what makes a link flap.
#pragma once

#include <functional>
#include <string>

#include "adapt/lab/process.hpp"
#include "base/result.hpp"

namespace weft::adapt::lab {

struct WorkerSpec {
  std::string role;  // as `ps` shows it, at most 15 characters: "weft-f3"
  std::string node;
  std::string journal;  // where the process is written down before it does anything
};

// What a worker does once it is ready, until it ends; SIGTERM is left to it (blocked, for a
// signalfd or sigtimedwait).
using WorkerBody = std::function<void()>;

// Forks a process in a session of its own, with no descriptor of its parent, runs `prepare` there
// and waits, five seconds at most, until it has returned. What `prepare` fails with is returned
// here, and the process is gone then. The process outlives its starter.
Result<LabProcess> start_worker(const WorkerSpec& spec,
                                const std::function<Result<WorkerBody>()>& prepare);

}  // namespace weft::adapt::lab
