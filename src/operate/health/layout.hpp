// The table of path health as bytes: what `weft serve` and `weft agent` write, and what
// libweft-nccl.so and anybody else reads. Plain data with fixed places and no other header of ours,
// because the plugin is loaded without the rest of weft. Little-endian.
//
// A file, in shared memory or not:
//   0                                   FileHead
//   slot_offset + (sequence % 2) x slot_bytes    the table that counts
//   the other slot                      the one before it, or one that is being written
//
// A table is a TableHead, then its rails, links and advice without gaps. Nobody waits for anybody:
// a reader takes the slot that the head names and checks the table's own sum. A writer that dies
// has changed only the slot that nobody is sent to; a reader that was overtaken twice meets a wrong
// sum, and looks again.
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft::operate::health::layout {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tables are little-endian");

inline constexpr char file_magic[8] = {'w', 'e', 'f', 't', 'h', 'l', 't', 'h'};
inline constexpr std::uint32_t version = 1;

struct FileHead {
  char magic[8];
  std::uint32_t version;
  std::uint32_t slot_bytes;
  std::uint64_t sequence;  // tables written; odd: in the second slot
  std::uint8_t reserved[40];
};

struct TableHead {
  std::uint64_t sum;  // of all that follows, sum_of()
  std::uint32_t version;
  std::uint32_t bytes;       // of the table, this head included
  std::int64_t written_ns;   // since 1970: when the evidence was judged
  std::uint32_t valid_ms;    // how long after that it may be believed
  std::uint32_t links_more;  // that are not well and found no place
  std::uint16_t rails, links, advice, reserved;
};

// What is known of a link or rail, as bits.
enum Evidence : std::uint16_t {
  evidence_down = 1 << 0,     // no carrier, or its device is gone
  evidence_session = 1 << 1,  // the routing session over it is lost
  evidence_out = 1 << 2,      // taken out of service
  evidence_slow = 1 << 3,     // runs at less than its nominal rate
  evidence_damage = 1 << 4,   // damaged or dropped frames, by a device's counters
  evidence_loss = 1 << 5,     // lost probes
  evidence_delay = 1 << 6,    // late probes
  evidence_marks = 1 << 7,    // ECN marks
  evidence_pauses = 1 << 8,   // PFC
};
inline constexpr int evidence_count = 9;

inline constexpr std::uint16_t no_rail = 0xffff;

// The NICs at one place of all hosts.
struct Rail {
  std::uint16_t rail;
  std::uint16_t evidence;  // of any of its NICs' cables
  std::uint32_t nics, nics_down, nics_impaired;
  std::uint32_t worst_rate_ppm;  // of nominal, of those that are not down
  std::uint32_t worst_loss_ppm;
  std::uint32_t reserved[2];
};

// One direction of a cable that is not well.
struct Link {
  char name[56];           // "rtsw:3->ctsw:1", ends with zeros
  std::uint32_t rate_ppm;  // of nominal; 0: carries nothing
  std::uint32_t loss_ppm;  // of packets
  std::uint16_t evidence;
  std::uint16_t rail;  // of the NIC at one end; no_rail: between switches
  std::uint32_t reserved;
};

// What the cost model would have a job's communicator use, the best first among rows of the same
// job, operation, shape and size. Numbers of operations, algorithms and protocols are NCCL's.
struct Advice {
  std::uint64_t job;  // hash_of() its id
  std::uint64_t bytes_from, bytes_to;
  std::uint32_t nodes, ranks;
  std::uint8_t operation, algorithm, protocol;
  std::uint8_t channels;    // 0: as many as the library takes
  std::uint32_t share_ppm;  // predicted time, of what the library's own choice takes now
};

inline constexpr std::uint32_t rails_max = 64, links_max = 128, advice_max = 96;
inline constexpr std::size_t slot_bytes = 16384, slot_offset = sizeof(FileHead);
inline constexpr std::size_t file_bytes = slot_offset + 2 * slot_bytes;

static_assert(sizeof(FileHead) == 64 && sizeof(TableHead) == 40);
static_assert(sizeof(Rail) == 32 && sizeof(Link) == 72 && sizeof(Advice) == 40);
static_assert(sizeof(TableHead) + rails_max * sizeof(Rail) + links_max * sizeof(Link) +
                  advice_max * sizeof(Advice) <=
              slot_bytes);

inline std::size_t bytes_of(const TableHead& head) {
  return sizeof(TableHead) + head.rails * sizeof(Rail) + head.links * sizeof(Link) +
         head.advice * sizeof(Advice);
}

// FNV-1a over little-endian words of eight bytes; a part of one at the end counts for nothing.
inline std::uint64_t sum_of(const void* bytes, std::size_t size) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (std::size_t i = 0; i + 8 <= size; i += 8) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, at + i, 8);
    sum = (sum ^ word) * 0x100000001b3u;
  }
  return sum;
}

// FNV-1a of a text.
inline std::uint64_t hash_of(const char* text) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (; *text != 0; ++text) sum = (sum ^ static_cast<unsigned char>(*text)) * 0x100000001b3u;
  return sum;
}

// Whether a table begins there that is whole; nothing behind `size` is read. Any bytes may come.
inline bool is_table(const void* bytes, std::size_t size) {
  TableHead head;
  if (size < sizeof head) return false;
  __builtin_memcpy(&head, bytes, sizeof head);
  return head.version == version && head.rails <= rails_max && head.links <= links_max &&
         head.advice <= advice_max && head.bytes == bytes_of(head) && head.bytes <= size &&
         head.sum == sum_of(static_cast<const char*>(bytes) + 8, head.bytes - 8);
}

// Whether the table may be believed at `now_ns`. One from the future, beyond what clocks may
// differ, may not.
inline bool is_fresh(const TableHead& head, std::int64_t now_ns) {
  constexpr std::int64_t clocks_apart_ns = 1'000'000'000, ns_per_ms = 1'000'000;
  if (head.written_ns < 0 || now_ns < 0) return false;
  const std::int64_t age = now_ns - head.written_ns;
  return age >= -clocks_apart_ns && age <= head.valid_ms * ns_per_ms;
}

}  // namespace weft::operate::health::layout
