// The front-end network beside any generated fabric.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "base/check.hpp"
#include "model/fabric/frontend.hpp"
#include "model/generate/generator.hpp"

namespace weft::model {
namespace {

// An RSW and what the cables to each FSW of its group carry.
struct Rack {
  NodeId rsw;
  Rate uplink;
};

// plane j:  ssw:j*S ... ssw:j*S+S-1        FSW j of every group joins the SSWs of plane j. Group
//              |   \  /   |                sizes and planes as in Facebook's data center fabric
// group g:  fsw:g*F ... fsw:g*F+F-1        (A. Andreyev, "Introducing data center fabric", 2014:
//              |   \  /   |                48 racks, 4 FSWs); three tiers without oversubscription
//           rsw:r ... rsw:r+47             as in HPN's frontend (Qian et al., SIGCOMM 2024, which
//            |||       |||                 keeps storage there too).
//          fe_nic / storage_nic
class FrontendBuilder {
 public:
  FrontendBuilder(FabricBuilder& builder, const FrontendKeys& keys)
      : builder_(builder), keys_(keys), root_(0) {}

  Status build() {
    WEFT_TRY_STATUS(find_racks());
    WEFT_TRY_STATUS(check_size());
    std::vector<Rack> racks;
    for (const auto& [scope, nics] : nics_in_) racks.push_back(add_rack(scope, nics, keys_.link));
    const std::vector<Rack> storage = add_storage_racks();
    add_groups(racks);
    add_groups(storage);
    if (groups_.size() > 1) add_planes();
    return {};
  }

 private:
  struct Group {
    std::vector<NodeId> fsws;
    Rate down;  // of each of them
  };

  Status find_racks() {
    const Fabric& draft = builder_.draft();
    const RoleId role = draft.find_role(fe_nic_role);
    if (!role.valid())
      return fail(Errc::infeasible, keys_.where, "the hosts have no front-end NIC",
                  "choose a host preset, or a host file with one NIC slower than the others");
    for (const NodeId nic : draft.role(role).nodes) {
      const ScopeId rack = draft.enclosing(nic, ScopeKind::rack);
      WEFT_CHECK(rack.valid());
      nics_in_[rack].push_back(nic);
      ++nic_count_;
    }
    return {};
  }

  static std::int64_t parts(std::int64_t of, std::int64_t each) { return (of + each - 1) / each; }

  Status check_size() const {
    const auto racks = static_cast<std::int64_t>(nics_in_.size());
    const std::int64_t storage_racks = parts(keys_.storage_hosts, keys_.storage_rack_hosts);
    const std::int64_t groups =
        parts(racks, keys_.group_racks) + parts(storage_racks, keys_.group_racks);
    const double links = static_cast<double>(builder_.draft().link_count()) +
                         2 * (static_cast<double>(nic_count_) + times(2, keys_.storage_hosts) +
                              times(racks + storage_racks, keys_.fsws, keys_.rsw_uplinks) +
                              (groups > 1 ? times(groups, keys_.fsws, keys_.ssws) : 0));
    if (links <= static_cast<double>(link_count_max)) return {};
    return fail(Errc::value, keys_.where,
                fmt::format("with {} + {} racks in {} groups on the front end, the fabric would "
                            "have {:.0f} links, more than {}",
                            racks, storage_racks, groups, links, link_count_max),
                "reduce storage_hosts, fsws, rsw_uplinks or ssws");
  }

  Rack add_rack(ScopeId scope, std::span<const NodeId> nics, Rate link) {
    const NodeId rsw = builder_.add_node({NodeKind::fabric_switch, "rsw", scope});
    for (const NodeId nic : nics) builder_.add_circuit(nic, rsw, {link, keys_.latency});
    const auto down = static_cast<std::int64_t>(nics.size());
    return {rsw, keys_.uplink.rate(down, link, keys_.fsws * keys_.rsw_uplinks)};
  }

  std::vector<Rack> add_storage_racks() {
    std::vector<Rack> racks;
    for (std::int64_t left = keys_.storage_hosts; left > 0; left -= keys_.storage_rack_hosts) {
      const ScopeId scope = builder_.add_scope(ScopeKind::rack, root_);
      std::vector<NodeId> nics;
      for (std::int64_t i = 0; i < std::min(left, keys_.storage_rack_hosts); ++i)
        nics.push_back(add_storage_host(scope));
      racks.push_back(add_rack(scope, nics, keys_.storage_link));
    }
    return racks;
  }

  // Returns its NIC. The cable inside is what the host's disks and software sustain.
  NodeId add_storage_host(ScopeId rack) {
    const ScopeId scope = builder_.add_scope(ScopeKind::host, rack);
    const NodeId host = builder_.add_node({NodeKind::host, storage_role, scope});
    const NodeId nic = builder_.add_node({NodeKind::nic, storage_nic_role, scope, host});
    builder_.add_circuit(nic, host, {keys_.storage_rate, Duration{}});
    return nic;
  }

  void add_groups(std::span<const Rack> racks) {
    for (std::size_t first = 0; first < racks.size();) {
      const std::size_t count =
          std::min(racks.size() - first, static_cast<std::size_t>(keys_.group_racks));
      groups_.push_back(add_group(racks.subspan(first, count)));
      first += count;
    }
  }

  Group add_group(std::span<const Rack> racks) {
    Group group{add_switches(builder_, keys_.fsws, {"fsw", root_}), {}};
    long double down = 0;
    for (const Rack& rack : racks) {
      down +=
          static_cast<long double>(rack.uplink.bps) * static_cast<long double>(keys_.rsw_uplinks);
      for (const NodeId fsw : group.fsws)
        add_cables(builder_, rack.rsw, fsw, keys_.rsw_uplinks, rack.uplink, keys_.latency);
    }
    group.down = {static_cast<std::int64_t>(std::min(down, 9e18L))};
    return group;
  }

  void add_planes() {
    for (std::size_t plane = 0; plane < static_cast<std::size_t>(keys_.fsws); ++plane) {
      const std::vector<NodeId> ssws = add_switches(builder_, keys_.ssws, {"ssw", root_});
      for (const Group& group : groups_)
        for (const NodeId ssw : ssws)
          builder_.add_circuit(group.fsws[plane], ssw,
                               {keys_.uplink.rate(1, group.down, keys_.ssws), keys_.latency});
    }
  }

  FabricBuilder& builder_;
  const FrontendKeys& keys_;
  ScopeId root_;  // every generator adds its outermost scope first
  std::map<ScopeId, std::vector<NodeId>> nics_in_;
  std::size_t nic_count_ = 0;
  std::vector<Group> groups_;
};

// `uplink: RATE`, or an oversubscription of both tiers, 1 by default.
Uplink read_uplink(Reader& reader) {
  if (!reader.has("uplink") && !reader.has("oversubscription")) return Uplink::oversubscribed(1);
  return Uplink::read(reader, 100_Gbps);
}

}  // namespace

std::optional<FrontendKeys> read_frontend(Reader& reader, const CommonKeys& common,
                                          Errors& errors) {
  const Config* section = reader.child("frontend");
  if (section == nullptr || section->kind == Config::Kind::null) return {};
  Reader inner(*section, "fabric.frontend", errors);
  FrontendKeys keys;
  keys.where = section->where;
  keys.link = read_rate(inner, "link", 100_Gbps);
  keys.uplink = read_uplink(inner);
  keys.group_racks = inner.count("racks_per_group", 48, 1, key_count_max);
  keys.fsws = inner.count("fsws", 4, 1, key_count_max);
  keys.rsw_uplinks = inner.count("rsw_uplinks", 1, 1, key_count_max);
  keys.ssws = inner.count("ssws", 4, 1, key_count_max);
  keys.storage_hosts = inner.count("storage_hosts", 96, 0, key_count_max);
  keys.storage_rack_hosts = inner.count("storage_hosts_per_rack", 16, 1, key_count_max);
  keys.storage_link = read_rate(inner, "storage_link", 200_Gbps);
  keys.storage_rate = read_rate(inner, "storage_rate", keys.storage_link);
  keys.latency = inner.duration("latency", common.latency);
  inner.finish();
  return keys;
}

Status add_frontend(FabricBuilder& builder, const FrontendKeys& keys) {
  return FrontendBuilder(builder, keys).build();
}

}  // namespace weft::model
