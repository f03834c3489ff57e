// Two-stage Clos: racks of hosts under one RTSW each, every RTSW to every CTSW.
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

// ctsw:0 ... ctsw:S-1        Defaults (18 CTSWs, racks of 16 GPUs) as in Meta's AI Zone
//    | \  / |                (SIGCOMM 2024, "RDMA over Ethernet for Distributed AI Training").
// rtsw:0 ... rtsw:R-1
//  ||||       ||||           hosts_per_rack x nics_per_host cables
class AiZone {
 public:
  static CommonDefaults defaults(const Config&) { return {}; }

  AiZone(Reader& reader, const CommonKeys& common)
      : common_(common),
        racks_(reader.count("racks", std::nullopt, 1, key_count_max)),
        hosts_per_rack_(reader.count("hosts_per_rack", 2, 1, key_count_max)),
        spines_(reader.count("spines", 18, 1, key_count_max)),
        uplinks_per_spine_(reader.count("uplinks_per_spine", 1, 1, key_count_max)),
        uplink_(Uplink::read(reader, common.link)) {}

  void check(Reader& reader) const {
    check_gpus(reader, {{"racks", racks_},
                        {"hosts_per_rack", hosts_per_rack_},
                        {"gpus_per_host", common_.gpus()}});
    const double hosts = times(racks_, hosts_per_rack_);
    check_cables(reader, {{"inside hosts", times(hosts, common_.host.cable_count())},
                          {"nic--rtsw", times(hosts, common_.nics())},
                          {"rtsw--ctsw", times(racks_, spines_, uplinks_per_spine_)}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
    const std::vector<NodeId> ctsws = add_switches(builder, spines_, {"ctsw", zone});
    const Rate uplink =
        uplink_.rate(hosts_per_rack_ * common_.nics(), common_.link, spines_ * uplinks_per_spine_);
    HostPlacer hosts(builder, common_.host);
    for (std::int64_t r = 0; r < racks_; ++r) {
      const NodeId rtsw = add_rack(builder, hosts, common_, {"rtsw", zone, hosts_per_rack_});
      for (const NodeId ctsw : ctsws)
        add_cables(builder, rtsw, ctsw, uplinks_per_spine_, uplink, common_.latency);
    }
  }

 private:
  const CommonKeys& common_;
  std::int64_t racks_, hosts_per_rack_, spines_, uplinks_per_spine_;
  Uplink uplink_;
};

}  // namespace

Result<Fabric> generate_ai_zone(const Config& section) { return generate<AiZone>(section); }

}  // namespace weft::model
