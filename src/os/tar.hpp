// Archives: POSIX ustar, read with the long names of GNU tar and pax.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "os/new_file.hpp"

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

// An archive of any size, written to a file member by member; the file has its name when it is
// whole. Names as in ArchiveFile. Fails: Errc::io, Errc::value (a name).
class TarWriter {
 public:
  static Result<TarWriter> create(const std::string& path, Timestamp modified);

  struct Added {
    std::uint64_t bytes = 0;
    std::string sha256;
  };
  Result<Added> add(const std::string& name, std::string_view content);
  // What is in the open file; `from` is its path, for messages.
  Result<Added> add_file(const std::string& name, const Fd& file, const std::string& from);
  Status finish();

 private:
  TarWriter(NewFile file, Timestamp modified) : file_(std::move(file)), modified_(modified) {}
  Status begin_member(const std::string& name, std::uint64_t bytes);
  Status end_member(std::uint64_t bytes);

  NewFile file_;
  Timestamp modified_;
  std::set<std::string> names_;
};

// Reads what a TarWriter wrote, without keeping it, and nothing else: not one byte of it may be
// different but for the contents themselves. Fails: Errc::io; Errc::parse with the byte offset.
class TarReader {
 public:
  static Result<TarReader> open(const std::string& path);

  struct Member {
    std::string name;
    std::uint64_t bytes = 0;
  };
  // The next member; none at the end. The content of the last one must have been read.
  Result<std::optional<Member>> next();
  // Calls take() with pieces of the content of the member that next() gave.
  using Take = std::function<Status(std::string_view piece)>;
  Status content(const Take& take);

 private:
  TarReader(Fd file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Result<std::string> read(std::size_t bytes);
  Status end_of_archive();

  Fd file_;
  std::string path_;
  std::uint64_t at_ = 0, left_ = 0, padding_ = 0;
};

}  // namespace os
}  // namespace weft
