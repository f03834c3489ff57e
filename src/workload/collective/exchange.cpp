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

void expand_all_pairs(const Job& job, Whose whose, Message::Action action, MessageWriter& out) {
  const std::uint32_t n = job.size();
  for (std::uint32_t d = 1; d < n; ++d)
    for (Rank from = 0; from < n; ++from) {
      const Rank to = (from + d) % n;
      const std::uint32_t blocks[] = {whose == Whose::sender ? from : to};
      out.send({from, to, job.share(), action}, blocks);
    }
  out.end_step();
}

}  // namespace weft::workload
