#include "os/tar.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>

#include "os/digest.hpp"
#include "os/error.hpp"

namespace weft {
inline namespace os {
namespace {

constexpr std::size_t block_bytes = 512;
constexpr std::size_t members_max = 1'000'000;
constexpr std::size_t name_bytes_max = 99;
constexpr std::uint64_t content_bytes_max = std::uint64_t{8} << 30;

// Fields of a header block (POSIX.1-2017, pax, "ustar Interchange Format").
struct Field {
  std::size_t at, size;
};
constexpr Field name_field{0, 100}, mode_field{100, 8}, uid_field{108, 8}, gid_field{116, 8},
    size_field{124, 12}, time_field{136, 12}, sum_field{148, 8}, type_field{156, 1},
    magic_field{257, 8}, prefix_field{345, 155};
constexpr std::string_view magic("ustar\00000", 8);

std::string_view bytes_of(std::string_view header, Field field) {
  return header.substr(field.at, field.size);
}

std::string_view text_of(std::string_view header, Field field) {
  const std::string_view bytes = bytes_of(header, field);
  return bytes.substr(0, bytes.find('\0'));
}

// Octal digits between blanks; GNU tar sets the top bit and writes big-endian bytes instead.
std::optional<std::uint64_t> number_of(std::string_view header, Field field) {
  std::string_view bytes = bytes_of(header, field);
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(bytes[0]) & 0x80) != 0) {
    for (const char c : bytes.substr(bytes.size() - 8))
      value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  while (!bytes.empty() && bytes.front() == ' ') bytes.remove_prefix(1);
  for (const char c : bytes) {
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// The sum of all bytes, the field of the sum taken as blanks.
std::uint64_t checksum(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block_bytes; ++i) {
    const bool own = i >= sum_field.at && i < sum_field.at + sum_field.size;
    sum += own ? ' ' : static_cast<unsigned char>(header[i]);
  }
  return sum;
}

// The value of "path" in a pax header: lines "LENGTH KEY=VALUE\n", LENGTH counting the whole line.
std::optional<std::string> pax_path(std::string_view records) {
  std::optional<std::string> path;
  while (!records.empty()) {
    const std::size_t blank = records.find(' ');
    if (blank == std::string_view::npos || blank > 9) break;
    std::size_t length = 0;
    for (const char c : records.substr(0, blank)) {
      if (c < '0' || c > '9') return path;
      length = length * 10 + static_cast<std::size_t>(c - '0');
    }
    if (length <= blank + 1 || length > records.size()) break;
    const std::string_view record = records.substr(blank + 1, length - blank - 2);
    if (record.starts_with("path=")) path = record.substr(5);
    records.remove_prefix(length);
  }
  return path;
}

std::string path_of(std::string_view header) {
  const std::string_view prefix = text_of(header, prefix_field);
  const std::string name(text_of(header, name_field));
  // In GNU's own variant ("ustar  ") the bytes of the prefix mean something else.
  const bool posix = bytes_of(header, magic_field).starts_with(std::string_view("ustar\0", 6));
  return posix && !prefix.empty() ? std::string(prefix) + "/" + name : name;
}

bool is_regular(char type) { return type == '0' || type == '\0' || type == '7'; }

std::unexpected<Error> broken(const std::string& file, std::size_t at, std::string_view what) {
  return fail(Errc::parse, {file}, fmt::format("byte {} of the archive: {}", at, what),
              "check that the file was copied completely");
}

// Calls entry(header, body, byte offset) for each entry, whatever its type.
using Entry = std::function<Status(std::string_view, std::string_view, std::size_t)>;
Status each_entry(std::string_view content, const std::string& file, const Entry& entry) {
  std::size_t at = 0;
  while (at + block_bytes <= content.size()) {
    const std::string_view header = content.substr(at, block_bytes);
    if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) return {};
    const auto sum = number_of(header, sum_field);
    if (!sum || *sum != checksum(header)) return broken(file, at, "header with a wrong checksum");
    const auto size = number_of(header, size_field);
    if (!size) return broken(file, at + size_field.at, "size that is not an octal number");
    if (*size > content.size() - at - block_bytes)
      return broken(file, at + size_field.at,
                    fmt::format("member of {} bytes extends past the end", *size));
    WEFT_TRY_STATUS(entry(header, content.substr(at + block_bytes, *size), at));
    at += block_bytes + (*size + block_bytes - 1) / block_bytes * block_bytes;
  }
  return broken(file, content.size(), "the archive ends without its closing blocks");
}

bool is_plain_name(std::string_view name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/';
  };
  return !name.empty() && name.size() <= name_bytes_max && std::ranges::all_of(name, fine) &&
         !name.starts_with('/') && !name.ends_with('/') &&
         name.find("..") == std::string_view::npos;
}

void put(std::string& block, Field field, std::string_view text) {
  block.replace(field.at, text.size(), text);
}

void put_octal(std::string& block, Field field, std::uint64_t value) {
  put(block, field, fmt::format("{:0{}o}", value, field.size - 1));
}

// Larger ones than octal digits hold, as GNU tar writes them.
void put_size(std::string& block, std::uint64_t bytes) {
  if (bytes < content_bytes_max) return put_octal(block, size_field, bytes);
  block[size_field.at] = '\x80';
  for (std::size_t i = 0; i < 8; ++i)
    block[size_field.at + size_field.size - 1 - i] = static_cast<char>(bytes >> 8 * i & 0xff);
}

std::string header_of(std::string_view name, std::uint64_t bytes, Timestamp modified) {
  std::string block(block_bytes, '\0');
  put(block, name_field, name);
  put_octal(block, mode_field, 0600);
  put_octal(block, uid_field, 0);
  put_octal(block, gid_field, 0);
  put_size(block, bytes);
  put_octal(block, time_field,
            static_cast<std::uint64_t>(std::max<std::int64_t>(modified.ns / ns_per_s, 0)));
  put(block, type_field, "0");
  put(block, magic_field, magic);
  put(block, sum_field, fmt::format("{:06o}", checksum(block)) + std::string("\0 ", 2));
  return block;
}

constexpr std::uint64_t max_seconds = timestamp_ns_max / ns_per_s;
constexpr std::size_t piece_bytes = std::size_t{1} << 20;

constexpr std::uint64_t padding_of(std::uint64_t bytes) {
  return (block_bytes - bytes % block_bytes) % block_bytes;
}

// Reads until `piece` is full or the file ends; how many bytes.
Result<std::size_t> read_piece(const Fd& file, const std::string& path, std::string& piece) {
  std::size_t got = 0;
  while (got < piece.size()) {
    const ssize_t size = ::read(file.get(), piece.data() + got, piece.size() - got);
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return system_failure("reading", errno, "", {path});
    if (size == 0) break;
    got += static_cast<std::size_t>(size);
  }
  return got;
}

}  // namespace

bool is_tar(std::string_view content) {
  return content.size() >= block_bytes && bytes_of(content, magic_field).starts_with("ustar");
}

Result<std::vector<TarMember>> read_tar(std::string_view content, const std::string& file) {
  std::vector<TarMember> members;
  std::optional<std::string> long_name;
  WEFT_TRY_STATUS(each_entry(
      content, file, [&](std::string_view header, std::string_view body, std::size_t at) -> Status {
        const char type = header[type_field.at];
        if (type == 'x') {
          if (auto path = pax_path(body)) long_name = std::move(path);
        } else if (type == 'L') {
          long_name = std::string(body.substr(0, body.find('\0')));
        } else if (type != 'g') {
          if (is_regular(type)) members.push_back({long_name ? *long_name : path_of(header), body});
          long_name.reset();
        }
        if (members.size() > members_max) return broken(file, at, "more than a million members");
        return {};
      }));
  return members;
}

Result<std::string> write_tar(const std::vector<ArchiveFile>& files, Timestamp modified) {
  std::set<std::string_view> names;
  std::string out;
  for (const ArchiveFile& file : files) {
    if (!is_plain_name(file.name) || !names.insert(file.name).second ||
        file.content.size() >= content_bytes_max)
      return fail(Errc::value, {}, fmt::format("\"{}\" cannot be archived", file.name),
                  "names must be unique and short, with only letters, digits and ._-/");
    out += header_of(file.name, file.content.size(), modified);
    out += file.content;
    out.resize((out.size() + block_bytes - 1) / block_bytes * block_bytes, '\0');
  }
  out.append(2 * block_bytes, '\0');
  return out;
}

Result<std::vector<ArchiveFile>> read_plain_tar(std::string_view content, const std::string& file) {
  std::vector<ArchiveFile> out;
  std::set<std::string, std::less<>> names;
  WEFT_TRY_STATUS(each_entry(
      content, file, [&](std::string_view header, std::string_view body, std::size_t at) -> Status {
        const std::string_view name = text_of(header, name_field);
        const char type = header[type_field.at];
        if (!is_tar(header) || !is_plain_name(name) || (type != '0' && type != '\0'))
          return broken(file, at, "an entry that is not a plain file with a plain name");
        if (!names.emplace(name).second)
          return broken(file, at, fmt::format("duplicate file {} in the archive", name));
        out.push_back({std::string(name), std::string(body)});
        return {};
      }));
  return out;
}

Result<TarWriter> TarWriter::create(const std::string& path, Timestamp modified) {
  WEFT_TRY(NewFile file, NewFile::create(path));
  return TarWriter(std::move(file), modified);
}

Status TarWriter::begin_member(const std::string& name, std::uint64_t bytes) {
  if (!is_plain_name(name) || !names_.insert(name).second)
    return fail(Errc::value, {}, fmt::format("\"{}\" cannot be archived", name));
  return file_.write(header_of(name, bytes, modified_));
}

Status TarWriter::end_member(std::uint64_t bytes) {
  return file_.write(std::string(padding_of(bytes), '\0'));
}

Result<TarWriter::Added> TarWriter::add(const std::string& name, std::string_view content) {
  WEFT_TRY_STATUS(begin_member(name, content.size()));
  WEFT_TRY_STATUS(file_.write(content));
  WEFT_TRY_STATUS(end_member(content.size()));
  return Added{content.size(), sha256_hex(content)};
}

Result<TarWriter::Added> TarWriter::add_file(const std::string& name, const Fd& file,
                                             const std::string& from) {
  struct stat about{};
  if (::fstat(file.get(), &about) != 0) return system_failure("reading", errno, "", {from});
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  WEFT_TRY_STATUS(begin_member(name, bytes));
  Sha256 digest;
  for (std::uint64_t left = bytes; left > 0;) {
    std::string piece(std::min<std::uint64_t>(left, piece_bytes), '\0');
    WEFT_TRY(const std::size_t got, read_piece(file, from, piece));
    if (got < piece.size())
      return fail(Errc::io, {from}, "became shorter while it was read", "try again");
    digest.add(piece);
    WEFT_TRY_STATUS(file_.write(piece));
    left -= got;
  }
  WEFT_TRY_STATUS(end_member(bytes));
  return Added{bytes, digest.hex()};
}

Status TarWriter::finish() {
  WEFT_TRY_STATUS(file_.write(std::string(2 * block_bytes, '\0')));
  return file_.commit();
}

Result<TarReader> TarReader::open(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return system_failure("opening", errno, "check the path", {path});
  return TarReader(std::move(file), path);
}

Result<std::string> TarReader::read(std::size_t bytes) {
  std::string out(bytes, '\0');
  WEFT_TRY(const std::size_t got, read_piece(file_, path_, out));
  if (got < bytes)
    return broken(path_, at_ + got, "the file ends before its archive does: it was cut");
  at_ += got;
  return out;
}

Result<std::optional<TarReader::Member>> TarReader::next() {
  const std::uint64_t begin = at_;
  WEFT_TRY(const std::string header, read(block_bytes));
  if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) {
    WEFT_TRY_STATUS(end_of_archive());
    return std::nullopt;
  }
  const auto size = number_of(header, size_field);
  const auto time = number_of(header, time_field);
  const std::string name(text_of(header, name_field));
  // Any other byte than those that we would have written is a fault, whatever it means to others.
  if (!size || !time || !is_plain_name(name) || *time > max_seconds ||
      header != header_of(name, *size, {static_cast<std::int64_t>(*time) * ns_per_s}))
    return broken(path_, begin, "not the header of a file as weft writes it");
  left_ = *size;
  padding_ = padding_of(*size);
  return Member{name, *size};
}

Status TarReader::end_of_archive() {
  WEFT_TRY(const std::string second, read(block_bytes));
  std::string more(1, '\0');
  WEFT_TRY(const std::size_t got, read_piece(file_, path_, more));
  if (got > 0 || second.find_first_not_of('\0') != std::string::npos)
    return broken(path_, at_, "bytes after the end of the archive");
  return {};
}

Status TarReader::content(const Take& take) {
  while (left_ > 0) {
    WEFT_TRY(const std::string piece, read(std::min<std::uint64_t>(left_, piece_bytes)));
    left_ -= piece.size();
    WEFT_TRY_STATUS(take(piece));
  }
  WEFT_TRY(const std::string zeros, read(std::exchange(padding_, 0)));
  if (zeros.find_first_not_of('\0') != std::string::npos)
    return broken(path_, at_, "bytes other than zero behind a file");
  return {};
}

}  // namespace os
}  // namespace weft
