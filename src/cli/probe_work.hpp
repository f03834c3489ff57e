// What `weft probe` is to probe: from addresses, a list, or a plan with its fabric.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/cli.hpp"
#include "cli/probe_args.hpp"
#include "observe/probe/prober.hpp"
#include "observe/probe/results.hpp"
#include "observe/probe/sweep.hpp"

namespace weft::cli {

// The links of a swept way, as far as they were seen.
struct SeenPath {
  std::vector<std::string> links;
  bool is_whole = false;
};

struct ProbeWork {
  std::vector<port::Endpoint> ports;  // own ones
  std::vector<observe::probe::Flow> flows;
  std::vector<observe::probe::FlowInfo> infos;  // of each flow
  double rate = 0;  // probes a second that a plan asks for; 0: it does not
  // Where a fabric is known: the node that has an address, "" for none; and a swept way, without
  // links where a hop is not known or two cables join it to the next.
  std::function<std::string(std::uint32_t)> name_of;
  std::function<SeenPath(const observe::probe::FlowInfo&, const observe::probe::SweptFlow&)>
      path_of;
};

// Fails: Errc::value when there is nothing to probe or more than a million flows; what the files
// named are wrong about.
Result<ProbeWork> load_probe_work(const Common& common, const ProbeArgs& args);

}  // namespace weft::cli
