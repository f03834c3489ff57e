#include "observe/colltrace/verdict.hpp"

#include "observe/colltrace/hang.hpp"
#include "observe/colltrace/slow.hpp"

namespace weft::observe::colltrace {

std::string to_text(Finding finding) {
  switch (finding) {
    case Finding::stuck:
      return "stuck";
    case Finding::dead:
      return "dead";
    case Finding::dead_or_network:
      return "dead_or_network";
    case Finding::operation:
      return "operation";
    case Finding::size:
      return "size";
    case Finding::type:
      return "type";
    case Finding::order:
      return "order";
    case Finding::skip:
      return "skip";
    case Finding::order_or_skip:
      return "order_or_skip";
    case Finding::network:
      return "network";
    case Finding::slow_rank:
      return "slow_rank";
    case Finding::slow_host:
      return "slow_host";
    case Finding::slow_network:
      return "slow_network";
  }
  return "?";
}

std::string_view meaning(Finding finding) {
  switch (finding) {
    case Finding::stuck:
      return "is outside of any collective, and the others wait for it";
    case Finding::dead:
      return "has ended or left no dump, and the others wait for it";
    case Finding::dead_or_network:
      return "has left no dump, and the others wait for it; it has died, or it waits with them and "
             "the network is at fault";
    case Finding::operation:
      return "called another operation than the others";
    case Finding::size:
      return "called it with another size than the others";
    case Finding::type:
      return "called it with another data type than the others";
    case Finding::order:
      return "called operations in another order than the others";
    case Finding::skip:
      return "left out an operation that the others called";
    case Finding::order_or_skip:
      return "left out an operation or called it later than the others, who recorded nothing "
             "further";
    case Finding::network:
      return "all members are in it and it does not end: network or device";
    case Finding::slow_rank:
      return "computes longer than its peers";
    case Finding::slow_host:
      return "all its ranks compute longer than their peers";
    case Finding::slow_network:
      return "its transfers take longer than those of its kind";
  }
  return "";
}

Report analyse(const Job& job, const AnalysisOptions& options) {
  Report out{.rank_count = job.ranks.size(), .entry_count = job.entries.size()};
  out.missing_count = job.world - job.ranks.size();
  const Cohorts cohorts(job);
  find_hang(job, cohorts, options, out);
  if (!out.is_hang) find_slow(job, cohorts, options, out);
  return out;
}

}  // namespace weft::observe::colltrace
