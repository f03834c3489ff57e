#include "cli/cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "cli/cmd_agent.hpp"
#include "cli/cmd_gnmi.hpp"
#include "cli/cmd_lab.hpp"
#include "cli/cmd_localise.hpp"
#include "cli/cmd_poll.hpp"
#include "cli/cmd_probe.hpp"
#include "cli/cmd_rehearse.hpp"
#include "cli/cmd_respond.hpp"
#include "cli/cmd_send.hpp"
#include "cli/cmd_serve.hpp"
#include "cli/cmd_sli.hpp"
#include "cli/cmd_snapshot.hpp"
#include "cli/cmd_storm.hpp"
#include "cli/cmd_traps.hpp"
#include "cli/cmd_triage.hpp"
#include "plan/run/setup.hpp"

namespace weft::cli {
namespace {

// The command as typed, less what does not change a result: reports must not depend on it.
std::string command_text(int argc, char** argv) {
  const std::vector<std::string> with_value{"--out", "-o", "--threads", "--csv"};
  const std::vector<std::string> alone{"--json", "--quiet", "-q"};
  const auto is_one_of = [](const std::vector<std::string>& names, const std::string& arg) {
    return std::ranges::any_of(
        names, [&](const std::string& name) { return arg == name || arg.starts_with(name + "="); });
  };
  std::string out = "weft";
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (is_one_of(alone, arg)) continue;
    if (is_one_of(with_value, arg)) {
      if (arg.find('=') == std::string::npos) ++i;
      continue;
    }
    out += " " + arg;
  }
  return out;
}

// CLI11 would take "-1" for the largest seed, and cut what is larger.
std::uint64_t seed_of(const std::string& text) {
  const auto seed = parse_count({text, {}});
  if (!seed) throw CLI::ValidationError("--seed", seed.error().text());
  return static_cast<std::uint64_t>(*seed);
}

// Global options stand before or behind the command.
void add_common(CLI::App& app, Common& common) {
  app.add_option_function<std::string>(
         "--seed", [&common](const std::string& text) { common.seed = seed_of(text); },
         "Seed for hashes and random choices")
      ->type_name("UINT");
  app.add_option("--threads", common.threads, "Threads to use; 0 for one per core");
  app.add_option("--set", common.set, "KEY.PATH=VALUE: overrides one key of the scenario")
      ->take_all();
  app.add_flag("-q,--quiet", common.quiet, "No progress output on the terminal");
  app.add_flag("--json", common.json, "Machine-readable output on standard output");
}

// Every command's options and the call that they lead to.
class Commands {
 public:
  Commands(CLI::App& app, Common& common) : app_(app), common_(common) {
    add_run();
    add_explain();
    add_flows();
    add_perf();
    add_trace();
    add_sweep();
    add_export();
    add_agent(*add("agent", "Monitor the local machine and report faults",
                   [this] { return agent_command(common_, agent_); }),
              agent_);
    add_lab(*add("lab", "Emulate a fabric with network namespaces, real packets and BGP",
                 [this] { return lab_command(common_, lab_); }),
            lab_);
    add_localise(*add("localise", "Locate the links, switches and hosts that lose probes",
                      [this] { return localise_command(common_, localise_); }),
                 localise_);
    add_gnmi(*add("gnmi", "Subscribe to device telemetry (gNMI); print records or samples",
                  [this] { return gnmi_command(common_, gnmi_); }),
             gnmi_);
    add_poll(*add("poll", "Poll devices by SNMP, or Prometheus exporters; print records",
                  [this] { return poll_command(common_, poll_); }),
             poll_);
    add_traps(*add("traps", "Receive SNMP traps; print records",
                   [this] { return traps_command(common_, traps_); }),
              traps_);
    add_rehearse(*add("rehearse", "Simulate weeks of network operations in seconds",
                      [this] { return rehearse_command(common_, rehearse_); }),
                 rehearse_);
    add_send(*add("send", "Send lines from standard input to a service until they are acknowledged",
                  [this] { return send_command(common_, send_); }),
             send_);
    add_snapshot(*add("snapshot", "Show, check or export the evidence collected for a case",
                      [this] { return snapshot_command(common_, snapshot_); }),
                 snapshot_);
    add_serve(
        *add("serve", "Run all of operations as one service: cases, repairs, SLI minutes, HTTP API",
             [this] { return serve_command(common_, serve_); }),
        serve_);
    add_sli(*add("sli", "Count good and bad minutes and find their causes",
                 [this] { return sli_command(common_, sli_); }),
            sli_);
    add_respond(*add("respond", "Answer authenticated probes until stopped by a signal",
                     [this] { return respond_command(common_, respond_); }),
                respond_);
    CLI::App* probe = add("probe", "Probe hosts and report loss and latency",
                          [this] { return probe_command(common_, probe_); });
    add_common(*add_probe(*probe, probe_), common_);
    CLI::App* storm = add("storm", "Generate a storm of events with known faults",
                          [this] { return storm_command(common_, storm_); });
    add_common(*add_storm(*storm, storm_), common_);
    add_triage(*add("triage", "Group recorded events into cases, each with its root cause",
                    [this] { return triage_command(common_, triage_); }),
               triage_);
  }
  int call() const { return call_(); }

 private:
  CLI::App* add(const std::string& name, const std::string& what, std::function<int()> call) {
    CLI::App* command = app_.add_subcommand(name, what);
    add_common(*command, common_);
    command->callback([this, call = std::move(call)] { call_ = call; });
    return command;
  }
  void add_run() {
    CLI::App* c = add("run", "Simulate a scenario and compare its variants",
                      [this] { return run_command(common_, run_); });
    c->add_option("scenario", run_.scenario, "YAML file")->required();
    c->add_option("-o,--out", run_.out, "Directory for report.json, report.html and trace.json.gz");
  }
  void add_explain() {
    CLI::App* c = add("explain", "Show the effective scenario and properties of its fabric",
                      [this] { return explain_command(common_, explain_); });
    c->add_option("file", explain_.file, "Scenario or fabric file")->required();
  }
  void add_flows() {
    CLI::App* c =
        add("flows", "Run a set of flows", [this] { return flows_command(common_, flows_); });
    c->add_option("--fabric", flows_.fabric, "Scenario or fabric file")->required();
    c->add_option("--flows", flows_.flows,
                  "CSV with id,src,dst,bytes,start,after,via, or an htsim connection matrix")
        ->required();
    CLI::Option* engine = c->add_option("--engine", flows_.engine, "fluid or packet");
    c->add_option("--end", flows_.end, "Packet engine: stop at this time, e.g. \"500 us\"");
    c->add_option("--start-unit", flows_.start_unit,
                  "Unit of the start times in a connection matrix: ps, ns or us");
    CLI::Option* from = c->add_option(
        "--from-fluid", flows_.from_fluid,
        "Packet engine: take over from the fluid engine at this time, e.g. \"200 us\"");
    c->add_flag("--compare", flows_.compare, "Run both engines and explain the difference")
        ->excludes(engine)
        ->excludes(from);
  }
  void add_perf() {
    CLI::App* c = add("perf", "Predict a collective for a range of sizes, in nccl-tests format",
                      [this] { return perf_command(common_, perf_); });
    c->add_option("op", perf_.op,
                  "all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, "
                  "send_recv")
        ->required();
    c->add_option("--fabric", perf_.fabric, "Scenario or fabric file; default: one h100 host");
    c->add_option("--gpus,-n", perf_.gpus, "Number of ranks; default: all GPUs of the fabric")
        ->check(CLI::Range(2, 1'000'000));
    c->add_option("-b,--minbytes", perf_.begin, "Smallest size (32M)");
    c->add_option("-e,--maxbytes", perf_.end, "Largest size (32M)");
    CLI::Option* factor = c->add_option("-f,--stepfactor", perf_.factor, "Factor between sizes");
    c->add_option("-i,--stepbytes", perf_.step_bytes, "Step between sizes (1M)")->excludes(factor);
    c->add_option("--algorithm", perf_.algorithm, "Algorithm to use instead of the tuner's choice");
    c->add_option("--protocol", perf_.protocol,
                  "LL, LL128 or Simple, instead of the tuner's choice");
    c->add_option("--channels", perf_.channels, "Number of parallel rings or trees")
        ->check(CLI::Range(1, 1024));
    c->add_option("--place", perf_.place, "topology, rack_order, fragmented, random");
    c->add_option("--system", perf_.system, "Machine preset (p5, h200-torch, ...)");
    c->add_option("--transport", perf_.transport, "infiniband, roce or efa");
    c->add_option("--calibrate", perf_.calibrate,
                  "SIZE=GB/s: one measured row (size and busbw) from the machine");
    c->add_option("--compare", perf_.compare, "nccl-tests output to print alongside");
  }
  void add_trace() {
    CLI::App* c = add("trace", "Simulate a recorded workload: SimAI/AICB, Chakra or GOAL",
                      [this] { return trace_command(common_, trace_); });
    c->add_option("files", trace_.files, "One file, or the Chakra files of all ranks")->required();
    c->add_option("--fabric", trace_.fabric,
                  "Scenario or fabric file; default: an AI Zone with one GPU per rank");
    c->add_option("--ranks", trace_.ranks, "Scale to this number of ranks")
        ->check(CLI::Range(1, 1'000'000));
    c->add_option("--groups", trace_.groups, "Chakra: JSON file with process groups");
    c->add_option("--system", trace_.system, "ASTRA-sim system JSON: algorithms, compute rates");
    c->add_option("--place", trace_.place, "topology, rack_order, fragmented, random, scattered");
    c->add_option("--contention", trace_.contention, "on, or off: transfers do not share links")
        ->check(CLI::IsMember({"on", "off"}));
    c->add_option("--overhead", trace_.overhead, "GOAL: CPU time of each send and recv");
    c->add_option("-o,--out", trace_.out, "Directory for report.json, report.html and trace");
  }
  void add_sweep() {
    CLI::App* c = add("sweep", "Run a scenario for every combination of its sweep: keys",
                      [this] { return sweep_command(common_, sweep_); });
    c->add_option("scenario", sweep_.scenario, "YAML file with sweep:")->required();
    c->add_option("--csv", sweep_.csv, "CSV file for the rows");
  }
  void add_export() {
    CLI::App* c = add("export", "Write a fabric in another format",
                      [this] { return export_command(common_, export_); });
    c->add_option("fabric", export_.fabric, "Scenario or fabric file")->required();
    c->add_option("--to", export_.format, "yaml, dot, graphml or slurm")->required();
    c->add_option("-o,--out", export_.out, "File; - for standard output");
  }

  CLI::App& app_;
  Common& common_;
  std::function<int()> call_;
  RunArgs run_;
  ExplainArgs explain_;
  FlowsArgs flows_;
  PerfArgs perf_;
  TraceArgs trace_;
  SweepArgs sweep_;
  ExportArgs export_;
  AgentArgs agent_;
  LabArgs lab_;
  LocaliseArgs localise_;
  GnmiArgs gnmi_;
  PollArgs poll_;
  TrapsArgs traps_;
  RehearseArgs rehearse_;
  SendArgs send_;
  ServeArgs serve_;
  SnapshotArgs snapshot_;
  SliArgs sli_;
  RespondArgs respond_;
  ProbeArgs probe_;
  StormArgs storm_;
  TriageArgs triage_;
};

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  std::string what = error.what();
  const std::vector<std::string> rest = app.remaining();
  if (app.get_subcommands().empty() && !rest.empty()) {
    std::vector<std::string> names;
    for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
    what = fmt::format("unknown command \"{}\"{}", rest.front(), did_you_mean(rest.front(), names));
  }
  return what + "; run weft with --help for more information";
}

int output_lost() {
  fmt::print(stderr, "weft: error: cannot write to standard output; is the disk full?\n");
  return work_failed;
}

}  // namespace

Result<model::LoadOptions> Common::load_options(std::vector<std::string> keys) const {
  model::LoadOptions out{.set = {}, .seed = seed, .keys = std::move(keys)};
  for (const std::string& item : set) {
    const std::size_t at = item.find('=');
    if (at == std::string::npos || at == 0)
      return fail(Errc::parse, {"--set", 0, 0}, fmt::format("\"{}\" has no key or no \"=\"", item),
                  "write --set routing.qps=16");
    out.set.emplace_back(item.substr(0, at), item.substr(at + 1));
  }
  return out;
}

int report(const Error& error) {
  const std::string text = error.text();
  for (const std::string_view line : split(text, '\n'))
    fmt::print(stderr, "weft: error: {}\n", line);
  return bad_input;
}

Result<std::int64_t> read_span_ns(const std::string& text, const char* option) {
  WEFT_TRY(const Duration span, parse_duration({text, {option, 0, 0}}));
  return span.ps / ps_per_ns;
}

std::vector<std::string> fabric_file_keys() {
  return {"name", "fabric", "routing", "transport", "faults", "engine", "seed"};
}

Result<model::Fabric> load_fabric(const Common& common, const std::string& path) {
  WEFT_TRY(const model::LoadOptions options, common.load_options(fabric_file_keys()));
  WEFT_TRY(const model::ScenarioFile file, model::load_scenario(path, options));
  WEFT_TRY(plan::Setup setup, plan::read_setup(file.variants.front()));
  return std::move(setup.fabric);
}

int run(int argc, char** argv) {
  CLI::App app("Designs and operates the networks on which AI models are trained.", "weft");
  app.require_subcommand(1);
  app.set_version_flag("--version", WEFT_VERSION);
  Common common;
  common.command = command_text(argc, argv);
  add_common(app, common);
  const Commands commands(app, common);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    fmt::print(stderr, "weft: error: {}\n", usage_error(app, error));
    return bad_input;
  }
  try {
    const int status = commands.call();
    return std::fflush(stdout) == 0 ? status : output_lost();
  } catch (const std::system_error&) {  // of fmt::print
    return output_lost();
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "weft: error: out of memory; make the scenario smaller\n");
    return work_failed;
  }
}

}  // namespace weft::cli
