// What a snapshot holds, why it was taken, and of whom.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::snapshot {

inline constexpr std::string_view manifest_name = "manifest.json";

// One answer of a device, a file of the archive; or why there is none.
struct PieceEntry {
  std::string name;  // "routes"
  std::string file;  // in the archive; "" where there is none
  std::uint64_t bytes = 0;
  std::string sha256;
  std::int64_t milliseconds = 0;  // until it was there; 0: not known
  bool is_cut = false;            // to a bound
  std::string error;              // "" where there is an answer
};

struct DeviceEntry {
  std::string name, standing;     // "suspect", "neighbour", ...
  std::int64_t milliseconds = 0;  // until all of its answers were there
  std::string error;              // why it told nothing at all
  std::vector<PieceEntry> pieces;
};

// Taken away for export; none in an original.
struct Redaction {
  std::string what;  // "password", "snmp", "public address", ...
  std::uint64_t count = 0;
};

struct Manifest {
  std::string case_id, cause, entity, trigger;
  Timestamp taken;
  std::uint64_t devices_left_out = 0;  // that the bound kept out
  std::vector<DeviceEntry> devices;
  bool is_redacted = false;
  std::vector<Redaction> redactions;
};

std::string to_json(const Manifest& manifest);
// Fails: Errc::parse with what is missing or wrong.
Result<Manifest> parse_manifest(std::string_view json, const std::string& file);

// The text as (part of) the name of an archived file: other bytes become "-". Never empty.
std::string file_name_of(std::string_view text);

}  // namespace weft::operate::snapshot
