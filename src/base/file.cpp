#include "base/file.hpp"

#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/file_stream.hpp"

namespace weft::inline base {
namespace {

const char* io_hint(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return "check the path";
    case EACCES:
    case EPERM:
      return "check its permissions";
    case ENOSPC:
    case EDQUOT:
      return "free some disk space";
    default:
      return "check the path, its permissions and the free disk space";
  }
}

// Messages name `shown`, the path that the user gave.
Status write_plain(const std::string& path, const std::string& shown, std::string_view content) {
  File out(std::fopen(path.c_str(), "wb"));
  if (!out) return io_error(shown, "create");
  if (std::fwrite(content.data(), 1, content.size(), out.get()) != content.size())
    return io_error(shown, "write");
  if (std::fclose(out.release()) != 0) return io_error(shown, "write");
  return {};
}

// Gives zlib, which counts in 32 bits, the next piece of `content`.
void feed(z_stream& z, std::string_view& content) {
  const std::size_t take = std::min<std::size_t>(content.size(), 1u << 30);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  z.avail_in = static_cast<uInt>(take);
  content.remove_prefix(take);
}

}  // namespace

std::unexpected<Error> io_error(const std::string& path, std::string_view doing) {
  const int error = errno;
  return fail(Errc::io, {path, 0, 0}, fmt::format("cannot {}: {}", doing, std::strerror(error)),
              io_hint(error));
}

Result<File> open_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    return fail(Errc::io, {path, 0, 0}, "is a directory", "specify a file");
  File in(std::fopen(path.c_str(), "rb"));
  if (!in) return io_error(path, "open");
  return in;
}

std::uint64_t file_size_hint(const std::string& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

Status read_rest(std::FILE* in, const std::string& path, std::uint64_t limit, std::string& out) {
  std::string chunk(1 << 16, '\0');
  for (std::size_t got = 0; (got = std::fread(chunk.data(), 1, chunk.size(), in)) > 0;) {
    out.append(chunk, 0, got);
    if (out.size() > limit)
      return fail(Errc::io, {path, 0, 0}, fmt::format("larger than {} bytes", limit),
                  "split the input or pass a smaller file");
  }
  if (std::ferror(in) != 0) return io_error(path, "read");
  return {};
}

Result<std::string> read_file(const std::string& path, std::uint64_t limit) {
  std::string out;
  if (path == "-") {
    WEFT_TRY_STATUS(read_rest(stdin, "<stdin>", limit, out));
    return out;
  }
  WEFT_TRY(const File in, open_file(path));
  out.reserve(std::min(file_size_hint(path), limit));
  WEFT_TRY_STATUS(read_rest(in.get(), path, limit, out));
  return out;
}

Status write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size() ||
        std::fflush(stdout) != 0)
      return io_error("<stdout>", "write");
    return {};
  }
  std::error_code error;
  const std::filesystem::file_status old = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(old))
    return fail(Errc::io, {path, 0, 0}, "is a directory", "specify a file");
  if (std::filesystem::is_other(old)) return write_plain(path, path, content);
  std::filesystem::path target = path;
  if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, error)) &&
      std::filesystem::exists(old))
    target = std::filesystem::canonical(path, error);
  if (target.has_parent_path() && !std::filesystem::is_directory(target.parent_path(), error)) {
    std::filesystem::create_directories(target.parent_path(), error);
    if (error)
      return fail(Errc::io, {path, 0, 0},
                  fmt::format("cannot create the directory: {}", error.message()),
                  io_hint(error.value()));
  }
  const std::string temporary = fmt::format("{}.tmp.{}", target.native(), ::getpid());
  Status done = write_plain(temporary, path, content);
  if (done) {
    std::filesystem::rename(temporary, target, error);
    if (error)
      done = fail(Errc::io, {path, 0, 0}, "cannot replace: " + error.message(),
                  io_hint(error.value()));
  }
  if (!done) std::filesystem::remove(temporary, error);
  return done;
}

Result<std::string> gzip(std::string_view content) {
  z_stream z{};
  constexpr int gzip_window = 15 + 16;
  if (deflateInit2(&z, 6, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail(Errc::io, {}, "zlib cannot be initialized", "free some memory");
  std::string out;
  std::string chunk(1 << 16, '\0');
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    if (z.avail_in == 0 && !content.empty()) feed(z, content);
    z.next_out = reinterpret_cast<Bytef*>(chunk.data());
    z.avail_out = static_cast<uInt>(chunk.size());
    code = deflate(&z, content.empty() ? Z_FINISH : Z_NO_FLUSH);
    out.append(chunk, 0, chunk.size() - z.avail_out);
  }
  deflateEnd(&z);
  return out;
}

namespace {

// How an inflation ends: at the end of the content, or where the taker has enough.
enum class Inflated : std::uint8_t { all, enough, truncated };

// Unpacks member after member and hands the blocks to take(std::string_view), until that is false.
template <class Take>
Result<Inflated> inflate_blocks(std::string_view content, const std::string& file, Take take) {
  std::uint64_t count = 0;
  std::string chunk(1 << 16, '\0');
  if (content.empty()) return Inflated::truncated;
  while (!content.empty()) {
    z_stream z{};
    constexpr int gzip_window = 15 + 16;
    if (inflateInit2(&z, gzip_window) != Z_OK)
      return fail(Errc::io, {}, "zlib cannot be initialized", "free some memory");
    const std::unique_ptr<z_stream, int (*)(z_streamp)> guard(&z, inflateEnd);
    int code = Z_OK;
    while (code != Z_STREAM_END) {
      if (z.avail_in == 0) {
        if (content.empty()) return Inflated::truncated;
        feed(z, content);
      }
      z.next_out = reinterpret_cast<Bytef*>(chunk.data());
      z.avail_out = static_cast<uInt>(chunk.size());
      code = inflate(&z, Z_NO_FLUSH);
      const std::size_t got = chunk.size() - z.avail_out;
      if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
        return fail(Errc::parse, {file, 0, 0},
                    fmt::format("gzip data is corrupt after {} bytes of output", count),
                    "check that the file was copied completely");
      count += got;
      if (!take(std::string_view(chunk.data(), got))) return Inflated::enough;
    }
    // What the last read left over is the next member.
    content = {content.data() - z.avail_in, content.size() + z.avail_in};
  }
  return Inflated::all;
}

std::unexpected<Error> truncated(const std::string& file, std::uint64_t bytes) {
  return fail(Errc::parse, {file, 0, 0},
              fmt::format("gzip data is truncated after {} bytes of output", bytes),
              "check that the file was copied completely");
}

}  // namespace

Result<std::string> gunzip(std::string_view content, const std::string& file, std::uint64_t limit) {
  std::string out;
  WEFT_TRY(const Inflated end, inflate_blocks(content, file, [&](std::string_view block) {
             out += block;
             return out.size() <= limit;
           }));
  if (end == Inflated::truncated) return truncated(file, out.size());
  if (end == Inflated::all) return out;
  return fail(Errc::parse, {file, 0, 0}, fmt::format("unpacks to more than {} bytes", limit),
              "split the input");
}

Result<std::uint64_t> gunzip_size(std::string_view content, const std::string& file,
                                  std::uint64_t limit) {
  std::uint64_t bytes = 0;
  WEFT_TRY(const Inflated end, inflate_blocks(content, file, [&](std::string_view block) {
             bytes += block.size();
             return bytes <= limit;
           }));
  if (end == Inflated::truncated) return truncated(file, bytes);
  return end == Inflated::all ? bytes : limit + 1;
}

Result<std::string> gunzip_head(std::string_view content, const std::string& file,
                                std::size_t bytes) {
  std::string out;
  WEFT_TRY_STATUS(inflate_blocks(content, file, [&](std::string_view block) {
    out += block.substr(0, bytes - out.size());
    return out.size() < bytes;
  }));
  return out;
}

}  // namespace weft::base
