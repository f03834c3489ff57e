// The detector against a plain one, which looks at all events again at every moment, on random
// rules and streams; and against itself with the events in another order.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "observe/detect/test_kit.hpp"

namespace weft::observe::detect {
namespace {

using model::Entity;
using model::EntityKind;

constexpr std::int64_t half = ns_per_s / 2;  // all times are whole halves: edges meet often

struct Told {
  std::vector<Detection> detections;
  std::vector<std::uint64_t> singles;
};

// One rule over all events, by definition.
class Plain {
 public:
  Plain(const Context& context, const Rule& rule, std::uint32_t number,
        const std::vector<Event>& events)
      : context_(context), rule_(rule), number_(number) {
    for (const Event& event : events)
      if (const auto group = group_of(event)) seen_.push_back({event, *group});
    for (const Seen& seen : seen_) agenda_.insert(seen.event.t.ns);
  }

  // Serials that are members only join `folded`.
  std::vector<Detection> run(std::int64_t end, std::set<std::uint64_t>& folded) {
    while (!agenda_.empty() && *agenda_.begin() <= end) {
      now_ = *agenda_.begin();
      agenda_.erase(agenda_.begin());
      moment(folded);
    }
    now_ = end;
    for (auto& [entity, group] : groups_)
      if (group.phase != 0 && !group.is_told) tell(entity, group, Detection::Phase::began);
    return out_;
  }

 private:
  struct Seen {
    Event event;
    Entity group;
  };
  struct Group {
    std::int64_t created = 0, began = 0, off_since = 0;
    int phase = 0;  // quiet, on, off
    bool is_told = false;
    std::vector<std::uint64_t> members;
    std::uint64_t member_count = 0;
  };

  static bool accepts(const Term& term, const Event& event) {
    return term.signals[index(event.signal)] &&
           (term.sources.none() || term.sources[static_cast<std::size_t>(event.source)]);
  }
  bool is_member(const Seen& seen) const {
    return !is_metric(seen.event.signal) && rule_.members[index(seen.event.signal)] &&
           context_.part_of(seen.group, rule_.per) == seen.group;
  }
  std::optional<Entity> group_of(const Event& event) const {
    const bool is_wanted =
        (!is_metric(event.signal) && rule_.members[index(event.signal)]) ||
        std::ranges::any_of(rule_.terms, [&](const Term& term) { return accepts(term, event); });
    if (!is_wanted) return std::nullopt;
    const Entity part = context_.part_of(event.entity, rule_.per);
    if (part.kind != EntityKind::none) return part;
    const Entity device = context_.part_of(event.entity, Part::device);
    if (device.kind == EntityKind::none || device != event.entity) return std::nullopt;
    return device;
  }
  bool is_in(std::int64_t t, std::int64_t window) const { return t <= now_ && t > now_ - window; }
  bool speaks_for(const Seen& seen, const Entity& group) const {
    return seen.group == group || seen.group == context_.part_of(group, Part::device);
  }

  // The samples of each series of the group, in order of time, up to now.
  std::map<std::tuple<Entity, std::uint64_t>, std::vector<const Event*>> series(
      const Term& term, const Entity& group) const {
    std::map<std::tuple<Entity, std::uint64_t>, std::vector<const Event*>> out;
    for (const Seen& seen : seen_)
      if (accepts(term, seen.event) && speaks_for(seen, group) && seen.event.t.ns <= now_)
        out[{seen.event.entity, seen.event.series}].push_back(&seen.event);
    return out;
  }
  static bool keeps(const Term& term, double value) {
    return term.side == Side::above ? value > term.limit : value < term.limit;
  }

  bool holds_count(const Term& term, const Entity& group) const {
    std::set<Entity> parts;
    std::size_t count = 0;
    for (const Seen& seen : seen_) {
      if (!accepts(term, seen.event) || !speaks_for(seen, group) ||
          !is_in(seen.event.t.ns, term.window_ns))
        continue;
      ++count;
      if (!term.distinct) continue;
      const Entity part = context_.part_of(seen.event.entity, *term.distinct);
      if (part.kind != EntityKind::none) parts.insert(part);
    }
    if (term.distinct) count = parts.size();
    if (term.share_of_ports <= 0) return count >= term.at_least;
    return static_cast<double>(count) >= term.share_of_ports * context_.ports(group) - 1e-9;
  }
  bool holds_rate(const Term& term, const Entity& group) const {
    double sum = 0;
    std::size_t entries = 0;
    for (const auto& [key, samples] : series(term, group))
      for (std::size_t i = 0; i < samples.size(); ++i) {
        if (!is_in(samples[i]->t.ns, term.window_ns)) continue;
        ++entries;
        if (!is_metric(samples[i]->signal)) {
          sum += 1;
        } else if (i > 0 && samples[i]->t.ns - samples[i - 1]->t.ns < term.window_ns) {
          sum += std::max(0.0, samples[i]->value - samples[i - 1]->value);
        }
      }
    return entries > 0 && keeps(term, sum / (static_cast<double>(term.window_ns) * 1e-9));
  }
  bool holds_value(const Term& term, const std::vector<const Event*>& samples) const {
    const Event& last = *samples.back();
    if (!is_in(last.t.ns, term.window_ns) || !keeps(term, last.value)) return false;
    std::int64_t since = last.t.ns;
    for (std::size_t i = samples.size() - 1; i-- > 0;) {
      if (!keeps(term, samples[i]->value) || since - samples[i]->t.ns >= term.window_ns) break;
      since = samples[i]->t.ns;
    }
    return last.t.ns - since >= term.for_ns;
  }
  bool holds_change(const Term& term, const std::vector<const Event*>& samples) const {
    std::vector<const Event*> inside;
    for (const Event* sample : samples)
      if (is_in(sample->t.ns, term.window_ns)) inside.push_back(sample);
    return inside.size() > 1 && keeps(term, inside.back()->value - inside.front()->value);
  }
  bool holds_absent(const Term& term, const Entity& group) const {
    for (const Seen& seen : seen_)
      if (accepts(term, seen.event) && speaks_for(seen, group) &&
          is_in(seen.event.t.ns, term.window_ns))
        return false;
    const auto known_since = [&](const Entity& entity) {
      const auto known = groups_.find(entity);
      return known != groups_.end() && is_in(known->second.created, term.window_ns);
    };
    return !known_since(group) && !known_since(context_.part_of(group, Part::device));
  }
  bool holds(const Term& term, const Entity& group) const {
    if (term.kind == TermKind::count) return holds_count(term, group);
    if (term.kind == TermKind::rate) return holds_rate(term, group);
    if (term.kind == TermKind::absent) return holds_absent(term, group);
    return std::ranges::any_of(series(term, group), [&](const auto& row) {
      return term.kind == TermKind::value ? holds_value(term, row.second)
                                          : holds_change(term, row.second);
    });
  }

  void moment(std::set<std::uint64_t>& folded) {
    for (const Seen& seen : seen_)
      if (seen.event.t.ns == now_) appear(seen.group);
    for (auto& [entity, group] : groups_) judge(entity, group, folded);
    for (auto& [entity, group] : groups_)
      if (group.phase != 0 && !group.is_told && group.began + rule_.wait_ns <= now_)
        tell(entity, group, Detection::Phase::began);
    for (auto& [entity, group] : groups_) {
      if (group.phase != 2 || group.off_since + rule_.hold_ns > now_) continue;
      if (!group.is_told) tell(entity, group, Detection::Phase::began);
      tell(entity, group, Detection::Phase::ended);
      group.phase = 0;
      group.member_count = 0;
    }
    forget();
  }
  void appear(const Entity& entity) {
    for (const Entity& one : {entity, context_.part_of(entity, Part::device)})
      if (groups_.try_emplace(one, Group{.created = now_}).second)
        for (const Term& term : rule_.terms) agenda_.insert(now_ + term.window_ns);
    for (const Term& term : rule_.terms) agenda_.insert(now_ + term.window_ns);
    agenda_.insert(now_ + rule_.within_ns);
  }
  void judge(const Entity& entity, Group& group, std::set<std::uint64_t>& folded) {
    if (context_.part_of(entity, rule_.per) != entity) return;
    std::size_t holding = 0;
    for (std::size_t i = 0; i < rule_.terms.size(); ++i)
      if (holds(rule_.terms[i], entity)) holding |= std::size_t{1} << i;
    const bool is_on = rule_.truth[holding];
    if (is_on && group.phase == 0) {
      group.began = now_;
      group.is_told = false;
      agenda_.insert(now_ + rule_.wait_ns);
    }
    if (!is_on && group.phase == 1) {
      group.phase = 2;
      group.off_since = now_;
      agenda_.insert(now_ + rule_.hold_ns);
    }
    if (!is_on) return;
    group.phase = 1;
    for (const Seen& seen : seen_) {
      if (!is_member(seen) || seen.group != entity || !is_in(seen.event.t.ns, rule_.within_ns) ||
          !taken_.insert(seen.event.serial).second)
        continue;
      ++group.member_count;
      group.members.push_back(seen.event.serial);
      if (rule_.suppress[index(seen.event.signal)] && seen.event.t.ns + rule_.wait_ns >= now_)
        folded.insert(seen.event.serial);
    }
  }
  void tell(const Entity& entity, Group& group, Detection::Phase phase) {
    group.is_told = true;
    std::ranges::sort(group.members);
    const Entity of = context_.part_of(entity, rule_.entity);
    out_.push_back({number_,
                    phase,
                    of.kind == EntityKind::none ? entity : of,
                    entity,
                    {phase == Detection::Phase::began ? group.began : group.off_since},
                    {now_},
                    group.members,
                    group.member_count});
    group.members.clear();
  }
  // Groups of which nothing lies in any window, parts first.
  bool is_known(const Entity& entity, const Group& group) const {
    if (group.phase != 0) return true;
    for (const Term& term : rule_.terms)
      if (term.kind == TermKind::absent && is_in(group.created, term.window_ns)) return true;
    return std::ranges::any_of(seen_, [&](const Seen& seen) {
      if (seen.group != entity) return false;
      if (is_member(seen) && is_in(seen.event.t.ns, rule_.within_ns)) return true;
      return std::ranges::any_of(rule_.terms, [&](const Term& term) {
        const bool has_part =
            !term.distinct ||
            context_.part_of(seen.event.entity, *term.distinct).kind != EntityKind::none;
        return accepts(term, seen.event) && has_part && is_in(seen.event.t.ns, term.window_ns);
      });
    });
  }
  void forget() {
    std::erase_if(groups_, [&](const auto& row) {
      return context_.part_of(row.first, rule_.per) == row.first &&
             !is_known(row.first, row.second);
    });
    std::erase_if(groups_, [&](const auto& row) {
      if (context_.part_of(row.first, rule_.per) == row.first) return false;
      const bool has_part = std::ranges::any_of(groups_, [&](const auto& other) {
        return other.first != row.first && context_.part_of(other.first, Part::device) == row.first;
      });
      return !has_part && !is_known(row.first, row.second);
    });
  }

  const Context& context_;
  const Rule& rule_;
  std::uint32_t number_;
  std::vector<Seen> seen_;
  std::set<std::int64_t> agenda_;
  std::map<Entity, Group> groups_;
  std::set<std::uint64_t> taken_;
  std::int64_t now_ = 0;
  std::vector<Detection> out_;
};

auto order_of(const Detection& d) { return std::tuple(d.told, d.rule, d.group, d.t, d.phase); }

Told tell_plainly(const Context& context, const Rules& rules, std::vector<Event> events) {
  std::ranges::sort(events, {}, &Event::t);
  Told out;
  std::set<std::uint64_t> folded;
  const std::int64_t end = events.empty() ? 0 : events.back().t.ns;
  for (std::uint32_t i = 0; i < rules.size(); ++i)
    std::ranges::copy(Plain(context, rules[i], i, events).run(end, folded),
                      std::back_inserter(out.detections));
  for (const Event& event : events)
    if (!is_metric(event.signal) && !folded.contains(event.serial))
      out.singles.push_back(event.serial);
  std::ranges::sort(out.detections, {}, [](const Detection& d) { return order_of(d); });
  std::ranges::sort(out.singles);
  return out;
}

// Polls after each `step` events.
Told detect(const model::Fabric& fabric, const Rules& rules, const std::vector<Event>& events,
            const DetectOptions& options, std::size_t step) {
  Detector detector(fabric, rules, options);
  Told out;
  const auto keep = [&](Detector::Output&& some) {
    std::ranges::copy(some.detections, std::back_inserter(out.detections));
    std::ranges::copy(some.singles, std::back_inserter(out.singles));
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    detector.take(events[i]);
    if (i % step == 0) keep(detector.poll());
  }
  keep(detector.finish());
  CHECK(detector.counts().late == 0);
  CHECK(detector.counts().evicted == 0);
  return out;
}

// Makers of what is random.

constexpr std::array kinds{"link_down", "link_up", "bgp_down", "asic_error", "device_boot"};
constexpr std::array gauges{"rx_power_dbm", "celsius"};

template <class Names>
std::string one_of(Rng& rng, const Names& names) {
  return std::string(names[rng.below(names.size())]);
}
std::string span(Rng& rng, std::uint64_t halves_max, std::uint64_t least) {
  return fmt::format("{} ms", 500 * (least + rng.below(halves_max + 1 - least)));
}

std::string random_term(Rng& rng) {
  const char* side = rng.below(2) == 0 ? "above" : "below";
  std::string within;
  if (rng.below(3) == 0) within = ", within: " + span(rng, 10, 1);
  switch (rng.below(8)) {
    case 0:
      return fmt::format("count: {{kind: [{}, {}], at_least: {}{}}}", one_of(rng, kinds),
                         one_of(rng, kinds), 1 + rng.below(3), within);
    case 1:
      return fmt::format("count: {{kind: {}, at_least: 2, distinct: {}{}}}", one_of(rng, kinds),
                         one_of(rng, part_names), within);
    case 2:
      return fmt::format("count: {{kind: {}, share_of_ports: 0.5{}}}", one_of(rng, kinds), within);
    case 3:
      return fmt::format("rate: {{kind: {}, {}: {}{}}}", one_of(rng, kinds), side,
                         0.25 * static_cast<double>(1 + rng.below(4)), within);
    case 4:
      return fmt::format("rate: {{metric: in_errors, {}: {}{}}}", side, 1 + rng.below(4), within);
    case 5:
      return fmt::format("value: {{metric: {}, {}: {}, for: {}{}}}", one_of(rng, gauges), side,
                         rng.below(5), span(rng, 6, 0), within);
    case 6:
      return fmt::format("change: {{metric: {}, {}: {}{}}}", one_of(rng, gauges), side,
                         1 + rng.below(3), within);
    default:
      return fmt::format("absent: {{kind: {}, source: {}, for: {}}}", one_of(rng, kinds),
                         rng.below(2) == 0 ? "agent" : "[agent, syslog]", span(rng, 12, 1));
  }
}
std::string random_condition(Rng& rng, int depth) {
  const std::uint64_t choice = rng.below(depth > 1 ? 1 : 5);
  if (choice < 2) return "{" + random_term(rng) + "}";
  if (choice == 2) return "{not: " + random_condition(rng, depth + 1) + "}";
  std::string out = choice == 3 ? "{all: [" : "{any: [";
  const std::uint64_t count = 1 + rng.below(3);
  for (std::uint64_t i = 0; i < count; ++i)
    out += (i == 0 ? "" : ", ") + random_condition(rng, depth + 1);
  return out + "]}";
}
Rules random_rules(Rng& rng) {
  Rules out;
  while (out.size() < 3) {
    const std::string per = one_of(rng, part_names);
    const std::uint64_t within = 1 + rng.below(10);
    std::string text = fmt::format(
        "builtin: false\ndetections:\n  - {{name: r{}, record: {{kind: card_fail}}, per: {}, "
        "within: {} ms, hold: {}, when: {}",
        out.size(), per, 500 * within, span(rng, 6, 0), random_condition(rng, 0));
    if (rng.below(2) == 0)
      text += fmt::format(", suppress: [{}], wait: {}", one_of(rng, kinds), span(rng, within, 0));
    const auto rules = testing::try_rules(text + "}");
    if (rules) out.push_back(rules->front());
  }
  return out;
}
std::vector<Event> random_events(Rng& rng, const model::Fabric& fabric) {
  const std::array names{"ctsw:0",        "ctsw:0/0", "ctsw:0/1", "ctsw:0/2", "ctsw:1/3",
                         "ctsw:0/card:1", "rtsw:0/0", "nic:1",    "nic:2",    "host:0"};
  std::vector<Event> out;
  std::set<std::tuple<std::int64_t, Entity, Signal, std::uint64_t>> samples;
  const std::uint64_t count = 20 + rng.below(60);
  for (std::uint64_t i = 0; i < count; ++i) {
    Event event{.t = {static_cast<std::int64_t>(rng.below(80)) * half},
                .entity = testing::entity(fabric, one_of(rng, names)),
                .source = rng.below(2) == 0 ? model::Source::agent : model::Source::syslog,
                .serial = i};
    const std::uint64_t choice = rng.below(3);
    if (choice == 0) {
      event.signal = signal(*model::event_kind(one_of(rng, kinds)));
    } else {
      event.signal =
          signal(choice == 1 ? port::Metric::in_errors : *port::metric(one_of(rng, gauges)));
      event.series = rng.below(2);
      event.value = static_cast<double>(rng.below(12));
      if (!samples.insert({event.t.ns, event.entity, event.signal, event.series}).second) continue;
    }
    out.push_back(event);
  }
  return out;
}

bool same(const std::vector<Detection>& a, const std::vector<Detection>& b) { return a == b; }

}  // namespace

// Four racks under two spines; with two ports a card, each spine has two cards.
//   ctsw:0 {0 1 | 2 3}   ctsw:1 {0 1 | 2 3}
TEST_CASE("detect: random rules on random streams, against the definition") {
  const model::Fabric fabric = testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 2, spines: 2, link: 400 "
      "Gbps}");
  const DetectOptions options{.lateness_ns = 100 * ns_per_s, .ports_per_card = 2};
  const Context context(fabric, options.ports_per_card);
  const Rng seed(7);
  std::size_t detections = 0, folded = 0;
  for (std::uint64_t round = 0; round < test_effort(500); ++round) {
    Rng rng = seed.stream(round);
    const Rules rules = random_rules(rng);
    const std::vector<Event> events = random_events(rng, fabric);
    const Told plain = tell_plainly(context, rules, events);
    Told told = detect(fabric, rules, events, options, 1 + rng.below(7));
    std::ranges::sort(told.singles);
    REQUIRE_MESSAGE(same(told.detections, plain.detections), "round ", round);
    REQUIRE_MESSAGE(told.singles == plain.singles, "round ", round);
    detections += plain.detections.size();
    folded += static_cast<std::size_t>(std::ranges::count_if(
                  events, [](const Event& e) { return !is_metric(e.signal); })) -
              plain.singles.size();
  }
  CHECK(detections > test_effort(1'000));
  CHECK(folded > test_effort(100));
}

TEST_CASE("detect: any order within the lateness and any batches give the same output") {
  const model::Fabric fabric = testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 1, gpus_per_host: 2, spines: 2, link: 400 "
      "Gbps}");
  const DetectOptions options{.lateness_ns = 3 * ns_per_s, .ports_per_card = 2};
  const Rng seed(8);
  for (std::uint64_t round = 0; round < test_effort(300); ++round) {
    Rng rng = seed.stream(round);
    const Rules rules = random_rules(rng);
    std::vector<Event> events = random_events(rng, fabric);
    std::ranges::sort(events, {}, &Event::t);
    const Told first = detect(fabric, rules, events, options, 1);
    // Each comes up to the lateness after its time.
    std::vector<std::pair<std::int64_t, Event>> arrivals;
    for (const Event& event : events)
      arrivals.emplace_back(event.t.ns + static_cast<std::int64_t>(rng.below(3 * ns_per_s)), event);
    std::ranges::sort(arrivals, {}, &std::pair<std::int64_t, Event>::first);
    events.clear();
    for (const auto& [t, event] : arrivals) events.push_back(event);
    const Told second = detect(fabric, rules, events, options, 1 + rng.below(9));
    REQUIRE_MESSAGE(same(first.detections, second.detections), "round ", round);
    REQUIRE_MESSAGE(first.singles == second.singles, "round ", round);
  }
}

}  // namespace weft::observe::detect
