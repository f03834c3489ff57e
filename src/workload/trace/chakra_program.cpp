#include "workload/trace/chakra_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <queue>

#include "base/text.hpp"

namespace weft::workload {
namespace {

using Kind = model::Operation::Kind;
using Collective = model::CollectiveOp;

constexpr std::size_t examples_max = 3;
constexpr std::size_t circle_names_max = 8;
constexpr std::int64_t amount_max = std::int64_t{1} << 56;

// comm_type of the schema.
enum class CommType : std::uint8_t {
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  broadcast,
  all_to_all,
  reduce_scatter,
  reduce_scatter_block,
  barrier
};
constexpr std::int64_t comm_types = 10;

// Kernel names of NCCL, for traces without comm_type. Longer names first.
struct NamedType {
  std::string_view text;
  CommType type;
};
constexpr std::array named_types{
    NamedType{"ReduceScatter", CommType::reduce_scatter},
    NamedType{"reduce_scatter", CommType::reduce_scatter},
    NamedType{"AllReduce", CommType::all_reduce},
    NamedType{"all_reduce", CommType::all_reduce},
    NamedType{"allreduce", CommType::all_reduce},
    NamedType{"AllGather", CommType::all_gather},
    NamedType{"all_gather", CommType::all_gather},
    NamedType{"allgather", CommType::all_gather},
    NamedType{"AllToAll", CommType::all_to_all},
    NamedType{"all_to_all", CommType::all_to_all},
    NamedType{"alltoall", CommType::all_to_all},
    NamedType{"Broadcast", CommType::broadcast},
    NamedType{"broadcast", CommType::broadcast},
    NamedType{"barrier", CommType::barrier},
};

std::string name_of(const ChakraNode& node) {
  return fmt::format("node {} {}", node.id, quote(node.name));
}

class ProgramBuilder {
 public:
  ProgramBuilder(const ChakraTrace& trace, const ChakraContext& context)
      : trace_(trace), context_(context), tally_(context.tally) {}

  Result<ChakraProgram> build() {
    resolve();
    if (auto order = sort_nodes(); !order) return std::unexpected(std::move(order).error());
    out_.program.role = fmt::format("rank {}", context_.rank);
    out_.program.operations.reserve(trace_.nodes.size());
    operation_.resize(trace_.nodes.size());
    for (const std::uint32_t node : order_) emit(node);
    report_unpriced();
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(out_);
  }

 private:
  // Dependencies as indexes of nodes.
  void resolve() {
    first_.reserve(trace_.nodes.size() + 1);
    for (const ChakraNode& node : trace_.nodes) {
      first_.push_back(static_cast<std::uint32_t>(after_.size()));
      for (const std::uint64_t id : trace_.data_of(node))
        add_dependency(node, id, "data", tally_.dangling_data);
      for (const std::uint64_t id : trace_.ctrl_of(node)) {
        if (trace_.from_pytorch)
          skip_call(node, id);
        else
          add_dependency(node, id, "control", tally_.dangling_ctrl);
      }
    }
    first_.push_back(static_cast<std::uint32_t>(after_.size()));
  }

  void add_dependency(const ChakraNode& node, std::uint64_t id, std::string_view kind,
                      std::uint64_t& dangling) {
    if (const auto other = trace_.find(id))
      after_.push_back(*other);
    else
      count_dangling(node, id, kind, dangling);
  }

  // The call that a node was made in is no order: it would make circles in recorded traces.
  void skip_call(const ChakraNode& node, std::uint64_t id) {
    ++tally_.ctrl_unused;
    if (!trace_.find(id)) count_dangling(node, id, "control", tally_.dangling_ctrl);
  }

  void count_dangling(const ChakraNode& node, std::uint64_t id, std::string_view kind,
                      std::uint64_t& dangling) {
    ++dangling;
    if (tally_.dangling_examples.size() < examples_max)
      tally_.dangling_examples.push_back(
          fmt::format("{} has {} dependency {}", name_of(node), kind, id));
  }

  std::span<const std::uint32_t> after(std::uint32_t node) const {
    return std::span(after_).subspan(first_[node], first_[node + 1] - first_[node]);
  }

  // Fills order_: each node behind all it waits for, of those that could come next the first in
  // the file.
  Status sort_nodes() {
    const auto count = static_cast<std::uint32_t>(trace_.nodes.size());
    std::vector<std::uint32_t> waits(count), next_first(count + 1, 0), next(after_.size());
    for (const std::uint32_t other : after_) ++next_first[other + 1];
    for (std::uint32_t i = 0; i < count; ++i) next_first[i + 1] += next_first[i];
    std::vector<std::uint32_t> fill(next_first.begin(), next_first.end() - 1);
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> ready;
    for (std::uint32_t i = 0; i < count; ++i) {
      waits[i] = static_cast<std::uint32_t>(after(i).size());
      for (const std::uint32_t other : after(i)) next[fill[other]++] = i;
      if (waits[i] == 0) ready.push(i);
    }
    order_.reserve(count);
    while (!ready.empty()) {
      const std::uint32_t node = ready.top();
      ready.pop();
      order_.push_back(node);
      for (std::uint32_t e = next_first[node]; e < next_first[node + 1]; ++e)
        if (--waits[next[e]] == 0) ready.push(next[e]);
    }
    if (order_.size() == count) return {};
    return name_circle(waits);
  }

  // Every node left waits for another that is left, so following them ends in a circle.
  Status name_circle(const std::vector<std::uint32_t>& waits) const {
    const auto left = [&](std::uint32_t i) { return waits[i] > 0; };
    std::vector<std::uint32_t> seen_at(waits.size(), UINT32_MAX), path;
    auto node = static_cast<std::uint32_t>(
        std::ranges::find_if(waits, [](std::uint32_t w) { return w > 0; }) - waits.begin());
    while (seen_at[node] == UINT32_MAX) {
      seen_at[node] = static_cast<std::uint32_t>(path.size());
      path.push_back(node);
      node = *std::ranges::find_if(after(node), left);
    }
    std::string text;
    const std::size_t first = seen_at[node], length = path.size() - first;
    for (std::size_t i = 0; i < std::min(length, circle_names_max); ++i)
      text += name_of(trace_.nodes[path[first + i]]) + " waits for ";
    if (length > circle_names_max) text += fmt::format("... ({} nodes in all) ... ", length);
    return fail(Errc::value, {context_.file},
                "dependency cycle: " + text + name_of(trace_.nodes[node]),
                "remove one of these dependencies from the trace");
  }

  void error(const ChakraNode& node, Errc code, const std::string& what, std::string hint = {}) {
    if (errors_.size() >= errors_max) return;
    errors_.push_back({code,
                       {context_.file},
                       fmt::format("byte {} of the stream: {} {}", node.at, name_of(node), what),
                       std::move(hint),
                       {}});
  }

  void emit(std::uint32_t index) {
    const ChakraNode& node = trace_.nodes[index];
    model::Operation op;
    op.label = context_.labels.index(node.name);
    waits_.clear();
    for (const std::uint32_t other : after(index)) waits_.push_back(operation_[other]);
    switch (node.type) {
      case ChakraType::invalid:
        error(node, Errc::value, "has type 0 (invalid)");
        break;
      case ChakraType::metadata:
        ++tally_.metadata;
        break;
      case ChakraType::mem_load:
      case ChakraType::mem_store:
        op.seconds = memory_seconds(node);
        break;
      case ChakraType::compute:
        compute(node, op);
        break;
      case ChakraType::send:
        ++tally_.send;
        message(node, Kind::send, op);
        break;
      case ChakraType::recv:
        ++tally_.recv;
        message(node, Kind::recv, op);
        break;
      case ChakraType::collective:
        ++tally_.collective;
        collective(node, op);
        break;
    }
    operation_[index] = model::add_operation(out_.program, op, waits_);
  }

  void compute(const ChakraNode& node, model::Operation& op) {
    ++tally_.compute;
    op.stream = node.cpu_op ? stream_cpu : stream_gpu;
    op.seconds = compute_seconds(node);
    if (node.time_us == 0 && !node.num_ops) ++tally_.timeless;
  }

  // The recorded time, else the roofline: the slower of arithmetic and memory.
  double compute_seconds(const ChakraNode& node) {
    if (node.time_us > 0 || !node.num_ops) return static_cast<double>(node.time_us) * 1e-6;
    const TraceOptions& options = context_.options;
    const std::int64_t bytes = node.tensor_size.value_or(0);
    if (*node.num_ops < 0 || bytes < 0) {
      error(node, Errc::value, "has a negative num_ops or tensor_size");
      return 0;
    }
    if (options.peak_flops <= 0 || (bytes > 0 && options.memory_bandwidth <= 0)) {
      count_unpriced(node);
      return 0;
    }
    const double arithmetic = static_cast<double>(*node.num_ops) / options.peak_flops;
    if (bytes == 0) return arithmetic;
    return std::max(arithmetic, static_cast<double>(bytes) / options.memory_bandwidth);
  }

  double memory_seconds(const ChakraNode& node) {
    ++tally_.memory;
    const std::int64_t bytes = node.tensor_size.value_or(0);
    if (node.time_us > 0 || bytes == 0) return static_cast<double>(node.time_us) * 1e-6;
    if (bytes < 0) error(node, Errc::value, "has a negative tensor_size");
    if (context_.options.memory_bandwidth <= 0) count_unpriced(node);
    if (bytes < 0 || context_.options.memory_bandwidth <= 0) return 0;
    return static_cast<double>(bytes) / context_.options.memory_bandwidth;
  }

  void count_unpriced(const ChakraNode& node) {
    if (unpriced_++ == 0) unpriced_example_ = &node;
  }

  void report_unpriced() {
    if (unpriced_ == 0) return;
    error(*unpriced_example_, Errc::unsupported,
          fmt::format("has operations or bytes but no time ({} such nodes)", unpriced_),
          "give the GPU's peak FLOP/s and memory bandwidth, or a trace with durations");
  }

  // PyTorch records the processor's call beside the kernel; only the kernel says what it moves.
  bool host_call(const ChakraNode& node, model::Operation& op) {
    if (!node.cpu_op || node.comm_type || node.comm_size || node.comm_src || node.comm_dst)
      return false;
    if (!trace_.from_pytorch) return false;
    ++tally_.host_calls;
    op.stream = stream_cpu;
    op.seconds = static_cast<double>(node.time_us) * 1e-6;
    return true;
  }

  void message(const ChakraNode& node, Kind kind, model::Operation& op) {
    if (host_call(node, op)) return;
    const bool sends = kind == Kind::send;
    const auto peer = sends ? node.comm_dst : node.comm_src;
    const auto self = sends ? node.comm_src : node.comm_dst;
    if (!peer || *peer < 0 || *peer >= std::int64_t{context_.rank_count})
      return error(node, Errc::value,
                   sends ? "has no comm_dst among the ranks" : "has no comm_src among the ranks");
    if (self && *self != std::int64_t{context_.rank})
      return error(
          node, Errc::value,
          fmt::format("belongs to rank {}, but is in the file of rank {}", *self, context_.rank));
    if (*peer == std::int64_t{context_.rank})
      return error(node, Errc::value, "exchanges a message with its own rank");
    if (!node.comm_size || *node.comm_size < 0 || *node.comm_size > amount_max)
      return error(node, Errc::value, "has no comm_size from 0 to 2^56 bytes");
    op.kind = kind;
    op.bytes = static_cast<double>(*node.comm_size);
    op.tag = static_cast<std::uint32_t>(node.comm_tag.value_or(0));
    op.slot = slot_of(peer_slots_, static_cast<std::uint32_t>(*peer), out_.peers);
  }

  template <class Map, class Key, class List>
  static std::uint32_t slot_of(Map& slots, const Key& key, List& list) {
    const auto [found, fresh] = slots.try_emplace(key, static_cast<std::uint32_t>(list.size()));
    if (fresh) list.push_back(key);
    return found->second;
  }

  void collective(const ChakraNode& node, model::Operation& op) {
    if (node.comm_size) ++tally_.with_size;
    if (host_call(node, op)) return;
    const auto type = comm_type(node);
    const auto size = group_size(node);
    if (!type || !size) return;
    double bytes = collective_bytes(node, *type);
    op.collective = mapped(*type);
    // The schema's size of a gather is what one rank gives; nccl-tests count the result.
    if (*type == CommType::all_gather || *type == CommType::gather) bytes *= *size;
    if (*size < 2) {  // stays a compute operation of no time
      ++tally_.of_one_rank;
      return;
    }
    op.kind = Kind::collective;
    op.bytes = bytes;
    op.slot = slot_of(group_slots_, std::string(is_world(node) ? "" : node.group), out_.groups);
    chain(op.slot);
  }

  // NCCL runs the collectives of a communicator one after the other.
  void chain(std::uint32_t slot) {
    last_.resize(out_.groups.size(), UINT32_MAX);
    if (!trace_.from_pytorch) return;
    if (last_[slot] != UINT32_MAX) {
      waits_.push_back(last_[slot]);
      ++tally_.chained;
    }
    last_[slot] = static_cast<std::uint32_t>(out_.program.operations.size());
  }

  std::optional<CommType> comm_type(const ChakraNode& node) {
    if (!node.comm_type) {
      for (const NamedType& named : named_types)
        if (node.name.contains(named.text)) {
          ++tally_.by_name;
          return named.type;
        }
      error(node, Errc::value, "is a collective without comm_type");
      return std::nullopt;
    }
    if (*node.comm_type >= 0 && *node.comm_type < comm_types)
      return static_cast<CommType>(*node.comm_type);
    error(node, Errc::value, fmt::format("has comm_type {}", *node.comm_type),
          "0 all-reduce ... 9 barrier");
    return std::nullopt;
  }

  Collective mapped(CommType type) {
    switch (type) {
      case CommType::all_reduce:
        return Collective::all_reduce;
      case CommType::reduce:
        ++tally_.mapped_reduce;
        return Collective::broadcast;
      case CommType::all_gather:
        return Collective::all_gather;
      case CommType::gather:
        ++tally_.mapped_gather;
        return Collective::all_gather;
      case CommType::scatter:
        ++tally_.mapped_scatter;
        return Collective::all_gather;
      case CommType::broadcast:
        return Collective::broadcast;
      case CommType::all_to_all:
        return Collective::all_to_all;
      case CommType::reduce_scatter:
      case CommType::reduce_scatter_block:
        return Collective::reduce_scatter;
      case CommType::barrier:
        ++tally_.barrier;
        return Collective::all_reduce;
    }
    return Collective::all_reduce;
  }

  double collective_bytes(const ChakraNode& node, CommType type) {
    if (type == CommType::barrier) return 0;
    if (node.comm_size) {
      if (*node.comm_size >= 0 && *node.comm_size <= amount_max)
        return static_cast<double>(*node.comm_size);
      error(node, Errc::value, fmt::format("has comm_size {}", *node.comm_size),
            "from 0 to 2^56 bytes");
      return 0;
    }
    std::uint64_t bytes = tensor_bytes(node.inputs);
    if (bytes == 0) bytes = tensor_bytes(node.outputs);
    ++(bytes > 0 ? tally_.from_tensors : tally_.without_size);
    return static_cast<double>(bytes);
  }

  // "All ranks": no group is named, or it is one that lists no ranks.
  bool is_world(const ChakraNode& node) const {
    if (node.group.empty()) return true;
    const auto* ranks = context_.groups.find(node.group);
    return ranks != nullptr && ranks->empty();
  }

  std::optional<std::uint32_t> group_size(const ChakraNode& node) {
    if (node.group.empty() && !node.all_dims) {
      error(node, Errc::unsupported, "involves only some dimensions of its topology",
            "record process groups (pg_name) instead of involved_dim");
      return std::nullopt;
    }
    if (is_world(node)) return context_.rank_count;
    const auto* ranks = context_.groups.find(node.group);
    if (ranks == nullptr) {
      error(node, Errc::unknown, "uses group " + quote(node.group) + ", which is unknown",
            "provide the groups in a file {\"name\": [ranks...]}");
      return std::nullopt;
    }
    const bool checked = group_slots_.contains(std::string(node.group));
    if (!checked && std::ranges::find(*ranks, context_.rank) == ranks->end()) {
      error(
          node, Errc::value,
          fmt::format("uses group {}, which rank {} is not in", quote(node.group), context_.rank));
      return std::nullopt;
    }
    return static_cast<std::uint32_t>(ranks->size());
  }

  const ChakraTrace& trace_;
  const ChakraContext& context_;
  ChakraTally& tally_;
  ChakraProgram out_;
  Errors errors_;
  std::vector<std::uint32_t> first_, after_;  // by node: what it waits for
  std::vector<std::uint32_t> order_;
  std::vector<std::uint32_t> operation_;  // by node
  std::vector<std::uint32_t> waits_;      // of the node at hand, as operations
  std::vector<std::uint32_t> last_;       // by group slot: its last collective
  std::unordered_map<std::uint32_t, std::uint32_t> peer_slots_;
  std::unordered_map<std::string, std::uint32_t> group_slots_;
  std::uint64_t unpriced_ = 0;
  const ChakraNode* unpriced_example_ = nullptr;
};

}  // namespace

std::uint32_t LabelTable::index(std::string_view text) {
  const auto [found, fresh] =
      index_.try_emplace(std::string(text), static_cast<std::uint32_t>(graph_.labels.size()));
  if (fresh) graph_.labels.emplace_back(text);
  return found->second;
}

Result<ChakraProgram> chakra_program(const ChakraTrace& trace, const ChakraContext& context) {
  return ProgramBuilder(trace, context).build();
}

}  // namespace weft::workload
