#include "route/divide.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::route {
namespace {

constexpr double worth_it = 0.01;
constexpr int rounds_max = 8;
constexpr std::uint32_t none = Assignment::none;

struct Trial {
  Assignment assignment;
  std::vector<std::uint32_t> half;  // by flow: the number of its second half, or none
  Assignment::Outcome outcome;
};

std::uint32_t at(const std::vector<std::uint32_t>& spines, std::size_t flow) {
  return flow < spines.size() ? spines[flow] : none;
}

Trial solve(const Assignment& links, std::span<const Assignment::Flow> flows,
            const Placement& before, bool divided, Assignment::Others others) {
  Trial out{links, std::vector<std::uint32_t>(flows.size(), none), {}};
  for (const Assignment::Flow& flow : flows) out.assignment.add(flow);
  const auto assume = [&](std::uint32_t flow, std::uint32_t spine) {
    if (spine != none) out.assignment.assume(flow, spine);
  };
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    if (divided && at(before.second, f) != none) {
      out.half[f] = out.assignment.divide(f);
      assume(out.half[f], before.second[f]);
    }
    assume(f, at(before.first, f));
  }
  out.outcome = out.assignment.solve(others);
  return out;
}

// Divides the flows of the worst links. False, and nothing done, where that is not worth it.
bool divide_more(Trial& trial, const std::vector<bool>& may_divide, Assignment::Others others) {
  const double worst = trial.assignment.worst();
  if (worst <= trial.assignment.floor() * (1 + worth_it)) return false;
  Trial tried = trial;
  bool any = false;
  for (std::uint32_t f = 0; f < trial.half.size(); ++f) {
    if (!may_divide[f] || trial.half[f] != none ||
        trial.assignment.cost_of(f) < worst * (1 - worth_it))
      continue;
    tried.half[f] = tried.assignment.divide(f);
    any = true;
  }
  if (!any) return false;
  tried.assignment.solve(others);
  if (tried.assignment.worst() > worst * (1 - worth_it)) return false;
  trial = std::move(tried);
  return true;
}

// Whether all that the flow went over is live.
bool was_live(const Assignment& assignment, const Placement& before, std::uint32_t flow) {
  const std::uint32_t first = at(before.first, flow), second = at(before.second, flow);
  return first != none && assignment.open(flow, first) &&
         (second == none || assignment.open(flow, second));
}

// By flow, however many solves there were and whatever became of its halves.
void count(Placement& out, const Assignment& assignment, const Placement& before) {
  out.outcome.placed = out.outcome.moved = out.outcome.without = 0;
  for (std::uint32_t f = 0; f < out.first.size(); ++f) {
    if (out.first[f] == none)
      ++out.outcome.without;
    else if (!was_live(assignment, before, f))
      ++out.outcome.placed;
    else if (out.first[f] != at(before.first, f) || out.second[f] != at(before.second, f))
      ++out.outcome.moved;
  }
}

}  // namespace

Placement place(const Assignment& links, std::span<const Assignment::Flow> flows,
                const std::vector<bool>& may_divide, const Placement& before,
                Assignment::Others others) {
  WEFT_CHECK(may_divide.empty() || may_divide.size() == flows.size());
  const bool stay = others == Assignment::Others::stay;
  const bool is_divided =
      std::ranges::any_of(before.second, [](std::uint32_t spine) { return spine != none; });
  Trial best = solve(links, flows, before, false, others);
  const double bound = best.outcome.bound;
  if (stay && is_divided) best = solve(links, flows, before, true, others);
  std::vector<bool> may = may_divide;
  if (stay)
    for (std::uint32_t f = 0; f < may.size(); ++f)
      if (was_live(best.assignment, before, f)) may[f] = false;
  if (std::ranges::find(may, true) != may.end()) {
    Trial divided = is_divided && !stay ? solve(links, flows, before, true, others) : best;
    for (int round = 0; round < rounds_max && divide_more(divided, may, others);) ++round;
    if (divided.assignment.worst() < best.assignment.worst() * (1 - worth_it))
      best = std::move(divided);
  }
  Placement out{
      .first = {}, .second = {}, .worst = best.assignment.worst(), .outcome = best.outcome};
  out.outcome.bound = bound;
  for (std::uint32_t f = 0; f < flows.size(); ++f) {
    out.first.push_back(best.assignment.spine_of(f));
    out.second.push_back(best.half[f] == none ? none : best.assignment.spine_of(best.half[f]));
  }
  count(out, best.assignment, before);
  return out;
}

}  // namespace weft::route
