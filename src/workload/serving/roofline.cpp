#include "workload/serving/roofline.hpp"

#include <algorithm>
#include <cmath>

#include "workload/parallel/compute.hpp"

namespace weft::workload {
namespace {

constexpr std::uint32_t most_tokens = 65'536, most_history = 1U << 20, most_decodes = 4096;

class Roofline {
 public:
  Roofline(const TransformerSpec& spec, const GpuSpec& gpu, std::uint32_t tp)
      : spec_(spec), gpu_(gpu), tp_(tp), software_(gpu.calibration(Precision::bf16, {})) {}

  KernelProfile profile() const {
    std::vector<double> tokens, layer, embedding, head;
    for (std::uint32_t n = 1; n <= most_tokens; n *= 2) {
      const TrainingPlan plan = plan_of(n);
      tokens.push_back(n);
      layer.push_back(layer_seconds(plan));
      embedding.push_back(
          total_seconds(embedding_kernels(spec_, plan, Pass::forward), gpu_, software_));
      head.push_back(head_seconds(plan));
    }
    return {
        .dense = {{"embedding", LineTable(tokens, embedding)}, {"layer", LineTable(tokens, layer)}},
        .per_sequence = {{"lm_head", LineTable(tokens, head)}},
        .attention = GridTable(grid())};
  }

 private:
  TrainingPlan plan_of(std::uint32_t tokens) const {
    TrainingPlan plan;
    plan.tp = tp_;
    plan.sequence = tokens;
    return plan;
  }
  double layer_seconds(const TrainingPlan& plan) const {
    double sum = 0;
    for (std::uint32_t i = 0; i < spec_.layers; ++i) {
      std::vector<Kernel> kernels = layer_kernels(spec_, plan, i, Pass::forward);
      std::erase_if(kernels, [](const Kernel& k) { return k.kind == Kernel::Kind::attention; });
      sum += total_seconds(kernels, gpu_, software_);
    }
    return sum / spec_.layers;
  }
  // The loss belongs to training alone.
  double head_seconds(const TrainingPlan& plan) const {
    std::vector<Kernel> kernels = head_kernels(spec_, plan, Pass::forward);
    std::erase_if(kernels, [](const Kernel& k) { return k.name == "loss"; });
    return total_seconds(kernels, gpu_, software_);
  }

  // Of that many queries in all, each with `pairs` earlier tokens on average; keys and values of
  // `read` tokens are read.
  double attention(double queries, double pairs, double read, double sequence) const {
    if (queries == 0) return 0;
    const double heads = static_cast<double>(spec_.heads) / tp_;
    const double kv_heads = std::max(1.0, static_cast<double>(spec_.kv_heads) / tp_);
    const double widths = spec_.query_size() + spec_.head_value_size();
    Kernel kernel{.name = "attention", .kind = Kernel::Kind::attention, .sequence = sequence};
    kernel.flops = 2 * queries * pairs * heads * widths;
    kernel.bytes = 2 * (read * kv_heads * widths + queries * heads * widths);
    return kernel_seconds(kernel, gpu_, software_);
  }
  std::vector<GridTable::Row> grid() const {
    const auto powers = [](std::uint32_t from, std::uint32_t to) {
      std::vector<std::uint32_t> out{0};
      for (std::uint32_t x = from; x <= to; x *= 2) out.push_back(x);
      return out;
    };
    std::vector<GridTable::Row> rows;
    for (const std::uint32_t q : powers(16, most_tokens))
      for (const std::uint32_t before : powers(16, q > 0 ? most_history : 0))
        for (const std::uint32_t n : powers(1, most_decodes))
          for (const std::uint32_t kv : powers(16, n > 0 ? most_history : 0)) {
            if (q + n == 0) continue;
            const double prefill =
                attention(q, before + q / 2.0, double{1} * before + q, before + q);
            // A decode's products are bound by memory: no share of the tensor cores' peak counts.
            const double decode = attention(n, kv, double{1} * n * kv, 1e9);
            rows.push_back({{q, before, n, kv}, prefill + decode});
          }
    return rows;
  }

  const TransformerSpec& spec_;
  const GpuSpec& gpu_;
  std::uint32_t tp_;
  const Calibration& software_;
};

}  // namespace

KernelProfile roofline_profile(const TransformerSpec& spec, const GpuSpec& gpu, std::uint32_t tp) {
  return Roofline(spec, gpu, tp).profile();
}

ServedModel served_model(const TransformerSpec& spec) {
  const std::uint32_t width = (spec.query_size() + spec.head_value_size()) / 2;
  return {
      .layers = spec.layers, .hidden = spec.hidden, .kv_heads = spec.kv_heads, .head_dim = width};
}

}  // namespace weft::workload
