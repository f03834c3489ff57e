#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "controller_kit.hpp"
#include "port/test_store.hpp"

using namespace weft;
using namespace weft::controller_test;
using operate::repair::Order;
using operate::repair::OrderKind;

namespace {

std::vector<port::Document> documents(Life& life, std::string_view kind) {
  auto out = life.store().documents(kind, {timestamp_ns_max}, 1000);
  REQUIRE(out.has_value());
  return *out;
}
std::vector<port::Document> cases(Life& life) { return documents(life, "case"); }

std::size_t count(const std::vector<Order>& orders, OrderKind kind) {
  return static_cast<std::size_t>(std::ranges::count(orders, kind, &Order::kind));
}

// A store that fails when it is told to.
class Failing : public port::ForwardingStore {
 public:
  Failing(std::unique_ptr<port::Store> real, const bool& is_broken)
      : ForwardingStore(std::move(real)), is_broken_(is_broken) {}
  Result<std::uint64_t> commit(const port::Commit& commit) override {
    if (is_broken_) return fail(Errc::io, {}, "no space left on the device", "make room");
    return ForwardingStore::commit(commit);
  }

 private:
  const bool& is_broken_;
};

}  // namespace

TEST_CASE("lines are refused one by one, known ones are not kept twice") {
  World world;
  Life life(world);
  const std::string good = Life::record("a", world.now, "rtsw:1->ctsw:2", "link_down");
  const auto first = life.say({good, "{", "", R"({"id":"b","kind":"link_down"})", good});
  REQUIRE(first.has_value());
  CHECK(first->acknowledged == 3);
  CHECK(first->known == 2);  // the blank one and the repeat
  REQUIRE(first->refused.size() == 2);
  CHECK(first->refused[0].line == 2);
  CHECK(first->refused[1].why.find("\"t\"") != std::string::npos);
  const auto again = life.say({good});
  CHECK(again->known == 1);
  CHECK(life.store().events(1, 100)->size() == 1);
  // Whatever it is, a syslog message is kept.
  const auto raw = life.say({"<13>x", std::string("\0\xff garbage", 10)}, serve::Feed::syslog);
  CHECK(raw->acknowledged == 2);
  CHECK(life.store().events(1, 100)->size() == 3);
}

TEST_CASE("a new life knows what the last one knew") {
  World world;
  const std::string down = Life::record("a", world.now, "rtsw:1->ctsw:2", "link_down");
  std::string id;
  {
    Life life(world);
    REQUIRE(life.say({down}));
    life.pass(3 * second);
    REQUIRE(cases(life).size() == 1);
    id = cases(life)[0].id;
    CHECK(cases(life)[0].body.find("provisional") != std::string::npos);
  }
  {
    Life life(world);  // before the case is final
    CHECK(life.say({down})->known == 1);
    life.pass(60 * second);
    REQUIRE(cases(life).size() == 1);
    CHECK(cases(life)[0].id == id);
    CHECK(cases(life)[0].body.find(R"("standing":"open")") != std::string::npos);
  }
  Life life(world);
  const Timestamp updated = cases(life)[0].updated;
  life.pass(5 * second);
  CHECK(cases(life)[0].updated == updated);  // nothing new was said of it
  REQUIRE(life.say({Life::record("b", world.now, "rtsw:1->ctsw:2", "link_up")}));
  life.pass(60 * second);
  CHECK(cases(life).size() == 1);
  CHECK(cases(life)[0].body.find(R"("record":"b")") != std::string::npos);
}

TEST_CASE("who has a case is kept over lives; of a case that is not there nobody says anything") {
  World world;
  std::string id;
  const auto say = [&](Life& life, serve::Command::Kind kind) {
    return life.controller().command(
        {.kind = kind, .case_id = id, .who = "ann", .reason = "words", .owner = {}, .until = {}},
        {world.now});
  };
  {
    Life life(world);
    for (const char* lane : {"a", "b", "c"})
      REQUIRE(life.say({Life::record(lane, world.now, "rtsw:1->ctsw:1", "link_down")}));
    life.pass(60 * second);
    const auto cases = life.controller().open_cases();
    REQUIRE(cases.size() == 1);
    id = "nobody";
    CHECK(say(life, serve::Command::Kind::own).error().code == Errc::unknown);
    id = cases.front();
    REQUIRE(say(life, serve::Command::Kind::own));
    life.pass(second);
  }
  Life life(world);
  REQUIRE(say(life, serve::Command::Kind::comment));
  life.pass(second);
  const auto kept = life.store().document(serve::handling_kind, id);
  REQUIRE(kept.has_value());
  CHECK(kept->body.find(R"("owner":"ann")") != std::string::npos);
  CHECK(kept->body.find(R"("comments":1)") != std::string::npos);
  // It became part of another: words about it belong there.
  REQUIRE(life.store().commit(
      {.documents = {{"case", id, {world.now}, R"({"standing":"superseded","into":"c9"})"}}}));
  const Status refused = say(life, serve::Command::Kind::own);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::infeasible);
  CHECK(refused.error().text().find("c9") != std::string::npos);
}

TEST_CASE("feeds are read back in the order of their events") {
  World world;
  {
    Life life(world);
    for (int i = 0; i < 3; ++i) {
      REQUIRE(
          life.say({"<187>1 2027-01-15T08:00:00Z ctsw:2 kernel - - - Ethernet1/1: Link is Down"},
                   serve::Feed::syslog));
      REQUIRE(life.say(
          {Life::record(fmt::format("r{}", i), world.now, "rtsw:1->ctsw:3", "link_down")}));
    }
    life.pass(60 * second);
    CHECK(cases(life).size() == 2);
  }
  Life life(world);
  const auto before = cases(life);
  life.pass(second);
  CHECK(cases(life) == before);
}

TEST_CASE("a record is found with the line that was said, by its own id or its event's") {
  World world;
  Life life(world);
  REQUIRE(life.say({Life::record("a", world.now, "rtsw:1->ctsw:2", "link_down"),
                    Life::record("e1", world.now, "rtsw:2->ctsw:2", "link_down")}));
  REQUIRE(life.say({"<187>Nov 23 10:00:00 rtsw-1 flux capacitor 1 is out of phase",
                    "<187>Nov 23 10:00:00 rtsw-1 flux capacitor 2 is out of phase"},
                   serve::Feed::syslog));
  const auto found = life.controller().records(
      {.ids = {"a", "e1", "e4", "e9", "b"}, .since = {}, .until = end_of_time}, 1);
  REQUIRE(found.has_value());
  const auto body = nlohmann::json::parse(*found);
  REQUIRE(body["items"].size() == 3);
  CHECK(body["items"][0]["seq"] == 1);
  CHECK(body["items"][0]["record"]["entity"] == "rtsw:1->ctsw:2");
  CHECK(body["items"][0]["record"]["kind"] == "link_down");
  // Somebody gave a record the name that an event would have: an event with a name has no other.
  CHECK(body["items"][1]["id"] == "e1");
  CHECK(body["items"][1]["seq"] == 2);
  CHECK(body["items"][2]["feed"] == "syslog");
  const std::string line = body["items"][2]["line"];
  CHECK(line.ends_with("flux capacitor 2 is out of phase"));
  CHECK(body["items"][2]["record"]["kind"] == "info");
  CHECK(body["missing"] == nlohmann::json{"e9", "b"});
}

TEST_CASE("a kind or part that is not known is kept, counted, told in the receipt and shown") {
  World world;
  Life life(world);
  const auto got = life.say({Life::record("a", world.now, "rtsw:1->ctsw:2", "link_downn"),
                             Life::record("b", world.now, "rtsw:77--ctsw:0", "link_down"),
                             Life::record("c", world.now, "rtsw:1->ctsw:2", "link_up")});
  REQUIRE(got.has_value());
  CHECK(got->acknowledged == 3);
  CHECK(got->unknown_kinds == 1);
  CHECK(got->unknown_entities == 1);
  const std::string metrics = life.controller().metrics({world.now});
  CHECK(metrics.find("weft_records_unknown_kind_total 1\n") != std::string::npos);
  CHECK(metrics.find("weft_records_unknown_entity_total 1\n") != std::string::npos);
  const auto feeds = nlohmann::json::parse(life.controller().view(serve::View::feeds, {world.now}));
  REQUIRE(feeds["unknown"].size() == 2);
  CHECK(feeds["unknown"][0]["text"] == "\"rtsw:77--ctsw:0\" is not in the fabric");
  CHECK(feeds["unknown"][1]["text"] == "the kind \"link_downn\" is not known");
  CHECK(feeds["unknown"][1]["device"] == "rtsw:1");
}

TEST_CASE("a prober whose clock runs ahead blames nobody, and is named") {
  World world;
  Life life(world);
  const auto row = [&](std::int64_t t, int lost) {
    return fmt::format(
        R"({{"t":"{}","src":"nic:0","dst":"nic:4","sport":1,"class":"0","leg":"forward",)"
        R"("path":["nic:0->rtsw:0","rtsw:0->ctsw:1","ctsw:1->rtsw:2","rtsw:2->nic:4"],)"
        R"("sent":1000,"lost":{},"late":0,"rtt_us":{{"p50":5,"p99":9}}}})",
        t, lost);
  };
  const std::int64_t began = world.now;
  REQUIRE(life.say({row(began + 600 * second, 500), row(began - 86'400 * second, 500)},
                   serve::Feed::evidence));
  REQUIRE(life.say({row(began + second, 0)}, serve::Feed::evidence));
  life.pass(3 * second);
  const std::string metrics = life.controller().metrics({world.now});
  CHECK(metrics.find("weft_evidence_ahead_total 1\n") != std::string::npos);
  CHECK(metrics.find("weft_evidence_late_total 1\n") != std::string::npos);
  CHECK(metrics.find("weft_evidence_rows_total 1\n") != std::string::npos);
  CHECK(metrics.find("weft_verdicts_total 0\n") != std::string::npos);
  const auto feeds = nlohmann::json::parse(life.controller().view(serve::View::feeds, {world.now}));
  REQUIRE(feeds["unknown"].size() == 1);
  CHECK(feeds["unknown"][0]["device"] == "nic:0");
  CHECK(feeds["unknown"][0]["text"] ==
        "probe results of nic:0 came 600 s before their time and "
        "are not used: set its clock");
  CHECK(feeds["speakers"][0]["last"] == to_text(Timestamp{began}));
}

TEST_CASE("views of the network: cables, probes, capacity, feeds, and the same as metrics") {
  World world;
  Life life(world);
  const auto view = [&](serve::View of) {
    return nlohmann::json::parse(life.controller().view(of, {world.now}));
  };
  const auto fabric = view(serve::View::fabric);
  REQUIRE(fabric["tiers"].size() == 1);
  CHECK(fabric["tiers"][0]["rows"] == "rtsw");
  CHECK(fabric["tiers"][0]["cables"].size() == 16);
  CHECK(fabric["tiers"][0]["racks"] == nlohmann::json{"rack:0", "rack:1", "rack:2", "rack:3"});
  // A tenth is lost from rack 0 to rack 2; nothing the other way, which is older than is kept.
  const auto row = [&](std::int64_t t, int from, int to, int lost) {
    return fmt::format(
        R"({{"t":"{}","src":"nic:{}","dst":"nic:{}","sport":1,"class":"0","leg":"forward",)"
        R"("path":["nic:{}->rtsw:{}","rtsw:{}->ctsw:1","ctsw:1->rtsw:{}","rtsw:{}->nic:{}"],)"
        R"("sent":100,"lost":{},"late":0,"rtt_us":{{"p50":5,"p99":9}}}})",
        t, 2 * from, 2 * to, 2 * from, from, from, to, to, 2 * to, lost);
  };
  REQUIRE(life.say({row(world.now - second, 0, 2, 10), row(world.now - second, 1, 2, 0)},
                   serve::Feed::evidence));
  REQUIRE(life.say({row(world.now - 60 * second, 2, 0, 50)}, serve::Feed::evidence));
  const auto probes = view(serve::View::probes);
  CHECK(probes["rows"] == 2);
  CHECK(probes["links_probed"] == 6);
  CHECK(probes["links_all"] == 2 * (16 + 8));
  CHECK(probes["racks"] == nlohmann::json{"rack:0", "rack:2", "rack:1"});
  CHECK(probes["pairs"].size() == 2);
  CHECK(probes["links"][0]["lost"] == 10);
  REQUIRE(life.say({Life::record("a", world.now, "rtsw:1->ctsw:2", "link_down"),
                    Life::record("b", world.now, "ctsw:2->rtsw:1", "link_down")}));
  life.pass(2 * second);
  const auto feeds = view(serve::View::feeds);
  CHECK(feeds["silent_switches"].size() == 6);
  CHECK(feeds["speakers"].size() == 5);  // rtsw:1, ctsw:2 and three probers
  // Believed and drained, or on its way there: a quarter of the rack's uplinks.
  const auto capacity = view(serve::View::capacity);
  CHECK(capacity["kill_switch"] == false);
  CHECK(capacity["groups"][0]["name"] == "rtsw:1");
  CHECK(capacity["groups"][0]["share_without_suspects"] == 0.75);
  CHECK(capacity["groups_whole"].get<std::size_t>() + capacity["groups"].size() == 8);
  const std::string metrics = life.controller().metrics({world.now});
  for (const char* wanted :
       {"weft_rack_loss_ratio{rack=\"rack:2\"} 0.05\n",
        "weft_rack_rtt_p99_seconds{rack=\"rack:2\"} 9e-06\n",
        "weft_link_loss_ratio{link=\"rtsw:0->ctsw:1\"} 0.1\n", "weft_links{which=\"probed\"} 6\n",
        "weft_cases_open_by_kind{kind=\"cable\"} 1\n"})
    CHECK_MESSAGE(metrics.find(wanted) != std::string::npos, wanted);
}

TEST_CASE("a rack that two faults leave below its reserve is a case of its own") {
  World world;
  world.policy = policy_of("{problems: {cable: {mode: observe}}}");
  const auto capacity_case = [&](Life& life) -> nlohmann::json {
    for (const port::Document& document : cases(life))
      if (auto body = nlohmann::json::parse(document.body); body["cause"]["kind"] == "capacity")
        return body;
    return nullptr;
  };
  const auto fail_cable = [&](Life& life, int spine, std::string_view kind) {
    const std::string link = fmt::format("rtsw:1->ctsw:{}", spine);
    REQUIRE(life.say({Life::record(fmt::format("{}-{}", kind, spine), world.now, link, kind)}));
  };
  {
    Life life(world);
    fail_cable(life, 0, "link_down");
    life.pass(90 * second);
    CHECK(capacity_case(life).is_null());
    fail_cable(life, 2, "link_down");
    life.pass(50 * second);
    CHECK(capacity_case(life).is_null());
    life.pass(60 * second);
    const auto body = capacity_case(life);
    REQUIRE_FALSE(body.is_null());
    CHECK(body["cause"]["entity"] == "rack:1");
    CHECK(life.controller().open_count() == 3);
  }
  Life life(world);  // of another life, and neither forgotten nor told twice
  const auto records = life.store().events(1, 100)->size();
  life.pass(60 * second);
  CHECK(life.store().events(1, 100)->size() == records);
  CHECK(capacity_case(life)["closed"].is_null());
  fail_cable(life, 0, "link_up");
  life.pass(1200 * second);
  CHECK(capacity_case(life)["closed"].is_string());
  CHECK(capacity_case(life)["members"].size() == 2);  // low, and enough again
}

TEST_CASE("a store that fails costs time and nothing else") {
  World world;
  bool is_broken = false;
  Life life(world, [&](std::unique_ptr<port::Store> real) {
    return std::make_unique<Failing>(std::move(real), is_broken);
  });
  const std::string down = Life::record("a", world.now, "rtsw:1->ctsw:2", "link_down");
  is_broken = true;
  CHECK_FALSE(life.say({down}).has_value());
  is_broken = false;
  CHECK(life.say({down})->known == 0);  // it was not taken the first time
  is_broken = true;
  CHECK(life.pass(10 * second).empty());  // nothing is ordered that is not written down
  CHECK(cases(life).empty());
  is_broken = false;
  CHECK_FALSE(life.pass(second).empty());
  CHECK(cases(life).size() == 1);
}

TEST_CASE("what is over is kept as long as the settings say") {
  constexpr std::int64_t minute = 60 * second;
  World world;
  world.settings.replay_ns = minute;
  world.settings.events_ns = 2 * minute;
  world.settings.cases_ns = 10 * minute;
  Life life(world);
  life.controller().keep_snapshot("c0", "{}", {world.now});
  life.pass(second);
  world.now += minute;
  const auto snapshots = [&] { return documents(life, "snapshot").size(); };
  REQUIRE(life.say({Life::record("a", world.now, "rtsw:1->ctsw:2", "link_down")}));
  life.controller().keep_snapshot("c1", "{}", {world.now});
  for (int i = 0; i < 5; ++i) {
    REQUIRE(life.say({Life::record(fmt::format("i{}", i), world.now, "rtsw:1", "info")}));
    life.pass(minute);
  }
  CHECK(snapshots() == 2);
  world.now += 10 * minute;
  for (int i = 5; i < 10; ++i) {
    REQUIRE(life.say({Life::record(fmt::format("i{}", i), world.now, "rtsw:1", "info")}));
    life.pass(minute);
  }
  CHECK(snapshots() == 1);  // of a time in which a case was open that still is
  CHECK(cases(life).size() == 1);
  REQUIRE(life.say({Life::record("z", world.now, "rtsw:1->ctsw:2", "link_up")}));
  life.pass(120 * minute);
  CHECK(snapshots() == 0);
}

TEST_CASE("records that came too late are too late for a new life as well") {
  World world;
  {
    Life life(world);
    const std::int64_t then = world.now - 3600 * second;
    const auto past = [&](std::string_view id, std::string_view port) {
      return fmt::format(R"({{"id":"{}","t":"{}","received":"{}",)"
                         R"("source":"syslog","entity":"{}","kind":"link_down"}})",
                         id, then, then + second, port);
    };
    REQUIRE(life.say({past("a", "rtsw:1->ctsw:2"), past("b", "ctsw:2->rtsw:1")}));
    life.pass(60 * second);
    CHECK(life.store().events(1, 100)->size() == 2);
    CHECK(cases(life).empty());
  }
  Life life(world);
  life.pass(60 * second);
  CHECK(cases(life).empty());
}

TEST_CASE("an order is given again after a death, and acts are looked at first") {
  World world;
  std::vector<Order> orders;
  {
    Life life(world);
    REQUIRE(life.say({Life::record("a", world.now, "rtsw:1->ctsw:2", "link_down"),
                      Life::record("b", world.now, "ctsw:2->rtsw:1", "link_down")}));
    // The snapshot is reported missing; then the drain is ordered, and the service dies.
    for (int i = 0; i < 60 && count(orders, OrderKind::act) == 0; ++i)
      for (Order& order : life.pass(second / 2)) {
        if (order.kind == OrderKind::snapshot)
          life.controller().outcome({.order = order.id}, {world.now});
        orders.push_back(std::move(order));
      }
    REQUIRE(count(orders, OrderKind::act) == 1);
  }
  Life life(world);
  const std::vector<Order> after = life.pass(2 * second);
  CHECK(count(after, OrderKind::look) >= 1);
  CHECK(count(after, OrderKind::act) == 0);  // not before the network has been looked at
}
