#include "adapt/sim/job_tracer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/hash.hpp"
#include "base/rng.hpp"
#include "model/fabric/goback_n.hpp"
#include "observe/colltrace/job.hpp"
#include "observe/colltrace/records.hpp"

namespace weft::adapt::sim {
namespace {

namespace colltrace = observe::colltrace;

constexpr std::int64_t call_ns = 25'000'000;  // from one call to the next
constexpr std::int64_t calls = 60;            // that a ring still has
constexpr double bytes_per_call = 4 << 20;    // on one edge
constexpr double packet_bytes = 4'096;
constexpr double noise = 0.05;
constexpr std::uint16_t roce_port = 4791, first_source_port = 0xC000;

// Hosts in the order of their first rank, and their ranks.
std::vector<std::vector<std::uint32_t>> ranks_by_host(const Fabric& fabric, const TracedJob& job) {
  std::vector<std::vector<std::uint32_t>> out;
  std::map<NodeId, std::size_t> of_host;
  for (std::uint32_t rank = 0; rank < job.gpus.size(); ++rank) {
    const auto [at, is_new] = of_host.try_emplace(fabric.host_of(job.gpus[rank]), out.size());
    if (is_new) out.emplace_back();
    out[at->second].push_back(rank);
  }
  return out;
}

}  // namespace

struct JobTracer::Edge {
  std::uint32_t from = 0, to = 0;  // ranks
  std::uint8_t channel = 0;
  double wait_ns = 0;    // for the network, a call
  bool is_dead = false;  // nothing comes through
};

JobTracer::JobTracer(World& world, std::vector<TracedJob> jobs, std::uint64_t seed)
    : world_(world), seed_(seed) {
  for (TracedJob& job : jobs)
    if (ranks_by_host(world.fabric(), job).size() > 1) jobs_.push_back(std::move(job));
}

std::vector<JobTracer::Edge> JobTracer::edges_of(const TracedJob& job) {
  const auto hosts = ranks_by_host(world_.fabric(), job);
  std::size_t channels = hosts.front().size();
  for (const auto& ranks : hosts) channels = std::min(channels, ranks.size());
  std::vector<Edge> out;
  for (std::size_t h = 0; h < hosts.size(); ++h)
    for (std::size_t c = 0; c < channels; ++c) {
      const Edge edge{.from = hosts[h][c],
                      .to = hosts[(h + 1) % hosts.size()][c],
                      .channel = static_cast<std::uint8_t>(c)};
      out.push_back(edge);
    }
  for (Edge& edge : out) {
    const Fabric& fabric = world_.fabric();
    const NodeId src = fabric.nic_of(job.gpus[edge.from]), dst = fabric.nic_of(job.gpus[edge.to]);
    const std::uint64_t flow = mix64(seed_ + hash_text(job.name) + edge.from);
    const route::UdpPorts ports{
        static_cast<std::uint16_t>(first_source_port + flow % (0x10000 - first_source_port)),
        roce_port};
    const auto path = world_.path(src, dst, ports);
    const World::Way way = world_.way(path);
    edge.is_dead = path.empty() || way.loss >= 1 || way.bytes_per_s <= 0 ||
                   world_.net().is_silent(fabric.host_of(src)) ||
                   world_.net().is_silent(fabric.host_of(dst));
    if (edge.is_dead) continue;
    const double window = way.bytes_per_s * 2 * way.delay_ns / 1e9 / packet_bytes;
    edge.wait_ns = way.delay_ns +
                   bytes_per_call * 1e9 / way.bytes_per_s / model::goodput_share(way.loss, window);
  }
  return out;
}

colltrace::RingTrace JobTracer::begin_ring(const TracedJob& job, std::uint32_t rank,
                                           std::int64_t first_call) const {
  colltrace::RingTrace out;
  const NodeId host = world_.fabric().host_of(job.gpus[rank]);
  out.host = world_.fabric().name(host);
  out.job = job.name;
  out.rank = static_cast<std::int32_t>(rank);
  out.opened_ns = first_call * call_ns;
  out.is_gone = world_.net().is_silent(host);
  out.names.assign(256, "?");
  out.names[0] = "AllReduce";
  out.names[1] = "ncclBfloat16";
  out.communicators.push_back({.id = hash_text(job.name),
                               .name = "dp",
                               .rank = out.rank,
                               .rank_count = static_cast<std::int32_t>(job.gpus.size())});
  return out;
}

namespace {

// One that has not ended has `took_ns` 0.
void add_call(colltrace::RingTrace& ring, std::int64_t call, std::int64_t took_ns) {
  using State = colltrace::RingOperation::State;
  const std::int64_t begin = call * call_ns, launch_ns = 1'000;
  colltrace::RingOperation o{.state = State::started,
                             .order = static_cast<std::uint64_t>(call),
                             .seq = static_cast<std::uint64_t>(call),
                             .count = static_cast<std::uint64_t>(bytes_per_call),
                             .type = 1,
                             .called_ns = begin,
                             .started_ns = begin + launch_ns};
  if (took_ns > 0) {
    o.state = State::completed;
    o.ended_ns = begin + launch_ns + took_ns;
    o.device_ns = static_cast<std::uint64_t>(took_ns);
  }
  ring.operations.push_back(o);
}

// Of the ring's latest call; `wait_ns` 0: it goes on.
void add_send(colltrace::RingTrace& ring, std::uint32_t to, std::uint8_t channel, double wait_ns) {
  constexpr std::uint32_t steps = 8;
  colltrace::RingProxy p{.begin_ns = ring.operations.back().called_ns,
                         .operation = static_cast<std::uint32_t>(ring.operations.size() - 1),
                         .peer = static_cast<std::int32_t>(to),
                         .channel = channel,
                         .is_send = true,
                         .is_open = wait_ns == 0,
                         .steps = steps,
                         .steps_done = wait_ns == 0 ? 0 : steps,
                         .bytes = static_cast<std::uint64_t>(bytes_per_call)};
  p.wait_ns[static_cast<std::size_t>(colltrace::ring::Wait::send)] =
      static_cast<std::uint64_t>(wait_ns);
  ring.proxies.push_back(p);
}

}  // namespace

std::vector<colltrace::RingTrace> JobTracer::rings(const TracedJob& job) {
  const std::vector<Edge> edges = edges_of(job);
  const bool is_stalled = std::ranges::any_of(edges, &Edge::is_dead);
  if (!is_stalled) stalled_.erase(job.name);
  const Timestamp until =
      is_stalled ? stalled_.try_emplace(job.name, Stall{world_.now()}).first->second.since
                 : world_.now();
  const std::int64_t last = until.ns / call_ns;
  double longest_ns = 0;
  for (const Edge& edge : edges) longest_ns = std::max(longest_ns, edge.wait_ns);
  std::vector<colltrace::RingTrace> out;
  for (std::uint32_t rank = 0; rank < job.gpus.size(); ++rank)
    out.push_back(begin_ring(job, rank, last - calls));
  for (std::int64_t call = last - calls; call < last; ++call) {
    for (colltrace::RingTrace& ring : out)
      add_call(ring, call, static_cast<std::int64_t>(longest_ns * (1 + noise)));
    for (const Edge& edge : edges) {
      Rng draw = Rng(seed_).stream(static_cast<std::uint64_t>(call)).stream(edge.from);
      const double factor = 1 + noise * (draw.uniform() + draw.uniform() - 1);
      add_send(out[edge.from], edge.to, edge.channel, std::max(1.0, edge.wait_ns * factor));
    }
  }
  if (!is_stalled) return out;
  for (colltrace::RingTrace& ring : out)
    if (!ring.is_gone) add_call(ring, last, 0);
  for (const Edge& edge : edges)
    if (!out[edge.from].is_gone) add_send(out[edge.from], edge.to, edge.channel, 0);
  return out;
}

Result<std::vector<std::string>> JobTracer::look() {
  const model::EvidenceSet probes = world_.take_probes();
  std::vector<std::string> out;
  for (const TracedJob& job : jobs_) {
    const auto traces = rings(job);
    std::vector<std::string> files;
    for (const colltrace::RingTrace& ring : traces)
      files.push_back(fmt::format("{}-{}.ring", job.name, ring.rank));
    colltrace::JobBuilder builder;
    WEFT_TRY_STATUS(add_rings(traces, files, builder));
    const colltrace::Job traced = builder.finish();
    const colltrace::Report report = analyse(traced, {});
    const Fabric& fabric = world_.fabric();
    WEFT_TRY(
        const colltrace::NetworkReport network,
        judge_network(traced, report, {.fabric = fabric, .gpus = job.gpus, .probes = &probes}));
    model::RecordSet found = to_records(fabric, traced, job.name, network, world_.now());
    const auto stalled = stalled_.find(job.name);
    if (stalled != stalled_.end() && !stalled->second.is_told &&
        world_.now().ns - stalled->second.since.ns >= hang_ns) {
      add_hang_records(fabric, traced, report, job.gpus, job.name, world_.now(), found);
      stalled->second.is_told = true;
    }
    for (const model::Record& row : found.rows) out.push_back(to_json(fabric, found, row));
  }
  return out;
}

}  // namespace weft::adapt::sim
