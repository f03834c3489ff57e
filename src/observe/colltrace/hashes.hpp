// Hashes of what ranks of a job hold, where replicas must hold the same bytes.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/names.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::observe::colltrace {

// What was hashed, in the order in which a step has them.
enum class HashKind : std::uint8_t {
  input,    // what was read: ranks of a group read the same
  compute,  // computed from the same input and weights, before anything is exchanged
  output,   // of a collective that leaves the same bytes on all members
  weights,  // a shard of replicated weights, or of the optimiser's state
};
inline constexpr auto hash_kind_names =
    std::to_array<std::string_view>({"input", "compute", "output", "weights"});
constexpr std::span<const std::string_view> names_of(HashKind) { return hash_kind_names; }
constexpr std::string_view to_text(HashKind kind) { return name_of(kind); }

struct HashRow {
  std::uint64_t run = 0, step = 0, seq = 0;
  std::uint32_t group = 0;  // index into HashSet::groups
  std::uint32_t rank = 0;
  std::uint32_t slices = 1;
  std::size_t first = 0;              // slice, in HashSet::hashes
  std::uint32_t place = 0, size = 0;  // in the group's ring of so many; size 0: not known
  HashKind kind = HashKind::output;
};

struct HashSet {
  std::vector<HashRow> rows;
  std::vector<std::uint64_t> hashes;
  std::vector<std::string> groups;
  std::map<std::uint32_t, std::string> hosts;  // of ranks that say so
  Timestamp last;                              // of all rows that have a time
  std::uint64_t bytes = 0, ns = 0;             // hashed, and the time that took; of rows with both
  std::span<const std::uint64_t> of(const HashRow& row) const {
    return std::span(hashes).subspan(row.first, row.slices);
  }
};

// Adds the rows of a CSV with the columns step, kind, group, seq, rank and hash, and perhaps run,
// place, size, bytes, ns, time and host. A hash is hexadecimal; several, one for each slice of the
// bytes in turn, are joined by ':'.
// Fails with file and line: Errc::parse, Errc::value.
Status read_hashes(std::string_view text, const std::string& file, HashSet& out);

// Files, and folders with files that end with .csv. Fails: Errc::io, and as above for all of them;
// Errc::value without any row.
Result<HashSet> load_hashes(const std::vector<std::string>& paths);

}  // namespace weft::observe::colltrace
