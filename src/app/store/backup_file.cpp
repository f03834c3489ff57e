#include "app/store/backup_file.hpp"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "os/digest.hpp"
#include "os/new_file.hpp"
#include "os/tar.hpp"

namespace weft::app {
namespace {

constexpr std::uint64_t text_bytes_max = std::uint64_t{256} << 20;  // of manifest and checksums

struct Found {
  std::uint64_t bytes = 0;
  std::string sha256;
};

std::unexpected<Error> changed(const std::string& path, std::string what) {
  return fail(Errc::parse, {path}, std::move(what),
              "this is not what weft store backup wrote: take an earlier backup");
}

Result<std::string> text_of(TarReader& reader, const TarReader::Member& member,
                            const std::string& path) {
  if (member.bytes > text_bytes_max)
    return changed(path, fmt::format("{} is larger than weft writes it", member.name));
  std::string out;
  WEFT_TRY_STATUS(reader.content([&](std::string_view piece) -> Status {
    out += piece;
    return {};
  }));
  return out;
}

// A name that cannot lead out of a directory.
bool is_file_name(std::string_view name) {
  return name.ends_with(".tar.gz") && name.find('/') == name.npos && name.find('\0') == name.npos &&
         !name.starts_with('.') && name.size() <= 255;
}

Result<BackupManifest> read_manifest(const std::string& text, const std::string& path) {
  WEFT_TRY(BackupManifest out,
           read_fields<BackupManifest>(text, {fmt::format("{} of {}", manifest_member, path)}));
  if (out.format != backup_format)
    return changed(path, fmt::format("its format is {}, not {}", quote(out.format), backup_format));
  if (out.version > backup_version)
    return fail(Errc::unsupported, {path},
                fmt::format("written by weft {}, whose backups this weft cannot read", out.weft),
                "use that version");
  for (const BackupSnapshot& one : out.snapshots)
    if (!is_file_name(one.name))
      return changed(path, fmt::format("{} is not the name of a snapshot", quote(one.name)));
  return out;
}

// Every member that the manifest has, and no other.
Status compare(const BackupManifest& manifest, std::map<std::string, Found> found,
               const std::string& path) {
  const auto is_there = [&](const std::string& member, std::uint64_t bytes,
                            const std::string& sha256) -> Status {
    const auto at = found.find(member);
    if (at == found.end()) return changed(path, fmt::format("{} is missing in it", member));
    if (at->second.bytes != bytes || at->second.sha256 != sha256)
      return changed(path, fmt::format("{} is not the one of its manifest", member));
    found.erase(at);
    return {};
  };
  WEFT_TRY_STATUS(is_there(std::string(store_member), manifest.bytes, manifest.sha256));
  for (const BackupSnapshot& one : manifest.snapshots)
    WEFT_TRY_STATUS(is_there(one.file, one.bytes, one.sha256));
  if (!found.empty()) return changed(path, fmt::format("{} was added to it", found.begin()->first));
  return {};
}

// Copies the content of the member to a file, or throws it away.
Result<Found> take_member(TarReader& reader, const TarReader::Member& member, NewFile* to) {
  Sha256 digest;
  WEFT_TRY_STATUS(reader.content([&](std::string_view piece) -> Status {
    digest.add(piece);
    return to == nullptr ? Status() : to->write(piece);
  }));
  return Found{member.bytes, digest.hex()};
}

}  // namespace

std::string sums_line(std::string_view sha256, std::string_view member) {
  return fmt::format("{}  {}\n", sha256, member);
}

Result<BackupManifest> check_backup(const std::string& path) {
  WEFT_TRY(TarReader reader, TarReader::open(path));
  std::map<std::string, Found> found;
  std::string sums;
  std::optional<std::string> manifest, given;
  for (;;) {
    WEFT_TRY(const auto member, reader.next());
    if (!member) break;
    if (given) return changed(path, fmt::format("{} follows the checksums", member->name));
    if (member->name == sums_member) {
      WEFT_TRY(given, text_of(reader, *member, path));
    } else if (member->name == manifest_member) {
      WEFT_TRY(manifest, text_of(reader, *member, path));
      sums += sums_line(sha256_hex(*manifest), manifest_member);
    } else {
      WEFT_TRY(Found one, take_member(reader, *member, nullptr));
      sums += sums_line(one.sha256, member->name);
      if (!found.emplace(member->name, std::move(one)).second)
        return changed(path, fmt::format("duplicate file {} in it", member->name));
    }
  }
  if (!manifest || !given) return changed(path, "an archive without a backup's manifest");
  if (*given != sums) return changed(path, "its contents do not have the checksums in it");
  WEFT_TRY(BackupManifest out, read_manifest(*manifest, path));
  WEFT_TRY_STATUS(compare(out, std::move(found), path));
  return out;
}

Status extract(const std::string& path, const BackupManifest& manifest,
               const std::function<std::string(const std::string& member)>& target) {
  std::map<std::string, std::string> sums{{std::string(store_member), manifest.sha256}};
  for (const BackupSnapshot& one : manifest.snapshots) sums.emplace(one.file, one.sha256);
  WEFT_TRY(TarReader reader, TarReader::open(path));
  for (;;) {
    WEFT_TRY(const auto member, reader.next());
    if (!member) return {};
    const auto known = sums.find(member->name);
    const std::string to = known == sums.end() ? "" : target(member->name);
    if (to.empty()) {
      WEFT_TRY(const Found skipped, take_member(reader, *member, nullptr));
      continue;
    }
    WEFT_TRY(NewFile file, NewFile::create(to));
    WEFT_TRY(const Found copied, take_member(reader, *member, &file));
    if (copied.sha256 != known->second)
      return changed(path, fmt::format("{} changed while it was read", member->name));
    WEFT_TRY_STATUS(file.commit());
  }
}

}  // namespace weft::app
