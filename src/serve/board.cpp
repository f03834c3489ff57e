#include "serve/board.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include "base/json_line.hpp"
#include "operate/triage/report.hpp"

namespace weft::serve {

namespace triage = operate::triage;
using model::Case;
using model::CaseState;

namespace {

constexpr std::string_view standing_key = ",\"standing\":\"";
constexpr std::size_t ended_max = 10'000;  // that are remembered, to be known when said again
constexpr std::int64_t forget_every_ns = ns_per_minute;

// A case's JSON without its closing brace, completed.
std::string with_standing(std::string json, Standing::State state, std::string_view into) {
  json += fmt::format("{}{}\"", standing_key, to_text(state));
  if (!into.empty()) json += fmt::format(R"(,"into":{})", json_string(into));
  return json + "}";
}

}  // namespace

triage::Rules early_rules(const triage::Rules& rules, const EarlySettings& settings) {
  triage::Rules out = rules;
  out.timing.lateness_ns = settings.lateness_ns;
  for (triage::EventRule& event : out.events)
    event.wait_ns =
        std::min(event.wait_ns,
                 event.meaning == triage::Meaning::loss ? settings.loss_wait_ns : settings.wait_ns);
  out.counts.losses = std::min(out.counts.losses, settings.losses);
  return out;
}

std::string_view to_text(Standing::State state) {
  constexpr std::array<std::string_view, 5> names{"provisional", "open", "closed", "superseded",
                                                  "withdrawn"};
  return names[static_cast<std::size_t>(state)];
}

Board::Board(const triage::Ground& patient, const triage::Ground& early)
    : fabric_(patient.parts.fabric()),
      patient_(patient, [this](Case c) { closed_.push_back(std::move(c)); }),
      early_(early, [this](Case c) { closed_early_.push_back(std::move(c)); }) {}

void Board::add(const model::RecordSet& set, const model::Record& record, std::uint64_t number) {
  const bool is_kept = patient_.add(set, record, number);
  if (!early_.add(set, record, number) && !is_kept) return;
  if (kept_.empty()) kept_first_ = number;
  kept_.resize(number - kept_first_);
  kept_.push_back({set.ids[record.id], ""});
}

void Board::advance(Timestamp now) {
  now_ = now;
  patient_.advance(now);
  early_.advance(now);
}

std::vector<Standing> Board::changes() {
  Changes out;
  publish_patient(out);
  Cases closed = std::exchange(closed_early_, {});
  for (Case& c : closed) c.state = CaseState::provisional;
  publish_early(closed, out);
  if (!provisional_.empty()) settle_early(closed, out);
  forget();
  std::ranges::sort(out, {}, [](const Standing& s) { return s.body.id; });
  return out;
}

void Board::take(Standing::State state, const Case& c, Changes& out) {
  for (const auto* rows : {&c.members, &c.unexplained})
    for (const Case::Member& row : *rows)
      if (row.serial >= kept_first_) kept_[row.serial - kept_first_].owner = c.id;
  publish(state, c, out);
}

void Board::publish_patient(Changes& out) {
  auto [changed, gone] = patient_.news(patient_seen_, CaseState::settled);
  std::set<std::string> before;  // names that cases had
  for (const std::uint64_t number : gone) before.insert(standing_.extract(number).mapped());
  for (const auto& [number, c] : changed) {
    std::string& name = standing_[number];
    if (!name.empty() && name != c.id) before.insert(name);
    name = c.id;
    take(Standing::State::open, c, out);
  }
  for (const Case& c : std::exchange(closed_, {})) {
    take(Standing::State::closed, c, out);
    before.erase(c.id);
  }
  if (before.empty()) return;
  // An earlier record may have joined, and the case goes on under the name that it gives.
  for (const auto& [number, name] : standing_) before.erase(name);
  for (const std::string& id : before) {
    Published& was = published_[id];
    settle(was, std::string(owner(was.body)), out);
  }
}

// The patient case that holds a record of this one; "" for none.
std::string_view Board::owner(const Case& c) const {
  for (const Case::Member& row : c.members)
    if (const Kept* record = kept(row.serial); record != nullptr && !record->owner.empty())
      return record->owner;
  return {};
}

void Board::publish_early(const Cases& closed, Changes& out) {
  auto [changed, gone] = early_.news(early_seen_, CaseState::provisional);
  for (const std::uint64_t number : gone) early_open_.erase(number);
  for (auto& [number, c] : changed) {
    publish_early(c, out);
    early_open_.insert_or_assign(number, std::move(c));
  }
  for (const Case& c : closed) publish_early(c, out);
}

void Board::publish_early(const Case& c, Changes& out) {
  if (!owner(c).empty()) return;
  const auto known = published_.find(c.id);
  if (known != published_.end() && known->second.state != Standing::State::provisional &&
      known->second.body.members.size() >= c.members.size())
    return;  // it was settled, and nothing new was said
  provisional_.insert(c.id);
  publish(Standing::State::provisional, c, out);
}

// The other early case that holds its first record; "" for none.
std::string Board::early_holder(const Case& but, const Cases& closed) const {
  const Case::Member& first = but.members.front();
  const auto holds = [&](const Case& c) {
    const auto at_once = std::ranges::equal_range(c.members, first.at, {}, &Case::Member::at);
    return c.id != but.id &&
           std::ranges::find(at_once, first.serial, &Case::Member::serial) != at_once.end();
  };
  for (const auto& [number, c] : early_open_)
    if (holds(c)) return c.id;
  const auto at = std::ranges::find_if(closed, holds);
  return at == closed.end() ? "" : at->id;
}

// Early cases end as what the patient triage makes of their records, or as part of another early
// one; or as nothing, where the patient one has passed them by.
void Board::settle_early(const Cases& closed, Changes& out) {
  const std::uint64_t waiting = patient_.oldest_waiting();
  std::set<std::string_view> open;
  for (const auto& [number, c] : early_open_) open.insert(c.id);
  for (const Case& c : closed) open.insert(c.id);
  std::erase_if(provisional_, [&](const std::string& id) {
    Published& was = published_[id];
    // The patient triage may have given it the same name.
    if (was.state != Standing::State::provisional) return true;
    was.body.id = id;  // of one that was recalled there is nothing else
    std::string into(owner(was.body));
    if (into.empty() && !was.body.members.empty() && !open.contains(id))
      into = early_holder(was.body, closed);
    const bool is_over = was.body.members.empty() || was.body.members.back().serial < waiting;
    if (into.empty() && !is_over) return false;
    settle(was, std::move(into), out);
    return true;
  });
}

void Board::settle(Published& was, std::string into, Changes& out) {
  was.state = into.empty() ? Standing::State::withdrawn : Standing::State::superseded;
  was.json = with_standing(was.json.substr(0, was.json.rfind(standing_key)), was.state, into);
  out.push_back({was.state, was.body, std::move(into), was.json});
}

void Board::publish(Standing::State state, const Case& c, Changes& out) {
  Published& known = published_[c.id];
  if (known.state == Standing::State::closed && state != Standing::State::closed) return;
  ++work_.cases;
  work_.records += c.members.size() + c.unexplained.size();
  std::string json = triage::to_json(fabric_, c, [this](std::uint64_t number) {
    const Kept* record = kept(number);
    return record == nullptr ? std::string_view() : std::string_view(record->id);
  });
  json.pop_back();  // the closing brace
  json = with_standing(std::move(json), state, "");
  known.body = c;
  if (known.json == json) return;
  known.json = std::move(json);
  known.state = state;
  if (state == Standing::State::closed) {
    ended_.push_back(c.id);
    known.body.members.clear();
    known.body.unexplained.clear();
  }
  out.push_back({state, c, "", known.json});
}

std::vector<Standing> Board::forsake() {
  Changes out;
  for (auto& [id, was] : published_) {
    if (was.state != Standing::State::open || !was.body.id.empty()) continue;
    was.body.id = id;
    settle(was, "", out);
  }
  return out;
}

std::optional<Case> Board::find(const std::string& id) const {
  const auto found = published_.find(id);
  if (found == published_.end() || found->second.body.id.empty()) return std::nullopt;
  return found->second.body;
}

const Board::Kept* Board::kept(std::uint64_t number) const {
  const std::uint64_t at = number - kept_first_;
  return at < kept_.size() ? &kept_[at] : nullptr;
}

void Board::recall(const std::string& id, Standing::State state, std::string json) {
  published_[id] = {state, std::move(json), {}};
  if (state == Standing::State::provisional) provisional_.insert(id);
  if (state == Standing::State::closed) ended_.push_back(id);
}

std::optional<Timestamp> Board::next_due() const {
  const auto patient = patient_.next_due(), early = early_.next_due();
  if (!patient || !early) return patient ? patient : early;
  return std::min(*patient, *early);
}

std::uint64_t Board::oldest_number() const {
  return std::min(patient_.oldest_serial(), early_.oldest_serial());
}

// Records that no triage holds, and cases that can not change any more.
void Board::forget() {
  for (; ended_.size() > ended_max; ended_.pop_front()) published_.erase(ended_.front());
  if (now_.ns - forgotten_.ns < forget_every_ns) return;
  forgotten_ = now_;
  const std::uint64_t oldest = oldest_number();
  for (; !kept_.empty() && kept_first_ < oldest; ++kept_first_) kept_.pop_front();
}

}  // namespace weft::serve
