// The command line: one function a command, each from plain options to an exit status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"
#include "model/scenario/scenario.hpp"

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
  std::string engine;      // empty: the file's
  std::string start_unit;  // of a connection matrix; empty: none
  std::string end;         // of the packet engine's run; empty: when all is over
  std::string from_fluid;  // the fluid engine runs until then; empty: packets from the start
  bool compare = false;    // both engines
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

struct TraceArgs {
  std::vector<std::string> files;
  std::string fabric, groups, system, out, overhead;
  std::string place = "topology", contention = "on";
  std::uint32_t ranks = 0;  // 0: as recorded
};

int run_command(const Common& common, const RunArgs& args);
int explain_command(const Common& common, const ExplainArgs& args);
int flows_command(const Common& common, const FlowsArgs& args);
int perf_command(const Common& common, const PerfArgs& args);
int sweep_command(const Common& common, const SweepArgs& args);
int trace_command(const Common& common, const TraceArgs& args);
int export_command(const Common& common, const ExportArgs& args);

// Runs all variants, prints the table or JSON, and writes the report where `out` is not empty.
int run_and_report(const Common& common, const model::ScenarioFile& file, const std::string& out);

// Prints the error as "weft: error: ..." per line and returns the status that fits its code.
int report(const Error& error);

// "30 s" of an option, in nanoseconds. Fails: Errc::parse.
Result<std::int64_t> read_span_ns(const std::string& text, const char* option);

// Commands that run until they are stopped look for signals so often.
inline constexpr std::int64_t turn_ns = ns_per_s / 10;

// The top-level keys of a file that is used as a fabric.
std::vector<std::string> fabric_file_keys();
// The fabric of such a file. Fails with every error of its sections.
Result<model::Fabric> load_fabric(const Common& common, const std::string& path);

int run(int argc, char** argv);

}  // namespace weft::cli
