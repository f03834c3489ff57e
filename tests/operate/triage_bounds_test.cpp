// The service keeps the first and last of what is said again and again; its cases are those of
// `weft triage`, which keeps all.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <tuple>
#include <vector>

#include "adapt/sim/storm.hpp"
#include "model/formats/test_fabric.hpp"
#include "operate/triage/rules.hpp"
#include "operate/triage/triage.hpp"

using namespace weft;
using operate::triage::Context;
using operate::triage::Triage;

namespace {

struct Found {
  std::vector<model::Case> cases;
  std::size_t held_max = 0;  // records that were held for cases, at most
};

Found cases_of(const Context& context, const model::RecordSet& set,
               operate::triage::Correlator::Bounds bounds) {
  Found out;
  Triage triage(context, [&](model::Case c) { out.cases.push_back(std::move(c)); }, bounds);
  for (std::size_t i = 0; i < set.rows.size(); ++i) {
    triage.add(set, set.rows[i], i);
    if (i % 1'000 != 0) continue;
    std::vector<std::uint64_t> held;
    triage.append_serials(held);
    out.held_max = std::max(out.held_max, held.size());
  }
  triage.finish();
  return out;
}

auto head(const model::Case& c) {
  return std::tuple(c.id, c.kind, c.is_partial, c.root, c.change, c.confidence, c.opened, c.closed,
                    c.suppressed, c.silent, c.split_from, c.record_count());
}

}  // namespace

TEST_CASE("storms: bounded cases are the same cases") {
  const model::Fabric fabric = model::testing::make_fabric(
      "{generator: ai_zone, racks: 24, hosts_per_rack: 2, spines: 6, link: 400 Gbps}");
  const Context context(fabric, operate::triage::default_rules());
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    const auto storm =
        adapt::sim::generate_storm(fabric, {.faults = 100, .lines = 60'000, .seed = seed});
    REQUIRE_MESSAGE(storm.has_value(), (storm ? "" : storm.error().text()));
    const model::RecordSet set = adapt::sim::to_records(fabric, *storm);
    const Found all = cases_of(context, set, {}), some = cases_of(context, set, {8});
    REQUIRE(all.cases.size() == some.cases.size());
    std::size_t summarised = 0;
    for (std::size_t i = 0; i < all.cases.size(); ++i) {
      CHECK(head(all.cases[i]) == head(some.cases[i]));
      CHECK(all.cases[i].members_summarised.empty());
      summarised += all.cases[i].members.size() - some.cases[i].members.size();
    }
    CHECK(summarised > 0);  // or nothing was put to the test
    MESSAGE("seed " << seed << ": " << all.cases.size() << " cases, " << summarised
                    << " members summarised; held " << all.held_max << " and " << some.held_max);
  }
}
