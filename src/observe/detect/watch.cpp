#include "observe/detect/watch.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::observe::detect {
namespace {

using model::Entity;
using model::EntityKind;

NumberPair key_of(const Entity& entity) {
  return {std::uint64_t{entity.id} << 32 | entity.card, static_cast<std::uint64_t>(entity.kind)};
}
std::uint64_t number_of(const Entity& entity) {
  const NumberPair key = key_of(entity);
  return mix64(key.a) + key.b;
}

}  // namespace

Watch::Watch(const Rule& rule, std::uint32_t rule_index, const Context& context,
             const Bounds& bounds, Held& held, DetectCounts& counts)
    : rule_(&rule),
      rule_index_(rule_index),
      context_(&context),
      bounds_(bounds),
      held_(&held),
      counts_(&counts),
      members_(bounds.events_max) {
  for (const Term& term : rule.terms) {
    terms_.emplace_back(term, bounds.events_max, counts);
    listening_ |= term.signals;
  }
  for (std::size_t i = 0; i < rule.members.size(); ++i)
    if (rule.members[i]) listening_.set(i);
}

bool Watch::wants(const Event& event) const {
  if (!is_metric(event.signal) && rule_->members[index(event.signal)]) return true;
  return std::ranges::any_of(terms_, [&](const TermWindow& term) { return term.accepts(event); });
}

void Watch::take(const Event& event, const HeldAt& held, std::vector<Detection>& out) {
  if (!wants(event)) return;
  const Entity part = context_->part_of(event.entity, rule_->per);
  const Entity found =
      part.kind == EntityKind::none ? context_->part_of(event.entity, Part::device) : part;
  // A card says nothing of its ports one by one; a device does, of all it has.
  if (found.kind == EntityKind::none || (part.kind == EntityKind::none && found != event.entity))
    return;
  run_before(event.t.ns, out);
  WEFT_CHECK(now_ <= event.t.ns);  // events come in the order of their times
  if (now_ < event.t.ns) {
    now_ = event.t.ns;
    expire();
  }
  const std::uint32_t at = group_of(found, event.t.ns);
  enter_terms(at, event);
  if (part.kind != EntityKind::none && !is_metric(event.signal) &&
      rule_->members[index(event.signal)])
    add_member(at, event, held);
  touch(at);
}

void Watch::run_before(std::int64_t t, std::vector<Detection>& out) {
  while (now_ < t) {
    settle(out);
    const std::int64_t next = next_moment();
    WEFT_CHECK(next >= now_);
    if (next >= t) return;
    now_ = next;
    expire();
  }
}

void Watch::finish(std::int64_t t, std::vector<Detection>& out) {
  settle(out);
  now_ = std::max(now_, t);
  for (; !tell_.empty(); tell_.pop_front()) tell_due(tell_.front(), out);
}

std::uint32_t Watch::group_of(const Entity& entity, std::int64_t t) {
  if (const auto known = group_by_entity_.find(key_of(entity)); known != group_by_entity_.end())
    return known->second;
  const std::uint32_t at = make_group(entity, t);
  const Entity device = context_->part_of(entity, Part::device);
  if (device == entity || device.kind == EntityKind::none) return at;
  const auto known = group_by_entity_.find(key_of(device));
  const std::uint32_t whole =
      known != group_by_entity_.end() ? known->second : make_group(device, t);
  Group& group = groups_[at];
  group.whole = whole;
  group.next = std::exchange(groups_[whole].part, at);
  if (group.next != none) groups_[group.next].before = at;
  return at;
}

std::uint32_t Watch::make_group(const Entity& entity, std::int64_t t) {
  if (free_groups_.empty()) {
    free_groups_.push_back(static_cast<std::uint32_t>(groups_.size()));
    groups_.emplace_back();
  }
  const std::uint32_t at = free_groups_.back();
  free_groups_.pop_back();
  const std::uint32_t turn = groups_[at].turn;
  groups_[at] = {.entity = entity,
                 .ports = context_->ports(entity),
                 .is_whole = context_->part_of(entity, rule_->per) != entity,
                 .turn = turn + 1};
  group_by_entity_.emplace(key_of(entity), at);
  const auto lose = [this](std::uint32_t group) { lost_entry(group); };
  for (TermWindow& term : terms_) {
    term.reset(at);
    term.begin(at, t, lose);
    groups_[at].entries += term.size(at);
  }
  return at;
}

// What nothing is known of any more is forgotten, and its device with its last part.
void Watch::free_group(std::uint32_t at) {
  Group& group = groups_[at];
  if (group.entries > 0 || group.part != none || group.phase != Phase::quiet || group.is_dirty)
    return;
  WEFT_CHECK(group.untaken == 0);
  group_by_entity_.erase(key_of(group.entity));
  const std::uint32_t whole = group.whole;
  if (whole != none) {
    (group.before == none ? groups_[whole].part : groups_[group.before].next) = group.next;
    if (group.next != none) groups_[group.next].before = group.before;
  }
  ++group.turn;
  free_groups_.push_back(at);
  if (whole != none) free_group(whole);
}

void Watch::enter_terms(std::uint32_t at, const Event& event) {
  const auto lose = [this](std::uint32_t group) { lost_entry(group); };
  for (TermWindow& window : terms_) {
    const Term& term = window.term();
    if (!window.accepts(event)) continue;
    std::uint64_t key = number_of(event.entity) ^ mix64(event.series);
    if (term.distinct) {
      const Entity part = context_->part_of(event.entity, *term.distinct);
      if (part.kind == EntityKind::none) continue;
      key = number_of(part);
    }
    window.add(at, event, key, lose);
    ++groups_[at].entries;
  }
}

void Watch::add_member(std::uint32_t at, const Event& event, const HeldAt& held) {
  if (members_.is_full()) {
    ++counts_->evicted;
    drop_member();
  }
  Group& group = groups_[at];
  const std::uint32_t cell = members_.push(event.t.ns, at, group.chain, {event.serial, held});
  if (group.untaken == 0) group.untaken = cell;
  ++group.entries;
}

// The oldest, which is also the oldest of its group.
void Watch::drop_member() {
  const std::uint32_t at = members_.front().group;
  Group& group = groups_[at];
  if (group.untaken == members_.front_at()) group.untaken = members_.front().next;
  members_.pop(group.chain);
  lost_entry(at);
}

void Watch::lost_entry(std::uint32_t at) {
  WEFT_CHECK(groups_[at].entries > 0);
  --groups_[at].entries;
  touch(at);
}

void Watch::touch(std::uint32_t at) {
  const auto mark = [this](std::uint32_t group) {
    if (std::exchange(groups_[group].is_dirty, true)) return;
    dirty_.push_back(group);
  };
  mark(at);
  for (std::uint32_t part = groups_[at].part; part != none; part = groups_[part].next) mark(part);
}

std::int64_t Watch::next_moment() const {
  std::int64_t next = members_.empty() ? never : members_.front().t + rule_->within_ns;
  for (const TermWindow& term : terms_) next = std::min(next, term.next_expiry());
  if (!tell_.empty()) next = std::min(next, tell_.front().t);
  if (!end_.empty()) next = std::min(next, end_.front().t);
  return next;
}

void Watch::expire() {
  const auto lose = [this](std::uint32_t group) { lost_entry(group); };
  for (TermWindow& term : terms_) term.expire(now_, lose);
  while (!members_.empty() && members_.front().t <= now_ - rule_->within_ns) drop_member();
}

// Looks at all that changed at this moment, then does what is due at it.
void Watch::settle(std::vector<Detection>& out) {
  for (std::size_t i = 0; i < dirty_.size(); ++i) judge(dirty_[i]);
  for (const std::uint32_t at : dirty_) groups_[at].is_dirty = false;
  for (; !tell_.empty() && tell_.front().t <= now_; tell_.pop_front()) tell_due(tell_.front(), out);
  for (; !end_.empty() && end_.front().t <= now_; end_.pop_front()) {
    const Due due = end_.front();
    if (groups_[due.group].phase == Phase::off && groups_[due.group].turn == due.turn)
      end(due.group, out);
  }
  for (const std::uint32_t at : dirty_) {
    const auto known = group_by_entity_.find(key_of(groups_[at].entity));
    if (known != group_by_entity_.end() && known->second == at) free_group(at);
  }
  dirty_.clear();
}

// One that has ended since was told with its end.
void Watch::tell_due(const Due& due, std::vector<Detection>& out) {
  const Group& group = groups_[due.group];
  if (group.phase != Phase::quiet && !group.is_told && group.began + rule_->wait_ns == due.t)
    tell(due.group, Detection::Phase::began, out);
}

bool Watch::is_true(const Group& group, std::uint32_t at) const {
  const std::uint32_t whole = group.whole == none ? at : group.whole;
  std::size_t holding = 0;
  for (std::size_t i = 0; i < terms_.size(); ++i)
    if (terms_[i].holds(at, whole, group.ports)) holding |= std::size_t{1} << i;
  return rule_->truth[holding];
}

void Watch::judge(std::uint32_t at) {
  Group& group = groups_[at];
  if (group.is_whole) return;
  const bool is_on = is_true(group, at);
  if (is_on && group.phase == Phase::quiet) {
    WEFT_CHECK(group.members.empty());  // the last end took them along
    group.began = now_;
    group.is_told = false;
    group.member_count = 0;
    tell_.push_back({now_ + rule_->wait_ns, at, 0});
  }
  if (is_on && group.phase != Phase::on) {
    group.phase = Phase::on;
    ++group.turn;
  }
  if (!is_on && group.phase == Phase::on) {
    group.phase = Phase::off;
    group.off_since = now_;
    end_.push_back({now_ + rule_->hold_ns, at, ++group.turn});
  }
  if (is_on) take_members(group);
}

void Watch::take_members(Group& group) {
  for (; group.untaken != 0; group.untaken = members_[group.untaken].next) {
    const auto& cell = members_[group.untaken];
    ++group.member_count;
    if (group.members.size() < bounds_.members_max)
      group.members.push_back(cell.item.serial);
    else
      ++counts_->members;
    // Those that have waited out are told already.
    if (cell.item.held.row != 0 && rule_->suppress[cell.item.held.kind] &&
        cell.t + rule_->wait_ns >= now_)
      held_->fold(cell.item.held);
  }
}

void Watch::tell(std::uint32_t at, Detection::Phase phase, std::vector<Detection>& out) {
  Group& group = groups_[at];
  const bool is_end = phase == Detection::Phase::ended;
  WEFT_CHECK(group.phase != Phase::quiet && group.is_told == is_end);
  group.is_told = true;
  const Entity told_of = context_->part_of(group.entity, rule_->entity);
  std::vector<std::uint64_t> members = std::exchange(group.members, {});
  std::ranges::sort(members);
  out.push_back({.rule = rule_index_,
                 .phase = phase,
                 .entity = told_of.kind == EntityKind::none ? group.entity : told_of,
                 .group = group.entity,
                 .t = {is_end ? group.off_since : group.began},
                 .told = {now_},
                 .members = std::move(members),
                 .member_count = group.member_count});
}

void Watch::end(std::uint32_t at, std::vector<Detection>& out) {
  WEFT_CHECK(groups_[at].phase == Phase::off);
  if (!groups_[at].is_told) tell(at, Detection::Phase::began, out);
  tell(at, Detection::Phase::ended, out);
  groups_[at].phase = Phase::quiet;
  ++groups_[at].turn;
  free_group(at);
}

}  // namespace weft::observe::detect
