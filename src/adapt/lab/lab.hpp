// A lab that runs, as its files describe it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/lab/frr.hpp"
#include "adapt/lab/plan.hpp"
#include "adapt/lab/process.hpp"
#include "adapt/lab/routes.hpp"
#include "base/fd.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::adapt::lab {

enum class Routing : std::uint8_t {
  frr,           // zebra and bgpd per switch
  static_routes  // kernel routes computed from the fabric
};
enum class Extra : std::uint8_t { off, on };

struct LabOptions {
  std::string name = "lab0";
  Routing routing = Routing::frr;
  Extra bfd = Extra::off;     // bfdd per switch
  Extra snmp = Extra::off;    // snmpd per switch, on its management address
  Extra syslog = Extra::off;  // forwarded to the management network
  HashSeeds seeds = HashSeeds::distinct;
};

enum class Phase : std::uint8_t { starting, running };

// A lab as its files describe it; a handle, not an owner: labs outlive the process.
struct Lab {
  std::string directory;  // holds all of its files; faults may add theirs
  LabOptions options;
  model::Fabric fabric;
  LabPlan plan;
  std::vector<std::string> drained;  // names of switches and cables
  Phase phase = Phase::starting;

  std::string journal() const { return directory + "/processes"; }
  std::string node_directory(LabNodeId node) const;  // of its daemons' files and sockets
};

// Where labs keep their files: /run/weft-lab for root, else /tmp/weft-lab-<user>.
std::string state_root();
std::string lab_directory(const std::string& name);
// Whether that directory is this user's, where there is one: /tmp is open to all, and what stands
// in a lab's files decides which processes are ended. Fails: Errc::io.
Status check_state_root();
// Names of all labs with files there, sorted.
std::vector<std::string> list_labs();

// Holds a lab for one command at a time, until it is destroyed; a killed process lets go.
// Fails: Errc::infeasible while another command has it, Errc::io.
Result<Fd> lock_lab(const std::string& directory);
// Writes lab.json (all but the fabric, which save_fabric writes). Fails: Errc::io.
Status save_lab(const Lab& lab);
Status save_fabric(const Lab& lab);

// Reads a running lab. Fails: Errc::unknown where there is none of that name (with those that
// there are), Errc::parse on files that are damaged.
Result<Lab> open_lab(const std::string& name);

// The process that plays `role` on a node: the youngest in the journal. Fails: Errc::unknown.
Result<LabProcess> find_process(const Lab& lab, LabNodeId node, std::string_view role);
// Starts a daemon ("zebra", "bgpd", "bfdd", "snmpd") of a switch as `up` did.
Status start_daemon(const Lab& lab, LabNodeId node, std::string_view role);

// What daemons of this lab are started with; paths_max is that of the whole lab.
FrrSettings frr_settings(const Lab& lab, const Routes& routes);
// What the drained names mean for routes.
Without without_of(const Lab& lab);

// After an interface was down: what the kernel forgot then (the permanent neighbour, in static
// mode also the routes through it) is written again. Idempotent.
Status restore_interface(const Lab& lab, EndId end);

}  // namespace weft::adapt::lab
