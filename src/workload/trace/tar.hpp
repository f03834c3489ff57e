// Archives of traces: POSIX ustar with the long names of GNU tar and pax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::workload {

struct TarMember {
  std::string path;
  std::string_view content;  // into the archive
};

bool is_tar(std::string_view content);

// The regular files of an archive, in order; directories, links and devices are left out.
// Fails: Errc::parse with the byte offset on a checksum that does not fit, a size that is no number
// or reaches past the end, and an archive without its end. Bounds: 1 M members.
Result<std::vector<TarMember>> read_tar(std::string_view content, const std::string& file);

}  // namespace weft::workload
