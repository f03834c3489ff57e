// Whole-file input and all-or-nothing output.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace weft {
inline namespace base {

inline constexpr std::uint64_t file_bytes_max = std::uint64_t{4} << 30;

// The bytes of `path` ("-" is standard input). Fails: Errc::io, with the system's reason and when
// the file is larger than `limit`.
Result<std::string> read_file(const std::string& path, std::uint64_t limit = file_bytes_max);

// Writes beside `path` and renames, so that a reader sees the old file or the whole new one. What
// a symbolic link points to is replaced, not the link; a device or pipe is written to directly.
// Creates missing directories. "-" is standard output.
Status write_file(const std::string& path, std::string_view content);

// The bytes compressed as a gzip member (deterministic: no time stamp, no name).
Result<std::string> gzip(std::string_view content);
// The inverse; understands several members. Fails: Errc::parse on corrupt or truncated input and
// when the result would exceed `limit`.
Result<std::string> gunzip(std::string_view content, const std::string& file,
                           std::uint64_t limit = file_bytes_max);
// How many bytes gunzip() would return; `limit` + 1 where they are more. Nothing is kept: a file
// that unpacks to much costs no memory. Fails as gunzip() does on corrupt or truncated input.
Result<std::uint64_t> gunzip_size(std::string_view content, const std::string& file,
                                  std::uint64_t limit);
// The first `bytes` of it, or fewer: `content` may be the beginning of a file. Fails: Errc::parse
// on corrupt input.
Result<std::string> gunzip_head(std::string_view content, const std::string& file,
                                std::size_t bytes);

}  // namespace base
}  // namespace weft
