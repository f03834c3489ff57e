#include "operate/te/damping.hpp"

#include <algorithm>

namespace weft::operate::te {
namespace {

Duration hold_of(const Damping& damping, std::uint32_t failures) {
  Duration hold = damping.hold;
  for (std::uint32_t i = 1; i < failures && hold < damping.hold_max; ++i) hold = hold * 2;
  return std::min(hold, damping.hold_max);
}

}  // namespace

void LinkHistory::note(model::CableId cable, bool is_up, Time at) {
  if (is_up && !past_.contains(cable)) return;
  Past& past = past_[cable];
  if (past.is_up == is_up) return;
  past.is_up = is_up;
  if (is_up) {
    past.usable = at + hold_of(damping_, past.failures);
    return;
  }
  if (past.failures > 0 && at - past.failed > damping_.forget) past.failures = 0;
  past.failed = at;
  ++past.failures;
}

model::State LinkHistory::state_at(Time now, const model::State& base) const {
  model::State out = base;
  for (const auto& [cable, past] : past_) {
    if (past.is_up && past.usable <= now) continue;
    for (const model::LinkId link : {forward(cable), reverse(forward(cable))})
      out.set(link, {.health = model::Health::down});
  }
  return out;
}

std::optional<Time> LinkHistory::next_release(Time now) const {
  std::optional<Time> out;
  for (const auto& [cable, past] : past_)
    if (past.is_up && past.usable > now && (!out || past.usable < *out)) out = past.usable;
  return out;
}

}  // namespace weft::operate::te
