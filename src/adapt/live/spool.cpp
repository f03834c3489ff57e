#include "adapt/live/spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/check.hpp"
#include "base/file.hpp"
#include "base/file_stream.hpp"
#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view suffix = ".lines";
constexpr std::size_t segments_max = 100'000;

std::uint64_t number_in(std::string_view text) {
  std::uint64_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

// The next so many whole lines that are no marks, and how far they reach.
struct Cut {
  std::size_t lines = 0, end = 0;
};
Cut cut(std::string_view bytes, std::size_t lines_max, std::string* body) {
  Cut out;
  while (out.end < bytes.size()) {
    const std::size_t end = bytes.find('\n', out.end);
    if (end == std::string_view::npos) break;
    const std::string_view line = bytes.substr(out.end, end + 1 - out.end);
    if (!line.starts_with('#')) {
      if (out.lines == lines_max) break;
      ++out.lines;
      if (body != nullptr) *body += line;
    }
    out.end = end + 1;
  }
  return out;
}

}  // namespace

Result<Spool> Spool::open(SpoolOptions options) {
  Spool out(std::move(options));
  const std::string& directory = out.options_.directory;
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string lock = directory + "/lock";
  out.lock_ = Fd(::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!out.lock_.valid()) return io_error(lock, "open");
  if (::flock(out.lock_.get(), LOCK_EX | LOCK_NB) != 0)
    return fail(Errc::io, {directory, 0, 0}, "another process uses this spool",
                "give each agent its own directory");
  WEFT_TRY_STATUS(out.find_segments());
  WEFT_TRY_STATUS(out.recover());
  out.read_place();
  return out;
}

std::string Spool::path_of(std::uint64_t number) const {
  return fmt::format("{}/{:012}{}", options_.directory, number, suffix);
}

Status Spool::find_segments() {
  std::error_code error;
  std::vector<Segment> found;
  for (fs::directory_iterator at(options_.directory, error), end; !error && at != end;
       at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.ends_with(suffix) || found.size() >= segments_max) continue;
    const std::uint64_t size = at->file_size(error);
    found.push_back({number_in(name), error ? 0 : size});
  }
  if (error)
    return fail(Errc::io, {options_.directory, 0, 0}, "cannot list it: " + error.message(),
                "use a directory that this user can read");
  std::ranges::sort(found, {}, &Segment::number);
  segments_.assign(found.begin(), found.end());
  return {};
}

// Cuts what was not written whole off the newest file, and finds the last mark.
Status Spool::recover() {
  if (segments_.empty()) return begin_segment();
  for (std::size_t i = segments_.size(); i-- > 0 && mark_.empty();) {
    const std::string path = path_of(segments_[i].number);
    WEFT_TRY(const std::string text, read_file(path));
    std::size_t end = 0;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t line_end = text.find('\n', at);
      if (line_end == std::string::npos) break;
      if (text[at] == '#') {
        mark_ = text.substr(at + 1, line_end - at - 1);
        end = line_end + 1;
      }
      at = line_end + 1;
    }
    if (i + 1 == segments_.size() || end == 0) {
      if (::truncate(path.c_str(), static_cast<off_t>(end)) != 0) return io_error(path, "shorten");
      segments_[i].size = end;
    }
  }
  const std::string path = path_of(segments_.back().number);
  newest_ = Fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!newest_.valid()) return io_error(path, "open");
  return {};
}

// Where nobody can tell, all is sent again: those who receive know it by its ids.
void Spool::read_place() {
  const auto text = read_file(options_.directory + "/acknowledged", 1000);
  if (!text) return;
  const std::size_t blank = text->find(' ');
  if (blank == std::string::npos) return;
  const std::uint64_t number = number_in(*text);
  while (segments_.size() > 1 && segments_.front().number < number) {
    ::unlink(path_of(segments_.front().number).c_str());
    segments_.pop_front();
  }
  if (segments_.front().number != number) return;
  offset_ = std::min(number_in(std::string_view(*text).substr(blank + 1)), segments_.front().size);
}

Status Spool::begin_segment() {
  const std::uint64_t number = segments_.empty() ? 1 : segments_.back().number + 1;
  const std::string path = path_of(number);
  Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid()) return io_error(path, "make");
  const Fd directory(::open(options_.directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) != 0)
    return io_error(options_.directory, "sync");
  newest_ = std::move(file);
  segments_.push_back({number, 0});
  return {};
}

std::uint64_t Spool::waiting_bytes() const {
  std::uint64_t out = 0;
  for (const Segment& segment : segments_) out += segment.size;
  return out - offset_;
}

Status Spool::write_all(std::string_view bytes) {
  Segment& segment = segments_.back();
  const std::string path = path_of(segment.number);
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = ::write(newest_.get(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  if (done == bytes.size() && ::fdatasync(newest_.get()) == 0) {
    segment.size += bytes.size();
    return {};
  }
  auto failed = io_error(path, "write");
  // What stands there of it is no whole batch, and must not become one.
  if (::ftruncate(newest_.get(), static_cast<off_t>(segment.size)) != 0)
    failed.error().hint = "and cannot truncate it: stop the agent and check the disk";
  return failed;
}

Status Spool::append(std::span<const std::string> lines, std::string_view mark) {
  std::string bytes;
  for (const std::string& line : lines) {
    WEFT_CHECK(!line.empty() && line.front() != '#' && line.find('\n') == std::string::npos);
    bytes += line;
    bytes += '\n';
  }
  bytes += '#';
  bytes += mark;
  bytes += '\n';
  if (!lines.empty() && waiting_bytes() + bytes.size() > options_.bytes_max)
    return fail(Errc::infeasible, {options_.directory, 0, 0},
                fmt::format("the spool is full: {} not yet acknowledged",
                            human(Bytes{static_cast<std::int64_t>(waiting_bytes())})),
                "check why the service does not accept them");
  if (segments_.back().size >= options_.segment_bytes) WEFT_TRY_STATUS(begin_segment());
  WEFT_TRY_STATUS(write_all(bytes));
  mark_ = mark;
  return {};
}

Result<std::string> Spool::read_at(std::size_t bytes_max) {
  const Segment& segment = segments_.front();
  const std::string path = path_of(segment.number);
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return io_error(path, "open");
  std::string out(std::min<std::uint64_t>(bytes_max, segment.size - offset_), '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t got = ::pread(file.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset_ + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return io_error(path, "read");
    done += static_cast<std::size_t>(got);
  }
  return out;
}

Result<Spool::Batch> Spool::next(std::size_t lines_max, std::size_t bytes_max) {
  Batch out;
  for (;;) {
    WEFT_TRY(const std::string bytes, read_at(bytes_max));
    const Cut some = cut(bytes, lines_max, &out.body);
    out.lines = some.lines;
    if (out.lines > 0) return out;
    if (some.end == 0 && !bytes.empty() && bytes.size() == bytes_max) {
      bytes_max *= 2;  // one line is longer
      continue;
    }
    offset_ += some.end;  // marks only
    if (offset_ < segments_.front().size && some.end > 0) continue;
    // The last mark must stay on disk.
    if (segments_.size() == 1 || segments_[1].size == 0) return out;
    ::unlink(path_of(segments_.front().number).c_str());
    segments_.pop_front();
    offset_ = 0;
  }
}

Status Spool::acknowledge(std::size_t lines) {
  WEFT_TRY(const std::string bytes, read_at(segments_.front().size));
  const Cut done = cut(bytes, lines, nullptr);
  WEFT_CHECK(done.lines == lines);
  offset_ += done.end;
  return write_file(options_.directory + "/acknowledged",
                    fmt::format("{} {}\n", segments_.front().number, offset_));
}

Status Spool::put_aside(std::string_view line) {
  const std::string path = options_.directory + "/refused.jsonl";
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file.valid()) return io_error(path, "open");
  const auto size = static_cast<ssize_t>(line.size());
  if (::write(file.get(), line.data(), line.size()) != size || ::fdatasync(file.get()) != 0)
    return io_error(path, "write");
  return {};
}

}  // namespace weft::adapt::live
