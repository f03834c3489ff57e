// Cases that go on for weeks: what is said again and again is counted, and its first and last
// records are kept.
#include <algorithm>
#include <span>
#include <type_traits>

#include "operate/triage/correlator.hpp"

namespace weft::operate::triage {
namespace {

constexpr std::size_t thin_slack = 64;  // rows that are not worth a look

}  // namespace

Correlator::Stream Correlator::stream_of(const Observation& said) {
  const unsigned flags = said.end | unsigned{said.is_policy} << 1 | unsigned{said.has_reason} << 2 |
                         unsigned{said.is_indirect} << 3 | unsigned{said.is_window} << 4 |
                         unsigned{said.is_repeat} << 5;
  return {said.part, said.kind, said.source, flags};
}

void Correlator::merge(OmittedRows& to, const OmittedRows& from) {
  for (const auto& [stream, rows] : from) {
    const auto [at, is_new] = to.emplace(stream, rows);
    if (is_new) continue;
    at->second.records += rows.records;
    at->second.first = std::min(at->second.first, rows.first);
    at->second.last = std::max(at->second.last, rows.last);
  }
}

// Leaves the first and the last rows of each stream, in their order; how many went.
template <class Row>
std::uint64_t Correlator::thin(std::vector<Row>& rows, OmittedRows& omitted) const {
  if (rows.size() <= 2 * bounds_.rows) return 0;
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
    if (at.size() <= 2 * bounds_.rows) continue;
    std::ranges::stable_sort(at, {}, [&](std::size_t row) { return said(row).at; });
    const std::span middle(at.begin() + static_cast<std::ptrdiff_t>(bounds_.rows),
                           at.end() - static_cast<std::ptrdiff_t>(bounds_.rows));
    const Observation& first = said(middle.front());
    merge(omitted, {{stream, {first, middle.size(), first.at, said(middle.back()).at}}});
    for (const std::size_t row : middle) is_out[row] = true;
    out += middle.size();
  }
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!is_out[i]) rows[kept++] = rows[i];
  rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(kept), rows.end());
  return out;
}

// Cost: amortised O(log streams) a record, for the case must have doubled since the last time.
void Correlator::thin(OpenCase& c) const {
  if (row_count(c) < c.thin_at) return;
  c.omitted += thin(c.members, c.members_omitted) + thin(c.unexplained, c.unexplained_omitted) +
               thin(c.led, c.led_omitted);
  c.thin_at = 2 * row_count(c) + thin_slack;
}

// The ends of a cable, and what else makes streams of one part, are one for a reader. Streams come
// in the order of their parts and kinds, so that those of one row follow each other.
void Correlator::add_summary(const Omitted& omitted, Relation relation,
                             std::vector<Case::Summary>& out) const {
  const Observation& said = omitted.sample;
  const model::Entity entity = parts_.entity(said.part);
  const auto is_same = [&](const Case::Summary& row) {
    return row.entity == entity && row.kind == said.kind && row.source == said.source &&
           row.relation == relation;
  };
  if (out.empty() || !is_same(out.back())) {
    out.push_back({entity,
                   said.kind,
                   said.source,
                   relation,
                   omitted.records,
                   {omitted.first},
                   {omitted.last}});
    return;
  }
  out.back().records += omitted.records;
  out.back().first.ns = std::min(out.back().first.ns, omitted.first);
  out.back().last.ns = std::max(out.back().last.ns, omitted.last);
}

// Of a case that was split: what it counts goes where the rows of the same part went.
void Correlator::place_omitted(const OpenCase& whole) {
  for (const OmittedRows* rows : {&whole.members_omitted, &whole.unexplained_omitted})
    for (const auto& [stream, omitted] : *rows) {
      const std::uint32_t owner = states_[std::get<PartId>(stream).index()].owner;
      if (owner == none) {
        counts_.dismissed += omitted.records;
        continue;
      }
      OpenCase& c = cases_[owner];
      merge(explains(c, omitted.sample.kind) ? c.members_omitted : c.unexplained_omitted,
            {{stream, omitted}});
      c.omitted += omitted.records;
    }
  for (const auto& [stream, omitted] : whole.led_omitted) counts_.dismissed += omitted.records;
}

}  // namespace weft::operate::triage
