#include "operate/triage/planned.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;
using model::LinkId;
using model::NodeId;

constexpr std::size_t orders_max = 1'000;  // at one device that are remembered
// Lines that are stamped in whole seconds may seem to come so much before their cause.
constexpr std::int64_t stamp_ns = ns_per_s;
constexpr std::int64_t window_kept_ns = std::int64_t{24} * 60 * ns_per_minute;

std::uint64_t serial_of(const Evidence& order) {
  return order.source == model::Source::controller ? std::numeric_limits<std::uint64_t>::max()
                                                   : order.serial;
}

}  // namespace

bool PlannedChanges::is_near(std::int64_t at, std::int64_t order) const {
  return at >= order - stamp_ns && at - order <= rules_.timing.change_ns;
}

void PlannedChanges::drain(std::vector<Plan>& plans, const Evidence& order) const {
  const bool is_window = order.kind == EventKind::maintenance;
  const bool is_bounded = order.until > order.begin;
  if (!is_window && !is_bounded)
    for (Plan& plan : plans)
      if (plan.until == forever && !plan.is_window) {
        plan.from = std::min(plan.from, order.begin);
        plan.ordered = std::max(plan.ordered, order.begin);
        return;
      }
  if (plans.size() >= plans_max) plans.erase(plans.begin());
  plans.push_back({.from = order.begin,
                   .until = is_bounded ? order.until : forever,
                   .ordered = order.begin,
                   .serial = serial_of(order),
                   .is_window = is_window});
}

void PlannedChanges::undrain(std::vector<Plan>& plans, const Evidence& order) const {
  bool was_out = false;
  for (Plan& plan : plans)
    if (plan.from <= order.begin && order.begin < plan.until) {
      plan.until = order.begin;
      was_out = true;
    }
  if (!was_out)  // whoever drained it did not say so
    plans.push_back({.from = order.begin,
                     .until = order.begin,
                     .ordered = order.begin,
                     .serial = serial_of(order)});
}

std::vector<PartId> PlannedChanges::add(const Evidence& order, std::string_view name) {
  WEFT_CHECK(order.part.valid());
  const model::Entity entity = parts_.entity(order.part);
  std::vector<PartId> about = parts_under(parts_, suspects_, entity);
  for (const PartId part : about) {
    std::vector<Plan>& plans = plans_[part];
    if (order.kind == EventKind::undrain)
      undrain(plans, order);
    else
      drain(plans, order);
    if (!parts_.is_cable(part)) continue;
    const LinkId link = forward(parts_.cable(part));
    for (const NodeId end : {parts_.fabric().from(link), parts_.fabric().to(link)}) {
      auto& times = orders_[parts_.of(end)];
      if (!times.empty() && times.back() == order.begin) continue;
      times.push_back(order.begin);
      if (times.size() > orders_max) times.pop_front();
    }
  }
  const Timestamp at{order.begin};
  if (order.kind == EventKind::maintenance)
    windows_.announce(std::string(name), at,
                      order.until > order.begin ? Timestamp{order.until} : model::still_open,
                      about);
  else if (order.kind == EventKind::undrain)
    windows_.end(about, at);
  return about;
}

bool PlannedChanges::explains(PartId part, EventKind kind, std::int64_t at, bool is_policy) const {
  const auto found = plans_.find(part);
  if (found == plans_.end()) return false;
  const Meaning meaning = rules_.event(kind).meaning;
  return std::ranges::any_of(found->second, [&](const Plan& plan) {
    const bool is_over = plan.until != forever && at - plan.until > rules_.timing.change_ns;
    // What was lost before may be why the order was given; only orders close sessions by policy.
    const std::int64_t lead = is_policy ? rules_.timing.change_ns : stamp_ns;
    if (is_over || at < plan.from - lead) return false;
    const bool is_back = plan.until != forever && is_near(at, plan.until);
    switch (meaning) {
      case Meaning::session:
        return true;
      case Meaning::down:
        return !plan.is_window && (is_near(at, plan.ordered) || is_back);
      case Meaning::clear:
        return !plan.is_window && is_back;
      default:
        return false;
    }
  });
}

bool PlannedChanges::explains_commit(PartId device, std::int64_t at, std::uint64_t change) const {
  if (change != 0) return false;
  const auto found = orders_.find(device);
  return found != orders_.end() &&
         std::ranges::any_of(found->second, [&](std::int64_t order) { return is_near(at, order); });
}

void PlannedChanges::forget(std::int64_t now) {
  const std::int64_t kept = 4 * rules_.timing.change_ns + rules_.timing.lateness_ns;
  if (now < forgotten_ + rules_.timing.change_ns || now < kept) return;
  forgotten_ = now;
  const auto is_past = [&](std::int64_t t) { return t != forever && t < now - kept; };
  // Cases that began inside a window may go on for long after it.
  for (auto& [part, plans] : plans_)
    std::erase_if(plans, [&](const Plan& plan) {
      return is_past(plan.until) && (!plan.is_window || plan.until < now - window_kept_ns);
    });
  std::erase_if(plans_, [](const auto& row) { return row.second.empty(); });
  for (auto& [device, times] : orders_)
    while (!times.empty() && is_past(times.front())) times.pop_front();
  std::erase_if(orders_, [](const auto& row) { return row.second.empty(); });
}

std::uint64_t PlannedChanges::oldest_serial() const {
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  for (const auto& [part, plans] : plans_)
    for (const Plan& plan : plans) oldest = std::min(oldest, plan.serial);
  return oldest;
}

}  // namespace weft::operate::triage
