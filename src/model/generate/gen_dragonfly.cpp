// Dragonfly: groups of fully meshed routers, every pair of groups joined by global cables.
#include <fmt/format.h>

#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

//  group i: router:i*a ... router:i*a+a-1    p NICs, a - 1 local and up to h global ports each;
//             \____________/                 at most a*h + 1 groups; three hops between switches
//              local full mesh               at most (local, global, local).
// Global port n of a group (router n / h) leads to the group 1 + n mod (g - 1) places further on.
// From: Kim, Dally, Scott, Abts, "Technology-Driven, Highly-Scalable Dragonfly Topology", ISCA
// 2008.
// Defaults fill the 64 ports of 200 Gbps of a Slingshot switch (De Sensi et al., "An In-Depth
// Analysis of the Slingshot Interconnect", SC 2020): 16 NICs, 31 local, 17 global.
class Dragonfly {
 public:
  static CommonDefaults defaults(const Config& section) {
    return {"a100", gpus_per_host_for(peek_count(section, "p", p_default))};
  }

  Dragonfly(Reader& reader, const CommonKeys& common)
      : common_(common),
        p_(reader.count("p", p_default, 1, key_count_max)),
        a_(reader.count("a", 32, 1, 10'000)),
        h_(reader.count("h", 17, 1, 10'000)),
        g_(reader.count("g", std::nullopt, 1, key_count_max)),
        local_link_(read_rate(reader, "local_link", common.link)),
        global_link_(read_rate(reader, "global_link", common.link)) {}

  void check(Reader& reader) const {
    if (g_ > a_ * h_ + 1)
      reader.error(Errc::infeasible, reader.where("g"),
                   fmt::format("{} groups, but a group of {} routers with {} global ports reaches "
                               "only {} others",
                               g_, a_, h_, a_ * h_),
                   fmt::format("give g <= a * h + 1 = {}", a_ * h_ + 1));
    if (p_ % common_.nics() != 0)
      reader.error(Errc::infeasible, reader.where("p"),
                   fmt::format("{} NICs per host do not divide the p = {} NIC ports of a router",
                               common_.nics(), p_),
                   "choose gpus_per_host so that its NICs divide p");
    const double nics = times(g_, a_, p_);
    const double hosts = nics / static_cast<double>(common_.nics());
    check_gpus(reader, {{"hosts", hosts}, {"gpus_per_host", common_.gpus()}});
    check_cables(reader, {{"inside hosts", times(hosts, common_.host.cable_count())},
                          {"nic--router", nics},
                          {"local", times(g_, a_, a_ - 1) / 2},
                          {"global", times(g_, a_, h_) / 2}});
  }

  void build(FabricBuilder& builder) const {
    const ScopeId zone = builder.add_scope(ScopeKind::zone, ScopeId{});
    HostPlacer hosts(builder, common_.host);
    std::vector<std::vector<NodeId>> groups;
    for (std::int64_t i = 0; i < g_; ++i) groups.push_back(add_group(builder, hosts, zone));
    if (g_ > 1) join_groups(builder, groups);
  }

 private:
  static constexpr std::int64_t p_default = 16;

  std::vector<NodeId> add_group(FabricBuilder& builder, HostPlacer& hosts, ScopeId zone) const {
    const ScopeId group = builder.add_scope(ScopeKind::pod, zone);
    std::vector<NodeId> routers;
    for (std::int64_t r = 0; r < a_; ++r) {
      const NodeId router =
          add_rack(builder, hosts, common_, {"router", group, p_ / common_.nics()});
      for (const NodeId other : routers)
        builder.add_circuit(other, router, {local_link_, common_.latency});
      routers.push_back(router);
    }
    return routers;
  }

  // As many rounds over all pairs as there are global ports for; ports left over stay unused.
  void join_groups(FabricBuilder& builder, const std::vector<std::vector<NodeId>>& groups) const {
    const std::size_t peers = groups.size() - 1;
    const std::size_t rounds = static_cast<std::size_t>(a_ * h_) / peers;
    const auto router = [&](std::size_t group, std::size_t port) {
      return groups[group][port / static_cast<std::size_t>(h_)];
    };
    for (std::size_t round = 0; round < rounds; ++round)
      for (std::size_t i = 0; i < groups.size(); ++i)
        for (std::size_t j = i + 1; j < groups.size(); ++j) {
          const std::size_t ahead = j - i, back = groups.size() - ahead;
          builder.add_circuit(router(i, round * peers + ahead - 1),
                              router(j, round * peers + back - 1), {global_link_, common_.latency});
        }
  }

  const CommonKeys& common_;
  std::int64_t p_, a_, h_, g_;
  Rate local_link_, global_link_;
};

}  // namespace

Result<Fabric> generate_dragonfly(const Config& section) { return generate<Dragonfly>(section); }

}  // namespace weft::model
