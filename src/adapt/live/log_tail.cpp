#include "adapt/live/log_tail.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace weft::adapt::live {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_bytes = 65'536;
constexpr std::size_t siblings_max = 10'000;

bool is_file(const struct stat& state, const LogPlace& place) {
  return state.st_dev == place.device && state.st_ino == place.inode;
}

}  // namespace

LogTail::LogTail(std::string path, std::deque<LogPlace> places, std::uint64_t& generations)
    : path_(std::move(path)),
      places_(std::move(places)),
      generations_(generations),
      block_(block_bytes) {}

bool LogTail::read(std::size_t bytes_max, const Take& take) {
  bool is_any = false;
  for (std::size_t done = 0; done < bytes_max;) {
    if (!file_.valid() && !open_next()) return is_any;
    const ssize_t got = ::pread(file_.get(), block_.data(), block_.size(), static_cast<off_t>(at_));
    if (got > 0) {
      is_any = true;
      is_leaving_ = false;
      at_ += static_cast<std::uint64_t>(got);
      done += static_cast<std::size_t>(got);
      counts_.bytes += static_cast<std::uint64_t>(got);
      split({block_.data(), static_cast<std::size_t>(got)}, take);
      continue;
    }
    if (got < 0) ++counts_.failed;
    if (was_shortened()) continue;
    // Who wrote the old file may finish a line of it: it is left at the second look.
    if (!was_replaced()) return is_any;
    if (!std::exchange(is_leaving_, true)) return is_any;
    emit(take);
    file_.reset();
    ++counts_.replaced;
  }
  return is_any;
}

bool LogTail::open_next() {
  is_leaving_ = false;
  while (!places_.empty()) {
    const LogPlace place = places_.front();
    places_.pop_front();
    is_first_ = false;
    if (open_place(place)) return true;
    ++counts_.lost;
  }
  const From from = is_first_ ? From::end : From::begin;
  is_first_ = false;
  return open_path(from);
}

// The file of that place, by its own or another name.
bool LogTail::open_place(const LogPlace& place) {
  if (adopt(path_, &place, From::begin)) return true;
  const fs::path path(path_);
  const std::string name = path.filename().string();
  std::error_code error;
  std::size_t seen = 0;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (fs::directory_iterator at(folder, error), end; !error && at != end && seen < siblings_max;
       at.increment(error), ++seen)
    if (at->path().filename().string().starts_with(name) &&
        adopt(at->path().string(), &place, From::begin))
      return true;
  return false;
}

bool LogTail::open_path(From from) { return adopt(path_, nullptr, from); }

// Opens the file, if it is the one of `place` where that is given.
bool LogTail::adopt(const std::string& path, const LogPlace* place, From from) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat state{};
  if (!file.valid() || ::fstat(file.get(), &state) != 0 || !S_ISREG(state.st_mode)) return false;
  if (place != nullptr && !is_file(state, *place)) return false;
  file_ = std::move(file);
  const auto size = static_cast<std::uint64_t>(state.st_size);
  held_.clear();
  is_cut_ = false;
  begin_.device = state.st_dev;
  begin_.inode = state.st_ino;
  if (place != nullptr && place->offset <= size) {
    begin_ = *place;
    at_ = place->offset;
  } else {
    if (place != nullptr) ++counts_.shortened;
    begin_generation(from == From::end ? size : 0);
  }
  return true;
}

void LogTail::begin_generation(std::uint64_t offset) {
  begin_.generation = ++generations_;
  begin_.offset = offset;
  at_ = offset;
  held_.clear();
  is_cut_ = false;
}

bool LogTail::was_shortened() {
  struct stat state{};
  if (::fstat(file_.get(), &state) != 0 || static_cast<std::uint64_t>(state.st_size) >= at_)
    return false;
  ++counts_.shortened;
  begin_generation(0);
  return true;
}

bool LogTail::was_replaced() const {
  struct stat state{};
  return ::stat(path_.c_str(), &state) == 0 && !is_file(state, begin_);
}

void LogTail::split(std::string_view bytes, const Take& take) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    keep(bytes.substr(0, end));
    if (end == std::string_view::npos) return;
    const std::size_t size = end + 1;
    bytes.remove_prefix(size);
    emit(take);
    begin_.offset = at_ - bytes.size();
  }
}

void LogTail::keep(std::string_view bytes) {
  const std::size_t room = line_bytes_max - held_.size();
  if (bytes.size() > room) is_cut_ = true;
  held_ += bytes.substr(0, room);
}

void LogTail::emit(const Take& take) {
  if (held_.ends_with('\r')) held_.pop_back();
  if (is_cut_) ++counts_.cut;
  if (!held_.empty()) {
    ++counts_.lines;
    take(held_, begin_);
  }
  held_.clear();
  is_cut_ = false;
}

}  // namespace weft::adapt::live
