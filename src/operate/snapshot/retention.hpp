// The directory of snapshots: names, room, and writing what must not be lost or half there.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::snapshot {

// "<case>.<nanoseconds>.tar.gz"; bytes of the case's id that a file name cannot hold are written as
// %XX, and a very long id ends in a hash. Different ids give different names.
std::string snapshot_file_name(std::string_view case_id, Timestamp taken);

// Makes room for `bytes` more in the directory: removes the oldest snapshots of cases that are not
// in `open_cases` until all together fit into `bytes_max`. Files that are no snapshots are left
// alone. Returns the paths that went.
// Fails: Errc::infeasible where what must stay leaves too little room (nothing is removed then),
// Errc::io.
Result<std::vector<std::string>> make_room(const std::string& directory, std::uint64_t bytes,
                                           std::uint64_t bytes_max,
                                           std::span<const std::string> open_cases);

// Writes a file that is there whole, on durable context, or not at all. Creates its directory, for
// its owner alone. Fails: Errc::io.
Status write_durable(const std::string& path, std::string_view content);

}  // namespace weft::operate::snapshot
