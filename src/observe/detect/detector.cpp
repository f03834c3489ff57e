#include "observe/detect/detector.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <tuple>
#include <utility>

#include "observe/detect/held.hpp"
#include "observe/detect/watch.hpp"

namespace weft::observe::detect {
namespace {

auto order_of(const Event& event) {
  return std::tuple(event.t, index(event.signal), event.entity, event.series,
                    std::bit_cast<std::uint64_t>(event.value), event.source, event.serial);
}
bool is_later(const Event& a, const Event& b) {
  if (a.t != b.t) return a.t > b.t;
  return order_of(b) < order_of(a);
}

auto order_of(const Detection& detection) {
  return std::tuple(detection.told, detection.rule, detection.group, detection.t, detection.phase);
}

}  // namespace

struct Detector::Impl {
  Impl(const model::Fabric& fabric, Rules all_rules, const DetectOptions& all_options)
      : options(all_options), rules(std::move(all_rules)), context(fabric, options.ports_per_card) {
    watches.reserve(rules.size());
    for (std::uint32_t i = 0; i < rules.size(); ++i) add_watch(i);
  }

  void add_watch(std::uint32_t at) {
    const Rule& rule = rules[at];
    watches.emplace_back(rule, at, context, Watch::Bounds{options.events_max, options.members_max},
                         held, counts);
    for (std::size_t i = 0; i < signal_count; ++i)
      if (watches.back().listens_to(Signal(static_cast<std::uint8_t>(i))))
        listeners[i].push_back(at);
    for (std::size_t i = 0; i < rule.suppress.size(); ++i) {
      if (!rule.suppress[i]) continue;
      held.wait_for(static_cast<model::EventKind>(i), rule.wait_ns);
      holders[i].push_back(rule.per);
    }
  }

  // Whether a rule may make it a member rather than let it go.
  bool may_be_folded(const Event& event) const {
    if (is_metric(event.signal)) return false;
    return std::ranges::any_of(holders[index(event.signal)], [&](Part part) {
      return context.part_of(event.entity, part).kind != model::EntityKind::none;
    });
  }

  void process(const Event& event) {
    HeldAt at;
    if (may_be_folded(event))
      at = held.hold(event, {singles, folded}, counts);
    else if (!is_metric(event.signal))
      singles.push_back({event.t.ns, event.t.ns, event.serial});
    for (const std::uint32_t rule : listeners[index(event.signal)])
      watches[rule].take(event, at, detections);
  }

  Event pop() {
    std::ranges::pop_heap(waiting, is_later);
    const Event event = waiting.back();
    waiting.pop_back();
    return event;
  }

  // All before `t` happens.
  void run_before(std::int64_t t) {
    while (!waiting.empty() && waiting.front().t.ns < t) process(pop());
    for (Watch& watch : watches) watch.run_before(t, detections);
    held.release(t, {singles, folded});
    done_before = std::max(done_before, t);
  }

  Output take_output() {
    Output out;
    std::ranges::sort(detections, {}, [](const Detection& d) { return order_of(d); });
    std::ranges::sort(singles);
    out.detections = std::exchange(detections, {});
    for (const Single& single : std::exchange(singles, {})) out.singles.push_back(single.serial);
    std::ranges::sort(folded);
    for (const Single& single : std::exchange(folded, {})) out.folded.push_back(single.serial);
    return out;
  }

  DetectOptions options;
  Rules rules;
  Context context;
  DetectCounts counts;
  Held held;
  std::vector<Watch> watches;
  std::array<std::vector<std::uint32_t>, signal_count> listeners;
  std::array<std::vector<Part>, model::event_kind_count> holders;
  std::vector<Event> waiting;  // a heap, earliest first
  std::int64_t newest = INT64_MIN;
  std::int64_t done_before = INT64_MIN;
  std::vector<Detection> detections;
  std::vector<Single> singles, folded;
};

Detector::Detector(const model::Fabric& fabric, Rules rules, const DetectOptions& options)
    : impl_(std::make_unique<Impl>(fabric, std::move(rules), options)) {}
Detector::Detector(Detector&&) noexcept = default;
Detector& Detector::operator=(Detector&&) noexcept = default;
Detector::~Detector() = default;

void Detector::take(const Event& event) {
  Impl& self = *impl_;
  ++self.counts.events;
  self.newest = std::max(self.newest, event.t.ns);
  // Also what is later than it may be by its time alone, though nobody has looked at that yet.
  if (event.t.ns < std::max(self.done_before, self.newest - self.options.lateness_ns)) {
    ++self.counts.late;
    if (!is_metric(event.signal)) self.singles.push_back({event.t.ns, event.t.ns, event.serial});
    return;
  }
  self.waiting.push_back(event);
  std::ranges::push_heap(self.waiting, is_later);
  if (self.waiting.size() <= self.options.waiting_max) return;
  if (self.waiting.front().t.ns < self.newest - self.options.lateness_ns) {
    self.run_before(self.newest - self.options.lateness_ns);
  } else {
    ++self.counts.hurried;
    self.run_before(self.waiting.front().t.ns + 1);
  }
}

void Detector::advance(Timestamp now) { impl_->newest = std::max(impl_->newest, now.ns); }

Detector::Output Detector::poll() {
  Impl& self = *impl_;
  if (self.newest != INT64_MIN) self.run_before(self.newest - self.options.lateness_ns);
  return self.take_output();
}

Detector::Output Detector::finish() {
  Impl& self = *impl_;
  if (self.newest != INT64_MIN) self.run_before(self.newest + 1);
  for (Watch& watch : self.watches) watch.finish(self.newest, self.detections);
  self.held.release(never, {self.singles, self.folded});
  return self.take_output();
}

const Rules& Detector::rules() const { return impl_->rules; }
const Context& Detector::context() const { return impl_->context; }
const DetectCounts& Detector::counts() const { return impl_->counts; }

}  // namespace weft::observe::detect
