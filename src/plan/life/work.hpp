// Work between checkpoints: what is saved, and what an interruption loses.
#pragma once

#include <algorithm>
#include <cmath>

#include "plan/life/simulate.hpp"

namespace weft::plan::life {

// Checkpoints come after every so much work, that is, so many steps; slower steps stretch the
// time between them. Whole intervals cost no loop.
class Work {
 public:
  Work(Ticks every, Ticks stall) : every_(every), stall_(stall) { set_factors(1, 1); }

  // On the step time: by slow steps, by fewer hosts. At least 1.
  void set_factors(double slow, double fewer) {
    fewer_ = fewer;
    factor_ = slow * fewer;
    whole_ = wall_of(every_);
  }
  void run(Ticks wall) {
    if (now_.compute < every_) {
      const Ticks left = every_ - now_.compute;
      const Ticks need = left == every_ ? whole_ : wall_of(left);
      if (wall < need) return add(std::min(left, work_in(wall)), wall);
      add(left, need);
      wall -= need;
    }
    const Ticks write = stall_ - now_.stall;
    if (wall < write) {
      now_.stall += wall;
      return;
    }
    now_.stall = stall_;
    wall -= write;
    save();
    const Ticks cycles = wall / (whole_ + stall_);
    if (cycles > 0) {
      add(every_, whole_);
      now_.stall = stall_;
      saved_.compute += cycles * now_.compute;
      saved_.slow += cycles * now_.slow;
      saved_.fewer += cycles * now_.fewer;
      saved_.stall += cycles * now_.stall;
      now_ = {};
    }
    const Ticks rest = wall - cycles * (whole_ + stall_);
    if (rest >= whole_) {
      add(every_, whole_);
      now_.stall = rest - whole_;
    } else {
      add(std::min(every_, work_in(rest)), rest);
    }
  }
  void save() {
    saved_.compute += now_.compute;
    saved_.slow += now_.slow;
    saved_.fewer += now_.fewer;
    saved_.stall += now_.stall;
    now_ = {};
  }
  Ticks lose() {
    const Ticks lost = now_.compute + now_.slow + now_.fewer + now_.stall;
    now_ = {};
    return lost;
  }
  void write_to(RunResult& result) const {
    const auto part = [&](Part p) -> Ticks& { return result.parts[static_cast<std::size_t>(p)]; };
    part(Part::compute) = saved_.compute;
    part(Part::slow) = saved_.slow;
    part(Part::fewer) = saved_.fewer;
    part(Part::checkpoint) = saved_.stall;
  }

 private:
  struct Spent {
    Ticks compute = 0, slow = 0, fewer = 0, stall = 0;
  };
  Ticks wall_of(Ticks work) const {
    constexpr double most = 4e18;  // longer than any run
    const double wall = std::ceil(static_cast<double>(work) * factor_);
    return factor_ == 1 ? work : static_cast<Ticks>(std::min(wall, most));
  }
  Ticks work_in(Ticks wall) const {
    return factor_ == 1 ? wall : static_cast<Ticks>(static_cast<double>(wall) / factor_);
  }
  void add(Ticks work, Ticks wall) {
    now_.compute += work;
    if (wall == work) return;
    const double fewer_hosts = std::round(static_cast<double>(work) * (fewer_ - 1));
    const Ticks fewer = std::min(wall - work, static_cast<Ticks>(fewer_hosts));
    now_.fewer += fewer;
    now_.slow += wall - work - fewer;
  }

  Ticks every_, stall_, whole_ = 0;
  double factor_ = 1, fewer_ = 1;
  Spent now_, saved_;  // since the last checkpoint; up to it
};

}  // namespace weft::plan::life
