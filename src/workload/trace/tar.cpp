#include "workload/trace/tar.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace weft::workload {
namespace {

constexpr std::size_t block = 512;
constexpr std::size_t members_max = 1'000'000;

// Fields of a header block: offset and length (POSIX.1-2017, pax, "ustar Interchange Format").
constexpr std::size_t name_at = 0, name_length = 100;
constexpr std::size_t size_at = 124, size_length = 12;
constexpr std::size_t checksum_at = 148, checksum_length = 8;
constexpr std::size_t type_at = 156;
constexpr std::size_t magic_at = 257;
constexpr std::size_t prefix_at = 345, prefix_length = 155;

std::string_view c_text(std::string_view header, std::size_t at, std::size_t length) {
  const std::string_view field = header.substr(at, length);
  return field.substr(0, field.find('\0'));
}

// Octal digits between blanks; GNU tar sets the top bit and writes big-endian bytes instead.
std::optional<std::uint64_t> number(std::string_view field) {
  if ((static_cast<unsigned char>(field[0]) & 0x80) != 0) {
    std::uint64_t value = 0;
    for (const char c : field.substr(field.size() - 8))
      value = value << 8 | static_cast<unsigned char>(c);
    return value;
  }
  while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
  std::uint64_t value = 0;
  for (const char c : field) {
    if (c == ' ' || c == '\0') break;
    if (c < '0' || c > '7') return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

std::uint64_t checksum(std::string_view header) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block; ++i) {
    const bool own = i >= checksum_at && i < checksum_at + checksum_length;
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
  const std::string_view prefix = c_text(header, prefix_at, prefix_length);
  const std::string name(c_text(header, name_at, name_length));
  // In GNU's own variant ("ustar  ") the bytes of the prefix mean something else.
  const bool posix = header.substr(magic_at, 6) == std::string_view("ustar\0", 6);
  return posix && !prefix.empty() ? std::string(prefix) + "/" + name : name;
}

}  // namespace

bool is_tar(std::string_view content) {
  return content.size() >= block && content.substr(magic_at, 5) == "ustar";
}

Result<std::vector<TarMember>> read_tar(std::string_view content, const std::string& file) {
  const auto broken = [&](std::size_t at, std::string_view what) {
    return fail(Errc::parse, {file}, fmt::format("byte {} of the archive: {}", at, what),
                "check that the file was copied whole");
  };
  std::vector<TarMember> members;
  std::optional<std::string> long_name;
  std::size_t at = 0;
  for (; at + block <= content.size();) {
    const std::string_view header = content.substr(at, block);
    if (std::ranges::all_of(header, [](char c) { return c == '\0'; })) return members;
    const auto sum = number(header.substr(checksum_at, checksum_length));
    if (!sum || *sum != checksum(header)) return broken(at, "a header with a wrong checksum");
    const auto size = number(header.substr(size_at, size_length));
    if (!size) return broken(at + size_at, "a size that is not an octal number");
    if (*size > content.size() - at - block)
      return broken(at + size_at, fmt::format("a member of {} bytes, past the end", *size));
    const std::string_view body = content.substr(at + block, *size);
    const char type = header[type_at];
    if (type == 'x') {
      if (auto path = pax_path(body)) long_name = std::move(path);
    } else if (type == 'L') {
      long_name = std::string(body.substr(0, body.find('\0')));
    } else {
      if (type == '0' || type == '\0' || type == '7')
        members.push_back({long_name ? *long_name : path_of(header), body});
      if (type != 'g') long_name.reset();
    }
    if (members.size() > members_max) return broken(at, "more than a million members");
    at += block + (*size + block - 1) / block * block;
  }
  return broken(content.size(), "the archive ends without its closing blocks");
}

}  // namespace weft::workload
