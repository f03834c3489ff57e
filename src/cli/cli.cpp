#include "cli/cli.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <system_error>

#include "base/text.hpp"

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
         "Salts hashes and random choices")
      ->type_name("UINT");
  app.add_option("--threads", common.threads, "Threads to use; 0 for one a core");
  app.add_option("--set", common.set, "KEY.PATH=VALUE: overrides one key of the scenario")
      ->take_all();
  app.add_flag("-q,--quiet", common.quiet, "No progress on the terminal");
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
    add_sweep();
    add_export();
  }
  int call() const { return call_(); }

 private:
  CLI::App* add(const std::string& name, const std::string& what, std::function<int()> call) {
    CLI::App* command = app_.add_subcommand(name, what);
    add_common(*command, common_);
    command->callback([this, call] { call_ = call; });
    return command;
  }
  void add_run() {
    CLI::App* c = add("run", "Simulate a scenario and compare its variants",
                      [this] { return run_command(common_, run_); });
    c->add_option("scenario", run_.scenario, "YAML file")->required();
    c->add_option("-o,--out", run_.out, "Directory for report.json, report.html and trace.json.gz");
  }
  void add_explain() {
    CLI::App* c = add("explain", "Show the effective scenario and facts of its fabric",
                      [this] { return explain_command(common_, explain_); });
    c->add_option("file", explain_.file, "Scenario or fabric file")->required();
  }
  void add_flows() {
    CLI::App* c =
        add("flows", "Run a set of flows", [this] { return flows_command(common_, flows_); });
    c->add_option("--fabric", flows_.fabric, "Scenario or fabric file")->required();
    c->add_option("--flows", flows_.flows, "CSV with id,src,dst,bytes,start,after,via")->required();
    c->add_option("--engine", flows_.engine, "fluid");
  }
  void add_perf() {
    CLI::App* c = add("perf", "Predict a collective for a range of sizes, as nccl-tests print it",
                      [this] { return perf_command(common_, perf_); });
    c->add_option("op", perf_.op,
                  "all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, "
                  "send_recv")
        ->required();
    c->add_option("--fabric", perf_.fabric, "Scenario or fabric file; without it one h100 host");
    c->add_option("--gpus,-n", perf_.gpus, "Number of ranks; all GPUs of the fabric by default")
        ->check(CLI::Range(2, 1'000'000));
    c->add_option("-b,--minbytes", perf_.begin, "Smallest size (32M)");
    c->add_option("-e,--maxbytes", perf_.end, "Largest size (32M)");
    CLI::Option* factor =
        c->add_option("-f,--stepfactor", perf_.factor, "Factor from size to size");
    c->add_option("-i,--stepbytes", perf_.step_bytes, "Step from size to size (1M)")
        ->excludes(factor);
    c->add_option("--algorithm", perf_.algorithm, "Instead of the tuner's choice");
    c->add_option("--protocol", perf_.protocol,
                  "LL, LL128 or Simple instead of the tuner's choice");
    c->add_option("--channels", perf_.channels, "Rings or trees side by side")
        ->check(CLI::Range(1, 1024));
    c->add_option("--place", perf_.place, "topology, rack_order, fragmented, random");
    c->add_option("--system", perf_.system, "Preset of the machine (p5, h200-torch, ...)");
    c->add_option("--transport", perf_.transport, "infiniband, roce or efa");
    c->add_option("--calibrate", perf_.calibrate,
                  "SIZE=GB/s: one measured row (size and busbw) of the machine");
    c->add_option("--compare", perf_.compare, "Output of nccl-tests to print beside");
  }
  void add_sweep() {
    CLI::App* c = add("sweep", "Run a scenario for all combinations of its sweep: keys",
                      [this] { return sweep_command(common_, sweep_); });
    c->add_option("scenario", sweep_.scenario, "YAML file with sweep:")->required();
    c->add_option("--csv", sweep_.csv, "File for the rows as CSV");
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
  SweepArgs sweep_;
  ExportArgs export_;
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

std::vector<std::string> fabric_file_keys() {
  return {"name", "fabric", "routing", "transport", "faults", "engine", "seed"};
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
