#include "workload/collective/traffic.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "base/test_approx.hpp"
#include "workload/collective/algorithm.hpp"
#include "workload/collective/double_tree.hpp"
#include "workload/collective/test_fabric.hpp"

namespace weft::workload {
namespace {

using test::first_gpus;
using test::make_fabric;

Request request_of(const Fabric& fabric, Op op, std::string algorithm, std::uint32_t n,
                   double bytes) {
  return {.op = op,
          .algorithm = std::move(algorithm),
          .ranks = first_gpus(fabric, n),
          .bytes = bytes,
          .matrix = {}};
}

// All edges of a traffic, exchanges written out.
std::vector<Edge> edges_of(const Traffic& traffic) {
  std::vector<Edge> all;
  for (const Stage& stage : traffic.stages) {
    for (const Chain& c : stage.chains) all.insert(all.end(), c.edges.begin(), c.edges.end());
    all.insert(all.end(), stage.flows.begin(), stage.flows.end());
    for (const Exchange& x : stage.exchanges)
      x.for_each_message(
          [&](NodeId from, NodeId to, double bytes) { all.push_back({from, to, bytes}); });
  }
  return all;
}

struct Sums {
  std::map<NodeId, double> sent, received;
};

Sums sums_of(const std::vector<Edge>& edges) {
  Sums sums;
  for (const Edge& e : edges) {
    sums.sent[e.from] += e.bytes;
    sums.received[e.to] += e.bytes;
  }
  return sums;
}

// Bytes that leave and enter each host over the network.
Sums network_sums(const Fabric& fabric, const Traffic& traffic) {
  std::vector<Edge> between;
  for (const Edge& e : edges_of(traffic)) {
    const NodeId a = fabric.host_of(e.from), b = fabric.host_of(e.to);
    if (a != b) between.push_back({a, b, e.bytes});
  }
  return sums_of(between);
}

Traffic build(const Fabric& fabric, const Request& request) {
  auto traffic = build_traffic(fabric, request);
  REQUIRE_MESSAGE(traffic.has_value(), (traffic ? "" : traffic.error().text()));
  return std::move(*traffic);
}

void check_each_sends(const Traffic& traffic, const Request& request, double bytes) {
  const Sums sums = sums_of(edges_of(traffic));
  for (const NodeId gpu : request.ranks) {
    CHECK(sums.sent.at(gpu) == approx(bytes).epsilon(1e-12));
    CHECK(sums.received.at(gpu) == approx(bytes).epsilon(1e-12));
  }
}

// Whose data each rank has at the end of a stream, when every edge carries what its sender has, and
// has got along edges of lower levels.
std::map<NodeId, std::set<NodeId>> gathered(const Chain& chain, const std::set<NodeId>& owners) {
  REQUIRE(chain.levels.size() == chain.edges.size());
  std::vector<std::size_t> order(chain.edges.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t e) { return chain.levels[e]; });
  std::vector<std::set<NodeId>> carried(chain.edges.size());
  std::map<NodeId, std::set<NodeId>> out;
  for (const std::size_t e : order) {
    const Edge& edge = chain.edges[e];
    if (owners.contains(edge.from)) carried[e].insert(edge.from);
    for (std::size_t before = 0; before < chain.edges.size(); ++before)
      if (chain.edges[before].to == edge.from && chain.levels[before] < chain.levels[e])
        carried[e].insert(carried[before].begin(), carried[before].end());
    out[edge.to].insert(carried[e].begin(), carried[e].end());
  }
  return out;
}

TEST_CASE("levels of a stream lead everybody's data to everybody, piece by piece") {
  struct Row {
    const char* algorithm;
    Op op;
  };
  const Row rows[] = {{"tree", Op::all_reduce}, {"tree", Op::broadcast},
                      {"ring", Op::broadcast},  {"sharp", Op::all_reduce},
                      {"nvls", Op::all_reduce}, {"nvls_tree", Op::all_reduce}};
  std::size_t streams = 0;
  for (const std::uint32_t n : {2u, 3u, 7u, 8u, 12u})
    for (const test::Group& group : test::groups(n))
      for (const Row& row : rows) {
        CAPTURE(n);
        CAPTURE(group.name);
        CAPTURE(row.algorithm);
        Request request{.op = row.op,
                        .algorithm = row.algorithm,
                        .ranks = group.ranks,
                        .bytes = 1e6,
                        .channels = 3,
                        .matrix = {}};
        const auto traffic = build_traffic(group.fabric, request);
        if (!traffic) continue;  // not for this layout
        const std::set<NodeId> all(group.ranks.begin(), group.ranks.end());
        const std::set<NodeId> root{group.ranks[0]};
        for (const Chain& chain : traffic->stages[0].chains) {
          ++streams;
          const bool from_root = row.op == Op::broadcast;
          auto has = gathered(chain, from_root ? root : all);
          for (const NodeId rank : group.ranks) {
            has[rank].insert(rank);
            if (!from_root) CHECK(has[rank] == all);
            if (from_root) CHECK(has[rank].contains(group.ranks[0]));
          }
        }
      }
  CHECK(streams > 300);
}

TEST_CASE("rings in turns have no levels") {
  const Fabric fabric = make_fabric({.hosts = 2, .gpus = 4, .nics = 4});
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter})
    for (const char* algorithm : {"ring", "hierarchical"})
      for (const Stage& stage : build(fabric, request_of(fabric, op, algorithm, 8, 1e6)).stages)
        for (const Chain& chain : stage.chains) CHECK(chain.levels.empty());
}

TEST_CASE("bytes per rank are the textbook's") {
  struct Row {
    const char* algorithm;
    Op op;
    double (*bytes)(double n);  // per byte of the request
  };
  const auto parts = [](double n) { return (n - 1) / n; };
  const auto twice = [](double n) { return 2 * (n - 1) / n; };
  const auto all = [](double n) { return n - 1; };
  const Row rows[] = {
      {"ring", Op::all_reduce, twice},
      {"ring", Op::all_gather, parts},
      {"ring", Op::reduce_scatter, parts},
      {"pat", Op::all_gather, parts},
      {"pat", Op::reduce_scatter, parts},
      {"recursive_doubling", Op::all_gather, parts},
      {"recursive_doubling", Op::reduce_scatter, parts},
      {"direct", Op::all_reduce, twice},
      {"direct", Op::all_gather, parts},
      {"direct", Op::reduce_scatter, parts},
      {"direct", Op::send_recv, [](double) { return 1.0; }},
      {"flat", Op::all_reduce, all},
      {"flat", Op::all_gather, parts},
      {"hierarchical", Op::all_reduce, twice},
      {"hierarchical", Op::all_gather, parts},
      {"hierarchical", Op::reduce_scatter, parts},
      {"pairwise", Op::all_to_all, parts},
  };
  for (const std::uint32_t n : {2u, 3u, 8u, 13u, 16u})
    for (const auto& spec : {test::FabricSpec{.hosts = 1, .gpus = n, .nics = 1},
                             test::FabricSpec{.hosts = n, .gpus = 1, .nics = 1}})
      for (const Row& row : rows) {
        CAPTURE(n);
        CAPTURE(row.algorithm);
        const Fabric fabric = make_fabric(spec);
        const Request request = request_of(fabric, row.op, row.algorithm, n, 1e6);
        check_each_sends(build(fabric, request), request, 1e6 * row.bytes(n));
      }
}

TEST_CASE("halving-doubling: 2 (p-1)/p S for powers of two, whole data more where ranks fold") {
  const Fabric fabric = make_fabric({.hosts = 16, .gpus = 1, .nics = 1});
  const Request even = request_of(fabric, Op::all_reduce, "halving_doubling", 16, 1e6);
  check_each_sends(build(fabric, even), even, 1e6 * 2 * 15 / 16);
  CHECK(build(fabric, even).stages.size() == 8);

  // 13 = 8 + 5: ranks 0, 2, .. 8 hand over to 1, 3, .. 9 and get the result from them.
  const Request odd = request_of(fabric, Op::all_reduce, "halving_doubling", 13, 1e6);
  const Traffic traffic = build(fabric, odd);
  const Sums sums = sums_of(edges_of(traffic));
  CHECK(traffic.stages.size() == 8);
  CHECK(sums.sent.at(odd.ranks[8]) == approx(1e6));
  CHECK(sums.sent.at(odd.ranks[9]) == approx(1e6 * (1 + 14.0 / 8)));
  CHECK(sums.sent.at(odd.ranks[10]) == approx(1e6 * 14 / 8));
}

TEST_CASE("a ring's channel stays on its NIC, and borrows it where another GPU comes last") {
  // host 0: gpu 0..3 on nic 0..3, host 1: gpu 4..7 on nic 4..7; channel 2 goes
  //   2 -> 3 -> 0 -> 1 -> (2) -> 6 -> 7 -> 4 -> 5 -> (6) -> 2
  const Fabric fabric = make_fabric({.hosts = 2, .gpus = 4, .nics = 4});
  const Request request = request_of(fabric, Op::all_reduce, "ring", 8, 8e6);
  const Traffic traffic = build(fabric, request);
  REQUIRE(traffic.stages.size() == 1);
  REQUIRE(traffic.stages[0].chains.size() == 4);
  const auto gpu = [&](std::size_t i) { return fabric.gpus()[i]; };
  std::vector<NodeId> path;
  for (const Edge& e : traffic.stages[0].chains[2].edges) path.push_back(e.from);
  CHECK(path == std::vector{gpu(2), gpu(3), gpu(0), gpu(1), gpu(2), gpu(6), gpu(7), gpu(4), gpu(5),
                            gpu(6)});
  CHECK(traffic.stages[0].chains[2].steps == 14);
  for (const Chain& chain : traffic.stages[0].chains)
    for (const Edge& e : chain.edges) CHECK(e.bytes == approx(8e6 * 2 * 7 / 8 / 4));
  for (const auto& [host, bytes] : network_sums(fabric, traffic).sent)
    CHECK(bytes == approx(8e6 * 2 * 7 / 8));
  // 14 edges in a row of a ring whose network edges are 2 of 8: two laps less two inside a host.
  CHECK(traffic.stages[0].latency_steps == 4);
  CHECK(traffic.stages[0].inner_steps == 10);
}

TEST_CASE("a ring uses two GPUs at one NIC as way in and way out") {
  // gpu 0, 1 on nic 0 and gpu 2, 3 on nic 1: no borrowing.
  const Fabric fabric = make_fabric({.hosts = 2, .gpus = 4, .nics = 2});
  const Traffic traffic = build(fabric, request_of(fabric, Op::all_gather, "ring", 8, 1e6));
  REQUIRE(traffic.stages[0].chains.size() == 2);
  for (std::size_t k = 0; k < 2; ++k) {
    const Chain& chain = traffic.stages[0].chains[k];
    CHECK(chain.edges.size() == 8);
    for (const Edge& e : chain.edges) {
      if (fabric.host_of(e.from) == fabric.host_of(e.to)) continue;
      CHECK(fabric.nic_of(e.from) == fabric.nics_of(fabric.host_of(e.from))[k]);
      CHECK(fabric.nic_of(e.to) == fabric.nics_of(fabric.host_of(e.to))[k]);
    }
  }
}

TEST_CASE("latency of a ring counts the edges of the longest path, by enumeration") {
  for (std::uint32_t n = 2; n <= 17; ++n)
    for (const test::Group& group : test::groups(n))
      for (const Op op : {Op::all_reduce, Op::all_gather}) {
        const Traffic traffic = build(
            group.fabric,
            {.op = op, .algorithm = "ring", .ranks = group.ranks, .channels = 1, .matrix = {}});
        // The ring's order does not matter, only how many of its edges stay inside, by host.
        const Layout layout(group.fabric, group.ranks);
        std::vector<int> crosses;
        for (std::uint32_t h = 0; h < layout.host_count(); ++h) {
          crosses.insert(crosses.end(), layout.members(h).size() - 1, 0);
          crosses.push_back(layout.host_count() > 1 ? 1 : 0);
        }
        const std::uint32_t steps = (op == Op::all_reduce ? 2 : 1) * (n - 1);
        std::uint32_t most = 0;
        for (std::uint32_t a = 0; a < n; ++a) {
          std::uint32_t count = 0;
          for (std::uint32_t i = 0; i < steps; ++i)
            count += static_cast<std::uint32_t>(crosses[(a + i) % n]);
          most = std::max(most, count);
        }
        CAPTURE(n);
        CAPTURE(group.name);
        CHECK(traffic.stages[0].latency_steps == most);
        CHECK(traffic.stages[0].inner_steps == steps - most);
      }
}

TEST_CASE("two binary trees: every node once, two children at most, none with children in both") {
  for (std::uint32_t n = 1; n <= 300; ++n) {
    std::vector<std::uint32_t> inner(n, 0);
    for (std::uint32_t t = 0; t < tree_count; ++t) {
      const auto parent = binary_tree(n, t);
      std::vector<std::uint32_t> children(n, 0);
      std::uint32_t roots = 0;
      for (std::uint32_t i = 0; i < n; ++i) {
        if (parent[i] == no_rank)
          ++roots;
        else
          ++children[parent[i]];
      }
      CAPTURE(n);
      REQUIRE(roots == 1);
      REQUIRE(*std::ranges::max_element(children) <= 2);
      REQUIRE((1u << depth(parent)) <= n);
      for (std::uint32_t i = 0; i < n; ++i) inner[i] += children[i] > 0 ? 1 : 0;
    }
    REQUIRE(*std::ranges::max_element(inner) <= 1);
  }
}

TEST_CASE("tree: 2 (N-1) S between N hosts in all, at most 2 S out of and into each") {
  for (const std::uint32_t hosts : {2u, 3u, 7u, 8u, 16u, 33u}) {
    CAPTURE(hosts);
    const Fabric fabric = make_fabric({.hosts = hosts, .gpus = 3, .nics = 3});
    const Traffic traffic =
        build(fabric, request_of(fabric, Op::all_reduce, "tree", 3 * hosts, 6e6));
    const Sums sums = network_sums(fabric, traffic);
    double total = 0;
    for (const auto& [host, bytes] : sums.sent) {
      CHECK(bytes <= 2 * 6e6 * (1 + 1e-12));
      total += bytes;
    }
    for (const auto& [host, bytes] : sums.received) CHECK(bytes <= 2 * 6e6 * (1 + 1e-12));
    CHECK(total == approx(2 * (hosts - 1) * 6e6));
  }
}

TEST_CASE("tree broadcast: the root sends the data, every other host takes it in once") {
  const Fabric fabric = make_fabric({.hosts = 9, .gpus = 2, .nics = 2});
  const Request request = request_of(fabric, Op::broadcast, "tree", 18, 4e6);
  const Sums sums = network_sums(fabric, build(fabric, request));
  CHECK(sums.sent.at(fabric.hosts()[0]) == approx(4e6));
  CHECK(!sums.received.contains(fabric.hosts()[0]));
  for (std::size_t h = 1; h < 9; ++h) {
    CHECK(sums.received.at(fabric.hosts()[h]) == approx(4e6));
    if (sums.sent.contains(fabric.hosts()[h]))
      CHECK(sums.sent.at(fabric.hosts()[h]) <= 4e6 * (1 + 1e-12));
  }
}

TEST_CASE("nvls moves 1 + 1/n of the data each way, split over the switches by rate") {
  const Fabric fabric = make_fabric({.hosts = 1, .gpus = 8, .nics = 1, .nvswitches = 4});
  const Request request = request_of(fabric, Op::all_reduce, "nvls", 8, 8e6);
  check_each_sends(build(fabric, request), request, 9e6);
  for (const Edge& e : edges_of(build(fabric, request))) CHECK(e.bytes == approx(9e6 / 4));

  const Sums gather =
      sums_of(edges_of(build(fabric, request_of(fabric, Op::all_gather, "nvls", 8, 8e6))));
  CHECK(gather.sent.at(request.ranks[3]) == approx(1e6));
  CHECK(gather.received.at(request.ranks[3]) == approx(8e6));
}

TEST_CASE("nvls_tree: trees between hosts, S (1 + 1/k) at each of k heads") {
  const Fabric fabric = make_fabric({.hosts = 5, .gpus = 4, .nics = 4});
  const Traffic traffic = build(fabric, request_of(fabric, Op::all_reduce, "nvls_tree", 20, 4e6));
  CHECK(traffic.stages[0].chains.size() == 4);
  double network = 0;
  std::map<NodeId, double> to_switch;
  for (const Edge& e : edges_of(traffic)) {
    if (fabric.host_of(e.from) != fabric.host_of(e.to)) network += e.bytes;
    if (fabric.kind(e.to) == model::NodeKind::nvswitch) to_switch[e.from] += e.bytes;
  }
  CHECK(network == approx(2 * 4 * 4e6));
  CHECK(to_switch.size() == 20);
  for (const auto& [gpu, bytes] : to_switch) CHECK(bytes == approx(5e6));
}

TEST_CASE("sharp: each channel's edges are a tree of cables that carries the data once each way") {
  // 4 leaves, one per NIC number: every channel has a leaf of its own. 1 leaf and 3 hosts: a star.
  for (const std::uint32_t leaves : {1u, 2u, 4u}) {
    CAPTURE(leaves);
    const Fabric fabric = make_fabric({.hosts = 3, .gpus = 4, .nics = 4, .leaves = leaves});
    const Traffic traffic = build(fabric, request_of(fabric, Op::all_reduce, "sharp", 12, 4e6));
    for (const Chain& chain : traffic.stages[0].chains) {
      std::set<NodeId> nodes;
      std::set<std::pair<NodeId, NodeId>> directed;
      for (const Edge& e : chain.edges) {
        nodes.insert({e.from, e.to});
        CHECK(directed.insert({e.from, e.to}).second);
        CHECK(e.bytes == approx(1e6));
      }
      CHECK(directed.size() == 2 * (nodes.size() - 1));
      for (const auto& [a, b] : directed) CHECK(directed.contains({b, a}));
    }
  }
}

TEST_CASE("sharp crosses spines where the NICs of a channel stand on several leaves") {
  // Two hosts of one GPU; the second one's only NIC in the group is its NIC 1, on leaf 1.
  const Fabric fabric = make_fabric({.hosts = 2, .gpus = 2, .nics = 2, .leaves = 2});
  Request request = request_of(fabric, Op::all_reduce, "sharp", 1, 1e6);
  request.ranks.push_back(fabric.gpus()[3]);
  std::size_t between_switches = 0;
  for (const Edge& e : edges_of(build(fabric, request)))
    between_switches += fabric.is_switch(e.from) && fabric.is_switch(e.to) ? 1 : 0;
  CHECK(between_switches == 4);  // leaf 0 - spine - leaf 1, both ways

  const Fabric rails = make_fabric(
      {.hosts = 2, .gpus = 2, .nics = 2, .leaves = 2, .joined = test::FabricSpec::Spines::none});
  request.ranks = {rails.gpus()[0], rails.gpus()[3]};
  CHECK(build_traffic(rails, request).error().what.find("no tree of switches") !=
        std::string::npos);
}

TEST_CASE("auto takes what fits the layout") {
  const Fabric fabric = make_fabric({.hosts = 3, .gpus = 8, .nics = 8});
  const auto chosen = [&](Op op, std::uint32_t n, double bytes) {
    return build(fabric, request_of(fabric, op, "auto", n, bytes)).algorithm;
  };
  CHECK(chosen(Op::all_reduce, 8, 1e9) == "nvls");
  CHECK(chosen(Op::all_reduce, 4, 1e9) == "ring");
  CHECK(chosen(Op::all_reduce, 24, 1e9) == "ring");
  CHECK(chosen(Op::all_reduce, 24, 1e5) == "tree");
  CHECK(chosen(Op::all_gather, 24, 1e5) == "ring");
  CHECK(chosen(Op::broadcast, 24, 1e5) == "ring");
  CHECK(chosen(Op::all_to_all, 24, 1e5) == "pairwise");
  CHECK(chosen(Op::send_recv, 24, 1e5) == "direct");
  Request single = request_of(fabric, Op::all_gather, "auto", 1, 1e3);
  single.ranks.push_back(fabric.gpus()[8]);
  CHECK(default_algorithm(fabric, single).value() == "pat");
}

TEST_CASE("0 bytes leave the latency and nothing else") {
  const Fabric fabric = make_fabric({.hosts = 2, .gpus = 4, .nics = 4});
  for (const Algorithm* a : algorithms())
    for (const Op op : {Op::all_reduce, Op::all_gather, Op::all_to_all, Op::send_recv}) {
      if (!a->ops.has(op) || a->name == "nvls") continue;
      CAPTURE(a->name);
      const Traffic traffic = build(fabric, request_of(fabric, op, std::string(a->name), 8, 0));
      CHECK(edges_of(traffic).empty());
      for (const Stage& s : traffic.stages) CHECK(s.latency_steps + s.inner_steps > 0);
    }
}

void check_refused(const Fabric& fabric, const Request& request, Errc code, const char* what) {
  const auto traffic = build_traffic(fabric, request);
  REQUIRE_FALSE(traffic.has_value());
  CHECK(traffic.error().code == code);
  CAPTURE(traffic.error().text());
  CHECK(traffic.error().text().find(what) != std::string::npos);
}

TEST_CASE("what cannot be asked for is refused, with the reason") {
  const Fabric fabric = make_fabric({.hosts = 3, .gpus = 2, .nics = 2, .nvswitches = 0});
  const Request good = request_of(fabric, Op::all_reduce, "ring", 4, 1e6);
  const auto refused = [&](auto change, Errc code, const char* what) {
    Request request = good;
    change(request);
    check_refused(fabric, request, code, what);
  };
  using enum Errc;
  refused([](Request& r) { r.ranks.clear(); }, infeasible, "0 ranks");
  refused([](Request& r) { r.ranks.resize(1); }, infeasible, "1 rank;");
  refused([](Request& r) { r.ranks[3] = r.ranks[1]; }, infeasible,
          "gpu:1 is both rank 1 and rank 3");
  refused([&](Request& r) { r.ranks[2] = fabric.hosts()[0]; }, infeasible, "not a GPU");
  refused([](Request& r) { r.ranks[2] = NodeId{}; }, infeasible, "rank 2 is node");
  refused([](Request& r) { r.algorithm = "rign"; }, unknown, "did you mean \"ring\"");
  refused([](Request& r) { r.algorithm = "pat"; }, infeasible, "pat does not support all_reduce");
  refused([](Request& r) { r.algorithm = "nvls"; }, infeasible, "several hosts");
  refused([](Request& r) { r.algorithm = "nvls_tree"; }, infeasible, "no NVSwitch");
  refused([](Request& r) { r.algorithm = "sharp", r.ranks.resize(2); }, infeasible, "one host");
  refused([](Request& r) { r.algorithm = "hierarchical", r.ranks.resize(3); }, infeasible,
          "unequal length");
  refused([](Request& r) { r.bytes = -1; }, value, "-1 bytes");
  refused([](Request& r) { r.bytes = std::numeric_limits<double>::quiet_NaN(); }, value, "nan");
  refused([](Request& r) { r.bytes = 1e30; }, value, "1e+30");
  refused([](Request& r) { r.channels = 1025; }, value, "1025 channels");
  refused([](Request& r) { r.window = 0; }, value, "window");
  refused([](Request& r) { r.matrix.assign(16, 1); }, value, "only all_to_all");
  const auto all_to_all = [&](std::vector<double> matrix, const char* what) {
    refused([&](Request& r) { r.op = Op::all_to_all, r.algorithm = "auto", r.matrix = matrix; },
            value, what);
  };
  all_to_all(std::vector<double>(15, 1), "15 entries for 4 ranks");
  std::vector<double> matrix(16, 1);
  matrix[6] = std::numeric_limits<double>::infinity();
  all_to_all(matrix, "rank 1 sends inf");
  matrix[6] = -2;
  all_to_all(matrix, "rank 1 sends -2");
}

TEST_CASE("names") {
  CHECK(op_names().size() == 6);
  const auto names = algorithm_names();
  CHECK(names.front() == "auto");
  CHECK(std::ranges::is_sorted(names.begin() + 1, names.end()));
  CHECK(std::set(names.begin(), names.end()).size() == names.size());
  CHECK(busbw_factor(Op::all_reduce, 8) == 1.75);
  CHECK(busbw_factor(Op::all_to_all, 8) == 0.875);
  CHECK(busbw_factor(Op::broadcast, 8) == 1);
}

TEST_CASE("16,384 ranks and 8 channels are built in milliseconds") {
  const Fabric fabric = make_fabric({.hosts = 2048, .gpus = 8, .nics = 8, .leaves = 8});
  for (const char* name : {"ring", "tree", "nvls_tree", "sharp", "hierarchical", "direct"}) {
    const Request request = request_of(fabric, Op::all_reduce, name, 16'384, 1e9);
    const auto begin = std::chrono::steady_clock::now();
    const Traffic traffic = build(fabric, request);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::size_t edges = 0;
    for (const Chain& chain : traffic.stages[0].chains) edges += chain.edges.capacity();
    MESSAGE(traffic.algorithm << ": " << took.count() * 1e3 << " ms, " << edges << " edges");
    if (traffic.algorithm != "ring") continue;
    CHECK(edges * sizeof(Edge) < 4e6);
#ifdef NDEBUG
    CHECK(took.count() < 0.1);  // the figure is 30 ms; machines are shared
#endif
  }
}

}  // namespace
}  // namespace weft::workload
