// Random faults, drains, people, actuators that fail and lie, deaths and full disks: whatever
// happens, nothing unsafe is done, nothing acknowledged is lost, and in the end all is well again.
//
// Sequence k of a run has seed N + k (--rand-seed=N). A failure names its seed, and plays alone
// with
//   operate_campaign_test --rand-seed=SEED -ns -tc="one sequence"
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "adapt/sim/operations.hpp"
#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "base/test_folder.hpp"
#include "controller_kit.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/repair/reserve.hpp"
#include "port/test_store.hpp"

using namespace weft;
using namespace weft::controller_test;
using adapt::sim::FaultKind;
using adapt::sim::Operations;
using adapt::sim::OperationsSettings;
using model::Entity;
using operate::repair::Gone;
using operate::repair::Order;
using operate::repair::OrderKind;
using operate::repair::Outcome;
using operate::repair::Stage;
using operate::repair::Switch;
using operate::repair::Ticket;
using serve::Command;

namespace {

using model::testing::make_fabric;

// What all sequences on one fabric share.
//
//   ctsw:0 .. ctsw:S        every rack switch to every spine, hosts below; or the same twice over,
//    |  X  X  |             in planes that meet in the NICs
//   rtsw:0 .. rtsw:R
struct Site {
  explicit Site(std::string_view yaml) : fabric(make_fabric(yaml)) {
    nics.assign(fabric.nics().begin(), fabric.nics().end());
    hosts.assign(fabric.hosts().begin(), fabric.hosts().end());
    for (const model::NodeId node : fabric.nodes()) {
      if (fabric.is_switch(node)) switches.push_back(node);
    }
    for (const model::LinkId link : fabric.links()) {
      if (!fabric.on_wire(link) || link != model::forward(model::cable_of(link))) continue;
      const bool is_trunk =
          fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link));
      (is_trunk ? trunks : leaves).push_back(model::cable_of(link));
    }
  }
  model::Fabric fabric;
  observe::telemetry::Inventory inventory{fabric};
  observe::telemetry::Catalogue catalogue = observe::telemetry::Catalogue::built_in();
  operate::triage::Context settled{fabric, operate::triage::default_rules()};
  operate::triage::Context provisional{
      fabric,
      serve::provisional_rules(operate::triage::default_rules(), serve::ProvisionalSettings{})};
  std::vector<model::NodeId> switches, nics, hosts;
  std::vector<model::CableId> trunks, leaves;
};

// The test's own count of what is left, of two stages: cables up, by first switch and by rack.
class Uplinks {
 public:
  explicit Uplinks(const Site& site) : fabric_(site.fabric), nics_(site.nics) {
    std::map<model::ScopeId, std::vector<model::NodeId>> racks;
    for (const model::NodeId node : site.switches)
      for (const model::LinkId out : fabric_.out(node))
        if (!fabric_.is_switch(fabric_.to(out))) {
          firsts_.push_back(node);
          racks[fabric_.enclosing(fabric_.to(out), model::ScopeKind::rack)].push_back(node);
          break;
        }
    for (const auto& [rack, switches] : racks) racks_.push_back(switches);
  }

  // "" when all keep their share, or lose nothing by `part`.
  std::string breach(const std::vector<Entity>& gone, const std::optional<Entity>& part,
                     const operate::repair::GuardPolicy& policy) const {
    Gone before(fabric_), after(fabric_);
    for (const Entity& e : gone) {
      if (part != e) before.add(e);
      after.add(e);
    }
    if (part) after.add(*part);
    const auto lost = [&](const std::vector<model::NodeId>& row, double share) {
      const std::size_t left = live(row, after), whole = live(row, Gone(fabric_));
      if (part && left == live(row, before)) return false;
      return static_cast<double>(left) + 1e-9 < share * static_cast<double>(whole);
    };
    for (const model::NodeId node : firsts_) {
      if (fabric_.plane(node) != model::no_lane && lost({node}, policy.plane_share))
        return fabric_.name(node) + " has too little left of its plane";
      if (!after.node(node) && lost({node}, policy.rack_share))
        return fabric_.name(node) + " has too little left";
    }
    for (const auto& rack : racks_)
      if (lost(rack, policy.rack_share))
        return "the rack of " + fabric_.name(rack.front()) + " has too little left";
    for (const model::NodeId nic : nics_)
      if (is_cut_off(nic, after) && !(part && is_cut_off(nic, before)))
        return fabric_.name(nic) + " is cut off";
    return "";
  }

 private:
  std::size_t live(const std::vector<model::NodeId>& row, const Gone& gone) const {
    std::size_t out = 0;
    for (const model::NodeId node : row)
      for (const model::LinkId link : fabric_.out(node))
        out += fabric_.is_switch(fabric_.to(link)) && !gone.link(link) ? 1 : 0;
    return out;
  }
  bool is_cut_off(model::NodeId nic, const Gone& gone) const {
    return std::ranges::none_of(fabric_.out(nic), [&](model::LinkId link) {
      return fabric_.is_switch(fabric_.to(link)) && !gone.link(link) &&
             live({fabric_.to(link)}, gone) > 0;
    });
  }

  const model::Fabric& fabric_;
  const std::vector<model::NodeId>& nics_;
  std::vector<model::NodeId> firsts_;
  std::vector<std::vector<model::NodeId>> racks_;
};

// What the test knows of the store, whoever's life it is.
struct Watch {
  enum class Mood : std::uint8_t {
    works,
    full,        // commits fail
    last_words,  // the next commit is carried out, and its answer never heard: the service is dead
  } mood = Mood::works;
  bool is_dead = false;
  std::set<std::string, std::less<>> orders;  // that are written down
};

// The id behind "order": in an audit entry's detail; "" where there is none.
std::string order_of(const port::AuditEntry& entry) {
  constexpr std::string_view key = "\"order\":\"";
  const std::size_t at = entry.detail.find(key);
  if (at == std::string::npos) return "";
  const std::size_t from = at + key.size();
  return entry.detail.substr(from, entry.detail.find('"', from) - from);
}

class Watched : public port::ForwardingStore {
 public:
  Watched(std::unique_ptr<port::Store> real, Watch& watch)
      : ForwardingStore(std::move(real)), watch_(watch) {}
  Result<std::uint64_t> commit(const port::Commit& commit) override {
    if (watch_.mood == Watch::Mood::full || watch_.is_dead)
      return fail(Errc::io, {}, "no space left on the device", "make room");
    auto done = ForwardingStore::commit(commit);
    REQUIRE(done.has_value());
    for (const port::AuditEntry& entry : commit.audit)
      if (entry.action == "order") watch_.orders.insert(order_of(entry));
    if (watch_.mood != Watch::Mood::last_words) return done;
    watch_.mood = Watch::Mood::works;
    watch_.is_dead = true;
    return fail(Errc::io, {}, "the answer was lost", "");
  }

 private:
  Watch& watch_;
};

operate::repair::Policy random_policy(Rng& rng) {
  const auto pick = [&](std::initializer_list<std::string_view> of) {
    return *(of.begin() + rng.below(of.size()));
  };
  return policy_of(fmt::format(
      R"({{defaults: {{soak: {}, forecast: {}, counts_as_gone: {}}},
           problems: {{optic: {{acts_early: true}}, control_plane: {{mode: {}}},
                       rack_switch: {{mode: {}}}, switch: {{mode: {}}}}},
           guards: {{rack_share: {}, plane_share: {}, total: {}, rack: {},
                     undrain_when_killed: {}, undrain_when_frozen: {},
                     offender: {{repairs: {}, within: 30 d}}}},
           timing: {{recheck: {}, recheck_max: 1 min, blocked: {}, failed_look: 20 s, order: 20 s,
                     confirm: {}}},
           retries: {{acts: {}}}}})",
      pick({"5 s", "1 min"}), pick({"none", "advisory", "required"}), pick({"true", "false"}),
      pick({"auto", "approve"}), pick({"auto", "approve", "propose"}), pick({"auto", "approve"}),
      pick({"0.5", "0.75"}), pick({"0", "0.5"}), pick({"2", "16"}), pick({"1", "4"}),
      pick({"true", "false"}), pick({"true", "false"}), pick({"1", "3"}), pick({"5 s", "20 s"}),
      pick({"5 s", "30 s"}), pick({"15 s", "30 s"}), pick({"1", "3"})));
}

struct Counts {
  std::uint64_t ticks = 0, deaths = 0, acts = 0, effects = 0, faults = 0, lines = 0, drains = 0;
  void add(const Counts& o) {
    ticks += o.ticks, deaths += o.deaths, acts += o.acts, effects += o.effects;
    faults += o.faults, lines += o.lines, drains += o.drains;
  }
};

class Sequence {
 public:
  Sequence(const Site& site, const std::string& path, std::uint64_t seed)
      : site_(site),
        path_(path),
        rng_(seed),
        policy_(random_policy(rng_)),
        uplinks_(site),
        net_(site.fabric,
             {.seed = rng_.next(), .visit_least_ns = 5 * second, .visit_mean_ns = 20 * second},
             {start_ns}) {}

  void run() {
    live();
    const auto ticks = 100 + rng_.below(400);
    for (std::uint64_t i = 0; i < ticks && !has_failed(); ++i) {
      advance(second / 2 + static_cast<std::int64_t>(rng_.below(second / 2)));
      something_happens();
      turn();
    }
    heal();
    for (int i = 0; i < 20'000 && !has_failed() && !is_at_rest(); ++i) {
      step_to_next();
      people_help();
      turn();
    }
    judge();
  }
  Counts counts() const {
    Counts out = counts_;
    out.effects = net_.effects().size();
    out.faults = net_.faults().size();
    out.lines = acknowledged_.size();
    return out;
  }
  // What the service wrote down, and what really happened.
  std::string log() const {
    std::string out;
    const auto audit = store_->audit(1, "", SIZE_MAX);
    for (const port::AuditEntry& e : audit ? *audit : std::vector<port::AuditEntry>{})
      out += fmt::format("{:8.3f} {} {} {} {}\n", static_cast<double>(e.t.ns - start_ns) / 1e9,
                         e.actor, e.subject, e.action, e.detail);
    for (const Operations::Effect& e : net_.effects())
      out += fmt::format("{:8.3f} effect {} {} {}\n", static_cast<double>(e.t.ns - start_ns) / 1e9,
                         e.action.id, to_text(e.action.kind), e.action.entity);
    return out;
  }
  bool has_failed() const { return !trouble_.empty(); }
  const std::string& trouble() const { return trouble_; }

 private:
  struct Errand {
    Order order;
    Timestamp due;
    std::optional<Outcome> outcome;  // done, and on its way back
  };

  bool chance(double p) { return rng_.uniform() < p; }
  template <class T>
  const T& any(const std::vector<T>& of) {
    return of[rng_.below(of.size())];
  }
  void complain(const std::string& what) {
    if (trouble_.empty()) trouble_ = fmt::format("at {} s: {}", (now_ - start_ns) / second, what);
  }
  void advance(std::int64_t ns) {
    now_ += ns;
    net_.advance({now_});
    ++counts_.ticks;
    for (auto& line : net_.lines()) outbox_.push_back(std::move(line.text));
  }

  // ---- the service's lives ----

  void live() {
    while (!controller_) {
      watch_.is_dead = false;
      auto store = adapt::sqlite::open_sqlite(path_);
      if (!store) return complain(store.error().text());
      store_ = std::make_unique<Watched>(*std::move(store), watch_);
      controller_ = std::make_unique<serve::Controller>(
          serve::Controller::Context{site_.fabric, site_.inventory, site_.catalogue, site_.settled,
                                     site_.provisional},
          serve::ControllerSettings{}, policy_, *store_);
      if (const Status done = controller_->restore({now_}); !done)
        return complain(done.error().text());
    }
    const bool is_on = controller_->repair().kill_switch() == Switch::on;
    if (is_kill_durable_ && !is_on) complain("a new life forgot the kill switch");
    is_killed_ = is_on;
    suspected_.clear();
  }
  void die() {
    ++counts_.deaths;
    controller_.reset();
    store_.reset();
    errands_.clear();
    if (watch_.mood == Watch::Mood::last_words) watch_.mood = Watch::Mood::works;
    live();
  }

  // ---- what happens ----

  void something_happens() {
    if (chance(0.05)) break_something();
    if (chance(0.02) && !net_.broken().empty()) end_something();
    if (chance(0.03)) behave();
    if (chance(0.02)) watch_.mood = Watch::Mood::full;
    if (watch_.mood == Watch::Mood::full && chance(0.2)) watch_.mood = Watch::Mood::works;
    if (chance(0.01)) watch_.mood = Watch::Mood::last_words;
    if (chance(0.1)) say_something();
    if (chance(0.01)) die();
  }
  void break_something() {
    // Those behind are of scenarios.
    const auto kind =
        static_cast<FaultKind>(rng_.below(static_cast<std::uint64_t>(FaultKind::host) + 1));
    const std::int64_t lasts =
        chance(0.5) ? static_cast<std::int64_t>(rng_.below(100)) * second : 0;
    const double loss = chance(0.5) ? 0.02 : 0.3;
    Entity part;
    switch (kind) {
      case FaultKind::cable:
        part = model::entity(any(chance(0.8) ? site_.trunks : site_.leaves));
        break;
      case FaultKind::grey:
      case FaultKind::optic:
      case FaultKind::flap:
        part = model::entity(any(site_.trunks));
        break;
      case FaultKind::device:
      case FaultKind::control_plane:
        part = model::entity(any(site_.switches));
        break;
      case FaultKind::nic:
        part = model::entity(any(site_.nics));
        break;
      case FaultKind::host:
        part = model::entity(any(site_.hosts));
        break;
      default:  // cards: these switches have none
        return;
    }
    if (chance(0.2))
      net_.begin_lemon(kind, part, loss, 60 * second);
    else
      net_.begin(kind, part, loss, lasts);
  }
  void end_something() {
    for (std::uint32_t i = 0; i < net_.faults().size(); ++i)
      if (!net_.faults()[i].end && chance(0.3)) net_.end(i);
  }
  void behave() {
    OperationsSettings::ActuatorFaults faults;
    const double bad = chance(0.5) ? 0.3 : 0;
    switch (rng_.below(6)) {
      case 0:
        faults.fails = 0.2 + bad;
        break;
      case 1:
        faults.unheard = 0.4 + bad;
        break;
      case 2:
        faults.lies = 0.2 + bad;
        break;
      case 3:
        faults.late = 0.5;
        break;
      case 4:
        faults = {.refuses = bad, .blind = 0.5};
        break;
      default:
        break;
    }
    net_.set_actuators(faults);
  }
  void say_something() {
    std::vector<const Ticket*> open;
    for (const auto& [id, ticket] : controller_->repair().tickets())
      if (!is_over(ticket.stage)) open.push_back(&ticket);
    Command word{.kind = static_cast<Command::Kind>(rng_.below(8)),
                 .who = "ann",
                 .reason = "she wants it",
                 .until = {now_ + static_cast<std::int64_t>(1 + rng_.below(60)) * second}};
    using enum Command::Kind;
    if (word.kind < kill_switch) {
      if (open.empty()) return;
      word.case_id = any(open)->lead().id;
    } else if (chance(0.7)) {
      word.kind = revive;
    }
    tell(word);
  }
  void tell(const Command& word) {
    if (!controller_->command(word, {now_})) return;
    if (word.kind == Command::Kind::kill_switch) is_killed_ = true;
    if (word.kind == Command::Kind::revive) is_killed_ = is_kill_durable_ = false;
  }

  // ---- one turn of the service's loop ----

  void turn() {
    feed();
    if (watch_.is_dead) return die();
    auto orders = controller_->tick({now_});
    if (watch_.is_dead || (orders && chance(0.005))) return die();  // nobody carries them out
    if (orders) {
      is_kill_durable_ = is_killed_;
      note_suspected();
      for (Order& order : *orders) {
        known_at_[order.id] = known_;
        errands_.push_back({std::move(order), {now_ + delay()}, {}});
      }
    }
    for (std::size_t i = 0; i < errands_.size(); ++i)
      if (errands_[i].due.ns <= now_ && run_errand(errands_[i]) == End::death) return die();
    std::erase_if(errands_, [](const Errand& e) { return e.order.id.empty(); });
    visits();
    check();
  }
  std::int64_t delay() {
    if (is_healed_) return 0;
    if (chance(0.02)) return 25 * second;  // longer than the controller waits
    return static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(3 * second / 2)));
  }
  void feed() {
    if (outbox_.empty()) return;
    const serve::Controller::Batch batch{
        serve::Feed::record, {outbox_.begin(), outbox_.end()}, "192.0.2.1"};
    const auto receipts = controller_->accept({&batch, 1}, {now_});
    if (!receipts) return;  // sent again
    if (receipts->front().refused_count > 0) complain(receipts->front().refused[0].why);
    acknowledged_.insert(acknowledged_.end(), outbox_.begin(), outbox_.end());
    outbox_.clear();
  }
  // What the guards knew when they decided: suspected before this turn, and still.
  void note_suspected() {
    const std::vector<Entity> now = controller_->repair().suspected();
    known_.clear();
    for (const Entity& e : now)
      if (std::ranges::find(suspected_, e) != suspected_.end()) known_.push_back(e);
    suspected_ = now;
  }

  enum class End : std::uint8_t { done, death };
  End run_errand(Errand& errand) {
    if (!errand.outcome) {
      errand.outcome = perform(errand.order);
      if (!is_healed_ && chance(0.01)) return End::death;
      errand.due = {now_ + (is_healed_ || chance(0.5) ? 0 : second)};
      if (!is_healed_ && chance(0.01)) errand.order.id.clear();  // nobody ever hears of it
      if (errand.order.id.empty() || errand.due.ns > now_) return End::done;
    }
    controller_->outcome(*errand.outcome, {now_});
    errand.order.id.clear();
    return End::done;
  }
  Outcome perform(const Order& order) {
    Outcome out{.order = order.id};
    const auto set = [&](const auto& result, auto& to) {
      if (result)
        to = *result;
      else
        out.error = result.error();
    };
    if (order.kind == OrderKind::look) set(net_.state(order.entity), out.service);
    if (order.kind == OrderKind::check) set(net_.check(order.entity), out.check);
    if (order.kind == OrderKind::act) act(order, out);
    if (order.kind == OrderKind::forecast && !is_healed_) {
      out.forecast = {.jobs = 1, .slowdown_max = chance(0.2) ? 2.0 : 1.0, .worst = "job"};
      if (chance(0.1)) out.error = Error{Errc::io, {}, "the engine is not there", "", {}};
    }
    return out;
  }
  void act(const Order& order, Outcome& out) {
    if (!controller_->may_act(order, {now_})) {
      out.error = Error{Errc::infeasible, {}, "cancelled: a guard now forbids this action", "", {}};
      return;
    }
    ++counts_.acts;
    const bool is_drain = order.action.kind == port::ActionKind::drain;
    if (is_killed_ && (is_drain || !policy_.guards.undrain_when_killed))
      complain(
          fmt::format("{} of {} under the kill switch", to_text(order.action.kind), order.entity));
    if (!watch_.orders.contains(order.id))
      complain("an act was not written down before: " + order.id);
    acts_.insert({order.id, order.action.id});
    if (is_drain) check_drain(order);
    if (const Status done = net_.act(order.action); !done) out.error = done.error();
  }
  void check_drain(const Order& order) {
    std::vector<Entity> gone = net_.drained();
    const std::vector<Entity>& known = known_at_[order.id];
    gone.insert(gone.end(), known.begin(), known.end());
    const auto part = model::find_entity(site_.fabric, {order.entity, {}});
    REQUIRE(part.has_value());
    ++counts_.drains;
    if (const std::string why = uplinks_.breach(gone, *part, policy_.guards); !why.empty())
      complain(fmt::format("an unsafe drain of {}: {}", order.entity, why));
  }
  void visits() {
    for (const auto& [id, ticket] : controller_->repair().tickets())
      if (!is_healed_ && ticket.key().kind != model::EntityKind::none &&
          (ticket.stage == Stage::repairing || ticket.stage == Stage::proposed) && chance(0.02))
        net_.call_technician(model::name(site_.fabric, ticket.key()),
                             ticket.is_offender ? Operations::Job::replace : Operations::Job::mend);
    for (const Operations::Visit& visit : net_.visits()) {
      std::string of;
      for (const auto& [id, ticket] : controller_->repair().tickets())
        if (!is_over(ticket.stage) && ticket.key().kind != model::EntityKind::none &&
            model::name(site_.fabric, ticket.key()) == visit.entity)
          of = id;
      if (!of.empty() && chance(visit.has_found ? 0.8 : 0.2))
        tell({.kind = Command::Kind::repaired, .case_id = of, .who = "bob", .reason = "mended"});
    }
  }

  // ---- what must hold at all times ----

  void check() {
    const std::vector<Entity> drained = net_.drained();
    if (const std::string why = uplinks_.breach(drained, std::nullopt, policy_.guards);
        !why.empty())
      complain("by our drains alone " + why);
    const std::vector<Entity> held = controller_->repair().held();
    for (const Entity& part : drained)
      if (std::ranges::find(held, part) == held.end())
        complain(model::name(site_.fabric, part) + " is drained, and nobody knows");
  }

  // ---- the end ----

  void heal() {
    is_healed_ = true;
    watch_.mood = Watch::Mood::works;
    if (watch_.is_dead) die();
    net_.set_actuators({});
    net_.end_all();
    tell({.kind = Command::Kind::revive, .who = "ann", .reason = "all is well"});
    for (const auto& [id, ticket] : controller_->repair().tickets())
      if (!is_over(ticket.stage) && ticket.is_held)
        tell(
            {.kind = Command::Kind::release, .case_id = id, .who = "ann", .reason = "all is well"});
  }
  bool is_at_rest() const {
    return outbox_.empty() && errands_.empty() && controller_->open_cases().empty() &&
           std::ranges::all_of(controller_->repair().tickets(),
                               [](const auto& row) { return is_over(row.second.stage); });
  }
  void step_to_next() {
    std::optional<Timestamp> next = controller_->next_due();
    const auto wake = [&](std::optional<Timestamp> t) {
      if (t && (!next || *t < *next)) next = t;
    };
    wake(net_.next_due());
    for (const Errand& errand : errands_) wake(errand.due);
    if (!next) return complain("nothing is due, and not all is over: " + story());
    advance(std::clamp<std::int64_t>(next->ns - now_, second / 10, 3600 * second));
  }
  // Only where the machine said that it waits for people.
  void people_help() {
    std::vector<Command> words;
    for (const auto& [id, ticket] : controller_->repair().tickets()) {
      if (ticket.reason.empty() && !is_over(ticket.stage) && ticket.stage != Stage::detected)
        complain(id + " does not say why it is where it is");
      if (ticket.stage == Stage::failed && ticket.is_reserved)
        words.push_back({.kind = Command::Kind::approve, .case_id = id, .who = "ann"});
      if (ticket.stage == Stage::repairing && (ticket.is_offender || ticket.no_means))
        words.push_back({.kind = Command::Kind::repaired, .case_id = id, .who = "bob"});
    }
    for (const Command& word : words) tell(word);
  }
  std::string story() const {
    std::string out;
    for (const auto& [id, ticket] : controller_->repair().tickets())
      if (!is_over(ticket.stage))
        out += fmt::format("{} of {} is {}: {}; ", id,
                           ticket.key().kind == model::EntityKind::none
                               ? std::string("nothing")
                               : model::name(site_.fabric, ticket.key()),
                           to_text(ticket.stage), ticket.reason);
    for (const std::string& id : controller_->open_cases()) out += id + " is open; ";
    return out;
  }
  void judge() {
    if (has_failed()) return;
    if (!is_at_rest()) return complain("it never comes to rest: " + story());
    for (const Entity& part : net_.drained())
      complain(model::name(site_.fabric, part) + " is still drained");
    judge_events();
    judge_audit();
    std::map<std::string, int> effects;
    for (const Operations::Effect& effect : net_.effects())
      if (++effects[effect.action.id] > 1) complain("done twice: " + effect.action.id);
  }
  void judge_events() {
    const auto events = store_->events(1, SIZE_MAX);
    REQUIRE(events.has_value());
    std::vector<std::string> lines;
    // The service's own orders are events, too: nobody sent them.
    for (const port::StoredEvent& event : *events)
      if (event.line.find(R"("source":"controller")") == std::string::npos)
        lines.push_back(event.line);
    if (lines != acknowledged_)
      complain(fmt::format("{} lines were acknowledged, and the store has {}", acknowledged_.size(),
                           lines.size()));
  }
  // Every act has its intent and its result: told, lost, too late, or looked for after a death.
  void judge_audit() {
    const auto audit = store_->audit(1, "", SIZE_MAX);
    REQUIRE(audit.has_value());
    std::set<std::string> results;
    for (const port::AuditEntry& entry : *audit)
      if (entry.action == "outcome" || entry.action == "lost" || entry.action == "late")
        results.insert(order_of(entry));
      else if (entry.action == "in doubt")
        results.insert(entry.detail);
    for (const auto& [order, action] : acts_) {
      const bool is_doubted = std::ranges::any_of(results, [&](const std::string& detail) {
        return detail.find("\"" + action + "\"") != std::string::npos;
      });
      if (!results.contains(order) && !is_doubted) complain("no result of order " + order);
    }
  }

  const Site& site_;
  std::string path_;
  Rng rng_;
  operate::repair::Policy policy_;
  Uplinks uplinks_;
  Operations net_;
  std::int64_t now_ = start_ns;
  Watch watch_;
  std::unique_ptr<Watched> store_;
  std::unique_ptr<serve::Controller> controller_;
  std::deque<std::string> outbox_;
  std::vector<std::string> acknowledged_;
  std::deque<Errand> errands_;
  std::set<std::pair<std::string, std::string>> acts_;  // order, action
  std::vector<Entity> suspected_, known_;
  std::map<std::string, std::vector<Entity>> known_at_;  // by order
  bool is_killed_ = false, is_kill_durable_ = false, is_healed_ = false;
  std::string trouble_;
  Counts counts_;
};

// A death of the process leaves what it wrote wherever that is; of a machine's is the store's test.
std::string fast_directory() {
  struct stat info{};
  const char* const memory = "/dev/shm";
  return ::stat(memory, &info) == 0 && S_ISDIR(info.st_mode)
             ? memory
             : std::filesystem::temp_directory_path().string();
}

void play(std::uint64_t sequences) {
  const std::array<Site, 4> sites{
      Site("{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}"),
      Site("{generator: ai_zone, racks: 6, hosts_per_rack: 1, gpus_per_host: 2, spines: 3}"),
      Site("{generator: ai_zone, racks: 2, hosts_per_rack: 2, gpus_per_host: 2, spines: 8}"),
      Site("{generator: multi_plane, planes: 2, racks: 3, hosts_per_rack: 2, gpus_per_host: 1, "
           "spines: 4}")};
  const std::uint64_t first = doctest::getContextOptions()->rand_seed;
  Counts sum;
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t seed = first; seed < first + sequences; ++seed) {
    const TestFolder directory(fast_directory());
    Sequence sequence(sites[seed % sites.size()], directory.file("weft.db"), seed);
    sequence.run();
    CHECK_MESSAGE(!sequence.has_failed(), "--rand-seed=" << seed << ": " << sequence.trouble());
    if (sequence.has_failed() && sequences == 1) MESSAGE(sequence.log());
    sum.add(sequence.counts());
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  MESSAGE(
      fmt::format("{} sequences, {} turns, {} faults, {} lines acknowledged, {} acts asked for "
                  "({} drains), {} had an effect, {} deaths, in {:.1f} s",
                  sequences, sum.ticks, sum.faults, sum.lines, sum.acts, sum.drains, sum.effects,
                  sum.deaths, std::chrono::duration<double>(took).count()));
  CHECK(sum.drains >= sequences / 2);  // it was worth it
}

}  // namespace

constexpr int few = test_effort(120);

TEST_CASE("a few sequences: nothing unsafe is done, nothing is lost, all is well in the end") {
  play(few);
}

TEST_CASE("ten thousand sequences" * doctest::skip()) { play(10'000); }

TEST_CASE("one sequence" * doctest::skip()) { play(1); }
