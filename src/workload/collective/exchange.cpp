#include "workload/collective/exchange.hpp"

namespace weft::workload {

Stage all_pairs(const Job& job, std::string name, double bytes) {
  Stage stage{.name = std::move(name)};
  stage.exchanges.push_back({.ranks = job.request.ranks,
                             .bytes_per_pair = bytes,
                             .matrix = {},
                             .window = job.size() - 1,
                             .end_round = job.size()});
  set_flow_latency(job, stage);
  return stage;
}

}  // namespace weft::workload
