#include "base/line_reader.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace weft::inline base {
namespace {
constexpr std::size_t block_bytes = 1 << 18;
constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr int corrupt = EBADMSG;  // errno where gzip data cannot be unpacked

ssize_t read_unpacked(void* from, char* out, std::size_t bytes) {
  gzFile const in = static_cast<gzFile>(from);
  const int got = gzread(in, out, static_cast<unsigned>(std::min<std::size_t>(bytes, 1u << 30)));
  int error = Z_OK;
  if (got <= 0) gzerror(in, &error);
  if (error == Z_OK) return got;
  if (error != Z_ERRNO) errno = corrupt;
  return -1;
}

// What is left of a file: unpacked where it is gzip, else as it is.
Result<File> unpacked(const File& packed, const std::string& name) {
  gzFile const in = gzdopen(dup(fileno(packed.get())), "rb");
  if (in == nullptr) return io_error(name, "open");
  File out(fopencookie(
      in, "rb", {.read = read_unpacked, .write = nullptr, .seek = nullptr, .close = [](void* of) {
                   return gzclose(static_cast<gzFile>(of));
                 }}));
  if (out) return out;
  gzclose(in);
  return io_error(name, "open");
}
}  // namespace

LineReader::LineReader(std::string_view text, std::string file)
    : file_(std::move(file)), size_hint_(text.size()), ahead_(text) {}

LineReader::LineReader(File stream, std::string file, std::uint64_t size_hint)
    : stream_(std::move(stream)), file_(std::move(file)), size_hint_(size_hint) {
  block_.resize(block_bytes);
}

Result<LineReader> LineReader::open(const std::string& path) {
  const bool is_input = path == "-";
  const std::string name = is_input ? "<stdin>" : path;
  WEFT_TRY(const File packed, is_input ? Result<File>(File(stdin)) : open_file(path));
  WEFT_TRY(File stream, unpacked(packed, name));
  return LineReader(std::move(stream), name, is_input ? 0 : file_size_hint(path));
}

bool LineReader::refuse(Error error) {
  failed_ = true;
  error_ = std::move(error);
  return false;
}

// Reads as much as the block has room for. False when nothing came.
bool LineReader::fill() {
  if (stream_ == nullptr || failed_) return false;
  if (!ahead_.empty()) std::memmove(block_.data(), ahead_.data(), ahead_.size());
  const std::size_t kept = ahead_.size();
  const std::size_t got = std::fread(block_.data() + kept, 1, block_.size() - kept, stream_.get());
  ahead_ = {block_.data(), kept + got};
  if (std::ferror(stream_.get()) != 0) {
    if (errno != corrupt) return refuse(io_error(file_, "read").error());
    return refuse(
        {Errc::parse, where(), "gzip data is corrupt or truncated", "compress it again", {}});
  }
  return got > 0;
}

std::string_view LineReader::peek() {
  line_ = {};
  while (ahead_.size() < block_.size() && fill()) {
  }
  return ahead_;
}

bool LineReader::next() {
  line_ = {};
  if (failed_) return false;
  std::size_t end = ahead_.find('\n');
  if (end == std::string_view::npos) {
    while (ahead_.size() <= line_bytes_max && fill()) {
    }
    if (failed_ || ahead_.empty()) return false;
    end = ahead_.find('\n');
  }
  ++line_number_;
  if (line_number_ == 1 && ahead_.starts_with(byte_order_mark)) {
    ahead_.remove_prefix(byte_order_mark.size());
    end -= end == std::string_view::npos ? 0 : byte_order_mark.size();
  }
  const bool has_end = end != std::string_view::npos;
  line_ = ahead_.substr(0, end);
  ahead_.remove_prefix(std::min(line_.size() + 1, ahead_.size()));
  if (line_.ends_with('\r')) line_.remove_suffix(1);
  if (line_.size() <= line_bytes_max) return true;
  line_ = {};
  long_ = has_end ? Long::whole : Long::begun;
  return refuse({Errc::parse,
                 where(),
                 fmt::format("the line is longer than {} bytes", line_bytes_max),
                 "check that this is the right file",
                 {}});
}

bool LineReader::pass_over() {
  if (long_ == Long::no) return false;
  failed_ = false;
  while (long_ == Long::begun) {
    const std::size_t end = ahead_.find('\n');
    const bool has_end = end != std::string_view::npos;
    ahead_.remove_prefix(has_end ? end + 1 : ahead_.size());
    if (has_end || !fill()) long_ = Long::whole;
  }
  long_ = Long::no;
  return !failed_;
}

Result<std::string> LineReader::rest(std::uint64_t limit) {
  line_ = {};
  std::string out;
  out.reserve(std::min(std::max<std::uint64_t>(size_hint_, ahead_.size()), limit));
  out = ahead_;
  ahead_ = {};
  if (failed_) return std::unexpected(error_);
  if (stream_ != nullptr) WEFT_TRY_STATUS(read_rest(stream_.get(), file_, limit, out));
  return out;
}

}  // namespace weft::base
