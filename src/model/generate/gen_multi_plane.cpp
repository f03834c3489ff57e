// Every NIC split into planes, each plane a two-stage Clos of its own.
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

//   plane 0: spine:0 ...    plane 1: spine:S ...     Planes meet only in the NICs. Splitting a port
//             leaf:0 ...              leaf:R ...     p ways gives each switch p times the radix, so
//                   \               /                that two stages reach further (multi-plane
//                     NIC, link / p each             fabrics of Microsoft and OpenAI).
class MultiPlane {
 public:
  static CommonDefaults defaults(const Config&) { return {}; }

  MultiPlane(Reader& reader, const CommonKeys& common)
      : common_(common),
        planes_(reader.count("planes", 4, 1, 64)),
        racks_(reader.count("racks", std::nullopt, 1, key_count_max)),
        hosts_per_rack_(reader.count("hosts_per_rack", 2, 1, key_count_max)),
        spines_(reader.count("spines", hosts_per_rack_ * common.nics(), 1, key_count_max)),
        uplinks_per_spine_(reader.count("uplinks_per_spine", 1, 1, key_count_max)),
        port_(plane_rate(reader, common.link, planes_)),
        uplink_(Uplink::read(reader, port_)) {}

  void check(Reader& reader) const {
    check_gpus(reader, {{"racks", racks_},
                        {"hosts_per_rack", hosts_per_rack_},
                        {"gpus_per_host", common_.gpus()}});
    const double hosts = times(racks_, hosts_per_rack_);
    check_cables(reader, {{"inside hosts", times(hosts, common_.host.cable_count())},
                          {"nic--leaf", times(hosts, common_.nics(), planes_)},
                          {"leaf--spine", times(planes_, racks_, spines_, uplinks_per_spine_)}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
    std::vector<ScopeId> racks;
    for (std::int64_t r = 0; r < racks_; ++r)
      racks.push_back(builder.add_scope(ScopeKind::rack, zone));
    HostPlacer hosts(builder, common_.host);
    std::vector<std::vector<NodeId>> hosts_of_rack;
    for (const ScopeId rack : racks)
      hosts_of_rack.push_back(hosts.place_all(rack, hosts_per_rack_));
    for (std::int64_t p = 0; p < planes_; ++p)
      add_plane(builder, hosts, hosts_of_rack, racks, zone, static_cast<std::int16_t>(p));
  }

 private:
  void add_plane(FabricBuilder& builder, const HostPlacer& hosts,
                 const std::vector<std::vector<NodeId>>& hosts_of_rack,
                 const std::vector<ScopeId>& racks, ScopeId zone, std::int16_t plane) const {
    const std::vector<NodeId> spines =
        add_switches(builder, spines_, {"spine", zone, no_lane, plane});
    const Rate uplink =
        uplink_.rate(hosts_per_rack_ * common_.nics(), port_, spines_ * uplinks_per_spine_);
    for (std::size_t r = 0; r < racks.size(); ++r) {
      const NodeId leaf =
          builder.add_node({NodeKind::fabric_switch, "leaf", racks[r], NodeId{}, no_lane, plane});
      for (const NodeId host : hosts_of_rack[r])
        for (std::size_t i = 0; i < hosts.nic_count(); ++i)
          builder.add_circuit(hosts.nic(host, i), leaf, {port_, common_.latency});
      for (const NodeId spine : spines)
        add_cables(builder, leaf, spine, uplinks_per_spine_, uplink, common_.latency);
    }
  }

  const CommonKeys& common_;
  std::int64_t planes_, racks_, hosts_per_rack_, spines_, uplinks_per_spine_;
  Rate port_;
  Uplink uplink_;
};

}  // namespace

Result<Fabric> generate_multi_plane(const Config& section) { return generate<MultiPlane>(section); }

}  // namespace weft::model
