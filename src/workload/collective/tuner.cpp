#include "workload/collective/tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <span>

namespace weft::workload {
namespace {

// All constants of this file: NCCL 2.30, src/graph/tuning.cc (commit 5067397c), times in us, rates
// in bytes/s, by protocol (LL, LL128, Simple) or by generation (NVLink 3, 4, 5; xGMI).
using PerProtocol = std::array<double, 3>;
using PerGeneration = std::array<double, 4>;

constexpr PerProtocol ring_base{6.6, 14.0, 8.4}, tree_base{6.8, 14.0, 8.4};
constexpr PerProtocol ring_hop{0.6, 1.9, 3.4}, tree_hop{0.6, 1.25, 4.0};
constexpr PerProtocol ring_crossing{2.7, 4.0, 14.0}, tree_crossing{5.0, 8.5, 14.0};
constexpr PerProtocol post_overhead{1, 1, 3};  // of a network message, Intel hosts
constexpr double nvls_hop = 25, nvls_crossing = 18, nvls_tree_crossing = 20.9, pat_base = 8;
constexpr double pat_rank = 2.8, pat_overlap = 3.5, pat_share = 0.75;
constexpr double ring_plateau = 1.4;  // Simple rings between hosts

constexpr PerGeneration nvls_efficiency{0, 0.85, 0.74, 0};
// In one host. xGMI: AMD's rows for 8 x MI300X leave LL between 256 and 512 KiB.
constexpr PerGeneration ll_max{87.7e9, 141e9, 282e9, 24.6e9};
constexpr double ll_max_pair = 39e9, ll_max_many = 20.4e9;  // 2 and more hosts, Intel
constexpr double ll_tree_share = 1 / 3.8, tree_share = 0.92, ring_ll128_share = 0.92;
constexpr double tree_ll128_share_host = 7.0 / 9, tree_ll128_share = 120.0 / 128;
constexpr double chain_share = 0.85;  // from NVLink 4 on, a tree is a chain inside the host
// NVLSTree's share of its bus: on two hosts as NCCL up to 2.26 had it (nccl-tests issue 279); on
// more between that (0.35 to 0.47 of twice the bus) and the cap per channel of 2.30 (0.95), so that
// rings win from 1 GiB on 4 and 8 hosts, as in published runs.
constexpr double nvls_tree_pair_share = 0.70, nvls_tree_share = 0.89;

// Share of the model's tree bandwidth that is reached, by log2(bytes / 64).
constexpr std::array<std::array<double, 24>, 3> tree_correction{{
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
}};

// Channels: what NCCL logs on DGX H100. LL and Simple threads and the bytes that keep one busy.
constexpr std::uint32_t host_channels = 24, nvls_channels = 16, network_channels = 16;
constexpr PerProtocol threads{512, 640, 512}, thread_bytes{8, 8, 64};

constexpr std::size_t index(Protocol protocol) { return static_cast<std::size_t>(protocol); }
constexpr std::size_t index(Generation generation) { return static_cast<std::size_t>(generation); }

double correction(Protocol protocol, double bytes) {
  if (bytes < 64) return 1;
  const auto step = static_cast<std::size_t>(std::log2(bytes / 64));
  const auto& row = tree_correction[index(protocol)];
  return step < row.size() ? row[step] : 1;
}

// latency + bytes / bandwidth, with bandwidth in bytes of the buffer.
struct Cost {
  double latency_us = 0, bandwidth = 0;
};

struct Question {
  const System& system;
  const GroupShape& shape;
  Op op;
  double bytes;
  double network;

  double n() const { return shape.ranks; }
  double g() const { return shape.gpus_per_host; }
  double ring() const { return ring_bytes_per_s(system, shape); }
  double k() const { return shape.hosts; }
  bool is_one_host() const { return shape.hosts == 1; }
  double depth() const { return std::bit_width(shape.hosts) - 1.0; }
  double rounds() const { return op == Op::all_reduce ? 2 : 1; }
  // Of the bus: what a ring moves per byte of the buffer.
  double bus_factor() const { return op == Op::broadcast ? 1 : rounds() * (n() - 1) / n(); }
  // A tree or NVLSTree over two hosts sends every byte once each way.
  double tree_network() const { return shape.hosts == 2 ? 2 * network : network; }
};

Cost ring_cost(const Question& q, Protocol protocol) {
  const std::size_t p = index(protocol);
  double bus = q.ring();
  if (!q.is_one_host()) bus = std::min(bus, q.network);
  if (protocol == Protocol::ll) {
    const double cap = q.is_one_host()      ? ll_max[index(q.system.generation)]
                       : q.shape.hosts == 2 ? ll_max_pair
                                            : ll_max_many;
    bus = std::min(bus / 2, cap);
  }
  if (protocol == Protocol::ll128) bus *= ring_ll128_share;

  const double crossings = q.is_one_host() ? 0 : q.rounds() * (q.k() - 1);
  const double steps = q.op == Op::broadcast ? q.n() : q.rounds() * (q.n() - 1);
  const double hop = q.is_one_host() ? ring_hop[p] : std::max(ring_hop[p], post_overhead[p]);
  double latency = ring_base[p] + (steps - crossings) * hop + crossings * ring_crossing[p];
  if (protocol == Protocol::simple && !q.is_one_host() && q.op == Op::all_reduce &&
      q.bytes / (network_channels * q.n()) >= 64)
    latency *= ring_plateau;
  return {latency, bus / q.bus_factor()};
}

Cost tree_cost(const Question& q, Protocol protocol) {
  const std::size_t p = index(protocol);
  double bus = q.ring();
  if (!q.is_one_host()) bus = std::min(bus, q.tree_network());
  bus *= tree_share;
  if (q.system.generation != Generation::nvlink3) bus *= chain_share;
  if (protocol == Protocol::ll) bus *= ll_tree_share;
  if (protocol == Protocol::ll128)
    bus *= q.is_one_host() ? tree_ll128_share_host : tree_ll128_share;
  const double latency =
      tree_base[p] + 2 * ((q.g() - 1) * tree_hop[p] + q.depth() * tree_crossing[p]);
  return {latency, bus / 2 * correction(protocol, q.bytes)};
}

// NVSwitch reduction as bus bandwidth: a GPU moves 1 + 1/g per byte where a ring moves 2(g-1)/g.
double nvls_bus(const Question& q) {
  const double usable = (host_channels - 1.0) / host_channels;
  const double link = q.ring() * nvls_efficiency[index(q.system.generation)] * usable;
  const double gain = q.op == Op::all_reduce ? 2 * (q.g() - 1) / (q.g() + 1) : (q.g() - 1) / q.g();
  return link * gain;
}

Cost nvls_cost(const Question& q) { return {nvls_hop, nvls_bus(q) / q.bus_factor()}; }

Cost nvls_tree_cost(const Question& q) {
  double bus = std::min(nvls_bus(q), q.tree_network());
  // On Blackwell NCCL corrects NVLSTree as it does trees.
  if (q.system.generation == Generation::nvlink5) bus *= correction(Protocol::simple, q.bytes);
  const double bandwidth =
      q.shape.hosts == 2 ? bus * nvls_tree_pair_share : bus * nvls_tree_share / q.bus_factor();
  return {nvls_hop + 2 * q.depth() * nvls_tree_crossing, bandwidth};
}

Cost sharp_cost(const Question& q) {
  return {nvls_hop + nvls_crossing, std::min(nvls_bus(q) / q.bus_factor(), q.network)};
}

Cost pat_cost(const Question& q) {
  return {pat_base + q.depth() * tree_crossing[2] / pat_overlap + q.n() * pat_rank,
          q.network * pat_share / q.bus_factor()};
}

class List {
 public:
  explicit List(const Question& question) : q_(question) {}

  // Before the first that takes longer: best first, and equals in the order of addition.
  void add(std::string_view algorithm, Protocol protocol, Cost cost) {
    if (!(cost.bandwidth > 0)) return;
    const double seconds = cost.latency_us * 1e-6 + q_.bytes / cost.bandwidth;
    const auto place = std::ranges::upper_bound(rows_, seconds, {}, &Candidate::seconds);
    rows_.insert(place, {algorithm, protocol, seconds});
  }
  void add_all_protocols(std::string_view algorithm, Cost (*cost)(const Question&, Protocol)) {
    for (const Protocol protocol : {Protocol::ll, Protocol::ll128, Protocol::simple})
      add(algorithm, protocol, cost(q_, protocol));
  }
  std::vector<Candidate> take() { return std::move(rows_); }

 private:
  const Question& q_;
  std::vector<Candidate> rows_;
};

std::uint32_t channels_for(const GroupShape& shape, const Pick& pick, double bytes) {
  const std::size_t p = index(pick.protocol);
  if (pick.algorithm == "nvls" || pick.algorithm == "nvls_tree") return nvls_channels;
  const std::uint32_t most = shape.hosts == 1 ? host_channels : network_channels;
  const bool is_ring_ll = pick.algorithm == "ring" && pick.protocol == Protocol::ll;
  const double per_channel = threads[p] * thread_bytes[p] * (is_ring_ll ? shape.ranks : 1);
  return static_cast<std::uint32_t>(
      std::clamp(bytes / per_channel, 1.0, static_cast<double>(most)));
}

std::string text(const Candidate& c) {
  return fmt::format("{} {} {:.1f} us", c.algorithm, to_text(c.protocol), c.seconds * 1e6);
}

// The best, and the best of each other algorithm.
std::string reason(const std::vector<Candidate>& fitting) {
  std::string others;
  std::vector<std::string_view> said{fitting.front().algorithm};
  for (const Candidate& c : fitting) {
    if (std::ranges::find(said, c.algorithm) != said.end()) continue;
    said.push_back(c.algorithm);
    others += (others.empty() ? "" : ", ") + text(c);
  }
  return fmt::format("NCCL estimates {}{}{}", text(fitting.front()),
                     others.empty() ? ", and no other algorithm fits" : "; others: ", others);
}

// For what NCCL does not weigh: the rules decide, and pairwise operations have one way.
Pick unweighed(Op op, const TunerRules& rules) {
  const bool is_auto = rules.algorithm == "auto";
  const char* const one_way = op == Op::all_to_all ? "pairwise" : "direct";
  Pick pick{is_auto ? one_way : rules.algorithm, rules.protocol.value_or(Protocol::simple), 0, {}};
  pick.why = is_auto ? "NCCL has only one algorithm for this operation"
                     : fmt::format("{} was requested", rules.algorithm);
  return pick;
}

// On EFA the provider's tuner plugin chooses, from tables by size and hosts. These are its
// boundaries in MiB at 2, 4, 8, 16 and 32 hosts of p5 and of P6-B200, rounded (aws-ofi-nccl,
// src/tuner/nccl_ofi_regions.cpp, which interpolates between them): a tree of LL128, then what
// `middle` says, then the last.
struct PluginRow {
  std::uint32_t hosts_max;
  double tree_mib, middle_mib;
  std::string_view middle;
  Protocol middle_protocol;
  std::string_view last;
};
constexpr std::uint32_t any_hosts = UINT32_MAX;
constexpr std::array<PluginRow, 4> plugin_nvlink4{{
    {2, 30, 30, "nvls_tree", Protocol::simple, "nvls_tree"},
    {4, 36, 1536, "ring", Protocol::ll128, "ring"},
    {8, 112, 2560, "ring", Protocol::ll128, "ring"},
    {any_hosts, 288, 6144, "nvls_tree", Protocol::simple, "ring"},
}};
constexpr std::array<PluginRow, 5> plugin_nvlink5{{
    {2, 4.5, 4.5, "nvls_tree", Protocol::simple, "nvls_tree"},
    {4, 17.5, 415, "nvls_tree", Protocol::simple, "ring"},
    {8, 38.5, 1023, "nvls_tree", Protocol::simple, "ring"},
    {16, 54.5, 2340, "nvls_tree", Protocol::simple, "ring"},
    {any_hosts, 69.5, 5030, "nvls_tree", Protocol::simple, "ring"},
}};
constexpr double mebi = 1 << 20, plugin_from_mib = 0.375;  // below, NCCL and the tables agree

Candidate from_row(std::span<const PluginRow> rows, std::uint32_t hosts, double mib) {
  const PluginRow& row = *std::ranges::find_if(rows, [&](auto& r) { return hosts <= r.hosts_max; });
  if (mib <= row.tree_mib) return {"tree", Protocol::ll128, 0};
  if (mib <= row.middle_mib) return {row.middle, row.middle_protocol, 0};
  return {row.last, Protocol::simple, 0};
}

// Puts the plugin's choice first. It has tables for all-reduce over full hosts of 8 GPUs.
void prefer_plugin(std::vector<Candidate>& list, const System& system, const GroupShape& shape,
                   double bytes) {
  const double mib = bytes / mebi;
  if (system.transport != Transport::efa || system.link.nvls == 0 || shape.hosts < 2 ||
      shape.gpus_per_host != 8 || mib < plugin_from_mib)
    return;
  const bool is_nvlink4 = system.generation == Generation::nvlink4;
  const Candidate chosen = is_nvlink4 ? from_row(plugin_nvlink4, shape.hosts, mib)
                                      : from_row(plugin_nvlink5, shape.hosts, mib);
  const auto place = std::ranges::find_if(list, [&](const Candidate& c) {
    return c.algorithm == chosen.algorithm && c.protocol == chosen.protocol;
  });
  if (place != list.end()) std::rotate(list.begin(), place, place + 1);
}

}  // namespace

std::vector<Candidate> candidates(const System& system, const GroupShape& shape, Op op,
                                  double bytes, InNetwork in_network,
                                  std::optional<double> network) {
  const Question q{system, shape, op, bytes, network.value_or(network_bytes_per_s(system, shape))};
  List list(q);
  if (op == Op::all_to_all || op == Op::send_recv) return {};
  const bool is_all_reduce = op == Op::all_reduce;
  // RCCL's rows for one host of MI300X are nearly flat up to 256 KiB, as rings of LL are.
  const bool is_mesh = q.is_one_host() && system.generation == Generation::xgmi;
  if (is_all_reduce && !is_mesh) list.add_all_protocols("tree", tree_cost);
  list.add_all_protocols("ring", ring_cost);
  if (op == Op::broadcast) return list.take();
  const bool has_nvls = system.link.nvls > 0 && shape.gpus_per_host > 1;
  if (has_nvls && q.is_one_host()) list.add("nvls", Protocol::simple, nvls_cost(q));
  if (has_nvls && !q.is_one_host() && is_all_reduce) {
    list.add("nvls_tree", Protocol::simple, nvls_tree_cost(q));
    if (in_network == InNetwork::present) list.add("sharp", Protocol::simple, sharp_cost(q));
  }
  if (!q.is_one_host() && shape.gpus_per_host == 1 && !is_all_reduce)
    list.add("pat", Protocol::simple, pat_cost(q));
  return list.take();
}

Result<Pick> pick(const System& system, const GroupShape& shape, Op op, double bytes,
                  const TunerRules& rules, std::optional<double> network) {
  WEFT_TRY_STATUS(check(shape));
  auto list = candidates(system, shape, op, bytes, rules.in_network, network);
  const bool is_free = rules.algorithm == "auto" && !rules.protocol;
  const std::string_view own = list.empty() ? "" : list.front().algorithm;
  if (is_free && op == Op::all_reduce) prefer_plugin(list, system, shape, bytes);
  std::erase_if(list, [&](const Candidate& c) {
    return (rules.algorithm != "auto" && c.algorithm != rules.algorithm) ||
           (rules.protocol && c.protocol != *rules.protocol);
  });
  const bool is_pairwise = op == Op::all_to_all || op == Op::send_recv;
  if (list.empty() && rules.algorithm == "auto" && !is_pairwise)
    return fail(Errc::infeasible, {},
                fmt::format("no algorithm for {} with protocol {}", to_text(op),
                            to_text(rules.protocol.value_or(Protocol::simple))),
                "leave the protocol to the tuner");
  Pick pick = unweighed(op, rules);
  if (!list.empty())
    pick = {std::string(list.front().algorithm), list.front().protocol, 0, reason(list)};
  if (is_free && !list.empty() && list.front().algorithm != own)
    pick.why += "; the EFA plugin's tables override the estimates";
  WEFT_TRY(const Terms terms,
           predict(system, shape, {op, pick.algorithm, pick.protocol, bytes}, network));
  static_cast<void>(terms);  // asked only whether it can serve
  pick.channels = channels_for(shape, pick, bytes);
  return pick;
}

}  // namespace weft::workload
