#include "operate/triage/learned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;
using model::NodeId;

constexpr std::int64_t delay_ns_max = 3600 * ns_per_s;
constexpr std::int64_t support_max = 1'000'000'000'000;
const std::vector<std::string> nearness_names{"port", "device", "neighbour"};

// A NIC speaks for its host, as far as it stands in one.
NodeId speaker(const model::Fabric& fabric, NodeId node) {
  if (fabric.is_switch(node)) return node;
  const NodeId host = fabric.host_of(node);
  return host.valid() ? host : node;
}

EventKind read_kind(Reader& reader, std::string_view key, const Rules& rules) {
  const std::vector<std::string> known = model::event_kind_names();
  const auto kind = static_cast<EventKind>(reader.choice(key, known, {}));
  if (!is_trouble(rules, kind) && reader.has(key))
    reader.error(Errc::value, reader.where(key),
                 fmt::format("by the rules {} is not a fault and leads to none",
                             quote(model::to_text(kind))),
                 "remove the relation");
  return kind;
}

void read_delay(Reader& reader, LearnedRelation& out) {
  const std::vector<Token> ends = reader.texts("after");
  if (ends.size() != 2)
    return reader.error(Errc::value, reader.where("after"),
                        fmt::format("\"after\" has {} values", ends.size()),
                        "give the minimum and maximum delay, e.g. [0 s, 9 s]");
  std::array<std::int64_t, 2> ns{};
  for (std::size_t i = 0; i < ns.size(); ++i) {
    const Result<Duration> value = parse_duration(ends[i]);
    if (!value) return reader.error(value.error());
    ns[i] = value->ps / ps_per_ns;
  }
  if (ns[0] < 0 || ns[0] > ns[1] || ns[1] > delay_ns_max)
    return reader.error(Errc::value, reader.where("after"),
                        "\"after\" is not a range of delays within 0 s to 1 h",
                        "give the minimum first, e.g. [0 s, 9 s]");
  std::tie(out.least_ns, out.most_ns) = std::tie(ns[0], ns[1]);
}

LearnedRelation read_one(const Config& config, const Rules& rules, Errors& errors) {
  Reader reader(config, "relation", errors);
  LearnedRelation out;
  out.from = read_kind(reader, "from", rules);
  out.to = read_kind(reader, "to", rules);
  out.at = static_cast<Nearness>(reader.choice("at", nearness_names, {}));
  read_delay(reader, out);
  out.support = static_cast<std::uint64_t>(reader.count("support", {}, 1, support_max));
  out.confidence = reader.number("confidence", {}, 0, 1);
  if (out.from == out.to && reader.has("from") && reader.has("to"))
    reader.error(Errc::value, reader.where("to"), "a kind cannot lead to itself",
                 "use another kind");
  reader.finish();
  return out;
}

std::string delay_text(std::int64_t ns) {
  return ns == 0 ? "0 s" : weft::to_text(Duration{ns * ps_per_ns});
}

auto relation_key(const LearnedRelation& r) { return std::tuple(r.to, r.from, r.at); }

}  // namespace

Spot spot_of(const Parts& parts, PartId part, std::uint8_t end) {
  const model::Fabric& fabric = parts.fabric();
  if (parts.is_cable(part)) {
    const model::LinkId ahead = forward(parts.cable(part));
    return {part, speaker(fabric, end == 0 ? fabric.from(ahead) : fabric.to(ahead))};
  }
  if (parts.is_node(part)) return {part, speaker(fabric, parts.node(part))};
  if (parts.is_congestion(part)) return {part, parts.congested(part)};
  if (parts.is_card(part)) return {part, NodeId(parts.entity(part).id)};
  return {part, {}};
}

std::optional<Nearness> nearness_of_joined(const Parts& parts, const Spot& a, const Spot& b) {
  if (a.part == b.part) return parts.is_cable(a.part) ? Nearness::port : Nearness::device;
  if (!a.device.valid() || !b.device.valid()) return std::nullopt;
  return a.device == b.device ? Nearness::device : Nearness::neighbour;
}

bool is_trouble(const Rules& rules, EventKind kind) {
  const Meaning meaning = rules.event(kind).meaning;
  return meaning != Meaning::nothing && meaning != Meaning::clear && meaning != Meaning::change &&
         meaning != Meaning::planned;
}

LearnedRelations::LearnedRelations(std::vector<LearnedRelation> rows) : rows_(std::move(rows)) {
  std::ranges::sort(rows_, {}, relation_key);
  for (std::size_t i = 0; i < rows_.size();) {
    std::size_t end = i;
    for (; end < rows_.size() && rows_[end].to == rows_[i].to; ++end) {
      reasons_ |= bit(rows_[end].from);
      most_ns_ = std::max(most_ns_, rows_[end].most_ns);
    }
    by_to_[static_cast<std::size_t>(rows_[i].to)] = {i, end - i};
    i = end;
  }
}

Result<LearnedRelations> LearnedRelations::read(const Config& config, const Rules& rules) {
  Errors errors;
  Reader reader(config, "relations", errors);
  std::vector<LearnedRelation> rows;
  std::vector<decltype(relation_key(rows.front()))> seen;
  const Config* list = reader.child("relations");
  if (list == nullptr) {
    reader.error(Errc::parse, reader.where(), "\"relations\" is missing",
                 "use a file written by weft triage --learn");
  } else if (list->kind == Config::Kind::list) {
    for (const Config& item : list->items) {
      const std::size_t before = errors.size();
      rows.push_back(read_one(item, rules, errors));
      if (errors.size() == before &&
          std::ranges::find(seen, relation_key(rows.back())) != seen.end())
        reader.error(Errc::value, item.where, "duplicate relation", "remove one");
      seen.push_back(relation_key(rows.back()));
    }
  } else if (list->kind != Config::Kind::null) {
    reader.error(Errc::value, list->where, "relations is not a list",
                 "begin each entry with \"-\"");
  }
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return LearnedRelations(std::move(rows));
}

std::string to_yaml(const std::vector<LearnedRelation>& relations, std::string_view remark) {
  std::string out;
  for (const std::string_view line : split(remark, '\n')) out += fmt::format("# {}\n", line);
  out += relations.empty() ? "relations: []\n" : "relations:\n";
  for (const LearnedRelation& r : relations)
    out += fmt::format(
        "  - {{from: {}, to: {}, at: {}, after: [{}, {}], support: {}, confidence: {:.2f}}}\n",
        model::to_text(r.from), model::to_text(r.to),
        nearness_names[static_cast<std::size_t>(r.at)], delay_text(r.least_ns),
        delay_text(r.most_ns), r.support, r.confidence);
  return out;
}

}  // namespace weft::operate::triage
