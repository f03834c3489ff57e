// Kernel times of a model that nobody profiled, from the roofline of the training half.
#pragma once

#include "workload/parallel/gpu.hpp"
#include "workload/parallel/model_spec.hpp"
#include "workload/serving/profile.hpp"

namespace weft::workload {

// In bf16, forward alone, of one of `tp` ranks. Linear layers, norms, embedding and head are the
// forward kernels of workload/parallel at 1, 2, 4, ... tokens, of one sequence; attention is
// computed on a grid of powers of two as the slower of its products and of reading keys and values
// once, for prefills and decodes each. Where layers differ, their mean. Latent attention keeps keys
// and values as wide as its heads. `spec.heads` must divide by `tp`.
KernelProfile roofline_profile(const TransformerSpec& spec, const GpuSpec& gpu, std::uint32_t tp);

ServedModel served_model(const TransformerSpec& spec);

}  // namespace weft::workload
