#include "workload/trace/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/file.hpp"
#include "base/file_stream.hpp"
#include "workload/trace/chakra_pytorch.hpp"
#include "workload/trace/goal.hpp"

namespace weft::workload {
namespace {

constexpr std::size_t block_bytes = 64 << 10;

// Fills `out` to `bytes`, or to the end of the file.
Status read_up_to(std::FILE* in, const std::string& path, std::size_t bytes, std::string& out) {
  const std::size_t before = out.size();
  out.resize(bytes);
  out.resize(before + std::fread(out.data() + before, 1, bytes - before, in));
  if (std::ferror(in) != 0) return io_error(path, "read");
  return {};
}

// Appends the rest of a text. Its lines are counted on the way, so that an endless one is refused
// as soon as it is too long.
Status read_lines(std::FILE* in, const std::string& path, std::string& out) {
  std::uint32_t line = 1;
  std::size_t line_start = 0, seen = 0;
  for (;;) {
    for (;;) {
      const std::size_t end = out.find('\n', seen);
      if (std::min(end, out.size()) - line_start > trace_line_bytes_max)
        return fail(Errc::value, {path, line, 1},
                    fmt::format("the line is longer than {} bytes", trace_line_bytes_max),
                    "check that this is the right file");
      if (end == std::string::npos) break;
      line_start = seen = end + 1;
      ++line;
    }
    seen = out.size();
    if (out.size() > trace_bytes_max)
      return fail(Errc::value, {path}, fmt::format("larger than {} bytes", trace_bytes_max),
                  "record fewer steps or ranks");
    const std::size_t before = out.size();
    WEFT_TRY_STATUS(read_up_to(in, path, before + block_bytes, out));
    if (out.size() == before) return {};
  }
}

// Compressed: what the head unpacks to must show a format too.
Status check_packed(const std::string& path, const std::string& head) {
  WEFT_TRY(std::string inside, gunzip_head(head, path, trace_head_bytes));
  TraceFile unpacked{"", std::move(inside)};
  if (format_of(unpacked) == TraceFormat::chakra) return {};
  unpacked.path = path;
  Error error = unknown_format(unpacked);
  error.where = {path};
  error.what = "unpacked: " + error.what;
  error.hint = "only the Chakra format may be compressed (.et.gz, .tgz)";
  return std::unexpected(std::move(error));
}

}  // namespace

Result<TraceFile> load_trace(const std::string& path) {
  WEFT_TRY(const File in, open_file(path));
  TraceFile out{path, ""};
  WEFT_TRY_STATUS(read_up_to(in.get(), path, trace_head_bytes, out.content));
  if (out.content.size() < trace_head_bytes) return out;
  const bool packed = out.content.starts_with("\x1f\x8b");
  if (packed) WEFT_TRY_STATUS(check_packed(path, out.content));
  const TraceFile head{"", out.content};  // without the name, which anybody can give
  const std::optional<TraceFormat> format = format_of(head);
  if (!format) return std::unexpected(unknown_format(out));
  const bool binary = *format == TraceFormat::chakra || is_goal_binary(out.content);
  if (!binary) {
    WEFT_TRY_STATUS(read_lines(in.get(), path, out.content));
    return out;
  }
  const bool json = !packed && is_pytorch_trace(out.content);
  const std::uint64_t limit = json ? trace_json_bytes_max : trace_bytes_max;
  if (const std::uint64_t size = file_size_hint(path); size > limit)
    return fail(Errc::value, {path}, fmt::format("{} bytes, more than {}", size, limit),
                "record fewer steps or ranks");
  out.content.reserve(std::min(file_size_hint(path), limit));
  WEFT_TRY_STATUS(read_rest(in.get(), path, limit, out.content));
  return out;
}

}  // namespace weft::workload
