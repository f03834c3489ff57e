// Rail-optimised two-stage Clos: one leaf per rail in each group of hosts; and rails without
// spines.
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

// spine:0 ... spine:S-1                 Defaults are a scalable unit of NVIDIA's DGX SuperPOD with
//   |  \ / |                            H100 (reference architecture): 32 hosts, 8 leaves.
// group g: leaf:g*N ... leaf:g*N+N-1    leaf of rail r: NIC r of each host of the group
class RailOptimized {
 public:
  static CommonDefaults defaults(const Config&) { return {}; }

  RailOptimized(Reader& reader, const CommonKeys& common)
      : common_(common),
        groups_(reader.count("groups", std::nullopt, 1, key_count_max)),
        hosts_per_group_(reader.count("hosts_per_group", 32, 1, key_count_max)),
        spines_(reader.count("spines", hosts_per_group_, 1, key_count_max)),
        uplinks_per_spine_(reader.count("uplinks_per_spine", 1, 1, key_count_max)),
        uplink_(Uplink::read(reader, common.link)) {}

  void check(Reader& reader) const {
    check_gpus(reader, {{"groups", groups_},
                        {"hosts_per_group", hosts_per_group_},
                        {"gpus_per_host", common_.gpus()}});
    const double hosts = times(groups_, hosts_per_group_);
    check_cables(reader,
                 {{"inside hosts", times(hosts, common_.host.cable_count())},
                  {"nic--leaf", times(hosts, common_.nics())},
                  {"leaf--spine", times(groups_, common_.nics(), spines_, uplinks_per_spine_)}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
    const std::vector<NodeId> spines = add_switches(builder, spines_, {"spine", zone});
    const Rate uplink = uplink_.rate(hosts_per_group_, common_.link, spines_ * uplinks_per_spine_);
    HostPlacer hosts(builder, common_.host);
    for (std::int64_t g = 0; g < groups_; ++g)
      for (const NodeId leaf : add_group(builder, hosts, zone, g))
        for (const NodeId spine : spines)
          add_cables(builder, leaf, spine, uplinks_per_spine_, uplink, common_.latency);
  }

 private:
  // The leaves of a new group, by rail.
  std::vector<NodeId> add_group(FabricBuilder& builder, HostPlacer& hosts, ScopeId zone,
                                std::int64_t number) const {
    const ScopeId group = add_named_rack(builder, zone, "group", number);
    const std::vector<NodeId> leaves = add_rail_switches(builder, hosts, {"leaf", group});
    join_rails(builder, hosts.place_all(group, hosts_per_group_), hosts, leaves,
               {common_.link, common_.latency});
    return leaves;
  }

  const CommonKeys& common_;
  std::int64_t groups_, hosts_per_group_, spines_, uplinks_per_spine_;
  Uplink uplink_;
};

// rail:0 ... rail:N-1     No spine: rails meet only inside a host, over NVLink.
//  ||||       ||||        From: Wang et al., "Rail-only: A Low-Cost High-Performance Network for
//  NIC r of each host     Training LLMs with Trillion Parameters", HOTI 2024.
class RailOnly {
 public:
  static CommonDefaults defaults(const Config&) { return {}; }

  RailOnly(Reader& reader, const CommonKeys& common)
      : common_(common), hosts_(reader.count("hosts", std::nullopt, 1, key_count_max)) {}

  void check(Reader& reader) const {
    check_gpus(reader, {{"hosts", hosts_}, {"gpus_per_host", common_.gpus()}});
    check_cables(reader, {{"inside hosts", times(hosts_, common_.host.cable_count())},
                          {"nic--rail", times(hosts_, common_.nics())}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
    const ScopeId rack = builder.add_scope(ScopeKind::rack, zone);
    HostPlacer hosts(builder, common_.host);
    const std::vector<NodeId> rails = add_rail_switches(builder, hosts, {"rail", rack});
    join_rails(builder, hosts.place_all(rack, hosts_), hosts, rails,
               {common_.link, common_.latency});
  }

 private:
  const CommonKeys& common_;
  std::int64_t hosts_;
};

}  // namespace

Result<Fabric> generate_rail_optimized(const Config& section) {
  return generate<RailOptimized>(section);
}
Result<Fabric> generate_rail_only(const Config& section) { return generate<RailOnly>(section); }

}  // namespace weft::model
