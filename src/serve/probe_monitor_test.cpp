#include "serve/probe_monitor.hpp"

#include <doctest/doctest.h>

#include "model/formats/test_fabric.hpp"

namespace weft::serve {
namespace {

using model::testing::link;
using model::testing::node;

// All NICs probe all others over each of the spines; what crosses `cable` upwards loses 2 %.
class Rows {
 public:
  explicit Rows(const model::Fabric& fabric) : fabric_(fabric) {}

  model::EvidenceSet lossy(std::string_view cable, Timestamp t,
                           std::optional<Timestamp> path_t = {}) const {
    const model::LinkId lossy = link(fabric_, cable);
    model::EvidenceSet out;
    out.class_index("0");
    for (const model::NodeId src : fabric_.nics())
      for (const model::NodeId dst : fabric_.nics())
        for (const std::string_view spine : {"ctsw:0", "ctsw:1", "ctsw:2", "ctsw:3"}) {
          const model::LinkId up = wire(src), down = model::reverse(wire(dst));
          if (fabric_.to(up) == fabric_.from(down)) continue;
          model::Evidence row{.t = t, .path_t = path_t, .src = src, .dst = dst};
          row.sport = static_cast<std::uint16_t>(node(fabric_, spine).value);
          row.leg = model::Leg::forward;
          const auto via = [&](model::NodeId a, model::NodeId b) {
            return fabric_.links_between(a, b).front();
          };
          const model::NodeId middle = node(fabric_, spine);
          out.set_path(row, std::vector{up, via(fabric_.to(up), middle),
                                        via(middle, fabric_.from(down)), down});
          row.sent = 1000;
          row.lost = out.path(row)[1] == lossy ? 20 : 0;
          out.rows.push_back(row);
        }
    return out;
  }

 private:
  model::LinkId wire(model::NodeId nic) const {
    for (const model::LinkId out : fabric_.out(nic))
      if (fabric_.on_wire(out)) return out;
    FAIL("no cable");
    return {};
  }
  const model::Fabric& fabric_;
};

constexpr Timestamp at(std::int64_t s) { return {1'800'000'000'000'000'000 + s * 1'000'000'000}; }

model::Fabric zone() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
}

// Both directions of a cable.
model::State without(const model::Fabric& fabric, std::string_view cable) {
  model::State out;
  const model::LinkId one = link(fabric, cable);
  out.set(one, {.health = model::Health::down});
  out.set(model::reverse(one), {.health = model::Health::down});
  return out;
}

TEST_CASE("rows over what is drained blame nobody, whatever else they say") {
  const model::Fabric fabric = zone();
  const auto rows = Rows(fabric).lossy("rtsw:1->ctsw:2", at(1));
  const auto lines = [&](const model::State& out) {
    ProbeMonitor monitor(fabric, {});
    monitor.set_out_of_service(out, at(0));
    monitor.add(rows);
    return monitor.look(at(2));
  };
  REQUIRE(lines({}).size() == 1);
  CHECK(lines({}).front().find(R"("entity":"rtsw:1->ctsw:2")") != std::string::npos);
  CHECK(lines(without(fabric, "rtsw:1->ctsw:2")).empty());
  CHECK(lines(without(fabric, "rtsw:3->ctsw:0")).size() == 1);
}

TEST_CASE("rows of before a drain or a return are dropped, also late ones") {
  const model::Fabric fabric = zone();
  const Rows rows(fabric);
  ProbeMonitor monitor(fabric, {});
  monitor.add(rows.lossy("rtsw:1->ctsw:2", at(1)));
  monitor.set_out_of_service(without(fabric, "rtsw:3->ctsw:0"), at(2));
  monitor.add(rows.lossy("rtsw:1->ctsw:2", at(1)));
  CHECK(monitor.look(at(3)).empty());
  monitor.set_out_of_service(without(fabric, "rtsw:3->ctsw:0"), at(4));  // no change
  monitor.add(rows.lossy("rtsw:1->ctsw:2", at(3)));
  CHECK(monitor.look(at(5)).size() == 1);
}

TEST_CASE("a path that was learned before routes changed is kept only while it holds") {
  const model::Fabric fabric = zone();
  const Rows rows(fabric);
  const std::string_view drained = "rtsw:1->ctsw:0", lossy = "rtsw:1->ctsw:2",
                         elsewhere = "rtsw:3->ctsw:2";
  const auto verdicts = [&](std::string_view cable, std::int64_t learned, bool returned) {
    ProbeMonitor monitor(fabric, {});
    monitor.set_out_of_service(without(fabric, drained), at(10));
    if (returned) monitor.set_out_of_service({}, at(20));
    monitor.add(rows.lossy(cable, at(21), at(learned)));
    const std::size_t out = monitor.look(at(22)).size();
    // rtsw:1 hashes anew: only paths of, and to, its rack are old.
    const bool is_old = (learned < 10 && !returned) || (learned >= 10 && learned < 20 && returned);
    CHECK((monitor.counts().old_paths > 0) == is_old);
    return out;
  };
  CHECK(verdicts(lossy, 5, false) == 0);   // learned before the drain
  CHECK(verdicts(lossy, 15, false) == 1);  // anew
  CHECK(verdicts(lossy, 5, true) == 1);    // before the drain, and it is back
  CHECK(verdicts(lossy, 15, true) == 0);   // during the drain
  CHECK(verdicts(lossy, 21, true) == 1);
  CHECK(verdicts(elsewhere, 5, false) == 1);  // other racks choose as before
}

TEST_CASE("while a drain or a return is under way, a path must hold before and after it") {
  const model::Fabric fabric = zone();
  const Rows rows(fabric);
  const std::string_view drained = "rtsw:1->ctsw:0", lossy = "rtsw:1->ctsw:2",
                         elsewhere = "rtsw:3->ctsw:2";
  // A drain is ordered at 10 s and has its effect by 13 s, its return is ordered at 30 s and has
  // its by 33 s.
  const auto verdicts = [&](std::string_view cable, std::int64_t learned, std::int64_t t) {
    const model::State out = without(fabric, drained);
    ProbeMonitor monitor(fabric, {});
    monitor.set_out_of_service(out, {}, at(10));
    if (t >= 13) monitor.set_out_of_service(out, out, at(13));
    if (t >= 30) monitor.set_out_of_service(out, {}, at(30));
    if (t >= 33) monitor.set_out_of_service({}, {}, at(33));
    monitor.add(rows.lossy(cable, at(t), at(learned)));
    return monitor.look(at(t + 1)).size();
  };
  CHECK(verdicts(lossy, 11, 12) == 0);
  CHECK(verdicts(lossy, 11, 14) == 0);  // perhaps of before the effect
  CHECK(verdicts(lossy, 13, 14) == 1);
  CHECK(verdicts(lossy, 13, 31) == 0);  // perhaps it is back
  CHECK(verdicts(lossy, 31, 32) == 0);
  CHECK(verdicts(lossy, 31, 34) == 0);
  CHECK(verdicts(lossy, 33, 34) == 1);
  CHECK(verdicts(lossy, 5, 34) == 1);  // of before it all
  for (const std::int64_t t : {12, 14, 31, 34}) CHECK(verdicts(elsewhere, t - 1, t) == 1);
}

TEST_CASE("what devices say is down moves paths, and drops nothing whose path holds") {
  const model::Fabric fabric = zone();
  const Rows rows(fabric);
  const std::string_view down = "rtsw:1->ctsw:0", beside = "rtsw:1->ctsw:2",
                         elsewhere = "rtsw:3->ctsw:2";
  // Rows of a window that began at `t`, seen when the cable has been down since 10 s, and perhaps
  // up again since 12 s.
  const auto verdicts = [&](std::string_view lossy, std::int64_t t, std::int64_t learned, bool up) {
    ProbeMonitor monitor(fabric, {});
    const model::LinkId one = link(fabric, down);
    monitor.set_down({one, model::reverse(one)}, at(10));
    if (up) monitor.set_down({}, at(12));
    monitor.add(rows.lossy(lossy, at(t), at(learned)));
    return monitor.look(at(14)).size();
  };
  CHECK(verdicts(beside, 10, 5, false) == 0);  // rtsw:1 hashes anew
  CHECK(verdicts(beside, 11, 11, false) == 1);
  CHECK(verdicts(elsewhere, 10, 5, false) == 1);
  CHECK(verdicts(elsewhere, 9, 5, false) == 1);
  CHECK(verdicts(beside, 9, 5, false) == 0);  // the window may have seen both
  CHECK(verdicts(beside, 11, 5, true) == 0);  // while it was down, though it is up by now
  CHECK(verdicts(beside, 12, 5, true) == 1);
  CHECK(verdicts(beside, 12, 11, true) == 0);
  CHECK(verdicts(beside, 12, 8, true) == 0);  // a sweep that was still under way at 10 s
}

TEST_CASE("what was lost on a path that was not found blames no end that answers others") {
  const model::Fabric fabric = zone();
  const auto verdicts = [&](bool finds_paths) {
    model::EvidenceSet rows = Rows(fabric).lossy("rtsw:1->ctsw:0", at(1));
    for (model::Evidence& row : rows.rows) {
      const bool is_swallowed =
          row.dst == node(fabric, "nic:5") && fabric.name(rows.path(row)[2]).starts_with("ctsw:2");
      row.lost = is_swallowed ? row.sent : 0;
      if (is_swallowed || !finds_paths) row.path_size = 0;
    }
    ProbeMonitor monitor(fabric, {});
    monitor.add(rows);
    return monitor.look(at(2)).size();
  };
  CHECK(verdicts(true) == 0);
  CHECK(verdicts(false) > 0);  // where no paths are known, ends are all that can be told
}

TEST_CASE("a rack whose paths are old does not speak for the other paths of a lossy spine") {
  const model::Fabric fabric = zone();
  ProbeMonitor monitor(fabric, {});
  monitor.set_out_of_service(without(fabric, "rtsw:1->ctsw:0"), at(10));
  model::EvidenceSet rows = Rows(fabric).lossy("rtsw:1->ctsw:0", at(11), at(5));
  for (model::Evidence& row : rows.rows)
    row.lost = fabric.name(rows.path(row)[1]).ends_with("->ctsw:2") ? 30 : 0;
  monitor.add(rows);
  const std::vector<std::string> lines = monitor.look(at(12));
  REQUIRE(lines.size() == 1);
  CHECK(lines.front().find(R"("entity":"ctsw:2")") != std::string::npos);
}

TEST_CASE("what was lost on an old path blames no end that answers others, and one that does not") {
  const model::Fabric fabric = zone();
  const auto verdicts = [&](auto is_lost) {
    ProbeMonitor monitor(fabric, {});
    monitor.set_out_of_service(without(fabric, "rtsw:1->ctsw:0"), at(10));
    model::EvidenceSet rows = Rows(fabric).lossy("rtsw:1->ctsw:0", at(11), at(5));
    for (model::Evidence& row : rows.rows) {
      const auto path = rows.path(row);
      row.lost = is_lost(row, fabric.name(path[2])) ? row.sent : 0;
    }
    monitor.add(rows);
    return monitor.look(at(12));
  };
  // Of before the switches knew of the drain: some flows to both hosts of rack 1.
  CHECK(verdicts([&](const model::Evidence&, std::string_view down) {
          return down == "ctsw:0->rtsw:1" || down == "ctsw:1->rtsw:1";
        }).empty());
  const auto dead = verdicts([&](const model::Evidence& row, std::string_view) {
    return row.dst == node(fabric, "nic:2");
  });
  REQUIRE(dead.size() == 1);
  CHECK_MESSAGE(dead.front().find(R"("kind":"probe_host")") != std::string::npos, dead.front());
}

}  // namespace
}  // namespace weft::serve
