#include "operate/snapshot/manifest.hpp"

#include <nlohmann/json.hpp>

namespace weft::operate::snapshot {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int format_version = 1;

// Anything may be in an answer of a device, also in its error.
std::string dump(const ordered_json& value) {
  return value.dump(1, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json to_json(const PieceEntry& piece) {
  ordered_json out{{"name", piece.name}};
  if (!piece.file.empty()) {
    out["file"] = piece.file;
    out["bytes"] = piece.bytes;
    out["sha256"] = piece.sha256;
  }
  if (piece.milliseconds > 0) out["ms"] = piece.milliseconds;
  if (piece.is_cut) out["cut"] = true;
  if (!piece.error.empty()) out["error"] = piece.error;
  return out;
}

ordered_json to_json(const DeviceEntry& device) {
  ordered_json out{
      {"name", device.name}, {"standing", device.standing}, {"ms", device.milliseconds}};
  if (!device.error.empty()) out["error"] = device.error;
  out["pieces"] = ordered_json::array();
  for (const PieceEntry& piece : device.pieces) out["pieces"].push_back(to_json(piece));
  return out;
}

PieceEntry piece_of(const json& row) {
  return {.name = row.at("name").get<std::string>(),
          .file = row.value("file", ""),
          .bytes = row.value("bytes", std::uint64_t{0}),
          .sha256 = row.value("sha256", ""),
          .milliseconds = row.value("ms", std::int64_t{0}),
          .is_cut = row.value("cut", false),
          .error = row.value("error", "")};
}

DeviceEntry device_of(const json& row) {
  DeviceEntry out{.name = row.at("name").get<std::string>(),
                  .standing = row.at("standing").get<std::string>(),
                  .milliseconds = row.value("ms", std::int64_t{0}),
                  .error = row.value("error", ""),
                  .pieces = {}};
  for (const json& piece : row.at("pieces")) out.pieces.push_back(piece_of(piece));
  return out;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  ordered_json out{{"format", "weft snapshot"},
                   {"version", format_version},
                   {"case", manifest.case_id},
                   {"cause", {{"kind", manifest.cause}, {"entity", manifest.entity}}},
                   {"trigger", manifest.trigger},
                   {"taken", to_text(manifest.taken)},
                   {"devices_left_out", manifest.devices_left_out},
                   {"devices", ordered_json::array()}};
  for (const DeviceEntry& device : manifest.devices) out["devices"].push_back(to_json(device));
  if (manifest.is_redacted) {
    out["redacted"] = ordered_json::object();
    for (const Redaction& one : manifest.redactions) out["redacted"][one.what] = one.count;
  }
  return dump(out) + "\n";
}

Result<Manifest> parse_manifest(std::string_view text, const std::string& file) {
  Manifest out;
  try {
    const json root = json::parse(text);
    if (root.at("format") != "weft snapshot" || root.at("version") != format_version)
      return fail(Errc::parse, {file, 0, 0}, "not a snapshot manifest of this version");
    out.case_id = root.at("case").get<std::string>();
    out.cause = root.at("cause").at("kind").get<std::string>();
    out.entity = root.at("cause").at("entity").get<std::string>();
    out.trigger = root.at("trigger").get<std::string>();
    const auto taken = root.at("taken").get<std::string>();
    WEFT_TRY(out.taken, parse_timestamp({taken, {file, 0, 0}}));
    out.devices_left_out = root.at("devices_left_out").get<std::uint64_t>();
    for (const json& device : root.at("devices")) out.devices.push_back(device_of(device));
    out.is_redacted = root.contains("redacted");
    if (out.is_redacted)
      for (const auto& [what, count] : root.at("redacted").items())
        out.redactions.push_back({what, count.get<std::uint64_t>()});
  } catch (const json::exception& error) {
    return fail(Errc::parse, {file, 0, 0}, std::string("broken manifest: ") + error.what());
  }
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
