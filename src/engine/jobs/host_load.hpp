// Bytes in and out of host-side devices, and the time the busiest needs.
#pragma once

#include <map>

#include "model/fabric/fabric.hpp"

namespace weft::engine {

class HostLoad {
 public:
  explicit HostLoad(const model::Fabric& fabric) : fabric_(fabric) {}

  // Between GPUs: over NVLink inside a host, else through the NIC of each; NICs count as they are,
  // other ends nothing.
  void add(model::NodeId from, model::NodeId to, double bytes);
  // What one rank exchanges with its own host's GPUs and with other hosts, the same both ways.
  void add_both_ways(model::NodeId rank, double inside, double outside);
  double seconds() const;

 private:
  double bytes_per_s(model::NodeId node) const;

  const model::Fabric& fabric_;
  std::map<model::NodeId, double> out_, in_;
};

}  // namespace weft::engine
