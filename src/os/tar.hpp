// Archives: POSIX ustar, read with the long names of GNU tar and pax.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft {
inline namespace os {

struct TarMember {
  std::string path;
  std::string_view content;  // into the archive
};

bool is_tar(std::string_view content);

// The regular files of an archive, in order; directories, links and devices are left out.
// Fails: Errc::parse with the byte offset on a checksum that does not fit, a size that is not a
// number or reaches past the end, and an archive without its end. Bounds: 1 M members.
Result<std::vector<TarMember>> read_tar(std::string_view content, const std::string& file);

struct ArchiveFile {
  std::string name;  // 1 to 99 bytes of letters, digits and "._-/"; no "..", no "/" at its ends
  std::string content;
};

// The same bytes for the same files and time.
// Fails: Errc::value on a name that is not of that form or a duplicate, or a content from 8 GiB.
Result<std::string> write_tar(const std::vector<ArchiveFile>& files, Timestamp modified);

// What write_tar() writes. Fails: Errc::parse on anything else: as read_tar(), and also on another
// kind of entry than a regular file, a name that is not of that form and a duplicate.
Result<std::vector<ArchiveFile>> read_plain_tar(std::string_view content, const std::string& file);

}  // namespace os
}  // namespace weft
