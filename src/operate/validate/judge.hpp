// Which links and hosts are slow, from the rates that the flows of a plan reached.
#pragma once

#include <vector>

#include "operate/validate/flow_file.hpp"
#include "operate/validate/rounds.hpp"

namespace weft::operate::validate {

struct Verdicts {
  struct SlowLink {
    model::LinkId link;
    double share;  // of what others reach (of the plan if below_plan), median of its flows
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
  std::size_t low = 0;             // flows below the least share of their planned rate
  std::vector<std::uint32_t> odd;  // of these, by number: over no slow link, to no slow host
  bool below_plan = false;         // the median is below the least share too

  // Whether the plan was reached by all, and nothing is left to say of it.
  bool is_sound() const {
    return links.empty() && hosts.empty() && unjudged.empty() && odd.empty() && !below_plan;
  }
};

// Of the planned rate: above what frames of 1,024 bytes leave of it, with some room (92.6 %).
inline constexpr double least_share = 0.85;

// Whether results may be judged. Fails: Errc::unknown for a flow that the plan does not have,
// Errc::value for a rate above that of the flow's path, Errc::infeasible without any result.
Status check_results(const model::Fabric& fabric, const Rounds& rounds, const Measured& measured,
                     const std::string& file);

// Links first: all flows over one (two at least) reach at most 85 % of the median. A host whose
// cables are mostly among them is meant itself. Then hosts by the flows that no slow link explains
// (six at least): their median is below 97.5 % and five standard errors low, and so is that of its
// flows to hosts of which that is not true.
// Where the median itself is below `least` of the planned rate, it is no measure of what is sound:
// links and hosts are then slow below `least` of the plan. 0: no least.
// Cost: O(links of all paths).
Verdicts judge(const model::Fabric& fabric, const Rounds& rounds, const Measured& measured,
               double least = least_share);

}  // namespace weft::operate::validate
