// What must hold whatever happens, in small worlds exhaustively and in larger ones at random.
#include "base/hash.hpp"
#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "operate/repair/repair.hpp"
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

//   ctsw:0  ctsw:1
//      | \/ |        half of each rack's uplinks has to stay
//   rtsw:0  rtsw:1
const model::Fabric& tiny() {
  static const model::Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 1, spines: 2, "
      "link: 400 Gbps}");
  return fabric;
}

const model::Fabric& zone() {
  static const model::Fabric fabric = make_fabric(
      "{generator: ai_zone, racks: 6, hosts_per_rack: 2, gpus_per_host: 2, spines: 6, "
      "link: 400 Gbps}");
  return fabric;
}

constexpr std::string_view quick_policy = R"({
  defaults: {soak: 1 min, counts_as_gone: false},
  guards: {rack_share: 0.5, offender: {repairs: 100, within: 30 d}},
  retries: {acts: 2, notices: 2, rollbacks: 1000}})";

// A bench that can be copied, and that checks each thing it does.
struct Checked : Bench {
  Checked(const model::Fabric& f, Policy p) : Bench(f, std::move(p)), reserve(f) {}
  Checked(const Checked& o)
      : Bench(o.fabric, o.policy),
        reserve(o.reserve),
        cases(o.cases),
        acts_when_killed(o.acts_when_killed),
        is_killed(o.is_killed) {
    world.service = o.world.service;
    world.faulty = o.world.faulty;
    world.hand = o.world.hand;
    world.effects = o.world.effects;
    world.acts = o.world.acts;
    memory = o.memory;
    queue = o.queue;
    now = o.now;
    repair = std::make_unique<Repair>(*o.repair);
  }
  Checked& operator=(const Checked&) = delete;

  Reserve reserve;
  std::map<std::string, model::Case> cases;  // as the world has them
  std::size_t acts_when_killed = 0;
  bool is_killed = false;

  void kill(Switch state) {
    is_killed = state == Switch::on;
    acts_when_killed = world.acts.size();
    repair->set_kill_switch(state, {"ann", ""}, now);
    step();  // she is told that it is done when it is durable
  }
  // An act that was ordered was written down before.
  void check_intent() const {
    if (queue.empty() || queue.front().kind != OrderKind::act) return;
    const Order& act = queue.front();
    const auto document = memory.documents.find(act.ticket);
    REQUIRE(document != memory.documents.end());
    CHECK(memory.count("order", fmt::format("\"order\":\"{}\"", act.id)) > 0);
  }
  void check() const {
    Gone gone(fabric);
    for (const auto& [name, service] : world.service)
      if (service != port::Service::in_service) gone.add(part(fabric, name));
    for (const Uplinks& row : reserve.uplinks(gone))
      if (!row.is_gone && row.share() < policy.guards.rack_share - 1e-9)
        FAIL_CHECK(row.name << " keeps " << row.share());
    if (!reserve.cut_off(gone).empty()) FAIL_CHECK("somebody is cut off");
    for (const auto& [id, times] : world.effects)
      if (times != 1) FAIL_CHECK(id << " was done " << times << " times");
    if (is_killed && world.acts.size() != acts_when_killed)
      FAIL_CHECK("acts under the kill switch");
  }
  // All is well, people do what they are asked to: everything comes back.
  void check_convergence() {
    world.hand = Hand::works;
    world.is_blind = false;
    world.faulty.clear();
    if (is_killed) kill(Switch::off);
    for (auto& [id, c] : cases)
      if (!c.closed) repair->see(closed(c, now), now);
    const auto is_done = [&] {
      return std::ranges::all_of(repair->tickets(),
                                 [](const auto& row) { return is_over(row.second.stage); });
    };
    settle();
    for (int round = 0; round < 12 && !is_done(); ++round) {
      run_for(1800);
      for (const auto& [id, t] : repair->tickets()) {
        if (t.is_held) static_cast<void>(repair->hold(id, Switch::off, {"ann", ""}, now));
        if (t.stage == Stage::failed) static_cast<void>(repair->approve(id, {"ann", ""}, now));
        if (t.stage == Stage::repairing) static_cast<void>(repair->repaired(id, {"ann", ""}, now));
      }
    }
    for (const auto& [id, t] : repair->tickets())
      if (!is_over(t.stage)) FAIL_CHECK(id << " ends as " << to_text(t.stage) << ": " << t.reason);
    for (const auto& [name, service] : world.service)
      if (service != port::Service::in_service) FAIL_CHECK(name << " was never returned");
    CHECK(repair->held().empty());
    check();
  }
};

enum class Event : std::uint8_t {
  open_a,  // cable rtsw:0--ctsw:0
  open_b,  // cable rtsw:0--ctsw:1: not both may go
  move_a,  // it is ctsw:0
  close_a,
  withdraw_a,
  mended,
  step,
  perform,
  crash,
  wait,
  hand,  // the next way to behave
  kill,  // and the end of it
};
constexpr int event_count = 12;

void happen(Checked& w, Event event) {
  switch (event) {
    case Event::open_a:
    case Event::open_b: {
      const bool a = event == Event::open_a;
      const char* cable = a ? "rtsw:0--ctsw:0" : "rtsw:0--ctsw:1";
      model::Case c = make_case(w.fabric, a ? "a" : "b", CauseKind::link, cable, w.now);
      w.world.faulty.insert(cable);
      w.repair->see(w.cases[c.id] = c, w.now);
      break;
    }
    case Event::move_a:
      if (!w.cases.contains("a")) break;
      w.cases["a"].kind = CauseKind::device;
      w.cases["a"].root = part(w.fabric, "ctsw:0");
      w.repair->see(w.cases["a"], w.now);
      break;
    case Event::close_a:
      if (!w.cases.contains("a")) break;
      w.repair->see(w.cases["a"] = closed(w.cases["a"], w.now), w.now);
      break;
    case Event::withdraw_a:
      w.repair->retract("a", "", w.now);
      w.cases.erase("a");
      break;
    case Event::mended:
      w.world.faulty.clear();
      static_cast<void>(w.repair->repaired("a", {"ann", ""}, w.now));
      break;
    case Event::step:
      w.step();
      break;
    case Event::perform:
      w.check_intent();
      w.perform_one();
      break;
    case Event::crash:
      w.start();
      for (const std::string& id : w.repair->open_cases())
        if (!w.cases.contains(id)) w.repair->retract(id, "", w.now);
      for (const auto& [id, c] : w.cases) w.repair->see(c, w.now);
      break;
    case Event::wait: {
      const auto due = w.repair->next_due();
      w.now.ns += 40 * ns_per_s;
      if (due) w.now = std::max(w.now, *due);
      break;
    }
    case Event::hand:
      w.world.hand = static_cast<Hand>((static_cast<int>(w.world.hand) + 1) % 6);
      break;
    case Event::kill:
      w.kill(w.is_killed ? Switch::off : Switch::on);
      break;
  }
  w.check();
}

std::uint64_t digest(const Checked& w) {
  Digest d;
  for (const auto& [id, t] : w.repair->tickets()) d.add(to_json(w.fabric, t));
  for (const auto& [name, service] : w.world.service) {
    d.add(name);
    d.add(static_cast<std::uint64_t>(service));
  }
  for (const std::string& name : w.world.faulty) d.add(name);
  for (const Order& o : w.queue) d.add(o.id);
  for (const auto& [id, c] : w.cases) {
    d.add(id);
    d.add(std::uint64_t{c.closed.has_value()} * 100 + static_cast<std::uint64_t>(c.kind));
  }
  d.add(static_cast<std::uint64_t>(w.world.hand) * 2 + std::uint64_t{w.is_killed});
  d.add(w.now.ns);
  d.add(w.memory.audit.size());
  return d.value();
}

struct Explorer {
  std::map<std::uint64_t, int> seen;  // with how many events to go
  std::uint64_t states = 0;

  void explore(const Checked& from, int left) {
    int& depth = seen[digest(from)];
    if (depth > left) return;
    depth = left + 1;
    ++states;
    if (left == 0) {
      Checked end(from);
      return end.check_convergence();
    }
    for (int e = 0; e < event_count; ++e) {
      Checked next(from);
      happen(next, static_cast<Event>(e));
      explore(next, left - 1);
    }
  }
};

TEST_CASE("every order of a few events is safe, and ends well") {
  // From nothing; from a drain that is ordered; from a part that is out.
  for (const int prefix : {0, 1, 2}) {
    Checked start(tiny(), policy_with(quick_policy));
    if (prefix > 0) happen(start, Event::open_a);
    if (prefix == 1)
      while (start.queue.empty() || start.queue.front().kind != OrderKind::act) {
        start.step();
        if (start.queue.front().kind != OrderKind::act) start.perform_one();
      }
    if (prefix == 2) start.settle();
    Explorer explorer;
    explorer.explore(start, 3);
    CHECK(explorer.states > 100);
    MESSAGE("states: " << explorer.states);
  }
}

// Random faults, moves, words, crashes and hands in a zone of 6 racks under 6 spines.
struct Chaos {
  explicit Chaos(std::uint64_t seed) : rng(seed), w(zone(), policy_with(quick_policy)) {}

  Rng rng;
  Checked w;
  int cases = 0;

  std::string some_cable() { return fmt::format("rtsw:{}--ctsw:{}", rng.below(6), rng.below(6)); }
  model::Case* some_case() {
    if (w.cases.empty()) return nullptr;
    return &std::next(w.cases.begin(), static_cast<std::ptrdiff_t>(rng.below(w.cases.size())))
                ->second;
  }
  void open() {
    const bool is_switch = rng.below(8) == 0;
    const std::string name = is_switch ? fmt::format("ctsw:{}", rng.below(6)) : some_cable();
    constexpr std::array kinds{CauseKind::link, CauseKind::optic, CauseKind::flap};
    model::Case c = make_case(w.fabric, fmt::format("case{}", cases++),
                              is_switch ? CauseKind::device : kinds[rng.below(3)], name, w.now);
    if (rng.below(3) == 0) c.state = model::CaseState::provisional;
    if (rng.below(2) == 0) w.world.faulty.insert(name);
    w.cases[c.id] = c;
    w.repair->see(c, w.now);
  }
  void change() {
    model::Case* c = some_case();
    if (c == nullptr) return open();
    switch (rng.below(5)) {
      case 0:
        c->state = model::CaseState::settled;
        break;
      case 1:
        c->members.push_back({w.now, 1, model::Relation::itself});
        break;
      case 2:
        c->kind = CauseKind::link;
        c->root = part(w.fabric, some_cable());
        break;
      case 3:
        c->closed = w.now;
        w.repair->see(*c, w.now);
        w.cases.erase(c->id);
        return;
      default:
        w.repair->retract(c->id, "", w.now);
        w.cases.erase(c->id);
        return;
    }
    w.repair->see(*c, w.now);
  }
  void speak() {
    model::Case* c = some_case();
    if (c == nullptr) return;
    const Attribution word{"ann", ""};
    switch (rng.below(5)) {
      case 0:
        static_cast<void>(w.repair->approve(c->id, word, w.now));
        break;
      case 1:
        static_cast<void>(w.repair->repaired(c->id, word, w.now));
        break;
      case 2:
        if (rng.below(4) == 0) static_cast<void>(w.repair->reject(c->id, word, w.now));
        break;
      case 3:
        static_cast<void>(
            w.repair->hold(c->id, rng.below(3) == 0 ? Switch::on : Switch::off, word, w.now));
        break;
      default:
        w.kill(rng.below(4) == 0 ? Switch::on : Switch::off);
    }
  }
  // The same documents make the same machine, as long as no result is awaited.
  void check_twin() {
    w.settle();
    Repair twin(w.fabric, w.policy);
    REQUIRE(twin.restore(w.memory.all(), w.now).has_value());
    CHECK(twin.tickets() == w.repair->tickets());
    CHECK(twin.next_due() == w.repair->next_due());
    CHECK(twin.open_cases() == w.repair->open_cases());
    const Timestamp later = twin.next_due().value_or(w.now);
    Repair same(*w.repair);
    const Step a = same.step(later), b = twin.step(later);
    REQUIRE(a.orders.size() == b.orders.size());
    for (std::size_t i = 0; i < a.orders.size(); ++i) CHECK(a.orders[i].id == b.orders[i].id);
    REQUIRE(a.commit.audit.size() == b.commit.audit.size());
    for (std::size_t i = 0; i < a.commit.audit.size(); ++i)
      CHECK(a.commit.audit[i].detail == b.commit.audit[i].detail);
  }
  void event() {
    switch (rng.below(16)) {
      case 0:
      case 1:
        return open();
      case 2:
      case 3:
        return change();
      case 4:
        return speak();
      case 5:
        return happen(w, Event::crash);
      case 6:
        w.world.hand = rng.below(2) == 0 ? Hand::works : static_cast<Hand>(rng.below(6));
        return;
      case 7:
        if (!w.world.faulty.empty()) w.world.faulty.erase(w.world.faulty.begin());
        return;
      case 8:
        w.world.is_blind = rng.below(4) == 0;
        return;
      case 9:
        w.now.ns +=
            static_cast<std::int64_t>(rng.below(120) * static_cast<std::uint64_t>(ns_per_s));
        return;
      case 10:
        w.run_for(static_cast<double>(rng.below(20)));
        return;
      case 11:
        if (rng.below(16) == 0) check_twin();
        return;
      default:
        w.step();
        for (std::uint64_t n = rng.below(6); n > 0; --n) {
          w.check_intent();
          w.perform_one();
        }
    }
  }
};

TEST_CASE("thousands of random sequences are safe, and end well") {
  constexpr std::uint64_t sequences = test_effort(2000);
  std::size_t acts = 0;
  for (std::uint64_t seed = 0; seed < sequences; ++seed) {
    INFO("seed " << seed);
    Chaos chaos(seed);
    for (int i = 0; i < 40; ++i) {
      chaos.event();
      chaos.w.check();
    }
    chaos.w.check_convergence();
    acts += chaos.w.world.acts.size();
  }
  CHECK(acts > sequences);
  MESSAGE("acts: " << acts);
}

TEST_CASE("the same calls give the same steps") {
  std::array<std::string, 2> logs;
  for (std::string& log : logs) {
    Chaos chaos(7);
    for (int i = 0; i < 300; ++i) chaos.event();
    for (const port::AuditEntry& e : chaos.w.memory.audit)
      log += fmt::format("{} {} {} {}\n", e.t.ns, e.actor, e.action, e.detail);
  }
  CHECK(logs[0] == logs[1]);
  CHECK(logs[0].size() > 1000);
}

}  // namespace
}  // namespace weft::operate::repair
