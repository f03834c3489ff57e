// `weft lab`: its sub-commands and their options.
#pragma once

#include <string>
#include <vector>

#include "adapt/lab/fault_spec.hpp"
#include "cli/cli.hpp"

namespace CLI {
class App;
}

namespace weft::cli {

struct LabArgs {
  std::string action;  // the sub-command
  std::string name = "lab0";
  std::string fabric, target;
  std::string routing = "frr";
  bool bfd = false, snmp = false, syslog = false, same_hash_seed = false;
  std::vector<std::string> command;  // of exec
  std::string kind, which;           // of fault and heal
  std::vector<adapt::lab::FaultOption> fault_options;
};

void add_lab(CLI::App& lab_app, LabArgs& args);
int lab_command(const Common& common, const LabArgs& args);

}  // namespace weft::cli
