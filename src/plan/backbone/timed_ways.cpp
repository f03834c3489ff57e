#include "plan/backbone/timed_ways.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <tuple>

namespace weft::plan::backbone {

TimedWays::TimedWays(const Wan& wan, const Slots& slots)
    : wan_(wan), slots_(slots), into_(wan.sites.size()), out_of_(wan.sites.size()) {
  for (std::uint32_t l = 0; l < wan.link_count(); ++l) {
    into_[wan.to(l)].push_back(l);
    out_of_[wan.from(l)].push_back(l);
  }
  steps_.resize(wan.sites.size() * slots.count);
  departures_.resize(slots.count);
}

// Dijkstra's from what the sites of this slot have to go if they wait, against the links. The
// sender's links are left out: a way leaves it once.
void TimedWays::relax(std::uint32_t slot, std::span<const double> price) {
  using Item = std::tuple<double, std::uint32_t, std::uint32_t>;  // cost, hops, site
  std::priority_queue<Item, std::vector<Item>, std::greater<>> queue;
  for (std::uint32_t site = 0; site < wan_.sites.size(); ++site)
    if (const Step& step = steps_[at(slot, site)]; std::isfinite(step.cost))
      queue.emplace(step.cost, step.hops, site);
  while (!queue.empty()) {
    const auto [cost, hops, site] = queue.top();
    queue.pop();
    if (const Step& step = steps_[at(slot, site)]; step.cost != cost || step.hops != hops) continue;
    for (const std::uint32_t l : into_[site]) {
      const std::uint32_t before = wan_.from(l);
      const Step step{cost + price[l * slots_.count + slot], hops + 1, l};
      if (before == from_ || !(step < steps_[at(slot, before)])) continue;
      steps_[at(slot, before)] = step;
      queue.emplace(step.cost, step.hops, before);
    }
  }
}

void TimedWays::find(const Transfer& transfer, std::uint32_t first, std::span<const double> price) {
  from_ = transfer.from;
  to_ = transfer.to.front();
  end_ = transfer.deadline;
  std::ranges::fill(departures_, Step{});
  for (std::uint32_t slot = end_; slot-- > first;) {
    for (std::uint32_t site = 0; site < wan_.sites.size(); ++site) {
      Step step;
      if (slot + 1 < end_ && site != from_) step = steps_[at(slot + 1, site)];
      step.link = no_link;
      steps_[at(slot, site)] = step;
    }
    steps_[at(slot, to_)] = {.cost = 0};
    relax(slot, price);
    for (const std::uint32_t l : out_of_[from_]) {
      const Step& rest = steps_[at(slot, wan_.to(l))];
      const Step step{rest.cost + price[l * slots_.count + slot], rest.hops + 1, l};
      if (step < departures_[slot]) departures_[slot] = step;
    }
  }
}

std::vector<std::uint32_t> TimedWays::rows(std::uint32_t slot) const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t link = departures_[slot].link, site = from_; site != to_;) {
    if (link == no_link) {
      ++slot;
    } else {
      out.push_back(link * slots_.count + slot);
      site = wan_.to(link);
    }
    link = steps_[at(slot, site)].link;
  }
  return out;
}

}  // namespace weft::plan::backbone
