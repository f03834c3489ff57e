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

Trial solve(const Assignment& links, std::span<const Assignment::Flow> flows,
            const Placement& before, bool divided, Assignment::Others others) {
  Trial out{links, std::vector<std::uint32_t>(flows.size(), none), {}};
  for (const Assignment::Flow& flow : flows) out.assignment.add(flow);
  const auto at = [](const std::vector<std::uint32_t>& spines, std::size_t f) {
    return f < spines.size() ? spines[f] : none;
  };
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
  const Assignment::Outcome outcome = tried.assignment.solve(others);
  if (tried.assignment.worst() > worst * (1 - worth_it)) return false;
  // What this solve placed are halves of flows that were placed already.
  tried.outcome.moved += outcome.moved;
  trial = std::move(tried);
  return true;
}

}  // namespace

Placement place(const Assignment& links, std::span<const Assignment::Flow> flows,
                const std::vector<bool>& may_divide, const Placement& before,
                Assignment::Others others) {
  WEFT_CHECK(may_divide.empty() || may_divide.size() == flows.size());
  Trial best = solve(links, flows, before, false, others);
  const double bound = best.outcome.bound;
  if (std::ranges::find(may_divide, true) != may_divide.end()) {
    const bool is_divided =
        std::ranges::any_of(before.second, [](std::uint32_t spine) { return spine != none; });
    Trial divided = is_divided ? solve(links, flows, before, true, others) : best;
    for (int round = 0; round < rounds_max && divide_more(divided, may_divide, others);) ++round;
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
  return out;
}

}  // namespace weft::route
