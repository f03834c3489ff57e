// The command line: one function a command, each from plain options to an exit status.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"
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
  bool set_is_unread() const { return !set.empty() && !set_is_read_; }

 private:
  mutable bool set_is_read_ = false;  // by load_options()
};

// Refuses a --set where `what` reads no scenario.
Status refuse_set(const Common& common, std::string_view what);

// Runs all variants, prints the table or JSON, and writes the report where `out` is not empty.
// `recorded`: traces of PyTorch's profiler, to stand beside the first variant.
int run_and_report(const Common& common, const model::ScenarioFile& file, const std::string& out,
                   const std::vector<std::string>& recorded = {});

// Prints what the scenario waits for and what would help (weft why).
int why_and_report(const Common& common, const model::Scenario& scenario);

// The variant of that name; the first where it is empty. Fails: Errc::unknown with the names.
Result<const model::Scenario*> choose_variant(const model::ScenarioFile& file,
                                              const std::string& name);

// Prints the error as "weft: error: ..." per line and returns the status that fits its code.
int report(const Error& error);

// "30 s" of an option, in nanoseconds. Fails: Errc::parse.
Result<std::int64_t> read_span_ns(const std::string& text, const char* option);

// Commands that run until they are stopped look for signals so often.
inline constexpr std::int64_t turn_ns = ns_per_s / 10;

// The top-level keys of a file that is used as a fabric.
std::vector<std::string> fabric_file_keys();
// The same where collectives run or are predicted on it.
std::vector<std::string> collective_file_keys();
// The fabric of such a file, and what its faults have down from the start. Fails with every error
// of its sections.
struct FabricFile {
  model::Fabric fabric;
  model::State state;
};
Result<FabricFile> load_fabric_file(const Common& common, const std::string& path);
// The fabric alone.
Result<model::Fabric> load_fabric(const Common& common, const std::string& path);

// Sets cables "a--b" and switches down, separated by commas, of an option's value.
// Fails: Errc::unknown.
Result<model::State> read_down(const model::Fabric& fabric, const std::string& list,
                               const char* option, model::State state = {});

int run(int argc, char** argv);

}  // namespace weft::cli
