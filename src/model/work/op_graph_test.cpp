#include "model/work/op_graph.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <limits>

#include "model/work/op_graph_cycle.hpp"

namespace weft::model {
namespace {

using Kind = Operation::Kind;

std::uint32_t add(Program& program, Operation operation,
                  std::initializer_list<std::uint32_t> after = {}) {
  return add_operation(program, operation, std::span(after.begin(), after.size()));
}
Operation send(std::uint32_t slot, std::uint32_t tag = 0, double bytes = 8) {
  return {.kind = Kind::send, .slot = slot, .tag = tag, .bytes = bytes};
}
Operation recv(std::uint32_t slot, std::uint32_t tag = 0, double bytes = 8) {
  return {.kind = Kind::recv, .slot = slot, .tag = tag, .bytes = bytes};
}
Operation collective(std::uint32_t slot, double bytes = 8) {
  return {.kind = Kind::collective, .slot = slot, .bytes = bytes};
}

OpGraph graph_of(std::vector<Program> programs) {
  OpGraph graph;
  graph.labels = {"x"};
  graph.programs = std::move(programs);
  for (std::size_t p = 0; p < graph.programs.size(); ++p)
    graph.programs[p].role = "role " + std::to_string(p);
  return graph;
}

// One rank each. Peers are actors, memberships groups.
void add_actor(OpGraph& graph, std::uint32_t program, std::initializer_list<std::uint32_t> peers,
               std::initializer_list<std::uint32_t> memberships = {}) {
  graph.actors.push_back({program, static_cast<std::uint32_t>(graph.peers.size()),
                          static_cast<std::uint32_t>(graph.memberships.size())});
  graph.peers.insert(graph.peers.end(), peers);
  graph.memberships.insert(graph.memberships.end(), memberships);
  graph.actor_ranks.push_back(graph.rank_count++);
}

void check_fails(OpGraph graph, std::string_view text) {
  const Status status = graph.finish();
  REQUIRE_FALSE(status.has_value());
  CHECK(status.error().code == Errc::value);
  CHECK_MESSAGE(status.error().text().find(text) != std::string::npos, status.error().text());
}

// 0 -> 1: two messages with tag 0 and one with tag 1 between them.
OpGraph pair() {
  Program sender, receiver;
  add(sender, send(0));
  add(sender, send(0, 1));
  add(sender, send(0), {0});
  add(receiver, recv(0, 1));
  add(receiver, recv(0));
  add(receiver, {}, {1});
  add(receiver, recv(0));
  OpGraph graph = graph_of({sender, receiver});
  add_actor(graph, 0, {1});
  add_actor(graph, 1, {0});
  return graph;
}

// n actors of one program in a ring: slot 0 is the next one, slot 1 the one before.
OpGraph ring(const Program& program, std::uint32_t n) {
  OpGraph graph = graph_of({program});
  for (std::uint32_t a = 0; a < n; ++a) add_actor(graph, 0, {(a + 1) % n, (a + n - 1) % n});
  return graph;
}

TEST_CASE("names of dimensions and labels") {
  CHECK(to_text(Dimension::tp) == "tp");
  CHECK(to_text(Dimension::other) == "other");
  OpGraph graph;
  CHECK(graph.label("a") == 0);
  CHECK(graph.label("b") == 1);
  CHECK(graph.label("a") == 0);
  CHECK(graph.labels.size() == 2);
}

TEST_CASE("the k-th send meets the k-th recv of its tag") {
  OpGraph graph = pair();
  REQUIRE(graph.finish().has_value());
  CHECK(graph.programs[0].match == std::vector<std::uint32_t>{1, 0, 3});
  CHECK(graph.programs[1].match == std::vector<std::uint32_t>{1, 0, UINT32_MAX, 2});
  // Again: nothing is left over from before.
  REQUIRE(graph.finish().has_value());
  CHECK(graph.programs[0].match == std::vector<std::uint32_t>{1, 0, 3});
}

TEST_CASE("two slots that lead to one actor are one link") {
  Program program;
  add(program, send(0, 7));
  add(program, recv(1, 7));
  OpGraph graph = ring(program, 2);
  REQUIRE(graph.finish().has_value());
  CHECK(graph.programs[0].match == std::vector<std::uint32_t>{1, 0});
  OpGraph alone = ring(program, 1);  // a message to itself
  REQUIRE(alone.finish().has_value());
}

TEST_CASE("messages that do not meet") {
  OpGraph graph = pair();
  graph.programs[1].operations.pop_back();
  check_fails(graph, "\"role 0\" sends 2 messages with tag 0 to \"role 1\", which receives 1");
  graph = pair();
  graph.programs[0].operations.pop_back();
  check_fails(graph, "sends 1 messages with tag 0");
  graph = pair();
  graph.programs[0].operations[1].tag = 2;
  check_fails(graph, "which receives 0");
  graph = pair();
  graph.programs[1].operations[3].bytes = 9;
  check_fails(graph, "has 8 bytes, but its other end");
  graph = pair();
  graph.peers[1] = 1;  // the receiver listens to itself
  check_fails(graph, "which receives 0");
}

TEST_CASE("indexes and amounts out of range") {
  const auto with = [](auto&& change) {
    OpGraph graph = pair();
    change(graph);
    return graph;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  check_fails(with([](OpGraph& g) { g.programs[0].operations[0].label = 1; }), "label 1");
  check_fails(with([](OpGraph& g) { g.programs[0].operations[0].bytes = -1; }), "at least 0");
  check_fails(with([&](OpGraph& g) { g.programs[1].operations[2].seconds = nan; }), "finite");
  check_fails(with([](OpGraph& g) { g.programs[0].after[0] = 3; }), "waits for operation 3");
  check_fails(with([](OpGraph& g) { g.programs[0].after.clear(); }), "beyond the end");
  check_fails(with([](OpGraph& g) { g.programs[0].folded = {{0, Dimension::tp, 0}}; }),
              "does not compute");
  check_fails(with([](OpGraph& g) { g.programs[1].folded = {{2, Dimension::tp, 1}}; }),
              "folded parts");
  check_fails(with([](OpGraph& g) { g.actors[1].program = 2; }), "runs program 2");
  check_fails(with([](OpGraph& g) { g.actors[1].program = 0; }), "no actor runs \"role 1\"");
  check_fails(with([](OpGraph& g) { g.peers[0] = 2; }), "is actor 2");
  check_fails(with([](OpGraph& g) { g.peers.pop_back(); }), "lacks peers");
  check_fails(with([](OpGraph& g) { g.actor_ranks[1] = 0; }), "two actors");
  check_fails(with([](OpGraph& g) { g.actor_ranks[1] = 2; }), "rank 2 of a job of 2");
  check_fails(with([](OpGraph& g) { g.ranks_per_actor = 2; }), "do not have 2 ranks");
  check_fails(with([](OpGraph& g) { g.programs[0].operations[0].slot = UINT32_MAX; }), "slot");
}

//  0 - 1   2 - 3: fine; 0 - 1 - 2: the actors in the middle and at the end differ.
TEST_CASE("actors of one program have like peers") {
  OpGraph graph = pair();
  add_actor(graph, 0, {3});
  add_actor(graph, 1, {2});
  REQUIRE(graph.finish().has_value());
  graph.peers[2] = 1;
  check_fails(graph, "both run \"role 0\"");
}

TEST_CASE("circles are named") {
  Program program;
  add(program, {});
  add(program, {}, {2});
  add(program, {}, {1, 0});
  OpGraph graph = graph_of({program});
  add_actor(graph, 0, {});
  check_fails(graph,
              "operation 1 \"x\" of \"role 0\", which waits for operation 2 \"x\" of "
              "\"role 0\", which waits for the first");
  graph.programs[0].after[1] = 0;
  CHECK(graph.finish().has_value());
  graph.programs[0].after[0] = 1;
  check_fails(graph, "operation 1 \"x\" of \"role 0\", which waits for the first");
}

// All send before they receive, and a send ends with its recv: nobody can start.
TEST_CASE("circles across actors") {
  Program program;
  add(program, send(0));
  add(program, recv(1), {0});
  check_fails(ring(program, 5), "in a cycle");
  check_fails(ring(program, 2), "in a cycle");
  program.operations[1].after_count = 0;
  for (const std::uint32_t n : {1u, 2u, 5u}) {
    OpGraph graph = ring(program, n);
    CHECK(graph.finish().has_value());
  }
  // Each receives before it sends.
  Program other;
  add(other, recv(0, 1));
  add(other, send(0, 0), {0});
  Program one;
  add(one, recv(0, 0));
  add(one, send(0, 1), {0});
  OpGraph graph = graph_of({one, other});
  add_actor(graph, 0, {1});
  add_actor(graph, 1, {0});
  check_fails(graph, "in a cycle");
}

// Group 0 = {0, 1}, group 1 = {1, 2}; rank i is actor i.
OpGraph chain_of_groups() {
  Program first, middle, last;
  add(first, collective(0, 4));
  add(middle, collective(0, 4));
  add(middle, collective(1, 6));
  add(last, collective(0, 6));
  OpGraph graph = graph_of({first, middle, last});
  graph.groups = {{.ranks = {0, 1}, .actors = 2}, {.ranks = {1, 2}, .actors = 2}};
  add_actor(graph, 0, {}, {0});
  add_actor(graph, 1, {}, {0, 1});
  add_actor(graph, 2, {}, {1});
  return graph;
}

TEST_CASE("collectives are numbered within their slot") {
  OpGraph graph = chain_of_groups();
  for (Program& program : graph.programs) add(program, collective(0, 1));
  graph.programs[1].operations.back().slot = 0;
  add(graph.programs[1], collective(1, 1));
  REQUIRE(graph.finish().has_value());
  CHECK(graph.programs[0].match == std::vector<std::uint32_t>{0, 1});
  CHECK(graph.programs[1].match == std::vector<std::uint32_t>{0, 0, 1, 1});
}

TEST_CASE("groups that do not agree") {
  const auto with = [](auto&& change) {
    OpGraph graph = chain_of_groups();
    change(graph);
    return graph;
  };
  CHECK(with([](OpGraph&) {}).finish().has_value());
  check_fails(with([](OpGraph& g) { g.groups[0].rows = 0; }), "rows");
  check_fails(with([](OpGraph& g) { g.groups[0].ranks = {0, 1, 2}, g.groups[0].rows = 2; }),
              "do not divide into 2 rows");
  check_fails(with([](OpGraph& g) { g.groups[1].ranks[1] = 3; }), "has rank 3");
  check_fails(with([](OpGraph& g) { g.groups[1].ranks[1] = 1; }), "rank 1 twice");
  check_fails(with([](OpGraph& g) { g.groups[1].ranks[1] = 0; }), "its rank 2 is not");
  check_fails(with([](OpGraph& g) { g.groups[1].actors = 3; }), "waits for 3 actors");
  check_fails(with([](OpGraph& g) { g.memberships[2] = 0, g.groups[0].actors = 3; }),
              "in two slots");
  check_fails(with([](OpGraph& g) { g.memberships[3] = 2; }), "is in group 2");
  check_fails(with([](OpGraph& g) { g.memberships.pop_back(); }), "lacks peers or groups");
  check_fails(with([](OpGraph& g) { g.programs[0].operations[0].bytes = 5; }), "meet in one");
  check_fails(with([](OpGraph& g) { add(g.programs[0], collective(0)); }), "call 2 and 1");
}

TEST_CASE("circles through collectives") {
  OpGraph graph = chain_of_groups();
  // Actor 2 sends to 0 after group 1; 0 receives before group 0; 1 calls group 1 after group 0.
  add(graph.programs[2], send(0), {0});
  const std::uint32_t last = add(graph.programs[0], recv(0));
  graph.programs[0].operations[0].after_first = 0;
  graph.programs[0].operations[0].after_count = 1;
  graph.programs[0].after = {last};
  graph.peers = {2, 0};
  graph.actors[2].peer_first = 1;
  CHECK(graph.finish().has_value());
  graph.programs[1].after = {0};
  graph.programs[1].operations[1].after_count = 1;
  check_fails(graph, "in a cycle");
}

// Pairs of actors: programs "a then b" and "b then a" never meet in both groups, so that roles wait
// in a cycle, but no actors do:
//   group 0 (a): 0 and 1     group 1 (b): 2 and 3     alone: groups 2, 3, 4, 5
TEST_CASE("a circle of roles that no actors form") {
  Program ab, ba;
  add(ab, collective(0));
  add(ab, collective(1), {0});
  add(ba, collective(1));
  add(ba, collective(0), {0});
  OpGraph graph = graph_of({ab, ba});
  graph.groups = {{.ranks = {0, 1}, .actors = 2}, {.ranks = {2, 3}, .actors = 2},
                  {.ranks = {0}, .actors = 1},    {.ranks = {1}, .actors = 1},
                  {.ranks = {2}, .actors = 1},    {.ranks = {3}, .actors = 1}};
  add_actor(graph, 0, {}, {0, 2});
  add_actor(graph, 1, {}, {0, 3});
  add_actor(graph, 0, {}, {4, 1});
  add_actor(graph, 1, {}, {5, 1});
  CHECK(graph.finish().has_value());
  // Both pairs in both groups: now they do.
  graph.groups[0].ranks = graph.groups[1].ranks = {0, 1};
  graph.memberships = {0, 1, 0, 1, 4, 2, 5, 3};
  graph.groups[2].ranks = {2};
  graph.groups[3].ranks = {3};
  check_fails(graph, "in a cycle");
}

}  // namespace
}  // namespace weft::model
