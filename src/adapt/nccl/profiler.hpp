// NCCL's profiler interface, versions 4 to 6, as its documentation lays it out: what NCCL passes to
// a plugin and what it looks for in one. Offsets are those of 64-bit Linux.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::adapt::nccl {

enum EventType : std::uint64_t {
  event_collective = 1 << 1,
  event_p2p = 1 << 2,
  event_proxy = 1 << 3,
  event_step = 1 << 4,
  event_kernel = 1 << 6,
  event_copy_engine = 1 << 12,  // from version 6
};

enum EventState : int {
  step_send_gpu_wait = 8,
  step_send_wait = 9,
  step_receive_wait = 10,
  step_flush_wait = 11,
  step_receive_gpu_wait = 12,
  step_send_peer_wait = 20,
  kernel_stop = 22,
};

struct CollectiveEvent {
  std::uint64_t seq;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  std::int32_t root;
  const char* type;
  std::uint8_t channels, warps;
  const char* algorithm;
  const char* protocol;
  void* group;  // from version 5
};

struct P2pEvent {
  const char* function;
  void* buffer;
  const char* type;
  std::size_t count;
  std::int32_t peer;
  std::uint8_t channels;
  void* group;  // from version 5
};

struct ProxyEvent {
  std::int32_t pid;
  std::uint8_t channel;
  std::int32_t peer, steps, chunk, is_send;
};

struct KernelEvent {
  std::uint8_t channel;
  std::uint64_t timer;  // GPU, ns
};

struct CopyEngineEvent {  // from version 6; to `type` as CollectiveEvent
  std::uint64_t seq;
  const char* function;
  const void* send;
  void* receive;
  std::size_t count;
  std::int32_t root;
  const char* type;
  const char* strategy;
  bool intra_batch;
  std::uint32_t batch_size, batches, number;
  void* stream;
};

struct Event {
  std::uint64_t type;  // version 4: one byte at the same place, and seven that mean nothing
  void* parent;
  std::int32_t rank;
  union {
    CollectiveEvent collective;
    P2pEvent p2p;
    ProxyEvent proxy;
    std::int32_t step;
    KernelEvent kernel;
    CopyEngineEvent copy_engine;
  };
};

union StateArguments {
  std::size_t step_bytes;
  std::uint64_t kernel_timer;
};

using Log = void (*)(int level, unsigned long flags, const char* file, int line, const char* format,
                     ...);
inline constexpr int success = 0;

struct Plugin4 {
  const char* name;
  int (*init)(void** context, int* mask, const char* name, std::uint64_t id, int nodes, int ranks,
              int rank, Log log);
  int (*start)(void* context, void** handle, const Event* event);
  int (*stop)(void* handle);
  int (*state)(void* handle, int state, const StateArguments* arguments);
  int (*finalize)(void* context);
};

struct Plugin5 {
  const char* name;
  int (*init)(void** context, std::uint64_t id, int* mask, const char* name, int nodes, int ranks,
              int rank, Log log);
  int (*start)(void* context, void** handle, const Event* event);
  int (*stop)(void* handle);
  int (*state)(void* handle, int state, const StateArguments* arguments);
  int (*finalize)(void* context);
};

}  // namespace weft::adapt::nccl
