#include "workload/collective/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <utility>

#include "workload/collective/algorithm.hpp"
#include "workload/collective/mesh.hpp"
#include "workload/collective/nvswitch.hpp"

namespace weft::workload {
namespace {

constexpr std::array all_ops{Op::all_reduce, Op::all_gather, Op::reduce_scatter,
                             Op::broadcast,  Op::all_to_all, Op::send_recv};

Status check_ranks(const Fabric& fabric, std::span<const NodeId> ranks) {
  if (ranks.size() < 2)
    return fail(
        Errc::infeasible, {},
        fmt::format("a collective over only {} rank{}", ranks.size(), ranks.empty() ? "s" : ""),
        "use at least 2 GPUs");
  std::unordered_map<std::uint32_t, std::uint32_t> rank_of;  // by node; groups are small
  rank_of.reserve(ranks.size());
  for (std::uint32_t r = 0; r < ranks.size(); ++r) {
    const NodeId node = ranks[r];
    if (node.index() >= fabric.node_count())
      return fail(Errc::infeasible, {},
                  fmt::format("rank {} is node {}, and the fabric has {} nodes", r, node.value,
                              fabric.node_count()));
    if (fabric.kind(node) != model::NodeKind::gpu)
      return fail(Errc::infeasible, {},
                  fmt::format("rank {} is {}, which is a {}, not a GPU", r, fabric.name(node),
                              model::to_text(fabric.kind(node))));
    if (const auto [seen, is_new] = rank_of.try_emplace(node.value, r); !is_new)
      return fail(Errc::infeasible, {},
                  fmt::format("{} is both rank {} and rank {}", fabric.name(node), seen->second, r),
                  "a GPU can be in a group only once");
  }
  return {};
}

bool is_size(double bytes) { return bytes >= 0 && bytes <= collective_bytes_max; }

// Of ranks x ranks sizes, without the diagonal, which no network sees.
Status check_matrix(const Request& request) {
  const std::size_t n = request.ranks.size();
  if (request.op != Op::all_to_all)
    return fail(Errc::value, {}, fmt::format("a size matrix for {}", to_text(request.op)),
                "only all_to_all takes a size matrix");
  if (request.matrix.size() != n * n)
    return fail(Errc::value, {},
                fmt::format("the matrix has {} entries for {} ranks", request.matrix.size(), n),
                fmt::format("{} x {} = {} are needed, row by row", n, n, n * n));
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const double bytes = request.matrix[i * n + j];
      sum += bytes;
      if (!is_size(bytes) || !is_size(sum))
        return fail(
            Errc::value, {},
            fmt::format("rank {} sends {} bytes to rank {}, {} in all so far", i, bytes, j, sum),
            fmt::format("sizes must be 0 or more, at most {} per rank", collective_bytes_max));
    }
  }
  return {};
}

Status check_numbers(const Request& request) {
  if (!is_size(request.bytes))
    return fail(Errc::value, {}, fmt::format("invalid collective size of {} bytes", request.bytes),
                fmt::format("give 0 to {}", collective_bytes_max));
  if (request.channels > channel_count_max)
    return fail(Errc::value, {}, fmt::format("{} channels", request.channels),
                fmt::format("give 1 to {}, or 0 for one per NIC", channel_count_max));
  if (request.window == 0) return fail(Errc::value, {}, "a window of 0 peers", "give 1 or more");
  return request.matrix.empty() ? Status{} : check_matrix(request);
}

// What is kept when there is nothing to send: the stages, with their latency.
void drop_empty(Stage& stage) {
  stage.chains.clear();
  stage.flows.clear();
  stage.exchanges.clear();
}

bool has_bytes(const Request& request) {
  return request.bytes > 0 || std::ranges::any_of(request.matrix, [](double b) { return b > 0; });
}

// By what is known to win in the large: in-switch reduction inside one host from 5 GPUs up, rings
// for long messages, logarithmic algorithms where each rank's part is short. The tuner, which
// weighs times, is another matter.
std::string_view default_name(const Job& job) {
  constexpr double short_share = 65'536;  // bytes per rank below which latency counts
  const bool one_host = job.layout.host_count() == 1;
  switch (job.op()) {
    case Op::all_reduce:
      if (one_host && job.size() > 4 && !nvswitches_of(job, 0).empty()) return "nvls";
      return !one_host && job.share() < short_share ? "tree" : "ring";
    case Op::all_gather:
    case Op::reduce_scatter:
      return job.layout.members_max() == 1 && job.share() < short_share ? "pat" : "ring";
    case Op::broadcast:
      return "ring";
    case Op::all_to_all:
      return "pairwise";
    case Op::send_recv:
      return "direct";
  }
  std::unreachable();
}

// Rings over a host, for all of its cables to be used.
std::uint32_t rings_in_host(const Layout& layout) {
  for (std::uint32_t h = 0; h < layout.host_count(); ++h)
    if (layout.is_mesh(h) && layout.members(h).size() == layout.members_max())
      return mesh_ring_count(layout.members_max());
  return 1;
}

}  // namespace

std::string_view to_text(Op op) {
  switch (op) {
    case Op::all_reduce:
      return "all_reduce";
    case Op::all_gather:
      return "all_gather";
    case Op::reduce_scatter:
      return "reduce_scatter";
    case Op::broadcast:
      return "broadcast";
    case Op::all_to_all:
      return "all_to_all";
    case Op::send_recv:
      return "send_recv";
  }
  std::unreachable();
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (const Op op : all_ops) names.emplace_back(to_text(op));
  return names;
}

Result<Job> make_job(const Fabric& fabric, const Request& request) {
  WEFT_TRY_STATUS(check_ranks(fabric, request.ranks));
  WEFT_TRY_STATUS(check_numbers(request));
  Layout layout(fabric, request.ranks);
  const std::uint32_t lanes = layout.host_count() == 1 ? 1 : layout.lane_count_max();
  const std::uint32_t natural = lanes * rings_in_host(layout);
  const std::uint32_t channels =
      request.channels != 0 ? request.channels : std::min(natural, channel_count_max);
  return Job{fabric, request, std::move(layout), channels};
}

Result<const Algorithm*> choose_algorithm(const Job& job) {
  const std::string& name = job.request.algorithm;
  return find_algorithm(name == "auto" ? default_name(job) : name, job.op());
}

Result<std::string> default_algorithm(const Fabric& fabric, const Request& request) {
  WEFT_TRY(const Job job, make_job(fabric, request));
  return std::string(default_name(job));
}

Result<Traffic> build_traffic(const Fabric& fabric, const Request& request) {
  WEFT_TRY(const Job job, make_job(fabric, request));
  WEFT_TRY(const Algorithm* algorithm, choose_algorithm(job));
  WEFT_TRY(std::vector<Stage> stages, algorithm->build(job));
  if (!has_bytes(request)) std::ranges::for_each(stages, drop_empty);
  return Traffic{std::string(algorithm->name), std::move(stages)};
}

double busbw_factor(Op op, std::size_t ranks) {
  const auto n = static_cast<double>(ranks);
  switch (op) {
    case Op::all_reduce:
      return 2 * (n - 1) / n;
    case Op::all_gather:
    case Op::reduce_scatter:
    case Op::all_to_all:
      return (n - 1) / n;
    case Op::broadcast:
    case Op::send_recv:
      return 1;
  }
  std::unreachable();
}

}  // namespace weft::workload
