#include "observe/colltrace/records.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::observe::colltrace {
namespace {

using model::NodeId;

std::string message_of(const model::Fabric& fabric, std::string_view job, const Suspect& s) {
  const std::string what = s.cause == Cause::compute && s.rank
                               ? fmt::format("rank {} on {}", *s.rank, name(fabric, s.entity))
                               : name(fabric, s.entity);
  return fmt::format(
      "job {} is slowed by {} ({}): {:.2f} times the time of its like, probability "
      "{:.3f}",
      job, what, to_text(s.cause), s.factor, s.probability);
}

bool is_of_host(Finding finding) {
  return finding == Finding::stuck || finding == Finding::dead ||
         finding == Finding::dead_or_network;
}

}  // namespace

model::RecordSet to_records(const model::Fabric& fabric, const Job& job, std::string_view job_name,
                            const NetworkReport& report, std::optional<Timestamp> at) {
  constexpr double said_min = 0.5;
  const std::int64_t latest = at ? latest_ns(job, at->ns) : latest_ns(job);
  model::RecordSet out;
  for (const Suspect& s : report.suspects) {
    if (s.cause == Cause::nothing || s.probability < said_min) continue;
    if (s.factor <= 1) continue;  // by probes alone: it is bad, and does not slow the job
    model::Record row;
    row.t = row.until = row.received = at.value_or(Timestamp{latest});
    row.entity = s.entity;
    row.kind = s.cause == Cause::load ? model::EventKind::queue_depth : model::EventKind::job_slow;
    row.source = model::Source::colltrace;
    row.value = s.probability;
    row.id = out.add_id(fmt::format("job:{}/{}/{}", job_name, name(fabric, s.entity), latest));
    row.attrs = out.add_attributes({{"job", std::string(job_name)},
                                    {"cause", std::string(to_text(s.cause))},
                                    {"factor", fmt::format("{:.2f}", s.factor)},
                                    {"message", message_of(fabric, job_name, s)}});
    out.rows.push_back(row);
  }
  return out;
}

void add_hang_records(const model::Fabric& fabric, const Job& job, const Report& report,
                      std::span<const NodeId> gpus, std::string_view job_name,
                      std::optional<Timestamp> at, model::RecordSet& to) {
  if (!report.is_hang) return;
  const std::int64_t latest = at ? latest_ns(job, at->ns) : latest_ns(job);
  std::map<NodeId, std::pair<Finding, std::set<std::uint32_t>>> found;
  for (const Verdict& verdict : report.verdicts) {
    if (!is_of_host(verdict.finding)) continue;
    std::set<NodeId> hosts;
    for (const std::uint32_t rank : verdict.ranks)
      hosts.insert(rank < gpus.size() && gpus[rank].valid() ? fabric.host_of(gpus[rank])
                                                            : NodeId());
    if (hosts.size() != 1 || !hosts.begin()->valid()) continue;
    auto& [finding, ranks] =
        found.try_emplace(*hosts.begin(), verdict.finding, std::set<std::uint32_t>()).first->second;
    ranks.insert(verdict.ranks.begin(), verdict.ranks.end());
  }
  for (const auto& [host, what] : found) {
    const auto& [finding, ranks] = what;
    model::Record row;
    row.t = row.until = row.received = at.value_or(Timestamp{latest});
    row.entity = model::entity(host);
    row.kind = model::EventKind::job_hang;
    row.source = model::Source::colltrace;
    row.value = static_cast<double>(ranks.size());
    const std::string name = model::name(fabric, row.entity);
    row.id = to.add_id(fmt::format("job:{}/hang/{}/{}", job_name, name, latest));
    const std::string who =
        fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
    row.attrs =
        to.add_attributes({{"job", std::string(job_name)},
                           {"finding", to_text(finding)},
                           {"ranks", fmt::format("{}", fmt::join(ranks, ","))},
                           {"message", fmt::format("job {} is stalled, waiting for {} on {}: {}",
                                                   job_name, who, name, meaning(finding))}});
    to.rows.push_back(row);
  }
}

}  // namespace weft::observe::colltrace
