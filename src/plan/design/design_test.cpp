#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "model/formats/test_fabric.hpp"
#include "plan/design/bill.hpp"

namespace weft::plan {

using namespace model::testing;
namespace {

Result<Prices> try_prices(std::string_view yaml) {
  const auto config = parse_yaml(yaml, "prices.yaml");
  REQUIRE_MESSAGE(config.has_value(), yaml);
  return read_prices(*config);
}

// Round figures, so that the sums below can be done by hand.
const Prices& prices() {
  static const Prices table = try_prices(R"(
currency: EUR
floor: {rack_hosts: 2, row_hosts: 8, in_rack_m: 2, row_m: 10, hall_m: 50}
switches:
  - {ports: 4, rate: 400 Gbps, price: 1000, watts: 100}
  - {ports: 64, rate: 400 Gbps, price: 5000, watts: 500}
  - {ports: 1000, rate: 800 Gbps, breakout: 8, price: 90000, watts: 9000}
cables:
  - {type: DAC, rate: 400 Gbps, reach_m: 2, price: 10, watts: 1}
  - {type: AOC, rate: 400 Gbps, reach_m: 30, price: 100, watts: 7}
optics:
  - {type: DR4, rate: 400 Gbps, reach_m: 500, price: 200, watts: 5, fibre_price_per_m: 2}
nics:
  - {rate: 400 Gbps, price: 50, watts: 3}
)")
                                  .value();
  return table;
}

Bill bill(std::string_view yaml) {
  const auto out = bill_of(make_fabric(yaml), prices());
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  return *out;
}

}  // namespace

// A host fills a rack here. 2 racks of 1 host: 2 DACs of 2 m below 2 RTSWs, 4 AOCs of 10 m in the
// row, 2 CTSWs.
TEST_CASE("a zone of two racks, counted by hand") {
  Prices table = prices();
  table.rack_hosts = 1;
  const auto out = bill_of(two_rack_zone(), table);
  REQUIRE(out.has_value());
  CHECK(out->switch_count == 4);
  CHECK(out->link_count == 6);
  CHECK(out->transceivers == 0);
  CHECK(out->nic_count == 2);
  CHECK(out->fibre_m == 0);
  CHECK(out->watts == 4 * 100 + 2 * 1 + 4 * 7 + 2 * 3);
  CHECK(out->price == 4 * 1000 + 2 * 10 + 4 * 100 + 2 * 50);
  REQUIRE(out->switches.size() == 2);
  for (const auto& s : out->switches) CHECK(s.ports_used == (s.role == "rtsw" ? 3 : 2));
  const auto json = nlohmann::json::parse(to_json(*out));
  CHECK(json["price"] == out->price);
  CHECK(json["links"].size() == 2);
  for (const auto& link : json["links"]) {
    const bool is_up = link["tier"] == "rtsw--ctsw";
    CHECK(link["span"] == (is_up ? "row" : "in rack"));
    CHECK(link["type"] == (is_up ? "AOC" : "DAC"));
    CHECK(link["count"] == (is_up ? 4 : 2));
  }
}

TEST_CASE("a hall takes transceivers and fibre") {
  const Bill out =
      bill("{generator: ai_zone, racks: 3, hosts_per_rack: 3, gpus_per_host: 1, spines: 2}");
  // NIC cables stand in racks of 3 hosts, more than 2: rows. 9 hosts are more than a row's 8.
  REQUIRE(out.links.size() == 2);
  CHECK(out.transceivers == 2 * 6);
  CHECK(out.fibre_m == 6 * 50);
  CHECK(out.watts == 3 * 500 + 2 * 100 + 9 * 7 + 6 * 10 + 9 * 3);
  CHECK(out.price == 3 * 5000 + 2 * 1000 + 9 * 100 + 6 * (2 * 200 + 50 * 2) + 9 * 50);
}

TEST_CASE("counts are the closed forms of the generators") {
  for (const int k : {2, 4, 6, 8, 12}) {
    CAPTURE(k);
    const Bill out = bill(fmt::format("{{generator: fat_tree, k: {}}}", k));
    CHECK(out.switch_count == static_cast<std::size_t>(5 * k * k / 4));
    CHECK(out.nic_count == static_cast<std::size_t>(k * k * k / 4));
    CHECK(out.link_count == static_cast<std::size_t>(3 * k * k * k / 4));
  }
  for (const int racks : {1, 5, 30})
    for (const int spines : {1, 7}) {
      CAPTURE(racks);
      const Bill zone =
          bill(fmt::format("{{generator: ai_zone, racks: {}, spines: {}}}", racks, spines));
      CHECK(zone.switch_count == static_cast<std::size_t>(racks + spines));
      CHECK(zone.link_count == static_cast<std::size_t>(racks * 16 + racks * spines));
      const Bill planes = bill(fmt::format(
          "{{generator: multi_plane, planes: 4, racks: {}, spines: {}}}", racks, spines));
      CHECK(planes.switch_count == static_cast<std::size_t>(4 * (racks + spines)));
      CHECK(planes.link_count == static_cast<std::size_t>(4 * racks * (16 + spines)));
      CHECK(planes.nic_count == static_cast<std::size_t>(16 * racks));
      CHECK(planes.nics[0].rate == Rate{400'000'000'000});
    }
}

TEST_CASE("a port that can be split carries several slower cables") {
  const Prices::Switch s{.ports = 4, .rate = {800'000'000'000}, .breakout = 8};
  const Rate r100{100'000'000'000}, r400{400'000'000'000};
  CHECK(s.fits({{r100, 32}}));
  CHECK_FALSE(s.fits({{r100, 33}}));
  CHECK(s.fits({{r100, 9}, {r400, 4}}));
  CHECK_FALSE(s.fits({{r100, 17}, {r400, 4}}));
  CHECK_FALSE(s.fits({{Rate{1'600'000'000'000}, 1}}));
}

// 3 hosts of one 1 Tbps NIC cross a hall on 3 cables of 400 Gbps each.
TEST_CASE("a link faster than all cables is a bundle of them") {
  Prices table = prices();
  table.nics[0].rate = {1'000'000'000'000};
  const auto out = bill_of(make_fabric("{generator: ai_zone, racks: 3, hosts_per_rack: 1, "
                                       "gpus_per_host: 1, spines: 2, link: 1 Tbps}"),
                           table);
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  CHECK(out->link_count == 3 + 6);
  for (const auto& link : out->links) CHECK(link.bundle == 3);
  // An RTSW has 3 cables down and 6 up, a CTSW 9, of 333.4 Gbps: none fits the 4 ports.
  for (const auto& s : out->switches) {
    CHECK(s.ports_used == 9);
    CHECK(s.type == "64 x 400 Gbps");
  }
  CHECK(out->price == 5 * 5000 + 3 * 3 * 10 + 6 * 3 * 100 + 3 * 50);
  CHECK(to_table(*out).contains("3 x AOC"));
  CHECK(prices().bundle({400'000'000'001}, 2).cables == 2);
  CHECK(prices().bundle({400'000'000'001}, 2).each == Rate{200'000'000'001});
  CHECK(prices().bundle({64 * 400'000'000'000}, 2).cables == bundle_max);
  CHECK(prices().bundle({64 * 400'000'000'000 + 1}, 2).cables == 1);  // nothing carries it
}

// 800G reaches 5 m here: the NICs' 2 m take one cable, the 10 m between switches two of 400G.
TEST_CASE("a bundle is made of cables that reach so far") {
  Prices table = prices();
  table.nics[0].rate = {800'000'000'000};
  table.media.push_back({.type = "DAC800", .rate = {800'000'000'000}, .reach_m = 5, .price = 40});
  const auto out = bill_of(make_fabric("{generator: ai_zone, racks: 3, hosts_per_rack: 1, "
                                       "gpus_per_host: 1, spines: 2, link: 800 Gbps}"),
                           table);
  REQUIRE_MESSAGE(out.has_value(), (out ? "" : out.error().text()));
  REQUIRE(out->links.size() == 2);
  for (const auto& link : out->links) {
    const bool is_up = link.tier == "rtsw--ctsw";
    CHECK(link.bundle == (is_up ? 2 : 1));
    CHECK(link.type == (is_up ? "AOC" : "DAC800"));
  }
  // An RTSW has 1 cable of 800G and 4 of 400G, a CTSW 6 of 400G.
  REQUIRE(out->switches.size() == 2);
  for (const auto& s : out->switches) {
    CHECK(s.ports_used == (s.role == "rtsw" ? 5 : 6));
    CHECK(s.type == (s.role == "rtsw" ? "1000 x 800 Gbps" : "64 x 400 Gbps"));
  }
  CHECK(table.bundle({800'000'000'000}, 6).cables == 2);
  CHECK(table.bundle({800'000'000'000}, 5).cables == 1);
}

TEST_CASE("all that a price table lacks is told at once") {
  const auto table = try_prices("switches: [{ports: 2, rate: 400 Gbps, price: 1, watts: 1}]");
  REQUIRE(table.has_value());
  const auto out = bill_of(two_rack_zone(), *table);
  REQUIRE_FALSE(out.has_value());
  const std::string text = out.error().text();
  CHECK(text.contains("prices.yaml: no switch for 2 \"rtsw\" with 3 x 400 Gbps; add one"));
  CHECK(text.contains("nothing carries 400 Gbps over 2 m for 2 cables nic--rtsw (in rack)"));
  CHECK(text.contains("no NIC for 2 \"nic\" of 400 Gbps"));
}

TEST_CASE("a wrong price table is refused with every position") {
  const auto table = try_prices(
      "floor: {rack_hosts: 9, row_hosts: 3}\n"
      "switches: [{ports: 0, rate: 0 bps, price: -1, watts: 1, colour: red}]\n"
      "nics: 7\n");
  REQUIRE_FALSE(table.has_value());
  const std::string text = table.error().text();
  CHECK(text.contains("prices.yaml:1:35: a row of 3 hosts is smaller than a rack of 9"));
  CHECK(text.contains("prices.yaml:2:20"));
  CHECK(text.contains("\"rate\" must be above 0 bps"));
  CHECK(text.contains("colour"));
  CHECK(text.contains("prices.yaml:3:7: \"nics\" must be a list"));
}

}  // namespace weft::plan
