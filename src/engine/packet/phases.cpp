#include "engine/packet/phases.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "base/check.hpp"
#include "engine/packet/build.hpp"
#include "engine/packet/loads.hpp"
#include "engine/packet/phase_classes.hpp"
#include "engine/packet/pristine.hpp"
#include "engine/packet/shard.hpp"
#include "engine/packet/simulator.hpp"

namespace weft::engine::packet {
namespace {

bool is_chancy(const World& world) {
  const Options& o = world.options;
  return o.congestion != Congestion::none || o.balance != Balance::path || o.ecn.on ||
         !world.loss.empty();
}

// What a group did, counted once however often it is repeated.
struct GroupOutcome {
  Ps at = 0;                     // when it was over, from its start
  std::vector<MessageEnd> ends;  // from its start, phase by phase
  Counters counters;
  Conservation conservation;
  std::vector<TierCounters> tiers;
  std::vector<LosslessDrops> lossless_drops;
  std::vector<std::pair<std::uint32_t, LinkCounters>> links;
  LinkLoads loads;  // where they are recorded
  std::uint64_t times = 0;
};

// What happens in a group after certain things have begun in it, as long as nothing else does.
struct Known {
  struct Output {
    Ps t;  // from the group's start
    std::uint32_t slot, index;
    Dependent::When when;
  };
  using Key = std::vector<std::uint32_t>;
  std::map<Key, Known*> after;  // by what begins next, and when
  bool simulated = false;
  Ps until = 0;  // all outputs up to this time are there
  std::vector<Output> outputs;
  std::unique_ptr<GroupOutcome> over;
};

// Things that begin at one time: phases that join the group, and events outside that its messages
// waited for.
struct Beginning {
  Ps t;
  std::uint64_t turn;  // among all
  std::vector<std::uint32_t> phases, messages;
};

// Phases that share links, from when the first begins until they are over.
struct Group {
  Ps start = 0;
  std::vector<Beginning> history;
  std::vector<std::uint32_t> phases;  // by slot
  std::size_t messages = 0;           // of all
  Beginning now{};                    // not yet part of the history
  bool merged = false;                // what is known of its history must be looked for anew
  Known* known = nullptr;
  std::size_t told = 0;                 // outputs of `known`
  std::unique_ptr<Shard> shard;         // while it is simulated
  LoadRecorder recorder;                // of the shard
  std::vector<std::uint32_t> recorded;  // links that the phases use
  std::size_t phases_recorded = 0;      // of `phases`
  Ps over = never;  // when simulated and all messages have ended, from its start
  Ps next = never;  // when something happens in it
};

class PhaseRun {
 public:
  PhaseRun(World& world, std::span<const Phase> phases, Repeat repeat, Progress& progress,
           PhaseCounts& counts)
      : world_(world),
        set_(world.set),
        phases_(phases),
        repeat_(repeat),
        progress_(progress),
        counts_(counts),
        classes_(world, phases),
        pristine_(world),
        shape_(wheel_shape(world, 1)),
        idle_(is_chancy(world) ? idle_reset : 0),
        owner_(classes_.resource_count(), nullptr),
        group_of_(phases.size(), nullptr),
        slot_(phases.size(), none),
        waits_(set_.size()),
        ends_(set_.size()),
        loads_(world.options.load_windows, world.fabric.link_count()) {
    world_.phases = classes_.phase_by_message();
    counts_ = {.phases = phases.size()};
    totals_.links.resize(world_.fabric.link_count());
    totals_.tiers.resize(world_.fabric.tiers().size());
    scratch_ = totals_;
  }

  void run();
  std::optional<PacketRunResult> result();

 private:
  struct Fired {
    std::uint32_t message;
    Dependent::When when;
  };

  // Messages outside phases.
  void begin();
  void end_join(std::uint32_t message);
  void tell(const Fired& event);
  void tell_all();
  void tell_joins();
  // Groups.
  bool advance(Group& group, Ps until);
  bool replay(Group& group, Ps until);
  bool simulate(Group& group, Ps until);
  void take_outputs(Group& group);
  enum class Until : std::uint8_t { time, output };
  void run_shard(Group& group, Ps until, Until what);
  void record_loads(Group& group);
  void find_recorded(Group& group);
  void enter(std::uint32_t phase);
  void merge(Group& into, Group& other);
  void deliver();
  void apply(Group& group);
  void name_slots(Group& group, const Beginning& beginning);
  Known::Key key_of(const Group& group, const Beginning& beginning) const;
  Known& next_known(Known& known, const Known::Key& key);
  void start_shard(Group& group);
  void inject(Group& group, const Beginning& beginning);
  void drop_shard(Group& group);
  bool quiet(const Group& group);
  void close(Group& group);
  std::unique_ptr<GroupOutcome> outcome_of(Group& group);
  void add(const GroupOutcome& outcome);
  void schedule(Group& group);

  World& world_;
  const MessageSet& set_;
  std::span<const Phase> phases_;
  Repeat repeat_;
  Progress& progress_;
  PhaseCounts& counts_;
  PhaseClasses classes_;
  Pristine pristine_;
  WheelShape shape_;
  Ps idle_;
  Ps now_ = 0;
  std::uint64_t turns_ = 0;
  double bytes_done_ = 0;
  bool failed_ = false;

  std::vector<Group*> owner_;     // by resource
  std::vector<Group*> group_of_;  // by phase
  std::vector<std::uint32_t> slot_;
  std::vector<std::uint32_t> waits_;  // of messages outside phases
  std::vector<MessageEnd> ends_;
  std::map<Group*, std::unique_ptr<Group>> groups_;
  // In the order of their making, so that nothing depends on addresses.
  std::set<std::pair<std::pair<Ps, std::uint64_t>, Group*>> agenda_;
  std::priority_queue<std::pair<Ps, std::uint32_t>, std::vector<std::pair<Ps, std::uint32_t>>,
                      std::greater<>>
      joins_;
  std::vector<Fired> fired_;
  std::vector<std::uint32_t> inputs_;  // messages in phases
  std::vector<std::unique_ptr<Shard>> idle_shards_;
  LoadSum loads_;
  std::deque<Known> known_{1};  // the first: before anything has begun
  PacketRunResult totals_, scratch_;
};

// Messages outside phases.

void PhaseRun::begin() {
  for (std::uint32_t m = 0; m < set_.size(); ++m) {
    const Message& message = set_.messages[m];
    waits_[m] = message.waits;
    if (classes_.phase_of(m) == none && message.waits == 0)
      joins_.emplace(message.not_before_ps + Ps{message.delay_ns} * 1000, m);
  }
}

void PhaseRun::end_join(std::uint32_t message) {
  ends_[message] = {now_, now_, now_};
  fired_.push_back({message, Dependent::When::arrived});
  fired_.push_back({message, Dependent::When::acknowledged});
}

// Something has happened to a message: those outside its phase that wait for it hear of it.
void PhaseRun::tell(const Fired& event) {
  const std::uint32_t phase = classes_.phase_of(event.message);
  for (const Dependent d : set_.dependents_of(event.message)) {
    if (d.when != static_cast<std::uint32_t>(event.when)) continue;
    const std::uint32_t theirs = classes_.phase_of(d.message);
    if (theirs != none) {
      if (theirs != phase) inputs_.push_back(d.message);
      continue;
    }
    if (--waits_[d.message] > 0) continue;
    const Message& next = set_.messages[d.message];
    const Ps due = std::max(now_ + Ps{next.delay_ns} * 1000, next.not_before_ps);
    if (due <= now_) {
      end_join(d.message);
    } else {
      joins_.emplace(due, d.message);
    }
  }
}

void PhaseRun::tell_joins() {
  while (!joins_.empty() && joins_.top().first <= now_) {
    const std::uint32_t message = joins_.top().second;
    joins_.pop();
    end_join(message);
  }
}

void PhaseRun::tell_all() {
  for (std::size_t i = 0; i < fired_.size(); ++i) {
    const Fired event = fired_[i];
    tell(event);
  }
  fired_.clear();
}

// Groups.

void PhaseRun::schedule(Group& group) {
  const std::uint64_t turn = group.history.front().turn;
  agenda_.erase({{group.next, turn}, &group});
  if (group.shard != nullptr) {
    const Ps event = group.shard->next_time();
    const Ps next = std::min(event, group.over);
    group.next = next == never ? never : group.start + next;
  } else if (group.told < group.known->outputs.size()) {
    group.next = group.start + group.known->outputs[group.told].t;
  } else if (group.known->over != nullptr) {
    group.next = group.start + group.known->over->at;
  } else {
    group.next = group.start + group.known->until + 1;
  }
  if (group.next != never) agenda_.insert({{group.next, turn}, &group});
}

// Everything up to and with `until`; where something is told of, up to its time. False: it is over.
bool PhaseRun::advance(Group& group, Ps until) {
  const bool goes_on = group.shard != nullptr ? simulate(group, until) : replay(group, until);
  if (goes_on) schedule(group);
  return goes_on;
}

bool PhaseRun::replay(Group& group, Ps until) {
  const Known& known = *group.known;
  for (; group.told < known.outputs.size(); ++group.told) {
    const Known::Output& output = known.outputs[group.told];
    if (group.start + output.t > until) return true;
    fired_.push_back({phases_[group.phases[output.slot]].first + output.index, output.when});
  }
  if (known.over != nullptr) {
    if (group.start + known.over->at > until) return true;
    close(group);
    return false;
  }
  if (group.start + known.until >= until) return true;
  // Last time something else began here.
  start_shard(group);
  run_shard(group, known.until + 1, Until::time);
  group.shard->outputs().clear();
  return simulate(group, until);
}

bool PhaseRun::simulate(Group& group, Ps until) {
  Shard& shard = *group.shard;
  const Ps last = until - group.start;
  if (group.over == never) {
    run_shard(group, last + 1, Until::output);
    if (!shard.outputs().empty()) {
      now_ = group.start + shard.now();
      run_shard(group, shard.now() + 1, Until::time);
      take_outputs(group);
    }
    if (shard.messages_over() == group.messages) {
      Ps end = 0;
      for (const std::uint32_t p : group.phases)
        for (std::uint32_t m = phases_[p].first; m < phases_[p].last; ++m)
          end = std::max(end, world_.ends[m].end);
      group.over = end + idle_;
    }
  }
  if (group.over == never) return true;
  // What has just been told of may make something begin.
  const Ps clock = fired_.empty() ? last : std::min(last, now_ - group.start);
  run_shard(group, std::min(clock, group.over) + 1, Until::time);
  if (group.over > clock) return true;
  if (quiet(group)) {
    close(group);
    return false;
  }
  group.over += std::max<Ps>(idle_, 1'000'000);
  return true;
}

// Shard::run() or run_to_output(), with stops where loads are recorded.
void PhaseRun::run_shard(Group& group, Ps until, Until what) {
  Shard& shard = *group.shard;
  for (Ps stop = 0; stop < until;) {
    stop = std::min(until, group.recorder.next());
    if (what == Until::time) {
      shard.run(stop);
    } else {
      shard.run_to_output(stop, group.messages);
      if (!shard.outputs().empty() || shard.messages_over() == group.messages) return;
    }
    // What is stalled is not looked at: the time may be `never`.
    if (shard.next_time() == never) return;
    if (stop == group.recorder.next()) record_loads(group);
  }
}

// Links of phases that have begun since are added.
void PhaseRun::find_recorded(Group& group) {
  std::vector<std::uint32_t>& links = group.recorded;
  std::vector<bool> known(classes_.cables(), false);
  for (const std::uint32_t id : links) known[id / 2] = true;
  for (; group.phases_recorded < group.phases.size(); ++group.phases_recorded)
    for (const std::uint32_t r : classes_.of(group.phases[group.phases_recorded]).resources) {
      if (r >= classes_.cables() || known[r]) continue;
      known[r] = true;
      links.push_back(2 * r);
      links.push_back(2 * r + 1);
    }
}

void PhaseRun::record_loads(Group& group) {
  if (group.phases_recorded < group.phases.size()) find_recorded(group);
  const Ps at = group.recorder.next();
  for (const std::uint32_t id : group.recorded)
    if (world_.links[id].waiting > 0) group.shard->waiting_at(id, at);  // some may have left
  group.recorder.sample(group.recorded, [&](std::uint32_t id) { return world_.tallies[id].bytes; });
}

void PhaseRun::take_outputs(Group& group) {
  for (const Shard::Output& output : group.shard->outputs()) {
    fired_.push_back({output.message, output.when});
    if (group.known == nullptr) continue;
    const std::uint32_t phase = classes_.phase_of(output.message);
    group.known->outputs.push_back(
        {group.shard->now(), slot_[phase], output.message - phases_[phase].first, output.when});
  }
  group.shard->outputs().clear();
}

// A phase begins: it joins those with which it shares links.
void PhaseRun::enter(std::uint32_t phase) {
  const std::vector<std::uint32_t>& resources = classes_.of(phase).resources;
  Group* group = nullptr;
  for (const std::uint32_t r : resources) {
    Group* other = owner_[r];
    if (other == nullptr || other == group) continue;
    if (group == nullptr) {
      group = other;
    } else if (other->start < group->start) {
      merge(*other, *group);
      group = other;
    } else {
      merge(*group, *other);
    }
  }
  if (group == nullptr) {
    auto fresh = std::make_unique<Group>();
    group = fresh.get();
    group->start = now_;
    groups_.emplace(group, std::move(fresh));
  }
  for (const std::uint32_t r : resources) owner_[r] = group;
  group_of_[phase] = group;
  group->now.phases.push_back(phase);
}

void PhaseRun::merge(Group& into, Group& other) {
  for (Group* group : {&into, &other}) {
    if (group->history.empty()) continue;
    agenda_.erase({{group->next, group->history.front().turn}, group});
    group->next = never;
    if (group->shard != nullptr) {
      if (group->known != nullptr) group->known->until = now_ - group->start;
      drop_shard(*group);
    }
  }
  const auto take_over = [&](const Beginning& beginning) {
    for (const std::uint32_t p : beginning.phases) {
      group_of_[p] = &into;
      for (const std::uint32_t r : classes_.of(p).resources) owner_[r] = &into;
    }
  };
  // Not `other.phases`: it may have merged others itself just now.
  for (const Beginning& beginning : other.history) take_over(beginning);
  take_over(other.now);
  std::vector<Beginning> both;
  std::ranges::merge(into.history, other.history, std::back_inserter(both), {}, &Beginning::turn,
                     &Beginning::turn);
  into.history = std::move(both);
  into.now.phases.insert(into.now.phases.end(), other.now.phases.begin(), other.now.phases.end());
  into.merged = true;
  groups_.erase(&other);
}

// What has happened outside reaches the phases that waited for it.
void PhaseRun::deliver() {
  if (inputs_.empty()) return;
  std::ranges::sort(inputs_);
  for (const std::uint32_t m : inputs_)
    if (const std::uint32_t p = classes_.phase_of(m); group_of_[p] == nullptr) enter(p);
  std::vector<Group*> touched;
  for (const std::uint32_t m : inputs_) {
    Group* group = group_of_[classes_.phase_of(m)];
    if (group->now.messages.empty()) touched.push_back(group);
    group->now.messages.push_back(m);
  }
  inputs_.clear();
  for (Group* group : touched) apply(*group);
}

Known::Key PhaseRun::key_of(const Group& group, const Beginning& beginning) const {
  const Ps t = beginning.t - group.start;
  Known::Key key{static_cast<std::uint32_t>(t), static_cast<std::uint32_t>(t >> 32),
                 static_cast<std::uint32_t>(beginning.phases.size())};
  for (const std::uint32_t p : beginning.phases) key.push_back(classes_.class_of(p));
  for (const std::uint32_t m : beginning.messages) {
    const std::uint32_t p = classes_.phase_of(m);
    key.push_back(slot_[p]);
    key.push_back(m - phases_[p].first);
  }
  return key;
}

Known& PhaseRun::next_known(Known& known, const Known::Key& key) {
  Known*& next = known.after[key];
  if (next == nullptr) next = &known_.emplace_back();
  return *next;
}

void PhaseRun::name_slots(Group& group, const Beginning& beginning) {
  for (const std::uint32_t p : beginning.phases) {
    slot_[p] = static_cast<std::uint32_t>(group.phases.size());
    group.phases.push_back(p);
  }
}

void PhaseRun::apply(Group& group) {
  Beginning beginning = std::exchange(group.now, {});
  beginning.t = now_;
  beginning.turn = turns_++;
  if (!group.history.empty()) agenda_.erase({{group.next, group.history.front().turn}, &group});
  if (group.shard != nullptr && group.known != nullptr) group.known->until = now_ - group.start;
  const bool replays = repeat_ == Repeat::replayed;
  std::ranges::sort(beginning.phases);
  if (group.history.empty() || group.merged) {
    group.phases.clear();
    group.known = replays ? &known_.front() : nullptr;
    for (const Beginning& earlier : group.history) {
      name_slots(group, earlier);
      if (replays) group.known = &next_known(*group.known, key_of(group, earlier));
    }
    group.merged = false;
  }
  name_slots(group, beginning);
  if (replays) group.known = &next_known(*group.known, key_of(group, beginning));
  group.history.push_back(std::move(beginning));
  group.messages = 0;
  for (const std::uint32_t p : group.phases) group.messages += phases_[p].last - phases_[p].first;
  group.told = 0;
  group.over = never;
  if (group.known != nullptr && group.known->simulated) {
    if (group.shard != nullptr) drop_shard(group);
  } else {
    if (group.known != nullptr) group.known->simulated = true;
    if (group.shard != nullptr) {
      inject(group, group.history.back());
    } else {
      start_shard(group);
    }
  }
  schedule(group);
}

// Simulates all that has begun, up to when the last of it begins.
void PhaseRun::start_shard(Group& group) {
  if (idle_shards_.empty()) idle_shards_.push_back(std::make_unique<Shard>(world_, 0, 1));
  group.shard = std::move(idle_shards_.back());
  idle_shards_.pop_back();
  group.shard->restart();
  group.shard->open(shape_.width, shape_.bits);
  // Finer than what is asked for: intervals of groups do not begin with those of the run.
  group.recorder = LoadRecorder(2 * world_.options.load_windows);
  group.recorded.clear();
  group.phases_recorded = 0;
  for (const Beginning& beginning : group.history) {
    run_shard(group, beginning.t - group.start + 1, Until::time);
    group.shard->outputs().clear();  // known already
    inject(group, beginning);
  }
}

void PhaseRun::inject(Group& group, const Beginning& beginning) {
  for (const std::uint32_t m : beginning.messages)
    group.shard->satisfy(m, beginning.t - group.start);
}

// Gives up what was simulated.
void PhaseRun::drop_shard(Group& group) {
  counts_.hops_simulated += group.shard->counters().hops;
  failed_ = failed_ || group.shard->overrun() != none;
  for (const std::uint32_t p : group.phases) {
    pristine_.restore(world_, classes_.of(p), classes_.cables());
    pristine_.restore_messages(world_, phases_[p]);
  }
  idle_shards_.push_back(std::move(group.shard));
}

// Whether nothing is on the group's links any more, at its end.
bool PhaseRun::quiet(const Group& group) {
  for (const std::uint32_t p : group.phases)
    for (const std::uint32_t r : classes_.of(p).resources) {
      if (r >= classes_.cables()) continue;
      for (const std::uint32_t id : {2 * r, 2 * r + 1}) {
        const bool waits = group.shard->waiting_at(id, group.over + 1) > 0;
        if (waits || world_.links[id].head != world_.links[id].tail || world_.links[id].paused)
          return false;
      }
    }
  return true;
}

std::unique_ptr<GroupOutcome> PhaseRun::outcome_of(Group& group) {
  auto out = std::make_unique<GroupOutcome>();
  out->at = group.over;
  if (world_.options.load_windows > 0) {
    find_recorded(group);
    out->loads = group.recorder.take(group.recorded,
                                     [&](std::uint32_t id) { return world_.tallies[id].bytes; });
  }
  PacketRunResult& all = scratch_;
  group.shard->add_to(all);
  for (const std::uint32_t p : group.phases) {
    for (std::uint32_t m = phases_[p].first; m < phases_[p].last; ++m)
      out->ends.push_back(world_.ends[m]);
    for (const std::uint32_t r : classes_.of(p).resources) {
      if (r >= classes_.cables()) {
        NodeBuffer& node = world_.nodes[r - classes_.cables()];
        group.shard->close_batch(node);
        all.counters.buffer_max = std::max(all.counters.buffer_max, node.waiting_max);
        continue;
      }
      for (const std::uint32_t id : {2 * r, 2 * r + 1}) {
        LinkTally& t = world_.tallies[id];
        const std::uint64_t dropped = std::exchange(all.links[id].dropped, 0);
        if (t.bytes == 0 && dropped == 0) continue;
        const RareTally& rare = world_.rare[id];
        out->links.push_back({id,
                              {t.bytes, t.data, t.control, t.marked, rare.dropped + dropped,
                               rare.trimmed, rare.pauses, t.queue_max, rare.paused_total}});
        t.bytes = 0;  // phases share links
      }
    }
  }
  out->counters = std::exchange(all.counters, {});
  out->conservation = std::exchange(all.conservation, {});
  out->tiers = all.tiers;
  all.tiers.assign(all.tiers.size(), {});
  out->lossless_drops = std::exchange(all.lossless_drops, {});
  return out;
}

void PhaseRun::close(Group& group) {
  std::unique_ptr<GroupOutcome> fresh;
  if (group.shard != nullptr) {
    fresh = outcome_of(group);
    drop_shard(group);
  } else {
    counts_.repeated += group.phases.size();
  }
  GroupOutcome& outcome = fresh != nullptr ? *fresh : *group.known->over;
  ++outcome.times;
  loads_.add(group.start, outcome.loads);
  std::size_t i = 0;
  for (const std::uint32_t p : group.phases)
    for (std::uint32_t m = phases_[p].first; m < phases_[p].last; ++m, ++i) {
      const MessageEnd& end = outcome.ends[i];
      ends_[m] = {group.start + end.start, group.start + end.arrived, group.start + end.end};
      bytes_done_ += static_cast<double>(set_.messages[m].bytes);
    }
  progress_.update(bytes_done_);
  if (fresh != nullptr && group.known != nullptr) {
    group.known->over = std::move(fresh);
  } else if (fresh != nullptr) {
    add(*fresh);
  }
  for (const std::uint32_t p : group.phases)
    for (const std::uint32_t r : classes_.of(p).resources) owner_[r] = nullptr;
  agenda_.erase({{group.next, group.history.front().turn}, &group});
  groups_.erase(&group);
}

// Time goes on from event to event; what happens at one time outside goes before what follows from
// it in the phases.
void PhaseRun::run() {
  begin();
  while (!failed_ && (!agenda_.empty() || !joins_.empty())) {
    const Ps join = joins_.empty() ? never : joins_.top().first;
    if (!agenda_.empty() && agenda_.begin()->first.first < join) {
      Group& group = *agenda_.begin()->second;
      const auto second = std::next(agenda_.begin());
      const Ps other = second == agenda_.end() ? never : second->first.first;
      // Up to what may make something begin in it.
      Ps until = std::min(other, join);
      if (group.shard == nullptr) until = group.next;
      if (until == never) until = never - 1;
      now_ = std::max(now_, group.next);
      advance(group, until);
      if (fired_.empty()) continue;
    } else {
      now_ = join;
    }
    while (!agenda_.empty() && agenda_.begin()->first.first <= now_)
      advance(*agenda_.begin()->second, now_);
    tell_joins();
    tell_all();
    deliver();
  }
}

void PhaseRun::add(const GroupOutcome& o) {
  const std::uint64_t n = o.times;
  for (const auto& [id, link] : o.links) {
    LinkCounters& sum = totals_.links[id];
    sum.bytes += link.bytes * n;
    sum.packets += link.packets * n;
    sum.control += link.control * n;
    sum.ecn_marked += link.ecn_marked * n;
    sum.dropped += link.dropped * n;
    sum.trimmed += link.trimmed * n;
    sum.pauses += link.pauses * n;
    sum.paused_ps += link.paused_ps * n;
    sum.queue_max = std::max(sum.queue_max, link.queue_max);
  }
  for (std::size_t i = 0; i < o.tiers.size(); ++i)
    for (std::size_t bin = 0; bin < LogHistogram{}.size(); ++bin) {
      totals_.tiers[i].queue_bytes[bin] += o.tiers[i].queue_bytes[bin] * n;
      totals_.tiers[i].pause_ps[bin] += o.tiers[i].pause_ps[bin] * n;
    }
  Counters& c = totals_.counters;
  c.hops += o.counters.hops * n;
  c.events += o.counters.events * n;
  c.pause_frames += o.counters.pause_frames * n;
  c.ecn_marks += o.counters.ecn_marks * n;
  c.cnps += o.counters.cnps * n;
  c.drops += o.counters.drops * n;
  c.drops_headroom += o.counters.drops_headroom * n;
  c.drops_link += o.counters.drops_link * n;
  c.drops_control += o.counters.drops_control * n;
  c.trims += o.counters.trims * n;
  c.retransmissions += o.counters.retransmissions * n;
  c.timeouts += o.counters.timeouts * n;
  c.buffer_max = std::max(c.buffer_max, o.counters.buffer_max);
  totals_.conservation.sent += o.conservation.sent * n;
  totals_.conservation.received += o.conservation.received * n;
  totals_.conservation.dropped += o.conservation.dropped * n;
  totals_.conservation.in_flight += o.conservation.in_flight * n;
  for (const LosslessDrops& more : o.lossless_drops) {
    auto sum = std::ranges::find_if(totals_.lossless_drops, [&](const LosslessDrops& d) {
      return d.traffic_class == more.traffic_class && d.cause == more.cause && d.link == more.link;
    });
    if (sum == totals_.lossless_drops.end()) {
      sum = totals_.lossless_drops.insert(sum, more);
      sum->packets = 0;
    }
    sum->packets += more.packets * n;
  }
}

std::optional<PacketRunResult> PhaseRun::result() {
  if (failed_ || std::ranges::any_of(ends_, [](const auto& m) { return m.end == never; }))
    return std::nullopt;
  for (const Known& known : known_)
    if (known.over != nullptr) add(*known.over);
  PacketRunResult out = std::move(totals_);
  out.messages = std::move(ends_);
  out.complete = true;
  TrafficSpan traffic{never, 0};
  for (const MessageEnd& message : out.messages) {
    traffic.begin = std::min(traffic.begin, message.start);
    traffic.end = std::max(traffic.end, message.end);
  }
  out.end = traffic.end;
  out.loads = loads_.take();
  for (std::size_t i = 0; i < out.tiers.size(); ++i)
    out.tiers[i].tier = world_.fabric.tiers()[model::TierId(i)].name;
  for (std::uint32_t id = 0; id < out.links.size(); ++id) {
    auto& most = out.tiers[world_.fabric.tier_id(LinkId(id)).index()].queue_bytes_max;
    most = std::max<std::uint64_t>(most, out.links[id].queue_max);
  }
  std::ranges::sort(out.lossless_drops, {}, [](const LosslessDrops& d) {
    return std::tuple(d.traffic_class, d.cause, d.link);
  });
  WEFT_CHECK(out.conservation.holds());
  describe_storms(world_.fabric, out.links, traffic, out.storms);
  out.digest = digest_of(out);
  return out;
}

}  // namespace

bool phases_apply(const Options& options, std::span<const StateChange> changes) {
  return options.end == never && !options.pause_trees && !options.class_counters &&
         options.series.interval.ps == 0 && options.receive_rate == 0 &&
         options.admission == Admission::open && options.balance != Balance::multipath &&
         options.balance != Balance::ugal &&
         std::ranges::all_of(changes, [](const StateChange& change) { return change.at.ps <= 0; });
}

Result<std::optional<PacketRunResult>> run_phases(const MessageSet& set,
                                                  std::span<const Phase> phases,
                                                  route::Router& router,
                                                  std::span<const StateChange> changes,
                                                  const Options& options, Repeat repeat,
                                                  Progress& progress, PhaseCounts& counts) {
  World world(set, router, options);
  const model::State healthy;
  const model::State& state = changes.empty() ? healthy : changes.back().state;
  router.set_state(state);
  const Partitioning whole = make_partitions(set, router.fabric(), 1);
  WEFT_TRY_STATUS(build_world(world, state, whole));
  PhaseRun run(world, phases, repeat, progress, counts);
  run.run();
  return run.result();
}

}  // namespace weft::engine::packet
