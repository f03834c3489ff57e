#include "serve/case_publisher.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/json_line.hpp"
#include "operate/triage/report.hpp"

namespace weft::serve {

namespace triage = operate::triage;
using model::Case;
using model::CaseState;

namespace {

constexpr std::size_t ended_max = 10'000;  // that are remembered, to be known when said again
constexpr std::int64_t forget_every_ns = ns_per_minute;
constexpr std::size_t forget_least = 1024;
constexpr std::uint32_t rows_kept = 8;  // first and last, of what is said again and again
constexpr std::int64_t late_max_ns = ns_per_minute;

std::string with_standing(JsonObject document, CaseStatus::State state, std::string_view into) {
  return document.add("standing", state).add_if("into", into).text();
}

// All that a document says but for its members, and what follows from each of them.
bool is_same_but_members(const Case& a, const Case& b) {
  const auto head = [](const Case& c) {
    return std::tuple(c.state, c.kind, c.is_partial, c.root, std::string_view(c.change),
                      c.confidence, c.opened, c.closed.has_value(), c.suppressed, c.silent,
                      std::string_view(c.maintenance), std::string_view(c.split_from));
  };
  return head(a) == head(b);
}

// As many rows as the rules count to, at least.
triage::Correlator::Bounds bounds_of(const triage::Rules& rules) {
  const triage::Rules::Counts& n = rules.counts;
  return {std::max({rows_kept, n.flaps, n.soft, n.losses, n.silences, n.faults, n.congestion})};
}

std::int64_t late_ns(const Case& c, Timestamp now) {
  return std::clamp<std::int64_t>((now.ns - c.opened.ns) / 10, 0, late_max_ns);
}

}  // namespace

triage::Rules provisional_rules(const triage::Rules& rules, const ProvisionalSettings& settings) {
  triage::Rules out = rules;
  out.timing.lateness_ns = settings.lateness_ns;
  // Stamps of whole seconds, and clocks that are off by little: they are placed where they came,
  // lest they are too late for whoever does not wait.
  out.clock.behind_ns = settings.lateness_ns;
  out.clock.delay_ns = settings.lateness_ns / 2;
  for (triage::EventRule& event : out.events)
    event.wait_ns =
        std::min(event.wait_ns,
                 event.meaning == triage::Meaning::loss ? settings.loss_wait_ns : settings.wait_ns);
  out.counts.losses = std::min(out.counts.losses, settings.losses);
  return out;
}

CasePublisher::CasePublisher(const triage::Context& settled, const triage::Context& provisional)
    : fabric_(settled.parts.fabric()),
      settled_(
          settled, [this](Case c) { closed_.push_back(std::move(c)); }, bounds_of(settled.rules)),
      provisional_(
          provisional, [this](Case c) { closed_provisional_.push_back(std::move(c)); },
          bounds_of(provisional.rules)) {}

void CasePublisher::add(const model::RecordSet& set, const model::Record& record,
                        std::uint64_t number) {
  const bool is_kept = settled_.add(set, record, number);
  if (!provisional_.add(set, record, number) && !is_kept) return;
  kept_.insert_or_assign(number, Kept{set.ids[record.id], ""});
}

void CasePublisher::advance(Timestamp now) {
  now_ = now;
  settled_.advance(now);
  provisional_.advance(now);
}

std::vector<CaseStatus> CasePublisher::changes() {
  Changes out;
  publish_settled(out);
  Cases closed = std::exchange(closed_provisional_, {});
  for (Case& c : closed) c.state = CaseState::provisional;
  publish_provisional(closed, out);
  if (!provisional_ids_.empty()) settle_provisional(closed, out);
  write_late(out);
  forget();
  WEFT_CHECK(late_.size() <= published_.size() && provisional_ids_.size() <= published_.size());
  std::ranges::sort(out, {}, [](const CaseStatus& s) { return s.body.id; });
  return out;
}

void CasePublisher::take(CaseStatus::State state, const Case& c, Changes& out) {
  for (const auto* rows : {&c.members, &c.unexplained})
    for (const Case::Member& row : *rows)
      if (const auto at = kept_.find(row.serial); at != kept_.end() && at->second.owner != c.id)
        at->second.owner = c.id;
  publish(state, c, out);
}

void CasePublisher::publish_settled(Changes& out) {
  auto [changed, gone] = settled_.changes_since(settled_seen_, CaseState::settled);
  std::set<std::string> before;  // names that cases had
  for (const std::uint64_t number : gone) before.insert(standing_.extract(number).mapped());
  for (const auto& [number, c] : changed) {
    std::string& name = standing_[number];
    if (!name.empty() && name != c.id) before.insert(name);
    name = c.id;
    take(CaseStatus::State::open, c, out);
  }
  for (const Case& c : std::exchange(closed_, {})) {
    take(CaseStatus::State::closed, c, out);
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

// The settled case that holds a record of this one; "" for none.
std::string_view CasePublisher::owner(const Case& c) const {
  for (const Case::Member& row : c.members)
    if (const Kept* record = kept(row.serial); record != nullptr && !record->owner.empty())
      return record->owner;
  return {};
}

void CasePublisher::publish_provisional(const Cases& closed, Changes& out) {
  auto [changed, gone] = provisional_.changes_since(provisional_seen_, CaseState::provisional);
  for (const std::uint64_t number : gone) provisional_open_.erase(number);
  for (auto& [number, c] : changed) {
    publish_provisional(c, out);
    provisional_open_.insert_or_assign(number, std::move(c));
  }
  for (const Case& c : closed) publish_provisional(c, out);
}

void CasePublisher::publish_provisional(const Case& c, Changes& out) {
  if (!owner(c).empty()) return;
  const auto known = published_.find(c.id);
  if (known != published_.end() && known->second.state != CaseStatus::State::provisional &&
      known->second.records >= c.record_count())
    return;  // it was settled, and nothing new was said
  provisional_ids_.insert(c.id);
  publish(CaseStatus::State::provisional, c, out);
}

// The other provisional case that holds its first record; "" for none.
std::string CasePublisher::provisional_holder(const Case& but, const Cases& closed) const {
  WEFT_CHECK(!but.members.empty());
  const Case::Member& first = but.members.front();
  const auto holds = [&](const Case& c) {
    const auto at_once = std::ranges::equal_range(c.members, first.at, {}, &Case::Member::at);
    return c.id != but.id &&
           std::ranges::find(at_once, first.serial, &Case::Member::serial) != at_once.end();
  };
  for (const auto& [number, c] : provisional_open_)
    if (holds(c)) return c.id;
  const auto at = std::ranges::find_if(closed, holds);
  return at == closed.end() ? "" : at->id;
}

// Early cases end as what the settled triage makes of their records, or as part of another early
// one; or as nothing, where the settled one has passed them by.
void CasePublisher::settle_provisional(const Cases& closed, Changes& out) {
  const std::uint64_t waiting = settled_.oldest_waiting();
  std::set<std::string_view> open;
  for (const auto& [number, c] : provisional_open_) open.insert(c.id);
  for (const Case& c : closed) open.insert(c.id);
  std::erase_if(provisional_ids_, [&](const std::string& id) {
    Published& was = published_[id];
    // The settled triage may have given it the same name.
    if (was.state != CaseStatus::State::provisional) return true;
    was.body.id = id;  // of one that was recalled there is nothing else
    std::string into(owner(was.body));
    if (into.empty() && !was.body.members.empty() && !open.contains(id))
      into = provisional_holder(was.body, closed);
    const bool is_over = was.body.members.empty() || was.body.members.back().serial < waiting;
    if (into.empty() && !is_over) return false;
    settle(was, std::move(into), out);
    return true;
  });
}

void CasePublisher::settle(Published& was, std::string into, Changes& out) {
  was.state = into.empty() ? CaseStatus::State::withdrawn : CaseStatus::State::superseded;
  std::string json = with_standing(was.document, was.state, into);
  was.digest = hash_text(json);
  out.push_back({was.state, was.body, std::move(into), std::move(json)});
  end(was);
}

// It is only remembered, to be known when the same is said again.
void CasePublisher::end(Published& was) {
  WEFT_CHECK(is_over(was.state));
  ended_.push_back(was.body.id);
  late_.erase(was.body.id);
  was.document = {};
  for (auto* rows : {&was.body.members, &was.body.unexplained}) *rows = {};
}

void CasePublisher::publish(CaseStatus::State state, const Case& c, Changes& out) {
  Published& known = published_[c.id];
  if (known.state == CaseStatus::State::closed && state != CaseStatus::State::closed) return;
  const bool is_more =
      !known.document.empty() && known.state == state && is_same_but_members(known.body, c);
  known.body = c;
  known.records = c.record_count();
  known.state = state;
  if (is_more && now_.ns - known.written.ns < late_ns(c, now_)) {
    late_.insert(c.id);
    out.push_back({state, c, "", ""});
    return;
  }
  write(known, out);
}

// Nothing where the document would be the same.
void CasePublisher::write(Published& known, Changes& out) {
  const Case& c = known.body;
  ++work_.cases;
  work_.records += c.members.size() + c.unexplained.size();
  known.document = triage::json_object(fabric_, c, [this](std::uint64_t number) {
    const Kept* record = kept(number);
    return record == nullptr ? std::string_view() : std::string_view(record->id);
  });
  std::string json = with_standing(known.document, known.state, "");
  late_.erase(c.id);
  known.written = now_;
  const std::uint64_t digest = hash_text(json);
  const bool is_same = known.digest == digest;
  known.digest = digest;
  if (!is_same) {
    work_.bytes += json.size();
    out.push_back({known.state, c, "", std::move(json)});
  }
  if (known.state == CaseStatus::State::closed) end(known);
}

// Documents that waited long enough.
void CasePublisher::write_late(Changes& out) {
  const std::set<std::string> late = late_;
  for (const std::string& id : late) {
    const auto at = published_.find(id);
    WEFT_CHECK(at != published_.end());
    Published& known = at->second;
    if (now_.ns - known.written.ns >= late_ns(known.body, now_)) write(known, out);
  }
}

std::vector<CaseStatus> CasePublisher::withdraw_stale() {
  Changes out;
  for (auto& [id, was] : published_) {
    if (was.state != CaseStatus::State::open || !was.body.id.empty()) continue;
    was.body.id = id;
    settle(was, "", out);
  }
  return out;
}

std::optional<Case> CasePublisher::find(const std::string& id) const {
  const auto found = published_.find(id);
  if (found == published_.end() || found->second.body.id.empty()) return std::nullopt;
  return found->second.body;
}

const CasePublisher::Kept* CasePublisher::kept(std::uint64_t number) const {
  const auto at = kept_.find(number);
  return at == kept_.end() ? nullptr : &at->second;
}

Result<CaseStatus::State> CasePublisher::restore(const std::string& id, std::string_view json) {
  WEFT_TRY(const JsonLine line, JsonLine::parse(json, {}));
  const std::string standing = line.node().member("standing").text().value_or("");
  WEFT_TRY(const auto state, from_name<CaseStatus::State>({standing, {}}));
  Published& known = published_[id];
  known = {.state = state, .document = {}, .digest = hash_text(json), .body = {}};
  if (state == CaseStatus::State::provisional) provisional_ids_.insert(id);
  if (is_over(state))
    ended_.push_back(id);
  else
    known.document = line.but({"standing", "into"});
  return state;
}

std::optional<Timestamp> CasePublisher::next_due() const {
  const auto settled = settled_.next_due(), early = provisional_.next_due();
  std::optional<Timestamp> out = settled;
  if (early && (!out || *early < *out)) out = early;
  for (const std::string& id : late_) {
    const Published& known = published_.at(id);
    const Timestamp due{known.written.ns + late_ns(known.body, now_)};
    if (!out || due < *out) out = due;
  }
  return out;
}

std::uint64_t CasePublisher::oldest_number() const {
  return std::min(settled_.oldest_serial(), provisional_.oldest_serial());
}

// Records that no triage holds, and cases that can not change any more.
void CasePublisher::forget() {
  for (; ended_.size() > ended_max; ended_.pop_front())
    if (const auto at = published_.find(ended_.front());
        at != published_.end() && is_over(at->second.state))
      published_.erase(at);
  // It looks at every case that is remembered, so it waits until there is enough to forget.
  if (now_.ns - forgotten_.ns < forget_every_ns) return;
  if (kept_.size() < kept_then_ + std::max(forget_least, kept_then_ / 8)) return;
  forgotten_ = now_;
  std::vector<std::uint64_t> held;
  settled_.append_serials(held);
  provisional_.append_serials(held);
  for (const auto& [id, known] : published_)
    for (const auto* rows : {&known.body.members, &known.body.unexplained})
      for (const Case::Member& row : *rows) held.push_back(row.serial);
  std::ranges::sort(held);
  std::erase_if(kept_,
                [&](const auto& row) { return !std::ranges::binary_search(held, row.first); });
  kept_then_ = kept_.size();
}

}  // namespace weft::serve
