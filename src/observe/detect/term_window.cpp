#include "observe/detect/term_window.hpp"

#include <algorithm>
#include <cmath>

#include "base/check.hpp"

namespace weft::observe::detect {

namespace {

// What one sample may add to a counter's growth, so that sums over a window cannot wrap.
constexpr double growth_max = 0x1p50;

}  // namespace

TermWindow::TermWindow(const Term& term, std::size_t events_max, DetectCounts& counts)
    : term_(&term),
      counts_(&counts),
      has_slots_(term.distinct || term.kind == TermKind::value || term.kind == TermKind::change ||
                 (term.signals >> model::event_kind_count).any()),
      line_(events_max) {}

void TermWindow::reset(std::uint32_t group) {
  if (group >= groups_.size()) groups_.resize(std::size_t{group} + 1);
  groups_[group] = {};
}

void TermWindow::enter(std::uint32_t group, const Event& event, std::uint64_t key) {
  Group& state = groups_[group];
  Item item{.value = event.value};
  if (!has_slots_) {
    line_.push(event.t.ns, group, state.chain, item);
    ++state.good;
    ++state.growth;
    return;
  }
  item.slot = slot_of({group, key});
  Slot& slot = slots_[item.slot];
  item.growth = term_->kind == TermKind::rate ? grow(slot, event.value) : 0;
  state.growth += item.growth;
  const bool is_keeping = keeps_limit(event.value);
  if (!slot.is_run || !is_keeping) slot.since = event.t.ns;
  slot.is_run = is_keeping;
  slot.last = event.value;
  link(slot, line_.push(event.t.ns, group, state.chain, item));
  if (term_->kind == TermKind::count) judge(group, slot, true);
  if (term_->kind == TermKind::value)
    judge(group, slot, is_keeping && event.t.ns - slot.since >= term_->for_ns);
  if (term_->kind == TermKind::change)
    judge(group, slot, slot.entries > 1 && keeps_limit(slot.last - line_[slot.first].item.value));
}

void TermWindow::remove_oldest(std::uint32_t group) {
  Group& state = groups_[group];
  WEFT_CHECK(state.chain.count > 0);
  const Item item = line_[state.chain.first].item;
  const bool is_counted = item.slot == no_slot && term_->kind != TermKind::absent;
  line_.pop(state.chain);
  if (is_counted) {
    WEFT_CHECK(state.good > 0 && state.growth > 0);
    --state.good;
    --state.growth;
  }
  if (item.slot != no_slot) unlink(group, item);
}

void TermWindow::unlink(std::uint32_t group, const Item& item) {
  WEFT_CHECK(groups_[group].growth >= item.growth);
  groups_[group].growth -= item.growth;
  Slot& slot = slots_[item.slot];
  WEFT_CHECK(slot.entries > 0);
  slot.first = item.next;
  if (--slot.entries == 0) {
    judge(group, slot, false);
    slot_by_key_.erase(slot.key);
    free_slots_.push_back(item.slot);
  } else if (term_->kind == TermKind::change) {
    judge(group, slot, slot.entries > 1 && keeps_limit(slot.last - line_[slot.first].item.value));
  }
}

std::uint32_t TermWindow::slot_of(const NumberPair& key) {
  if (const auto known = slot_by_key_.find(key); known != slot_by_key_.end()) return known->second;
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<std::uint32_t>(slots_.size()));
    slots_.emplace_back();
  }
  const std::uint32_t at = free_slots_.back();
  free_slots_.pop_back();
  slots_[at] = {.key = key};
  slot_by_key_.emplace(key, at);
  return at;
}

void TermWindow::judge(std::uint32_t group, Slot& slot, bool is_good) {
  if (slot.is_good == is_good) return;
  slot.is_good = is_good;
  WEFT_CHECK(is_good || groups_[group].good > 0);
  groups_[group].good += is_good ? 1u : ~0u;
}

std::uint64_t TermWindow::grow(const Slot& slot, double value) {
  if (slot.entries == 0) return 0;  // nobody knows what it was before
  if (value < slot.last) ++counts_->resets;
  if (!(value > slot.last)) return 0;
  return static_cast<std::uint64_t>(std::llround(std::min(value - slot.last, growth_max)));
}

void TermWindow::link(Slot& slot, std::uint32_t at) {
  if (slot.entries++ == 0)
    slot.first = at;
  else
    line_[slot.newest].item.next = at;
  slot.newest = at;
}

std::int64_t TermWindow::next_expiry() const {
  return line_.empty() ? never : line_.front().t + term_->window_ns;
}

bool TermWindow::holds(std::uint32_t group, std::uint32_t whole, std::uint32_t ports) const {
  static constexpr Group nothing;
  const Group& own = groups_[group];
  const Group& above = whole == group ? nothing : groups_[whole];
  const std::uint32_t entries = own.chain.count + above.chain.count;
  const std::uint32_t good = own.good + above.good;
  switch (term_->kind) {
    case TermKind::count: {
      if (term_->share_of_ports <= 0) return good >= term_->at_least;
      constexpr double slip = 1e-9;  // a half of 36 is 18, whatever 0.5 rounds to
      const double needed = std::ceil(term_->share_of_ports * ports - slip);
      return good >= std::max(needed, 1.0);
    }
    case TermKind::rate: {
      const double seconds = static_cast<double>(term_->window_ns) * 1e-9;
      const double rate = static_cast<double>(own.growth + above.growth) / seconds;
      return entries > 0 && keeps_limit(rate);
    }
    case TermKind::value:
    case TermKind::change:
      return good > 0;
    case TermKind::absent:
      return entries == 0;
  }
  return false;
}

}  // namespace weft::observe::detect
