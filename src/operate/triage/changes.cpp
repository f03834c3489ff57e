// Which open cases changed since somebody looked last: to describe all of them costs as much as
// they have members, and most looks find nothing new.
#include <bit>

#include "base/hash.hpp"
#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {

// Changes whenever describe() would say something else: records are only ever added to a case, but
// that those it does not explain may become members by a learned relation.
std::uint64_t Correlator::fingerprint(const OpenCase& c) const {
  Digest digest;
  digest.add(row_count(c) + c.omitted);
  digest.add(std::uint64_t{c.led.size()});
  for (const std::string* text : {&c.name, &c.split_from}) digest.add(*text);
  for (const auto value :
       {static_cast<std::uint64_t>(c.kind), std::uint64_t{c.entity.id},
        static_cast<std::uint64_t>(c.entity.kind), std::uint64_t{c.entity.card}, c.change,
        std::bit_cast<std::uint64_t>(c.confidence), std::uint64_t{c.is_clear ? 1U : 0U}})
    digest.add(value);
  digest.add(c.onset);
  digest.add(c.last);
  // Others may take a part over, and what it says then counts here, too.
  for (const PartId part : c.owned)
    digest.add(std::uint64_t{part.value} * 2 + (states_[part.index()].has_spoken ? 1 : 0));
  return digest.value();
}

Correlator::News Correlator::changes_since(Cursor& known, CaseState state) const {
  News out;
  auto at = known.begin();
  for (const auto& [number, slot] : by_number_) {
    for (; at != known.end() && at->first < number; at = known.erase(at))
      out.gone.push_back(at->first);
    const OpenCase& c = cases_[slot];
    const std::uint64_t now = fingerprint(c);
    const bool is_known = at != known.end() && at->first == number;
    if (!is_known) at = known.emplace_hint(at, number, ~now);
    if (at->second != now) out.changed.push_back({number, describe(c, state)});
    (at++)->second = now;
  }
  for (; at != known.end(); at = known.erase(at)) out.gone.push_back(at->first);
  return out;
}

}  // namespace weft::operate::triage
