#include "operate/triage/diff.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include "base/plural.hpp"
#include "base/text.hpp"
#include "operate/triage/report.hpp"

namespace weft::operate::triage {
namespace {

constexpr std::array<std::string_view, 4> kind_names{"added", "gone", "retraced", "regrouped"};

std::string_view to_text(CaseChange::Kind kind) {
  return kind_names[static_cast<std::size_t>(kind)];
}

// For each case of `from` the one of `to` that has the most of its members, and how many.
using Match = std::pair<std::size_t, std::size_t>;
std::vector<Match> best_matches(const std::vector<Case>& from, const std::vector<Case>& to) {
  std::map<std::uint64_t, std::size_t> holder;
  for (std::size_t i = 0; i < to.size(); ++i)
    for (const Case::Member& member : to[i].members) holder.emplace(member.serial, i);
  std::vector<Match> out;
  for (const Case& c : from) {
    std::map<std::size_t, std::size_t> shared;
    for (const Case::Member& member : c.members)
      if (const auto at = holder.find(member.serial); at != holder.end()) ++shared[at->second];
    Match best{CaseChange::none, 0};
    for (const auto& [i, count] : shared)
      if (count > best.second) best = {i, count};
    out.push_back(best);
  }
  return out;
}

bool is_same_cause(const Case& a, const Case& b) {
  return a.kind == b.kind && a.root == b.root && a.change == b.change &&
         a.is_partial == b.is_partial;
}

std::string cause_text(const model::Fabric& fabric, const std::vector<Case>& cases, std::size_t i) {
  if (i == CaseChange::none) return "-";
  return fmt::format("{} {}", model::to_text(cases[i].kind), root_name(fabric, cases[i]));
}

std::optional<JsonObject> side(const model::Fabric& fabric, const std::vector<Case>& cases,
                               std::size_t i) {
  if (i == CaseChange::none) return std::nullopt;
  return JsonObject()
      .add("id", cases[i].id)
      .add("cause", cause_object(fabric, cases[i]))
      .add("members", cases[i].members.size());
}

}  // namespace

std::vector<CaseChange> diff(const std::vector<Case>& before, const std::vector<Case>& after) {
  const auto forth = best_matches(before, after), back = best_matches(after, before);
  std::vector<CaseChange> out;
  using enum CaseChange::Kind;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto [j, shared] = forth[i];
    if (j == CaseChange::none || back[j].first != i)
      out.push_back({gone, i, CaseChange::none, shared});
    else if (!is_same_cause(before[i], after[j]))
      out.push_back({retraced, i, j, shared});
    else if (shared != before[i].members.size() || shared != after[j].members.size())
      out.push_back({regrouped, i, j, shared});
  }
  for (std::size_t j = 0; j < after.size(); ++j) {
    const std::size_t i = back[j].first;
    if (i == CaseChange::none || forth[i].first != j)
      out.push_back({added, CaseChange::none, j, back[j].second});
  }
  return out;
}

std::string diff_json(const model::Fabric& fabric, const std::vector<Case>& before,
                      const std::vector<Case>& after, const std::vector<CaseChange>& changes) {
  std::string out;
  for (const CaseChange& c : changes)
    out += JsonObject()
               .add("change", to_text(c.kind))
               .add("before", side(fabric, before, c.before))
               .add("after", side(fabric, after, c.after))
               .add("shared", c.shared)
               .text() +
           "\n";
  return out;
}

std::string diff_table(const model::Fabric& fabric, const std::vector<Case>& before,
                       const std::vector<Case>& after, const std::vector<CaseChange>& changes) {
  using Align = Table::Align;
  Table table({{"change", Align::left},
               {"opened", Align::left},
               {"before", Align::left},
               {"after", Align::left},
               {"records before"},
               {"after"},
               {"shared"}});
  for (const CaseChange& c : changes) {
    const Case& any = c.before == CaseChange::none ? after[c.after] : before[c.before];
    const auto count = [](const std::vector<Case>& cases, std::size_t i) {
      return i == CaseChange::none ? std::string("-") : fmt::format("{}", cases[i].members.size());
    };
    table.add({std::string(to_text(c.kind)), weft::to_text(any.opened),
               cause_text(fabric, before, c.before), cause_text(fabric, after, c.after),
               count(before, c.before), count(after, c.after), fmt::format("{}", c.shared)});
  }
  return fmt::format("{} before, {} after, {} changed\n{}", counted(before.size(), "case"),
                     after.size(), changes.size(), changes.empty() ? "" : table.text());
}

}  // namespace weft::operate::triage
