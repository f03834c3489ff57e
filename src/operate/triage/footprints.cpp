#include "operate/triage/footprints.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::operate::triage {

Footprints::Footprints(const Suspects& suspects, const Rules& rules)
    : suspects_(suspects), rules_(rules), alarms_(suspects.size()), cases_(suspects.size()) {
  for (std::size_t i = 0; i < cause_kind_count; ++i) {
    const CauseRule& rule = rules.causes[i];
    worth_max_[i] = std::max(rules.gain, *std::ranges::max_element(rule.direct));
    price_max_ = std::max(price_max_, rule.price);
  }
}

void Footprints::add_alarm(PartId part) {
  for (const SuspectId suspect : suspects_.of(part)) ++alarms_[suspect];
}

void Footprints::remove_alarm(PartId part) {
  for (const SuspectId suspect : suspects_.of(part)) {
    WEFT_CHECK(alarms_[suspect] > 0);
    --alarms_[suspect];
  }
}

void Footprints::add_case(PartId root, std::int64_t onset) {
  roots_.emplace_back(onset, root);
  for (const SuspectId suspect : suspects_.of(root)) ++cases_[suspect];
}

// Decisions look back from evidence that may itself have waited for long.
void Footprints::forget_cases(std::int64_t now) {
  const std::int64_t kept = rules_.timing.reboot_ns + 2 * rules_.timing.blip_ns;
  while (!roots_.empty() && roots_.front().first < now - kept) {
    for (const SuspectId suspect : suspects_.of(roots_.front().second)) {
      WEFT_CHECK(cases_[suspect] > 0);
      --cases_[suspect];
    }
    roots_.pop_front();
  }
}

}  // namespace weft::operate::triage
