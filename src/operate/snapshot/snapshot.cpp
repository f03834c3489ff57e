#include "operate/snapshot/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/file.hpp"
#include "operate/snapshot/devices.hpp"
#include "os/digest.hpp"

namespace weft::operate::snapshot {
namespace {

// More than any writer of ours makes.
constexpr std::uint64_t archive_bytes_max = std::uint64_t{1} << 30;

std::string_view extension_of(std::string_view text) {
  return text.starts_with('{') || text.starts_with('[') ? "json" : "txt";
}

// "ctsw-5/routes.txt"; with a number where another has that name.
std::string free_name(std::set<std::string>& taken, std::string_view device, std::string_view piece,
                      std::string_view text) {
  for (unsigned i = 1;; ++i) {
    std::string name =
        fmt::format("{}/{}{}.{}", file_name_of(device), file_name_of(piece),
                    i == 1 ? std::string() : fmt::format("-{}", i), extension_of(text));
    if (taken.insert(name).second) return name;
  }
}

void add_device(Snapshot& out, std::set<std::string>& names, DeviceAnswer answer) {
  DeviceEntry entry{.name = answer.asked.device,
                    .standing = std::string(to_text(answer.asked.standing)),
                    .milliseconds = answer.took.count(),
                    .error = std::move(answer.error),
                    .pieces = {}};
  for (port::StatePiece& piece : answer.pieces) {
    PieceEntry row{.name = piece.name,
                   .milliseconds = piece.took.count(),
                   .is_cut = piece.is_cut,
                   .error = std::move(piece.error)};
    if (row.error.empty()) {
      row.file = free_name(names, entry.name, piece.name, piece.text);
      row.bytes = piece.text.size();
      row.sha256 = sha256_hex(piece.text);
      out.files.push_back({row.file, std::move(piece.text)});
    }
    entry.pieces.push_back(std::move(row));
  }
  out.manifest.devices.push_back(std::move(entry));
}

// What is wrong with one piece; nothing where it is as the manifest says.
std::string fault_of(const PieceEntry& piece,
                     const std::map<std::string, std::string_view>& files) {
  const auto it = files.find(piece.file);
  if (it == files.end()) return fmt::format("{} is missing", piece.file);
  if (it->second.size() != piece.bytes)
    return fmt::format("{} has {} bytes, but the manifest says {}", piece.file, it->second.size(),
                       piece.bytes);
  if (sha256_hex(it->second) != piece.sha256)
    return fmt::format("{} was modified after collection: its SHA-256 differs", piece.file);
  return {};
}

Errors faults_of(const Snapshot& snapshot, const std::string& file) {
  std::map<std::string, std::string_view> files;
  for (const ArchiveFile& one : snapshot.files) files.emplace(one.name, one.content);
  Errors out;
  const auto note = [&](std::string what) {
    out.push_back({Errc::parse, {file, 0, 0}, std::move(what), {}, {}});
  };
  std::set<std::string> listed;
  for (const DeviceEntry& device : snapshot.manifest.devices)
    for (const PieceEntry& piece : device.pieces) {
      if (piece.file.empty()) continue;
      if (!listed.insert(piece.file).second) note(piece.file + " is listed twice");
      if (std::string what = fault_of(piece, files); !what.empty()) note(std::move(what));
    }
  for (const auto& [name, content] : files)
    if (!listed.contains(name)) note(name + " is not in the manifest");
  return out;
}

}  // namespace

Result<std::string> pack(const Snapshot& snapshot) {
  std::vector<ArchiveFile> files{{std::string(manifest_name), to_json(snapshot.manifest)}};
  files.insert(files.end(), snapshot.files.begin(), snapshot.files.end());
  WEFT_TRY(const std::string tar, write_tar(files, snapshot.manifest.taken));
  return gzip(tar);
}

Result<Snapshot> verify(std::string_view archive, const std::string& file) {
  WEFT_TRY(const std::string tar, gunzip(archive, file, archive_bytes_max));
  Snapshot out;
  WEFT_TRY(out.files, read_plain_tar(tar, file));
  if (out.files.empty() || out.files.front().name != manifest_name)
    return fail(Errc::parse, {file, 0, 0}, "the archive does not begin with a manifest",
                "check that it is a snapshot");
  WEFT_TRY(out.manifest, parse_manifest(out.files.front().content, file));
  out.files.erase(out.files.begin());
  if (Errors faults = faults_of(out, file); !faults.empty())
    return std::unexpected(combine(std::move(faults)));
  return out;
}

Result<Snapshot> load(const std::string& path) {
  WEFT_TRY(const std::string bytes, read_file(path, archive_bytes_max));
  return verify(bytes, path);
}

Taker::Taker(std::shared_ptr<port::DeviceState> devices, Settings settings)
    : collector_(std::move(devices)), settings_(std::move(settings)) {}

Result<Taken> Taker::take(const model::Fabric& fabric, const model::Case& c,
                          std::string_view trigger, Timestamp now,
                          std::span<const std::string> open_cases) {
  const DeviceChoice choice = devices_to_ask(fabric, c, settings_.limits.devices_max);
  Snapshot snapshot{.manifest = {.case_id = c.id,
                                 .cause = std::string(model::to_text(c.kind)),
                                 .entity = model::root_name(fabric, c),
                                 .trigger = std::string(trigger),
                                 .taken = now,
                                 .devices_left_out = choice.left_out,
                                 .devices = {},
                                 .redactions = {}},
                    .files = {}};
  std::set<std::string> names;
  for (DeviceAnswer& answer : collector_.collect(choice.asked, settings_.limits))
    add_device(snapshot, names, std::move(answer));
  WEFT_TRY(const std::string archive, pack(snapshot));
  Taken out{.path = {},
            .bytes = archive.size(),
            .sha256 = sha256_hex(archive),
            .manifest = to_json(snapshot.manifest),
            .removed = {}};
  WEFT_TRY(out.removed,
           make_room(settings_.directory, archive.size(), settings_.bytes_max, open_cases));
  out.path = fmt::format("{}/{}", settings_.directory, snapshot_file_name(c.id, now));
  WEFT_TRY_STATUS(write_durable(out.path, archive));
  return out;
}

}  // namespace weft::operate::snapshot
