#include "operate/snapshot/retention.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "base/hash.hpp"
#include "os/error.hpp"
#include "os/new_file.hpp"

namespace weft::operate::snapshot {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view extension = ".tar.gz";
constexpr std::size_t case_bytes_max = 120;

std::unexpected<Error> failure(const std::string& path, std::string_view doing, int error) {
  return system_failure(
      doing, error, error == ENOSPC ? "free some space, or reduce the snapshot limit" : "", {path});
}

std::string case_part(std::string_view id) {
  std::string out;
  for (const char c : id) {
    const bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '-' || c == ':';
    out += fine ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  if (out.size() <= case_bytes_max) return out;
  return fmt::format("{}%{:016x}", out.substr(0, case_bytes_max - 17), hash_text(id));
}

struct Held {
  std::string path, case_part;
  std::int64_t taken = 0;
  std::uint64_t bytes = 0;
};

// What a name of ours says; none of any other file.
std::optional<Held> parse_name(std::string_view name) {
  if (!name.ends_with(extension)) return std::nullopt;
  name.remove_suffix(extension.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  Held out{.path = {}, .case_part = std::string(name.substr(0, dot))};
  const std::string_view time = name.substr(dot + 1);
  const auto [end, error] = std::from_chars(time.data(), time.data() + time.size(), out.taken);
  if (error != std::errc() || end != time.data() + time.size()) return std::nullopt;
  return out;
}

Result<std::vector<Held>> held_in(const std::string& directory) {
  std::vector<Held> out;
  std::error_code error;
  if (!fs::exists(directory, error)) return out;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    auto held = parse_name(it->path().filename().native());
    std::error_code unread;
    const std::uint64_t bytes = fs::file_size(it->path(), unread);
    if (!held || unread) continue;
    held->path = it->path().native();
    held->bytes = bytes;
    out.push_back(std::move(*held));
  }
  if (error) return failure(directory, "reading the directory", error.value());
  std::ranges::sort(out, [](const Held& a, const Held& b) {
    return std::tie(a.taken, a.path) < std::tie(b.taken, b.path);
  });
  return out;
}

}  // namespace

std::string snapshot_file_name(std::string_view case_id, Timestamp taken) {
  return fmt::format("{}.{}{}", case_part(case_id), taken.ns, extension);
}

Result<std::vector<std::string>> make_room(const std::string& directory, std::uint64_t bytes,
                                           std::uint64_t bytes_max,
                                           std::span<const std::string> open_cases) {
  WEFT_TRY(const std::vector<Held> all, held_in(directory));
  std::set<std::string> open;
  for (const std::string& id : open_cases) open.insert(case_part(id));
  std::uint64_t used = bytes;
  for (const Held& held : all) used += held.bytes;
  std::vector<std::string> out;
  for (const Held& held : all) {
    if (used <= bytes_max) break;
    if (open.contains(held.case_part)) continue;
    used -= held.bytes;
    out.push_back(held.path);
  }
  if (used > bytes_max)
    return fail(
        Errc::infeasible, {directory, 0, 0},
        fmt::format("snapshots of open cases leave no room for {} bytes in {}", bytes, bytes_max),
        "increase the limit, or close cases");
  for (const std::string& path : out)
    if (unlink(path.c_str()) != 0 && errno != ENOENT) return failure(path, "removing", errno);
  return out;
}

Status write_durable(const std::string& path, std::string_view content) {
  const fs::path target(path);
  const std::string directory = target.has_parent_path() ? target.parent_path().native() : ".";
  std::error_code error;
  if (fs::create_directories(directory, error) && !error)
    fs::permissions(directory, fs::perms::owner_all, error);
  if (error) return failure(directory, "creating the directory", error.value());
  WEFT_TRY(NewFile file, NewFile::create(path));
  WEFT_TRY_STATUS(file.write(content));
  return file.commit();
}

}  // namespace weft::operate::snapshot
