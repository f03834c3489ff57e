// Opening files, for the readers of this room.
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace weft {
inline namespace base {

struct FileCloser {
  void operator()(std::FILE* file) const {
    if (file != stdin) std::fclose(file);
  }
};
using File = std::unique_ptr<std::FILE, FileCloser>;

// Errc::io with what the system says of errno.
std::unexpected<Error> io_error(const std::string& path, std::string_view doing);

// A file to read. Fails: Errc::io, also for a directory.
Result<File> open_file(const std::string& path);

// Bytes of a regular file, by which to reserve memory; 0 for anything else.
std::uint64_t file_size_hint(const std::string& path);

// What is left of `in`, behind what `out` holds. Fails: Errc::io, also beyond `limit` bytes.
Status read_rest(std::FILE* in, const std::string& path, std::uint64_t limit, std::string& out);

}  // namespace base
}  // namespace weft
