#include "adapt/sim/operations.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "adapt/sim/sample.hpp"
#include "base/check.hpp"
#include "observe/probe/wire.hpp"

namespace weft::adapt::sim {

using model::CableId;
using model::Entity;
using model::EntityKind;
using model::LinkId;
using model::NodeId;
using port::ActionKind;
using port::Service;

namespace {

constexpr std::array<model::FaultKind, break_count> break_kinds{
    model::FaultKind::link_down,     model::FaultKind::link_lossy,    model::FaultKind::optic,
    model::FaultKind::port_flap,     model::FaultKind::switch_down,   model::FaultKind::line_card,
    model::FaultKind::control_plane, model::FaultKind::nic_down,      model::FaultKind::host_down,
    model::FaultKind::dead_link,     model::FaultKind::link_degraded, model::FaultKind::corrupt,
    model::FaultKind::delay,         model::FaultKind::jitter,        model::FaultKind::reorder,
    model::FaultKind::duplicate,     model::FaultKind::switch_lossy,  model::FaultKind::nic_lossy,
    model::FaultKind::daemon_kill,   model::FaultKind::daemon_stop,   model::FaultKind::daemon_hang,
    model::FaultKind::blackhole,     model::FaultKind::icmp_ratelimit};

// Of the random streams of its faults. Replays depend on it: it must not follow a new name.
std::string_view stream_label(FaultKind kind) {
  if (kind == FaultKind::grey) return "grey_loss";
  if (kind > FaultKind::host) return catalogued(kind).name;
  const std::string_view cause = catalogued(kind).cause;
  return cause.substr(0, cause.find(' '));
}

constexpr double burst_loss = 0.2;  // of test traffic, while a carrier is unsteady

bool is_intermittent(FaultKind kind) {
  return kind == FaultKind::grey || kind == FaultKind::optic || kind == FaultKind::flap ||
         kind == FaultKind::corrupt || kind == FaultKind::lossy_switch ||
         kind == FaultKind::lossy_nic;
}

// Exponential.
std::int64_t draw_around(Rng& rng, std::int64_t mean_ns) {
  return static_cast<std::int64_t>(-std::log1p(-rng.uniform()) * static_cast<double>(mean_ns));
}

std::int64_t draw_between(Rng& rng, double low_s, double high_s) {
  return static_cast<std::int64_t>((low_s + (high_s - low_s) * rng.uniform()) * 1e9);
}

bool has(const std::vector<CableId>& cables, CableId cable) {
  return std::ranges::find(cables, cable) != cables.end();
}

}  // namespace

const model::FaultEntry& catalogued(FaultKind kind) {
  return fault_entry(break_kinds[static_cast<std::size_t>(kind)]);
}

Operations::Operations(const model::Fabric& fabric, const OperationsSettings& settings,
                       Timestamp start)
    : fabric_(fabric),
      settings_(settings),
      now_(start),
      cables_(fabric.cable_count()),
      mute_(fabric.node_count()) {}

// By name, so that a part draws the same in another fabric.
Rng Operations::occasion(std::string_view what, const Entity& part) {
  const std::uint64_t number = occasions_[{what, part}]++;
  return Rng(settings_.seed).stream(what).stream(name(fabric_, part)).stream(number);
}

std::int64_t Operations::voice(std::uint32_t fault, double low_s, double high_s) {
  return draw_between(stories_[fault].voice, low_s, high_s);
}

std::int64_t Operations::pace(std::uint32_t fault, double low_s, double high_s) {
  return draw_between(stories_[fault].pace, low_s, high_s);
}

// ---- time ----

void Operations::schedule(std::int64_t in_ns, Event event) {
  agenda_.emplace(std::pair(Timestamp{now_.ns + in_ns}, ++serial_), event);
}

void Operations::plan_turn(std::uint32_t index, std::int64_t in_ns) {
  faults_[index].mark = serial_ + 1;
  schedule(in_ns, {Event::Kind::turn, index, faults_[index].mark});
}

void Operations::advance(Timestamp now) {
  WEFT_CHECK(now >= now_);
  while (!agenda_.empty() && agenda_.begin()->first.first <= now) {
    const Event event = agenda_.begin()->second;
    now_ = agenda_.begin()->first.first;
    agenda_.erase(agenda_.begin());
    happen(event);
  }
  now_ = now;
}

std::optional<Timestamp> Operations::next_due() const {
  std::optional<Timestamp> out;
  if (!agenda_.empty()) out = agenda_.begin()->first.first;
  if (!said_.empty() && (!out || said_.begin()->first.first < *out))
    out = said_.begin()->first.first;
  return out;
}

void Operations::happen(const Event& event) {
  switch (event.kind) {
    case Event::Kind::turn:
      if (faults_[event.index].mark == event.mark) turn(event.index);
      return;
    case Event::Kind::end:
      return end(event.index);
    case Event::Kind::effect:
      if (Late& late = late_[event.index]; !late.is_over) {
        late.is_over = true;
        serve(late.action, late.entity);
      }
      return;
    case Event::Kind::visit:
      return visit(called_[event.index]);
    case Event::Kind::again:
      return come_again(event.index);
    case Event::Kind::start:
      begin(planned_[event.index]);
      return;
  }
}

std::vector<Operations::Line> Operations::lines() {
  std::vector<Line> out;
  while (!said_.empty() && said_.begin()->first.first <= now_) {
    out.push_back({said_.begin()->first.first, std::move(said_.begin()->second)});
    said_.erase(said_.begin());
  }
  return out;
}

// ---- faults ----

std::uint32_t Operations::begin(const Start& start) {
  std::uint64_t key = start.key;
  if (key == 0) key = occasion(stream_label(start.kind), start.part).next();
  const auto index = static_cast<std::uint32_t>(faults_.size());
  faults_.push_back({.kind = start.kind,
                     .part = start.part,
                     .start = now_,
                     .end = {},
                     .loss = start.loss,
                     .way = start.way,
                     .delay_ns = start.delay_ns,
                     .rate_factor = start.rate_factor,
                     .victim = start.victim,
                     .lasts_ns = start.lasts_ns,
                     .is_lemon = start.again_mean_ns > 0});
  const Rng root = Rng(settings_.seed).stream("fault").stream(key);
  stories_.push_back({key, root, root.stream("pace"), root.stream("voice")});
  lasting_.insert(index);
  ++version_;
  if (start.again_mean_ns > 0) lemons_.try_emplace(start.part, Lemon{start.again_mean_ns, key});
  if (start.lasts_ns > 0) schedule(start.lasts_ns, {Event::Kind::end, index, 0});
  turn(index);
  return index;
}

std::uint32_t Operations::begin_lemon(FaultKind kind, const Entity& part, double loss,
                                      std::int64_t again_mean_ns) {
  return begin({.kind = kind, .part = part, .loss = loss, .again_mean_ns = again_mean_ns});
}

void Operations::begin_at(Timestamp t, const Start& start) {
  WEFT_CHECK(t >= now_);
  planned_.push_back(start);
  schedule(t.ns - now_.ns,
           {Event::Kind::start, static_cast<std::uint32_t>(planned_.size() - 1), 0});
}

void Operations::turn(std::uint32_t index) {
  Script& story = stories_[index];
  story.voice = story.root.stream(++story.turns);
  const double before = loss_now(faults_[index]);
  const std::int64_t next = tell(faults_[index], index);
  ++faults_[index].turns;
  if (loss_now(faults_[index]) != before) ++version_;
  weigh(index);
  if (next > 0) plan_turn(index, next);
}

void Operations::end(std::uint32_t index) {
  Fault& fault = faults_[index];
  if (fault.end) return;
  fault.end = now_;
  fault.mark = 0;
  lasting_.erase(index);
  ++version_;
  close_harms(index);
  stories_[index].voice = stories_[index].root.stream("end");
  tell_end(fault, index);
}

void Operations::end_all() {
  lemons_.clear();
  for (const std::uint32_t index : std::vector<std::uint32_t>(lasting_.begin(), lasting_.end()))
    end(index);
}

void Operations::come_again(std::uint32_t index) {
  const Fault before = faults_[index];
  const auto found = lemons_.find(before.part);
  if (found == lemons_.end()) return;
  Lemon& lemon = found->second;
  begin({.kind = before.kind,
         .part = before.part,
         .loss = before.loss,
         .again_mean_ns = lemon.again_mean_ns,
         .key = mix64(lemon.key + ++lemon.failures)});
}

std::vector<CableId> Operations::cables_of(const Entity& part) const {
  if (part.kind == EntityKind::cable) return {CableId(part.id)};
  if (part.kind == EntityKind::link || part.kind == EntityKind::port)
    return {model::cable_of(LinkId(part.id))};
  std::vector<CableId> out;
  const auto add = [&](NodeId node) {
    for (const LinkId link : fabric_.out(node)) {
      const bool is_on_card = part.kind != EntityKind::card ||
                              fabric_.port(link) / settings_.ports_per_card == part.card;
      if (fabric_.on_wire(link) && is_on_card) out.push_back(model::cable_of(link));
    }
  };
  if (part.kind != EntityKind::node && part.kind != EntityKind::card) return out;
  if (fabric_.kind(NodeId(part.id)) == model::NodeKind::host) {
    for (const NodeId nic : fabric_.nics_of(NodeId(part.id))) add(nic);
  } else {
    add(NodeId(part.id));
  }
  return out;
}

// Whether work on `part` finds the fault.
bool Operations::is_touched(const Fault& fault, const Entity& part) const {
  if (fault.part == part) return true;
  if (fault.part.kind == EntityKind::card)
    return part.kind == EntityKind::node && part.id == fault.part.id;
  const bool is_end = (fault.kind == FaultKind::nic || fault.kind == FaultKind::lossy_nic) &&
                      part.kind == EntityKind::cable;
  return is_end && has(cables_of(fault.part), CableId(part.id));
}

// ---- what is lost ----

bool Operations::is_in_use(CableId cable) const {
  return cables_[cable.index()].downs == 0 && !is_drained(cable);
}

bool Operations::is_drained(CableId cable) const {
  const LinkId link = model::forward(cable);
  return drained_.contains(model::entity(cable)) ||
         drained_.contains(model::entity(fabric_.from(link))) ||
         drained_.contains(model::entity(fabric_.to(link)));
}

double Operations::loss_now(const Fault& fault) const {
  switch (fault.kind) {
    case FaultKind::grey:
    case FaultKind::corrupt:
    case FaultKind::lossy_switch:
    case FaultKind::lossy_nic:
      return fault.loss;
    case FaultKind::dead_link:
      return 1;
    default:
      break;
  }
  if (fault.kind != FaultKind::optic || fault.turns <= optic_turns) return 0;
  return fault.loss * std::min(1.0, (fault.turns - optic_turns) / 10.0);
}

// Of what crosses the link.
double Operations::loss_over(const Fault& fault, LinkId link) const {
  const double loss = loss_now(fault);
  if (loss == 0) return 0;
  if (fault.part.kind == EntityKind::node)
    return has(cables_of(fault.part), model::cable_of(link)) ? loss : 0;
  if (fault.part != model::entity(model::cable_of(link))) return 0;
  const bool is_forward = link == model::forward(model::cable_of(link));
  const bool suffers = fault.way == Way::both || is_forward == (fault.way == Way::forward);
  return suffers ? loss : 0;
}

double Operations::loss_of_check(CableId cable) const {
  if (cables_[cable.index()].downs > 0) return 1;
  double passes = 1;
  for (const std::uint32_t index : lasting_) {
    const Fault& fault = faults_[index];
    if (fault.kind == FaultKind::flap) {
      if (fault.part == model::entity(cable) && fault.is_in_burst) passes *= 1 - burst_loss;
      continue;
    }
    const LinkId link = model::forward(cable);
    passes *= 1 - std::max(loss_over(fault, link), loss_over(fault, model::reverse(link)));
  }
  return 1 - passes;
}

// The share of its rate that is left.
double Operations::rate_of(CableId cable) const {
  double share = 1;
  for (const std::uint32_t index : lasting_)
    if (faults_[index].kind == FaultKind::degraded && CableId(faults_[index].part.id) == cable)
      share = std::min(share, faults_[index].rate_factor);
  return share;
}

// What a fault costs from now on, of those that lose some packets.
void Operations::weigh(std::uint32_t index) {
  const Fault& fault = faults_[index];
  if (fault.kind != FaultKind::grey && fault.kind != FaultKind::optic) return;
  const double loss = !fault.end && is_in_use(CableId(fault.part.id)) ? loss_now(fault) : 0;
  const auto open = open_.find(index);
  const double before = open == open_.end() ? 0 : open->second.front().loss;
  if (std::abs(loss - before) < 1e-12) return;
  close_harms(index);
  if (loss > 0) open_harm(index, fault.part, loss);
}

void Operations::weigh_all() {
  for (const std::uint32_t index : lasting_) weigh(index);
}

void Operations::open_harm(std::uint32_t fault, const Entity& part, double loss) {
  open_[fault].push_back({fault, part, loss, now_, now_});
}

void Operations::close_harms(std::uint32_t fault) {
  const auto open = open_.find(fault);
  if (open == open_.end()) return;
  for (Harm& harm : open->second) {
    harm.to = now_;
    if (harm.to > harm.from) harms_.push_back(harm);
  }
  open_.erase(open);
}

// All of it is lost until traffic takes another way.
void Operations::add_blow(std::uint32_t fault, const Entity& part, std::int64_t ns) {
  harms_.push_back({fault, part, 1, now_, {now_.ns + ns}});
}

// ---- what packets meet ----

std::map<LinkId, Operations::Trouble> Operations::troubles() const {
  std::map<LinkId, Trouble> out;
  for (std::uint32_t i = 0; i < fabric_.cable_count(); ++i)
    if (const CableId cable(i); !has_carrier(cable))
      for (const LinkId link : {model::forward(cable), model::reverse(model::forward(cable))})
        out[link].loss = 1;
  for (const std::uint32_t index : lasting_) {
    const Fault& fault = faults_[index];
    const bool is_late = fault.kind == FaultKind::delay || fault.kind == FaultKind::jitter;
    const bool doubles = fault.kind == FaultKind::duplicate;
    if (!is_late && !doubles && loss_now(fault) == 0) continue;
    for (const CableId cable : cables_of(fault.part))
      for (const LinkId link : {model::forward(cable), model::reverse(model::forward(cable))}) {
        const bool is_forward = link == model::forward(cable);
        if (is_late && fault.way != Way::both && is_forward != (fault.way == Way::forward))
          continue;
        Trouble& trouble = out[link];
        const double share = loss_over(fault, link);
        const double damage =
            fault.kind == FaultKind::corrupt ? share * observe::probe::flip_shows : 0;
        trouble.damage = 1 - (1 - trouble.damage) * (1 - damage);
        trouble.loss = 1 - (1 - trouble.loss) * (1 - (share - damage));
        if (doubles) trouble.duplicates = 1 - (1 - trouble.duplicates) * (1 - fault.loss);
        if (is_late)
          (fault.kind == FaultKind::delay ? trouble.delay_ns : trouble.jitter_ns) += fault.delay_ns;
      }
  }
  return out;
}

std::vector<Operations::BlackHole> Operations::black_holes() const {
  std::vector<BlackHole> out;
  for (const std::uint32_t index : lasting_)
    if (faults_[index].kind == FaultKind::blackhole)
      out.push_back({NodeId(faults_[index].part.id), faults_[index].victim});
  return out;
}

model::State Operations::routing() const {
  model::State out;
  std::map<CableId, double> rates;
  for (const std::uint32_t index : lasting_)
    if (faults_[index].kind == FaultKind::degraded)
      rates[CableId(faults_[index].part.id)] = faults_[index].rate_factor;
  for (std::uint32_t i = 0; i < fabric_.cable_count(); ++i) {
    const CableId cable(i);
    model::Condition condition;
    if (!has_session(cable))
      condition.health = model::Health::down;
    else if (is_drained(cable))
      condition.health = model::Health::draining;
    if (const auto at = rates.find(cable); at != rates.end()) condition.rate_factor = at->second;
    if (condition == model::Condition{}) continue;
    out.set(model::forward(cable), condition);
    out.set(model::reverse(model::forward(cable)), condition);
  }
  return out;
}

std::vector<Operations::Harm> Operations::harms() const {
  std::vector<Harm> out = harms_;
  for (const auto& [fault, open] : open_)
    for (Harm harm : open) {
      harm.to = now_;
      out.push_back(harm);
    }
  return out;
}

std::vector<Entity> Operations::broken() const {
  std::set<Entity> out;
  for (const std::uint32_t index : lasting_) out.insert(faults_[index].part);
  return {out.begin(), out.end()};
}

// ---- people ----

void Operations::call_technician(std::string_view entity, Job job) {
  const auto part = model::find_entity(fabric_, {entity, {}});
  if (!part) return;
  const auto index = static_cast<std::uint32_t>(called_.size());
  if (const auto [at, is_new] = awaited_.emplace(entity, index); !is_new) {
    if (job == Job::replace) called_[at->second].job = job;
    return;
  }
  called_.push_back({std::string(entity), *part, job});
  Rng way = occasion("way", *part);
  schedule(settings_.visit_least_ns + draw_around(way, settings_.visit_mean_ns),
           {Event::Kind::visit, index, 0});
}

void Operations::visit(const Called& called) {
  ++visit_count_;
  awaited_.erase(called.entity);
  Rng people = occasion("visit", called.part);
  bool has_found = called.job == Job::replace && lemons_.erase(called.part) > 0;
  for (const std::uint32_t index : std::vector<std::uint32_t>(lasting_.begin(), lasting_.end())) {
    const Fault& fault = faults_[index];
    if (!is_touched(fault, called.part)) continue;
    const bool is_hidden = called.job == Job::mend && is_intermittent(fault.kind) &&
                           people.uniform() < settings_.nothing_found;
    if (is_hidden) continue;
    end(index);
    has_found = true;
    if (const auto lemon = lemons_.find(fault.part); lemon != lemons_.end()) {
      Rng again = occasion("again", fault.part);
      schedule(draw_around(again, lemon->second.again_mean_ns), {Event::Kind::again, index, 0});
    }
  }
  visits_.push_back({now_, called.entity, has_found});
}

std::vector<Operations::Visit> Operations::visits() { return std::exchange(visits_, {}); }

// ---- actuators ----

Status Operations::act(const port::Action& action) {
  WEFT_TRY(const Entity entity, model::find_entity(fabric_, {action.entity, {}}));
  const OperationsSettings::ActuatorFaults& h = settings_.actuators;
  Rng chance = occasion(action.kind == ActionKind::drain ? "drain" : "undrain", entity);
  double draw = chance.uniform();
  const auto falls_to = [&](double share) {
    draw -= share;
    return draw < 0;
  };
  if (falls_to(h.fails)) return fail(Errc::io, {}, "no connection to the device", "try again");
  if (falls_to(h.refuses)) return fail(Errc::infeasible, {}, "the device rejected it", "");
  if (falls_to(h.lies)) return {};
  if (falls_to(h.unheard)) {
    if (chance.uniform() < 0.5)
      serve(action, entity);
    else
      serve_late(action, entity, Visible::hidden, chance);
    return fail(Errc::io, {}, "the connection was lost before the answer arrived", "look");
  }
  if (falls_to(h.late))
    serve_late(action, entity, Visible::seen, chance);
  else
    serve(action, entity);
  return {};
}

// A device does one thing after another: what comes later counts.
void Operations::forget_late(const Entity& entity) {
  for (Late& late : late_)
    if (late.entity == entity) late.is_over = true;
}

void Operations::serve_late(const port::Action& action, const Entity& entity, Visible visible,
                            Rng& rng) {
  forget_late(entity);
  late_.push_back({action, entity, visible == Visible::seen});
  const double share = rng.uniform();
  schedule(static_cast<std::int64_t>(share * static_cast<double>(settings_.actuators.late_ns)),
           {Event::Kind::effect, static_cast<std::uint32_t>(late_.size() - 1), 0});
}

void Operations::serve(const port::Action& action, const Entity& entity) {
  forget_late(entity);
  const bool is_drain = action.kind == ActionKind::drain;
  if (is_drain == drained_.contains(entity)) return;
  if (is_drain)
    drained_.insert(entity);
  else
    drained_.erase(entity);
  effects_.push_back({now_, action});
  ++version_;
  weigh_all();
  if (is_drain) return;
  // Traffic comes back to what still loses it, and probers will see that anew.
  const std::vector<CableId> cables = cables_of(entity);
  for (const std::uint32_t index : lasting_) {
    Fault& fault = faults_[index];
    if (fault.kind != FaultKind::grey || !has(cables, CableId(fault.part.id))) continue;
    fault.turns = 0;
    plan_turn(index, pace(index, 1, 3));
  }
}

std::vector<Entity> Operations::drained() const {
  std::set<Entity> out = drained_;
  for (const Late& late : late_)
    if (!late.is_over && late.action.kind == ActionKind::drain) out.insert(late.entity);
  return {out.begin(), out.end()};
}

Result<Service> Operations::state(std::string_view name) {
  WEFT_TRY(const Entity entity, model::find_entity(fabric_, {name, {}}));
  if (occasion("look", entity).uniform() < settings_.actuators.blind)
    return fail(Errc::io, {}, "no connection to the device", "try again");
  if (drained_.contains(entity)) return Service::drained;
  const bool is_on_the_way = std::ranges::any_of(late_, [&](const Late& late) {
    return !late.is_over && late.is_seen && late.entity == entity &&
           late.action.kind == ActionKind::drain;
  });
  return is_on_the_way ? Service::draining : Service::in_service;
}

Result<port::Check> Operations::check(std::string_view name) {
  WEFT_TRY(const Entity entity, model::find_entity(fabric_, {name, {}}));
  Rng packets = occasion("check", entity);
  if (packets.uniform() < settings_.actuators.blind)
    return fail(Errc::io, {}, "no connection to the prober", "try again");
  const std::vector<CableId> cables = cables_of(entity);
  port::Check out;
  if (cables.empty()) return out;
  const auto each =
      static_cast<std::uint32_t>((settings_.check_packets + cables.size() - 1) / cables.size());
  for (const CableId cable : cables) {
    out.sent += each;
    out.lost += draw_binomial(packets, each, loss_of_check(cable));
    out.rate_share = std::min(out.rate_share, rate_of(cable));
  }
  return out;
}

// What a black hole drops, only its own flows show.
Result<port::Check> Operations::check_flows(std::string_view name,
                                            std::span<const port::Flow> flows) {
  WEFT_TRY(port::Check out, check(name));
  WEFT_TRY(const Entity part, model::find_entity(fabric_, {name, {}}));
  const std::vector<BlackHole> holes = black_holes();
  const std::vector<CableId> cables = cables_of(part);
  if (holes.empty() || flows.empty()) return out;
  const auto each = std::max<std::uint64_t>(1, settings_.check_packets / flows.size());
  for (const port::Flow& flow : flows) {
    const auto link = model::find_entity(fabric_, {flow.link, {}});
    const auto dst = model::find_entity(fabric_, {flow.dst, {}});
    if (!link || !dst || link->kind != EntityKind::link || dst->kind != EntityKind::node) continue;
    const LinkId crossed(link->id);
    if (!has(cables, model::cable_of(crossed))) continue;
    const NodeId host = fabric_.host_of(NodeId(dst->id));
    const bool is_eaten = std::ranges::any_of(holes, [&](const BlackHole& hole) {
      return hole.at == fabric_.from(crossed) && hole.victim == host;
    });
    out.sent += each;
    if (is_eaten) out.lost += each;
  }
  return out;
}

}  // namespace weft::adapt::sim
