#include "workload/collective/timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/text.hpp"
#include "workload/collective/algorithm.hpp"

namespace weft::workload {
namespace {

constexpr double calibration_max = 3600;  // seconds

// Hops that carry nothing: NCCL 2.30, src/graph/tuning.cc (commit 5067397c), tables baseLatencies
// and hwLatencies. Inside a host LL's, because LL waits for nothing but the data: what the other
// protocols add is chunks under way, which the exponent covers.
constexpr double ring_base_s = 6.6e-6, tree_base_s = 6.8e-6, pat_base_s = 8.0e-6, hop_s = 0.6e-6;
constexpr double ll128_base_s = 14e-6, ll128_hop_s = 1.25e-6;  // of a tree over several hosts
// NVLS gives each of the domain's GPUs a chunk at a time, over more channels on NVLink 5 (24, not
// 16: NVLS_NCHANNELS in src/transport/nvls.cc), so that its pipeline fills later.
constexpr double nvls_base_s = 25e-6, nvls_base_nvlink5_s = nvls_base_s * 24 / 16;
// What a domain of more than 8 GPUs does to that time and to the bandwidth of each: powers of its
// size, fitted to one and two racks of GB200.
constexpr double domain_unit = 8, domain_latency_power = 0.8, domain_bandwidth_power = 0.078;

// A step over the network in units of System::network_latency, which is that of a tree with LL. The
// same tables: 5 us for it, 14 for one of Simple (which NVLSTree and SHARP also use), 2.7 for a
// ring with LL. Those of LL128 are fitted: to 2 x p5 and 2 x p4de (tree), to 4 x P6-B200 (ring).
constexpr double simple_step = 14 / 5.0;
constexpr double ring_ll_step = 2.7 / 5, ring_ll128_step = 2, tree_ll128_step = 1.05;
// Bytes per second that LL brings through a tree of hosts, and the bytes up to which that slows it:
// beyond, more channels open. Fitted to 4-256 KiB on 2 x p5 and 2 x p4de.
constexpr double ll_tree_network = 4e9, ll_tree_bytes = 40 << 10;

// An all-to-all between hosts: the power of the hosts by which NICs lose bandwidth to the crowd of
// flows. Fitted to 2 to 32 hosts.
constexpr double crowd_power = 0.07;

// Exponents, one per algorithm (ring/LL counts as its own), fitted to published rows. Between hosts
// a ring is alpha-beta, and NVLSTree and SHARP take NVLS's.
constexpr double ring_exponent = 0.5, ring_ll_exponent = 0.773, nvls_exponent = 0.655;
constexpr double tree_exponent = 0.52, additive = 1;
// Rings over a mesh of xGMI: from 8 x MI300X, 1 MiB to 16 GiB.
constexpr double ring_mesh_exponent = 0.65;

// Two stages that work on different chunks at a time take little longer than the slower one.
double overlapped(double a, double b) {
  constexpr double sharpness = 4;
  return std::pow(std::pow(a, sharpness) + std::pow(b, sharpness), 1 / sharpness);
}

struct Inputs {
  const System& system;
  const GroupShape& shape;
  const Call& call;
  double network;  // bytes per second of a host

  double ring() const { return ring_bytes_per_s(system, shape); }
  double pair() const { return pair_bytes_per_s(system); }
  double ranks() const { return shape.ranks; }
  double local() const { return shape.gpus_per_host; }
  double hosts() const { return shape.hosts; }
  bool is_one_host() const { return shape.hosts == 1; }
  double step(double kind = simple_step) const {
    return kind * system.network_latency.seconds() + system.network_hardware.seconds();
  }
  // How many times 8 GPUs the NVLink domain holds, at least 1.
  double domain() const { return std::max(local() / domain_unit, 1.0); }
  // Depth of a binary tree over the hosts.
  double depth() const { return std::bit_width(shape.hosts - 1); }
};

double by_protocol(const Inputs& in, double ll, double ll128, double simple) {
  if (in.call.protocol == Protocol::ll) return ll;
  return in.call.protocol == Protocol::ll128 ? ll128 : simple;
}

// Data per byte on the link: LL sends a flag with every 4 bytes, LL128 with every 15 words. Inside
// a host LL128's is left to the exponents, whose rows hold LL128 and Simple together.
double payload(const Inputs& in) {
  return by_protocol(in, 0.5, in.is_one_host() ? 1 : 15 / 16.0, 1);
}

Terms one_host(const Inputs& in, double latency, double wire, double exponent) {
  return {in.system.host_latency.seconds(), latency, wire, exponent};
}

// An all-reduce goes round twice: to add up, and to tell.
double rounds(const Inputs& in) { return in.call.op == Op::all_reduce ? 2 : 1; }

// Times a rank sends the whole buffer to its neighbour.
double ring_share(const Inputs& in) {
  if (in.call.op == Op::broadcast) return 1;
  return rounds(in) * (in.ranks() - 1) / in.ranks();
}

Terms ring(const Inputs& in) {
  const double sent = in.call.bytes * ring_share(in) / payload(in);
  const double link = sent / in.ring();
  const double crossings = rounds(in) * (in.hosts() - 1);
  const double hops = rounds(in) * (in.ranks() - 1) - crossings;
  const double latency = ring_base_s + hops * hop_s;
  if (in.is_one_host()) {
    const bool is_mesh = in.system.generation == Generation::xgmi;
    return one_host(in, latency, link,
                    in.call.protocol == Protocol::ll ? ring_ll_exponent
                    : is_mesh                        ? ring_mesh_exponent
                                                     : ring_exponent);
  }
  // The rings of all channels leave a host through all its NICs.
  const double step = in.step(by_protocol(in, ring_ll_step, ring_ll128_step, simple_step));
  return {0, latency + crossings * step, std::max(link, sent / in.network), additive};
}

// Bytes through a host's NICs and direction: with two hosts each half goes one way up and one way
// down, with more every host is an inner node of one of the two trees.
double tree_sent(const Inputs& in) {
  const bool is_twice = in.call.op == Op::all_reduce && in.shape.hosts > 2;
  return (is_twice ? 2 : 1) * in.call.bytes / payload(in);
}

// Up for the sum, and down again.
Terms tree(const Inputs& in) {
  const double ways = rounds(in);
  const double link = ways * in.call.bytes / payload(in) / in.ring();
  const bool is_far_ll128 = !in.is_one_host() && in.call.protocol == Protocol::ll128;
  const double hop = is_far_ll128 ? ll128_hop_s : hop_s;
  const double latency =
      (is_far_ll128 ? ll128_base_s : tree_base_s) + ways * (in.local() - 1) * hop;
  if (in.is_one_host()) return one_host(in, latency, link, tree_exponent);
  const double inside = in.shape.gpus_per_host > 1 ? link : 0;
  const double step = in.step(by_protocol(in, 1, tree_ll128_step, simple_step));
  const bool is_ll = in.call.protocol == Protocol::ll;
  const double opening = is_ll ? std::min(in.call.bytes, ll_tree_bytes) / ll_tree_network : 0;
  return {0, latency + ways * in.depth() * step,
          overlapped(inside, tree_sent(in) / in.network) + opening, tree_exponent};
}

// Reduction in the switch: a GPU gives all it has, and gets and spreads its share of the sum.
double nvls_wire(const Inputs& in) {
  const double share = in.call.op == Op::all_reduce ? 1 + 1 / in.local() : ring_share(in);
  return in.call.bytes * share / in.system.link.nvls *
         std::pow(in.domain(), domain_bandwidth_power);
}

double nvls_latency(const Inputs& in) {
  const bool is_nvlink5 = in.system.generation == Generation::nvlink5;
  return (is_nvlink5 ? nvls_base_nvlink5_s : nvls_base_s) *
         std::pow(in.domain(), domain_latency_power);
}

Terms nvls(const Inputs& in) {
  return one_host(in, nvls_latency(in), nvls_wire(in), nvls_exponent);
}

Terms nvls_tree(const Inputs& in) {
  return {0, nvls_latency(in) + 2 * in.depth() * in.step(),
          overlapped(nvls_wire(in), tree_sent(in) / in.network), nvls_exponent};
}

// The network's switches add up: every host sends its sum once and gets the result once.
Terms sharp(const Inputs& in) {
  return {0, nvls_latency(in) + 2 * in.step(),
          overlapped(nvls_wire(in), in.call.bytes / in.network), nvls_exponent};
}

// Every rank to every other by itself, each its own part. send_recv: each rank to the next, so that
// one crosses between two hosts.
Terms direct(const Inputs& in) {
  const double n = in.ranks(), g = in.local();
  const bool is_shift = in.call.op == Op::send_recv;
  const double link = in.call.bytes * (is_shift ? 1 : rounds(in) * (g - 1) / n);
  const double latency = ring_base_s + rounds(in) * hop_s;
  const double link_s = link / (is_shift ? in.pair() : in.ring());
  if (in.is_one_host()) return one_host(in, latency, link_s, ring_exponent);
  const double out = is_shift ? in.shape.nics_per_host : rounds(in) * g * (n - g) / n;
  const double network_s = in.call.bytes * out / in.network;
  const double latency_s = latency + rounds(in) * in.step();
  if (in.call.op != Op::all_to_all) return {0, latency_s, std::max(link_s, network_s), additive};
  const double crowd = std::pow(in.hosts() / 2, crowd_power);
  return {0, latency + in.step(1) + (n - g) / in.system.message_rate,
          std::max(link_s, network_s * crowd), nvls_exponent};
}

// In stages: reduce-scatter in the host, all-reduce per rail, all-gather in the host.
Terms hierarchical(const Inputs& in) {
  const double g = in.local(), k = in.hosts();
  const double link = in.call.bytes * rounds(in) * (g - 1) / g / in.ring();
  const double latency = ring_base_s + rounds(in) * (g - 1) * hop_s;
  if (in.is_one_host()) return one_host(in, latency, link, ring_exponent);
  const double out = in.call.bytes * rounds(in) * (k - 1) / k / in.network;
  return {0, latency + rounds(in) * (k - 1) * in.step(), link + out, additive};
}

// Rounds in each of which every rank sends `bytes` once, to a rank `distance` away: further along,
// all round the group, or its partner both ways.
class Rounds {
 public:
  enum class Kind : std::uint8_t { shift, pairs };
  Rounds(const Inputs& in, Kind kind) : in_(in), kind_(kind) {}

  void add(double bytes, std::uint32_t distance) {
    const double link = bytes / in_.pair();
    const double crossing = crossing_ranks(distance);
    if (crossing == 0) {
      latency_s_ += hop_s;
      wire_s_ += link;
      return;
    }
    // A rank has the NIC beside it, and shares it where there are more ranks than NICs.
    const double nics = std::min<double>(in_.shape.nics_per_host, crossing);
    const double nic = in_.network / in_.shape.nics_per_host;
    latency_s_ += in_.step();
    wire_s_ += std::max(link, bytes * crossing / nics / nic);
  }
  Terms terms(double base_s) const {
    if (in_.is_one_host()) return one_host(in_, base_s + latency_s_, wire_s_, additive);
    return {0, base_s + latency_s_, wire_s_, additive};
  }

 private:
  // Of a host, whose partner is on another.
  double crossing_ranks(std::uint32_t distance) const {
    const std::uint32_t local = in_.shape.gpus_per_host;
    const bool aligned = kind_ == Kind::pairs && local % (2 * distance) == 0;
    return in_.is_one_host() || aligned ? 0 : std::min(distance, local);
  }

  const Inputs& in_;
  Kind kind_;
  double latency_s_ = 0, wire_s_ = 0;
};

// Nearest first, and twice as much over twice the distance each round; what does not double is one
// way round. A reduce_scatter is the same backwards.
Terms recursive_doubling(const Inputs& in) {
  const std::uint32_t n = in.shape.ranks;
  Rounds rounds(in, std::has_single_bit(n) ? Rounds::Kind::pairs : Rounds::Kind::shift);
  for (std::uint32_t d = 1; d < n; d *= 2) rounds.add(in.call.bytes * std::min(d, n - d) / n, d);
  return rounds.terms(ring_base_s);
}

// Farthest first, with one part of the data; the nearest gets half of it.
Terms pat(const Inputs& in) {
  const std::uint32_t n = in.shape.ranks;
  Rounds rounds(in, Rounds::Kind::shift);
  for (std::uint32_t d = std::bit_ceil(n) / 2; d > 0; d /= 2) {
    const std::uint32_t parts = (n - 1 - d) / (2 * d) + 1;
    rounds.add(in.call.bytes * parts / n, d);
  }
  return rounds.terms(pat_base_s);
}

// Half of the data to the nearest, a quarter to the next, and back the same way. Ranks beyond a
// power of two hand theirs to a neighbour first.
Terms halving_doubling(const Inputs& in) {
  const std::uint32_t n = in.shape.ranks, active = std::bit_floor(n);
  Rounds rounds(in, active == n ? Rounds::Kind::pairs : Rounds::Kind::shift);
  for (int way = 0; way < 2; ++way) {
    if (active != n) rounds.add(in.call.bytes, 1);
    for (std::uint32_t d = 1; d < active; d *= 2) rounds.add(in.call.bytes / (2 * d), d);
  }
  return rounds.terms(ring_base_s);
}

// All a rank has to all others, in one step; of a broadcast the root only.
Terms flat(const Inputs& in) {
  const double n = in.ranks(), g = in.local();
  const double each = in.call.op == Op::all_gather ? in.call.bytes / n : in.call.bytes;
  const double nics = in.shape.nics_per_host;  // the root has one
  const double senders = in.call.op == Op::broadcast ? nics : g;
  const double link = each * (n - 1) / in.ring();
  if (in.is_one_host()) return one_host(in, ring_base_s + hop_s, link, additive);
  return {0, ring_base_s + in.step(), std::max(link, each * senders * (n - g) / in.network),
          additive};
}

enum class Reach : std::uint8_t { one_host, many_hosts, any };
enum class Needs : std::uint8_t { nothing, nvls };
enum class Protocols : std::uint8_t { all, simple };

struct TimedAlgorithm {
  std::string_view name;
  Terms (*terms)(const Inputs&);
  OpSet ops;
  Reach reach = Reach::any;
  Needs needs = Needs::nothing;
  Protocols protocols = Protocols::simple;
};

using enum Op;
constexpr OpSet sharded{all_gather, reduce_scatter};
constexpr OpSet unrooted{all_reduce, all_gather, reduce_scatter};

// Names and operations as in the registry of traffic.
constexpr std::array algorithms_timed{
    TimedAlgorithm{"direct", direct, {all_reduce, all_gather, reduce_scatter, send_recv}},
    TimedAlgorithm{"flat", flat, {all_reduce, all_gather, broadcast}},
    TimedAlgorithm{"halving_doubling", halving_doubling, {all_reduce}},
    TimedAlgorithm{"hierarchical", hierarchical, unrooted},
    TimedAlgorithm{"nvls", nvls, unrooted, Reach::one_host, Needs::nvls},
    TimedAlgorithm{"nvls_tree", nvls_tree, {all_reduce}, Reach::many_hosts, Needs::nvls},
    TimedAlgorithm{"pairwise", direct, {all_to_all}},
    TimedAlgorithm{"pat", pat, sharded},
    TimedAlgorithm{"recursive_doubling", recursive_doubling, sharded},
    TimedAlgorithm{"ring",
                   ring,
                   {all_reduce, all_gather, reduce_scatter, broadcast},
                   Reach::any,
                   Needs::nothing,
                   Protocols::all},
    TimedAlgorithm{"sharp", sharp, {all_reduce}, Reach::many_hosts, Needs::nvls},
    TimedAlgorithm{
        "tree", tree, {all_reduce, broadcast}, Reach::any, Needs::nothing, Protocols::all},
};

// Why `algorithm` cannot serve; "" where it can.
std::string_view refusal(const TimedAlgorithm& algorithm, const Inputs& in) {
  if (!algorithm.ops.has(in.call.op)) return "it does not support this operation";
  if (algorithm.reach == Reach::one_host && !in.is_one_host())
    return "it works only within one host";
  if (algorithm.reach == Reach::many_hosts && in.is_one_host()) return "it needs several hosts";
  if (algorithm.needs == Needs::nvls && in.system.link.nvls == 0)
    return "it needs an NVSwitch with in-switch reduction (NVLink 4 or later)";
  if (algorithm.needs == Needs::nvls && in.shape.gpus_per_host < 2)
    return "it needs several GPUs per host";
  if (algorithm.protocols == Protocols::simple && in.call.protocol != Protocol::simple)
    return "it supports only the Simple protocol";
  return "";
}

}  // namespace

std::string_view to_text(Protocol protocol) {
  constexpr std::array<std::string_view, 3> names{"LL", "LL128", "Simple"};
  return names[static_cast<std::size_t>(protocol)];
}

Result<Protocol> parse_protocol(std::string_view text) {
  for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
    if (to_text(protocol) == text) return protocol;
  return fail(Errc::unknown, {}, fmt::format("unknown protocol \"{}\"", text),
              "known: LL, LL128, Simple");
}

double Terms::seconds() const {
  // Scaled by the larger part, so that no power overflows or vanishes.
  const double large = std::max(latency, wire), small = std::max(std::min(latency, wire), 0.0);
  if (large <= 0) return launch;
  return launch + large * std::pow(1 + std::pow(small / large, exponent), 1 / exponent);
}

Result<Terms> predict(const System& system, const GroupShape& shape, const Call& call,
                      std::optional<double> network) {
  WEFT_TRY_STATUS(check(shape));
  const auto algorithm = std::ranges::find(algorithms_timed, call.algorithm, &TimedAlgorithm::name);
  if (algorithm == algorithms_timed.end())
    return fail(Errc::unknown, {},
                fmt::format("the time model has no algorithm \"{}\"{}", call.algorithm,
                            did_you_mean(call.algorithm, timed_algorithms())),
                fmt::format("known: {}", fmt::join(timed_algorithms(), ", ")));
  if (!(call.bytes >= 0 && call.bytes <= collective_bytes_max))
    return fail(Errc::value, {}, fmt::format("invalid size of {} bytes", call.bytes),
                fmt::format("use 0 to {} bytes", collective_bytes_max));
  const Inputs in{system, shape, call, network.value_or(network_bytes_per_s(system, shape))};
  if (!in.is_one_host() && !(in.network > 0))
    return fail(Errc::infeasible, {}, "the hosts have no bandwidth between them",
                "specify the NICs, or fix the fabric");
  const std::string_view why = refusal(*algorithm, in);
  if (!why.empty())
    return fail(Errc::infeasible, {},
                fmt::format("{} {} of {} over {} host(s): {}", call.algorithm,
                            to_text(call.protocol), to_text(call.op), shape.hosts, why),
                "choose another algorithm, or auto");
  return algorithm->terms(in);
}

std::vector<std::string> timed_algorithms() {
  std::vector<std::string> names;
  for (const TimedAlgorithm& algorithm : algorithms_timed) names.emplace_back(algorithm.name);
  return names;
}

namespace {

// The latency part that makes `terms` take `seconds`; it grows with it, so halving finds it.
double latency_for(Terms terms, double seconds) {
  double low = 0, high = seconds;
  constexpr int halvings = 100;
  for (int i = 0; i < halvings; ++i) {
    terms.latency = (low + high) / 2;
    (terms.seconds() < seconds ? low : high) = terms.latency;
  }
  return low;
}

// Unlike from_seconds(), keeps the sign.
Duration signed_duration(double seconds) {
  return {static_cast<std::int64_t>(std::llround(seconds * 1e12))};
}

std::unexpected<Error> too_fast(const System& system, const Call& call, double seconds,
                                double limit, std::string_view reason) {
  return fail(Errc::infeasible, {},
              fmt::format("{} of {:.0f} bytes by {} {} in {} on {}: {} already take {}",
                          to_text(call.op), call.bytes, call.algorithm, to_text(call.protocol),
                          human_seconds(seconds), system.name, reason, human_seconds(limit)),
              "check the size, the algorithm and the machine generation");
}

}  // namespace

Result<System> calibrate(System system, const GroupShape& shape, const Call& call, double seconds,
                         std::optional<double> network) {
  System bare = system;
  bare.host_latency = bare.network_latency = {};
  WEFT_TRY(const Terms terms, predict(bare, shape, call, network));
  if (!(seconds <= calibration_max))
    return fail(Errc::value, {}, fmt::format("a row has a time of {} seconds", seconds),
                "give the time of one call, under an hour");
  if (!(seconds > terms.wire)) return too_fast(system, call, seconds, terms.wire, "the bytes");
  if (shape.hosts == 1) {
    const double launch = seconds - terms.seconds();
    // The base of NCCL's hop figures is software; a call cannot cost less than none of it.
    if (launch <= -ring_base_s)
      return too_fast(system, call, seconds, terms.seconds() - ring_base_s, "bytes and hops");
    system.host_latency = signed_duration(launch);
    return system;
  }
  if (!(seconds > terms.seconds()))
    return too_fast(system, call, seconds, terms.seconds(), "bytes and hops inside the hosts");
  bare.network_latency = 1_us;
  WEFT_TRY(const Terms with_steps, predict(bare, shape, call, network));
  const double steps = (with_steps.latency - terms.latency) / 1e-6;
  system.network_latency = signed_duration((latency_for(terms, seconds) - terms.latency) / steps);
  return system;
}

namespace alpha_beta {
namespace {

double steps_log2(std::uint32_t n) { return std::bit_width(n - 1); }
double share(std::uint32_t n) { return (n - 1.0) / n; }

}  // namespace

double ring_all_gather(std::uint32_t n, double bytes, Link link) {
  return (n - 1) * link.alpha + share(n) * bytes / link.beta;
}

double ring_all_reduce(std::uint32_t n, double bytes, Link link) {
  return 2 * ring_all_gather(n, bytes, link);
}

double recursive_doubling_all_gather(std::uint32_t n, double bytes, Link link) {
  return steps_log2(n) * link.alpha + share(n) * bytes / link.beta;
}

double halving_doubling_all_reduce(std::uint32_t n, double bytes, Link link) {
  return 2 * recursive_doubling_all_gather(n, bytes, link);
}

double flat_all_reduce(std::uint32_t n, double bytes, Link link) {
  return link.alpha + (n - 1) * bytes / link.beta;
}

}  // namespace alpha_beta
}  // namespace weft::workload
