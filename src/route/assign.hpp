// Central traffic engineering in a zone: which spine each flow between two racks crosses.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace weft::route {

// Flows over a two-tier Clos: from rack `from` up to a spine and down to rack `to`. The cost of a
// link is its flows' weights over its capacity; the worst link counts.
//
// Equal flows over equal links: each goes where both ends have room for it under k = ceil(flows of
// the fullest rack / its spines), else along an alternating chain of two spines (Koenig's proof of
// edge colouring). No flow moves twice in a chain, so that on a fabric without dead links every
// chain ends, and k is reached: the optimum for flows that are not split. With dead links a chain
// may fail; then that flow is put where it makes the least of it.
//
// Others: heaviest first to the least loaded pair of links, then local search: a flow of the worst
// link goes where there is room, or pushes another one on, within a fixed effort. bound() tells how
// far from the best that can be at most. Where that is far, they are placed as if they were equal,
// and the better assignment stays.
//
// Nothing is random and no clock is read: the same calls give the same assignment.
class Assignment {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  struct Flow {
    std::uint32_t from, to;      // racks; must differ
    double weight = 1;           // bytes, or bytes per second: above 0
    std::uint32_t priority = 0;  // 0 is placed first
  };
  // What a solve may do with flows that have a live path already.
  enum class Others : std::uint8_t { may_move, stay };
  struct Outcome {
    double worst = 0;           // of all links: weight / capacity
    double bound = 0;           // no assignment of undivided flows is below
    std::uint32_t placed = 0;   // that had no path: new, or hit by a dead link
    std::uint32_t moved = 0;    // that had a live one
    std::uint32_t without = 0;  // no live path exists
  };

  // Capacities are 1 until set.
  Assignment(std::uint32_t racks, std::uint32_t spines);

  // Returns the flow's number; numbers of removed flows are used again.
  std::uint32_t add(const Flow& flow);
  void remove(std::uint32_t flow);
  // Before the first solve: where the flow goes already. False, and nothing done, if that path is
  // dead; solve() then counts the flow as placed, not as moved.
  bool assume(std::uint32_t flow, std::uint32_t spine);
  // The flow keeps half of its weight, and its path. Returns the other half: a flow without a path.
  std::uint32_t divide(std::uint32_t flow);
  // Of the link up to the spine and the one down from it. At 0 their flows lose their paths.
  void set_capacity(std::uint32_t rack, std::uint32_t spine, double up, double down);
  // Places the flows that have no path. Cost for equal flows: O(spines) each, and a chain of at
  // most two racks' flows per pair of spines; 16,128 flows of 252 racks take about 2 ms.
  Outcome solve(Others others = Others::may_move);

  // Whether the flow's path over that spine is live.
  bool open(std::uint32_t flow, std::uint32_t spine) const {
    return capacity_[slot_of(up, flow, spine)] > 0 && capacity_[slot_of(down, flow, spine)] > 0;
  }
  // none: no live path.
  std::uint32_t spine_of(std::uint32_t flow) const { return spine_[flow]; }
  double worst() const { return tree_[1]; }
  // Of the worse link of its path; 0 without one.
  double cost_of(std::uint32_t flow) const;
  // The larger of floor() and a flow over its widest path. In whole flows where all flows and live
  // links are equal.
  double bound() const;
  // No assignment is below, however flows are divided: a rack's weight over its live capacity, each
  // way.
  double floor() const;

 private:
  enum Side : std::uint8_t { up = 0, down = 1 };
  enum class By : std::uint8_t { count, weight };
  struct Change {
    std::uint32_t flow, spine;
  };

  std::size_t slot(Side side, std::uint32_t rack, std::uint32_t spine) const {
    return (std::size_t{side} * racks_ + rack) * spines_ + spine;
  }
  std::uint32_t rack(Side side, std::uint32_t flow) const {
    return side == up ? flows_[flow].from : flows_[flow].to;
  }
  std::size_t slot_of(Side side, std::uint32_t flow, std::uint32_t spine) const {
    return slot(side, rack(side, flow), spine);
  }
  double cost_with(std::size_t slot, double weight) const {
    return (load_[slot] + weight) / capacity_[slot];
  }
  double cost_on(std::uint32_t flow, std::uint32_t spine) const;
  double widest(std::uint32_t flow) const;
  bool all_equal() const;
  double whole_flows() const;
  void put(std::uint32_t flow, std::uint32_t spine);
  void take(std::uint32_t flow);
  void move(std::uint32_t flow, std::uint32_t spine);
  void take_back(std::size_t mark);
  void link(Side side, std::uint32_t flow);
  void unlink(Side side, std::uint32_t flow);
  void refresh(std::size_t slot);
  void put_least(std::uint32_t flow);
  std::uint32_t free_pair(std::uint32_t flow, std::uint32_t k) const;
  bool place_by_chain(std::uint32_t flow, std::uint32_t k);
  bool chain(std::uint32_t flow, std::uint32_t first, std::uint32_t second, std::uint32_t k);
  std::uint32_t next_in_chain(Side side, std::uint32_t rack, std::uint32_t from, std::uint32_t to,
                              std::uint32_t k) const;
  std::uint32_t least_count() const;
  void place(std::span<const std::uint32_t> flows, By by, Others others);
  void try_by_count(std::span<const std::uint32_t> flows, double bound);
  void restore(std::span<const std::uint32_t> spines);
  void search(double bound);
  void level();
  bool relieve(std::size_t worst_slot);
  std::vector<std::uint32_t> on(Side side, std::size_t slot) const;
  bool find_room(std::uint32_t flow, double limit, std::uint32_t pushes);
  bool push_out(std::uint32_t flow, Side side, double limit, std::uint32_t pushes);
  std::size_t worst_slot() const;

  std::uint32_t racks_, spines_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> spine_, before_;  // now, and when the last solve began
  std::vector<bool> used_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> next_[2], prev_[2];  // by flow: others on the same link
  std::vector<std::uint32_t> head_, count_;       // by slot
  std::vector<double> load_, capacity_;           // by slot
  std::vector<double> tree_;                      // maxima over pairs of costs; leaves by slot
  std::size_t leaves_ = 1;
  std::vector<std::uint32_t> chain_of_;  // by flow: the last chain that moved it
  std::uint32_t chains_ = 0;
  std::vector<Change> undo_;
  std::size_t effort_ = 0;  // left to this search
};

}  // namespace weft::route
