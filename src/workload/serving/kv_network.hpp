// Transfers of KV caches between hosts that share links.
#pragma once

#include <cstdint>
#include <vector>

#include "base/units.hpp"

namespace weft::workload {

// Every transfer has the max-min fair rate of the links on its way, solved anew whenever one begins
// or ends. Bytes that were moved are counted per link.
class KvNetwork {
 public:
  // Bytes per second by link; 0: infinitely fast.
  explicit KvNetwork(std::vector<double> links);

  struct Use {
    std::uint32_t link;
    double share = 1;  // of the transfer's bytes that cross it
  };
  struct Way {
    std::vector<Use> links;
    Duration latency;
  };
  void start(std::uint32_t id, const Way& way, std::uint64_t bytes, Time now);
  // When the next transfer arrives or leaves the links behind; the largest Time: none runs.
  Time next() const { return next_; }
  // Goes on to next(): the transfers that have arrived, in the order of their start.
  std::vector<std::uint32_t> step();
  double carried(std::uint32_t link) const { return carried_[link]; }

 private:
  struct Transfer {
    std::uint32_t id;
    Way way;
    double left;  // bytes
    double rate = 0;
    Time arrives;  // once all bytes have left
  };
  void advance(Time now);
  void solve();

  std::vector<double> links_, carried_;
  std::vector<Transfer> transfers_;  // in the order of their start
  Time now_, next_;
};

}  // namespace weft::workload
