#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "engine/packet/build.hpp"

namespace weft::engine::packet {
namespace {

using transport::psn_window_max;

class ProtocolBuilder {
 public:
  explicit ProtocolBuilder(World& world)
      : world_(world),
        p_(world.protocols),
        options_(world.options),
        count_(world.set.connections.size() * world.fanout) {}

  void build() {
    if (is_by_packet(options_.balance)) p_.drawn.assign(count_, 0);
    if (is_by_packet(options_.balance) && has_ports()) p_.next_entropy.assign(count_, none);
    if (options_.entropies > 0) p_.entropies = options_.entropies;
    if (options_.balance == Balance::reps) p_.caches.resize(count_);
    if (options_.balance == Balance::flowlet) p_.flowlets.resize(count_);
    if (options_.balance == Balance::ugal) find_candidates(world_);
    make_congestion_control();
    if (options_.reliability == Reliability::selective) make_selective();
    make_admission();
  }

 private:
  // What congestion control starts from: the slowest link of the first path, times the ports that
  // packets take in turn, and its round trip.
  struct Reach {
    Rate line;
    Ps round_trip = 0;
    auto operator<=>(const Reach&) const = default;
  };

  bool has_ports() const;
  Reach reach_of(std::uint32_t connection) const;
  std::vector<std::uint32_t> first_path(std::uint32_t connection) const;
  void make_congestion_control();
  void add_profile(const Reach& reach);
  void tune_nscc();
  void fit_queues(Ps round_trip);
  void make_selective();
  void make_admission();
  void make_credit();
  double oversubscription() const;
  Rate intake(std::uint32_t node) const;
  transport::DcqcnParameters dcqcn_profile(Rate line) const;

  World& world_;
  Protocols& p_;
  const Options& options_;
  std::size_t count_;
  std::vector<Rate> lines_;  // of the NSCC profiles
};

// Whether a NIC has several.
bool ProtocolBuilder::has_ports() const {
  const auto on_wire = [&](LinkId out) { return world_.fabric.on_wire(out); };
  return std::ranges::any_of(world_.fabric.nics(), [&](NodeId nic) {
    return std::ranges::count_if(world_.fabric.out(nic), on_wire) > 1;
  });
}

std::vector<std::uint32_t> ProtocolBuilder::first_path(std::uint32_t connection) const {
  const Sender& sender = world_.senders[connection];
  if (sender.source == none) return {};
  const auto path = world_.links_of(sender.path);
  std::vector<std::uint32_t> out(path.begin(), path.end());
  if (!out.empty()) return out;
  const Ends& ends = p_.ends[connection];
  for (NodeId at{ends.src}; at.value != ends.dst;) {
    const auto links = p_.fib->next(at, ends.dst_target);
    if (links.empty()) break;
    out.push_back(links.front().value);
    at = world_.fabric.to(links.front());
  }
  return out;
}

ProtocolBuilder::Reach ProtocolBuilder::reach_of(std::uint32_t connection) const {
  Reach out{Rate{INT64_MAX}, 0};
  for (const std::uint32_t id : first_path(connection)) {
    const LinkKind& kind = world_.kinds[world_.links[id].kind];
    out.line = std::min(out.line, kind.rate);
    out.round_trip += 2 * kind.latency + kind.serialisation(world_.full_size) +
                      kind.serialisation(world_.control_size);
  }
  if (!p_.next_entropy.empty() && p_.by_table(connection) && out.round_trip > 0)
    out.line.bps *= static_cast<std::int64_t>(p_.first_links(connection).size());
  return out;
}

transport::DcqcnParameters ProtocolBuilder::dcqcn_profile(Rate line) const {
  const DcqcnOptions& o = options_.dcqcn;
  transport::DcqcnParameters out = o.preset == DcqcnOptions::Preset::paper
                                       ? transport::dcqcn_paper(line)
                                       : transport::dcqcn_reference(line);
  const auto take = [](Duration from, Ps& to) {
    if (from.ps > 0) to = static_cast<Ps>(from.ps);
  };
  take(o.alpha_timer, out.alpha_timer);
  take(o.decrease_timer, out.decrease_timer);
  take(o.increase_timer, out.increase_timer);
  take(o.cnp_interval, out.cnp_interval);
  if (o.gain > 0) out.gain = o.gain;
  if (o.additive.bps > 0) out.additive = o.additive.bytes_per_s();
  if (o.hyper.bps > 0) out.hyper = o.hyper.bytes_per_s();
  if (o.minimum.bps > 0) out.minimum = std::min(o.minimum.bytes_per_s(), out.line);
  if (o.byte_counter.count >= 0)
    out.byte_counter = static_cast<std::uint64_t>(o.byte_counter.count);
  return out;
}

void ProtocolBuilder::add_profile(const Reach& reach) {
  const Bytes packet{world_.full_size};
  const Duration round_trip{static_cast<std::int64_t>(reach.round_trip)};
  switch (options_.congestion) {
    case Congestion::none:
      return;
    case Congestion::dcqcn:
      p_.dcqcn_profiles.push_back(dcqcn_profile(reach.line));
      return;
    case Congestion::nscc:
      p_.nscc_profiles.push_back({.base_rtt = reach.round_trip});  // the rest: tune_nscc()
      lines_.push_back(reach.line);
      return;
    case Congestion::hpcc: {
      const double bdp = std::max(static_cast<double>(packet.count),
                                  reach.line.bytes_per_s() * round_trip.seconds());
      const double additive = options_.hpcc.additive.count >= 0
                                  ? static_cast<double>(options_.hpcc.additive.count)
                                  : bdp * (1 - options_.hpcc.eta) / 100;
      p_.hpcc_profiles.push_back({.eta = options_.hpcc.eta,
                                  .max_stage = options_.hpcc.max_stage,
                                  .additive_bytes = additive,
                                  .base_rtt = reach.round_trip,
                                  .window_init = bdp});
      return;
    }
  }
}

void ProtocolBuilder::make_congestion_control() {
  if (options_.congestion == Congestion::none) return;
  constexpr std::size_t profiles_max = 256;
  p_.profile.assign(count_, 0);
  std::map<Reach, std::uint8_t> known;
  for (std::uint32_t c = 0; c < count_; ++c) {
    const Reach reach = reach_of(c);
    if (reach.round_trip == 0) continue;  // no path; profile 0 will do until there is one
    // Beyond 256 kinds of paths the nearest known one above serves.
    auto found = known.lower_bound(reach);
    if (found == known.end() || found->first != reach) {
      if (known.size() < profiles_max) {
        found = known.emplace(reach, static_cast<std::uint8_t>(known.size())).first;
        add_profile(reach);
      } else if (found == known.end()) {
        --found;
      }
    }
    p_.profile[c] = found->second;
  }
  if (known.empty()) add_profile({Rate{1'000'000'000}, 1'000'000});
  if (options_.congestion == Congestion::nscc) tune_nscc();
  for (std::uint32_t c = 0; c < count_; ++c) {
    const std::uint8_t profile = p_.profile[c];
    double window = 0;
    const double rate = world_.set.connections[c / world_.fanout].initial_rate;
    if (options_.congestion == Congestion::nscc) {
      p_.nscc_senders.emplace_back(p_.nscc_profiles[profile]);
      if (rate > 0) p_.nscc_senders.back().start_at(p_.nscc_profiles[profile], rate);
      window = p_.nscc_senders.back().window();
    } else if (options_.congestion == Congestion::hpcc) {
      p_.hpcc_senders.emplace_back(p_.hpcc_profiles[profile]);
      if (rate > 0) p_.hpcc_senders.back().start_at(p_.hpcc_profiles[profile], rate);
      window = p_.hpcc_senders.back().window();
    } else {
      continue;
    }
    world_.senders[c].window = world_.window_packets(window);
  }
  if (options_.congestion == Congestion::dcqcn) {
    p_.dcqcn_senders.resize(count_);
    p_.dcqcn_receivers.resize(count_);
    for (std::uint32_t c = 0; c < count_; ++c)
      if (const double rate = world_.set.connections[c / world_.fanout].initial_rate; rate > 0)
        p_.dcqcn_senders[c].start_at(p_.dcqcn_profiles[p_.profile[c]], rate, world_.set.begin);
  }
  if (options_.congestion == Congestion::hpcc) {
    std::uint32_t most = 1;
    for (std::uint32_t c = 0; c < count_; ++c) most = std::max(most, world_.senders[c].window);
    p_.int_window = std::bit_ceil(2 * most);
    p_.telemetry = LargeArray<transport::IntHop>(count_ * p_.int_window * transport::int_hop_max);
  }
}

// Parameters depend on the longest round trip of all, as do marks and queues.
void ProtocolBuilder::tune_nscc() {
  Ps longest = 0;
  for (const transport::NsccParameters& profile : p_.nscc_profiles)
    longest = std::max(longest, profile.base_rtt);
  for (std::size_t i = 0; i < p_.nscc_profiles.size(); ++i) {
    const Duration base{static_cast<std::int64_t>(p_.nscc_profiles[i].base_rtt)};
    p_.nscc_profiles[i] =
        transport::nscc_parameters({.line = lines_[i],
                                    .round_trip = Duration{static_cast<std::int64_t>(longest)},
                                    .target_delay = options_.nscc.target_delay,
                                    .packet = Bytes{world_.full_size},
                                    .payload = Bytes{world_.payload},
                                    .trims = options_.overflow == Overflow::trim},
                                   base);
    if (world_.gathers) p_.nscc_profiles[i].gather = 0;  // the receiver does it
  }
  fit_queues(longest);
}

// Of what a link sends in a round trip, whole packets: marks begin at a fifth and are certain at
// four fifths, and that much waits at most, unless thresholds or buffers are given.
void ProtocolBuilder::fit_queues(Ps round_trip) {
  const auto share = [&](Rate rate, double part) {
    const double bytes = rate.bytes_per_s() * static_cast<double>(round_trip) * 1e-12;
    const double packets = std::ceil(part * std::ceil(bytes / world_.full_size));
    return static_cast<std::uint32_t>(std::min(packets * world_.full_size, 3e9));
  };
  if (options_.ecn.on && options_.ecn.kmin.count < 0)
    for (LinkKind& kind : world_.kinds) {
      kind.kmin = share(kind.rate, 0.2);
      kind.kmax = share(kind.rate, 0.8);
    }
  if (!options_.round_trip_queues) return;
  for (std::uint32_t id = 0; id < world_.link_count; ++id) {
    const Link& link = world_.links[id];
    NodeBuffer& node = world_.nodes[link.owner];
    if (link.buffered)
      node.per_port = std::max(node.per_port, share(world_.kinds[link.kind].rate, 1));
  }
}

void ProtocolBuilder::make_selective() {
  std::uint32_t most = 64;
  for (std::uint32_t c = 0; c < count_; ++c) {
    most = std::max(most, world_.senders[c].window);
  }
  const std::uint32_t window =
      std::min<std::uint32_t>(std::bit_ceil(4 * most), static_cast<std::uint32_t>(psn_window_max));
  p_.window_words = window / 64;
  p_.words = LargeArray<std::uint64_t>(count_ * 3 * p_.window_words);
  p_.selective_senders.assign(count_, transport::SelectiveSender(options_.first_psn));
  p_.selective_receivers.assign(count_, transport::SelectiveReceiver(options_.first_psn));
  p_.in_flight.assign(count_, 0);
  p_.round_trips.assign(count_, 0);
  if (!world_.gathers) return;
  p_.came = LargeArray<Protocols::Came>(count_ * window);
  p_.heard.assign(count_, 0);
  p_.counted.assign(count_, 0);
}

void ProtocolBuilder::make_admission() {
  if (options_.admission == Admission::cts) {
    const std::int64_t packets = options_.cts.channel_buffer.count / world_.payload;
    p_.chunk_packets = static_cast<std::uint32_t>(std::max<std::int64_t>(1, packets));
    p_.clear_slots.assign(count_, options_.cts.channels);
    p_.slotted.assign(count_, options_.first_psn);
  }
  if (options_.admission != Admission::pull) return;
  WEFT_CHECK(p_.fib.has_value());  // a request is answered by table
  make_credit();
}

// The most that NICs of a switch can ask of its links to other switches, which are up.
double ProtocolBuilder::oversubscription() const {
  const auto is_nic = [&](std::uint32_t node) {
    return world_.fabric.kind(NodeId(node)) == model::NodeKind::nic;
  };
  std::vector<double> to_nics(world_.fabric.node_count()), to_switches(to_nics);
  for (std::uint32_t id = 0; id < world_.link_count; ++id) {
    const Link& link = world_.links[id];
    if (link.dead || is_nic(link.owner)) continue;
    (is_nic(link.to) ? to_nics : to_switches)[link.owner] +=
        static_cast<double>(world_.kinds[link.kind].rate.bps);
  }
  double most = 1;
  for (std::size_t node = 0; node < to_nics.size(); ++node)
    if (to_switches[node] > 0) most = std::max(most, to_nics[node] / to_switches[node]);
  return most;
}

// What a NIC takes by all its ports; 0 for other nodes.
Rate ProtocolBuilder::intake(std::uint32_t node) const {
  double bps = 0;
  for (const LinkId link : world_.fabric.out(NodeId(node)))
    if (world_.fabric.on_wire(link))
      bps += static_cast<double>(world_.kinds[world_.links[link.index()].kind].rate.bps);
  if (options_.receive_rate > 0) bps *= options_.receive_rate;
  return Rate{static_cast<std::int64_t>(bps)};
}

// Credit counts packets: a first window is what the sender's line takes in the longest round trip,
// the rest comes as fast as the receiving NIC takes it.
void ProtocolBuilder::make_credit() {
  constexpr Reach unknown{Rate{1'000'000'000}, 1'000'000};  // no path, which may come
  Ps longest = 0;
  std::vector<Rate> lines;
  for (std::uint32_t c = 0; c < count_; ++c) {
    const Reach reach = reach_of(c);
    longest = std::max(longest, reach.round_trip);
    lines.push_back(reach.round_trip > 0 ? reach.line : unknown.line);
  }
  if (longest == 0) longest = unknown.round_trip;
  fit_queues(longest);
  const Bytes packet{world_.full_size};
  p_.pull_entries.resize(count_);
  p_.pull_profiles.resize(world_.fabric.node_count());
  for (std::uint32_t c = 0; c < count_; ++c) {
    const Rate line = lines[c];
    p_.pull_senders.emplace_back(
        std::max<std::uint64_t>(1, longest / transport::ps_of(packet / line)));
    transport::PullParameters& profile = p_.pull_profiles[p_.ends[c].dst];
    if (profile.quantum > 0) continue;
    const Rate nic = intake(p_.ends[c].dst);
    profile = transport::pull_parameters(nic.bps > 0 ? nic : line, Bytes{1}, packet);
  }
  p_.pull_pacers.resize(world_.fabric.node_count());
  p_.pull_armed.assign(world_.fabric.node_count(), 0);
  const double ratio = oversubscription();
  if (ratio <= 1 || !options_.ecn.on) return;
  for (std::uint32_t node = 0; node < world_.fabric.node_count(); ++node)
    p_.credit_rates.emplace_back(longest, ratio, mix64(options_.seed + node));
}

}  // namespace

void build_protocols(World& world) { ProtocolBuilder(world).build(); }

void find_candidates(World& world) {
  constexpr std::uint32_t tries = 4;
  Protocols& p = world.protocols;
  p.flowlets.assign(world.set.connections.size(), {});
  p.candidates.assign(world.set.connections.size(), {});
  p.candidate_paths.clear();
  for (std::uint32_t i = 0; i < world.set.connections.size(); ++i) {
    const Connection& c = world.set.connections[i];
    std::vector<route::Path> minimal, detours;
    NodeId src, dst;
    if (find_ends(world, c, src, dst))
      world.router.append_candidate_paths(src, dst, c.qp, tries, minimal, detours);
    p.candidates[i].first = static_cast<std::uint32_t>(p.candidate_paths.size());
    for (std::vector<route::Path>* group : {&minimal, &detours}) {
      for (const route::Path& path : *group) {
        // All candidates begin with the link that the connection's NIC schedules.
        if (path.size() > path_length_max || world.senders[i].source == none ||
            path.front().value != world.sources[world.senders[i].source].link)
          continue;
        p.candidate_paths.push_back(static_cast<std::uint32_t>(world.paths.size()));
        for (const LinkId link : path) world.paths.push_back(link.value);
        world.paths.push_back(none);
        ++(group == &minimal ? p.candidates[i].minimal : p.candidates[i].detours);
      }
    }
  }
}

bool find_ends(const World& world, const Connection& c, NodeId& src, NodeId& dst) {
  src = c.src;
  dst = c.dst;
  const auto is_nic = [&](NodeId node) { return world.fabric.kind(node) == model::NodeKind::nic; };
  if (is_nic(src) && is_nic(dst)) return true;
  std::vector<route::Hop> hops;
  if (!world.router.append_gpu_path(c.src, c.dst, c.qp, c.qp, hops)) return false;
  src = dst = NodeId{};
  for (const route::Hop& hop : hops) {
    if (!world.fabric.on_wire(hop.link)) continue;
    if (!src.valid() && is_nic(world.fabric.from(hop.link))) src = world.fabric.from(hop.link);
    if (is_nic(world.fabric.to(hop.link))) dst = world.fabric.to(hop.link);
  }
  return src.valid() && dst.valid();
}

bool needs_table(const Options& options) {
  switch (options.balance) {
    case Balance::path:  // selective repeat: packets hold the time of sending instead of their path
      return options.reliability == Reliability::selective;
    case Balance::spray:
    case Balance::reps:
    case Balance::flowlet:
    case Balance::adaptive:
      return true;
    case Balance::multipath:
    case Balance::ugal:
      return false;
  }
  return false;
}

Status build_table(World& world, const model::State& state) {
  Protocols& p = world.protocols;
  const MessageSet& set = world.set;
  std::vector<NodeId> nics;
  const std::vector<Ends> before = std::exchange(p.ends, {});
  p.ends.resize(set.connections.size());
  for (std::uint32_t c = 0; c < set.connections.size(); ++c) {
    NodeId src, dst;
    if (!find_ends(world, set.connections[c], src, dst)) {
      p.ends[c] = {none, set.connections[c].dst.value, none, none};
      // Without a path now, but with packets under way that hold no path of their own: they go on
      // by the table, which has none for them.
      if (!before.empty() && before[c].src != none)
        p.ends[c] = {before[c].src, before[c].dst, route::Fib::no_target, route::Fib::no_target};
      continue;
    }
    p.ends[c].src = src.value;
    p.ends[c].dst = dst.value;
    nics.push_back(src);
    nics.push_back(dst);
  }
  WEFT_TRY(route::Fib fib, route::Fib::build(world.fabric, state, nics));
  for (Ends& ends : p.ends) {
    if (ends.src == none || ends.dst_target == route::Fib::no_target) continue;
    ends.src_target = fib.target(NodeId(ends.src));
    ends.dst_target = fib.target(NodeId(ends.dst));
  }
  p.fib.emplace(std::move(fib));
  return {};
}

}  // namespace weft::engine::packet
