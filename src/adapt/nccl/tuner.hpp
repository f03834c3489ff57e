// NCCL's tuner interface, versions 3 to 5, as its documentation lays it out. Sizes are those of
// 64-bit Linux.
#pragma once

#include <cstddef>
#include <cstdint>

#include "adapt/nccl/profiler.hpp"

namespace weft::adapt::nccl {

// `costs`: microseconds of each algorithm and protocol, algorithms x protocols numbers in rows;
// below 0: not possible here. NCCL takes the least. `channels` comes as 0: NCCL's own number.
struct Tuner3 {
  const char* name;
  int (*init)(std::size_t ranks, std::size_t nodes, Log log, void** context);
  int (*choose)(void* context, int operation, std::size_t bytes, int operations, float** costs,
                int algorithms, int protocols, int* channels);
  int (*destroy)(void* context);
};

struct Tuner4 {
  const char* name;
  int (*init)(std::size_t ranks, std::size_t nodes, Log log, void** context);
  int (*choose)(void* context, int operation, std::size_t bytes, int operations, float** costs,
                int algorithms, int protocols, int are_registered, int* channels);
  int (*destroy)(void* context);
};

struct Tuner5 {
  const char* name;
  int (*init)(void** context, std::uint64_t id, std::size_t ranks, std::size_t nodes, Log log,
              void* nvlink_domains, void* constants);
  int (*choose)(void* context, int operation, std::size_t bytes, int operations, float** costs,
                int algorithms, int protocols, int are_registered, int* channels);
  int (*finalize)(void* context);
};

}  // namespace weft::adapt::nccl

// For a training program that follows the network: rank 0 reads, all ranks get its bytes, and all
// adopt them between the same two collectives.
extern "C" {
// Copies the table of the file that WEFT_NCCL_HEALTH_LIVE names (/dev/shm/weft-health). Returns its
// bytes; 0 where there is none, it is too old, or `room` is too small (16,384 are enough).
__attribute__((visibility("default"))) std::size_t weft_health_read(void* to, std::size_t room);
// From now on collectives of this process are tuned by this table; `size` 0, or bytes that are no
// table: by none. Returns whether by one.
__attribute__((visibility("default"))) int weft_health_adopt(const void* table, std::size_t size);
}
