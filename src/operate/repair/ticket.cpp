#include "operate/repair/ticket.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::operate::repair {

bool Ticket::has_open_case() const { return std::ranges::any_of(cases, &Followed::is_open); }

bool Ticket::is_orphan() const { return std::ranges::all_of(cases, &Followed::is_moved); }

const Followed& Ticket::lead() const {
  WEFT_CHECK(!cases.empty());
  const auto open = std::ranges::find_if(cases, &Followed::is_open);
  return open != cases.end() ? *open : cases.back();
}

bool needs_reserve(const Ticket& ticket, Stage stage) {
  if (stage == Stage::verifying) return ticket.has_part();
  if (stage == Stage::rma) return ticket.has_part();
  return stage == Stage::forecasting || stage == Stage::drained || stage == Stage::repairing ||
         does_act(stage);
}

std::optional<TtrPart> ttr_part(const Ticket& ticket, Stage stage, std::optional<Stage> next) {
  switch (stage) {
    case Stage::detected:
      return TtrPart::triage;
    case Stage::triaged:
    case Stage::proposed:
    case Stage::blocked:
    case Stage::forecasting:
      return ticket.has_part() ? TtrPart::drain : TtrPart::repair;
    case Stage::draining:
      return TtrPart::drain;
    case Stage::drained:
    case Stage::repairing:
    case Stage::failed:
      return TtrPart::repair;
    case Stage::rma:
      return TtrPart::rma;
    case Stage::verifying:
      return next == Stage::repairing ? TtrPart::repair : TtrPart::verify;
    case Stage::returning:
    case Stage::undoing:
      return TtrPart::verify;
    case Stage::watched:
    case Stage::soaking:
    case Stage::returned:
    case Stage::rolled_back:
    case Stage::closed:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace weft::operate::repair
