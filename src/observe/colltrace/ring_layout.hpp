// The file that libweft-nccl.so writes and the ring reader reads: one per process, in shared
// memory. Plain data with fixed places and no other header of ours, because the plugin is loaded
// without the rest of weft. All numbers are of the host's byte order.
//
//   0                       ProcessHead
//   comm_offset             Communicator x communicators_max
//   name_offset             Name x names_max
//   ring_offset + i x ring_stride    RingHead (one page), then records_per_ring records
//
// Rings stay holes in the file until a thread takes one. A record is a live slot: the start of an
// operation writes it, what happens later changes it in place, and an open one is never reused. So
// a file that is read while its process is stuck, or after it was killed, shows what was under way.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::observe::colltrace::ring {

inline constexpr char magic[8] = {'w', 'e', 'f', 't', 'n', 'c', 'c', 'l'};
inline constexpr std::uint32_t layout_version = 1;
inline constexpr std::size_t page = 4096;
inline constexpr std::uint32_t communicators_max = 1024;
inline constexpr std::uint32_t names_max = 128;
inline constexpr std::uint32_t rings_max = 64;
inline constexpr std::uint32_t records_per_ring_log2 = 14;
inline constexpr std::uint32_t records_per_ring = 1u << records_per_ring_log2;
// Waits inside an operation are counted in ticks >> wait_shift since its begin: 32 bits then hold
// minutes, and stop at their largest value.
inline constexpr unsigned wait_shift = 7;

enum class ClockKind : std::uint32_t { monotonic_ns = 0, cpu_counter = 1 };

// One moment on both clocks.
struct ClockPair {
  std::uint64_t ticks;
  std::uint64_t realtime_ns;  // since 1970
};

struct ProcessHead {
  char magic[8];
  std::uint32_t version;
  ClockKind clock;
  std::int32_t pid;
  std::int32_t rank;   // in the job, from the launcher's environment; -1: not known
  std::uint64_t base;  // address of this file in the writer: handles are addresses
  ClockPair opened;
  std::uint64_t finished_ns;       // the process ended by exit(); 0: it did not, or not yet
  std::uint32_t communicators;     // taken; may exceed communicators_max: those are not traced
  std::uint32_t names;             // taken; may exceed names_max: those are "?"
  std::uint32_t rings;             // taken; may exceed rings_max
  std::uint32_t untraced_threads;  // no ring left, or no room for one
  std::uint64_t untraced_events;   // of those threads
  std::uint64_t pid_namespace;     // inode; 0: not known. In which the pid means this process
  char host[64];
  char boot_id[40];
  // Of a copy, by who made it where the process ran: it was no more. The plugin leaves it 0.
  std::uint64_t gone_ns;
  char job[64];  // by the environment; empty: not known
};

struct Communicator {
  std::uint64_t id;  // the same on all its ranks
  std::int32_t rank, rank_count, node_count;
  std::uint32_t state;   // 0: being filled in, 1: live, 2: finalized
  std::uint64_t orders;  // collectives begun on it, traced or not
  std::uint64_t sends;   // ... and sends and receives
  std::uint64_t opened_ticks, closed_ticks;
  char name[40];
};

struct Name {
  std::uint32_t is_set;
  char text[28];
};

struct RingHead {
  std::uint64_t head;     // slots taken since the beginning
  std::uint64_t dropped;  // operations without a record: all slots near the head were open
  std::uint64_t stale;    // events of operations whose record is gone
  std::uint32_t owner;    // thread id; 0: its thread has ended, another may take it
  std::uint32_t pair_count;
  ClockPair pairs[2];  // renewed in turns; pairs[(pair_count - 1) % 2] is the latest
};

enum class Kind : std::uint8_t { none = 0, collective = 1, p2p = 2, copy_engine = 3, proxy = 4 };

// A collective or point-to-point operation of one rank.
struct Operation {
  std::uint16_t communicator;  // index into the table
  std::uint8_t channels, warps;
  std::int32_t peer;    // root or peer
  std::uint64_t seq;    // NCCL's number: of this function on this communicator; p2p: none, 0
  std::uint64_t order;  // number on this communicator, of collectives or of sends and receives
  std::uint64_t count;
  std::uint8_t function, type, algorithm, protocol;  // indices into the names
  std::uint32_t proxies_begun;
  std::uint64_t enqueued;                  // ticks when the host was done; 0: it is not
  std::uint64_t begun, ended;              // bit per channel of the kernel
  std::uint64_t device_begin, device_end;  // GPU timer, ns
  std::uint64_t seen_begin, seen_end;      // host ticks of the first and the last of these
  std::uint32_t proxies_ended;
};

// What the network thread does for one operation, channel and peer.
struct Proxy {
  std::int32_t peer;
  std::uint32_t chunk;  // bytes
  std::uint8_t channel, is_send;
  std::uint16_t communicator;
  std::uint32_t steps, steps_done;
  std::uint32_t wait[4];  // by Wait
  std::uint32_t end;      // since the begin; 0: not ended
  std::int32_t pid;       // whose operation it is
  std::uint32_t pad;
  std::uint32_t last[8];  // by step % 8: last change of state
  std::uint8_t state[8];  // 0: none, 1 + Wait: the state it is in
  std::uint64_t bytes;
};

// For the GPU to give or take data; for the network; for the receiver's credit (send) or the flush
// to the GPU (receive).
enum class Wait : std::uint8_t { gpu = 0, send = 1, receive = 2, peer_or_flush = 3 };

struct alignas(128) Record {
  std::uint32_t serial;  // place in the ring's history + 1; 0: being written
  Kind kind;
  std::uint8_t host_open, device_open;  // written by one thread each
  std::uint8_t pad;
  std::uint64_t begin;  // ticks
  std::uint64_t
      parent;  // handle of the operation a proxy works for; 0: none, or of another process
  union {
    Operation operation;
    Proxy proxy;
  };
};

inline constexpr std::size_t comm_offset = page;
inline constexpr std::size_t name_offset = comm_offset + communicators_max * sizeof(Communicator);
inline constexpr std::size_t ring_offset = name_offset + names_max * sizeof(Name);
inline constexpr std::size_t ring_stride = page + records_per_ring * sizeof(Record);
inline constexpr std::size_t file_bytes = ring_offset + rings_max * ring_stride;

static_assert(sizeof(ProcessHead) <= page && sizeof(RingHead) <= page);
static_assert(sizeof(Communicator) == 96 && sizeof(Name) == 32);
static_assert(sizeof(Record) == 128 && ring_offset % page == 0);

}  // namespace weft::observe::colltrace::ring
