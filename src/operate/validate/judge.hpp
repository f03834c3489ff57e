// Which links and hosts are slow, from the rates that the flows of a plan reached.
#pragma once

#include <vector>

#include "operate/validate/flow_file.hpp"
#include "operate/validate/rounds.hpp"

namespace weft::operate::validate {

struct Verdicts {
  struct SlowLink {
    model::LinkId link;
    double share;  // of what others reach, median of its flows
    std::uint32_t flows;
  };
  struct SlowHost {
    model::NodeId host;
    double share;
    std::uint32_t flows;
  };
  std::vector<SlowLink> links;          // by id
  std::vector<SlowHost> hosts;          // by id
  std::vector<model::LinkId> unjudged;  // by id; of the plan, with fewer than two results
  double share = 0;                     // of the planned rate, median over all flows
  double noise = 0;                     // relative, of one flow; from the median of deviations
  std::size_t flows = 0, missing = 0;
};

// Whether results may be judged. Fails: Errc::unknown for a flow that the plan does not have,
// Errc::value for a rate above that of the flow's path, Errc::infeasible without any result.
Status check_results(const model::Fabric& fabric, const Rounds& rounds, const Measured& measured,
                     const std::string& file);

// Links first: all flows over one (two at least) reach at most 85 % of the median. A host whose
// cables are mostly among them is meant itself. Then hosts by the flows that no slow link explains
// (six at least): their median is below 97.5 % and five standard errors low, and so is that of its
// flows to hosts of which that is not true.
// Cost: O(links of all paths).
Verdicts judge(const model::Fabric& fabric, const Rounds& rounds, const Measured& measured);

}  // namespace weft::operate::validate
