#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "adapt/lab/doctor.hpp"
#include "adapt/lab/drain.hpp"
#include "adapt/lab/extras.hpp"
#include "adapt/lab/fault.hpp"
#include "adapt/lab/lab.hpp"
#include "adapt/lab/netns.hpp"
#include "adapt/lab/overlay.hpp"
#include "adapt/lab/status.hpp"
#include "adapt/lab/te_run.hpp"
#include "adapt/lab/up.hpp"
#include "adapt/lab/user_namespace.hpp"
#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/commands.hpp"
#include "cli/find_lab.hpp"
#include "operate/te/flow_file.hpp"
#include "os/error.hpp"
#include "os/interrupt.hpp"

namespace weft::cli {
namespace {

struct LabArgs {
  std::string action;  // the sub-command
  std::string name = "lab0";
  std::string fabric, target;
  std::string routing = "frr";
  bool bfd = false, snmp = false, syslog = false, same_hash_seed = false;
  std::vector<std::string> command;  // of exec
  std::string kind, which;           // of fault and heal
  std::vector<adapt::lab::FaultOption> fault_options;
  std::string flows;  // of te
  bool off = false, split = false;
};

namespace lab = adapt::lab;
using nlohmann::json;

// What the outside world refused is failed work; what the user wrote is bad input.
int report_lab(const Error& error) {
  const int status = report(error);
  const bool outside =
      error.code == Errc::io || error.code == Errc::unsupported || error.code == Errc::infeasible;
  return outside ? work_failed : status;
}

// Goes to where the lab lives: its own namespaces, where it was brought up without root.
Status enter_lab(const std::string& name) {
  if (lab::is_privileged()) return {};
  WEFT_TRY_STATUS(lab::check_lab_name(name));
  WEFT_TRY_STATUS(lab::check_state_root());
  const auto journal = lab::read_journal(lab::lab_directory(name) + "/processes");
  const auto keeper = std::ranges::find(journal, "keeper", &lab::LabProcess::role);
  if (keeper == journal.end() || !lab::is_alive(keeper->id)) return {};
  return lab::enter_user_namespace_of(keeper->id);
}

}  // namespace

Result<adapt::lab::Lab> find_lab(const std::string& name) {
  WEFT_TRY_STATUS(enter_lab(name));
  return lab::open_lab(name);
}

namespace {

void print_up(const Common& common, const lab::LabOptions& options, const lab::UpReport& up) {
  for (const std::string& warning : up.warnings) fmt::print(stderr, "weft: warning: {}\n", warning);
  if (common.json) {
    json steps = json::object();
    for (const auto& [name, seconds] : up.steps) steps[name] = seconds;
    fmt::print("{}\n", json{{"name", options.name},
                            {"switches", up.switches},
                            {"hosts", up.hosts},
                            {"cables", up.cables},
                            {"seconds", up.seconds()},
                            {"steps", steps},
                            {"warnings", up.warnings}}
                           .dump(2));
    return;
  }
  fmt::print("{} is up: {} switches, {} hosts, {} cables in {}", options.name, up.switches,
             up.hosts, up.cables, human_seconds(up.seconds()));
  std::string_view separator = " (";
  for (const auto& [name, seconds] : up.steps) {
    fmt::print("{}{} {}", separator, name, human_seconds(seconds));
    separator = ", ";
  }
  fmt::print(")\n");
}

int up_command(const Common& common, const LabArgs& args) {
  using adapt::lab::Extra;
  const auto extra = [](bool on) { return on ? Extra::on : Extra::off; };
  const auto fabric = load_fabric(common, args.fabric);
  if (!fabric) return report_lab(fabric.error());
  lab::UpRequest request{
      .options = {.name = args.name,
                  .routing =
                      args.routing == "static" ? lab::Routing::static_routes : lab::Routing::frr,
                  .bfd = extra(args.bfd),
                  .snmp = extra(args.snmp),
                  .syslog = extra(args.syslog),
                  .seeds = args.same_hash_seed ? lab::HashSeeds::equal : lab::HashSeeds::distinct},
      .program = {},
      .progress = common.progress()};
  std::error_code error;
  request.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) return report_lab(system_failure("/proc/self/exe", error.value()).error());
  if (!lab::is_privileged())
    if (const Status entered = lab::enter_new_user_namespace(); !entered)
      return report_lab(entered.error());
  const auto up = lab::bring_up(*fabric, request);
  if (!up) return report_lab(up.error());
  print_up(common, request.options, *up);
  return done;
}

int down_command(const Common& common, const LabArgs& args) {
  if (const Status entered = enter_lab(args.name); !entered) return report_lab(entered.error());
  const auto down = lab::take_down(args.name);
  if (!down) return report_lab(down.error());
  if (common.json) {
    fmt::print("{}\n", json{{"name", args.name},
                            {"processes", down->processes},
                            {"namespaces", down->namespaces},
                            {"nothing", down->nothing()}}
                           .dump());
  } else if (down->nothing()) {
    fmt::print("{}: nothing to remove\n", args.name);
  } else {
    fmt::print("{} is down: {} processes stopped, {} namespaces removed\n", args.name,
               down->processes, down->namespaces);
  }
  return done;
}

std::string problem_of(const lab::NodeStatus& node) {
  std::vector<std::string> out;
  if (!node.trouble.empty()) out.push_back(node.trouble);
  for (const lab::LabProcess& process : node.dead) out.push_back(process.role + " is dead");
  if (node.routes_missing > 0)
    out.push_back(fmt::format("{} routes incomplete", node.routes_missing));
  return fmt::format("{}", fmt::join(out, ", "));
}

void print_status(const lab::Lab& found, const lab::LabStatus& status) {
  std::size_t processes = 0;
  for (const lab::NodeStatus& node : status.nodes)
    processes += node.processes.size() - node.dead.size();
  fmt::print(
      "{}: {} switches, {} hosts, {} of {} cables up, {} of {} routes complete, "
      "{} daemons\n",
      found.options.name, found.plan.switch_count,
      found.plan.nodes.size() - found.plan.switch_count,
      found.plan.cables.size() - status.cables_down.size(), found.plan.cables.size(),
      status.routes - status.routes_missing, status.routes, processes);
  if (found.phase == lab::Phase::starting)
    fmt::print("the lab never came up completely: run weft lab down\n");
  if (!status.dead.empty())
    fmt::print("the keeper process is dead: logs are not forwarded; run weft lab down, then up\n");
  for (const std::string& name : found.drained) fmt::print("drained: {}\n", name);
  for (const lab::LabCableId cable : status.cables_down)
    fmt::print("down: {}\n", found.fabric.name(found.plan.cables[cable].cable));
  for (const lab::NodeStatus& node : status.nodes)
    if (const std::string problem = problem_of(node); !problem.empty())
      fmt::print("{}: {}\n", found.plan.nodes[node.node].name, problem);
  if (status.cpu_pressure > 50)
    fmt::print(
        "the machine is short of CPU ({:.0f} % of the last 10 s): daemon timers may be late\n",
        status.cpu_pressure);
}

int status_command(const Common& common, const LabArgs& args) {
  const auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  const auto status = lab::look_at(*found);
  if (!status) return report_lab(status.error());
  if (common.json) {
    fmt::print("{}\n", lab::to_json(*found, *status));
  } else {
    print_status(*found, *status);
  }
  return status->is_well() ? done : work_failed;
}

int drain_command(const Common& common, const LabArgs& args) {
  auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  const auto lock = lab::lock_lab(found->directory);
  if (!lock) return report_lab(lock.error());
  const bool drains = args.action == "drain";
  const auto outcome = drains ? lab::drain(*found, args.target) : lab::undrain(*found, args.target);
  if (!outcome) return report_lab(outcome.error());
  const bool changed = *outcome == lab::DrainOutcome::changed;
  if (common.json) {
    fmt::print(
        "{}\n",
        json{{"target", args.target}, {"changed", changed}, {"drained", found->drained}}.dump());
  } else {
    fmt::print("{} {} {}\n", args.target, changed ? "is" : "was already",
               drains ? "drained" : "in service");
  }
  return done;
}

// Becomes the command; returns only when it cannot.
int exec_command(const LabArgs& args) {
  const auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  const auto node = found->plan.find_node(found->fabric, {args.target, {"NODE", 0, 0}});
  if (!node && args.target != "mgmt") return report_lab(node.error());
  const auto netns =
      lab::open_netns(node ? found->plan.nodes[*node].netns : found->plan.management_netns);
  if (!netns) return report_lab(netns.error());
  if (setns(netns->get(), CLONE_NEWNET) != 0)
    return report_lab(system_failure("entering the namespace of " + args.target, errno).error());
  std::vector<std::string> words = args.command;
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execvp(argv.front(), argv.data());
  return report_lab(system_failure("executing " + words.front(), errno).error());
}

void print_faults(const Common& common, const std::vector<lab::FaultRecord>& records) {
  if (common.json) {
    for (const lab::FaultRecord& record : records) fmt::print("{}\n", lab::truth_line(record));
    return;
  }
  Table table({{"id", Table::Align::left},
               {"kind", Table::Align::left},
               {"at", Table::Align::left},
               {"phase", Table::Align::left},
               {"since", Table::Align::left},
               {"until", Table::Align::left},
               {"hit", Table::Align::left}});
  for (const lab::FaultRecord& record : records) {
    std::vector<std::string> hits;
    for (const auto& [what, count] : record.hits) hits.push_back(fmt::format("{} {}", count, what));
    table.add({record.id, std::string(lab::to_text(record.spec.kind)), record.spec.target,
               std::string(lab::to_text(record.phase)), record.start, record.end,
               fmt::format("{}", fmt::join(hits, ", "))});
  }
  fmt::print("{}", table.text());
}

int fault_command(const Common& common, const LabArgs& args) {
  const auto spec = lab::parse_fault(args.kind, args.target, args.fault_options);
  if (!spec) return report_lab(spec.error());
  const auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  const auto record = lab::inject_fault(*found, *spec);
  if (!record) return report_lab(record.error());
  print_faults(common, {*record});
  return done;
}

int heal_command(const Common& common, const LabArgs& args) {
  const auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  const auto healed = lab::heal_faults(*found, args.which);
  if (!healed) return report_lab(healed.error());
  print_faults(common, *healed);
  return done;
}

int faults_command(const Common& common, const LabArgs& args) {
  const auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  const auto records = lab::list_faults(*found);
  if (!records) return report_lab(records.error());
  print_faults(common, *records);
  return done;
}

// For `weft probe --addresses`: who answers with which address.
int addresses_command(const LabArgs& args) {
  const auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  fmt::print("node,address\n");
  for (const lab::LabCable& cable : found->plan.cables)
    for (const lab::CableEnd& end : cable.ends)
      fmt::print("{},{}\n", found->fabric.name(end.device), ipv4_text(end.address));
  return done;
}

int doctor_command(const Common& common) {
  const lab::Diagnosis found = lab::diagnose();
  if (common.json) {
    fmt::print("{}\n", lab::to_json(found));
    return found.can_lab() ? done : work_failed;
  }
  Table table({{"feature", Table::Align::left},
               {"", Table::Align::left},
               {"found", Table::Align::left},
               {"reason", Table::Align::left}});
  for (const lab::Feature& feature : found.features)
    table.add({feature.name, feature.works ? "yes" : "no", feature.detail, feature.advice});
  fmt::print("{}\n", table.text());
  fmt::print("mode: {}\nlab with static routes: {}\nlab with FRRouting: {}\n",
             lab::to_text(found.mode), found.can_lab() ? "yes" : "no",
             found.can_frr() ? "yes" : "no");
  fmt::print("faults: loss by {}, delay and the like by {}\n", found.loss_injector(),
             found.delay_injector());
  return found.can_lab() ? done : work_failed;
}

// "[12.345 s] ctsw:0--rtsw:1 down: 6 flows hit, 2 others moved, 8 marks in 1.2 ms; ..."
void print_te_event(const Common& common, const lab::Lab& found, const lab::TeEvent& event) {
  const operate::te::Decision& d = event.step.decision;
  if (common.json) {
    fmt::print("{}\n", JsonObject()
                           .add("at_s", event.at.seconds(), decimals(6))
                           .add("news", event.news)
                           .add("took_s", event.took.seconds(), decimals(6))
                           .add("hit", d.hit)
                           .add("moved", d.moved)
                           .add("without_path", d.without)
                           .add("marks", event.step.changes)
                           .add("over_two_qps", d.divided)
                           .add("worst", d.judgement.worst)
                           .add("bound", d.bound)
                           .add("hashed", d.judgement.hashed)
                           .add("refused", d.refused)
                           .text());
  } else {
    const std::string why = !event.news.empty() ? fmt::format("{}", fmt::join(event.news, ", "))
                            : event.is_first    ? "start"
                                                : "back in use";
    fmt::print("[{:.3f} s] {}: {} flows hit, {} others moved, {} marks in {}; worst link {:.4g}",
               event.at.seconds(), why, d.hit, d.moved, event.step.changes,
               human_seconds(event.took.seconds()), d.judgement.worst);
    if (d.judgement.worst_link.valid())
      fmt::print(" ({})", found.fabric.name(d.judgement.worst_link));
    fmt::print(", bound {:.4g}, ECMP {:.4g}\n", d.bound, d.judgement.hashed);
    if (d.divided > 0) fmt::print("  {} flows over 2 QPs\n", d.divided);
    if (d.without > 0) fmt::print("  {} flows have no live path\n", d.without);
    if (!d.refused.empty()) fmt::print("  no marks: {}\n", d.refused);
  }
  std::fflush(stdout);
}

int te_command(const Common& common, const LabArgs& args) {
  const auto found = find_lab(args.name);
  if (!found) return report_lab(found.error());
  if (args.off) {
    const Status removed = lab::Overlay::remove(*found);
    return removed ? int{done} : report_lab(removed.error());
  }
  if (args.flows.empty())
    return report_lab(Error{Errc::value,
                            {"--flows", 0, 0},
                            "weft lab te needs flows",
                            "pass a CSV with src, dst and port, or --off to remove all marks"});
  const auto text = read_file(args.flows);
  if (!text) return report_lab(text.error());
  auto flows = operate::te::read_flows_csv(found->fabric, *text, args.flows);
  if (!flows) return report_lab(flows.error());
  const Interrupt interrupt("ending; the marks hold for 3 s (weft lab te --off removes them)");
  lab::TeRun run;
  run.loop.settings.split = args.split;
  run.stop = [] { return Interrupt::signal() != 0; };
  run.tell = [&](const lab::TeEvent& event) { print_te_event(common, *found, event); };
  run.standby = [&] {
    if (!common.quiet)
      fmt::print(stderr, "weft: another controller is at work; this one takes over when it ends\n");
  };
  const Status status = lab::run_te(*found, *std::move(flows), run);
  return status ? int{done} : report_lab(status.error());
}

int keeper_command(const LabArgs& args) {
  // Not through find_lab: it is started where the lab is, and holds the namespaces itself.
  const auto found = lab::open_lab(args.name);
  if (!found) return report_lab(found.error());
  const Status kept = lab::keep(*found);
  return kept ? int{done} : report_lab(kept.error());
}

// "fault KIND TARGET", with every option that some kind takes; fault_spec.hpp says which fit.
void add_fault_options(CLI::App& fault, LabArgs& args) {
  std::vector<std::string> kinds;
  std::string footer = "Kinds:\n";
  for (std::size_t i = 0; i < lab::fault_kind_count; ++i) {
    const auto kind = static_cast<lab::FaultKind>(i);
    footer += fmt::format("  {}\n", lab::describe(kind));
  }
  fault.footer(footer);
  fault.add_option("kind", args.kind, "Kind of fault")->required();
  fault.add_option("target", args.target, "Node, cable \"a--b\" or direction \"a->b\"")->required();
  for (const lab::FaultOptionHelp& help : lab::fault_option_help())
    fault.add_option_function<std::string>(
        fmt::format("--{}", help.name),
        [&args, name = std::string(help.name)](const std::string& value) {
          args.fault_options.push_back({name, value});
        },
        std::string(help.help));
}

int lab_command(const Common& common, const LabArgs& args) {
  if (args.action == "up") return up_command(common, args);
  if (args.action == "down") return down_command(common, args);
  if (args.action == "status") return status_command(common, args);
  if (args.action == "fault") return fault_command(common, args);
  if (args.action == "heal") return heal_command(common, args);
  if (args.action == "faults") return faults_command(common, args);
  if (args.action == "addresses") return addresses_command(args);
  if (args.action == "doctor") return doctor_command(common);
  if (args.action == "exec") return exec_command(args);
  if (args.action == "te") return te_command(common, args);
  if (args.action == "keeper") return keeper_command(args);
  return drain_command(common, args);
}

}  // namespace

void add_lab(Commands& commands) {
  const auto [lab_app, args] = commands.add<LabArgs>(
      "lab", "Emulate a fabric with network namespaces, real packets and BGP", lab_command);
  lab_app.require_subcommand(1);
  const auto add = [&](const char* name, const char* what) {
    CLI::App* command = lab_app.add_subcommand(name, what);
    command->fallthrough();
    command->callback([&args = args, name] { args.action = name; });
    command->add_option("--name", args.name, "Name of the lab (lab0)");
    return command;
  };
  CLI::App* up = add("up", "Bring up a fabric of network namespaces");
  up->add_option("fabric", args.fabric, "Scenario or fabric file")->required();
  up->add_option("--routing", args.routing, "frr (BGP), or static")
      ->check(CLI::IsMember({"frr", "static"}));
  up->add_flag("--bfd", args.bfd, "Fast failure detection between switches");
  up->add_flag("--snmp", args.snmp, "Run an SNMP agent on every switch");
  up->add_flag("--syslog", args.syslog, "Forward the switches' logs to the management network");
  up->add_flag("--equal-seeds", args.same_hash_seed,
               "Use the same hash on all switches, so that tiers polarise");
  add("status", "Show links, routes and daemons of a lab");
  add("down", "Take a lab down, or clean up its remains");
  for (const auto& [name, what] :
       {std::pair("drain", "Take a switch or cable out of service without loss"),
        std::pair("undrain", "Put a switch or cable back into service")})
    add(name, what)->add_option("target", args.target, "Switch, or cable \"a--b\"")->required();
  CLI::App* exec = add("exec", "Run a command inside a node's namespace");
  exec->add_option("node", args.target, "Switch, host, or mgmt")->required();
  exec->add_option("command", args.command, "Behind \"--\"")->required();
  add_fault_options(*add("fault", "Inject a fault and print its id"), args);
  add("heal", "Remove faults")->add_option("id", args.which, "Id of a fault, or all")->required();
  add("faults", "List all faults of the lab, including healed ones, with their effects");
  add("addresses", "Print node addresses as CSV for weft probe");
  add("doctor", "Check which lab features this machine supports");
  CLI::App* te = add("te", "Send flows over uplinks of a controller's choice, until Ctrl-C");
  te->add_option("--flows", args.flows, "CSV of flows: src, dst, port, second");
  te->add_flag("--split", args.split, "Divide flows over two QPs where that helps");
  te->add_flag("--off", args.off, "Remove all marks, and end");
  add("keeper", "")->group("");  // of a lab's own
}

}  // namespace weft::cli
