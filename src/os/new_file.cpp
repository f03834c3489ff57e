#include "os/new_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "os/error.hpp"

namespace weft {
inline namespace os {
namespace {

// Messages name the path that was given.
std::unexpected<Error> failure(const std::string& path, std::string_view doing, int error) {
  const bool is_full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return system_failure(doing, error, is_full ? "free some disk space" : "", {path});
}

}  // namespace

Result<NewFile> NewFile::create(const std::string& path) {
  const std::string temporary = fmt::format("{}.tmp.{}", path, ::getpid());
  Fd file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return failure(path, "creating", errno);
  return NewFile(path, temporary, std::move(file));
}

NewFile::~NewFile() {
  if (file_.valid()) ::unlink(temporary_.c_str());
}

Status NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t size = ::write(file_.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return failure(path_, "writing", errno);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return {};
}

Status NewFile::commit() {
  if (::fsync(file_.get()) != 0) return failure(path_, "making it durable", errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0)
    return failure(path_, "renaming to it", errno);
  file_.reset();
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  const std::string folder = parent.empty() ? "." : parent.native();
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid() || ::fsync(opened.get()) != 0)
    return failure(folder, "making it durable", errno);
  return {};
}

}  // namespace os
}  // namespace weft
