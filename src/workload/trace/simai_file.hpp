// SimAI/AICB workload text as the file says it, before anything is made of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::workload {

enum class SimaiPolicy : std::uint8_t {
  transformer,              // HYBRID_TRANSFORMER
  transformer_recomputing,  // HYBRID_TRANSFORMER_FWD_IN_BCKWD
  data,
  model,
  data_model,  // HYBRID_DATA_MODEL
  model_data,  // HYBRID_MODEL_DATA
  dlrm,
  dlrm_enhanced,
  customized,
  micro,
  inference,  // DISTRIBUTED_INFERENCE
};
std::string_view to_text(SimaiPolicy policy);  // as the file spells it

struct SimaiComm {
  enum class Kind : std::uint8_t {
    none,
    all_reduce,
    all_gather,
    reduce_scatter,
    all_to_all,
    all_reduce_all_to_all,  // one after the other
    broadcast,
  };
  // `natural`: no suffix, the tensor-parallel group in forward and input gradient, the
  // data-parallel group in weight gradient.
  enum class Group : std::uint8_t { natural, ep, dp_ep };
  Kind kind = Kind::none;
  Group group = Group::natural;
  std::uint64_t bytes = 0;
};

struct SimaiPass {
  std::uint64_t compute_ns = 0;
  SimaiComm comm;
};

struct SimaiLine {
  std::string_view name;  // into the text
  SimaiPass forward, input_gradient, weight_gradient;
  std::uint64_t update_ns = 0;
  std::optional<SimaiPolicy> policy;  // HYBRID_CUSTOMIZED: of this line
};

// A number of the header and where it stands.
struct SimaiValue {
  std::uint64_t value;
  Where where;
};

struct SimaiFile {
  SimaiPolicy policy = SimaiPolicy::transformer;
  Where where;  // of the policy
  std::optional<SimaiValue> tp, ep, pp, vpp, ga, all_gpus, pp_comm, last_bottom_layer;
  std::vector<std::uint32_t> checkpoints;  // lines whose input is kept
  std::vector<std::uint32_t> initiates;    // lines whose backward first runs the forward again
  std::vector<SimaiLine> lines;
  std::uint64_t none_with_bytes = 0;  // columns "NONE" with a size
};

// The policy that `text` starts with, if any.
std::optional<SimaiPolicy> simai_policy_at(std::string_view text);

// `text` must outlive the result. Every number is read as 64 bits, unsigned.
// Fails: Errc::parse / unknown / value with file:line:column, up to a hundred errors: a line
// without exactly 12 columns (13 for HYBRID_CUSTOMIZED), more or fewer lines than line 2 says, an
// unknown policy, key, collective or suffix, a number that does not fit.
// Bounds: 10 M lines, 2^20 checkpoints; times to 1e15 ns, sizes to 1e18 bytes.
Result<SimaiFile> parse_simai(std::string_view text, const std::string& file);

}  // namespace weft::workload
