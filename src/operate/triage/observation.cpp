#include "operate/triage/observation.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;

constexpr std::uint8_t tally_max = UINT8_MAX;

}  // namespace

Evidence Observation::evidence() const {
  Evidence out;
  out.at = at;
  out.begin = is_window ? at - 1 : at;
  out.serial = serial;
  out.part = part;
  out.kind = kind;
  out.source = source;
  out.end = end;
  out.is_policy = is_policy;
  out.has_reason = has_reason;
  out.is_indirect = is_indirect;
  return out;
}

void Tally::add(const Evidence& evidence, Meaning meaning) {
  kinds |= bit(evidence.kind);
  ++records;
  switch (meaning) {
    case Meaning::down: {
      if (evidence.at != evidence.begin || evidence.kind == EventKind::interface_down) return;
      auto& count =
          downs[std::size_t{2} * static_cast<std::size_t>(evidence.source) + evidence.end];
      if (count < tally_max) ++count;
      return;
    }
    case Meaning::session:
      policies += evidence.is_policy ? 1 : 0;
      reasons += evidence.has_reason ? 1 : 0;
      return;
    case Meaning::clear:
      ups += evidence.kind == EventKind::link_up || evidence.kind == EventKind::nic_up ? 1 : 0;
      return;
    case Meaning::light:
      ++light;
      ++soft;
      return;
    case Meaning::soft:
      ++soft;
      return;
    case Meaning::loss:
      ++losses;
      return;
    case Meaning::congestion:
      full += evidence.is_indirect || evidence.kind == EventKind::probe_latency ? 0 : 1;
      if (evidence.focus.valid()) vote(evidence.focus, 1);
      return;
    default:
      return;
  }
}

void Tally::add(const Tally& other) {
  for (std::size_t i = 0; i < downs.size(); ++i)
    downs[i] = static_cast<std::uint8_t>(std::min<int>(tally_max, downs[i] + other.downs[i]));
  kinds |= other.kinds;
  records += other.records;
  soft += other.soft;
  losses += other.losses;
  ups += other.ups;
  policies += other.policies;
  reasons += other.reasons;
  light += other.light;
  full += other.full;
  if (other.focus.valid()) vote(other.focus, other.votes);
}

void Tally::vote(PartId cable, std::uint32_t count) {
  WEFT_CHECK(cable.valid());
  if (cable == focus) {
    votes += count;
  } else if (count > votes) {
    focus = cable;
    votes = count - votes;
  } else {
    votes -= count;
  }
}

std::uint32_t Tally::downs_max() const { return *std::ranges::max_element(downs); }

std::uint32_t Tally::observers() const {
  return static_cast<std::uint32_t>(
      std::ranges::count_if(downs, [](std::uint8_t n) { return n > 0; }));
}

Stream stream_of(const Observation& said) {
  const unsigned flags = said.end | unsigned{said.is_policy} << 1 | unsigned{said.has_reason} << 2 |
                         unsigned{said.is_indirect} << 3 | unsigned{said.is_window} << 4 |
                         unsigned{said.is_repeat} << 5;
  return {said.part, said.kind, said.source, flags};
}

}  // namespace weft::operate::triage
