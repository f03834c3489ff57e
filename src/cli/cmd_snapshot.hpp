// `weft snapshot`: looking at snapshots, checking them, and copies for a vendor.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace weft::cli {

struct Common;

struct SnapshotArgs {
  std::string action;  // the sub-command
  std::string file;
  std::string out, redact, mapping;  // of export
};

// Declares the sub-commands and their options; `args` must outlive it.
void add_snapshot(CLI::App& command, SnapshotArgs& args);
int snapshot_command(const Common& common, const SnapshotArgs& args);

}  // namespace weft::cli
