// What the service says of an instant that is over, against what it said at that instant.
#include "serve/past.hpp"

#include <time.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller_kit.hpp"
#include "serve/listing.hpp"

using namespace weft;
using namespace weft::controller_test;
using operate::repair::Order;
using operate::repair::OrderKind;

namespace {

// As the API puts it, with all members.
std::string page(port::Store& store, std::string_view kind) {
  const auto page = serve::read_page(store, {kind, "", end_of_time, 1'000});
  REQUIRE(page.has_value());
  const bool is_case = kind == serve::case_kind;
  return serve::page_json(*page,
                          is_case ? std::optional(serve::MemberWish{0, 10'000}) : std::nullopt);
}

// Of the network without how it was read.
std::string but_past(const std::string& network) {
  return network.substr(0, network.rfind(",\"past\":"));
}

struct Answers {
  std::int64_t at = 0;
  std::string cases, handling, network, probes;
};

// Faults of several kinds, people, and hands that do what they are told.
class Days {
 public:
  explicit Days(World& world) : world_(world), life_(std::make_unique<Life>(world)) {}

  Life& life() { return *life_; }
  void restart() {
    life_.reset();
    life_ = std::make_unique<Life>(world_);
  }
  void say(std::string_view entity, std::string_view kind, std::string_view attrs = "",
           std::string_view source = "syslog") {
    REQUIRE(life_->say({fmt::format(
        R"({{"id":"n{}","t":"{}","source":"{}","entity":"{}","kind":"{}","attrs":{{{}}}}})",
        ++serial_, world_.now - 30'000'000, source, entity, kind, attrs)}));
  }
  void probe(int lost) {
    REQUIRE(life_->say(
        {fmt::format(R"({{"t":"{}","src":"nic:0","dst":"nic:3","sport":4000,"class":"0",)"
                     R"("leg":"forward","path":["nic:0->rtsw:0","rtsw:0->ctsw:1",)"
                     R"("ctsw:1->rtsw:1","rtsw:1->nic:3"],"sent":400,"lost":{},"late":0,)"
                     R"("rtt_us":{{"p50":8,"p99":12}}}})",
                     world_.now - second, lost)},
        serve::Feed::evidence));
  }
  // The controller comes by ten times a second, and when something is due.
  void pass(std::int64_t seconds) {
    for (const std::int64_t end = world_.now + seconds * second; world_.now < end;) {
      const std::int64_t tenth = std::min(end, (world_.now / (second / 10) + 1) * (second / 10));
      const auto due = life_->controller().next_due();
      world_.now = due && due->ns > world_.now ? std::min(due->ns, tenth) : tenth;
      const auto orders = life_->controller().tick({world_.now});
      REQUIRE(orders.has_value());
      for (const Order& order : *orders) perform(order);
      life_->controller().announcements();
    }
  }
  // What is said now.
  void note() {
    serve::Controller& controller = life_->controller();
    said.push_back({world_.now, page(life_->store(), "case"), page(life_->store(), "handling"),
                    controller.view(serve::View::network, {world_.now}),
                    controller.view(serve::View::probes, {world_.now})});
    world_.now += 1'000'000;  // what comes next comes later
  }
  std::string any_open() {
    const auto open = life_->controller().open_cases();
    REQUIRE_FALSE(open.empty());
    return open.front();
  }
  // Of the same case each time.
  void command(serve::Command::Kind kind, std::string_view words) {
    if (owned_.empty()) owned_ = any_open();
    REQUIRE(life_->controller().command({.kind = kind,
                                         .case_id = owned_,
                                         .who = "ann",
                                         .reason = std::string(words),
                                         .owner = "",
                                         .until = {},
                                         .step = "",
                                         .number = ""},
                                        {world_.now}));
  }
  auto past(std::int64_t at) {
    return life_->controller().past({at}, {world_.now}, life_->controller().open_cases(), {});
  }

  std::vector<Answers> said;
  std::set<std::string> drained;
  bool is_mended = false;  // what is drained loses test traffic no more

 private:
  void perform(const Order& order) {
    operate::repair::Outcome out{.order = order.id};
    if (order.kind == OrderKind::act && order.action.kind == port::ActionKind::drain)
      drained.insert(order.entity);
    else if (order.kind == OrderKind::act)
      drained.erase(order.entity);
    else if (order.kind == OrderKind::look)
      out.service =
          drained.contains(order.entity) ? port::Service::drained : port::Service::in_service;
    else if (order.kind == OrderKind::check)
      out.check = {2'000, is_mended ? 0U : 4U};
    life_->controller().outcome(out, {world_.now});
  }

  World& world_;
  std::unique_ptr<Life> life_;
  std::string owned_;
  int serial_ = 0;
};

void cut(Days& days, const std::string& a, const std::string& b, std::string_view kind) {
  days.say(a + "->" + b, kind);
  days.say(b + "->" + a, kind);
}

// Twenty minutes with a cut, a flapping link, faint light, lost probes and what people
// say.
void live(Days& days) {
  using enum serve::Command::Kind;
  const auto rest = [&](std::int64_t seconds) {
    days.pass(seconds);
    days.note();
  };
  cut(days, "rtsw:0", "ctsw:0", "link_down");
  for (const int seconds : {1, 1, 3, 20, 40}) rest(seconds);
  days.command(own, "mine");
  rest(2);
  for (int i = 0; i < 12; ++i) {
    days.say("rtsw:2->ctsw:3", i % 2 == 0 ? "link_down" : "link_up");
    days.probe(i % 3 == 0 ? 30 : 0);
    rest(7);
  }
  days.command(comment, "the optic is on its way");
  rest(1);
  for (int i = 0; i < 14; ++i) {
    days.say("ctsw:2->rtsw:1", "probe_loss", R"("flows":"nic:5>nic:2 49155>0 0 ctsw:2->rtsw:1")",
             "probe");
    rest(1);
  }
  days.is_mended = true;
  cut(days, "rtsw:0", "ctsw:0", "link_up");
  rest(30);
  days.command(disown, "not mine");
  for (int i = 0; i < 8; ++i) rest(120);
}

void check_same(Days& days, const std::vector<Answers>& said) {
  for (const Answers& was : said) {
    CAPTURE((was.at - start_ns) / second);
    const auto past = days.past(was.at);
    REQUIRE_MESSAGE(past.has_value(), (past ? "" : past.error().text()));
    CHECK(page(*(*past)->documents, "case") == was.cases);
    CHECK(page(*(*past)->documents, "handling") == was.handling);
    CHECK(but_past((*past)->network) == but_past(was.network));
    CHECK((*past)->probes == was.probes);
  }
}

}  // namespace

TEST_CASE("the past is told as it was told then") {
  World world;
  Days days(world);
  live(days);
  // Something happened: cases of several states and causes, a drain, an owner, lost probes.
  const auto ever = [&](std::string Answers::* of, std::string_view words) {
    return std::ranges::count_if(
        days.said, [&](const Answers& was) { return (was.*of).find(words) != std::string::npos; });
  };
  for (const char* words : {"\"standing\":\"provisional\"", "\"standing\":\"open\"",
                            "\"closed\":\"20", "\"port_flap\"", "\"cable\""})
    CHECK_MESSAGE(ever(&Answers::cases, words) > 0, std::string(words));
  CHECK(ever(&Answers::handling, "\"owner\":\"ann\"") > 0);
  CHECK(ever(&Answers::network, "\"by\":\"weft\"") > 0);
  CHECK(ever(&Answers::network, "\"rate\":0,") > 0);
  CHECK(ever(&Answers::probes, "\"lost\":30") > 0);
  SUBCASE("in the same life") {}
  SUBCASE("in a later one") {
    world.now += 60 * second;
    days.restart();
    cut(days, "rtsw:3", "ctsw:3", "link_down");
    days.pass(40);
  }
  check_same(days, days.said);
}

TEST_CASE("an instant that the log does not reach is refused") {
  World world;
  world.settings.replay_ns = 60 * second;
  world.settings.events_ns = 600 * second;
  Days days(world);
  CHECK(days.past(world.now).error().text().find("nothing is kept yet") != std::string::npos);
  cut(days, "rtsw:0", "ctsw:0", "link_down");  // and nobody ever mends it
  const std::int64_t first = world.now;
  days.pass(100);
  CHECK(days.past(world.now + 1).error().text().find("is not over") != std::string::npos);
  CHECK(days.past(first - 1).error().text().find("the log reaches back to") != std::string::npos);
  CHECK(days.past(first).has_value());
  // Events were forgotten: what was out of service is said again within replay_ns only.
  REQUIRE(days.life().store().forget_events(2).has_value());
  const auto kept = days.life().store().events(1, 1);
  REQUIRE(kept.has_value());
  REQUIRE(kept->front().seq > 1);
  const std::int64_t begin = kept->front().received.ns + world.settings.replay_ns;
  CHECK(days.past(begin - 1).error().code == Errc::value);
  CHECK(days.past(begin).has_value());
  bool is_cancelled = false;
  const auto none =
      days.life().controller().past({begin}, {world.now}, {}, [&] { return is_cancelled = true; });
  CHECK(is_cancelled);
  CHECK_FALSE(none.has_value());
}

// What docs/api.md says an instant costs.
TEST_CASE("measure an instant of a long log" * doctest::skip()) {
  World world;
  Days days(world);
  constexpr int lines = 200'000, at_once = 1'000;
  for (int i = 0; i < lines; i += at_once) {
    std::vector<std::string> batch;
    for (int k = i; k < i + at_once; ++k)  // a flapping link, and light that is measured again
      batch.push_back(Life::record(fmt::format("m{}", k), world.now - (k % 900) * 1'000'000,
                                   fmt::format("rtsw:{}->ctsw:{}", k % 4, k / 4 % 4),
                                   k % 16 == 0   ? "link_down"
                                   : k % 16 == 1 ? "link_up"
                                                 : "rx_power"));
    REQUIRE(days.life().say(batch).has_value());
    days.pass(60);
  }
  timespec begin{}, end{};
  ::clock_gettime(CLOCK_MONOTONIC, &begin);
  const auto past = days.past(world.now - 60 * second);
  ::clock_gettime(CLOCK_MONOTONIC, &end);
  REQUIRE(past.has_value());
  MESSAGE(fmt::format("{:.2f} s; {}",
                      static_cast<double>(end.tv_sec - begin.tv_sec) +
                          1e-9 * static_cast<double>(end.tv_nsec - begin.tv_nsec),
                      (*past)->network.substr((*past)->network.rfind(",\"past\":"), 120)));
}

TEST_CASE("the log's nearest entries lie on both sides of an instant") {
  World world;
  Days days(world);
  live(days);
  const auto log = days.life().store().audit(1, "", 10'000);
  REQUIRE(log.has_value());
  REQUIRE(log->size() > 20);
  for (const std::int64_t off : {std::int64_t{0}, second / 20}) {
    const Timestamp at{(*log)[log->size() / 2].t.ns + off};
    serve::PastFacts facts;
    REQUIRE(serve::find_neighbours(days.life().store(), at, facts).has_value());
    std::optional<Timestamp> before, after;
    for (const port::AuditEntry& entry : *log) {
      if (entry.t < at) before = entry.t;
      if (entry.t > at && !after) after = entry.t;
    }
    CHECK(facts.previous == before);
    CHECK(facts.next == after);
  }
}
