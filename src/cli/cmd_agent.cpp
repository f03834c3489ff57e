#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "adapt/live/nats.hpp"
#include "adapt/live/signals.hpp"
#include "adapt/live/system_clock.hpp"
#include "adapt/live/uplink.hpp"
#include "app/agent/agent.hpp"
#include "app/agent/health_copy.hpp"
#include "app/agent/te_agent.hpp"
#include "app/agent/trace_copy.hpp"
#include "base/file.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/serve_te.hpp"
#include "cli/telemetry_files.hpp"
#include "observe/detect/detector.hpp"
#include "os/log.hpp"

namespace weft::cli {
namespace {

struct AgentArgs {
  std::string fabric, device;
  std::vector<std::string> logs;
  std::string rules, inventory, catalogue;
  std::string to, token, ca, certificate, key;
  std::string spool = "agent-spool", spool_size = "256 MiB";
  std::string interval = "1 s";
  std::uint32_t ports_per_card = 36;
  bool show_rules = false;
  std::vector<std::string> health;
  std::string show_health;
  std::string traces, trace_every = "30 s", job;
  bool te = false, te_off = false;
  std::string addresses;
};

namespace detect = observe::detect;
namespace live = adapt::live;
namespace telemetry = observe::telemetry;
using model::NodeId;

constexpr std::size_t logs_max = 64;

Result<detect::Rules> load_rules(const AgentArgs& args) {
  if (args.rules.empty()) return detect::default_rules();
  WEFT_TRY(const Config config, load_yaml(args.rules));
  return detect::read_rules(config);
}

// A log may come later; what is there must be one.
Status check_logs(const std::vector<std::string>& logs) {
  for (const std::string& path : logs) {
    std::error_code error;
    const auto type = std::filesystem::status(path, error).type();
    if (type == std::filesystem::file_type::not_found)
      log(LogLevel::warning, "weft agent", path + " does not exist: followed once it does");
    else if (type != std::filesystem::file_type::regular)
      return fail(Errc::value, {"--log", 0, 0},
                  fmt::format("{} is not a regular file{}", path,
                              error ? ": " + error.message() : std::string()),
                  "name a log file");
    else if (::access(path.c_str(), R_OK) != 0)
      log(LogLevel::warning, "weft agent",
          fmt::format("{} cannot be read now: {}", path, std::strerror(errno)));
  }
  return {};
}

Result<app::AgentSettings> load_settings(const Common& common, const AgentArgs& args) {
  WEFT_TRY(detect::Rules rules, load_rules(args));
  WEFT_TRY(const Duration interval, parse_duration({args.interval, {"--interval", 0, 0}}));
  if (interval < 100_us * 1000 || interval > 3600_s)
    return fail(Errc::value, {"--interval", 0, 0}, "must be from 100 ms to 1 h",
                "write e.g. \"1 s\"");
  if (args.logs.size() > logs_max)
    return fail(Errc::value, {"--log", 0, 0},
                fmt::format("{} logs, more than {}", args.logs.size(), logs_max), "follow fewer");
  WEFT_TRY_STATUS(check_logs(args.logs));
  WEFT_TRY(model::Fabric fabric, load_fabric(common, args.fabric));
  WEFT_TRY(const NodeId device, fabric.find_node({args.device, {"--device", 0, 0}}));
  if (!fabric.is_switch(device) && fabric.kind(device) != model::NodeKind::host)
    return fail(Errc::value, {"--device", 0, 0},
                fmt::format("{} is neither a switch nor a host", quote(args.device)),
                "specify the device on which the agent runs");
  app::AgentSettings out{
      .fabric = std::move(fabric), .device = device, .name = {}, .rules = std::move(rules)};
  out.name = out.fabric.name(device);
  out.interval_ns = interval.ps / ps_per_ns;
  WEFT_TRY(out.catalogue, load_catalogue(args.catalogue));
  out.logs = args.logs;
  out.ports_per_card = args.ports_per_card;
  out.quiet = common.quiet;
  return out;
}

// "" where none is given.
Result<std::string> read_token(const AgentArgs& args) {
  if (args.token.empty()) return std::string();
  constexpr std::uint64_t token_bytes_max = 4096;
  WEFT_TRY(const std::string text, read_file(args.token, token_bytes_max));
  std::string token(trim(text));
  if (token.empty() || !std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; }))
    return fail(Errc::parse, {args.token, 0, 0}, "not a token", "it must be one ASCII word");
  return token;
}

live::TlsFiles tls_files(const AgentArgs& args) {
  return {.ca = args.ca, .certificate = args.certificate, .key = args.key};
}

// Nobody where the records go to standard output.
Result<std::optional<live::Uplink>> open_uplink(const Common& common, const AgentArgs& args) {
  if (args.to.empty()) {
    if (common.json) return std::optional<live::Uplink>{};
    return fail(Errc::value, {"--to", 0, 0}, "no destination for the agent",
                "specify the service with --to, or use --json for standard output");
  }
  live::UplinkOptions options{
      .url = args.to, .tls = tls_files(args), .spool = {.directory = args.spool}};
  WEFT_TRY(const Bytes size, parse_bytes({args.spool_size, {"--spool-size", 0, 0}}));
  if (size < 1_MiB || size > 1024_GiB)
    return fail(Errc::value, {"--spool-size", 0, 0}, "must be from 1 MiB to 1 TiB",
                "write e.g. \"256 MiB\"");
  options.spool.bytes_max = static_cast<std::uint64_t>(size.count);
  WEFT_TRY(options.token, read_token(args));
  WEFT_TRY(live::Uplink uplink, live::Uplink::open(std::move(options)));
  return std::optional(std::move(uplink));
}

// What an option needs besides records: an answer, which a bus does not give.
Result<live::ServiceUrl> service_for(const AgentArgs& args, const char* option,
                                     std::string_view purpose) {
  if (args.to.empty())
    return fail(Errc::value, {option, 0, 0}, fmt::format("no service to {}", purpose),
                "specify it with --to");
  if (live::is_nats(args.to))
    return fail(Errc::value, {option, 0, 0}, "NATS, which --to names, carries records alone",
                "run a second agent with this option, and --to https://HOST[:PORT]");
  return live::ServiceUrl{args.to, "--to"};
}

// Tables are believed for seconds.
constexpr std::int64_t copy_every_ns = 2'000'000'000;

// Null where no file is given.
Result<std::unique_ptr<app::HealthCopy>> open_health(const AgentArgs& args,
                                                     std::int64_t interval_ns) {
  if (args.health.empty()) return std::unique_ptr<app::HealthCopy>();
  WEFT_TRY(live::ServiceUrl service, service_for(args, "--health", "ask for path health"));
  WEFT_TRY(std::string token, read_token(args));
  return app::HealthCopy::open({.service = std::move(service),
                                .token = std::move(token),
                                .tls = tls_files(args),
                                .files = args.health,
                                .interval_ns = std::min(interval_ns, copy_every_ns)});
}

// Null where no folder is given.
Result<std::unique_ptr<app::TraceCopy>> open_traces(const AgentArgs& args,
                                                    const app::AgentSettings& settings) {
  if (args.traces.empty()) return std::unique_ptr<app::TraceCopy>();
  WEFT_TRY(live::ServiceUrl service, service_for(args, "--traces", "send traces to"));
  if (settings.fabric.kind(settings.device) != model::NodeKind::host)
    return fail(Errc::value, {"--traces", 0, 0}, quote(args.device) + " is not a host",
                "leave --traces out: jobs run on hosts");
  WEFT_TRY(const Duration every, parse_duration({args.trace_every, {"--trace-every", 0, 0}}));
  if (every < 1_s || every > 300_s)
    return fail(Errc::value, {"--trace-every", 0, 0}, "must be from 1 s to 5 min",
                "write e.g. \"30 s\"");
  WEFT_TRY(std::string token, read_token(args));
  return app::TraceCopy::open({.service = std::move(service),
                               .token = std::move(token),
                               .tls = tls_files(args),
                               .host = settings.name,
                               .folder = args.traces,
                               .job = args.job,
                               .every_ns = every.ps / ps_per_ns});
}

// Null where that is not asked for.
Result<std::unique_ptr<app::TeAgent>> open_te(const AgentArgs& args,
                                              const app::AgentSettings& settings) {
  if (!args.te) return std::unique_ptr<app::TeAgent>();
  WEFT_TRY(live::ServiceUrl service, service_for(args, "--te", "take marks from"));
  WEFT_TRY(std::string token, read_token(args));
  WEFT_TRY(auto addresses, read_nic_addresses(settings.fabric, args.addresses));
  return app::TeAgent::open({.service = std::move(service),
                             .token = std::move(token),
                             .tls = tls_files(args),
                             .fabric = settings.fabric,
                             .device = settings.device,
                             .addresses = std::move(addresses)});
}

Status run_agent(const Common& common, const AgentArgs& args) {
  WEFT_TRY(const app::AgentSettings settings, load_settings(common, args));
  WEFT_TRY(telemetry::Inventory inventory, load_inventory(settings.fabric, args.inventory));
  if (args.te_off) return app::TeAgent::remove(settings.fabric, settings.device);
  WEFT_TRY(live::Signals signals, live::Signals::open());  // before there are threads
  WEFT_TRY(std::optional<live::Uplink> uplink, open_uplink(common, args));
  WEFT_TRY(const auto health, open_health(args, settings.interval_ns));
  WEFT_TRY(const auto traces, open_traces(args, settings));
  WEFT_TRY(const auto te, open_te(args, settings));
  return app::run_agent(settings, inventory, uplink, signals);
}

Status show_health(const Common& common, const std::string& path) {
  WEFT_TRY(const std::string bytes, operate::health::load(path));
  WEFT_TRY(const operate::health::HealthTable table, operate::health::decode(bytes, path));
  const Timestamp now = live::SystemClock().wall();
  if (common.json)
    fmt::print("{}\n", operate::health::to_json(table, now).text());
  else
    fmt::print("{}", operate::health::to_text(table, now));
  return {};
}

int agent_command(const Common& common, const AgentArgs& args) {
  if (args.show_rules) {
    fmt::print("{}", detect::default_rules_text());
    return done;
  }
  if (!args.show_health.empty()) {
    const Status shown = show_health(common, args.show_health);
    return shown ? done : report(shown.error());
  }
  for (const auto& [option, value] :
       {std::pair{"--fabric", &args.fabric}, std::pair{"--device", &args.device}})
    if (value->empty())
      return report({Errc::value, {option, 0, 0}, "is required", "see weft agent --help", {}});
  const Status status = run_agent(common, args);
  return status ? done : report(status.error());
}

}  // namespace

void add_agent(Commands& commands) {
  const auto [command, args] = commands.add<AgentArgs>(
      "agent", "Monitor the local machine and report faults", agent_command);
  Commands::add_log_level(command);
  command.add_option("--fabric", args.fabric, "Scenario or fabric file");
  command.add_option("--device", args.device, "Switch or host on which the agent runs");
  command.add_option("--log", args.logs, "Log file to follow; may be repeated");
  command.add_option("--rules", args.rules, "YAML file merged over the built-in detections");
  Commands::add_lone_flag(command, "--show-rules", args.show_rules,
                          "Print the built-in detections");
  command.add_option("--interval", args.interval, "Interval between heartbeats and counter reads");
  command.add_option("--to", args.to,
                     "Service: https://HOST[:PORT], unix:/PATH, or tls://HOST,.../SUBJECT of NATS");
  command.add_option("--token", args.token, "File with the token for the service");
  command.add_option("--ca", args.ca, "Certificates to trust instead of the system's");
  command.add_option("--cert", args.certificate, "Client certificate, if the service requires one");
  command.add_option("--key", args.key, "Key of --cert");
  command.add_option("--spool", args.spool,
                     "Directory for lines that the service has not acknowledged");
  command.add_option("--spool-size", args.spool_size, "Maximum size of the spool");
  command.add_option("--inventory", args.inventory, "CSV with addresses of devices and ports");
  command.add_option("--catalogue", args.catalogue, "YAML with additional log messages");
  command.add_option("--health", args.health,
                     "File for the service's table of path health; may be repeated");
  CLI::Option* traces = command.add_option(
      "--traces", args.traces, "Folder of libweft-nccl.so's rings to send, e.g. /dev/shm");
  command.add_option("--trace-every", args.trace_every, "How often a trace that changed is sent")
      ->needs(traces);
  command.add_option("--job", args.job, "Job of the traces; else the service's list of jobs says")
      ->needs(traces);
  CLI::Option* te = command.add_flag(
      "--te", args.te, "On a switch: report cables, and install marks of traffic engineering");
  command.add_option("--addresses", args.addresses, "CSV with node,address of NICs")->needs(te);
  command.add_flag("--te-off", args.te_off, "Remove this switch's marks, and end")->excludes(te);
  command.add_option("--show-health", args.show_health, "Print the table of path health in a file");
  command.add_option("--ports-per-card", args.ports_per_card, "Ports per line card")
      ->check(CLI::Range(1, 4096));
}

}  // namespace weft::cli
