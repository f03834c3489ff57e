#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/file.hpp"
#include "base/line_reader.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/colltrace_hashes.hpp"
#include "cli/commands.hpp"
#include "model/formats/build_fabric.hpp"
#include "observe/colltrace/load.hpp"
#include "observe/colltrace/network.hpp"
#include "observe/colltrace/picture.hpp"
#include "observe/colltrace/records.hpp"
#include "observe/colltrace/trace_json.hpp"
#include "observe/colltrace/verdict.hpp"
#include "plan/place/host_names.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

namespace colltrace = observe::colltrace;
using TraceVerdict = colltrace::Verdict;
using TraceJob = colltrace::Job;

struct ColltraceArgs {
  std::vector<std::string> paths, hashes;
  std::uint32_t ranks_per_host = 8;
  bool is_stalled = false;
  std::string fabric, hosts, evidence, counters, records, page;
  std::string job = "job";
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

std::string counts_text(const colltrace::Report& report) {
  return fmt::format("{} ranks, {} without a trace, {} operations; {} ranks wait in one\n",
                     report.rank_count, report.missing_count, report.entry_count,
                     report.waiting_count);
}

void print_trace_report(const TraceJob& job, const colltrace::Report& report) {
  fmt::print("{}", counts_text(report));
  for (const TraceVerdict& v : report.verdicts) print_trace_verdict(job, v);
  if (report.verdicts.empty()) fmt::print("nothing found\n");
  for (const std::string& note : job.notes) fmt::print("note: {}\n", note);
}

Status write_trace_page(const TraceJob& job, const colltrace::Report& report,
                        const ColltraceArgs& args) {
  std::string table = counts_text(report);
  for (const TraceVerdict& v : report.verdicts)
    table += fmt::format("{}: {}: {}\n",
                         who_text(v) + (v.ranks.empty() ? " " + groups_text(job, v) : ""),
                         to_text(v.finding), meaning(v.finding));
  const std::string json = to_json(make_picture(job, report), job, report);
  return write_file(args.page, plan::report::page_text({.title = args.paths.front(),
                                                        .command = "colltrace",
                                                        .table = table,
                                                        .data = {{"colltrace-data", json}}}));
}

// What --fabric brings in.
struct TraceNetwork {
  model::Fabric fabric;
  std::vector<model::NodeId> gpus;  // by rank
  model::EvidenceSet probes;
  std::vector<observe::localise::LinkCounters> counters;
  colltrace::NetworkReport report;
};

// The GPUs of the ranks, host by host as they come: by the traces' host names, or by the list.
Result<std::vector<model::NodeId>> places_of_ranks(const model::Fabric& fabric, TraceJob& job,
                                                   const ColltraceArgs& args) {
  const plan::place::HostNames names(fabric);
  std::vector<std::optional<std::uint32_t>> of_rank(job.world);
  if (!args.hosts.empty()) {
    WEFT_TRY(const auto hosts, names.read({args.hosts, {"--hosts", 0, 0}}));
    for (std::uint32_t r = 0; r < job.world; ++r)
      if (const std::size_t i = r / args.ranks_per_host; i < hosts.size()) of_rank[r] = hosts[i];
  } else {
    for (const colltrace::RankTrace& r : job.ranks) of_rank[r.rank] = names.find(r.host);
  }
  return place_ranks(fabric, job, of_rank);
}

Result<TraceNetwork> judge_trace_network(const Common& common, const ColltraceArgs& args,
                                         TraceJob& job, const colltrace::Report& result) {
  TraceNetwork out;
  WEFT_TRY(const model::LoadOptions options, common.load_options(collective_file_keys()));
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(args.fabric, options));
  WEFT_TRY(out.fabric, model::build_fabric(file.variants.front().section("fabric")));
  Errors errors;
  const workload::Library library =
      workload::read_library(file.variants.front().section("collectives"), errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(out.gpus, places_of_ranks(out.fabric, job, args));
  if (!args.evidence.empty()) {
    WEFT_TRY(LineReader lines, LineReader::open(args.evidence));
    WEFT_TRY(out.probes, model::read_evidence(out.fabric, lines));
  }
  if (!args.counters.empty()) {
    WEFT_TRY(LineReader lines, LineReader::open(args.counters));
    WEFT_TRY(out.counters, observe::localise::read_counters(out.fabric, lines));
  }
  WEFT_TRY(out.report, colltrace::judge_network(job, result,
                                                {.fabric = out.fabric,
                                                 .gpus = out.gpus,
                                                 .probes = &out.probes,
                                                 .counters = out.counters,
                                                 .library = library}));
  if (args.records.empty()) return out;
  model::RecordSet records = to_records(out.fabric, job, args.job, out.report);
  add_hang_records(out.fabric, job, result, out.gpus, args.job, {}, records);
  std::string text;
  for (const model::Record& row : records.rows) text += to_json(out.fabric, records, row) + "\n";
  WEFT_TRY_STATUS(write_file(args.records, text));
  return out;
}

std::string suspect_name(const TraceNetwork& n, const colltrace::Suspect& s) {
  if (s.cause == colltrace::Cause::nothing) return "-";
  const std::string entity = model::name(n.fabric, s.entity);
  return s.rank ? fmt::format("rank {} ({})", *s.rank, entity) : entity;
}

void print_suspects(const TraceNetwork& n) {
  constexpr std::size_t shown_max = 6;
  const colltrace::NetworkReport& r = n.report;
  fmt::print(
      "is it the network? network {:.3f}, compute {:.3f}, load of others {:.3f}, nothing {:.3f}\n",
      r.network, r.compute, r.load, r.nothing);
  fmt::print("  by {} edges, {} groups, {} rows of probes, counters of {} links\n", r.edge_count,
             r.group_count, r.probe_rows, r.counter_rows);
  using Align = Table::Align;
  Table table({{"part", Align::left}, {"cause", Align::left}, {"probability"}, {"time"}});
  for (const colltrace::Suspect& s :
       std::span(r.suspects).first(std::min(shown_max, r.suspects.size())))
    table.add({suspect_name(n, s), std::string(to_text(s.cause)),
               fmt::format("{:.3f}", s.probability),
               s.factor > 1 ? fmt::format("x {:.2f}", s.factor) : ""});
  fmt::print("{}", table.text());
}

void print_trace_network(const TraceNetwork& n) {
  const colltrace::NetworkReport& r = n.report;
  if (r.is_judged)
    print_suspects(n);
  else
    fmt::print(
        "is it the network? cannot tell: no edges, and no measured times of enough groups or ranks "
        "to compare\n");
  for (const colltrace::Expected& e : r.expected)
    fmt::print("{} of {:.0f} MiB in {} groups{}: {:.0f} us, {:.2f} times the expected {:.0f} us\n",
               e.operation, e.bytes / (1 << 20), e.groups,
               e.description.empty() ? "" : " (" + e.description + ")", e.measured_us, e.ratio(),
               e.expected_us);
  if (r.slow_fabric > 0)
    fmt::print("slow_fabric: all collectives take {:.2f} times what a sound fabric would\n",
               r.slow_fabric);
}

void print_trace_json(const TraceJob& job, const colltrace::Report& report,
                      const TraceNetwork* network) {
  std::optional<colltrace::JudgedNetwork> judged;
  if (network != nullptr) judged.emplace(network->fabric, network->report);
  fmt::print("{}\n", to_json(job, report, judged ? &*judged : nullptr).text());
}

int colltrace_command(const Common& common, const ColltraceArgs& args) {
  if (args.paths.empty() == args.hashes.empty())
    return report({Errc::value,
                   {},
                   "give either dumps of the job's ranks, or --hashes",
                   "weft colltrace FOLDER, or weft colltrace --hashes FOLDER",
                   {}});
  if (!args.hashes.empty() && args.fabric.empty() != args.records.empty())
    return report({Errc::value,
                   {"--fabric", 0, 0},
                   "with --hashes, --fabric and --records belong together",
                   "add --records FILE, or leave --fabric out",
                   {}});
  if (!args.hashes.empty())
    return run_hashes(common, {.paths = args.hashes,
                               .fabric = args.fabric,
                               .hosts = args.hosts,
                               .records = args.records,
                               .job = args.job,
                               .ranks_per_host = args.ranks_per_host});
  auto job = colltrace::load_job(args.paths, args.job);
  if (!job) return report(job.error());
  const colltrace::Report result = colltrace::analyse(
      *job, {.ranks_per_host = args.ranks_per_host, .is_stalled = args.is_stalled});
  std::optional<TraceNetwork> network;
  if (!args.fabric.empty()) {
    auto judged = judge_trace_network(common, args, *job, result);
    if (!judged) return report(judged.error());
    network = std::move(*judged);
  }
  if (!args.page.empty())
    if (const Status written = write_trace_page(*job, result, args); !written)
      return report(written.error());
  if (common.json) {
    print_trace_json(*job, result, network ? &*network : nullptr);
  } else {
    print_trace_report(*job, result);
    if (network) print_trace_network(*network);
  }
  const bool is_found = network && ((network->report.is_judged && network->report.nothing < 0.5) ||
                                    network->report.slow_fabric > 0);
  return result.verdicts.empty() && !is_found ? done : found_one;
}

}  // namespace

void add_colltrace(Commands& commands) {
  const auto [command, args] = commands.add<ColltraceArgs>(
      "colltrace", "Find the rank, host or network that a training job waits for",
      colltrace_command);
  command.add_option("paths", args.paths, "Folders or files with dumps of the job's ranks");
  command
      .add_option("--ranks-per-host", args.ranks_per_host,
                  "Where dumps name no hosts: consecutive ranks on one (8)")
      ->check(CLI::Range(1, 1024));
  CLI::Option* stalled =
      command.add_flag("--stalled", args.is_stalled,
                       "The job makes no progress; without this it is inferred from the dumps");
  CLI::Option* page = command.add_option(
      "--page", args.page, "HTML file: waits by rank and group, who waits for whom, a time line");
  CLI::Option* fabric = command.add_option(
      "--fabric", args.fabric, "Scenario or fabric: is it the network, and which part of it?");
  const auto with_fabric = [&](const char* name, std::string& to, const char* text) {
    return command.add_option(name, to, text)->needs(fabric);
  };
  with_fabric("--hosts", args.hosts,
              "Hosts of the ranks in order, e.g. host[0-15]; else by the traces' host names");
  CLI::Option* hashes =
      command.add_option("--hashes", args.hashes,
                         "Instead of dumps: CSV of hashes; which rank, edge or input differs?");
  hashes->excludes(page)->excludes(stalled);
  with_fabric("--evidence", args.evidence, "Evidence of probes as JSON lines")->excludes(hashes);
  with_fabric("--counters", args.counters, "Link counters as JSON lines")->excludes(hashes);
  with_fabric("--records", args.records, "File for what is found, as records for weft triage");
  command.add_option("--job", args.job,
                     "Which job, where the rings name several; its name in the records (job)");
}

}  // namespace weft::cli
