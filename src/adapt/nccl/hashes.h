// Hashes of what a rank holds, for weft colltrace --hashes. C interface of libweft-nccl.so.
//
//   struct weft_hashes* h = weft_hashes_open("/var/log/job/rank3.csv", 3, restarts);
//   weft_hashes_add(h, "weights", "dp0", step, shard, -1, 0, bytes, size, 1);
//   weft_hashes_close(h);
//
// All take memory of the host. One handle is for one thread at a time. Functions that fail return
// NULL or -1 and set errno; the training goes on without the row.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct weft_hashes;  // NOLINT(readability-identifier-naming): as C names things

// XXH3 with 64 bits and seed 0.
uint64_t weft_hash(const void* data, uint64_t bytes);

// Opens a CSV for appending, and makes it with its header line where it is empty. Ranks of one
// machine may share a file. `run` is the number of restarts of the job. Fails with errno of open().
struct weft_hashes* weft_hashes_open(const char* path, uint32_t rank, uint64_t run);

// Hashes `data` in so many slices, equal but for the last one that has the rest, and appends a row.
// `kind`: "input", "compute", "output" or "weights". `seq`: which collective or shard of the step.
// `place` in the group's ring of `size` members, -1 and 0 where it is not known.
// EINVAL: another kind, a group of more than 1,024 bytes or with a comma, quote or control
// character, a place not below the size, no slice or more than 4,096. Else errno of write().
int weft_hashes_add(struct weft_hashes* hashes, const char* kind, const char* group, uint64_t step,
                    uint64_t seq, int32_t place, uint32_t size, const void* data, uint64_t bytes,
                    uint32_t slices);

void weft_hashes_close(struct weft_hashes* hashes);

#ifdef __cplusplus
}
#endif
