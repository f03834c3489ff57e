// SimAI/AICB workload text: from the header to ranks, and what a person should know about the step.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.hpp"
#include "workload/trace/load.hpp"
#include "workload/trace/simai_file.hpp"
#include "workload/trace/simai_graph.hpp"
#include "workload/trace/simai_policy.hpp"
#include "workload/trace/trace.hpp"

namespace weft::workload {
namespace {

struct Sizes {
  std::uint64_t tp, ep, pp;
  std::uint64_t unit() const { return tp * pp; }  // ranks of one data-parallel replica
};

std::uint64_t value_or(const std::optional<SimaiValue>& value, std::uint64_t fallback) {
  return value ? value->value : fallback;
}

Status check_keys(const SimaiFile& file) {
  const std::uint64_t pp = value_or(file.pp, 1);
  if (pp == 1 && value_or(file.pp_comm, 0) > 0)
    return fail(
        Errc::infeasible, file.pp_comm->where,
        fmt::format("pp_comm is {} bytes, but pp is 1: a single stage has no stage to send to",
                    file.pp_comm->value),
        "remove pp_comm, or set pp");
  if (pp > 1 && !file.pp_comm)
    return fail(
        Errc::infeasible, file.pp->where,
        fmt::format("pp is {}, but pp_comm is missing: the bytes sent by a stage are unknown", pp),
        "add pp_comm: BYTES; 0 to send nothing");
  if (!(file.checkpoints.empty() && file.initiates.empty()) &&
      file.policy != SimaiPolicy::transformer_recomputing)
    return fail(
        Errc::infeasible, file.where,
        fmt::format("{} does not recompute, but there are checkpoints", to_text(file.policy)),
        "choose HYBRID_TRANSFORMER_FWD_IN_BCKWD, or write checkpoints: 0");
  if (file.last_bottom_layer && file.last_bottom_layer->value >= file.lines.size())
    return fail(Errc::value, file.last_bottom_layer->where,
                fmt::format("DLRM_LAST_BOTTOM_LAYER is {}, but there are {} layers",
                            file.last_bottom_layer->value, file.lines.size()),
                "layers are numbered from 0");
  return {};
}

// Policies without two kinds of groups take none of the sizes.
Result<Sizes> read_sizes(const SimaiFile& file) {
  const SimaiRules rules = simai_rules(file.policy);
  if (rules.ranks == SimaiRules::Ranks::hybrid) {
    if (file.tp) return Sizes{file.tp->value, value_or(file.ep, 1), value_or(file.pp, 1)};
    return fail(Errc::parse, file.where,
                fmt::format("{} needs the size of its model-parallel groups", to_text(file.policy)),
                "add model_parallel_NPU_group: N");
  }
  for (const auto* key : {&file.tp, &file.ep, &file.pp})
    if (value_or(*key, 1) > 1)
      return fail(Errc::infeasible, (*key)->where,
                  fmt::format("{} has one group of all ranks, but the header gives groups of {}",
                              to_text(file.policy), (*key)->value),
                  "remove the key, or choose HYBRID_TRANSFORMER");
  return Sizes{1, 1, 1};
}

// Where nobody says: one host of 8, or two replicas where one is larger.
std::uint64_t assumed_ranks(const Sizes& sizes) {
  const std::uint64_t least = sizes.unit() * sizes.ep;
  const std::uint64_t replicas = std::max<std::uint64_t>(2, (8 + least - 1) / least);
  return least * replicas;
}

Result<SimaiGrid> make_grid(const SimaiFile& file, const Sizes& sizes, std::uint64_t ranks,
                            const Where& where) {
  const auto of = [](std::uint64_t count) { return static_cast<std::uint32_t>(count); };
  const double unit = static_cast<double>(sizes.tp) * static_cast<double>(sizes.pp);
  if (unit > static_cast<double>(simai_ranks_max) || ranks > simai_ranks_max)
    return fail(Errc::infeasible, where,
                fmt::format("{} ranks, TP {} x PP {} = {:.0f}: more than {}", ranks, sizes.tp,
                            sizes.pp, unit, simai_ranks_max),
                "choose fewer ranks");
  if (ranks == 0 || ranks % sizes.unit() != 0)
    return fail(
        Errc::infeasible, where,
        fmt::format("{} ranks / (TP {} x PP {}) = {:.6g} data-parallel ranks", ranks, sizes.tp,
                    sizes.pp, static_cast<double>(ranks) / static_cast<double>(sizes.unit())),
        fmt::format("choose a multiple of {}", sizes.unit()));
  const std::uint64_t dp = ranks / sizes.unit();
  if (dp % sizes.ep != 0)
    return fail(Errc::infeasible, where,
                fmt::format("DP {} = {} / (TP {} x PP {}) is not a multiple of EP {}: expert "
                            "groups are made of data-parallel ranks",
                            dp, ranks, sizes.tp, sizes.pp, sizes.ep),
                fmt::format("choose a multiple of {} ranks", sizes.unit() * sizes.ep));
  SimaiGrid grid{of(sizes.tp), of(sizes.ep), of(dp / sizes.ep), of(sizes.pp)};
  switch (simai_rules(file.policy).ranks) {
    case SimaiRules::Ranks::all_model:
      return SimaiGrid{of(ranks), 1, 1, 1};
    case SimaiRules::Ranks::all_data:
      return SimaiGrid{1, 1, of(ranks), 1};
    case SimaiRules::Ranks::hybrid:
      break;
  }
  if (file.policy == SimaiPolicy::model_data) grid.innermost = SimaiGrid::Innermost::dp;
  return grid;
}

// The notes of one workload, in the order in which questions come up.
class Notes {
 public:
  Notes(const SimaiFile& file, const SimaiGrid& grid, const SimaiStep& step)
      : file_(file), grid_(grid), step_(step) {}

  std::vector<std::string> take() { return std::move(out_); }

  void ranks(std::uint64_t count, const TraceOptions& options) {
    const std::string plan =
        fmt::format("TP {} x EP {} x DP/EP {} x PP {}", grid_.tp, grid_.ep, grid_.dp_ep, grid_.pp);
    if (options.ranks && file_.all_gpus && file_.all_gpus->value != count)
      add("{} ranks instead of the {} in the file: {}; collective sizes stay as recorded", count,
          file_.all_gpus->value, plan);
    else if (!options.ranks && !file_.all_gpus)
      add("the header has no all_gpus: {} ranks are assumed ({}); set the number with ranks", count,
          plan);
    add("ranks: {}, {}; experts within the data-parallel ranks", plan,
        grid_.innermost == SimaiGrid::Innermost::dp ? "rank = dp + DP (tp + TP pp)"
                                                    : "rank = tp + TP (dp + DP pp)");
    if (step_.actor == SimaiActor::expert_group)
      add("the {} ranks of an expert group run in lockstep, because of their all-to-all",
          grid_.tp * grid_.ep);
  }

  void order() {
    using Order = SimaiRules::Order;
    const SimaiRules rules = simai_rules(file_.policy);
    if (rules.order == Order::layer_by_layer)
      add("MICRO: all passes of a layer, then the next layer");
    else if (rules.order == Order::forward_only)
      add("DISTRIBUTED_INFERENCE: forward only; gradients of {} layers are skipped", step_.skipped);
    else
      add("{}: the forward of all layers, then the gradients from the last layer to the first; "
          "weight-gradient collectives run beside them, one at a time",
          to_text(file_.policy));
    add("computes under 1 us (AICB writes 1 ns where it has no time) are merged into the next one; "
        "their sum is preserved");
  }

  void pipeline() {
    if (step_.pipeline == SimaiPipeline::none) return;
    const std::uint64_t vpp = value_or(file_.vpp, 1), ga = value_or(file_.ga, 1);
    const double share = static_cast<double>(grid_.pp - 1) / static_cast<double>(vpp * ga);
    add("every pipeline stage runs the layers in the file, which are those of one rank: its "
        "embedding and head are on all {} stages",
        grid_.pp);
    if (step_.pipeline == SimaiPipeline::units)
      add("pipeline: {} units (VPP {} x GA {}), each waits for {} bytes from the previous stage: "
          "all forwards, then all backwards, so the bubble is about (PP-1)/(VPP GA) = {:.4f}; "
          "chunks that wrap around from the last stage to the first must arrive before the pass "
          "ends",
          vpp * ga, vpp, ga, file_.pp_comm->value, share);
    else
      add("pipeline: the layers do not contain VPP {} x GA {} units: the bubble is one operation "
          "of (PP-1)/(VPP GA) = {:.4f} of the compute, and the {} bytes between neighbours are one "
          "message in each direction",
          vpp, ga, share,
          static_cast<double>(file_.pp_comm->value) * static_cast<double>(vpp * ga));
  }

  void leftovers() {
    if (step_.empty > 0) add("{} collectives of 0 bytes move no data", step_.empty);
    if (step_.alone > 0)
      add("{} collectives in groups of one rank ({:.0f} bytes in total) move no data, as in SimAI; "
          "those meant for the data-parallel ranks (ZeRO) need the suffix _DP_EP",
          step_.alone, step_.alone_bytes);
    if (file_.none_with_bytes > 0)
      add("{} columns are NONE with a size: no data is moved", file_.none_with_bytes);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    out_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  const SimaiFile& file_;
  const SimaiGrid& grid_;
  const SimaiStep& step_;
  std::vector<std::string> out_;
};

void summarise_simai(const SimaiFile& file, const SimaiGrid& grid, const SimaiStep& step,
                     RecordedWorkload& out) {
  out.counts = {{"layers", file.lines.size()},
                {"ranks", grid.rank_count()},
                {"TP", grid.tp},
                {"EP", grid.ep},
                {"DP", grid.dp()},
                {"PP", grid.pp},
                {"computes of a rank", step.compute_operations},
                {"collectives of a rank", step.collectives},
                {"pipeline messages of a rank", step.messages}};
  out.times_s = {
      {"compute of a step", step.forward_s + step.input_gradient_s + step.weight_gradient_s +
                                step.recompute_s + step.update_s},
      {"forward", step.forward_s},
      {"input gradient", step.input_gradient_s},
      {"weight gradient", step.weight_gradient_s},
      {"update", step.update_s}};
  if (step.recompute_s > 0) out.times_s.emplace_back("recomputed forward", step.recompute_s);
  if (step.bubble_s > 0) out.times_s.emplace_back("pipeline bubble", step.bubble_s);
}

}  // namespace

bool is_simai(const TraceFile& file) {
  const std::string_view text = std::string_view(file.content).substr(0, 4096);
  const std::string_view first = text.substr(0, text.find('\n'));
  return simai_policy_at(text) || first.find("model_parallel_NPU_group") != first.npos;
}

Result<RecordedWorkload> read_simai(const TraceFile& file, const TraceOptions& options) {
  if (file.content.size() > trace_bytes_max)
    return fail(Errc::value, {file.path}, "the file is larger than 2 GiB", "split it");
  WEFT_TRY(const SimaiFile simai, parse_simai(file.content, file.path));
  WEFT_TRY_STATUS(check_keys(simai));
  WEFT_TRY(const Sizes sizes, read_sizes(simai));
  const std::uint64_t ranks =
      options.ranks ? *options.ranks : value_or(simai.all_gpus, assumed_ranks(sizes));
  const Where where = simai.all_gpus && !options.ranks ? simai.all_gpus->where : simai.where;
  WEFT_TRY(const SimaiGrid grid, make_grid(simai, sizes, ranks, where));
  WEFT_TRY(SimaiStep step, build_simai_step(simai, grid));
  RecordedWorkload out;
  out.format = "simai";
  Notes notes(simai, grid, step);
  notes.ranks(ranks, options);
  notes.order();
  notes.pipeline();
  notes.leftovers();
  out.notes = notes.take();
  summarise_simai(simai, grid, step, out);
  out.graph = std::move(step.graph);
  return out;
}

}  // namespace weft::workload
