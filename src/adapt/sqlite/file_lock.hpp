// A file that one process at a time holds.
#pragma once

#include <string>

#include "base/fd.hpp"
#include "base/result.hpp"

namespace weft::adapt::sqlite {

// Errc::io with the system's words for `error`, and what to do about the usual ones.
[[nodiscard]] std::unexpected<Error> file_failure(const std::string& path, std::string_view doing,
                                                  int error);

class FileLock {
 public:
  // Takes `path`.lock, which stays when it is given back: removing it would let two in.
  // Fails: Errc::io, naming `path` and, where it is held, the process that holds it.
  static Result<FileLock> take(const std::string& path);

 private:
  explicit FileLock(Fd file) : file_(std::move(file)) {}
  Fd file_;  // the lock goes with the descriptor, also when the process is killed
};

}  // namespace weft::adapt::sqlite
