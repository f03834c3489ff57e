// The commands of the command line. Each declares its options itself, in cmd_*.cpp.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/cli.hpp"

namespace CLI {
class App;
}

namespace weft::cli {

class Commands {
 public:
  template <class Args>
  struct Added {
    CLI::App& options;
    Args& args;
  };

  // Both must outlive it.
  Commands(CLI::App& app, Common& common) : app_(app), common_(common) {}

  // A command of that name: `run` gets the arguments that its options were parsed into, and
  // returns the exit status.
  template <class Args>
  Added<Args> add(const std::string& name, const std::string& help,
                  int (*run)(const Common& common, const Args& args)) {
    const auto args = std::make_shared<Args>();
    return {add_call(name, help, [this, args, run] { return run(common_, *args); }), *args};
  }
  // The same for a command whose only failure is wrong input: its error is printed.
  template <class Args>
  Added<Args> add(const std::string& name, const std::string& help,
                  Status (*run)(const Common& common, const Args& args)) {
    const auto args = std::make_shared<Args>();
    const auto call = [this, args, run]() -> int {
      const Status status = run(common_, *args);
      return status ? done : report(status.error());
    };
    return {add_call(name, help, call), *args};
  }
  // Global options may stand behind any command; a sub-command that takes them says so.
  void add_common(CLI::App& command);
  // --log-level, of a command that runs until it is stopped.
  static void add_log_level(CLI::App& command);

  // A flag that stands alone: with anything else on the command line it is an error.
  static void add_lone_flag(CLI::App& command, const std::string& name, bool& value,
                            const std::string& help);

  const CLI::App& app() const { return app_; }
  // Runs the command that was parsed; the exit status.
  int call() const { return call_(); }

 private:
  CLI::App& add_call(const std::string& name, const std::string& help, std::function<int()> call);

  CLI::App& app_;
  Common& common_;
  std::function<int()> call_;
};

void add_agent(Commands& commands);
void add_autoscale(Commands& commands);
void add_bulk(Commands& commands);
void add_case(Commands& commands);
void add_discover(Commands& commands);
void add_drains(Commands& commands);
void add_colltrace(Commands& commands);
void add_edge(Commands& commands);
void add_explain(Commands& commands);
void add_export(Commands& commands);
void add_failures(Commands& commands);
void add_faults(Commands& commands);
void add_flows(Commands& commands);
void add_forecast(Commands& commands);
void add_init(Commands& commands);
void add_examples(Commands& commands);
void add_scale(Commands& commands);
void add_gnmi(Commands& commands);
void add_help(Commands& commands);
void add_infer(Commands& commands);
void add_lab(Commands& commands);
void add_life(Commands& commands);
void add_localise(Commands& commands);
void add_merge(Commands& commands);
void add_perf(Commands& commands);
void add_place(Commands& commands);
void add_poll(Commands& commands);
void add_probe(Commands& commands);
void add_rehearse(Commands& commands);
void add_respond(Commands& commands);
void add_run(Commands& commands);
void add_send(Commands& commands);
void add_serve(Commands& commands);
void add_sli(Commands& commands);
void add_snapshot(Commands& commands);
void add_spares(Commands& commands);
void add_store(Commands& commands);
void add_storm(Commands& commands);
void add_straggler(Commands& commands);
void add_sweep(Commands& commands);
void add_te(Commands& commands);
void add_tenants(Commands& commands);
void add_trace(Commands& commands);
void add_traps(Commands& commands);
void add_triage(Commands& commands);
void add_up(Commands& commands);
void add_validate(Commands& commands);
void add_advise(Commands& commands);
void add_regions(Commands& commands);
void add_why(Commands& commands);
void add_zones(Commands& commands);
void add_replay(Commands& commands);

}  // namespace weft::cli
