#include "plan/design/plan_fabric.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/test_effort.hpp"
#include "model/formats/test_fabric.hpp"

namespace weft::plan {

using namespace model::testing;
namespace {

std::vector<Candidate> plans(std::string_view text) {
  const auto request = parse_plan({text, {}});
  REQUIRE_MESSAGE(request.has_value(), (request ? "" : request.error().text()));
  const auto out = plan_fabric(*request, nullptr);
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  return *out;
}
std::string plan_refusal(std::string_view text) {
  const auto request = parse_plan({text, {}});
  if (!request) return request.error().text();
  const auto out = plan_fabric(*request, nullptr);
  return out ? "accepted" : out.error().text();
}
const Candidate* find(const std::vector<Candidate>& all, std::string_view generator,
                      std::int64_t planes) {
  const auto it = std::ranges::find_if(
      all, [&](const Candidate& c) { return c.generator == generator && c.planes == planes; });
  return it == all.end() ? nullptr : &*it;
}

// Counted on the fabric that the generator builds, not by the planner's arithmetic.
void check_built(const Candidate& c, std::int64_t radix, double oversubscription) {
  CAPTURE(c.yaml);
  const model::Fabric fabric = make_fabric(c.yaml);
  std::int64_t switches = 0, links = 0;
  for (const auto node : fabric.nodes()) {
    if (!fabric.is_switch(node)) continue;
    ++switches;
    CHECK(static_cast<std::int64_t>(fabric.out(node).size()) <= radix);
  }
  for (const auto cable : ids<model::CableId>(fabric.cable_count()))
    links += fabric.on_wire(model::forward(cable));
  CHECK(switches == c.switches);
  CHECK(links == c.links);
  CHECK(static_cast<std::int64_t>(fabric.nics().size()) == c.nics);
  CHECK(c.oversubscription <= oversubscription + 1e-9);
}

// The fewest switches, then links, of all fabrics of two tiers and one plane: each group of hosts
// has so many first switches.
std::optional<std::pair<std::int64_t, std::int64_t>> fewest(std::int64_t nics, std::int64_t radix,
                                                            double over, std::int64_t of_host,
                                                            std::int64_t group_leaves) {
  std::optional<std::pair<std::int64_t, std::int64_t>> best;
  for (std::int64_t hosts = 1; hosts <= radix; ++hosts)
    for (std::int64_t groups = 1; groups <= radix; ++groups)
      for (std::int64_t spines = 1; spines <= radix; ++spines)
        for (std::int64_t uplinks = 1; uplinks <= radix; ++uplinks) {
          const std::int64_t leaves = groups * group_leaves, up = spines * uplinks;
          const std::int64_t down = hosts * of_host / group_leaves;
          if (groups * hosts * of_host < nics || down + up > radix || leaves * uplinks > radix ||
              static_cast<double>(up) * over < static_cast<double>(down) - 1e-6)
            continue;
          const std::pair found(leaves + spines, leaves * (down + up));
          if (!best || found < *best) best = found;
        }
  return best;
}

}  // namespace

TEST_CASE("what a plan counts is what the generators build") {
  constexpr std::array sizes{512, 16, 100, 1000, 2048};
  for (const int nics : std::span(sizes).first(test_effort(sizes.size())))
    for (const int radix : {32, 64, 128})
      for (const int rate : {200, 400, 800})
        for (const double over : {1.0, 2.0, 3.5}) {
          const std::string text =
              fmt::format("{} x {}G, radix {}, oversubscription {}", nics, rate, radix, over);
          CAPTURE(text);
          if (plan_refusal(text) != "accepted") continue;
          for (const Candidate& c : plans(text)) {
            CHECK(c.nics >= nics);
            check_built(c, radix, over);
          }
        }
}

TEST_CASE("no fabric of two tiers has fewer switches: all of them are tried") {
  int found = 0;
  for (const std::int64_t radix : {8, 12, 20})
    for (const std::int64_t of_host : {1, 2, 4})
      for (const double over : {1.0, 1.5, 3.0})
        for (const std::int64_t nics : {7, 16, 30, 55, 72, 96}) {
          const std::string text = fmt::format(
              "{} x 400G, radix {}, oversubscription {}, hosts of {}", nics, radix, over, of_host);
          CAPTURE(text);
          const auto request = parse_plan({text, {}});
          REQUIRE(request.has_value());
          const auto all = plan_fabric(*request, nullptr);
          for (const auto& [generator, leaves] :
               {std::pair("ai_zone", std::int64_t{1}), std::pair("rail_optimized", of_host)}) {
            const auto best = fewest(nics, radix, over, of_host, leaves);
            const Candidate* ours = nullptr;
            for (std::size_t i = 0; all && i < all->size(); ++i)
              if ((*all)[i].generator == generator) ours = &(*all)[i];
            REQUIRE((ours != nullptr) == best.has_value());
            if (ours == nullptr) continue;
            CHECK(ours->switches == best->first);
            CHECK(ours->links == best->second);
            ++found;
          }
        }
  CHECK(found > 100);
}

TEST_CASE("classical sizes: k^2 / 2 in two tiers, k^3 / 4 in three") {
  for (const std::int64_t k : {16, 32, 64, 128}) {
    CAPTURE(k);
    const auto two = plans(fmt::format("{} x 400G, radix {}", k * k / 2, k));
    const Candidate* full = find(two, "ai_zone", 1);
    REQUIRE(full != nullptr);
    CHECK(full->nics == k * k / 2);
    CHECK(full->switches == k + k / 2);
    CHECK(two.front().tiers == 2);
    const auto beyond = plans(fmt::format("{} x 400G, radix {}", k * k / 2 + 1, k));
    CHECK(find(beyond, "ai_zone", 1) == nullptr);
    CHECK(beyond.front().tiers == 3);
    const std::int64_t most = k * k * k / 4;
    if (most + k * k > model::gpu_count_max) continue;
    const auto three = plans(fmt::format("{} x 400G, radix {}", most, k));
    REQUIRE(find(three, "fat_tree", 1) != nullptr);
    CHECK(find(three, "fat_tree", 1)->switches == 5 * k * k / 4);
    REQUIRE(find(three, "three_tier", 1) != nullptr);
    CHECK(find(three, "three_tier", 1)->switches == 5 * k * k / 4);
    CHECK(plan_refusal(fmt::format("{} x 400G, radix {}", most + 1, k)).contains("no fabric of"));
  }
}

// A switch of 64 x 800G as 512 x 100G: over 100,000 NICs of 800G in two tiers, by eight planes.
TEST_CASE("131,072 NICs in two tiers") {
  const auto planes = plans("131072 x 800G, radix 512 x 100G");
  CHECK(planes.front().tiers == 2);
  const Candidate* eight = find(planes, "multi_plane", 8);
  REQUIRE(eight != nullptr);
  CHECK(eight->nics == 131072);
  CHECK(eight->switches == 8 * (512 + 256));
  CHECK(find(planes, "multi_plane", 4) == nullptr);
  CHECK(find(planes, "ai_zone", 1) == nullptr);
  const auto one = plans("131072 x 400G, radix 512");
  REQUIRE(find(one, "ai_zone", 1) != nullptr);
  CHECK(one.front().switches == 768);
}

// HPN's pod: 15 segments x 128 hosts x 8 NICs of 2 x 200G on 256 ToR ports.
TEST_CASE("15,360 NICs on two planes") {
  const auto out = plans("15360 x 400G, radix 256 x 200G");
  REQUIRE(find(out, "hpn", 2) != nullptr);
  CHECK(find(out, "hpn", 2)->nics >= 15360);
  CHECK(find(out, "hpn", 2)->tiers == 2);
  CHECK(find(out, "ai_zone", 1) == nullptr);  // 128 ports of 400G: 8,192 at most
}

TEST_CASE("plans that cannot be read are refused with all reasons") {
  CHECK(plan_refusal("radix 64").contains("a number of NICs"));
  CHECK(plan_refusal("64 x 400G").contains("the radix"));
  CHECK(plan_refusal("64 x 400G, radix 64, hosts of 8, radix 32") ==
        "\"radix 32\" is given a second time; give each part once");
  CHECK(plan_refusal("64 x 400G, 32 x 400G, radix 64").contains("a second time"));
  const std::string text = plan_refusal("64 x 400, radix 0, colour red, oversubscription 0.5");
  CHECK(text.contains("radix must be 1 to 4096"));
  CHECK(text.contains("\"colour red\" is not a part of a plan"));
  CHECK(text.contains("oversubscription must be 1 to 1000"));
  CHECK(plan_refusal("2000000 x 400G, radix 64").contains("must be 1 to 1000000"));
}

TEST_CASE("a plan is priced as the fabric that it names") {
  const auto table = read_prices(*parse_yaml(R"(
switches: [{ports: 64, rate: 400 Gbps, price: 7, watts: 3}]
optics: [{type: DR4, rate: 400 Gbps, reach_m: 500, price: 2, watts: 1}]
nics: [{rate: 400 Gbps, price: 5, watts: 2}]
)",
                                             "p.yaml"));
  REQUIRE(table.has_value());
  const auto request = parse_plan({"512 x 400G, radix 64", {}});
  REQUIRE(request.has_value());
  const auto out = plan_fabric(*request, &*table);
  REQUIRE(out.has_value());
  for (const Candidate& c : *out) {
    REQUIRE(c.bill.has_value());
    CHECK(c.bill->price == static_cast<double>(7 * c.switches + 4 * c.links + 5 * c.nics));
    CHECK(c.bill->watts == static_cast<double>(3 * c.switches + 2 * c.links + 2 * c.nics));
    CHECK(static_cast<std::int64_t>(c.bill->transceivers) == 2 * c.links);
  }
}

TEST_CASE("JSON of plans") {
  const auto all = plans("1024 x 400G, radix 64");
  const auto json = nlohmann::json::parse(to_json(all));
  REQUIRE(json["plans"].size() == all.size());
  CHECK(json["plans"][0]["switches"] == all[0].switches);
}

}  // namespace weft::plan
