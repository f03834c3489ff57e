// A file that is there whole, on durable storage, or not at all.
#pragma once

#include <string>
#include <string_view>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft {
inline namespace os {

// Written as PATH.tmp.PID, readable by its owner only, which goes away unless it is committed.
// All calls fail with Errc::io, and what to do about a full disk.
class NewFile {
 public:
  static Result<NewFile> create(const std::string& path);
  NewFile(NewFile&&) noexcept = default;
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile();

  Status write(std::string_view bytes);
  // Gives it its name, in place of what has that name, when all of it is durable.
  Status commit();

 private:
  NewFile(std::string path, std::string temporary, Fd file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(std::move(file)) {}
  std::string path_, temporary_;
  Fd file_;  // not valid: committed, or moved from
};

}  // namespace os
}  // namespace weft
