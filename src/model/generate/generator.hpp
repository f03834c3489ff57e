// What the generators share: common keys, bounds, hosts.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "model/fabric/fabric.hpp"
#include "model/generate/host.hpp"

namespace weft::model {

// Largest value of any single count in a `fabric:` section.
inline constexpr std::int64_t key_count_max = 1'000'000;
inline constexpr std::int64_t per_host_max = 1'024;

// One cable: 0.5 us, the link latency in SimAI's HPN templates. It stands for up to 100 m of fibre
// (5 ns/m) and for store-and-forward and pipeline of the switch behind it.
inline constexpr Duration latency_default = 500_ns;

// Keys that every generator understands.
struct CommonKeys {
  HostSpec host;
  Rate link;               // between a back-end NIC and the fabric, in all
  Duration latency;        // of each cable of the fabric
  std::int64_t radix = 0;  // most ports of a switch; 0: not checked

  std::int64_t nics() const { return host.nic_count(); }
  std::int64_t gpus() const { return host.gpu_count(); }
};
struct CommonDefaults {
  std::string_view host = "h100";
  std::int64_t gpus_per_host = 8;
};
// Reads generator, host, gpus_per_host, nics_per_host, hosts_per_nvlink_domain, link, latency and
// radix.
CommonKeys read_common(Reader& reader, const CommonDefaults& defaults);

// Where a path that stands at `where` leads: relative ones start at the directory of that file.
std::string resolve_path(const Where& where, const std::string& path);
// The bytes of a file that is named at `where`, which errors point to.
Result<std::string> read_named_file(const Where& where, const std::string& path);

// GPUs per host where `ports` NIC ports of a switch are to be filled: the largest divisor up to 8.
std::int64_t gpus_per_host_for(std::int64_t ports);
// The whole number behind `key`, or `fallback` where it is missing or wrong (reported elsewhere).
std::int64_t peek_count(const Config& section, std::string_view key, std::int64_t fallback);

// A rate above zero; `fallback` where the key is missing.
Rate read_rate(Reader& reader, std::string_view key, Rate fallback);

// The share of one plane in a NIC's rate; an error where the planes cannot have equal shares.
Rate plane_rate(Reader& reader, Rate link, std::int64_t planes);

// The rate of uplinks: given, or what makes a given oversubscription exact.
class Uplink {
 public:
  // `oversubscription: X`, else `rate`.
  static Uplink derived_or(Reader& reader, Rate rate);
  // `oversubscription: X` or `uplink: RATE` (not both), else `fallback`.
  static Uplink read(Reader& reader, Rate fallback);
  static Uplink oversubscribed(double ratio) {
    Uplink uplink;
    uplink.oversubscription_ = ratio;
    return uplink;
  }
  bool is_derived() const { return oversubscription_.has_value(); }
  // The given rate; or the rate at which `down` ports of rate `link`, divided by what `up` ports
  // carry, is the oversubscription, rounded to 1 bit/s and at least that.
  Rate rate(std::int64_t down, Rate link, std::int64_t up) const;

 private:
  Rate rate_;
  std::optional<double> oversubscription_;
};

// Counts that are multiplied or added up, for messages such as "racks 9 x spines 18". They are
// doubles because products of unchecked counts overflow integers.
struct Named {
  Named(std::string_view what, double value) : name(what), count(value) {}
  Named(std::string_view what, std::int64_t value) : Named(what, static_cast<double>(value)) {}
  std::string_view name;
  double count;
};
// The product of counts, as a double.
template <class... Counts>
double times(Counts... counts) {
  return (1.0 * ... * static_cast<double>(counts));
}
// Report more GPUs (a product) or links (twice a sum of cables) than the bounds of fabric.hpp.
void check_gpus(Reader& reader, std::initializer_list<Named> factors);
void check_cables(Reader& reader, std::initializer_list<Named> terms);

// Puts hosts of one kind into a fabric and knows where their NICs are.
class HostPlacer {
 public:
  HostPlacer(FabricBuilder& builder, const HostSpec& spec);
  // One more host, in a host scope of its own inside `rack`; "host:index" unless it gets a name.
  NodeId place(ScopeId rack, std::string_view name = {});
  std::vector<NodeId> place_all(ScopeId rack, std::int64_t count);
  NodeId nic(NodeId host, std::size_t index) const {
    return NodeId(host.value + 1 + nic_parts_[index]);
  }
  std::size_t nic_count() const { return nic_parts_.size(); }

 private:
  void add_part(const HostSpec::Part& part, ScopeId scope, NodeId host);

  FabricBuilder& builder_;
  const HostSpec& spec_;
  std::vector<std::uint32_t> nic_parts_;
  std::int16_t nic_ordinal_ = 0;  // within the host being placed
  std::uint64_t placed_ = 0;
  NodeId domain_;  // the NVSwitch that hosts share, if they do
};

// `count` cables between `a` and `b`.
void add_cables(FabricBuilder& builder, NodeId a, NodeId b, std::int64_t count, Rate rate,
                Duration latency);

// `count` switches of one role in one scope.
struct SwitchRow {
  std::string_view role;
  ScopeId scope;
  std::int16_t rail = no_lane;
  std::int16_t plane = no_lane;
};
std::vector<NodeId> add_switches(FabricBuilder& builder, std::int64_t count, const SwitchRow& row);

// One switch in a rack scope of its own, with the NICs of some hosts on its ports 0, 1, ... (host
// by host). Returns the switch.
struct RackSpec {
  std::string_view role;
  ScopeId parent;
  std::int64_t hosts;
};
NodeId add_rack(FabricBuilder& builder, HostPlacer& hosts, const CommonKeys& common,
                const RackSpec& spec);

// A rack scope that a topology calls otherwise: "segment:3".
ScopeId add_named_rack(FabricBuilder& builder, ScopeId parent, std::string_view what,
                       std::int64_t number);
// One switch per rail, and the cables from NIC r of each host to switch r.
std::vector<NodeId> add_rail_switches(FabricBuilder& builder, const HostPlacer& hosts,
                                      SwitchRow row);
void join_rails(FabricBuilder& builder, const std::vector<NodeId>& placed, const HostPlacer& hosts,
                const std::vector<NodeId>& switches, const FabricBuilder::LinkSpec& cable);

// The front-end network that `frontend:` asks for beside any fabric: racks under RSWs, groups of
// racks under FSWs, groups joined by planes of SSWs; storage hosts in racks and groups of their
// own.
struct FrontendKeys {
  Rate link;      // of a host's front-end NIC to its RSW
  Uplink uplink;  // RSW to FSW, and FSW to SSW
  std::int64_t group_racks = 0, fsws = 0, rsw_uplinks = 0, ssws = 0;
  std::int64_t storage_hosts = 0, storage_rack_hosts = 0;
  Rate storage_link, storage_rate;
  Duration latency;
  Where where;
};
// None without the key. Keys and defaults: docs/frontend.md.
std::optional<FrontendKeys> read_frontend(Reader& reader, const CommonKeys& common, Errors& errors);
// Adds it to a fabric that has all of its hosts and no more to come. Fails: Errc::infeasible where
// hosts have no front-end NIC, Errc::value beyond link_count_max.
Status add_frontend(FabricBuilder& builder, const FrontendKeys& keys);

// Reports switches that need more ports than `radix`.
Status check_radix(const Fabric& fabric, std::int64_t radix, const Where& where);

// Fails: Errc::infeasible where hosts do not fill their NVLink domains.
Status check_domains(const Fabric& fabric, const HostSpec& host, Reader& reader);

// Runs one generator: Keys has
//   static CommonDefaults defaults(const Config& section);
//   Keys(Reader&, const CommonKeys&)   reads its keys
//   void check(Reader&) const          reports what is inconsistent or too large
//   void build(FabricBuilder&) const   only after a check without errors
template <class Keys>
Result<Fabric> generate(const Config& section) {
  Errors errors;
  Reader reader(section, "fabric", errors);
  const CommonKeys common = read_common(reader, Keys::defaults(section));
  const Keys keys(reader, common);
  const std::optional<FrontendKeys> frontend = read_frontend(reader, common, errors);
  reader.finish();
  if (errors.empty()) keys.check(reader);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  FabricBuilder builder;
  keys.build(builder);
  if (frontend) WEFT_TRY_STATUS(add_frontend(builder, *frontend));
  Fabric fabric = builder.freeze();
  WEFT_TRY_STATUS(check_radix(fabric, common.radix, reader.where("radix")));
  WEFT_TRY_STATUS(check_domains(fabric, common.host, reader));
  return fabric;
}

// The generators; formats/build_fabric.cpp names them.
Result<Fabric> generate_ai_zone(const Config& section);
Result<Fabric> generate_three_tier(const Config& section);
Result<Fabric> generate_hpn(const Config& section);
Result<Fabric> generate_fat_tree(const Config& section);
Result<Fabric> generate_rail_optimized(const Config& section);
Result<Fabric> generate_rail_only(const Config& section);
Result<Fabric> generate_multi_plane(const Config& section);
Result<Fabric> generate_dragonfly(const Config& section);
Result<Fabric> generate_torus(const Config& section);

}  // namespace weft::model
