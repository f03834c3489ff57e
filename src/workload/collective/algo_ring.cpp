// Pipelined ring, one per channel. Channel k leaves every host through the host's k-th NIC and
// enters the next one at its k-th NIC, so that on a rail-aligned fabric it stays on one rail. Over
// GPUs in a mesh the channels of one NIC take different ways through the host.
#include <algorithm>

#include "workload/collective/algorithm.hpp"
#include "workload/collective/mesh.hpp"

namespace weft::workload {
namespace {

// order[i] sends to order[i + 1], where it is not no_rank through relay[i]: the GPU beside the NIC,
// when the host has one that is not the last (NCCL calls this PXN).
struct Ring {
  std::vector<Rank> order, relay;
};

Ring ring_of(const Layout& layout, std::uint32_t channel) {
  Ring ring;
  ring.order.reserve(layout.rank_count());
  ring.relay.assign(layout.rank_count(), no_rank);
  for (std::uint32_t h = 0; h < layout.host_count(); ++h) {
    const std::vector<Rank> members = order_in_host(layout, h, channel);
    const auto [in, out] = layout.lane(h, channel);
    const auto start = std::ranges::find(members, in) - members.begin();
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Rank r = members[(static_cast<std::size_t>(start) + i) % members.size()];
      if (r != out || out == in) ring.order.push_back(r);
    }
    if (out != in) ring.order.push_back(out);
    if (layout.host_count() > 1 && ring.order.back() != out)
      ring.relay[ring.order.size() - 1] = out;
  }
  return ring;
}

// What every edge of a ring does: `steps` turns, which move `bytes` in all.
struct Work {
  std::uint32_t steps;
  double bytes;
};

Work work_of(const Job& job) {
  const std::uint32_t n = job.size();
  const double part = job.share() / job.channels;
  switch (job.op()) {
    case Op::all_reduce:
      return {2 * (n - 1), 2 * (n - 1) * part};
    case Op::broadcast:
      return {1, n * part};
    default:
      return {n - 1, (n - 1) * part};
  }
}

// The longest dependency path takes as many edges of the ring in a row as a chunk makes moves: all
// of one or two laps, less one or two edges, which are inside a host where one holds enough ranks.
void set_latency(const Job& job, Stage& stage) {
  const Layout& layout = job.layout;
  const std::uint32_t laps = job.op() == Op::all_reduce ? 2 : 1;
  const std::uint32_t steps = laps * (job.size() - 1);
  if (layout.host_count() > 1)
    stage.latency_steps =
        laps * layout.host_count() - (laps - std::min(laps, layout.members_max() - 1));
  stage.inner_steps = steps - stage.latency_steps;
}

// A broadcast begins at its root, which sends and does not receive.
Chain ring_chain(const Job& job, const Ring& ring) {
  const auto [steps, bytes] = work_of(job);
  const bool stream = job.op() == Op::broadcast;
  const std::size_t n = ring.order.size();
  const auto root =
      static_cast<std::size_t>(std::ranges::find(ring.order, Rank{0}) - ring.order.begin());
  Chain chain{.edges = {}, .steps = steps};
  chain.edges.reserve(job.size() + job.layout.host_count());
  const auto add = [&](Rank from, Rank to) {
    if (stream) chain.levels.push_back(static_cast<std::uint32_t>(chain.edges.size()));
    chain.edges.push_back({job.node(from), job.node(to), bytes});
  };
  for (std::size_t turn = 0; turn < n; ++turn) {
    const std::size_t i = stream ? (root + turn) % n : turn;
    const Rank to = ring.order[(i + 1) % n], relay = ring.relay[i];
    if (stream && to == 0) continue;
    if (relay != no_rank) add(ring.order[i], relay);
    add(relay != no_rank ? relay : ring.order[i], to);
  }
  return chain;
}

Result<std::vector<Stage>> ring_stages(const Job& job) {
  Stage stage{.name = "ring", .divisible = true};
  for (std::uint32_t c = 0; c < job.channels; ++c)
    stage.chains.push_back(ring_chain(job, ring_of(job.layout, c)));
  set_latency(job, stage);
  return std::vector{std::move(stage)};
}

}  // namespace

constinit const Algorithm algo::ring{
    "ring", {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast}, ring_stages};

}  // namespace weft::workload
