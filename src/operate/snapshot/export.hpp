// A copy of a snapshot that may leave the house.
#pragma once

#include <map>
#include <string>

#include "operate/snapshot/redact.hpp"
#include "operate/snapshot/snapshot.hpp"

namespace weft::operate::snapshot {

struct Export {
  Snapshot snapshot;  // redacted; its manifest says so, and how much of what was taken out
  std::map<std::string, std::string> pseudonyms;  // what stands for what; not for the vendor
};

// Redacts every file, and the manifest itself. Sizes and checksums are those of the copy, so that
// it can be verified as any snapshot. Fails: Errc::parse on a snapshot that is a copy already.
Result<Export> export_copy(const Snapshot& original, const RedactSettings& settings);

}  // namespace weft::operate::snapshot
