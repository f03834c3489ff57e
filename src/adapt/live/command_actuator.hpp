// Hands made of an operator's own programs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "os/run_program.hpp"
#include "port/actuator.hpp"

namespace weft::adapt::live {

// How a value is found in what a program prints.
struct Extract {
  std::string pointer;  // JSON pointer (RFC 6901) into standard output; or
  std::string pattern;  // RE2 with one group, first match in standard output
  bool is_given() const { return !pointer.empty() || !pattern.empty(); }
};

// Arguments may hold {entity} {action} {case} {id} {device} {interface} {peer} {peer_interface}.
// Of a cable the device is its first end; what an entity does not have is "".
struct CommandSettings {
  std::vector<std::string> drain, undrain, state, check;  // argv; check may be empty
  std::vector<std::string> environment;
  std::chrono::milliseconds patience{20'000};
  std::size_t output_bytes_max = 65'536;
  std::vector<int> exit_done{0}, exit_harm, exit_unknown;
  Extract state_value, sent, lost;
  Extract rate;  // share of the nominal rate; may be missing
  std::vector<std::string> in_service, draining, drained;  // values of the state, any case
};

// YAML: drain, undrain, state: argv lists; check; environment; timeout; output; exit: {done, harm,
// unknown}; read: {state: {json|pattern}, sent, lost, rate}; states: {in_service, draining,
// drained}.
// Fails: every error found, also of unknown placeholders and patterns.
Result<CommandSettings> read_command_settings(const Config& config);

// What was run and what came of it, for a log.
struct CommandRecord {
  std::vector<std::string> argv;
  ProgramOutcome outcome;
};

class CommandActuator : public port::Actuator {
 public:
  using Log = std::function<void(const CommandRecord&)>;

  // `fabric` must outlive it.
  CommandActuator(const model::Fabric& fabric, CommandSettings settings, Log log);

  // Errc::infeasible on an exit code that says harm, Errc::unknown on one that says so or for what
  // the fabric does not know, Errc::io on any other and when time is over.
  Status act(const port::Action& action) override;
  // unknown where the program's answer is none of the states. Fails: Errc::io as act().
  Result<port::Service> state(std::string_view entity) override;
  // Fails: Errc::unsupported without a command; Errc::io, also on counts that make no sense.
  Result<port::Check> check(std::string_view entity) override;

 private:
  Result<ProgramOutcome> run(const std::vector<std::string>& argv, const port::Action& action,
                             std::string_view verb);

  const model::Fabric& fabric_;
  CommandSettings settings_;
  Log log_;
};

}  // namespace weft::adapt::live
