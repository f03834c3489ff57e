// A scenario file: names with their positions. Each room validates its own part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/config.hpp"

namespace weft::model {

// What one variant of a scenario runs with. Sections are null where the file has none.
struct Scenario {
  std::string name;  // of the variant; "base" without `compare:`
  std::string file;
  Config root;  // the effective file, overlays and --set applied, without compare and sweep
  std::uint64_t seed = 1;

  const Config& section(std::string_view key) const;  // null config where missing
  // One key as --set sets it, "seed" included. Fails: as set_path(), and on what a file may not
  // hold at its top level; the scenario is then half changed.
  Status set(std::string_view path, const Config& value);
};

struct ScenarioFile {
  std::vector<Scenario> variants;  // at least one, in file order
  Config sweep;                    // null where missing
};

struct LoadOptions {
  // --set key.path=value, applied to the file and, where a variant overlays the same key, to the
  // variant as well: what the command line says holds everywhere.
  std::vector<std::pair<std::string, std::string>> set;
  // --seed
  std::optional<std::uint64_t> seed;
  // Top-level keys that this command reads; a scenario's others are checked and left out, so that
  // any scenario serves as a fabric file. Empty: all.
  std::vector<std::string> keys;
};

// Reads, overlays, and checks the top level: unknown keys, wrong kinds, empty `compare`.
Result<ScenarioFile> load_scenario(const std::string& path, const LoadOptions& options);
Result<ScenarioFile> parse_scenario(std::string_view text, const std::string& file,
                                    const LoadOptions& options);
// The same of a tree; `file` is what errors call the whole.
Result<ScenarioFile> read_scenario(Config root, const std::string& file,
                                   const LoadOptions& options);

}  // namespace weft::model
