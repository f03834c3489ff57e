// HPN 7.0: two planes, two ToRs per NIC, rails, segments of 1,024 GPUs, pods of 15,360. And what
// the paper compares it with: two ToRs in one plane, a second tier of rails alone.
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
        tors_(reader.count("tors", 1, 1, 16)),
        rails_(reader.flag("rail_only", false) ? common.nics() : 1),
        cores_(reader.count("cores", cores_for(pods_, plane_aggs() * core_uplinks_), 0,
                            key_count_max)),
        port_(plane_rate(reader, common.link, planes_ * tors_)),
        uplink_(read_rate(reader, "uplink", common.link)) {}

  void check(Reader& reader) const {
    if (pods_ > 1 && cores_ == 0)
      reader.error(Errc::infeasible, reader.where("cores"),
                   fmt::format("{} pods without cores cannot reach each other", pods_),
                   "use 1 or more cores per plane, or one pod");
    if (cores_ > plane_aggs() * core_uplinks_)
      reader.error(Errc::infeasible, reader.where("cores"),
                   fmt::format("{} cores per plane, but each pod has only {} uplinks to them",
                               cores_, plane_aggs() * core_uplinks_),
                   "use at most as many");
    check_gpus(reader, {{"pods", pods_},
                        {"segments", segments_},
                        {"hosts_per_segment", hosts_per_segment_},
                        {"gpus_per_host", common_.gpus()}});
    const double hosts = times(pods_, segments_, hosts_per_segment_);
    const double tors = times(pods_, segments_, common_.nics(), planes_, tors_);
    check_cables(reader, {{"inside hosts", times(hosts, common_.host.cable_count())},
                          {"nic--tor", times(hosts, common_.nics(), planes_, tors_)},
                          {"tor--agg", times(tors, aggs_)},
                          {"agg--core",
                           cores_ == 0 ? 0 : times(pods_, planes_, plane_aggs(), core_uplinks_)}});
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
    for (std::int64_t p = 0; p < planes_; ++p) aggs.push_back(add_aggs(builder, pod, p));
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
    Planes tors(static_cast<std::size_t>(planes_ * tors_));  // by plane and place in it, then rail
    for (std::size_t rail = 0; rail < hosts.nic_count(); ++rail)
      for (std::size_t t = 0; t < tors.size(); ++t)
        tors[t].push_back(builder.add_node({NodeKind::fabric_switch, "tor", segment, NodeId{},
                                            static_cast<std::int16_t>(rail), plane_of(t)}));
    const std::vector<NodeId> placed = hosts.place_all(segment, hosts_per_segment_);
    for (std::size_t t = 0; t < tors.size(); ++t) {
      join_rails(builder, placed, hosts, tors[t], {port_, common_.latency});
      const auto& above = aggs[static_cast<std::size_t>(plane_of(t))];
      const std::size_t share = above.size() / static_cast<std::size_t>(rails_);
      for (std::size_t rail = 0; rail < tors[t].size(); ++rail)
        for (std::size_t a = 0; a < share; ++a)
          builder.add_circuit(tors[t][rail], above[rails_ > 1 ? rail * share + a : a],
                              {uplink_, common_.latency});
    }
  }

  // Of one plane and pod: for all rails, or for each.
  std::int64_t plane_aggs() const { return aggs_ * rails_; }
  std::vector<NodeId> add_aggs(FabricBuilder& builder, ScopeId pod, std::int64_t plane) const {
    std::vector<NodeId> aggs;
    for (std::int64_t r = 0; r < rails_; ++r)
      for (const NodeId agg :
           add_switches(builder, aggs_, {"agg", pod, rails_ > 1 ? lane(r) : no_lane, lane(plane)}))
        aggs.push_back(agg);
    return aggs;
  }
  std::int16_t plane_of(std::size_t tor) const {
    return lane(static_cast<std::int64_t>(tor) / tors_);
  }

  const CommonKeys& common_;
  std::int64_t pods_, segments_, hosts_per_segment_, planes_, aggs_, core_uplinks_, tors_, rails_,
      cores_;
  Rate port_, uplink_;
};

}  // namespace

Result<Fabric> generate_hpn(const Config& section) { return generate<Hpn>(section); }

}  // namespace weft::model
