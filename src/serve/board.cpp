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
  if (ids_.empty()) ids_first_ = number;
  ids_.resize(number - ids_first_);
  ids_.push_back(set.ids[record.id]);
}

void Board::advance(Timestamp now) {
  patient_.advance(now);
  early_.advance(now);
}

std::vector<Standing> Board::changes() {
  Changes out;
  publish_patient(out);
  std::vector<Case> early = early_.open_cases(CaseState::provisional);
  for (Case& c : std::exchange(closed_early_, {})) {
    c.state = CaseState::provisional;
    early.push_back(std::move(c));
  }
  publish_early(early, out);
  settle_early(early, out);
  forget();
  std::ranges::sort(out, {}, [](const Standing& s) { return s.body.id; });
  return out;
}

void Board::publish_patient(Changes& out) {
  std::vector<Case> open = patient_.open_cases(CaseState::settled);
  open_count_ = open.size();
  const auto take = [&](Standing::State state, const Case& c) {
    for (const auto* rows : {&c.members, &c.unexplained})
      for (const Case::Member& row : *rows) owner_.insert_or_assign(row.serial, c.id);
    publish(state, c, out);
  };
  std::set<std::string> before = std::exchange(standing_, {});
  for (const Case& c : open) {
    take(Standing::State::open, c);
    standing_.insert(c.id);
    before.erase(c.id);
  }
  for (const Case& c : std::exchange(closed_, {})) {
    take(Standing::State::closed, c);
    before.erase(c.id);
  }
  // An earlier record may have joined, and the case goes on under the name that it gives.
  for (const std::string& id : before) settle(published_[id], owner(published_[id].body), out);
}

// The patient case that holds a record of this one; "" for none.
std::string Board::owner(const Case& c) const {
  for (const Case::Member& row : c.members)
    if (const auto found = owner_.find(row.serial); found != owner_.end()) return found->second;
  return "";
}

void Board::publish_early(const std::vector<Case>& early, Changes& out) {
  for (const Case& c : early) {
    if (!owner(c).empty()) continue;
    const auto known = published_.find(c.id);
    if (known != published_.end() && known->second.state != Standing::State::provisional &&
        known->second.body.members.size() >= c.members.size())
      continue;  // it was settled, and nothing new was said
    provisional_.insert(c.id);
    publish(Standing::State::provisional, c, out);
  }
}

// Early cases end as what the patient triage makes of their records, or as part of another early
// one; or as nothing, where the patient one has passed them by.
void Board::settle_early(const std::vector<Case>& early, Changes& out) {
  const std::uint64_t waiting = patient_.oldest_serial();
  std::set<std::string_view> open;
  for (const Case& c : early) open.insert(c.id);
  const auto holder = [&](const std::string& id, const Case::Member& first) {
    for (const Case& c : early)
      if (c.id != id)
        for (const Case::Member& row :
             std::ranges::equal_range(c.members, first.at, {}, &Case::Member::at))
          if (row.serial == first.serial) return c.id;
    return std::string();
  };
  std::erase_if(provisional_, [&](const std::string& id) {
    Published& was = published_[id];
    // The patient triage may have given it the same name.
    if (was.state != Standing::State::provisional) return true;
    std::string into = owner(was.body);
    if (into.empty() && !was.body.members.empty() && !open.contains(id))
      into = holder(id, was.body.members.front());
    was.body.id = id;  // of one that was recalled there is nothing else
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
  std::string json = triage::to_json(fabric_, c, [this](std::uint64_t n) { return id_of(n); });
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

std::string_view Board::id_of(std::uint64_t number) const {
  const std::uint64_t at = number - ids_first_;
  return at < ids_.size() ? std::string_view(ids_[at]) : std::string_view();
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
  const std::uint64_t oldest = oldest_number();
  while (!ids_.empty() && ids_first_ < oldest) {
    ids_.pop_front();
    ++ids_first_;
  }
  owner_.erase(owner_.begin(), owner_.lower_bound(oldest));
  for (; ended_.size() > ended_max; ended_.pop_front()) published_.erase(ended_.front());
}

}  // namespace weft::serve
