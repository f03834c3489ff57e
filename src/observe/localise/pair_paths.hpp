// Which links the shortest paths of a pair may cross.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "model/fabric/state.hpp"

namespace weft::observe::localise {

struct LinkShare {
  model::LinkId link;
  double share;  // of the shortest paths, if every switch spreads evenly
};

// Finds and keeps the links of all shortest paths between NICs, switches or hosts (of which any
// wired NIC may serve), on what `believed` does not call down.
class PairPaths {
 public:
  PairPaths(const model::Fabric& fabric, const model::State* believed);

  // By link id; empty where no path is. Valid until the next call. Cost: one search over the
  // switches for each new destination, then the links of the pair's paths.
  std::span<const LinkShare> find(model::NodeId src, model::NodeId dst);

 private:
  void search(model::NodeId dst);
  void merge();
  std::vector<model::NodeId> ends_of(model::NodeId node) const;

  const model::Fabric& fabric_;
  std::vector<bool> usable_;  // by LinkId
  model::NodeId searched_;
  std::vector<std::uint32_t> distance_;  // to searched_, by NodeId
  std::vector<double> share_;            // by NodeId, scratch
  std::vector<LinkShare> found_;
};

}  // namespace weft::observe::localise
