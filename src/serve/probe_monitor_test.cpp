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

  model::EvidenceSet lossy(std::string_view cable, Timestamp t, Timestamp path_t) const {
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

constexpr Timestamp never_said{INT64_MAX};
constexpr Timestamp at(std::int64_t s) { return {1'800'000'000'000'000'000 + s * 1'000'000'000}; }

model::Fabric zone() {
  return model::testing::make_fabric(
      "{generator: ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, spines: 4}");
}

TEST_CASE("rows over what is drained blame nobody, whatever else they say") {
  const model::Fabric fabric = zone();
  const auto rows = Rows(fabric).lossy("rtsw:1->ctsw:2", at(1), never_said);
  model::State out;
  const auto lines = [&](const model::State& out_of_service) {
    ProbeMonitor monitor(fabric, {});
    monitor.add(rows);
    return monitor.look(at(2), out_of_service);
  };
  REQUIRE(lines(out).size() == 1);
  CHECK(lines(out).front().find(R"("entity":"rtsw:1->ctsw:2")") != std::string::npos);
  for (const std::string_view one : {"rtsw:1->ctsw:2", "ctsw:2->rtsw:1"})
    out.set(link(fabric, one), {.health = model::Health::down});
  CHECK(lines(out).empty());
}

TEST_CASE("a path that is older than the last change of routes blames nobody") {
  const model::Fabric fabric = zone();
  ProbeMonitor monitor(fabric, {});
  const Rows rows(fabric);
  monitor.forget(at(5));
  monitor.add(rows.lossy("rtsw:1->ctsw:2", at(6), at(4)));
  CHECK(monitor.look(at(7), {}).empty());
  monitor.add(rows.lossy("rtsw:1->ctsw:2", at(6), at(6)));  // learned anew
  CHECK(monitor.look(at(9), {}).size() == 1);
}

}  // namespace
}  // namespace weft::serve
