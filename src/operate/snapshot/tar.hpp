// Files in one file: the ustar format of POSIX.1-1988, plain files only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::snapshot {

struct ArchiveFile {
  std::string name;  // 1 to 99 bytes of letters, digits and "._-/"; no "..", no "/" at its ends
  std::string content;
};

// Fails: Errc::value on a name that is not of that form or is there twice, or a content from 8 GiB.
Result<std::string> write_tar(const std::vector<ArchiveFile>& files, Timestamp modified);

// Fails: Errc::parse on what is no such archive: a wrong checksum, a truncated file, another kind
// of entry than a plain file, a name that is not of that form or is there twice.
Result<std::vector<ArchiveFile>> read_tar(std::string_view bytes, const std::string& file);

// 64 hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

// The text as (part of) such a name: other bytes become "-". Never empty.
std::string file_name_of(std::string_view text);

}  // namespace weft::operate::snapshot
