#include "plan/backbone/wan.hpp"

#include <doctest/doctest.h>

#include <string>

#include "base/test_approx.hpp"

namespace weft::plan::backbone {
namespace {

std::string refusal(std::string_view text, const WanOptions& options = {}) {
  const auto file = read_wan(text, "t", options);
  return file ? "" : file.error().text();
}

}  // namespace

TEST_CASE("links as CSV, with capacities of either kind and groups") {
  const auto file =
      read_wan("src,dst,capacity,capacity_mbps,group\na,b,10 Gbps,,g\nb,c,,2500,\n", "t");
  REQUIRE(file);
  CHECK(file->wan.sites == std::vector<std::string>{"a", "b", "c"});
  CHECK(file->wan.cables.at(0).gbps == 10);
  CHECK(file->wan.cables.at(0).group == "g");
  CHECK(file->wan.cables.at(1).gbps == 2.5);
  CHECK(file->wan.from(3) == 2);
  CHECK(file->wan.to(3) == 1);
}

TEST_CASE("what is wrong is said at once, with lines") {
  CHECK(refusal("src,dst,capacity\na,a,1 Gbps\na,b,fast\nb,c,\n") ==
        "t:2:1: a cable from \"a\" to itself; remove it\n"
        "t:3:5: \"fast\" is not a number; write e.g. \"400 Gbps\"\n"
        "t:4:1: no capacity for the cable b--c; state it in the file, or pass --capacity \"100 "
        "Gbps\"");
  CHECK(refusal("src,dst\n") == "t:1:1: no links; pass a topology with at least one link");
  CHECK(refusal("<a/>") ==
        "t:1:1: neither GraphML nor SNDlib's XML; pass a file with <graphml><graph> or <network>");
  CHECK(refusal("kind,a,b\nnode,0,x\nlink,0,7\n", {.capacity = {Rate{1'000}}}) ==
        "t:3:8: no site \"7\" (did you mean \"0\"?); use the id of a site of this file");
}

TEST_CASE("Topology Zoo: GraphML with LinkSpeedRaw, or rows of nodes and links") {
  const auto file = read_wan(R"(<graphml><key attr.name="LinkSpeedRaw" for="edge" id="d1"/>
<key attr.name="label" for="node" id="d2"/><key attr.name="Longitude" for="node" id="d3"/>
<key attr.name="Latitude" for="node" id="d4"/><graph edgedefault="undirected"><node id="0">
<data key="d2">Rome</data><data key="d3">12.5</data><data key="d4">41.9</data></node>
<node id="1"><data key="d2">Rome</data></node>
<edge source="0" target="1"><data key="d1">1.0E10</data></edge></graph></graphml>)",
                             "t");
  REQUIRE(file);
  CHECK(file->wan.sites == std::vector<std::string>{"Rome", "Rome#1"});
  CHECK(file->wan.cables.at(0).gbps == 10);
  CHECK(sites_json(file->wan) == R"([{"name":"Rome","lon":12.5,"lat":41.9},)"
                                 R"({"name":"Rome#1","lon":null,"lat":null}])");
  const WanOptions options{.capacity = {Rate{100'000'000'000}}};
  const auto rows =
      read_wan("kind,a,b,c,d\nnode,0,Rome,1,2\nnode,1,Oslo,3,4\nlink,0,1,,\n", "t", options);
  REQUIRE(rows);
  CHECK(rows->wan.sites == std::vector<std::string>{"Rome", "Oslo"});
  CHECK(rows->wan.cables.at(0).gbps == 100);
  CHECK(rows->wan.places.at(1)->lat == 4);
  CHECK(refusal("kind,a,b,c,d\nnode,0,Rome,east,2\n") ==
        "t:2:13: \"east\" is not a number; write a number such as 1.5");
}

TEST_CASE("places of sites from a file of their own") {
  auto file = read_wan("src,dst,capacity\na,b,10 Gbps\n", "t");
  REQUIRE(file);
  REQUIRE(read_places("id,lon,lat\nb,-3.5,50\n", "p", file->wan));
  CHECK(sites_json(file->wan) ==
        R"([{"name":"a","lon":null,"lat":null},{"name":"b","lon":-3.5,"lat":50}])");
  const Status bad = read_places("id,lon,lat\nc,1,2\na,x,2\n", "p", file->wan);
  REQUIRE_FALSE(bad);
  CHECK(bad.error().text() ==
        "p:2:1: no site \"c\" (did you mean \"a\"?); use a site of the topology\n"
        "p:3:3: \"x\" is not a number; write a number such as 1.5");
}

TEST_CASE("SNDlib: modules, units and demands") {
  const auto file = read_wan(R"(<network><meta><unit>MBITPERSEC</unit></meta><networkStructure>
<nodes><node id="A"><coordinates><x>-84.4</x><y>33.8</y></coordinates></node>
<node id="B"/></nodes><links><link id="1"><source>A</source><target>B</target>
<preInstalledModule><capacity>0</capacity></preInstalledModule><additionalModules>
<addModule><capacity>1000</capacity></addModule><addModule><capacity>4000</capacity></addModule>
</additionalModules></link></links></networkStructure>
<demands><demand id="d"><source>B</source><target>A</target><demandValue>500</demandValue></demand>
</demands></network>)",
                             "t");
  REQUIRE(file);
  CHECK(file->wan.cables.at(0).gbps == 4);
  CHECK(file->wan.places.at(0)->lon == -84.4);
  CHECK_FALSE(file->wan.places.at(1));
  REQUIRE(file->demands.size() == 1);
  CHECK(file->demands[0].from == 1);
  CHECK(file->demands[0].gbps == 0.5);
  CHECK(refusal("<network><meta><unit>ERLANG</unit></meta></network>") ==
        "t:1:17: unit \"ERLANG\"; use KBITPERSEC, MBITPERSEC or GBITPERSEC");
}

TEST_CASE("demands: written and read again; matrices by time") {
  const auto file = read_wan("src,dst,capacity\na,b,1 Gbps\nb,c,1 Gbps\n", "t");
  REQUIRE(file);
  const std::vector<Demand> demands{{0, 1, 0.25, 0}, {2, 0, 1, 3}};
  const auto back = read_demands(write_demands(file->wan, demands), "d", file->wan);
  REQUIRE(back);
  REQUIRE(back->size() == 2);
  CHECK((*back)[1].from == 2);
  CHECK((*back)[0].gbps == 0.25);
  CHECK((*back)[0].priority == 0);
  const auto wrong =
      read_demands("src,dst,rate,class\na,x,1 Gbps,5\na,a,1 Gbps,1\n", "d", file->wan);
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().text() ==
        "d:2:3: no site \"x\" (did you mean \"a\"?); use a site of the topology\n"
        "d:2:12: \"5\" is not a class; write 1 (served first) to 4\n"
        "d:3:1: a demand to its own site; remove it");
  const auto series = read_series("time,a>b,c>a\n1,5,0\n2,7,1\n", "s", file->wan);
  REQUIRE(series);
  CHECK(demands_at(*series, "1")->size() == 1);
  CHECK(demands_at(*series, "")->size() == 2);
  CHECK_FALSE(demands_at(*series, "3"));
  CHECK(read_series("time,a-b\n1,5\n", "s", file->wan).error().text() ==
        "s:1:1: \"a-b\" is not a pair; name the columns time and SRC>DST");
}

TEST_CASE("the gravity model loads shortest paths as far as asked") {
  const auto file = read_wan("src,dst,capacity\na,b,1 Gbps\nb,c,1 Gbps\n", "t");
  REQUIRE(file);
  double volume = 0;
  for (const Demand& d : gravity_demands(file->wan, {.load = 0.5}))
    volume += d.gbps * ((d.from == 1 || d.to == 1) ? 1 : 2);
  CHECK(volume == approx(2));  // of four links of 1 Gbit/s
}

}  // namespace weft::plan::backbone
