#include "operate/snapshot/export.hpp"

#include <map>
#include <string>
#include <utility>

#include "os/digest.hpp"

namespace weft::operate::snapshot {
namespace {

// The new names of files: devices may be named after customers.
std::string renamed(Redactor& redactor, const std::string& name) {
  std::string out;
  const std::string clean = redactor.redact(name);
  for (std::size_t at = 0; at < clean.size();) {
    const std::size_t end = std::min(clean.find('/', at), clean.size());
    if (!out.empty()) out += '/';
    out += file_name_of(clean.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace

Result<Export> export_copy(const Snapshot& original, const RedactSettings& settings) {
  if (original.manifest.is_redacted)
    return fail(Errc::parse, {}, "this snapshot is already an exported copy",
                "export the original");
  Redactor redactor(settings);
  Export out{.snapshot = original, .pseudonyms = {}};
  Manifest& manifest = out.snapshot.manifest;
  for (std::string* text :
       {&manifest.case_id, &manifest.cause, &manifest.entity, &manifest.trigger})
    *text = redactor.redact(*text);
  std::map<std::string, ArchiveFile*> files;
  std::map<std::string, unsigned> taken;
  for (ArchiveFile& file : out.snapshot.files) {
    files.emplace(file.name, &file);
    file.content = redactor.redact(file.content);
  }
  for (DeviceEntry& device : manifest.devices) {
    device.name = redactor.redact(device.name);
    device.error = redactor.redact(device.error);
    for (PieceEntry& piece : device.pieces) {
      piece.name = redactor.redact(piece.name);
      piece.error = redactor.redact(piece.error);
      const auto it = files.find(piece.file);
      if (it == files.end()) continue;
      // Two names may have become one.
      std::string name = renamed(redactor, piece.file);
      if (const unsigned times = taken[name]++; times > 0) name += "." + std::to_string(times);
      it->second->name = piece.file = name;
      piece.bytes = it->second->content.size();
      piece.sha256 = sha256_hex(it->second->content);
    }
  }
  manifest.is_redacted = true;
  for (const auto& [what, count] : redactor.counts()) manifest.redactions.push_back({what, count});
  out.pseudonyms = redactor.pseudonyms();
  return out;
}

}  // namespace weft::operate::snapshot
