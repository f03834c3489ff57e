#include "observe/colltrace/trace_json.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace weft::observe::colltrace {
namespace {

// Of the ranks, where their traces name them.
std::vector<std::string> hosts_of(const Job& job, const std::vector<std::uint32_t>& ranks) {
  std::set<std::string> out;
  for (const std::uint32_t rank : ranks) {
    const auto at = std::ranges::lower_bound(job.ranks, rank, {}, &RankTrace::rank);
    if (at != job.ranks.end() && at->rank == rank && !at->host.empty()) out.insert(at->host);
  }
  return {out.begin(), out.end()};
}

JsonObject verdict_json(const Job& job, const Verdict& v) {
  JsonList groups;
  for (const std::uint32_t g : v.groups)
    groups.add(JsonObject()
                   .add("name", job.groups[g].name)
                   .add("description", job.groups[g].description)
                   .add("members", job.groups[g].members));
  JsonObject out;
  out.add("finding", v.finding).add("ranks", v.ranks).add_if("hosts", hosts_of(job, v.ranks));
  out.add("groups", groups);
  if (v.factor > 0)
    out.add("factor", v.factor, digits(4));
  else
    out.add("seq", v.seq);
  return out.add_if("operation", v.operation)
      .add_if("expected", v.expected)
      .add_if("found", v.found)
      .add("meaning", meaning(v.finding));
}

JsonObject network_json(const JudgedNetwork& n) {
  const NetworkReport& r = n.report;
  JsonList suspects, expected;
  for (const Suspect& s : r.suspects) {
    JsonObject one;
    one.add("cause", to_text(s.cause)).add("probability", s.probability, digits(4));
    if (s.cause != Cause::nothing) one.add("entity", model::name(n.fabric, s.entity));
    if (s.rank) one.add("rank", *s.rank);
    suspects.add(one.add("factor", s.factor, digits(3)).add("edges", s.edges));
  }
  for (const Expected& e : r.expected)
    expected.add(JsonObject()
                     .add("operation", e.operation)
                     .add("group", e.description)
                     .add("bytes", e.bytes, digits(15))
                     .add("groups", e.groups)
                     .add("measured_s", e.measured_us * 1e-6, digits(6))
                     .add("expected_s", e.expected_us * 1e-6, digits(6)));
  return JsonObject()
      .add("judged", r.is_judged)
      .add("network", r.network, digits(4))
      .add("compute", r.compute, digits(4))
      .add("load", r.load, digits(4))
      .add("nothing", r.nothing, digits(4))
      .add("suspects", suspects)
      .add("expected", expected)
      .add("slow_fabric", r.slow_fabric, digits(4))
      .add("edges", r.edge_count)
      .add("groups", r.group_count)
      .add("probe_rows", r.probe_rows)
      .add("counter_rows", r.counter_rows);
}

}  // namespace

JsonObject to_json(const Job& job, const Report& report, const JudgedNetwork* network) {
  JsonList verdicts;
  for (const Verdict& v : report.verdicts) verdicts.add(verdict_json(job, v));
  JsonObject keys;
  for (const auto& [key, times] : job.unknown_keys) keys.add(key, times);
  JsonObject out;
  out.add("ranks", report.rank_count)
      .add("missing", report.missing_count)
      .add("operations", report.entry_count)
      .add("waiting", report.waiting_count)
      .add("hang", report.is_hang)
      .add("verdicts", verdicts);
  if (network != nullptr) out.add("network", network_json(*network));
  return out.add("unknown_keys", keys).add("notes", job.notes);
}

}  // namespace weft::observe::colltrace
