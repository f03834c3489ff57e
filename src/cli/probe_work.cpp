#include "cli/probe_work.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "base/line_reader.hpp"
#include "observe/probe/plan_file.hpp"
#include "observe/probe/targets.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

namespace probe = observe::probe;
using model::Fabric;
using model::NodeId;
using port::Endpoint;

constexpr std::size_t target_count_max = 100'000, flow_count_max = 1'000'000;

// The fabric by address: which node has which, and what switches would do with a flow.
class Names {
 public:
  static Result<Names> load(const Common& common, const ProbeArgs& args) {
    WEFT_TRY(const model::LoadOptions options, common.load_options(fabric_file_keys()));
    WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.fabric, options));
    const model::Scenario& scenario = file.variants.front();
    Names out;
    const Config& routing = scenario.section("routing");
    if (args.hash_paths && routing.find("hash") == nullptr)
      return fail(
          Errc::unsupported, {"--hash-paths", 0, 0},
          fmt::format("{} does not specify how its switches hash", args.fabric),
          "use it only where they hash as \"routing: {hash: ...}\" specifies; else learn the "
          "paths: weft probe --sweep");
    WEFT_TRY(plan::Setup setup, plan::read_setup(scenario));
    out.setup_ = std::make_unique<plan::Setup>(std::move(setup));
    WEFT_TRY(out.router_,
             route::Router::create(out.setup_->fabric, out.setup_->routing, scenario.seed));
    for (const NodeId nic : out.fabric().nics()) out.set(nic, out.fabric().address(nic));
    if (!args.addresses.empty()) WEFT_TRY_STATUS(out.read_addresses(args.addresses));
    return out;
  }

  const Fabric& fabric() const { return setup_->fabric; }
  std::optional<std::uint32_t> address(NodeId node) const {
    const auto at = address_of_.find(node);
    return at == address_of_.end() ? std::nullopt : std::optional(at->second);
  }
  NodeId node(std::uint32_t address) const {
    const auto at = node_of_.find(address);
    return at == node_of_.end() ? NodeId{} : at->second;
  }

  // Names and scope of a flow between two nodes; either may be unknown.
  void describe(NodeId src, NodeId dst, probe::FlowInfo& info) const {
    const Fabric& f = fabric();
    if (src.valid()) info.src = f.name(src);
    if (dst.valid()) {
      info.dst = f.name(dst);
      const NodeId host = f.host_of(dst);
      info.host = f.name(host.valid() ? host : dst);
      const model::ScopeId rack = f.enclosing(dst, model::ScopeKind::rack);
      if (rack.valid()) info.rack = f.name(rack);
    }
    if (src.valid() && dst.valid()) info.scope = scope_of(src, dst);
  }
  // The paths that the fabric's own hash gives a flow between two NICs.
  void hash_paths(NodeId src, NodeId dst, const route::UdpPorts& ports, probe::FlowInfo& info) {
    const Fabric& f = fabric();
    if (!src.valid() || !dst.valid()) return;
    if (f.kind(src) != model::NodeKind::nic || f.kind(dst) != model::NodeKind::nic) return;
    route::Path there, back;
    if (!router_->append_udp_path(src, dst, ports, there) ||
        !router_->append_udp_path(dst, src, {ports.dst, ports.src}, back))
      return;
    info.forward = names_of(there);
    info.back = names_of(back);
  }
  std::vector<std::string> names_of(std::span<const model::LinkId> links) const {
    std::vector<std::string> out;
    for (const model::LinkId link : links) out.push_back(fabric().name(link));
    return out;
  }

  // What was not seen of it, since a host is silent, a port is not open or a switch drops what goes
  // there, is added where it is the only way: flows that arrive nowhere are those to be probed.
  SeenPath path_of(const probe::FlowInfo& info, const probe::SweptFlow& swept) {
    const auto src = fabric().find_node({info.src, {}});
    const auto dst = fabric().find_node({info.dst, {}});
    if (!src || !dst || swept.hops.empty()) return {};
    route::Path path;
    NodeId at = *src;
    for (const probe::Hop& hop : swept.hops) {
      const NodeId next = node(hop.address);
      if (!next.valid()) return {};
      const auto links = fabric().links_between(at, next);
      if (links.size() != 1) return {};
      path.push_back(links.front());
      at = next;
    }
    if (at != *dst && swept.reached) return {};
    const bool is_whole = at == *dst || append_only_way(at, *dst, path);
    return {names_of(path), is_whole};
  }

 private:
  // False: there are several shortest ways from the switch, or none.
  bool append_only_way(NodeId at, NodeId dst, route::Path& path) {
    const route::Path rest = probe::only_way(*router_, at, dst);
    path.insert(path.end(), rest.begin(), rest.end());
    return !rest.empty();
  }
  // A node may have several addresses; the first is that which it is probed by.
  void set(NodeId node, std::uint32_t address) {
    address_of_.emplace(node, address);
    node_of_[address] = node;
  }
  Status read_addresses(const std::string& path) {
    WEFT_TRY(const auto rows, probe::read_address_rows(fabric(), path));
    address_of_.clear();
    node_of_.clear();
    for (const auto& [node, address] : rows) set(node, address);
    return {};
  }
  std::string scope_of(NodeId a, NodeId b) const {
    for (int kind = static_cast<int>(model::scope_kind_count) - 1; kind >= 0; --kind) {
      const auto scope = static_cast<model::ScopeKind>(kind);
      const model::ScopeId at = fabric().enclosing(a, scope);
      if (at.valid() && at == fabric().enclosing(b, scope)) return std::string(to_text(scope));
    }
    return {};
  }

  std::unique_ptr<plan::Setup> setup_;  // the router refers to its fabric
  std::optional<route::Router> router_;
  std::map<NodeId, std::uint32_t> address_of_;
  std::map<std::uint32_t, NodeId> node_of_;
};

// Own UDP ports, each opened once.
class OwnPorts {
 public:
  explicit OwnPorts(ProbeWork& work) : work_(work) {}
  std::uint32_t index(const Endpoint& port) {
    const auto [at, is_new] = known_.emplace(port, static_cast<std::uint32_t>(work_.ports.size()));
    if (is_new) work_.ports.push_back(port);
    return at->second;
  }

 private:
  ProbeWork& work_;
  std::map<Endpoint, std::uint32_t> known_;
};

Result<std::vector<Endpoint>> read_targets(const ProbeArgs& args) {
  std::vector<Endpoint> out;
  for (const std::string& text : args.targets) {
    WEFT_TRY(const Endpoint target, probe::parse_endpoint({text, {"TARGET", 0, 0}}));
    out.push_back(target);
  }
  if (args.list.empty()) return out;
  WEFT_TRY(LineReader lines, LineReader::open(args.list));
  Errors errors;
  while (lines.next() && out.size() <= target_count_max && errors.size() < 100) {
    const std::string_view text = trim(lines.line().substr(0, lines.line().find('#')));
    if (text.empty()) continue;
    auto target = probe::parse_endpoint({text, lines.where()});
    if (target)
      out.push_back(*target);
    else
      errors.push_back(std::move(target).error());
  }
  if (const Error* error = lines.error()) errors.push_back(*error);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  if (out.size() > target_count_max)
    return fail(Errc::value, {args.list, 0, 0},
                fmt::format("more than {} targets", target_count_max), "probe them in batches");
  return out;
}

Result<std::vector<probe::TrafficClass>> read_classes(const ProbeArgs& args) {
  std::vector<probe::TrafficClass> out;
  for (const std::string& text : args.classes) {
    WEFT_TRY(out.emplace_back(), probe::parse_class({text, {"--class", 0, 0}}));
  }
  return out;
}

// Who we are in the fabric: --from (a host with one NIC is that NIC), or the owner of --bind, or
// nobody.
Result<NodeId> find_self(const ProbeArgs& args, const Names& names, std::uint32_t own) {
  if (args.from.empty()) return own == 0 ? NodeId{} : names.node(own);
  WEFT_TRY(const NodeId self, names.fabric().find_node({args.from, {"--from", 0, 0}}));
  const auto nics = names.fabric().nics_of(self);
  return nics.size() == 1 ? nics.front() : self;
}

Status too_many(std::size_t flows) {
  if (flows <= flow_count_max) return {};
  return fail(Errc::value, {"--ports", 0, 0},
              fmt::format("{} flows, more than {}", flows, flow_count_max),
              "probe fewer targets, or from fewer ports");
}

Result<ProbeWork> work_of_targets(const ProbeArgs& args, const std::vector<Endpoint>& targets,
                                  Names* names) {
  ProbeWork work;
  OwnPorts ports(work);
  WEFT_TRY(const probe::PortRange range, probe::parse_ports({args.ports, {"--ports", 0, 0}}));
  WEFT_TRY(const auto classes, read_classes(args));
  std::uint32_t own = 0;
  if (!args.bind.empty()) {
    WEFT_TRY(own, probe::parse_address({args.bind, {"--bind", 0, 0}}));
  }
  NodeId self;
  if (names != nullptr) {
    WEFT_TRY(self, find_self(args, *names, own));
  }
  WEFT_TRY_STATUS(too_many(targets.size() * range.count() * classes.size()));
  for (const probe::TrafficClass& traffic : classes)
    for (std::size_t i = 0; i < range.count(); ++i)
      for (const Endpoint& target : targets) {
        const auto port = static_cast<std::uint16_t>(range.first + i);
        // An answer goes from the port that probes are sent to, to the one that they came from.
        const std::uint16_t from = args.answers ? target.port : port;
        const Endpoint to{target.address, args.answers ? port : target.port};
        probe::FlowInfo info{.src = own == 0 ? "here" : ipv4_text(own),
                             .dst = probe::to_text(target),
                             .host = ipv4_text(target.address),
                             .traffic_class = traffic.name,
                             .source_port = from};
        if (names != nullptr) names->describe(self, names->node(target.address), info);
        if (names != nullptr && args.hash_paths)
          names->hash_paths(self, names->node(target.address), {from, to.port}, info);
        work.flows.push_back(
            {.port = ports.index({own, from}), .target = to, .dscp = traffic.dscp});
        work.infos.push_back(std::move(info));
      }
  return work;
}

// The lines of a plan that start at us.
Result<ProbeWork> work_of_plan(const ProbeArgs& args, Names& names) {
  const Fabric& fabric = names.fabric();
  if (args.from.empty())
    return fail(Errc::value, {"--from", 0, 0}, "a plan is for the whole fabric",
                "specify the local host or NIC, e.g. --from host:3");
  WEFT_TRY(const NodeId self, fabric.find_node({args.from, {"--from", 0, 0}}));
  WEFT_TRY(LineReader lines, LineReader::open(args.plan));
  WEFT_TRY(const std::vector<probe::PlanLine> rows, probe::read_plan(fabric, lines));
  WEFT_TRY(const auto classes, read_classes(args));
  ProbeWork work;
  OwnPorts ports(work);
  double per_second = 0;
  for (const probe::PlanLine& row : rows) {
    if (row.src != self && fabric.host_of(row.src) != self) continue;
    const auto own = names.address(row.src), target = names.address(row.dst);
    if (!own || !target)
      return fail(Errc::unknown, {args.addresses.empty() ? args.fabric : args.addresses, 0, 0},
                  fmt::format("the address of {} is unknown", fabric.name(own ? row.dst : row.src)),
                  "add it to the --addresses file");
    if (row.probes != rows.front().probes)
      return fail(Errc::unsupported, {args.plan, 0, 0}, "the plan's flows differ in their probes",
                  "use the same number for all flows");
    for (const probe::TrafficClass& traffic : classes) {
      probe::FlowInfo info{.traffic_class = traffic.name, .source_port = row.source_port};
      names.describe(row.src, row.dst, info);
      info.forward = names.names_of(row.forward);
      info.back = names.names_of(row.back);
      info.path_t = row.learned;
      work.flows.push_back({.port = ports.index({*own, row.source_port}),
                            .target = {*target, row.target_port},
                            .dscp = traffic.dscp});
      work.infos.push_back(std::move(info));
      if (row.window_s > 0) per_second += static_cast<double>(row.probes) / row.window_s;
    }
  }
  if (work.flows.empty())
    return fail(Errc::value, {args.plan, 0, 0},
                fmt::format("the plan has no flow starting at {}", fabric.name(self)),
                "check --from and the plan");
  WEFT_TRY_STATUS(too_many(work.flows.size()));
  work.rate = per_second;
  return work;
}

Result<ProbeWork> make_work(const ProbeArgs& args, Names* names) {
  if (!args.plan.empty()) {
    if (names == nullptr)
      return fail(Errc::value, {"--plan", 0, 0}, "a plan needs its fabric", "add --fabric");
    if (!args.targets.empty() || !args.list.empty())
      return fail(Errc::value, {"--plan", 0, 0}, "a plan already contains its targets",
                  "remove the targets");
    return work_of_plan(args, *names);
  }
  WEFT_TRY(const std::vector<Endpoint> targets, read_targets(args));
  if (targets.empty())
    return fail(Errc::value, {}, "nothing to probe",
                "give targets (10.0.0.1), --targets FILE, or --fabric with --plan");
  return work_of_targets(args, targets, names);
}

}  // namespace

Result<ProbeWork> load_probe_work(const Common& common, const ProbeArgs& args) {
  std::shared_ptr<Names> names;  // shared with the work's functions
  if (!args.fabric.empty()) {
    WEFT_TRY(Names loaded, Names::load(common, args));
    names = std::make_shared<Names>(std::move(loaded));
  }
  WEFT_TRY(ProbeWork work, make_work(args, names.get()));
  if (names) {
    work.name_of = [names](std::uint32_t address) {
      const NodeId node = names->node(address);
      return node.valid() ? names->fabric().name(node) : std::string();
    };
    work.path_of = [names](const probe::FlowInfo& info, const probe::SweptFlow& swept) {
      return names->path_of(info, swept);
    };
  }
  return work;
}

}  // namespace weft::cli
