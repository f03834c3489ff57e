// Records that wait, because a detection may yet make members of them.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "observe/detect/event.hpp"
#include "observe/detect/term_window.hpp"

namespace weft::observe::detect {

// Where a record waits; rows of a kind are numbered from 1, 0 is nowhere.
struct HeldAt {
  std::uint8_t kind = 0;
  std::uint64_t row = 0;
};

// A record that goes out by itself, and from when on it may.
struct Single {
  std::int64_t due = 0;
  std::int64_t t = 0;
  std::uint64_t serial = 0;
  friend auto operator<=>(const Single&, const Single&) = default;
};

class Held {
 public:
  // Where records go that have waited long enough.
  struct Out {
    std::vector<Single>&singles, &folded;
  };
  // How long records of a kind wait, at least as told.
  void wait_for(model::EventKind kind, std::int64_t wait_ns) {
    Lane& lane = lanes_[static_cast<std::size_t>(kind)];
    lane.wait_ns = std::max(lane.wait_ns, wait_ns);
  }
  // Times must not fall within a kind. What is too much goes out early to `out`.
  HeldAt hold(const Event& event, Out out, DetectCounts& counts) {
    const auto kind = static_cast<std::uint8_t>(event.signal);
    Lane& lane = lanes_[kind];
    if (lane.rows.size() >= rows_max) {
      ++counts.hurried;
      lane.let_go(out);
    }
    lane.rows.push_back({event.t.ns, event.serial});
    return {kind, lane.first + lane.rows.size() - 1};
  }
  // The record became a member.
  void fold(const HeldAt& at) {
    Lane& lane = lanes_[at.kind];
    if (at.row >= lane.first && at.row != 0) lane.rows[at.row - lane.first].is_member = true;
  }
  // Those whose time of waiting ends before `t`.
  void release(std::int64_t t, Out out) {
    for (Lane& lane : lanes_)
      while (!lane.rows.empty() && lane.rows.front().t + lane.wait_ns < t) lane.let_go(out);
  }

 private:
  static constexpr std::size_t rows_max = 65'536;
  struct Row {
    std::int64_t t = 0;
    std::uint64_t serial = 0;
    bool is_member = false;
  };
  struct Lane {
    std::int64_t wait_ns = 0;
    std::uint64_t first = 1;
    std::deque<Row> rows;

    void let_go(Out out) {
      const Row& row = rows.front();
      (row.is_member ? out.folded : out.singles).push_back({row.t + wait_ns, row.t, row.serial});
      rows.pop_front();
      ++first;
    }
  };

  std::array<Lane, model::event_kind_count> lanes_;
};

}  // namespace weft::observe::detect
