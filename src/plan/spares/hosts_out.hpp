// How many hosts are out of service at once, in closed form.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::plan::spares {

// By s: share of the time in which more than s hosts are out. The last is 0.
using Tail = std::vector<double>;
// The least s for which no more than s are out for that share of the time.
std::uint32_t enough_for(const Tail& above, double share);
// Hosts out beyond s, in the mean.
double mean_above(const Tail& above, std::uint32_t s);

// Events of one size: `per_hour` of them, each taking `hosts` out for `repair_h` hours in the mean.
struct Batch {
  double per_hour, repair_h;
  std::uint32_t hosts;
};

// The number out is compound Poisson when repairs never wait: an M/G/infinity system, of which only
// the mean repair time counts, whatever its distribution. Probabilities follow Panjer's recursion
//   k p[k] = sum over batches of per_hour repair_h hosts p[k - hosts].
// From: H. Panjer, "Recursive evaluation of a family of compound distributions", ASTIN Bulletin 12
// (1981). Failures come at a constant rate, whether hosts are out already or not: right while few
// are out.
class HostsOut {
 public:
  // Up to `most` hosts; what lies above counts as that. Cost: O(most x batches).
  HostsOut(std::span<const Batch> batches, std::uint32_t most);

  double mean() const { return mean_; }  // of the unlimited number
  const Tail& tail() const { return above_; }
  double above(std::uint32_t s) const { return s < above_.size() ? above_[s] : 0; }
  // How often in an hour the number rises from s or less to more than s.
  double crossings_per_hour(std::uint32_t s) const;

 private:
  std::vector<Batch> batches_;
  Tail above_;
  double mean_ = 0;
};

}  // namespace weft::plan::spares
