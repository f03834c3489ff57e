// The command line: one function a command, each from plain options to an exit status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "model/scenario.hpp"

namespace weft::cli {

enum ExitStatus : int { done = 0, work_failed = 1, bad_input = 2 };

// Options that every command has.
struct Common {
  std::optional<std::uint64_t> seed;
  std::vector<std::string> set;  // "key.path=value"
  std::uint32_t threads = 0;     // 0: as many as there are cores
  bool quiet = false;
  bool json = false;
  std::string command;  // as typed, without --out, --json, --quiet and --threads

  Progress::Show progress() const {
    return quiet ? Progress::Show::never : Progress::Show::automatic;
  }
  // Fails: Errc::parse on a --set without "=".
  Result<model::LoadOptions> load_options(std::vector<std::string> keys = {}) const;
};

struct RunArgs {
  std::string scenario;
  std::string out;  // directory; empty: none
};
struct ExplainArgs {
  std::string file;
};
struct FlowsArgs {
  std::string fabric, flows;
  std::string engine;  // empty: the file's
};
struct PerfArgs {
  std::string op;
  std::string fabric;
  std::uint32_t gpus = 0;      // 0: all
  std::uint32_t channels = 0;  // 0: as the algorithm does
  std::string begin = "32M", end = "32M", step_bytes, system, compare;
  std::optional<std::string> factor;
  std::string algorithm = "auto", protocol = "auto", place = "topology", transport;
  std::string calibrate;  // empty: as published
};
struct SweepArgs {
  std::string scenario;
  std::string csv;  // file; empty: none
};
struct ExportArgs {
  std::string fabric, format, out = "-";
};

int run_command(const Common& common, const RunArgs& args);
int explain_command(const Common& common, const ExplainArgs& args);
int flows_command(const Common& common, const FlowsArgs& args);
int perf_command(const Common& common, const PerfArgs& args);
int sweep_command(const Common& common, const SweepArgs& args);
int export_command(const Common& common, const ExportArgs& args);

// Prints the error as "weft: error: ..." per line and returns the status that fits its code.
int report(const Error& error);

// The top-level keys of a file that is used as a fabric.
std::vector<std::string> fabric_file_keys();

int run(int argc, char** argv);

}  // namespace weft::cli
