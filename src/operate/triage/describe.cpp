#include "operate/triage/describe.hpp"

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>
#include <vector>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;
using model::NodeKind;

Relation relation_of(const Board& board, const OpenCase& c, const Observation& said) {
  if (c.kind == CauseKind::congestion) return Relation::pauses_towards;
  if (c.kind == CauseKind::config) return Relation::same_change;
  if ((bit(said.kind) & board.kinds.session) != 0 || said.kind == EventKind::bgp_up ||
      said.kind == EventKind::bfd_up)
    return Relation::session_over;
  if (said.kind == EventKind::probe_loss || said.kind == EventKind::probe_latency ||
      said.kind == EventKind::probe_corruption || said.kind == EventKind::probe_duplicates ||
      said.kind == EventKind::probe_delay)
    return Relation::probe_over;
  if (board.parts.is_cable(said.part)) {
    if (said.part == c.root) return Relation::end_of_link;
    return board.parts.nic_of(board.parts.cable(said.part)).valid() ? Relation::nic_below
                                                                    : Relation::port_of;
  }
  if (said.part == c.root) return Relation::itself;
  if (!board.parts.is_node(said.part)) return Relation::part_of;
  const NodeKind kind = board.parts.fabric().kind(board.parts.node(said.part));
  return kind == NodeKind::host  ? Relation::host_below
         : kind == NodeKind::nic ? Relation::nic_below
                                 : Relation::device_inside;
}

// The ends of a cable, and what else makes streams of one part, are one for a reader. Streams come
// in the order of their parts and kinds, so that those of one row follow each other.
void add_summary(const Parts& parts, const Omitted& omitted, Relation relation,
                 std::vector<Case::Summary>& out) {
  const Observation& said = omitted.sample;
  const model::Entity entity = parts.entity(said.part);
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

void describe_rows(const Board& board, const OpenCase& c, Case& out) {
  // Thinned here, so that the rows do not depend on when that was done last.
  std::optional<OpenCase> thinned;
  if (c.rows() > 2 * board.rows_max) {
    thinned = c;
    thinned->thin_at = 0;
    thin(*thinned, board.rows_max);
  }
  const OpenCase& whole = thinned ? *thinned : c;
  const auto tell = [&](const std::vector<Observation>& said, std::vector<Case::Member>& to) {
    to.reserve(said.size());
    for (const Observation& s : said)
      to.push_back({Timestamp{s.at}, s.serial, relation_of(board, c, s)});
  };
  tell(whole.members, out.members);
  tell(whole.unexplained, out.unexplained);
  for (const LearnedMember& led : whole.led)
    out.members.push_back(
        {Timestamp{led.said.at}, led.said.serial, Relation::learned, led.confidence});
  std::ranges::stable_sort(out.members, {}, &Case::Member::at);
  std::ranges::stable_sort(out.unexplained, {}, &Case::Member::at);
  const auto summarise = [&](const OmittedRows& rows, bool is_led, auto& to) {
    for (const auto& [stream, omitted] : rows)
      add_summary(board.parts, omitted,
                  is_led ? Relation::learned : relation_of(board, c, omitted.sample), to);
  };
  summarise(whole.members_omitted, false, out.members_summarised);
  summarise(whole.led_omitted, true, out.members_summarised);
  summarise(whole.unexplained_omitted, false, out.unexplained_summarised);
}

}  // namespace

const Observation* first_member(const OpenCase& c) {
  const auto first = std::ranges::min_element(
      c.members, {}, [](const Observation& s) { return std::tuple(s.at, s.part.value, s.kind); });
  return first == c.members.end() ? nullptr : &*first;
}

std::string name_of(const Parts& parts, const OpenCase& c) {
  const Observation* first = first_member(c);
  Digest digest;
  digest.add(first == nullptr ? c.onset : first->at);
  if (first != nullptr) {
    digest.add(model::name(parts.fabric(), parts.entity(first->part)));
    digest.add(model::to_text(first->kind));
  }
  return digest.hex().substr(0, 12);
}

Case describe(const Board& board, const Announced& announced, const OpenCase& c, CaseState state) {
  WEFT_CHECK(c.is_open);
  Case out;
  out.state = state;
  out.kind = c.kind;
  if (c.kind == CauseKind::part) {
    WEFT_CHECK(c.suspect.valid());
    out.is_partial = true;
    out.kind = board.suspects[c.suspect].kind;
  }
  out.root = c.entity;
  out.confidence = c.confidence;
  if (c.change != 0) out.change = announced.interpreter.change(c.change);
  describe_rows(board, c, out);
  const Observation* first = first_member(c);
  out.opened = first == nullptr ? Timestamp{c.onset} : Timestamp{first->at};
  if (c.is_clear || c.kind == CauseKind::congestion) out.closed = Timestamp{c.last};
  out.id = c.name.empty() ? name_of(board.parts, c) : c.name;
  out.split_from = c.split_from;
  std::vector<PartId> spoken;
  for (const PartId part : c.owned) {
    const PartState& p = board.states[part];
    if (p.has_spoken) {
      spoken.push_back(part);
      out.suppressed += part == c.root ? 0 : 1;
    } else if (c.suspect.valid() &&
               std::ranges::binary_search(board.suspects.expected(c.suspect), part)) {
      ++out.silent;
    }
  }
  out.maintenance = announced.maintenance.covering(spoken, out.opened);
  if (out.maintenance.empty()) out.maintenance = announced.planned.covering(spoken, out.opened);
  if (!out.maintenance.empty() && state == CaseState::settled) out.state = CaseState::maintenance;
  return out;
}

// Changes whenever describe() would say something else: records are only ever added to a case, but
// that those it does not explain may become members by a learned relation.
std::uint64_t fingerprint(const Board& board, const OpenCase& c) {
  Digest digest;
  digest.add(c.rows() + c.omitted);
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
    digest.add(std::uint64_t{part.value} * 2 + (board.states[part].has_spoken ? 1 : 0));
  return digest.value();
}

}  // namespace weft::operate::triage
