#include "model/formats/connection_matrix.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "model/formats/test_fabric.hpp"

namespace weft::model {
namespace {

using StartUnit = ConnectionMatrixOptions::StartUnit;

// 4 GPUs, each with a NIC, in 2 racks.
const Fabric& four_gpus() {
  static const Fabric fabric = testing::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}");
  return fabric;
}

Result<FlowSet> read_matrix(std::string_view text, StartUnit unit = StartUnit::none) {
  LineReader lines(text, "f.cm");
  return read_connection_matrix(four_gpus(), lines, {.start_unit = unit});
}

FlowSet matrix_flows(std::string_view text, StartUnit unit = StartUnit::none) {
  auto set = read_matrix(text, unit);
  REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
  return *std::move(set);
}

// What is said of `lines` behind "Nodes 4" and "Connections COUNT", on lines 3 and further.
void says(int count, const std::string& lines, std::string_view message) {
  const auto set = read_matrix(fmt::format("Nodes 4\nConnections {}\n{}", count, lines));
  const std::string got = set ? std::string("accepted") : set.error().text();
  CAPTURE(got);
  CHECK(got.find(message) != std::string::npos);
}

}  // namespace

TEST_CASE("a connection matrix: flows that start by themselves") {
  const FlowSet set = matrix_flows(
      "Nodes 4\n"
      "Connections 2\n"
      "0->1 id 1 start 0 size 2000000\n"
      "3->2 id 2 start 0 size 64\n");
  REQUIRE(set.flows.size() == 2);
  CHECK(set.flows[0].src == four_gpus().nics()[0]);
  CHECK(set.flows[0].dst == four_gpus().nics()[1]);
  CHECK(set.flows[0].size == 2_MB);
  CHECK(set.flows[1].src == four_gpus().nics()[3]);
  CHECK(set.flows[1].after == FlowSet::none);
  CHECK(set.ids[0] == "1");
  CHECK(set.ids[1] == "2");
}

TEST_CASE("a connection matrix: triggers, in any order and with any numbers") {
  const FlowSet set = matrix_flows(
      "# three in a chain, and one beside\r\n"
      "\r\n"
      "Nodes 3\r\n"
      "Connections 4\r\n"
      "Triggers 3\r\n"
      "trigger id 70 oneshot\r\n"
      "2->0 id 30 trigger 5 size 30\r\n"
      "0->1 id 10 start 0 send_done_trigger 70 size 10\r\n"
      "1->2  id 20\ttrigger 70 size 20 send_done_trigger 5 \r\n"
      "0->2 id 40 size 40 trigger 70\r\n"
      "trigger id 5 oneshot\r\n"
      "trigger id 6 oneshot\r\n");
  REQUIRE(set.flows.size() == 4);
  CHECK(set.flows[0].after == 2);
  CHECK(set.flows[1].after == FlowSet::none);
  CHECK(set.flows[2].after == 1);
  CHECK(set.flows[3].after == 1);
  CHECK(set.flows[2].size == 20_B);
  CHECK(set.ids[3] == "40");
}

TEST_CASE("a connection matrix: a start counts in the unit that the user names, or not at all") {
  const std::string text = "Nodes 2\nConnections 1\n0->1 id 1 start 12 size 1\n";
  CHECK(matrix_flows(text, StartUnit::ps).flows[0].start.ps == 12);
  CHECK(matrix_flows(text, StartUnit::ns).flows[0].start.ps == 12'000);
  CHECK(matrix_flows(text, StartUnit::us).flows[0].start.ps == 12'000'000);
  const std::string half = "Nodes 2\nConnections 1\n0->1 id 1 start 0.5 size 1\n";
  CHECK(matrix_flows(half, StartUnit::us).flows[0].start.ps == 500'000);
  says(1, "0->1 id 1 start 0.0 size 1\n", "accepted");
  says(1, "0->1 id 1 start 12 size 1\n", "f.cm:3:17: the start \"12\" has no unit");
  says(1, "0->1 id 1 start 12 size 1\n", "--start-unit");
  CHECK(read_matrix(half, StartUnit::ps).error().text().find("f.cm:3:17") != std::string::npos);
  const std::string late = "Nodes 2\nConnections 1\n0->1 id 1 start 9e30 size 1\n";
  CHECK(read_matrix(late, StartUnit::ps).error().text().find("out of range") != std::string::npos);
}

TEST_CASE("a connection matrix: nodes are NICs where no GPUs are") {
  const Fabric fabric = testing::make_fabric(
      "{rate: 400 Gbps, nodes: [{role: nic, count: 3}, {role: tor, count: 1}], links: "
      "[\"nic:0..2--tor:0\"]}");
  LineReader lines("Nodes 3\nConnections 1\n2->0 id 1 start 0 size 1\n", "f.cm");
  const auto set = read_connection_matrix(fabric, lines, {});
  REQUIRE(set.has_value());
  CHECK(set->flows[0].src == fabric.nics()[2]);
  LineReader more("Nodes 4\nConnections 0\n", "f.cm");
  CHECK(
      read_connection_matrix(fabric, more, {}).error().text() ==
      "f.cm:1:1: 4 nodes, but the fabric has 3 NICs; use a larger fabric: node i is its i-th end");
}

TEST_CASE("a connection matrix: counts must fit") {
  says(2, "0->1 id 1 start 0 size 1\n",
       "f.cm:2:1: the header declares 2 connections, but the file has 1");
  says(0, "0->1 id 1 start 0 size 1\n",
       "f.cm:2:1: the header declares 0 connections, but the file has 1");
  says(0, "Triggers 1\n", "f.cm:3:1: the header declares 1 triggers, but the file has 0");
  says(0, "trigger id 1 oneshot\n", "f.cm:3:1: the header declares 0 triggers, but the file has 1");
  says(0, "Nodes 4\n", "f.cm:3:1: duplicate count");
  says(0, "Triggers many\n", "f.cm:3:10: the count is \"many\", which is not an integer");
  says(0, "Triggers\n", "f.cm:3:9: the count is missing");
  says(0, "Triggers 0 1\n", "f.cm:3:12: unexpected word \"1\"");
  CHECK(read_matrix("Nodes 5\nConnections 0\n").error().text().find("4 GPUs") != std::string::npos);
  CHECK(read_matrix("Connections 0\n").error().text().find("\"Nodes\" is missing") !=
        std::string::npos);
  CHECK(read_matrix("Nodes 4\n").error().text().find("\"Connections\" is missing") !=
        std::string::npos);
  CHECK(read_matrix("").error().text().find("\"Nodes\" is missing") != std::string::npos);
  CHECK(read_matrix("Connections 1\n0->1 id 1 start 0 size 1\nNodes 4\n")
            .error()
            .text()
            .find("f.cm:2:1: flow before the number of nodes") != std::string::npos);
}

TEST_CASE("a connection matrix: broken flows, each with its place") {
  says(1, "0-1 id 1 start 0 size 1\n", "f.cm:3:1: \"0-1\" has no endpoints");
  says(1, "0->4 id 1 start 0 size 1\n", "f.cm:3:4: \"4\" is not one of the 4 nodes");
  says(1, "4->0 id 1 start 0 size 1\n", "f.cm:3:1: \"4\" is not one of the 4 nodes");
  says(1, "0-> id 1 start 0 size 1\n", "f.cm:3:4: \"\" is not one of the 4 nodes");
  says(1, "0->99999999999 id 1 start 0 size 1\n", "f.cm:3:4: \"99999999999\" is not one");
  says(1, "2->2 id 1 start 0 size 1\n", "f.cm:3:4: source and destination are the same NIC");
  says(1, "0->1 start 0 size 1\n", "the id is missing");
  says(1, "0->1 id x start 0 size 1\n", "f.cm:3:9: the id is \"x\"");
  says(1, "0->1 id 1 start 0\n", "the size is missing");
  says(1, "0->1 id 1 start 0 size 0\n",
       "f.cm:3:24: some programs read a size of 0 as an endless flow");
  says(1, "0->1 id 1 start 0 size -5\n", "f.cm:3:24: the size is \"-5\"");
  says(1, "0->1 id 1 start 0 size 9223372036854775808\n", "f.cm:3:24");
  says(1, "0->1 id 1 size 1\n", "f.cm:3:1: a flow needs either a start or a trigger");
  says(1, "0->1 id 1 size 1 start 0 trigger 1\n", "f.cm:3:1: a flow needs either");
  says(1, "0->1 id 1 id 2 start 0 size 1\n", "f.cm:3:11: duplicate \"id\"");
  says(1, "0->1 id 1 start 0 size\n", "\"size\" has no value");
  says(1, "0->1 id 1 strat 0 size 1\n",
       "f.cm:3:11: unknown word \"strat\" (did you mean \"start\"?)");
  says(1, "0->1 id 1 start 0 size 1 prio 2\n", "f.cm:3:26: \"prio\" is not supported");
  says(1, "0->1 id 1 start 0 size 1 recv_done_trigger 2\n", "f.cm:3:26");
  says(2, "0->1 id 1 start 0 size 1\n1->0 id 1 start 0 size 1\n", "f.cm:4:9: duplicate id \"1\"");
  says(0, "Failures 1\n", "f.cm:3:1: failures are not read");
  says(0, "hello\n", "f.cm:3:1: a line cannot begin with \"hello\"");
}

TEST_CASE("a connection matrix: broken triggers, each with its place") {
  const std::string one = "0->1 id 1 start 0 size 1 send_done_trigger 1\n";
  const std::string two = "1->0 id 2 trigger 1 size 1\n";
  const std::string declared = "trigger id 1 oneshot\n";
  says(2, "Triggers 1\n" + one + two + declared, "accepted");
  says(2, one + two, "f.cm:3:44: trigger 1 is not declared");
  says(1, "Triggers 1\n" + two + declared, "f.cm:4:19: no flow fires trigger 1");
  says(2, "Triggers 1\n" + one + "1->2 id 2 start 0 size 1 send_done_trigger 1\n" + declared,
       "f.cm:5:44: trigger 1 is already fired by flow 1");
  says(0, "Triggers 2\n" + declared + declared, "f.cm:5:1: trigger 1 is declared twice");
  says(1, "Triggers 1\n0->1 id 1 trigger 1 size 1 send_done_trigger 1\n" + declared,
       "f.cm:4:19: 1 flows wait for each other in a cycle: 1 after 1");
  says(0, "Triggers 1\ntrigger id 1 barrier count 2\n", "f.cm:4:14: trigger 1 is of type barrier");
  says(0, "Triggers 1\ntrigger id 1 multishot\n", "f.cm:4:14: trigger 1 is of type multishot");
  says(0, "Triggers 1\ntrigger id 1 sometimes\n", "f.cm:4:14: unknown trigger type \"sometimes\"");
  says(0, "Triggers 1\ntrigger id 1\n", "unknown trigger type");
  says(0, "Triggers 1\ntrigger 1 oneshot\n", "f.cm:4:9: the trigger has no id");
  says(0, "Triggers 1\ntrigger id 4294967295 oneshot\n", "f.cm:4:12: the trigger is");
}

TEST_CASE("a connection matrix is known by its first word") {
  CHECK(is_connection_matrix("Nodes 4\n"));
  CHECK(is_connection_matrix("\xEF\xBB\xBF# made by hand\n\n  Nodes 4"));
  CHECK_FALSE(is_connection_matrix("id,src,dst,bytes\nNodes,0,1,1 B\n"));
  CHECK_FALSE(is_connection_matrix("NodesX 4\n"));
  CHECK_FALSE(is_connection_matrix(""));
}

}  // namespace weft::model
