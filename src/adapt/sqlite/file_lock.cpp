#include "adapt/sqlite/file_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string_view>
#include <thread>

#include "base/text.hpp"
#include "os/error.hpp"

namespace weft::adapt::sqlite {
namespace {

std::string_view hint_for(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return "give the user of this service write access to the file and its directory";
    case ENOENT:
    case ENOTDIR:
      return "create the directory first, writable by the user of this service";
    case EISDIR:
      return "specify a file, e.g. weft.db in that directory";
    case ENOSPC:
    case EDQUOT:
      return "free space there";
    default:
      return {};
  }
}

// "process 123", as far as the holder got to write it down.
std::string holder_of(const Fd& file) {
  std::array<char, 32> text{};
  const ssize_t size = pread(file.get(), text.data(), text.size(), 0);
  const std::string_view pid = trim({text.data(), static_cast<std::size_t>(size > 0 ? size : 0)});
  return pid.empty() ? "another process" : fmt::format("process {}", pid);
}

// A program that a service was about to start holds its lock, too, until it runs: for a moment
// after the service was killed.
bool lock(const Fd& file) {
  constexpr int tries = 50;
  for (int i = 1; flock(file.get(), LOCK_EX | LOCK_NB) != 0; ++i) {
    if (errno != EWOULDBLOCK || i == tries) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

}  // namespace

std::unexpected<Error> file_failure(const std::string& path, std::string_view doing, int error) {
  return system_failure(doing, error, std::string(hint_for(error)), {path});
}

Result<FileLock> FileLock::take(const std::string& path) {
  const std::string name = path + ".lock";
  Fd file(open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (!file.valid()) return file_failure(name, "cannot be opened", errno);
  if (!lock(file)) {
    if (errno != EWOULDBLOCK) return file_failure(name, "cannot be locked", errno);
    return fail(Errc::io, {path}, fmt::format("this store is in use by {}", holder_of(file)),
                "stop that service, or give this one its own store");
  }
  // For people only: who cannot be named still holds the lock.
  const std::string pid = fmt::format("{}\n", getpid());
  if (ftruncate(file.get(), 0) == 0)
    static_cast<void>(pwrite(file.get(), pid.data(), pid.size(), 0));
  return FileLock(std::move(file));
}

}  // namespace weft::adapt::sqlite
