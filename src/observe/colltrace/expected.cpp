#include "observe/colltrace/expected.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>

#include "base/text.hpp"
#include "observe/colltrace/median.hpp"

namespace weft::observe::colltrace {
namespace {

using model::NodeId;
using workload::Op;

constexpr double bytes_min = 2 << 20;  // below it the model's error is that of latencies

// NCCL's names and PyTorch's.
std::optional<Op> op_of(std::string_view name) {
  struct Known {
    std::string_view name;
    Op op;
  };
  constexpr auto known = std::to_array<Known>({
      {"AllReduce", Op::all_reduce},
      {"nccl:all_reduce", Op::all_reduce},
      {"nccl:all_reduce_coalesced", Op::all_reduce},
      {"AllGather", Op::all_gather},
      {"nccl:_all_gather_base", Op::all_gather},
      {"nccl:all_gather", Op::all_gather},
      {"ReduceScatter", Op::reduce_scatter},
      {"nccl:_reduce_scatter_base", Op::reduce_scatter},
      {"nccl:reduce_scatter", Op::reduce_scatter},
  });
  const auto at = std::ranges::find(known, name, &Known::name);
  return at == known.end() ? std::nullopt : std::optional(at->op);
}

// NCCL's names and PyTorch's; 0: unknown.
double bytes_of_type(std::string_view text) {
  struct Known {
    std::string_view part;
    double bytes;
  };
  // The first that occurs; longer names stand before those they contain.
  constexpr auto known = std::to_array<Known>({{"Float8", 1},
                                               {"BFloat16", 2},
                                               {"Bfloat16", 2},
                                               {"Float16", 2},
                                               {"Float32", 4},
                                               {"Float64", 8},
                                               {"Half", 2},
                                               {"Double", 8},
                                               {"Float", 4},
                                               {"Int64", 8},
                                               {"Uint64", 8},
                                               {"Int32", 4},
                                               {"Uint32", 4},
                                               {"Int8", 1},
                                               {"Uint8", 1},
                                               {"Char", 1},
                                               {"Byte", 1},
                                               {"Long", 8},
                                               {"Int", 4}});
  for (const Known& k : known)
    if (text.find(k.part) != std::string_view::npos) return k.bytes;
  return 0;
}

// The elements of the largest tensor in "[[4096,1024]] [[32768,1024]]".
double elements_of(std::string_view shapes) {
  double largest = 0, product = 1;
  bool has_number = false;
  for (std::size_t i = 0; i < shapes.size();) {
    if (const char c = shapes[i]; c >= '0' && c <= '9') {
      double value = 0;
      for (; i < shapes.size() && shapes[i] >= '0' && shapes[i] <= '9'; ++i)
        value = value * 10 + (shapes[i] - '0');
      product *= value;
      has_number = true;
      continue;
    } else if (c == ']') {
      if (has_number) largest = std::max(largest, product);
      product = 1;
      has_number = false;
    }
    ++i;
  }
  return largest;
}

std::vector<NodeId> places_of(const Group& group, const NetworkInput& input) {
  std::vector<NodeId> out;
  for (const std::uint32_t rank : group.members)
    if (rank < input.gpus.size() && input.gpus[rank].valid()) out.push_back(input.gpus[rank]);
  return out;
}

}  // namespace

std::optional<KnownCall> known_call(const Signature& signature, std::size_t members) {
  const auto op = op_of(signature.operation);
  const double size = bytes_of_type(signature.type);
  if (!op || size == 0) return {};
  if (signature.size.find('[') != std::string::npos)
    return KnownCall{*op, elements_of(signature.size) * size};
  // The plugin has NCCL's count: of one rank's part where the parts differ.
  const auto count = parse_count({signature.size, {}});
  if (!count) return {};
  const double parts = *op == Op::all_reduce ? 1 : static_cast<double>(members);
  return KnownCall{*op, static_cast<double>(*count) * parts * size};
}

std::vector<Expected> expected_times(const Job& job, const Report& report,
                                     const NetworkInput& input) {
  struct Times {
    std::vector<double> measured, expected;
  };
  std::map<std::tuple<std::string, std::string, double, std::size_t>, Times> kinds;
  for (const Transfer& t : report.transfers) {
    const Group& group = job.groups[t.group];
    const Signature& signature = job.signatures[t.signature];
    const auto call = known_call(signature, group.members.size());
    const std::vector<NodeId> gpus = places_of(group, input);
    if (!call || call->bytes < bytes_min || gpus.size() != group.members.size()) continue;
    const auto machine = workload::machine_of(input.library, input.fabric, gpus);
    if (!machine || machine->shape.hosts < 2) continue;
    const auto planned = workload::plan_call(*machine, call->op, call->bytes, {});
    if (!planned) continue;
    Times& times =
        kinds[{group.description, signature.operation, call->bytes, group.members.size()}];
    times.measured.push_back(t.us);
    times.expected.push_back(planned->cost.seconds() * 1e6);
  }
  std::vector<Expected> out;
  for (auto& [kind, times] : kinds) {
    const std::size_t groups = times.measured.size();
    out.push_back({std::get<1>(kind), std::get<0>(kind), std::get<2>(kind), groups,
                   median(times.measured), median(times.expected)});
  }
  return out;
}

}  // namespace weft::observe::colltrace
