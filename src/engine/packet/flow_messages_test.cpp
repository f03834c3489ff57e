#include "engine/packet/flow_messages.hpp"

#include <doctest/doctest.h>

#include <map>
#include <set>
#include <string>

#include "base/config.hpp"
#include "base/rng.hpp"
#include "model/formats/build_fabric.hpp"

namespace weft::engine::packet {
namespace {

using model::FlowSet;
using route::MessageMode;
using route::Router;
using route::RoutingConfig;

//      ctsw:0   ctsw:1          2 racks x 2 GPUs
//       |  \   /  |
//      rtsw:0  rtsw:1
//     nic:0,1  nic:2,3
const Fabric& two_racks() {
  static const Fabric fabric = *model::build_fabric(*parse_yaml(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, gpus_per_host: 2, spines: 2}", "f.yaml"));
  return fabric;
}

Router router_of(const RoutingConfig& config) {
  auto router = Router::create(two_racks(), config, 1);
  REQUIRE_MESSAGE(router.has_value(), (router ? "" : router.error().text()));
  return *std::move(router);
}

FlowSet flows_of(std::string_view rows) {
  auto set = model::read_flows(two_racks(),
                               "id,src,dst,bytes,start,after,via\n" + std::string(rows), "f.csv");
  REQUIRE_MESSAGE(set.has_value(), (set ? "" : set.error().text()));
  return *std::move(set);
}

MessageSet messages(const FlowSet& flows, const RoutingConfig& config = {}) {
  auto set = messages_of(flows, router_of(config));
  REQUIRE(set.has_value());
  return *std::move(set);
}

// "0>2/1" with via: "0>2/1 by ctsw:1".
std::string connection_text(const MessageSet& set, std::size_t message) {
  const Connection& c = set.connections[set.messages[message].connection];
  std::string out = std::to_string(two_racks().role_index(c.src)) + ">" +
                    std::to_string(two_racks().role_index(c.dst)) + "/" + std::to_string(c.qp);
  for (std::uint32_t i = 0; i < c.via_count; ++i)
    out += (i == 0 ? " by " : "|") + two_racks().name(set.via[c.via + i]);
  return out;
}

std::vector<std::uint32_t> dependents(const MessageSet& set, std::uint32_t message) {
  std::vector<std::uint32_t> out;
  for (const Dependent& d : set.dependents_of(message)) {
    CHECK(d.when == static_cast<std::uint32_t>(Dependent::When::acknowledged));
    out.push_back(d.message);
  }
  return out;
}

using Rows = std::vector<std::uint32_t>;

}  // namespace

TEST_CASE("one message a flow: connections are shared by flows with the same ends and switches") {
  const MessageSet set =
      messages(flows_of("a,0,2,5 kB,,,\n"
                        "b,2,0,6 kB,3 us,,\n"
                        "c,0,2,7 kB,,,\n"
                        "d,0,2,8 kB,,,ctsw:1\n"
                        "e,0,2,9 kB,,,ctsw:0\n"
                        "f,0,2,1 kB,,,ctsw:1\n"));
  REQUIRE(set.size() == 6);
  CHECK(set.connections.size() == 4);
  CHECK(connection_text(set, 0) == "0>2/0");
  CHECK(connection_text(set, 1) == "2>0/0");
  CHECK(set.messages[2].connection == set.messages[0].connection);
  CHECK(connection_text(set, 3) == "0>2/0 by ctsw:1");
  CHECK(connection_text(set, 4) == "0>2/0 by ctsw:0");
  CHECK(set.messages[5].connection == set.messages[3].connection);
  CHECK(set.messages[1].bytes == 6000);
  CHECK(set.messages[1].not_before_ps == 3'000'000);
  CHECK(set.dependents.empty());
  for (std::uint32_t m = 0; m < 6; ++m) CHECK(set.messages[m].waits == 0);
}

TEST_CASE("round robin: the k-th flow of a pair uses QP k mod qps, whatever its switches") {
  const MessageSet set =
      messages(flows_of("a,0,2,1 kB,,,\n"
                        "b,0,3,1 kB,,,\n"
                        "c,0,2,1 kB,,,ctsw:1\n"
                        "d,0,2,1 kB,,,\n"
                        "e,0,2,1 kB,,,\n"),
               {.scheme = "e_ecmp", .qps = 3, .message_mode = MessageMode::round_robin});
  CHECK(connection_text(set, 0) == "0>2/0");
  CHECK(connection_text(set, 1) == "0>3/0");
  CHECK(connection_text(set, 2) == "0>2/1 by ctsw:1");
  CHECK(connection_text(set, 3) == "0>2/2");
  CHECK(set.messages[4].connection == set.messages[0].connection);
}

TEST_CASE("split: equal parts on all QPs, the remainder in the first") {
  const MessageSet set = messages(flows_of("a,0,2,10 B,,,\n"
                                           "b,0,2,3 B,,,\n"
                                           "c,0,2,0,,,\n"),
                                  {.scheme = "e_ecmp", .qps = 4});
  REQUIRE(set.size() == 12);
  CHECK(set.connections.size() == 4);
  const auto bytes = [&](std::uint32_t flow) {
    Rows out;
    for (std::uint32_t part = 0; part < 4; ++part) {
      CHECK(connection_text(set, flow * 4 + part) == "0>2/" + std::to_string(part));
      out.push_back(static_cast<std::uint32_t>(set.messages[flow * 4 + part].bytes));
    }
    return out;
  };
  CHECK(bytes(0) == Rows{4, 2, 2, 2});
  CHECK(bytes(1) == Rows{3, 0, 0, 0});
  CHECK(bytes(2) == Rows{0, 0, 0, 0});
}

TEST_CASE("a flow waits for the acknowledgement of another") {
  //  a -> c, d     d -> b
  const MessageSet set =
      messages(flows_of("a,0,2,1 kB,,,\n"
                        "b,3,1,1 kB,,d,\n"
                        "c,2,3,1 kB,,a,\n"
                        "d,2,3,1 kB,1 us,a,\n"));
  REQUIRE(set.size() == 4);
  CHECK(dependents(set, 0) == Rows{2, 3});
  CHECK(dependents(set, 1).empty());
  CHECK(dependents(set, 2).empty());
  CHECK(dependents(set, 3) == Rows{1});
  CHECK(set.messages[0].waits == 0);
  CHECK(set.messages[1].waits == 1);
  CHECK(set.messages[3].waits == 1);
  CHECK(set.messages[3].not_before_ps == 1'000'000);
}

TEST_CASE("split: a join waits for all parts of one flow and releases all parts of the others") {
  //  a = {0, 1}  b = {2, 3}  c = {4, 5}   join of a: 6   join of b: 7
  const MessageSet set = messages(flows_of("a,0,2,2 kB,,,\n"
                                           "b,2,3,2 kB,,a,\n"
                                           "c,3,1,2 kB,,b,\n"),
                                  {.scheme = "e_ecmp", .qps = 2});
  REQUIRE(set.size() == 8);
  CHECK(dependents(set, 0) == Rows{6});
  CHECK(dependents(set, 1) == Rows{6});
  CHECK(dependents(set, 6) == Rows{2, 3});
  CHECK(dependents(set, 2) == Rows{7});
  CHECK(dependents(set, 7) == Rows{4, 5});
  CHECK(set.messages[6].bytes == 0);
  CHECK(set.messages[6].waits == 2);
  CHECK(connection_text(set, 6) == "0>2/0");
  CHECK(connection_text(set, 7) == "2>3/0");
  for (std::uint32_t m = 2; m < 6; ++m) CHECK(set.messages[m].waits == 1);
}

TEST_CASE("properties of random flow sets: bytes, waits and QPs add up") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const auto& nics = two_racks().nics();
    FlowSet flows;
    const std::size_t count = 1 + rng.below(40);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t src = rng.below(4);
      FlowSet::Flow flow{.src = nics[src],
                         .dst = nics[(src + 1 + rng.below(3)) % 4],
                         .size = Bytes{static_cast<std::int64_t>(rng.below(100))}};
      if (i > 0 && rng.below(2) == 0) flow.after = static_cast<std::uint32_t>(rng.below(i));
      flows.flows.push_back(flow);
    }
    const bool split = rng.below(2) == 0;
    const auto qps = static_cast<std::uint32_t>(1 + rng.below(5));
    const MessageSet set =
        messages(flows, {.scheme = "e_ecmp",
                         .qps = qps,
                         .message_mode = split ? MessageMode::split : MessageMode::round_robin});
    const std::uint32_t parts = split ? qps : 1;
    Rows released(set.size(), 0);
    for (std::uint32_t m = 0; m < set.size(); ++m)
      for (const std::uint32_t d : dependents(set, m)) ++released[d];
    std::map<std::pair<NodeId, NodeId>, std::uint32_t> seen;
    for (std::uint32_t f = 0; f < count; ++f) {
      std::uint64_t bytes = 0;
      const std::uint32_t turn = seen[{flows.flows[f].src, flows.flows[f].dst}]++;
      for (std::uint32_t m = f * parts; m < (f + 1) * parts; ++m) {
        const Connection& c = set.connections[set.messages[m].connection];
        bytes += set.messages[m].bytes;
        CHECK(c.src == flows.flows[f].src);
        CHECK(c.dst == flows.flows[f].dst);
        CHECK(c.qp == (split ? m - f * parts : turn % qps));
        CHECK(set.messages[m].waits == (flows.flows[f].after == FlowSet::none ? 0 : 1));
      }
      CHECK(bytes == static_cast<std::uint64_t>(flows.flows[f].size.count));
    }
    for (std::uint32_t m = 0; m < set.size(); ++m) CHECK(released[m] == set.messages[m].waits);
    // No two connections are alike.
    std::set<std::tuple<NodeId, NodeId, std::uint32_t>> unique;
    for (const Connection& c : set.connections) CHECK(unique.emplace(c.src, c.dst, c.qp).second);
  }
}

TEST_CASE("flows start with the first of their parts and end with the last") {
  const std::vector<MessageEnd> ends{{5, 8, 9}, {3, 6, 7}, {1, 2, never}, {4, 5, 6}, {}, {}};
  const auto times = flow_times(ends, 2, 2);
  REQUIRE(times.size() == 2);
  CHECK(times[0].start == 3);
  CHECK(times[0].end == 9);
  CHECK(times[1].start == 1);
  CHECK(times[1].end == never);
  CHECK(flow_times(ends, 6, 1)[5].start == never);
}

}  // namespace weft::engine::packet
