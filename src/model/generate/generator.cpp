#include "model/generate/generator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include "base/file.hpp"
#include "model/generate/nccl_topology.hpp"

namespace weft::model {
namespace {

HostSpec read_preset(Reader& reader, const std::string& name, const CommonDefaults& defaults) {
  const HostCounts usual = host_counts(name);
  std::int64_t gpus =
      reader.count("gpus_per_host", std::min(defaults.gpus_per_host, usual.gpus), 1, per_host_max);
  const std::int64_t nics = reader.count("nics_per_host", gpus, 1, per_host_max);
  std::int64_t domain =
      reader.count("hosts_per_nvlink_domain", usual.domain_hosts, 1, per_host_max);
  const std::uint32_t mesh_max = gpus_in_mesh_max(name);
  if (gpus > mesh_max) {
    reader.error(
        Errc::infeasible, reader.where("gpus_per_host"),
        fmt::format("the GPUs of {} are cabled one to each other, {} at most", name, mesh_max),
        "use fewer GPUs a host, or a host with an NVSwitch");
    gpus = mesh_max;
  }
  if (domain > 1 && mesh_max != UINT32_MAX) {
    reader.error(Errc::infeasible, reader.where("hosts_per_nvlink_domain"),
                 fmt::format("the GPUs of {} have no NVSwitch that hosts could share", name),
                 "remove the key");
    domain = 1;
  }
  return host_preset(name, static_cast<std::uint32_t>(gpus), static_cast<std::uint32_t>(nics),
                     static_cast<std::uint32_t>(domain));
}

// A host as an NCCL topology file describes it; counts beside the file must agree with it.
Result<HostSpec> read_host_file(Reader& reader, const std::string& name) {
  WEFT_TRY(const std::string text,
           read_named_file(reader.where("host"), resolve_path(reader.where("host"), name)));
  WEFT_TRY(HostSpec host, read_nccl_topology(text, name));
  if (host.gpu_count() == 0 || host.nic_count() == 0)
    return fail(Errc::infeasible, reader.where("host"),
                fmt::format("\"{}\" has {} GPUs and {} back-end NICs", name, host.gpu_count(),
                            host.nic_count()),
                "a host of a generated fabric needs at least one of each");
  const auto agree = [&](std::string_view key, std::int64_t count) {
    if (reader.has(key) && reader.count(key, count) != count)
      reader.error(Errc::infeasible, reader.where(key),
                   fmt::format("fabric.{}: the host file has {}", key, count), "remove the key");
  };
  agree("gpus_per_host", host.gpu_count());
  agree("nics_per_host", host.nic_count());
  return host;
}

HostSpec read_host(Reader& reader, const CommonDefaults& defaults) {
  const std::vector<std::string> names = host_preset_names();
  const std::string name = reader.text("host", std::string(defaults.host));
  if (std::ranges::find(names, name) != names.end()) return read_preset(reader, name, defaults);
  const HostSpec fallback = read_preset(reader, std::string(defaults.host), defaults);
  if (!name.ends_with(".xml")) {
    reader.error(Errc::unknown, reader.where("host"),
                 fmt::format("unknown host \"{}\"{}", name, did_you_mean(name, names)),
                 fmt::format("choose one of {}, or give an NCCL topology file (*.xml)",
                             fmt::join(names, ", ")));
    return fallback;
  }
  auto host = read_host_file(reader, name);
  if (host) return *std::move(host);
  reader.error(host.error());
  return fallback;
}

std::string counted(std::initializer_list<Named> items, std::string_view joint) {
  std::string text;
  for (const Named& item : items)
    text += fmt::format("{}{} {:.0f}", text.empty() ? "" : joint, item.name, item.count);
  return text;
}

}  // namespace

std::string resolve_path(const Where& where, const std::string& path) {
  // Values of the command line (--set) and of standard input are relative to where weft runs.
  if (where.file.empty() || where.file.starts_with("-")) return path;
  return (std::filesystem::path(where.file).parent_path() / path).string();
}

Result<std::string> read_named_file(const Where& where, const std::string& path) {
  constexpr std::uint64_t bytes_max = std::uint64_t{256} << 20;
  auto text = read_file(path, bytes_max);
  if (text) return text;
  return fail(Errc::io, where, text.error().text(),
              "relative paths start at the directory of the file that contains them");
}

Rate read_rate(Reader& reader, std::string_view key, Rate fallback) {
  const Rate rate = reader.rate(key, fallback);
  if (rate.bps > 0) return rate;
  reader.error(Errc::value, reader.where(key), fmt::format("\"{}\" must be above 0", key),
               "write e.g. \"400 Gbps\"");
  return fallback;
}

CommonKeys read_common(Reader& reader, const CommonDefaults& defaults) {
  CommonKeys keys;
  reader.text("generator", std::string{});
  keys.host = read_host(reader, defaults);
  keys.link = read_rate(reader, "link", keys.host.nic_rate.bps > 0 ? keys.host.nic_rate : 400_Gbps);
  keys.latency = reader.duration("latency", latency_default);
  // Whoever asks for no latency compares with a closed form: none inside the hosts either.
  if (keys.latency == Duration{}) {
    for (HostSpec::Wire& wire : keys.host.wires) wire.latency = Duration{};
    keys.host.domain_latency = Duration{};
  }
  keys.radix = reader.count("radix", 0, 0, key_count_max);
  return keys;
}

std::int64_t gpus_per_host_for(std::int64_t ports) {
  for (std::int64_t gpus = 8; gpus > 1; --gpus)
    if (ports % gpus == 0) return gpus;
  return 1;
}

std::int64_t peek_count(const Config& section, std::string_view key, std::int64_t fallback) {
  const Config* value = section.find(key);
  if (value == nullptr || value->kind != Config::Kind::scalar) return fallback;
  const auto count = parse_count(token_of(*value));
  return count && *count > 0 ? *count : fallback;
}

Rate plane_rate(Reader& reader, Rate link, std::int64_t planes) {
  if (link.bps % planes != 0)
    reader.error(Errc::infeasible, reader.where("planes"),
                 fmt::format("{} do not divide evenly over {} planes", to_text(link), planes),
                 "choose link as a multiple of planes");
  return link / planes;
}

Uplink Uplink::derived_or(Reader& reader, Rate rate) {
  Uplink uplink;
  uplink.rate_ = rate;
  if (reader.has("oversubscription"))
    uplink.oversubscription_ = reader.number("oversubscription", std::nullopt, 1e-3, 1e6);
  return uplink;
}

Uplink Uplink::read(Reader& reader, Rate fallback) {
  Uplink uplink = derived_or(reader, read_rate(reader, "uplink", fallback));
  if (uplink.is_derived() && reader.has("uplink"))
    reader.error(Errc::infeasible, reader.where("oversubscription"),
                 "\"oversubscription\" and \"uplink\" both set the rate of the uplinks",
                 "use only one of them");
  return uplink;
}

Rate Uplink::rate(std::int64_t down, Rate link, std::int64_t up) const {
  if (!oversubscription_) return rate_;
  const long double total = static_cast<long double>(down) * static_cast<long double>(link.bps);
  const long double each =
      total / (static_cast<long double>(*oversubscription_) * static_cast<long double>(up));
  return {std::max<std::int64_t>(std::llroundl(std::min(each, 9e18L)), 1)};
}

void check_gpus(Reader& reader, std::initializer_list<Named> factors) {
  double product = 1;
  for (const Named& factor : factors) product *= factor.count;
  if (product > static_cast<double>(gpu_count_max))
    reader.error(Errc::value, reader.where(),
                 fmt::format("{} makes {:.0f} GPUs, more than {}", counted(factors, " x "), product,
                             gpu_count_max),
                 "reduce one of the counts");
}

void check_cables(Reader& reader, std::initializer_list<Named> terms) {
  double links = 0;
  for (const Named& term : terms) links += 2 * term.count;
  if (links > static_cast<double>(link_count_max))
    reader.error(Errc::value, reader.where(),
                 fmt::format("the fabric would have {:.0f} links, more than {} (cables: {})", links,
                             link_count_max, counted(terms, " + ")),
                 "reduce one of the counts");
}

HostPlacer::HostPlacer(FabricBuilder& builder, const HostSpec& spec)
    : builder_(builder), spec_(spec) {
  for (const std::string& note : spec.notes) builder_.add_note(note);
  for (std::uint32_t i = 0; i < spec.parts.size(); ++i)
    if (spec.parts[i].role == "nic") nic_parts_.push_back(i);
}

NodeId HostPlacer::place(ScopeId rack, std::string_view name) {
  // Domains may span racks, so their NVSwitches stand beside them.
  if (spec_.domain_hosts > 1 && placed_++ % spec_.domain_hosts == 0) {
    const ScopeId above = builder_.draft().scopes()[rack].parent;
    domain_ = builder_.add_node(
        {.kind = NodeKind::nvswitch, .role = "nvswitch", .scope = above.valid() ? above : rack});
  }
  const ScopeId scope = builder_.add_scope(ScopeKind::host, rack);
  const NodeId host =
      builder_.add_node({.kind = NodeKind::host, .role = "host", .scope = scope, .name = name});
  nic_ordinal_ = 0;
  for (const HostSpec::Part& part : spec_.parts) add_part(part, scope, host);
  const auto node_of = [&](std::uint32_t part) {
    return part == HostSpec::host_part ? host : NodeId(host.value + 1 + part);
  };
  for (const HostSpec::Wire& wire : spec_.wires)
    builder_.add_circuit(node_of(wire.a), node_of(wire.b), {wire.rate, wire.latency});
  if (domain_.valid())
    for (std::uint32_t i = 0; i < spec_.parts.size(); ++i)
      if (spec_.parts[i].kind == NodeKind::gpu)
        builder_.add_circuit(node_of(i), domain_, {spec_.domain_rate, spec_.domain_latency});
  return host;
}

std::vector<NodeId> HostPlacer::place_all(ScopeId rack, std::int64_t count) {
  std::vector<NodeId> hosts;
  for (std::int64_t i = 0; i < count; ++i) hosts.push_back(place(rack));
  return hosts;
}

// A NIC's rail is its number in the host; GPUs get that of their NIC when the fabric freezes.
void HostPlacer::add_part(const HostSpec::Part& part, ScopeId scope, NodeId host) {
  std::int16_t rail = part.rail;
  if (part.role == "nic") {
    if (rail == no_lane) rail = nic_ordinal_;
    ++nic_ordinal_;
  }
  const bool is_gpu = part.kind == NodeKind::gpu;
  builder_.add_node({.kind = part.kind,
                     .role = part.role,
                     .scope = scope,
                     .host = host,
                     .rail = rail,
                     .plane = part.plane,
                     .model = is_gpu ? std::string_view(spec_.gpu) : std::string_view{}});
}

void add_cables(FabricBuilder& builder, NodeId a, NodeId b, std::int64_t count, Rate rate,
                Duration latency) {
  for (std::int64_t i = 0; i < count; ++i) builder.add_circuit(a, b, {rate, latency});
}

std::vector<NodeId> add_switches(FabricBuilder& builder, std::int64_t count, const SwitchRow& row) {
  std::vector<NodeId> switches;
  for (std::int64_t i = 0; i < count; ++i)
    switches.push_back(builder.add_node(
        {NodeKind::fabric_switch, row.role, row.scope, NodeId{}, row.rail, row.plane}));
  return switches;
}

NodeId add_rack(FabricBuilder& builder, HostPlacer& hosts, const CommonKeys& common,
                const RackSpec& spec) {
  const ScopeId rack = builder.add_scope(ScopeKind::rack, spec.parent);
  const NodeId first = builder.add_node({NodeKind::fabric_switch, spec.role, rack});
  for (const NodeId host : hosts.place_all(rack, spec.hosts))
    for (std::size_t i = 0; i < hosts.nic_count(); ++i)
      builder.add_circuit(hosts.nic(host, i), first, {common.link, common.latency});
  return first;
}

ScopeId add_named_rack(FabricBuilder& builder, ScopeId parent, std::string_view what,
                       std::int64_t number) {
  return builder.add_scope(ScopeKind::rack, parent, fmt::format("{}:{}", what, number));
}

std::vector<NodeId> add_rail_switches(FabricBuilder& builder, const HostPlacer& hosts,
                                      SwitchRow row) {
  std::vector<NodeId> switches;
  for (std::size_t rail = 0; rail < hosts.nic_count(); ++rail) {
    row.rail = static_cast<std::int16_t>(rail);
    switches.push_back(add_switches(builder, 1, row).front());
  }
  return switches;
}

void join_rails(FabricBuilder& builder, const std::vector<NodeId>& placed, const HostPlacer& hosts,
                const std::vector<NodeId>& switches, const FabricBuilder::LinkSpec& cable) {
  for (const NodeId host : placed)
    for (std::size_t rail = 0; rail < switches.size(); ++rail)
      builder.add_circuit(hosts.nic(host, rail), switches[rail], cable);
}

Status check_radix(const Fabric& fabric, std::int64_t radix, const Where& where) {
  if (radix == 0) return {};
  Errors errors;
  for (const Fabric::Role& role : fabric.roles()) {
    if (role.kind != NodeKind::fabric_switch) continue;
    const auto ports = [&](NodeId node) { return fabric.out(node).size(); };
    const NodeId largest = *std::ranges::max_element(role.nodes, {}, ports);
    if (ports(largest) > static_cast<std::size_t>(radix))
      errors.push_back({Errc::infeasible,
                        where,
                        fmt::format("{} needs {} ports, but radix is {}", fabric.name(largest),
                                    ports(largest), radix),
                        "use fewer links per switch or a larger radix",
                        {}});
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

Status check_domains(const Fabric& fabric, const HostSpec& host, Reader& reader) {
  const std::size_t hosts = fabric.hosts().size();
  if (hosts % host.domain_hosts == 0) return {};
  const std::string_view key = "hosts_per_nvlink_domain";
  return fail(Errc::infeasible, reader.where(reader.has(key) ? key : "host"),
              fmt::format("{} hosts do not fill NVLink domains of {}", hosts, host.domain_hosts),
              fmt::format("choose a multiple of {} hosts, or set {}", host.domain_hosts, key));
}

}  // namespace weft::model
