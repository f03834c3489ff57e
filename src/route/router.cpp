#include "route/router.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "route/disjoint_paths.hpp"
#include "route/domains.hpp"
#include "route/host_paths.hpp"
#include "route/qp_weights.hpp"
#include "route/scheme.hpp"

namespace weft::route {
namespace {

using model::NodeKind;

// Adds up the shares of hops over one link from `start` on; the first of them keeps its place.
void merge_repeats(std::vector<Hop>& hops, std::size_t start) {
  std::vector<std::pair<LinkId, std::size_t>> order;
  for (std::size_t i = start; i < hops.size(); ++i) order.push_back({hops[i].link, i});
  std::ranges::sort(order);
  std::vector<bool> repeats(hops.size() - start, false);
  std::size_t first = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (order[i].first != order[first].first) {
      first = i;
      continue;
    }
    hops[order[first].second].share += hops[order[i].second].share;
    repeats[order[i].second - start] = true;
  }
  std::size_t kept = start;
  for (std::size_t i = start; i < hops.size(); ++i)
    if (!repeats[i - start]) hops[kept++] = hops[i];
  hops.resize(kept);
}

}  // namespace

class Router::Impl {
 public:
  Impl(const Fabric& fabric, const RoutingConfig& config, std::uint64_t seed)
      : fabric_(fabric),
        config_(config),
        row_(*find_scheme(config.scheme)),
        live_(fabric),
        late_(config.convergence ? std::make_unique<Late>(fabric) : nullptr),
        next_hops_(fabric, late_ ? late_->routed : live_,
                   config.weighted ? Weighting::capacity : Weighting::equal, {},
                   late_ ? &late_->noticed : nullptr),
        pools_(fabric, live_),
        parts_{
            fabric,     config_, late_ ? late_->routed : live_, late_ ? &late_->noticed : nullptr,
            next_hops_, pools_,  Hasher(fabric, config_, seed)},
        domains_(fabric),
        host_paths_(fabric, live_, domains_) {
    note_doors();
    if (config_.weigh_qps && stream_count() > 1)
      weights_ = std::make_unique<QpWeights>(
          stream_count(),
          [this](const Stream& stream, std::vector<Hop>& out) { return append_path(stream, out); },
          [this](LinkId link) { return pools_.capacity(link); });
  }

  Status make_scheme() {
    WEFT_TRY(scheme_, row_.make(parts_));
    return {};
  }

  void set_state(const model::State& state) {
    const std::vector<LinkChange> changes = live_.set_state(state);
    scheme_->on_sight(state);
    if (weights_) weights_->on_change();
    if (late_) {
      static_cast<void>(late_->noticed.set_state(state.noticed()));
      next_hops_.on_change(late_->routed.set_state(state.routed()));
    }
    if (changes.empty()) return;
    if (!late_) next_hops_.on_change(changes);
    pools_.on_change();
    host_paths_.on_change(changes);
    scheme_->on_change(changes);
  }

  std::vector<NicDemand> nic_demands(std::span<const Demand> together);
  void declare(std::span<const Demand> together) {
    if (!listens()) return;
    const std::vector<NicDemand> demands = nic_demands(together);
    scheme_->declare(demands);
    if (weights_) weights_->declare(demands);
  }
  bool listens() const { return config_.scheme == "te" || weights_ != nullptr; }

  std::span<const double> qp_shares(NodeId from, NodeId to) {
    if (!weights_ || from == to) return {};
    if (is_gpu(from) && is_gpu(to) && host_paths_.medium_between(from, to) != Medium::none)
      return {};
    Ends ends;
    return find_ends(from, to, ends) ? weights_->shares(ends.src_nic, ends.dst_nic)
                                     : std::span<const double>();
  }

  std::string report() const {
    std::string text = scheme_->report();
    if (const std::string more = weights_ ? weights_->report() : ""; !more.empty())
      text += (text.empty() ? "" : "; ") + more;
    return text;
  }

  std::uint32_t stream_count() const {
    const bool splits = row_.qp == QpField::hashed && config_.message_mode == MessageMode::split;
    return splits ? config_.qps : 1;
  }

  bool append_path(const Stream& asked, std::vector<Hop>& out) {
    trim();
    Stream stream = asked;
    if (config_.message_mode == MessageMode::round_robin) stream.qp = asked.message % config_.qps;
    const std::size_t start = out.size();
    const bool found = for_each_leg(
        stream, [&](NodeId from, NodeId to) { return scheme_->append_leg(stream, from, to, out); });
    if (!found) {
      out.resize(start);
    } else if (!stream.via.empty() || scheme_->may_repeat()) {
      merge_repeats(out, start);
    }
    return found;
  }

  bool append_udp_path(NodeId src, NodeId dst, const UdpPorts& ports, Path& out) {
    trim();
    const std::size_t start = out.size();
    const std::uint64_t digest = parts_.hasher.digest(src, dst, ports);
    const Goal goal = next_hops_.goal(dst);
    for (NodeId at = src; !next_hops_.reached(at, goal);) {
      const Choices choices = next_hops_.next(at, goal);
      if (choices.links.empty()) {
        out.resize(start);
        return false;
      }
      out.push_back(parts_.hasher.choose(at, digest, choices));
      at = fabric_.to(out.back());
    }
    return true;
  }

  void append_usable(const Stream& stream, std::vector<LinkId>& out) {
    trim();
    const auto start = static_cast<std::ptrdiff_t>(out.size());
    for_each_leg(stream, [&](NodeId from, NodeId to) {
      scheme_->append_usable_leg(from, to, out);
      return true;
    });
    std::sort(out.begin() + start, out.end());
    out.erase(std::unique(out.begin() + start, out.end()), out.end());
  }

  void append_disjoint_paths(NodeId src, NodeId dst, std::uint32_t count, std::vector<Path>& out) {
    trim();
    if (src == dst) return;
    const std::uint64_t seed = parts_.hasher.digest({.src = src, .dst = dst}, QpField::ignored);
    for (Path& path : find_disjoint_paths(fabric_, next_hops_, src, dst, count, seed))
      out.push_back(std::move(path));
  }

  void append_candidate_paths(NodeId src, NodeId dst, std::uint32_t qp, std::uint32_t count,
                              std::vector<Path>& minimal, std::vector<Path>& detours);

  bool append_gpu_path(NodeId src, NodeId dst, std::uint32_t qp, std::uint32_t message,
                       std::vector<Hop>& out) {
    const std::size_t start = out.size();
    const bool found = append_between_ends(src, dst, qp, message, out);
    if (!found) out.resize(start);
    return found;
  }

  Duration latency(NodeId src, NodeId dst);
  double path_latency_s(NodeId src, NodeId dst, std::span<const Hop> path);
  double present_latency_s(NodeId src, NodeId dst);
  double omitted_latency_s(NodeId src, NodeId dst);
  Status check_connected(NodeId src, NodeId dst);

  const Fabric& fabric_;
  RoutingConfig config_;
  // What routes and switches go by where they hear late.
  struct Late {
    explicit Late(const Fabric& fabric) : routed(fabric), noticed(fabric) {}
    LiveLinks routed, noticed;
  };

  const SchemeRow& row_;
  LiveLinks live_;
  std::unique_ptr<Late> late_;
  NextHops next_hops_;
  Pools pools_;
  Parts parts_;
  std::unique_ptr<Scheme> scheme_;
  Domains domains_;
  HostPaths host_paths_;
  std::unique_ptr<QpWeights> weights_;  // where QPs do not carry equal parts

 private:
  // The way between two ends through the network. A relay is another GPU of the same host, reached
  // over NVLink or PCIe.
  struct Ends {
    NodeId src_relay, dst_relay;  // GPU whose NIC is used; otherwise the end itself
    NodeId src_nic, dst_nic;      // or switch
  };

  void trim() {
    next_hops_.trim();
    scheme_->trim();
  }

  // False when the visitor is, or when the path shall pass something that is no switch.
  template <class Visit>
  bool for_each_leg(const Stream& stream, Visit visit) {
    NodeId at = stream.src;
    for (const NodeId stop : stream.via) {
      if (!fabric_.is_switch(stop) || (stop != at && !visit(at, stop))) return false;
      at = stop;
    }
    return at == stream.dst || visit(at, stream.dst);
  }

  bool is_gpu(NodeId node) const { return fabric_.kind(node) == NodeKind::gpu; }
  bool is_host(NodeId node) const { return fabric_.kind(node) == NodeKind::host; }
  // What an end meets the network with: a GPU's NIC, a host's front-end NIC (or an invalid id), a
  // NIC or switch itself.
  NodeId door_of(NodeId end) const {
    return is_gpu(end) ? fabric_.nic_of(end) : is_host(end) ? front_end_nic(end) : end;
  }
  NodeId front_end_nic(NodeId host) const {
    for (const LinkId link : fabric_.out(host)) {
      const NodeId nic = fabric_.to(link);
      if (fabric_.kind(nic) == NodeKind::nic && fabric_.role_name(nic) != "nic") return nic;
    }
    return {};
  }
  // Between an end (or its relay) and its door.
  bool append_to_door(NodeId end, NodeId door, std::vector<Hop>& out) {
    if (is_gpu(end)) return host_paths_.append_to_nic(end, out);
    return !is_host(end) || host_paths_.append_between(end, door, Medium::pcie, out);
  }
  bool append_from_door(NodeId door, NodeId end, std::vector<Hop>& out) {
    if (is_gpu(end)) return host_paths_.append_from_nic(end, out);
    return !is_host(end) || host_paths_.append_between(door, end, Medium::pcie, out);
  }
  bool joined(NodeId a, NodeId b) const {
    return a.valid() && b.valid() && domains_.connected(a, b, Medium::network);
  }

  bool append_between_ends(NodeId src, NodeId dst, std::uint32_t qp, std::uint32_t message,
                           std::vector<Hop>& out);
  bool append_inner(NodeId from, NodeId to, std::vector<Hop>& out) {
    if (from == to || !from.valid()) return true;
    return host_paths_.append_between(from, to, host_paths_.medium_between(from, to), out);
  }
  Duration network_latency(NodeId src, NodeId dst);
  Duration host_latency(NodeId src, NodeId dst, const Ends& ends);
  bool is_inner(LinkId link) const;
  std::vector<NodeId> relays_of(NodeId end) const;
  bool find_ends(NodeId src, NodeId dst, Ends& ends) const;
  bool meet_at_doors(NodeId src, NodeId dst, Ends& ends) const;
  void note_doors();

  // What decides how a GPU meets others, together: pairs are asked for one by one, by the million.
  struct Door {
    NodeId nic;  // invalid where the rest does not tell all
    NodeId host;
    std::uint32_t nvlink = Domains::no_domain;   // of the GPU
    std::uint32_t network = Domains::no_domain;  // of the NIC
  };
  std::vector<Door> doors_;  // by GPU index
  std::vector<Hop> asked_;   // scratch
  bool has_inner_latency_ = false;
};

void Router::Impl::note_doors() {
  for (const LinkId link : fabric_.links())
    if (fabric_.latency(link) > Duration{} && is_inner(link)) has_inner_latency_ = true;
  doors_.resize(fabric_.gpus().size());
  for (std::size_t i = 0; i < doors_.size(); ++i) {
    const NodeId gpu = fabric_.gpus()[i], nic = fabric_.nic_of(gpu);
    if (!nic.valid()) continue;
    const Door door{nic, fabric_.host_of(gpu), domains_.only_domain(gpu, Medium::nvlink),
                    domains_.only_domain(nic, Medium::network)};
    if (door.nvlink != Domains::no_domain && door.network != Domains::no_domain) doors_[i] = door;
  }
}

// Whether nothing but the network joins two GPUs, by their own NICs, which then are the ends. False
// where that takes a closer look.
bool Router::Impl::meet_at_doors(NodeId src, NodeId dst, Ends& ends) const {
  if (!is_gpu(src) || !is_gpu(dst)) return false;
  const Door &from = doors_[fabric_.role_index(src)], &to = doors_[fabric_.role_index(dst)];
  const bool meet = from.nic.valid() && to.nic.valid() && from.nic != to.nic &&
                    from.host != to.host && from.nvlink != to.nvlink && from.network == to.network;
  if (meet) ends = {src, dst, from.nic, to.nic};
  return meet;
}

void Router::Impl::append_candidate_paths(NodeId src, NodeId dst, std::uint32_t qp,
                                          std::uint32_t count, std::vector<Path>& minimal,
                                          std::vector<Path>& detours) {
  trim();
  if (src == dst) return;
  const std::uint64_t digest =
      parts_.hasher.digest({.src = src, .dst = dst, .qp = qp}, QpField::hashed);
  const auto minimal_start = static_cast<std::ptrdiff_t>(minimal.size());
  const auto detours_start = static_cast<std::ptrdiff_t>(detours.size());
  std::vector<Hop> way, detour;
  const auto links_of = [](const std::vector<Hop>& hops) {
    Path path;
    for (const Hop& hop : hops) path.push_back(hop.link);
    return path;
  };
  const auto contains = [](const std::vector<Path>& paths, std::ptrdiff_t start, const Path& path) {
    return std::find(paths.begin() + start, paths.end(), path) != paths.end();
  };
  for (std::uint32_t i = 0; i < count; ++i) {
    way.clear();
    detour.clear();
    scheme_->append_ways(mix64(digest + i), src, dst, way, detour);
    Path straight = links_of(way), around = links_of(detour);
    // Equal where there is no third group to go by.
    if (around != straight && !contains(detours, detours_start, around))
      detours.push_back(std::move(around));
    if (!straight.empty() && !contains(minimal, minimal_start, straight))
      minimal.push_back(std::move(straight));
  }
}

std::vector<NicDemand> Router::Impl::nic_demands(std::span<const Demand> together) {
  const bool turns = config_.message_mode == MessageMode::round_robin;
  const std::uint32_t qps = turns ? config_.qps : stream_count();
  std::map<std::pair<NodeId, NodeId>, double> bytes;
  for (const auto& [from, to, size] : together) {
    const bool inner =
        is_gpu(from) && is_gpu(to) && host_paths_.medium_between(from, to) != Medium::none;
    Ends ends;
    if (from != to && !inner && find_ends(from, to, ends))
      bytes[{ends.src_nic, ends.dst_nic}] += size;
  }
  std::vector<NicDemand> demands;
  for (const auto& [nics, size] : bytes)
    for (std::uint32_t qp = 0; qp < qps; ++qp)
      demands.push_back({nics.first, nics.second, qp, size / qps});
  return demands;
}

bool Router::Impl::append_between_ends(NodeId src, NodeId dst, std::uint32_t qp,
                                       std::uint32_t message, std::vector<Hop>& out) {
  if (src == dst) return true;
  Ends ends;
  if (!meet_at_doors(src, dst, ends)) {
    if (is_gpu(src) && is_gpu(dst))
      if (const Medium inner = host_paths_.medium_between(src, dst); inner != Medium::none)
        return host_paths_.append_between(src, dst, inner, out);
    if (!find_ends(src, dst, ends)) return false;
  }
  return append_inner(src, ends.src_relay, out) &&
         append_to_door(ends.src_relay, ends.src_nic, out) &&
         append_path({.src = ends.src_nic, .dst = ends.dst_nic, .qp = qp, .message = message},
                     out) &&
         append_from_door(ends.dst_nic, ends.dst_relay, out) &&
         append_inner(ends.dst_relay, dst, out);
}

// An end itself, then the other GPUs that it reaches without a NIC.
std::vector<NodeId> Router::Impl::relays_of(NodeId end) const {
  std::vector<NodeId> relays{end};
  if (!is_gpu(end) || !fabric_.domain_of(end).valid()) return relays;
  for (const NodeId gpu : fabric_.gpus_of_domain(fabric_.domain_of(end)))
    if (gpu != end && host_paths_.medium_between(end, gpu) != Medium::none) relays.push_back(gpu);
  return relays;
}

// The ends' own NICs where cables join them. Otherwise a relay at the source, first of all one on
// the rail of the destination's NIC (NCCL calls this PXN); then a relay at the destination; then
// both. Decided on the healthy fabric, as at the start of a job: a failure stops the flow, and does
// not make it change NICs.
bool Router::Impl::find_ends(NodeId src, NodeId dst, Ends& ends) const {
  ends = {src, dst, door_of(src), door_of(dst)};
  const bool one_nic = is_gpu(src) && is_gpu(dst) && ends.src_nic == ends.dst_nic;
  if (!one_nic && joined(ends.src_nic, ends.dst_nic)) return true;
  const std::vector<NodeId> sources = relays_of(src), destinations = relays_of(dst);
  for (const NodeId to : destinations)
    for (const bool same_rail : {true, false})
      for (const NodeId from : sources) {
        const NodeId from_nic = door_of(from), to_nic = door_of(to);
        if (from_nic == to_nic || !joined(from_nic, to_nic)) continue;
        if ((fabric_.rail(from_nic) == fabric_.rail(to_nic)) != same_rail) continue;
        ends = {from, to, from_nic, to_nic};
        return true;
      }
  return false;
}

Duration Router::Impl::latency(NodeId src, NodeId dst) {
  if (src == dst) return {};
  if (is_gpu(src) && is_gpu(dst) && host_paths_.medium_between(src, dst) != Medium::none)
    return host_paths_.latency(src, dst);
  Ends ends;
  if (!find_ends(src, dst, ends)) return duration_max;
  const Duration network = network_latency(ends.src_nic, ends.dst_nic);
  const Duration hosts = host_latency(src, dst, ends);
  return network == duration_max || hosts == duration_max ? duration_max : network + hosts;
}

// Inside the hosts of both ends, of ends that meet over the network.
Duration Router::Impl::host_latency(NodeId src, NodeId dst, const Ends& ends) {
  Duration sum;
  for (const auto& [from, to] :
       {std::pair(src, ends.src_relay), std::pair(ends.src_relay, ends.src_nic),
        std::pair(ends.dst_nic, ends.dst_relay), std::pair(ends.dst_relay, dst)}) {
    const Duration part = host_paths_.latency(from, to);
    if (part == duration_max) return duration_max;
    sum = sum + part;
  }
  return sum;
}

bool Router::Impl::is_inner(LinkId link) const {
  return std::ranges::any_of(std::array{fabric_.from(link), fabric_.to(link)}, [&](NodeId node) {
    return !fabric_.is_switch(node) && fabric_.kind(node) != model::NodeKind::nic;
  });
}

double Router::Impl::omitted_latency_s(NodeId src, NodeId dst) {
  if (!has_inner_latency_ || src == dst) return 0;
  if (is_gpu(src) && is_gpu(dst) && host_paths_.medium_between(src, dst) != Medium::none) return 0;
  Ends ends;
  if (!meet_at_doors(src, dst, ends) && !find_ends(src, dst, ends)) return 0;
  const Duration hosts = host_latency(src, dst, ends);
  asked_.clear();
  if (hosts == duration_max || !append_inner(src, ends.src_relay, asked_) ||
      !append_to_door(ends.src_relay, ends.src_nic, asked_) ||
      !append_from_door(ends.dst_nic, ends.dst_relay, asked_) ||
      !append_inner(ends.dst_relay, dst, asked_))
    return 0;
  double in_path_s = 0;
  for (const Hop& hop : asked_) in_path_s += hop.share * fabric_.latency(hop.link).seconds();
  return std::max(0.0, hosts.seconds() - in_path_s);
}

double Router::Impl::path_latency_s(NodeId src, NodeId dst, std::span<const Hop> path) {
  if (src == dst) return 0;
  Duration hosts{};
  Ends ends;
  if (is_gpu(src) && is_gpu(dst) && host_paths_.medium_between(src, dst) != Medium::none)
    hosts = host_paths_.latency(src, dst);
  else if (meet_at_doors(src, dst, ends) || find_ends(src, dst, ends))
    hosts = host_latency(src, dst, ends);
  double sum_ps = hosts == duration_max ? 0 : static_cast<double>(hosts.ps);
  for (const Hop& hop : path) {
    const std::span<const LinkId> links = pools_.members(hop.link);
    if (is_inner(links.front())) continue;
    Duration longest;
    for (const LinkId link : links) longest = std::max(longest, fabric_.latency(link));
    sum_ps += hop.share * static_cast<double>(longest.ps);
  }
  return Duration{std::llround(sum_ps)}.seconds();
}

double Router::Impl::present_latency_s(NodeId src, NodeId dst) {
  asked_.clear();
  parts_.counts = false;
  const bool found = append_gpu_path(src, dst, 0, 0, asked_);
  parts_.counts = true;
  return found ? path_latency_s(src, dst, asked_) : 0;
}

Duration Router::Impl::network_latency(NodeId src, NodeId dst) {
  trim();
  const Goal goal = next_hops_.goal(dst);
  Duration sum;
  for (NodeId at = src; !next_hops_.reached(at, goal);) {
    const Choices choices = next_hops_.next(at, goal);
    if (choices.links.empty()) return duration_max;
    sum = sum + fabric_.latency(choices.links.front());
    at = fabric_.to(choices.links.front());
  }
  return sum;
}

Status Router::Impl::check_connected(NodeId src, NodeId dst) {
  std::vector<Hop> path;
  if (append_gpu_path(src, dst, 0, 0, path)) return {};
  const std::string pair =
      fmt::format("{} and {} are not connected", fabric_.name(src), fabric_.name(dst));
  for (const NodeId end : {src, dst})
    if (!door_of(end).valid() && relays_of(end).size() == 1)
      return fail(Errc::infeasible, {},
                  fmt::format("{}: {} has no NIC, and no NVLink or PCIe to another GPU", pair,
                              fabric_.name(end)),
                  "choose GPUs that have NICs, or add NICs to the fabric");
  Ends ends;
  const bool inner =
      is_gpu(src) && is_gpu(dst) && host_paths_.medium_between(src, dst) != Medium::none;
  if (!inner && !find_ends(src, dst, ends))
    return fail(Errc::infeasible, {},
                pair + ": no cables connect their NICs, directly or through switches",
                "add cables to the fabric, or choose other ends");
  return fail(Errc::infeasible, {},
              pair + ": every path between them crosses a link or switch that is down",
              "restore a link or switch, or move the traffic");
}

Router::Router(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Router::Router(Router&&) noexcept = default;
Router& Router::operator=(Router&&) noexcept = default;
Router::~Router() = default;

Result<Router> Router::create(const Fabric& fabric, const RoutingConfig& config,
                              std::uint64_t seed) {
  if (find_scheme(config.scheme) == nullptr)
    return fail(Errc::unknown, {}, fmt::format("unknown routing scheme \"{}\"", config.scheme),
                fmt::format("choose one of {}", fmt::join(scheme_names(), ", ")));
  if (find_hash(config.hash) == nullptr)
    return fail(Errc::unknown, {}, fmt::format("unknown hash function \"{}\"", config.hash),
                fmt::format("choose one of {}", fmt::join(hash_names(), ", ")));
  if (config.qps == 0)
    return fail(Errc::value, {}, "a connection needs at least 1 QP", "set routing.qps");
  std::size_t switches = 0;
  for (const Fabric::Role& role : fabric.roles())
    if (role.kind == NodeKind::fabric_switch) switches += role.nodes.size();
  if (switches > switch_count_max)
    return fail(Errc::unsupported, {},
                fmt::format("the fabric has {} switches, more than {}", switches, switch_count_max),
                "simulate part of it");
  auto impl = std::make_unique<Impl>(fabric, config, seed);
  if (Status made = impl->make_scheme(); !made) {
    if (made.error().where.file.empty()) made.error().where = config.where;
    return std::unexpected(std::move(made).error());
  }
  return Router(std::move(impl));
}

const Fabric& Router::fabric() const { return impl_->fabric_; }
const RoutingConfig& Router::config() const { return impl_->config_; }
void Router::set_state(const model::State& state) { impl_->set_state(state); }
void Router::declare(std::span<const Demand> together) { impl_->declare(together); }
std::vector<NicDemand> Router::nic_demands(std::span<const Demand> together) {
  return impl_->nic_demands(together);
}
bool Router::listens() const { return impl_->listens(); }
std::string Router::controller_report() const { return impl_->report(); }
std::uint32_t Router::stream_count() const { return impl_->stream_count(); }
std::span<const double> Router::qp_shares(NodeId from, NodeId to) {
  return impl_->qp_shares(from, to);
}

bool Router::append_path(const Stream& stream, std::vector<Hop>& out) {
  return impl_->append_path(stream, out);
}
bool Router::append_udp_path(NodeId src_nic, NodeId dst_nic, const UdpPorts& ports, Path& out) {
  return impl_->append_udp_path(src_nic, dst_nic, ports, out);
}
bool Router::append_gpu_path(NodeId src_gpu, NodeId dst_gpu, std::uint32_t qp,
                             std::uint32_t message, std::vector<Hop>& out) {
  return impl_->append_gpu_path(src_gpu, dst_gpu, qp, message, out);
}
void Router::append_usable(const Stream& stream, std::vector<LinkId>& out) {
  impl_->append_usable(stream, out);
}
void Router::append_disjoint_paths(NodeId src, NodeId dst, std::uint32_t count,
                                   std::vector<Path>& out) {
  impl_->append_disjoint_paths(src, dst, count, out);
}
void Router::append_candidate_paths(NodeId src, NodeId dst, std::uint32_t qp, std::uint32_t count,
                                    std::vector<Path>& minimal, std::vector<Path>& detours) {
  impl_->append_candidate_paths(src, dst, qp, count, minimal, detours);
}
Duration Router::latency(NodeId src, NodeId dst) { return impl_->latency(src, dst); }
double Router::path_latency_s(NodeId src, NodeId dst, std::span<const Hop> path) {
  return impl_->path_latency_s(src, dst, path);
}
double Router::omitted_latency_s(NodeId src, NodeId dst) {
  return impl_->omitted_latency_s(src, dst);
}
double Router::present_latency_s(NodeId src, NodeId dst) {
  return impl_->present_latency_s(src, dst);
}
Status Router::check_connected(NodeId src, NodeId dst) { return impl_->check_connected(src, dst); }

std::size_t Router::resource_count() const { return impl_->pools_.resource_count(); }
double Router::capacity(LinkId resource) const { return impl_->pools_.capacity(resource); }
std::span<const LinkId> Router::members(LinkId resource) const {
  return impl_->pools_.members(resource);
}

}  // namespace weft::route
