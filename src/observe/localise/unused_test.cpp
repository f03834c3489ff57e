// Random probing of healthy fabrics, and of fabrics with a link that carries nothing: which links
// are called unused.
#include "observe/localise/unused.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>

#include "base/rng.hpp"
#include "base/test_approx.hpp"
#include "base/test_effort.hpp"
#include "model/formats/test_fabric.hpp"
#include "observe/localise/localise.hpp"

namespace weft::observe::localise {
namespace {

using model::Leg;

struct Zone {
  Zone(int racks, int spines)
      : fabric(model::testing::make_fabric(
            fmt::format("{{generator: ai_zone, racks: {}, hosts_per_rack: 2, gpus_per_host: 1, "
                        "spines: {}}}",
                        racks, spines))) {
    for (const LinkId link : fabric.links()) links[{fabric.from(link), fabric.to(link)}] = link;
    spines_of = fabric.role(fabric.find_role("ctsw")).nodes;
  }
  LinkId link(NodeId from, NodeId to) const { return links.at({from, to}); }
  NodeId rack_of(NodeId nic) const {
    for (const LinkId out : fabric.out(nic))
      if (fabric.is_switch(fabric.to(out))) return fabric.to(out);
    FAIL("a NIC without a switch");
    return {};
  }

  Fabric fabric;
  std::map<std::pair<NodeId, NodeId>, LinkId> links;
  std::vector<NodeId> spines_of;
};

// Flows between random NICs of different racks, from random ports; each goes over a random spine
// there and over another random one back, the same in all of six windows.
class RandomProbing {
 public:
  RandomProbing(const Zone& zone, std::uint64_t seed) : zone_(zone), rng_(seed) {
    for (const NodeId nic : zone.fabric.nics()) nics_.emplace_back(nic, zone.rack_of(nic));
  }

  // Switches never choose this link.
  RandomProbing& without(LinkId link) {
    unused_ = link;
    return *this;
  }

  // So many that `each` may be expected to cross each directed link between switches.
  EvidenceSet see(double each) {
    const double links = static_cast<double>(
        zone_.fabric.role(zone_.fabric.find_role("rtsw")).nodes.size() * zone_.spines_of.size());
    EvidenceSet out;
    // There and back a flow crosses two links of each direction.
    const auto flows = static_cast<int>(each * links / 2);
    for (int i = 0; i < flows; ++i) add_flow(out);
    return out;
  }

 private:
  using End = std::pair<NodeId, NodeId>;  // NIC, its switch

  void add_flow(EvidenceSet& out) {
    End src, dst;
    do {
      src = nics_[rng_.below(nics_.size())];
      dst = nics_[rng_.below(nics_.size())];
    } while (src.second == dst.second);
    Evidence row{.src = src.first, .dst = dst.first};
    row.traffic_class = out.class_index("0");
    row.sport = static_cast<std::uint16_t>(1024 + rng_.below(60'000));
    row.sent = 40;
    Evidence there = row, back = row;
    there.leg = Leg::forward;
    back.leg = Leg::back;
    out.set_path(there, path(src, dst));
    out.set_path(back, path(dst, src));
    for (std::int64_t window = 1; window <= 6; ++window) {
      there.t = back.t = {window};
      out.rows.push_back(there);
      out.rows.push_back(back);
    }
  }
  std::vector<LinkId> path(const End& src, const End& dst) {
    while (true) {
      const NodeId spine = zone_.spines_of[rng_.below(zone_.spines_of.size())];
      const LinkId up = zone_.link(src.second, spine), down = zone_.link(spine, dst.second);
      if (up == unused_ || down == unused_) continue;
      return {zone_.link(src.first, src.second), up, down, zone_.link(dst.second, dst.first)};
    }
  }

  const Zone& zone_;
  Rng rng_;
  std::vector<End> nics_;
  LinkId unused_;
};

std::vector<Verdict> unused_of(const Report& report) {
  std::vector<Verdict> out;
  for (const Verdict& verdict : report.verdicts)
    if (verdict.finding == Finding::unused) out.push_back(verdict);
  return out;
}

std::size_t not_crossed(const Zone& zone, const EvidenceSet& set) {
  std::set<LinkId> crossed(set.links.begin(), set.links.end());
  std::size_t out = 0;
  for (const LinkId link : zone.fabric.links())
    if (zone.fabric.is_switch(zone.fabric.from(link)) &&
        zone.fabric.is_switch(zone.fabric.to(link)))
      out += crossed.contains(link) ? 0 : 1;
  return out;
}

TEST_CASE("random probing: at most one link in 100 windows is falsely called unused") {
  const Zone zone(24, 8);
  const Localiser localiser(zone.fabric);
  for (const double each : {4.0, 6.0, 9.0, 12.0}) {
    std::size_t wrong = 0, missed_by_chance = 0;
    for (std::uint64_t seed = 1; seed <= test_effort(100); ++seed) {
      const EvidenceSet set = RandomProbing(zone, seed).see(each);
      wrong += unused_of(localiser.run(set)).size();
      missed_by_chance += not_crossed(zone, set);
    }
    CAPTURE(each);
    CAPTURE(missed_by_chance);
    CHECK(wrong <= 1);
    if (each <= 6) CHECK(missed_by_chance > test_effort(20));  // or nothing would be shown
  }
}

TEST_CASE("random probing of a zone of 9,072 links: none is falsely called unused") {
  const Zone zone(252, 18);
  const Localiser localiser(zone.fabric);
  for (std::uint64_t seed = 1; seed <= 3; ++seed)
    CHECK(unused_of(localiser.run(RandomProbing(zone, seed).see(6))).empty());
}

TEST_CASE("random probing: a link that carries nothing is found, and no other") {
  const Zone zone(24, 8);
  const Localiser localiser(zone.fabric);
  Rng rng(5);
  for (std::uint64_t seed = 1; seed <= test_effort(50); ++seed) {
    auto any = zone.links.begin();
    do {
      any = zone.links.begin();
      std::advance(any, static_cast<std::ptrdiff_t>(rng.below(zone.links.size())));
    } while (!zone.fabric.is_switch(any->first.first) || !zone.fabric.is_switch(any->first.second));
    const LinkId idle = any->second;
    const auto found =
        unused_of(localiser.run(RandomProbing(zone, 1000 + seed).without(idle).see(25)));
    REQUIRE(found.size() == 1);
    CHECK(name(zone.fabric, found.front().entity) == zone.fabric.name(idle));
    CHECK(found.front().probability > 0.88);
    CHECK(found.front().probability < 1);
  }
}

TEST_CASE("the chance that no flow crosses a link is as often as it says") {
  const Zone zone(24, 8);
  double expected = 0, seen = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const EvidenceSet set = RandomProbing(zone, seed).see(3);
    std::map<LinkId, double> flows;
    std::map<NodeId, double> sent, received;
    double all = 0;
    for (const Evidence& row : set.rows) {
      if (row.t.ns != 1) continue;
      const LinkId up = set.path(row)[1];
      ++flows[up];
      ++sent[zone.fabric.from(up)];
      ++received[zone.fabric.to(up)];
      ++all;
    }
    for (const auto& [from, out] : sent)
      for (const auto& [to, in] : received) {
        expected += std::exp(log_chance_of_none(out, in, all));
        seen += flows.contains(zone.link(from, to)) ? 0 : 1;
      }
  }
  CHECK(seen > 500);
  CHECK(seen == approx(expected).epsilon(0.1));
}

TEST_CASE("chances at the edges") {
  CHECK(log_chance_of_none(0, 5, 9) == 0);
  CHECK(log_chance_of_none(5, 0, 9) == 0);
  CHECK(log_chance_of_none(0, 0, 0) == 0);
  // One flow of three leaves by the sender, one of three arrives: 2 in 3 that they are not the
  // same.
  CHECK(std::exp(log_chance_of_none(1, 1, 3)) == approx(2.0 / 3));
  CHECK(log_chance_of_none(6, 6, 10) == -700);
  CHECK(log_chance_of_none(5e6, 5e6, 1e7) == -700);
}

}  // namespace
}  // namespace weft::observe::localise
