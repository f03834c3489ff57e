// Figures that `weft run --json` and `weft rehearse --json` give, taken from files of theirs.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/config.hpp"
#include "base/json_line.hpp"

namespace weft::plan::life {

using LoadFile = std::function<Result<std::string>(const std::string& path)>;

// Each file is read once. Errors join the list, with the place of the key that asks; the answer is
// then nothing.
class Measured {
 public:
  Measured(LoadFile load, Errors& errors) : load_(std::move(load)), errors_(errors) {}

  // {run: FILE, job: NAME, healthy: VARIANT, faulty: VARIANT}: the step time of the second variant
  // over that of the first, at least 1.
  std::optional<double> step_factor(const Config& section);
  // {run: FILE, job: NAME, variant: VARIANT, figure: KEY}: a figure of that job in seconds, by its
  // key in the JSON: checkpoint_stall_s, start_s. Or
  // {rehearse: FILE, problem: KIND, parts: [detect, triage, drain, repair, verify]}: the mean
  // seconds of those parts of its repairs; without `parts`, of all.
  std::optional<double> seconds(const Config& section);

 private:
  const JsonLine* file(const Token& name);
  // A job's figure in seconds.
  std::optional<double> figure(const JsonLine& run, const Token& variant, const Token& job,
                               const Token& key);
  std::optional<double> run_seconds(const Config& section);

  LoadFile load_;
  Errors& errors_;
  std::map<std::string, std::optional<JsonLine>> files_;
};

}  // namespace weft::plan::life
