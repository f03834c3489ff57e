#include "operate/snapshot/tar.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <set>

#include "base/check.hpp"

namespace weft::operate::snapshot {
namespace {

constexpr std::size_t block_bytes = 512;
constexpr std::size_t name_bytes_max = 99;
constexpr std::uint64_t content_bytes_max = std::uint64_t{8} << 30;

// Fields of a header block: where they begin and how long they are.
struct Field {
  std::size_t at, size;
};
constexpr Field name_field{0, 100}, mode_field{100, 8}, uid_field{108, 8}, gid_field{116, 8},
    size_field{124, 12}, time_field{136, 12}, sum_field{148, 8}, kind_field{156, 1},
    magic_field{257, 8};
constexpr std::string_view magic("ustar\00000", 8);

bool is_name(std::string_view name) {
  const auto fine = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-' || c == '/';
  };
  return !name.empty() && name.size() <= name_bytes_max && std::ranges::all_of(name, fine) &&
         !name.starts_with('/') && !name.ends_with('/') &&
         name.find("..") == std::string_view::npos;
}

void put(std::string& block, Field field, std::string_view text) {
  block.replace(field.at, std::min(text.size(), field.size),
                text.substr(0, std::min(text.size(), field.size)));
}

void put_octal(std::string& block, Field field, std::uint64_t value) {
  put(block, field, fmt::format("{:0{}o}", value, field.size - 1));
}

// The sum of all bytes, the field of the sum taken as blanks.
std::uint64_t sum_of(std::string_view block) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < block_bytes; ++i) {
    const bool own = i >= sum_field.at && i < sum_field.at + sum_field.size;
    sum += own ? std::uint64_t{' '} : static_cast<unsigned char>(block[i]);
  }
  return sum;
}

std::string header(const ArchiveFile& file, Timestamp modified) {
  std::string block(block_bytes, '\0');
  put(block, name_field, file.name);
  put_octal(block, mode_field, 0600);
  put_octal(block, uid_field, 0);
  put_octal(block, gid_field, 0);
  put_octal(block, size_field, file.content.size());
  put_octal(block, time_field,
            static_cast<std::uint64_t>(std::max<std::int64_t>(modified.ns / ns_per_s, 0)));
  put(block, kind_field, "0");
  put(block, magic_field, magic);
  put(block, sum_field, fmt::format("{:06o}", sum_of(block)) + std::string("\0 ", 2));
  return block;
}

std::string_view get(std::string_view block, Field field) {
  const std::string_view text = block.substr(field.at, field.size);
  return text.substr(0, text.find('\0'));
}

Result<std::uint64_t> get_octal(std::string_view block, Field field, const Where& where) {
  std::string_view text = get(block, field);
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  std::uint64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, 8);
  if (error == std::errc() && end == text.data() + text.size() && !text.empty()) return out;
  return fail(Errc::parse, where, "a number in the header of an archived file is broken");
}

Result<ArchiveFile> read_one(std::string_view& bytes, const Where& where) {
  const std::string_view block = bytes.substr(0, block_bytes);
  WEFT_TRY(const std::uint64_t sum, get_octal(block, sum_field, where));
  if (sum != sum_of(block) || get(block, magic_field) != magic.substr(0, 5))
    return fail(Errc::parse, where, "the header of an archived file is damaged");
  ArchiveFile out{.name = std::string(get(block, name_field)), .content = {}};
  if (!is_name(out.name) || (block[kind_field.at] != '0' && block[kind_field.at] != '\0'))
    return fail(Errc::parse, where, "the archive holds what is no plain file of a plain name");
  WEFT_TRY(const std::uint64_t size, get_octal(block, size_field, where));
  bytes.remove_prefix(block_bytes);
  if (size > bytes.size())
    return fail(Errc::parse, where, fmt::format("the archive ends within {}", out.name));
  out.content = std::string(bytes.substr(0, size));
  bytes.remove_prefix(
      std::min<std::uint64_t>((size + block_bytes - 1) / block_bytes * block_bytes, bytes.size()));
  return out;
}

}  // namespace

Result<std::string> write_tar(const std::vector<ArchiveFile>& files, Timestamp modified) {
  std::set<std::string_view> names;
  std::string out;
  for (const ArchiveFile& file : files) {
    if (!is_name(file.name) || !names.insert(file.name).second ||
        file.content.size() >= content_bytes_max)
      return fail(Errc::value, {}, fmt::format("\"{}\" is no file for an archive", file.name),
                  "names are unique, short, of letters, digits and ._-/");
    out += header(file, modified);
    out += file.content;
    out.resize((out.size() + block_bytes - 1) / block_bytes * block_bytes, '\0');
  }
  out.append(2 * block_bytes, '\0');
  return out;
}

Result<std::vector<ArchiveFile>> read_tar(std::string_view bytes, const std::string& file) {
  const Where where{file, 0, 0};
  std::vector<ArchiveFile> out;
  std::set<std::string> names;
  while (bytes.size() >= block_bytes) {
    if (std::ranges::all_of(bytes.substr(0, block_bytes), [](char c) { return c == '\0'; }))
      return out;
    WEFT_TRY(ArchiveFile one, read_one(bytes, where));
    if (!names.insert(one.name).second)
      return fail(Errc::parse, where, fmt::format("{} is in the archive twice", one.name));
    out.push_back(std::move(one));
  }
  return fail(Errc::parse, where, "the archive has no end", "check that it was copied whole");
}

std::string sha256_hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  WEFT_CHECK(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) ==
             1);
  std::string out;
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

std::string file_name_of(std::string_view text) {
  constexpr std::size_t part_bytes_max = 40;
  std::string out;
  for (const char c : text.substr(0, part_bytes_max)) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || (c == '.' && !out.ends_with('.'));
    out += fine ? c : '-';
  }
  return out.empty() ? "-" : out;
}

}  // namespace weft::operate::snapshot
