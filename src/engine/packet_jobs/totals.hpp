// What several runs of the packet engine counted in all.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/packet/packet_run.hpp"
#include "model/fabric/fabric.hpp"
#include "model/work/outcome.hpp"

namespace weft::engine::packet {

class PacketTotals {
 public:
  explicit PacketTotals(const model::Fabric& fabric);

  // A run that began at `offset`. Its messages are not looked at.
  void add(const PacketRunResult& run, Ps offset);
  // Counts `times` more runs that were as this one; not their series, nor anything in words.
  void repeat(const PacketRunResult& run, std::uint64_t times);

  // Bytes that each link of the fabric has carried, headers included.
  const std::vector<double>& link_bytes() const { return link_bytes_; }
  model::PacketOutcome outcome(std::string transport) const;

 private:
  struct TierSums {
    LogHistogram queue_bytes{}, pause_ps{};
    std::uint64_t queue_bytes_max = 0;
    std::uint64_t packets = 0, drops = 0, ecn_marks = 0, pauses = 0;
  };
  model::PacketOutcome::Tier tier_outcome(const model::Fabric::Tier& tier,
                                          const TierSums& sums) const;

  const model::Fabric& fabric_;
  std::vector<double> link_bytes_, paused_s_;  // by LinkId
  std::vector<TierSums> tiers_;                // by TierId
  Counters counters_;
  Conservation conservation_;
  std::vector<model::PacketOutcome::Series> series_;
  std::vector<std::string> deadlocks_, storms_;
  std::vector<LosslessDrops> lossless_drops_;  // by class, cause and port
};

}  // namespace weft::engine::packet
