#include "model/fabric/flow_set.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using testing::two_rack_zone;

FlowSet flows_of(const Fabric& fabric, std::string_view csv) {
  auto set = read_flows(fabric, csv, "f.csv");
  REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
  return *std::move(set);
}

std::string flows_refusal(const Fabric& fabric, std::string_view csv) {
  const auto set = read_flows(fabric, csv, "f.csv");
  return set ? std::string("accepted") : set.error().text();
}

}  // namespace

TEST_CASE("flows.csv: every column") {
  const Fabric fabric = two_rack_zone();
  const FlowSet set = flows_of(fabric,
                               "via,bytes,dst,src,id,after,start\n"
                               ",1 MB,1,0,first,,\n"
                               "ctsw:1,4 KiB,gpu:0,nic:1,second,first,5 us\n"
                               "rtsw:0 | ctsw:0,0,1,0,third,,0\n");
  REQUIRE(set.flows.size() == 3);
  CHECK(set.flows[0].src == fabric.nics()[0]);
  CHECK(set.flows[0].dst == fabric.nics()[1]);
  CHECK(set.flows[0].size == 1_MB);
  CHECK(set.flows[0].after == FlowSet::none);
  CHECK(set.via_of(set.flows[0]).empty());
  CHECK(set.flows[1].dst == fabric.nics()[0]);
  CHECK(set.flows[1].start == Time{(5_us).ps});
  CHECK(set.flows[1].after == 0);
  REQUIRE(set.via_of(set.flows[1]).size() == 1);
  CHECK(fabric.name(set.via_of(set.flows[1])[0]) == "ctsw:1");
  REQUIRE(set.via_of(set.flows[2]).size() == 2);
  CHECK(fabric.name(set.via_of(set.flows[2])[0]) == "rtsw:0");
  CHECK(fabric.name(set.via_of(set.flows[2])[1]) == "ctsw:0");
  CHECK(set.ids[0] == "first");
  CHECK(set.ids[1] == "second");
  CHECK(set.ids[2] == "third");
}

TEST_CASE("flows.csv: classes, where flows have them") {
  const Fabric fabric = two_rack_zone();
  CHECK(flows_of(fabric, "id,src,dst,bytes,class\na,0,1,1 MB,\nb,1,0,1 MB,\n").classes.empty());
  const FlowSet set =
      flows_of(fabric, "id,src,dst,bytes,class\na,0,1,1 MB,\nb,1,0,1 MB,7\nc,1,0,1 MB,\n");
  CHECK(set.classes == std::vector<std::uint8_t>{0, 7, 0});
  CHECK(set.class_of(1) == 7);
  CHECK(
      flows_refusal(fabric, "id,src,dst,bytes,class\na,0,1,1 MB,0\nb,0,1,1 MB,8\nc,0,1,1 MB,x\n") ==
      "f.csv:2:12: \"0\" is not a class; write 1 to 7, or nothing for the transport's data class\n"
      "f.csv:3:12: \"8\" is not a class; write 1 to 7, or nothing for the transport's data class\n"
      "f.csv:4:12: \"x\" is not a class; write 1 to 7, or nothing for the transport's data class");
}

TEST_CASE("a flow may wait for one that stands further down") {
  const Fabric fabric = two_rack_zone();
  const FlowSet set = flows_of(fabric,
                               "id,src,dst,bytes,after\n"
                               "c,0,1,1 MB,b\n"
                               "b,0,1,1 MB,a\n"
                               "a,0,1,1 MB,\n"
                               "d,0,1,1 MB,a\n");
  CHECK(set.flows[0].after == 1);
  CHECK(set.flows[1].after == 2);
  CHECK(set.flows[2].after == FlowSet::none);
  CHECK(set.flows[3].after == 2);
}

TEST_CASE("flows.csv: every mistake with its place") {
  const Fabric fabric = two_rack_zone();
  const auto says = [&](std::string_view csv, std::string_view text) {
    const std::string got = flows_refusal(fabric, csv);
    CAPTURE(got);
    CHECK(got.find(text) != std::string::npos);
  };
  says("", "f.csv:1:1");
  says("id,src,dst\n", "\"bytes\" is missing");
  says("id,src,dst,bytes,vai\n", "did you mean \"via\"");
  says("id,src,dst,bytes\na,0,1,5\n", "f.csv:2:7: size \"5\" has no unit");
  says("id,src,dst,bytes\na,0,1,1 MB\nb,0,9,1 MB\n", "f.csv:3:5");
  says("id,src,dst,bytes\na,0,1,1 MB\na,1,0,1 MB\n", "f.csv:3:1: duplicate id \"a\"");
  says("id,src,dst,bytes\n1,0,1,1 MB\n2,1,0,1 MB\n1,1,0,1 MB\n", "f.csv:4:1: duplicate id \"1\"");
  says("id,src,dst,bytes\na,0,0,1 MB\n", "the same NIC");
  says("id,src,dst,bytes\na,0,1\n", "f.csv:2:1: 3 cells, but the header has 4");
  says("id,src,dst,bytes\na,0,1,nan\n", "not a number");
  says("id,src,dst,bytes\na,0,1,1e30 MB\n", "out of range");
  says("id,src,dst,bytes\na,0,1,-1 MB\n", "negative");
  says("id,src,dst,bytes\n,0,1,1 MB\n", "f.csv:2:1: the id is empty");
  says("id,src,dst,bytes,after\na,0,1,1 MB,b\nb,0,1,1 MB,c\nc,0,1,1 MB,a\n",
       "f.csv:2:12: 3 flows wait for each other in a cycle: a after b after c after a");
  says("id,src,dst,bytes,after\nx,0,1,1 MB,a\na,0,1,1 MB,b\nb,0,1,1 MB,a\n", "f.csv:3:12: 2 flows");
  says("id,src,dst,bytes,after\na,0,1,1 MB,a\n", "1 flows wait for each other in a cycle");
  says("id,src,dst,bytes,after\na,0,1,1 MB,\nb,0,1,1 MB,z\n",
       "f.csv:3:12: no flow has the id \"z\"");
  says("id,src,dst,bytes,via\na,0,1,1 MB,nic:0\n", "is not a switch");
  says("id,src,dst,bytes,via\na,0,1,1 MB,ctsw:7\n", "ctsw:7");
}

TEST_CASE("a hundred mistakes are enough, and a long circle is cut short") {
  const Fabric fabric = two_rack_zone();
  std::string many = "id,src,dst,bytes\n", circle = "id,src,dst,bytes,after\n";
  for (int i = 0; i < 500; ++i) {
    many += "a" + std::to_string(i) + ",0,1,x\n";
    circle += fmt::format("f{},0,1,1 MB,f{}\n", i, (i + 1) % 500);
  }
  const auto errors = read_flows(fabric, many, "f.csv");
  REQUIRE_FALSE(errors.has_value());
  CHECK(errors.error().more.size() == 99);
  const std::string text = flows_refusal(fabric, circle);
  CHECK(text.find("500 flows") != std::string::npos);
  CHECK(text.find("f8 after f9 after ...;") != std::string::npos);
}

TEST_CASE("ids that count up need no memory; all others are found among thousands") {
  const auto check = [](auto id_of) {
    FlowIds ids;
    FlowIdIndex index(ids);
    constexpr std::uint32_t count = 5000;
    for (std::uint32_t row = 0; row < count; ++row) CHECK(index.add(id_of(row)));
    for (std::uint32_t row = 0; row < count; ++row) {
      CHECK(ids[row] == id_of(row));
      CHECK(index.find(id_of(row)) == row);
    }
    CHECK_FALSE(index.find(id_of(count)).has_value());
    CHECK_FALSE(index.find("").has_value());
    CHECK_FALSE(index.find("007").has_value());
    CHECK_FALSE(index.add(id_of(count / 2)));
    CHECK(ids[count] == id_of(count / 2));
    CHECK(index.find(id_of(count / 2)) == count / 2);
  };
  check([](std::uint32_t row) { return std::to_string(row); });
  check([](std::uint32_t row) { return std::to_string(row + 1); });
  check([](std::uint32_t row) { return std::to_string(row + 2); });
  check([](std::uint32_t row) { return "flow " + std::to_string(row); });
  // Numbers up to a row, then something else.
  check([](std::uint32_t row) { return std::to_string(row < 3000 ? row : row * 2); });
  const FlowSet nameless;
  CHECK(nameless.ids[17] == "17");
}

TEST_CASE("circles are found wherever they hang, and only circles") {
  const auto circle_of = [](const std::vector<std::uint32_t>& after) {
    FlowSet set;
    for (const std::uint32_t flow : after) set.flows.push_back({.after = flow});
    return find_circle(set);
  };
  constexpr std::uint32_t none = FlowSet::none;
  CHECK(circle_of({}) == none);
  CHECK(circle_of({none, 0, 1, 1, 2}) == none);
  CHECK(circle_of({1, 2, none}) == none);
  CHECK(circle_of({0}) == 0);
  CHECK(circle_of({none, 2, 3, 2}) == 2);
}

}  // namespace weft::model
