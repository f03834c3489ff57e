#include "operate/triage/open_case.hpp"

#include <algorithm>
#include <span>
#include <type_traits>

#include "base/check.hpp"

namespace weft::operate::triage {
namespace {

constexpr std::size_t thin_slack = 64;  // rows that are not worth a look

// Leaves the first and the last `kept` rows of each stream, in their order; how many went.
template <class Row>
std::uint64_t thin_rows(std::vector<Row>& rows, OmittedRows& omitted, std::size_t kept) {
  if (rows.size() <= 2 * kept) return 0;
  const auto said = [&](std::size_t row) -> const Observation& {
    if constexpr (std::is_same_v<Row, LearnedMember>)
      return rows[row].said;
    else
      return rows[row];
  };
  std::map<Stream, std::vector<std::size_t>> streams;
  for (std::size_t i = 0; i < rows.size(); ++i) streams[stream_of(said(i))].push_back(i);
  std::vector<bool> is_out(rows.size());
  std::uint64_t out = 0;
  for (auto& [stream, at] : streams) {
    if (at.size() <= 2 * kept) continue;
    std::ranges::stable_sort(at, {}, [&](std::size_t row) { return said(row).at; });
    const std::span middle = std::span(at).subspan(kept, at.size() - 2 * kept);
    const Observation& first = said(middle.front());
    merge(omitted, {{stream, {first, middle.size(), first.at, said(middle.back()).at}}});
    for (const std::size_t row : middle) is_out[row] = true;
    out += middle.size();
  }
  std::size_t left = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!is_out[i]) rows[left++] = rows[i];
  WEFT_CHECK(left + out == rows.size());
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(left), rows.end());
  return out;
}

}  // namespace

void merge(OmittedRows& to, const OmittedRows& from) {
  for (const auto& [stream, rows] : from) {
    const auto [at, is_new] = to.emplace(stream, rows);
    if (is_new) continue;
    at->second.records += rows.records;
    at->second.first = std::min(at->second.first, rows.first);
    at->second.last = std::max(at->second.last, rows.last);
  }
}

void thin(OpenCase& c, std::size_t rows) {
  if (c.rows() < c.thin_at) return;
  c.omitted += thin_rows(c.members, c.members_omitted, rows) +
               thin_rows(c.unexplained, c.unexplained_omitted, rows) +
               thin_rows(c.led, c.led_omitted, rows);
  c.thin_at = 2 * c.rows() + thin_slack;
}

void append_rows(OpenCase& to, const OpenCase& from) {
  to.members.insert(to.members.end(), from.members.begin(), from.members.end());
  to.unexplained.insert(to.unexplained.end(), from.unexplained.begin(), from.unexplained.end());
  to.led.insert(to.led.end(), from.led.begin(), from.led.end());
  merge(to.members_omitted, from.members_omitted);
  merge(to.unexplained_omitted, from.unexplained_omitted);
  merge(to.led_omitted, from.led_omitted);
  to.omitted += from.omitted;
}

CaseSlot OpenCases::open(CauseKind kind, PartId root, model::Entity entity, std::int64_t onset) {
  WEFT_CHECK(root.valid());
  if (free_.empty()) free_.push_back(rows_.push_back({}));
  const CaseSlot slot = free_.back();
  free_.pop_back();
  OpenCase& c = rows_[slot];
  WEFT_CHECK(!c.is_open);
  c.is_open = true;
  c.kind = kind;
  c.root = root;
  c.entity = entity;
  c.onset = onset;
  c.last = onset;
  c.number = next_number_++;
  by_number_.emplace_hint(by_number_.end(), c.number, slot);
  timers_.push(onset + silent_ns_, slot);
  return slot;
}

void OpenCases::close(CaseSlot slot) {
  OpenCase& c = rows_[slot];
  WEFT_CHECK(c.is_open);
  if (c.suspect.valid() && of_suspect_[c.suspect] == slot) of_suspect_[c.suspect] = {};
  const std::size_t erased = by_number_.erase(c.number);
  WEFT_CHECK(erased == 1);
  c = {};
  free_.push_back(slot);
}

CaseSlot OpenCases::numbered(std::uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? CaseSlot() : found->second;
}

void OpenCases::name_suspect(CaseSlot slot, SuspectId suspect) {
  WEFT_CHECK(rows_[slot].is_open);
  rows_[slot].suspect = suspect;
  of_suspect_[suspect] = slot;
}

std::optional<CaseSlot> OpenCases::pop_silent(std::int64_t now) {
  while (const auto timer = timers_.pop(now)) {
    const auto [due, slot] = *timer;
    if (!rows_[slot].is_open) continue;
    const OpenCase& c = rows_[slot];
    const std::int64_t end = c.last + (c.is_clear ? silent_ns_ : unrepaired_ns_);
    if (end <= due) return slot;
    timers_.push(end, slot);
  }
  return std::nullopt;
}

}  // namespace weft::operate::triage
