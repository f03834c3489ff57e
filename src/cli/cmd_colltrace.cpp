#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "observe/colltrace/load.hpp"
#include "observe/colltrace/verdict.hpp"

namespace weft::cli {
namespace {

namespace colltrace = observe::colltrace;
using TraceVerdict = colltrace::Verdict;
using TraceJob = colltrace::Job;

struct ColltraceArgs {
  std::vector<std::string> paths;
  std::uint32_t ranks_per_host = 8;
  bool is_stalled = false;
};

constexpr int found_one = 1;  // exit status

std::string ranks_text(const std::vector<std::uint32_t>& numbers) {
  std::string out;
  for (const std::uint32_t n : numbers) out += (out.empty() ? "" : ", ") + std::to_string(n);
  return out;
}

std::string group_text(const colltrace::Group& group) {
  std::string out = group.name;
  if (!group.description.empty()) out += " (" + group.description + ")";
  if (group.is_pair) out += fmt::format(" {} to {}", group.members[0], group.members[1]);
  return out;
}

std::string groups_text(const TraceJob& job, const TraceVerdict& v) {
  std::string out;
  for (std::size_t i = 0; i < std::min<std::size_t>(3, v.groups.size()); ++i)
    out += (i > 0 ? ", " : "") + group_text(job.groups[v.groups[i]]);
  return out + (v.groups.size() > 3 ? fmt::format(" and {} more", v.groups.size() - 3) : "");
}

std::string who_text(const TraceVerdict& v) {
  if (v.ranks.empty()) return v.groups.size() > 1 ? "groups" : "group";
  return (v.ranks.size() > 1 ? "ranks " : "rank ") + ranks_text(v.ranks);
}

void print_trace_verdict(const TraceJob& job, const TraceVerdict& v) {
  const std::string who = v.ranks.empty() ? who_text(v) + " " + groups_text(job, v) : who_text(v);
  fmt::print("{}: {}: {}\n", who, to_text(v.finding), meaning(v.finding));
  if (!v.ranks.empty() && !v.groups.empty())
    fmt::print("  group {}, operation {}{}\n", groups_text(job, v), v.seq,
               v.operation.empty() ? "" : ": " + v.operation);
  if (v.ranks.empty() && !v.operation.empty())
    fmt::print("  operation {}: {}\n", v.seq, v.operation);
  if (!v.found.empty()) fmt::print("  expected {}\n  found    {}\n", v.expected, v.found);
  if (v.factor > 0) fmt::print("  {:.2f} times the time of its peers\n", v.factor);
}

void print_trace_report(const TraceJob& job, const colltrace::Report& report) {
  fmt::print("{} ranks, {} without a trace, {} operations; {} ranks wait in one\n",
             report.rank_count, report.missing_count, report.entry_count, report.waiting_count);
  for (const TraceVerdict& v : report.verdicts) print_trace_verdict(job, v);
  if (report.verdicts.empty()) fmt::print("nothing found\n");
  for (const std::string& note : job.notes) fmt::print("note: {}\n", note);
}

void print_trace_json(const TraceJob& job, const colltrace::Report& report) {
  JsonList verdicts;
  for (const TraceVerdict& v : report.verdicts) {
    JsonList groups;
    for (const std::uint32_t g : v.groups)
      groups.add(JsonObject()
                     .add("name", job.groups[g].name)
                     .add("description", job.groups[g].description)
                     .add("members", job.groups[g].members));
    JsonObject one;
    one.add("finding", v.finding).add("ranks", v.ranks).add("groups", groups);
    if (v.factor > 0)
      one.add("factor", v.factor, digits(4));
    else
      one.add("seq", v.seq);
    one.add_if("operation", v.operation).add_if("expected", v.expected).add_if("found", v.found);
    verdicts.add(one.add("meaning", meaning(v.finding)));
  }
  JsonObject keys;
  for (const auto& [key, times] : job.unknown_keys) keys.add(key, times);
  fmt::print("{}\n", JsonObject()
                         .add("ranks", report.rank_count)
                         .add("missing", report.missing_count)
                         .add("operations", report.entry_count)
                         .add("waiting", report.waiting_count)
                         .add("hang", report.is_hang)
                         .add("verdicts", verdicts)
                         .add("unknown_keys", keys)
                         .add("notes", job.notes)
                         .text());
}

int colltrace_command(const Common& common, const ColltraceArgs& args) {
  const auto job = colltrace::load_job(args.paths);
  if (!job) return report(job.error());
  const colltrace::Report result = colltrace::analyse(
      *job, {.ranks_per_host = args.ranks_per_host, .is_stalled = args.is_stalled});
  if (common.json)
    print_trace_json(*job, result);
  else
    print_trace_report(*job, result);
  return result.verdicts.empty() ? done : found_one;
}

}  // namespace

void add_colltrace(Commands& commands) {
  const auto [command, args] = commands.add<ColltraceArgs>(
      "colltrace", "Find the rank, host or network that a training job waits for",
      colltrace_command);
  command.add_option("paths", args.paths, "Folders or files with dumps of the job's ranks")
      ->required();
  command
      .add_option("--ranks-per-host", args.ranks_per_host,
                  "Where dumps name no hosts: consecutive ranks on one (8)")
      ->check(CLI::Range(1, 1024));
  command.add_flag("--stalled", args.is_stalled,
                   "The job makes no progress; without this it is inferred from the dumps");
}

}  // namespace weft::cli
