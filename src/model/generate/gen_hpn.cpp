// HPN 7.0: two planes, two ToRs per NIC, rails, segments of 1,024 GPUs, pods of 15,360.
#include <fmt/format.h>

#include <algorithm>

#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

// core (per plane) ... only pipeline-parallel traffic comes here: 120 ports down, 8 up per agg
//   |
// agg:0 ... agg:59 (plane 0)    agg:60 ... agg:119 (plane 1)      of each pod
//   |  full mesh inside a plane  |
// segment: tor (rail 0, plane 0), tor (rail 0, plane 1), tor (rail 1, plane 0), ...
//               \                 /
//                NIC of rail 0, link / planes to each
// From: Qian et al., "Alibaba HPN: A Data Center Network for Large Language Model Training",
// SIGCOMM 2024. We differ: the 8 spare ports of a ToR are not cabled, and how aggs spread over
// cores is not published (here uplink u of agg a goes to core (a * core_uplinks + u) mod cores).
class Hpn {
 public:
  static CommonDefaults defaults(const Config&) { return {}; }

  Hpn(Reader& reader, const CommonKeys& common)
      : common_(common),
        pods_(reader.count("pods", 1, 1, key_count_max)),
        segments_(reader.count("segments", 15, 1, key_count_max)),
        hosts_per_segment_(reader.count("hosts_per_segment", 128, 1, key_count_max)),
        planes_(reader.count("planes", 2, 1, 64)),
        aggs_(reader.count("aggs", 60, 1, key_count_max)),
        core_uplinks_(reader.count("core_uplinks", 8, 1, key_count_max)),
        cores_(reader.count("cores", cores_for(pods_, aggs_ * core_uplinks_), 0, key_count_max)),
        port_(plane_rate(reader, common.link, planes_)),
        uplink_(read_rate(reader, "uplink", common.link)) {}

  void check(Reader& reader) const {
    if (pods_ > 1 && cores_ == 0)
      reader.error(Errc::infeasible, reader.where("cores"),
                   fmt::format("{} pods without cores cannot reach each other", pods_),
                   "use 1 or more cores per plane, or one pod");
    if (cores_ > aggs_ * core_uplinks_)
      reader.error(Errc::infeasible, reader.where("cores"),
                   fmt::format("{} cores per plane, but each pod has only {} uplinks to them",
                               cores_, aggs_ * core_uplinks_),
                   "use at most aggs * core_uplinks");
    check_gpus(reader, {{"pods", pods_},
                        {"segments", segments_},
                        {"hosts_per_segment", hosts_per_segment_},
                        {"gpus_per_host", common_.gpus()}});
    const double hosts = times(pods_, segments_, hosts_per_segment_);
    const double tors = times(pods_, segments_, common_.nics(), planes_);
    check_cables(reader,
                 {{"inside hosts", times(hosts, common_.host.wires.size())},
                  {"nic--tor", times(hosts, common_.nics(), planes_)},
                  {"tor--agg", times(tors, aggs_)},
                  {"agg--core", cores_ == 0 ? 0 : times(pods_, planes_, aggs_, core_uplinks_)}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId building = builder.add_scope(ScopeKind::building, ScopeId{});
    Planes cores;
    for (std::int64_t p = 0; p < planes_; ++p)
      cores.push_back(add_switches(builder, cores_, {"core", building, no_lane, lane(p)}));
    HostPlacer hosts(builder, common_.host);
    for (std::int64_t p = 0; p < pods_; ++p) add_pod(builder, hosts, building, p, cores);
  }

 private:
  using Planes = std::vector<std::vector<NodeId>>;  // switches by plane

  static constexpr std::int64_t core_ports = 128;  // of 400 Gbps on a 51.2 Tbps switch

  // As many as the aggs' uplinks fill; each of at most one port per uplink of a pod.
  static std::int64_t cores_for(std::int64_t pods, std::int64_t uplinks_per_pod) {
    if (pods < 2) return 0;
    return std::min((pods * uplinks_per_pod + core_ports - 1) / core_ports, uplinks_per_pod);
  }
  static std::int16_t lane(std::int64_t number) { return static_cast<std::int16_t>(number); }

  void add_pod(FabricBuilder& builder, HostPlacer& hosts, ScopeId building, std::int64_t number,
               const Planes& cores) const {
    const ScopeId pod = builder.add_scope(ScopeKind::pod, building);
    Planes aggs;
    for (std::int64_t p = 0; p < planes_; ++p)
      aggs.push_back(add_switches(builder, aggs_, {"agg", pod, no_lane, lane(p)}));
    for (std::int64_t s = 0; s < segments_; ++s)
      add_segment(builder, hosts, add_named_rack(builder, pod, "segment", number * segments_ + s),
                  aggs);
    if (cores_ == 0) return;
    for (std::size_t p = 0; p < aggs.size(); ++p)
      for (std::size_t i = 0; i < aggs[p].size() * static_cast<std::size_t>(core_uplinks_); ++i)
        builder.add_circuit(aggs[p][i / static_cast<std::size_t>(core_uplinks_)],
                            cores[p][i % cores[p].size()], {uplink_, common_.latency});
  }

  void add_segment(FabricBuilder& builder, HostPlacer& hosts, ScopeId segment,
                   const Planes& aggs) const {
    Planes tors(aggs.size());  // by plane, then rail
    for (std::size_t rail = 0; rail < hosts.nic_count(); ++rail)
      for (std::size_t p = 0; p < tors.size(); ++p)
        tors[p].push_back(
            builder.add_node({NodeKind::fabric_switch, "tor", segment, NodeId{},
                              static_cast<std::int16_t>(rail), static_cast<std::int16_t>(p)}));
    const std::vector<NodeId> placed = hosts.place_all(segment, hosts_per_segment_);
    for (std::size_t p = 0; p < tors.size(); ++p) {
      join_rails(builder, placed, hosts, tors[p], {port_, common_.latency});
      for (const NodeId tor : tors[p])
        for (const NodeId agg : aggs[p]) builder.add_circuit(tor, agg, {uplink_, common_.latency});
    }
  }

  const CommonKeys& common_;
  std::int64_t pods_, segments_, hosts_per_segment_, planes_, aggs_, core_uplinks_, cores_;
  Rate port_, uplink_;
};

}  // namespace

Result<Fabric> generate_hpn(const Config& section) { return generate<Hpn>(section); }

}  // namespace weft::model
