// Three tiers: racks under RTSWs, pods under CTSWs, columns of CTSWs under ATSWs.
#include <fmt/format.h>

#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

// column 0: atsw:0 ... atsw:A-1      column c: atsw:c*A ...      The 24K cluster of Llama 3 has 8
//             |  \   /  |                                        pods x 192 racks x 16 GPUs, 1:7
//   pod 0: ctsw:0   pod 1: ctsw:C      (one CTSW of each pod     above the pod ("The Llama 3 Herd
//             | ...          | ...      in each column)          of Models", section 3.3.1).
//   rtsw:0 ... rtsw:R-1    rtsw:R ...
class ThreeTier {
 public:
  static CommonDefaults defaults(const Config&) { return {}; }

  ThreeTier(Reader& reader, const CommonKeys& common)
      : common_(common),
        pods_(reader.count("pods", std::nullopt, 1, key_count_max)),
        racks_(reader.count("racks", std::nullopt, 1, key_count_max)),
        hosts_per_rack_(reader.count("hosts_per_rack", 2, 1, key_count_max)),
        ctsws_(reader.count("ctsws", hosts_per_rack_ * common.nics(), 1, key_count_max)),
        atsws_(reader.count("atsws", atsws_for(pods_, racks_), 0, key_count_max)),
        rack_uplink_(read_rate(reader, "uplink", common.link)),
        pod_uplink_(Uplink::derived_or(reader, rack_uplink_)) {}

  void check(Reader& reader) const {
    if (pods_ > 1 && atsws_ == 0)
      reader.error(Errc::infeasible, reader.where("atsws"),
                   fmt::format("{} pods without ATSWs cannot reach each other", pods_),
                   "use 1 or more atsws, or one pod");
    if (atsws_ == 0 && pod_uplink_.is_derived())
      reader.error(Errc::infeasible, reader.where("oversubscription"),
                   "\"oversubscription\" applies to the pods' uplinks, and there are none",
                   "use 1 or more atsws, or remove the key");
    check_gpus(reader, {{"pods", pods_},
                        {"racks", racks_},
                        {"hosts_per_rack", hosts_per_rack_},
                        {"gpus_per_host", common_.gpus()}});
    const double hosts = times(pods_, racks_, hosts_per_rack_);
    check_cables(reader, {{"inside hosts", times(hosts, common_.host.cable_count())},
                          {"nic--rtsw", times(hosts, common_.nics())},
                          {"rtsw--ctsw", times(pods_, racks_, ctsws_)},
                          {"ctsw--atsw", times(pods_, ctsws_, atsws_)}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId building = builder.add_scope(ScopeKind::building, ScopeId{});
    const std::vector<NodeId> atsws = add_switches(builder, ctsws_ * atsws_, {"atsw", building});
    const Rate pod_uplink =
        pod_uplink_.rate(racks_ * hosts_per_rack_ * common_.nics(), common_.link, ctsws_ * atsws_);
    HostPlacer hosts(builder, common_.host);
    for (std::int64_t p = 0; p < pods_; ++p) {
      const std::vector<NodeId> ctsws = add_pod(builder, hosts, building);
      for (std::size_t i = 0; i < atsws.size(); ++i)
        builder.add_circuit(ctsws[i / static_cast<std::size_t>(atsws_)], atsws[i],
                            {pod_uplink, common_.latency});
    }
  }

 private:
  // Without a count of its own, a column has as many ATSWs as CTSWs have ports up at 1:7.
  static std::int64_t atsws_for(std::int64_t pods, std::int64_t racks) {
    return pods > 1 ? (racks + 6) / 7 : 0;
  }

  std::vector<NodeId> add_pod(FabricBuilder& builder, HostPlacer& hosts, ScopeId building) const {
    const ScopeId pod = builder.add_scope(ScopeKind::pod, building);
    const std::vector<NodeId> ctsws = add_switches(builder, ctsws_, {"ctsw", pod});
    for (std::int64_t r = 0; r < racks_; ++r) {
      const NodeId rtsw = add_rack(builder, hosts, common_, {"rtsw", pod, hosts_per_rack_});
      for (const NodeId ctsw : ctsws)
        builder.add_circuit(rtsw, ctsw, {rack_uplink_, common_.latency});
    }
    return ctsws;
  }

  const CommonKeys& common_;
  std::int64_t pods_, racks_, hosts_per_rack_, ctsws_, atsws_;
  Rate rack_uplink_;
  Uplink pod_uplink_;
};

}  // namespace

Result<Fabric> generate_three_tier(const Config& section) { return generate<ThreeTier>(section); }

}  // namespace weft::model
