// How much of a connection each of its QPs should carry, given where their paths lie. Internal to
// the room.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "route/router.hpp"

namespace weft::route {

// The paths of QPs are what the scheme gives them; what each carries is chosen so that the worst
// link of flows that are under way together (a kind) needs the least time: a linear program per
// kind. A pair of NICs that several kinds use is weighed for the first of them. Never worse than
// equal shares for any kind, in bytes over capacity of its worst link: else its pairs go back to
// equal shares. Loss on links is not seen.
class QpWeights {
 public:
  using AppendPath = std::function<bool(const Stream&, std::vector<Hop>&)>;
  using Capacity = std::function<double(LinkId)>;  // bytes per second

  QpWeights(std::uint32_t qps, AppendPath append_path, Capacity capacity)
      : qps_(qps), append_path_(std::move(append_path)), capacity_(std::move(capacity)) {}

  // Flows under way together: for each pair of NICs all QPs in order, with equal bytes.
  void declare(std::span<const NicDemand> together);
  // Paths or capacities may be others now.
  void on_change() { dirty_ = true; }
  // By QP, sum 1; empty: equal. Valid until the next call. Weighs anew where something changed, at
  // O(declared QPs x hops) for each of some hundred iterations.
  std::span<const double> shares(NodeId src, NodeId dst);
  // In words.
  std::string report() const;

 private:
  struct Pair {
    NodeId src, dst;
    bool decided = false, uneven = false;
  };
  struct Use {
    std::uint32_t pair;
    double bytes;
  };
  using Kind = std::vector<Use>;

  std::uint64_t key(NodeId src, NodeId dst) const {
    return std::uint64_t{src.value} << 32 | dst.value;
  }
  std::size_t stream(std::uint32_t pair, std::uint32_t qp) const {
    return std::size_t{pair} * qps_ + qp;
  }
  double share(std::size_t stream) const {
    return pairs_[stream / qps_].uneven ? shares_[stream] : 1.0 / qps_;
  }
  void find_paths();
  void solve();
  void weigh(const Kind& kind);
  // Seconds of the kind's worst link.
  double worst(const Kind& kind, bool equal);

  std::uint32_t qps_;
  AppendPath append_path_;
  Capacity capacity_;
  std::vector<Pair> pairs_;
  std::vector<Kind> kinds_;
  std::unordered_map<std::uint64_t, std::uint32_t> known_;  // never iterated
  std::vector<double> shares_;                              // by stream
  std::vector<std::uint32_t> hop_begin_;                    // by stream, and one more
  std::vector<Hop> hops_;
  std::vector<std::uint32_t> row_of_;  // scratch, by link
  std::vector<double> load_;           // scratch, by link
  bool dirty_ = false;
  double most_gain_ = 1;  // worst link over that of equal shares, of the kind that gains most
};

}  // namespace weft::route
