#include "model/fabric/frontend.hpp"

#include <algorithm>
#include <map>
#include <numeric>

#include "base/test_approx.hpp"
#include "model/fabric/faults.hpp"
#include "model/formats/fabric_yaml.hpp"
#include "model/formats/graph_export.hpp"
#include "model/formats/slurm.hpp"
#include "model/formats/test_fabric.hpp"
#include "plan/explain/explain.hpp"

namespace weft::model {
namespace {

using namespace testing;

// ssw:0 ssw:1 (plane 0) ssw:2 ssw:3 (plane 1)
//   fsw:0 fsw:1   fsw:2 fsw:3    fsw:4 fsw:5      groups: racks 0-1, rack 2, storage
//   rsw:0  rsw:1    rsw:2        rsw:3  rsw:4
//    || fe    ||      ||          |||    |        2 hosts of 2 GPUs a rack; 3 + 1 storage hosts
constexpr std::string_view small_yaml =
    "{generator: ai_zone, racks: 3, hosts_per_rack: 2, gpus_per_host: 2, spines: 2, frontend: "
    "{link: 100 Gbps, racks_per_group: 2, fsws: 2, ssws: 2, storage_hosts: 4, "
    "storage_hosts_per_rack: 3, storage_link: 200 Gbps, storage_rate: 10 GB/s}}";

Fabric small() { return make_fabric(small_yaml); }

Rate rate(const Fabric& f, std::string_view name) { return f.rate(link(f, name)); }

TEST_CASE("the front end: racks, groups and planes, without oversubscription by default") {
  const Fabric f = small();
  CHECK(count(f, "rsw") == 5);
  CHECK(count(f, "fsw") == 6);
  CHECK(count(f, "ssw") == 4);
  CHECK(tier_size(f, "fe_nic->rsw") == 6);
  CHECK(tier_size(f, "storage_nic->rsw") == 4);
  CHECK(tier_size(f, "storage_nic->storage") == 4);
  CHECK(tier_size(f, "rsw->fsw") == 5 * 2);
  CHECK(tier_size(f, "fsw->ssw") == 6 * 2);
  for (std::uint32_t r = 0; r < 3; ++r) {
    const std::string index = std::to_string(r);
    CHECK(f.enclosing(node(f, "rsw:" + index), ScopeKind::rack) ==
          f.enclosing(node(f, "rtsw:" + index), ScopeKind::rack));
  }
  // 2 x 100 Gbps down over 2 FSWs; 3 x 200 and 1 x 200 for storage.
  CHECK(rate(f, "rsw:0->fsw:1") == 100_Gbps);
  CHECK(rate(f, "rsw:3->fsw:4") == 300_Gbps);
  CHECK(rate(f, "rsw:4->fsw:5") == 100_Gbps);
  // Down of an FSW over 2 SSWs: 2 racks, 1 rack, storage.
  CHECK(rate(f, "fsw:0->ssw:0") == 100_Gbps);
  CHECK(rate(f, "fsw:2->ssw:1") == 50_Gbps);
  CHECK(rate(f, "fsw:5->ssw:3") == 200_Gbps);
  CHECK(f.links_between(node(f, "fsw:0"), node(f, "ssw:2")).empty());  // another plane
  CHECK(rate(f, "storage_nic:2->storage:2") == Rate{80'000'000'000});
  CHECK(rate(f, "storage_nic:2->rsw:3") == 200_Gbps);
  CHECK(f.latency(link(f, "rsw:0->fsw:0")) == 500_ns);
}

TEST_CASE("the front end leaves the back end as it is") {
  const Fabric with = small();
  const Fabric without =
      make_fabric("{generator: ai_zone, racks: 3, hosts_per_rack: 2, gpus_per_host: 2, spines: 2}");
  CHECK(std::ranges::equal(with.gpus(), without.gpus()));
  CHECK(std::ranges::equal(with.nics(), without.nics()));
  CHECK(std::ranges::equal(with.hosts(), without.hosts()));
  for (const LinkId link : without.links()) {
    CHECK(with.name(link) == without.name(link));
    CHECK(with.rate(link) == without.rate(link));
  }
  // No switch path leads from one network to the other.
  const std::vector<int> from_fe = hops_from(with, node(with, "fe_nic:0"));
  for (const NodeId n : with.nodes()) {
    const std::string& role = with.role_name(n);
    const bool front = role == "fe_nic" || role == "storage_nic" || role == "rsw" ||
                       role == "fsw" || role == "ssw";
    CHECK_MESSAGE((from_fe[n.index()] >= 0) == front, with.name(n));
  }
  CHECK(from_fe[node(with, "fe_nic:1").index()] == 2);
  CHECK(from_fe[node(with, "fe_nic:3").index()] == 4);
  CHECK(from_fe[node(with, "storage_nic:0").index()] == 6);
}

TEST_CASE("every generator takes a front end") {
  for (const char* const keys :
       {"generator: ai_zone, racks: 2", "generator: three_tier, pods: 2, racks: 2",
        "generator: hpn, segments: 2, hosts_per_segment: 3, aggs: 2", "generator: fat_tree, k: 4",
        "generator: rail_optimized, groups: 2, hosts_per_group: 2",
        "generator: rail_only, hosts: 3", "generator: multi_plane, racks: 2",
        "generator: dragonfly, p: 2, a: 2, h: 1, g: 3"}) {
    CAPTURE(keys);
    const Fabric f = make_fabric(std::string("{") + keys + ", frontend: {storage_hosts: 5}}");
    CHECK(storage_hosts(f).size() == 5);
    CHECK(storage_nics(f).size() == 5);
    const std::vector<int> hops = hops_from(f, storage_nics(f).front());
    for (const NodeId host : f.hosts()) {
      REQUIRE(fe_nics_of(f, host).size() == 1);
      CHECK(hops[fe_nics_of(f, host)[0].index()] == 6);
    }
    for (const NodeId nic : f.nics()) CHECK(hops[nic.index()] == -1);
    CHECK(make_fabric(std::string("{") + keys + ", frontend: {storage_hosts: 0}}").gpus().size() ==
          f.gpus().size());
  }
}

TEST_CASE("one group needs no planes; rates follow the oversubscription or are given") {
  const std::string zone = "{generator: ai_zone, racks: 2, gpus_per_host: 2, spines: 2, frontend: ";
  const Fabric one = make_fabric(zone + "{storage_hosts: 0}}");
  CHECK(count(one, "ssw") == 0);
  CHECK(count(one, "fsw") == 4);
  CHECK(storage_hosts(one).empty());
  const Fabric thin = make_fabric(
      zone + "{storage_hosts: 1, oversubscription: 4, rsw_uplinks: 2, fsws: 5, ssws: 1}}");
  CHECK(bps_towards(thin, node(thin, "rsw:0"), "fsw") * 4 == 200'000'000'000);
  CHECK(bps_towards(thin, node(thin, "fsw:0"), "ssw") * 4 ==
        bps_towards(thin, node(thin, "fsw:0"), "rsw"));
  const Fabric given = make_fabric(zone + "{uplink: 25 Gbps, latency: 2 us}}");
  CHECK(rate(given, "rsw:0->fsw:0") == 25_Gbps);
  CHECK(rate(given, "fsw:0->ssw:0") == 25_Gbps);
  CHECK(given.latency(link(given, "fe_nic:0->rsw:0")) == 2_us);
  CHECK(given.latency(link(given, "nic:0->rtsw:0")) == 500_ns);
}

// HPN: frontend of three tiers, 1:1, 96 to 128 storage hosts (Qian et al., SIGCOMM 2024).
TEST_CASE("explain shows the tiers of the front end") {
  const plan::FabricFacts facts =
      plan::explain(make_fabric("{generator: hpn, segments: 2, frontend: {}}"));
  const auto tier = [&](std::string_view role) {
    return *std::ranges::find(facts.switch_tiers, role, &plan::FabricFacts::SwitchTier::role);
  };
  CHECK(tier("rsw").switches == 2 + 6);
  CHECK(tier("rsw").worst == plan::Ratio{1, 1});
  CHECK(tier("fsw").worst == plan::Ratio{1, 1});
  CHECK(tier("rsw").level_min == 1);
  CHECK(tier("fsw").level_min == 2);
  CHECK(tier("ssw").level_min == 3);
  // The back end's figures do not change.
  const plan::FabricFacts plain = plan::explain(make_fabric("{generator: hpn, segments: 2}"));
  CHECK(facts.bisection->capacity == plain.bisection->capacity);
  CHECK(facts.nics == plain.nics);
  CHECK(facts.hosts == plain.hosts);
  CHECK(facts.racks == plain.racks);
  REQUIRE(facts.paths.size() == plain.paths.size());
  for (std::size_t i = 0; i < plain.paths.size(); ++i)
    CHECK(facts.paths[i].shortest == plain.paths[i].shortest);
}

TEST_CASE("fabrics with a front end survive YAML and GraphML, Slurm sees hosts alone") {
  const Fabric f = small();
  const auto section = parse_yaml(to_fabric_yaml(f), "export.yaml");
  REQUIRE(section.has_value());
  const auto again = build_fabric(*section->find("fabric"));
  REQUIRE_MESSAGE(again.has_value(), (again ? "" : again.error().text()));
  CHECK(digest(*again) == digest(f));
  const auto graph = read_graphml(to_graphml(f), "export.graphml", {});
  REQUIRE_MESSAGE(graph.has_value(), (graph ? "" : graph.error().text()));
  for (const NodeId n : f.nodes()) {  // GraphML numbers scopes anew
    CHECK(graph->name(n) == f.name(n));
    CHECK(graph->kind(n) == f.kind(n));
    CHECK(graph->host_of(n) == f.host_of(n));
  }
  for (const LinkId l : f.links()) CHECK(graph->rate(l) == f.rate(l));
  const auto slurm = to_slurm_topology(f);
  REQUIRE(slurm.has_value());
  CHECK_FALSE(contains(*slurm, "storage"));
}

TEST_CASE("mistakes in the section") {
  const auto says = [&](std::string_view frontend, std::string_view part) {
    const std::string text =
        refusal("{generator: ai_zone, racks: 2, frontend: " + std::string(frontend) + "}");
    CHECK_MESSAGE(contains(text, part), text);
  };
  says("3", "fabric.frontend must be a map");
  says("[]", "fabric.frontend must be a map");
  says("{link: 0 Gbps}", "\"link\" must be above 0");
  says("{storage_rate: 3}", "test.yaml:1:57: ");
  says("{fsws: 0}", "0 is not within");
  says("{storage_host: 3}", "did you mean \"storage_hosts\"?");
  says("{uplink: 1 Gbps, oversubscription: 2}", "both set the rate");
  says("{fsws: 1000000, ssws: 1000000}", "links, more than 40000000");
  says("{storage_hosts: 1000000, storage_hosts_per_rack: 1, fsws: 20}", "more than 40000000");
  CHECK(contains(refusal("{generator: ai_zone, racks: 2, radix: 24, frontend: {}}"),
                 "rtsw:0 needs 34 ports"));
  CHECK(contains(refusal("{file: x.yaml, frontend: {}}"), "unknown key \"frontend\""));
  CHECK(contains(refusal("{nodes: [{role: storage, kind: host}, {role: nic, host: 'storage:0'}]}"),
                 "a nic must be inside a host with the role \"host\""));
}

// 2 racks x 2 hosts x 2 GPUs, one storage host more than divides evenly.
TEST_CASE("a checkpoint spreads evenly, every byte once") {
  const Fabric f = small();
  const auto flows = checkpoint_flows(
      f, {.gpus = f.gpus().subspan(0, 10), .bytes_per_gpu = Bytes{1001}, .stripe = 3});
  REQUIRE(flows.has_value());
  CHECK(flows->size() == 5 * 3);
  std::map<NodeId, std::int64_t> sent, taken, parts;
  for (const StorageFlow& flow : *flows) {
    CHECK(f.role_name(flow.from) == fe_nic_role);
    CHECK(f.role_name(flow.to) == storage_role);
    sent[flow.from] += flow.bytes.count;
    taken[flow.to] += flow.bytes.count;
    ++parts[flow.to];
  }
  for (std::uint32_t h = 0; h < 5; ++h)
    CHECK(sent[node(f, "fe_nic:" + std::to_string(h))] == 2 * 1001);
  // 15 parts over 4 storage hosts.
  for (const auto& [host, count] : parts) CHECK((count == 3 || count == 4));
  CHECK(taken.size() == 4);
  CHECK((*flows)[0] == StorageFlow{node(f, "fe_nic:0"), node(f, "storage:0"), Bytes{668}});
  CHECK((*flows)[1] == StorageFlow{node(f, "fe_nic:0"), node(f, "storage:1"), Bytes{667}});
  CHECK((*flows)[3].to == node(f, "storage:3"));

  const auto back =
      ingest_flows(f, {.gpus = f.gpus().subspan(0, 10), .bytes_per_gpu = Bytes{1001}, .stripe = 3});
  REQUIRE(back.has_value());
  CHECK(back->size() == flows->size());
  for (std::size_t i = 0; i < back->size(); ++i)
    CHECK((*back)[i] == StorageFlow{(*flows)[i].to, (*flows)[i].from, (*flows)[i].bytes});
}

TEST_CASE("parts of nothing are left out, wide stripes are cut to the storage hosts") {
  const Fabric f = small();
  const auto flows = [&](std::int64_t bytes, std::uint32_t stripe) {
    return checkpoint_flows(
        f, {.gpus = f.gpus().subspan(3, 1), .bytes_per_gpu = Bytes{bytes}, .stripe = stripe});
  };
  CHECK(flows(0, 2)->empty());
  CHECK(flows(3, 100)->size() == 3);
  CHECK(flows(1 << 20, 100)->size() == 4);
  CHECK(checkpoint_flows(f, {})->empty());
}

TEST_CASE("the order of GPUs decides the order of hosts") {
  const Fabric f = small();
  const std::vector<NodeId> gpus{node(f, "gpu:7"), node(f, "gpu:0"), node(f, "gpu:6")};
  const auto flows = checkpoint_flows(f, {.gpus = gpus, .bytes_per_gpu = 1_MB, .stripe = 1});
  REQUIRE(flows.has_value());
  REQUIRE(flows->size() == 2);
  CHECK((*flows)[0] == StorageFlow{node(f, "fe_nic:3"), node(f, "storage:0"), 1_MB * 2});
  CHECK((*flows)[1] == StorageFlow{node(f, "fe_nic:0"), node(f, "storage:1"), 1_MB});
}

TEST_CASE("the least time: the busiest of NICs and storage hosts") {
  const Fabric f = small();
  const auto least = [&](std::size_t gpus, std::uint32_t stripe) {
    const auto flows = checkpoint_flows(f, {.gpus = f.gpus().subspan(0, gpus),
                                            .bytes_per_gpu = Bytes{1'000'000'000},
                                            .stripe = stripe});
    return storage_seconds_min(f, *flows);
  };
  CHECK(least(2, 4) == approx(2 / 12.5));          // one FE NIC of 100 Gbps
  CHECK(least(1, 1) == approx(1 / 10.0));          // one storage host of 10 GB/s
  CHECK(least(12, 4) == approx(12 / (4 * 10.0)));  // all four
  CHECK(storage_seconds_min(f, {}) == 0);
}

// docs/frontend.md prints these. Storage of Llama 3: 7,500 servers, 2 TB/s sustained, 7 TB/s at
// peak; checkpoints of 1 MB to 4 GB per GPU ("The Llama 3 Herd of Models", section 3.3.1).
TEST_CASE("checkpoints of 16,384 GPUs") {
  const auto least = [](const std::string& storage, std::int64_t bytes, std::uint32_t stripe) {
    const Fabric f = make_fabric(
        "{generator: three_tier, pods: 8, racks: 128, oversubscription: 7, frontend: {" + storage +
        "}}");
    REQUIRE(f.gpus().size() == 16'384);
    const auto flows =
        checkpoint_flows(f, {.gpus = f.gpus(), .bytes_per_gpu = Bytes{bytes}, .stripe = stripe});
    return storage_seconds_min(f, *flows);
  };
  constexpr std::int64_t large = 4'000'000'000;
  // 2,048 x 8 parts of 4 GB: 171 at most for one of 96 hosts, 3 for one of 7,500.
  CHECK(least("", large, 8) == approx(171 * 4e9 / 25e9));
  CHECK(least("", 1'000'000, 8) == approx(171 * 1e6 / 25e9));
  const std::string many = "storage_hosts: 7500, storage_link: 25 Gbps, storage_rate: ";
  CHECK(least(many + "267 MB/s", large, 8) == approx(3 * 4e9 / 267e6));
  // x 64 parts of 0.5 GB: 18 for 17.5 on average.
  CHECK(least(many + "267 MB/s", large, 64) == approx(18 * 0.5e9 / 267e6));
  CHECK(least(many + "933 MB/s", large, 64) == approx(18 * 0.5e9 / 933e6));
  CHECK(least("storage_hosts: 2048, storage_link: 10 Tbps", large, 64) == approx(8 * 4e9 / 12.5e9));
}

TEST_CASE("refused transfers say why") {
  const Fabric f = small();
  const Fabric bare = make_fabric("{generator: ai_zone, racks: 1}");
  const auto says = [&](const Fabric& fabric, StorageTransfer transfer, std::string_view part) {
    transfer.gpus = fabric.gpus();
    const auto flows = checkpoint_flows(fabric, transfer);
    REQUIRE_FALSE(flows.has_value());
    CHECK_MESSAGE(contains(flows.error().text(), part), flows.error().text());
    CHECK_FALSE(ingest_flows(fabric, transfer).has_value());
  };
  says(bare, {.gpus = {}, .bytes_per_gpu = 1_MB}, "no storage hosts");
  says(f, {.gpus = {}, .bytes_per_gpu = 1_MB, .stripe = 0}, "from 0 storage hosts");
  says(f, {.gpus = {}, .bytes_per_gpu = Bytes{-1}}, "-1 bytes per GPU");
  says(f, {.gpus = {}, .bytes_per_gpu = Bytes{INT64_MAX}}, "exceed 2^62");
  const Fabric loose = make_fabric(
      "{nodes: [{role: host}, {role: gpu, host: 'host:0'}, {role: fe_nic, kind: nic, host: "
      "'host:0'}, {role: storage, kind: host}]}");
  says(loose, {.gpus = {}, .bytes_per_gpu = 1_MB}, "host:0 has no front-end NIC cabled");
}

TEST_CASE("faults of the front end: a storage host goes down with its NIC, and is never slow") {
  const Fabric f = small();
  const auto faults =
      read_faults(f, *parse_yaml("[{kind: host_down, host: storage:1}]", "f.yaml"), 1);
  REQUIRE(faults.has_value());
  CHECK(faults->initial().troubled_nodes().size() == 2);
  CHECK(faults->initial().node(node(f, "storage_nic:1")).health == Health::down);
  const auto slow =
      read_faults(f, *parse_yaml("[{kind: host_slow, host: storage:1, factor: 2}]", "f.yaml"), 1);
  REQUIRE_FALSE(slow.has_value());
  CHECK(contains(slow.error().text(), "storage:1 has no GPUs"));
}

}  // namespace
}  // namespace weft::model
