// NVLink SHARP on one host: the NVSwitch sums what GPUs load and multicasts what they store.
#include "workload/collective/nvswitch.hpp"

namespace weft::workload {
namespace {

// What one GPU sends to the switches and gets from them. Every GPU owns an n-th part: to reduce it,
// the switch pulls that part from all n GPUs, the owner's included; to spread it, the owner stores
// it once and all n get it. So a reduction moves S up and S/n down, and a multicast S/n up and S
// down; all-reduce, which is both, S (1 + 1/n) each way.
struct Load {
  double up, down;
};

Load load_of(const Job& job) {
  const double whole = job.bytes(), part = job.share();
  switch (job.op()) {
    case Op::all_gather:
      return {part, whole};
    case Op::reduce_scatter:
      return {whole, part};
    default:
      return {whole + part, whole + part};
  }
}

Result<std::vector<Stage>> nvls_stages(const Job& job) {
  if (job.layout.host_count() > 1)
    return cannot("nvls", "they span several hosts", "use nvls_tree, ring or tree");
  WEFT_TRY(const auto switches, nvswitches(job, "nvls"));
  const Load load = load_of(job);
  Chain chain;
  for (const NodeId gpu : job.request.ranks) {
    append_nvlink(chain, gpu, switches[0], load.up, Direction::to_switches, 0);
    append_nvlink(chain, gpu, switches[0], load.down, Direction::from_switches, 1);
  }
  Stage stage{.name = "nvls", .chains = {std::move(chain)}};
  stage.inner_steps = job.op() == Op::all_reduce ? 4 : 2;  // GPU to switch to GPU, once or twice
  return std::vector{std::move(stage)};
}

}  // namespace

constinit const Algorithm algo::nvls{
    "nvls", {Op::all_reduce, Op::all_gather, Op::reduce_scatter}, nvls_stages};

}  // namespace weft::workload
