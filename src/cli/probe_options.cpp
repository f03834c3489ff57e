// The options of `weft probe`.
#include <CLI/CLI.hpp>

#include "cli/commands.hpp"
#include "cli/probe_args.hpp"

namespace weft::cli {
namespace {

void add_what(CLI::App& c, ProbeArgs& args) {
  c.add_option("targets", args.targets, "ADDRESS or ADDRESS:PORT of responders")
      ->type_name("ADDRESS");
  c.add_option("--targets", args.list, "File with one target per line");
  c.add_option("--key", args.key, "File with the key shared with the responders");
  c.add_option("--fabric", args.fabric, "Scenario or fabric file, for names, paths, scopes");
  c.add_option("--plan", args.plan, "Probe plan: lines from weft probe plan --json");
  c.add_option("--from", args.from, "Host or NIC of the fabric that corresponds to this machine");
  c.add_flag("--hash-paths", args.hash_paths,
             "Derive target paths from the hash in the fabric file");
  c.add_option("--addresses", args.addresses, "CSV with node,address");
  c.add_option("--ports", args.ports, "Source UDP ports, one path each")->capture_default_str();
  c.add_option("--class", args.classes, "DSCP, or NAME=DSCP")->take_all();
  c.add_option("--bind", args.bind, "Source address");
}

void add_how(CLI::App& c, ProbeArgs& args) {
  c.add_option("--rate", args.rate, "Total probes per second; 0: as fast as answers arrive")
      ->check(CLI::Range(0.0, 1e7));
  c.add_option("--count", args.count, "Probes per target, port and class");
  c.add_option("--duration", args.duration, "Duration of sending, e.g. \"30 s\"");
  c.add_option("--timeout", args.timeout, "Answers slower than this are late (100 ms)");
  c.add_option("--late", args.late, "Answers later than --timeout plus this are lost (1 s)");
  c.add_option("--window", args.window, "Duration of one result row (10 s)");
  c.add_option("--stamp-every", args.stamp_every, "Time every N-th probe; 0 chooses by the rate");
  c.add_option("--metrics", args.metrics, "File for results in Prometheus format");
  CLI::Option* one_way = c.add_flag("--one-way", args.one_way, "Only count probes (one-way)");
  CLI::Option* sweep =
      c.add_flag("--sweep", args.sweep, "Probe hop by hop, by TTL")->excludes(one_way);
  c.add_flag("--answers", args.answers,
             "Sweep the paths of answers: from the responder's port here to --ports of the targets")
      ->needs(sweep);
  CLI::Option* twin =
      c.add_flag("--twin", args.twin, "Run --plan on the simulated network of the fabric file");
  c.add_option("--truth", args.truth, "File for the twin's faults, as episodes")->needs(twin);
  c.add_option("--ttl-max", args.ttl_max, "Number of hops in a sweep")->check(CLI::Range(1, 32));
  // A plan says what is probed and how often, and nothing is sent.
  for (const char* other :
       {"targets", "--targets", "--key", "--from", "--hash-paths", "--addresses", "--ports",
        "--class", "--bind", "--rate", "--count", "--timeout", "--late", "--stamp-every",
        "--metrics", "--one-way", "--sweep", "--answers", "--ttl-max"})
    twin->excludes(c.get_option(other));
}

}  // namespace

void add_probe(Commands& commands) {
  const auto [command, args] =
      commands.add<ProbeArgs>("probe", "Probe hosts and report loss and latency", probe_command);
  add_what(command, args);
  add_how(command, args);
  CLI::App* plan =
      command.add_subcommand("plan", "Choose pairs and ports so that all links are crossed");
  plan->parse_complete_callback([&args = args] { args.make_plan = true; });
  plan->add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  plan->add_option("--crossings", args.crossings, "Probes over each directed link per window")
      ->check(CLI::Range(1, 1'000'000));
  plan->add_option("--flows", args.flows_each,
                   "Distinct flows over each link (64; 4 in large fabrics)")
      ->check(CLI::Range(1, 64));
  plan->add_option(
          "--routes", args.routes_each,
          "Distinct flows to each host over each switch on the way (4; 0 in large fabrics)")
      ->check(CLI::Range(0, 64));
  plan->add_option("--window", args.window, "Length of a window (10 s)");
  plan->add_option("--rate-max", args.rate_max, "Maximum probes per second of each host")
      ->check(CLI::Range(0.0, 1e7));
  plan->add_option(
      "--learned", args.learned,
      "Lines from weft probe --sweep --json: plan with these paths instead of the hash");
  plan->add_option("--down", args.down,
                   "Cables a--b and switches that are out of service, separated by commas");
  plan->add_option("--port", args.target_port, "UDP port of the responders")->capture_default_str();
  plan->add_option("--ports", args.ports, "Source UDP ports to choose from")->capture_default_str();
  commands.add_common(*plan);
}

}  // namespace weft::cli
