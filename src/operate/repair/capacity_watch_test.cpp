#include "operate/repair/capacity_watch.hpp"

#include "base/test_approx.hpp"
#include "operate/repair/test_kit.hpp"

namespace weft::operate::repair {
namespace {

using namespace testing;

// A fabric, what is out in it, and what was told, as "low rack:0" or "ok rack:0".
struct Watched {
  explicit Watched(model::Fabric f, std::string_view policy_yaml = "{}")
      : fabric(std::move(f)),
        reserve(fabric),
        policy(policy_with(policy_yaml)),
        watch(fabric, reserve, policy) {}

  std::string look(double seconds, const std::vector<std::string>& out) {
    std::vector<Entity> gone;
    for (const std::string& name : out) gone.push_back(part(fabric, name));
    std::string told;
    for (const CapacityNews& news : watch.look(std::move(gone), at(seconds))) {
      told += fmt::format("{}{} {}", told.empty() ? "" : ", ",
                          news.kind == model::EventKind::capacity_low ? "low" : "ok",
                          model::name(fabric, news.at));
      last = news;
    }
    return told;
  }

  model::Fabric fabric;
  Reserve reserve;
  Policy policy;
  CapacityWatch watch;
  CapacityNews last;
};

TEST_CASE("two cables of a rack are low after a minute, and until one is back") {
  Watched w(small_zone());  // three of four uplinks are the reserve
  const std::vector<std::string> both{"rtsw:0--ctsw:0", "rtsw:0--ctsw:2"};
  CHECK(w.look(0, {both[0]}).empty());
  CHECK_FALSE(w.watch.next_due().has_value());
  CHECK(w.look(10, both).empty());
  CHECK(w.watch.next_due() == at(70));
  CHECK(w.look(69.9, both).empty());
  CHECK(w.look(70, both) == "low rack:0");
  CHECK(w.last.share == approx(0.5));
  CHECK(w.last.words ==
        "rack:0 has 800 of 1600 Gbps upwards without rtsw:0--ctsw:0, rtsw:0--ctsw:2; its reserve "
        "is 1200");
  CHECK(w.look(100, both).empty());
  // Told again so that its case lives on.
  CHECK(w.watch.next_due() == at(70 + 1800));
  CHECK(w.look(1870, both) == "low rack:0");
  CHECK(w.look(1900, {both[1]}) == "ok rack:0");
  CHECK_FALSE(w.watch.next_due().has_value());
  CHECK(w.look(1950, {}).empty());
}

TEST_CASE("what lasts for less than a minute is not told, nor is its end") {
  Watched w(small_zone());
  CHECK(w.look(0, {"rtsw:0--ctsw:0", "rtsw:0--ctsw:2"}).empty());
  CHECK(w.look(50, {"rtsw:0--ctsw:0"}).empty());
  CHECK(w.look(200, {"rtsw:0--ctsw:0"}).empty());
}

TEST_CASE(
    "one fault that is enough by itself is its own case only; more beside it change nothing") {
  Watched w(small_zone());
  CHECK(w.look(0, {"rtsw:0"}).empty());
  CHECK(w.look(100, {"rtsw:0", "rtsw:0--ctsw:1"}).empty());
  CHECK(w.look(300, {"rtsw:0", "rtsw:0--ctsw:1", "rtsw:1--ctsw:1"}).empty());
  // Two cables and then the whole switch: it stays low.
  CHECK(w.look(400, {"rtsw:2--ctsw:0", "rtsw:2--ctsw:1"}).empty());
  CHECK(w.look(500, {"rtsw:2--ctsw:0", "rtsw:2--ctsw:1"}) == "low rack:2");
  CHECK(w.look(600, {"rtsw:2"}).empty());
  CHECK(w.look(700, {}) == "ok rack:2");
}

TEST_CASE("a spine and a cable to another: each rack that lacks both") {
  Watched w(small_zone());
  const std::vector<std::string> out{"ctsw:3", "rtsw:1--ctsw:0", "rtsw:3--ctsw:3"};
  CHECK(w.look(0, out).empty());
  CHECK(w.look(60, out) == "low rack:1");  // the cable of rack 3 ends at the spine that is gone
  CHECK(w.look(120, {"ctsw:3", "ctsw:1"}).empty());
  CHECK(w.look(180, {"ctsw:3", "ctsw:1"}) == "low rack:0, low rack:2, low rack:3");
}

TEST_CASE("a plane of a rack has a reserve of its own") {
  Watched w(make_fabric("{generator: multi_plane, planes: 4, racks: 3, hosts_per_rack: 2, "
                        "gpus_per_host: 2, link: 400 Gbps}"),
            "{guards: {rack_share: 0, plane_share: 0.6}}");
  const model::NodeId leaf = w.fabric.to(w.fabric.out(w.fabric.nics()[0]).back());
  std::vector<std::string> up;
  for (const model::LinkId link : w.fabric.out(leaf))
    if (w.fabric.is_switch(w.fabric.to(link)))
      up.emplace_back(w.fabric.name(model::cable_of(link)));
  REQUIRE(up.size() >= 2);
  // Half of the rows' cables and one more, each of them harmless alone.
  up.resize(up.size() / 2 + 1);
  REQUIRE(up.size() > 1);
  CHECK(w.look(0, up).empty());
  CHECK(w.look(100, up).starts_with("low "));
  CHECK(w.last.words.find("in plane") != std::string::npos);
  up.resize(1);
  CHECK(w.look(200, up).starts_with("ok "));
}

TEST_CASE("a new life goes on from what the last one told") {
  Watched w(small_zone());
  const std::vector<std::string> both{"rtsw:0--ctsw:0", "rtsw:0--ctsw:2"};
  w.watch.recall(part(w.fabric, "rack:0"), model::EventKind::capacity_low, at(0));
  w.watch.recall(part(w.fabric, "rack:1"), model::EventKind::capacity_low, at(0));
  w.watch.recall(part(w.fabric, "rtsw:0--ctsw:0"), model::EventKind::drain, at(1));
  CHECK(w.look(100, both) == "ok rack:1");
  CHECK(w.look(1800, both) == "low rack:0");
  CHECK(w.last.words.find("800 of 1600") != std::string::npos);
  w.watch.recall(part(w.fabric, "rack:0"), model::EventKind::capacity_ok, at(1801));
  CHECK_FALSE(w.watch.next_due().has_value());
}

// Second hand: shares by counting cables, for every pair of cables of the zone.
TEST_CASE("all pairs of cables: low exactly where both are of one rack") {
  Watched w(small_zone());
  double t = 0;
  for (int a = 0; a < 16; ++a)
    for (int b = 0; b < a; ++b) {
      const auto cable_of = [](int i) { return fmt::format("rtsw:{}--ctsw:{}", i / 4, i % 4); };
      const std::vector<std::string> out{cable_of(a), cable_of(b)};
      CHECK(w.look(t += 100, out).empty());
      const std::string wanted = a / 4 == b / 4 ? fmt::format("rack:{}", a / 4) : "";
      CHECK(w.look(t += 100, out) == (wanted.empty() ? "" : "low " + wanted));
      CHECK(w.look(t += 100, {}) == (wanted.empty() ? "" : "ok " + wanted));
    }
}

}  // namespace
}  // namespace weft::operate::repair
