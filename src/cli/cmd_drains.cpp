#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <variant>

#include "adapt/devices/actuator.hpp"
#include "base/config.hpp"
#include "base/json_line.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "cli/serve_actuator.hpp"
#include "cli/service_client.hpp"

namespace weft::cli {
namespace {

struct DrainsArgs {
  ServiceArgs service;
  std::string freeze, reason;
  bool thaw = false, stop = false, resume = false;
  std::string plan, fabric, config, section;  // of --plan: a part, and where it is described
  bool undrain = false, look = false;
};

std::string list_of(JsonNode items) {
  return items.size() == 0 ? "none" : fmt::format("{}", fmt::join(texts_of(items), ", "));
}

void print_drains(JsonNode capacity) {
  fmt::print("kill switch: {}\n",
             capacity.member("kill_switch").flag().value_or(false) ? "ON, nothing is done" : "off");
  const JsonNode frozen = capacity.member("frozen");
  for (std::size_t i = 0; i < frozen.size(); ++i)
    fmt::print("frozen from {} until {} by {}: {}\n", text_of(frozen.item(i), "from"),
               text_of(frozen.item(i), "until"), text_of(frozen.item(i), "who"),
               text_of(frozen.item(i), "why"));
  if (frozen.size() == 0) fmt::print("frozen: no\n");
  const JsonNode out = capacity.member("out");
  fmt::print("out of service ({} of at most {}): {}\n", out.size(),
             capacity.member("out_max").whole().value_or(0), list_of(out));
  if (const JsonNode moving = capacity.member("moving"); moving.size() > 0)
    fmt::print("drain or return under way: {}\n", list_of(moving));
  fmt::print("suspected: {}\n", list_of(capacity.member("suspected")));
  const JsonNode groups = capacity.member("groups");
  fmt::print("uplink groups whole: {}\n", capacity.member("groups_whole").whole().value_or(0));
  if (groups.size() == 0) return;
  Table table({{"uplinks of", Table::Align::left}, {"in service"}, {"of"}, {"without suspects"}});
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const JsonNode group = groups.item(i);
    table.add({text_of(group, "name"), fmt::format("{}", group.member("live").whole().value_or(0)),
               fmt::format("{}", group.member("cables").whole().value_or(0)),
               fmt::format("{:.0f} %",
                           100 * group.member("share_without_suspects").number().value_or(0))});
  }
  fmt::print("\n{}", table.text());
}

// What is asked for, as method, path and body; no method: nothing but to look.
struct Request {
  std::string_view method, path;
  std::string body, told;
};

Result<Request> request_of(const DrainsArgs& args) {
  const int asked = int(!args.freeze.empty()) + int(args.thaw) + int(args.stop) + int(args.resume);
  if (asked > 1)
    return fail(Errc::value, {"--freeze"},
                "one of --freeze, --thaw, --stop and --resume at a time");
  if ((asked == 1) == args.reason.empty())
    return fail(Errc::value, {"--reason"}, "it belongs to --freeze, --thaw, --stop or --resume",
                "give the reason for the audit log");
  JsonObject body;
  body.add("reason", args.reason);
  if (args.stop)
    return Request{"PUT", "/v1/kill-switch", body.text(), "kill switch on: nothing is done"};
  if (args.resume) return Request{"DELETE", "/v1/kill-switch", body.text(), "kill switch off"};
  if (args.thaw)
    return Request{"DELETE", "/v1/freeze", body.text(), "no freeze but those of the policy"};
  if (args.freeze.empty()) return Request{};
  body.add("until", args.freeze);
  return Request{"POST", "/v1/freeze", body.text(), "no new drains until " + args.freeze};
}

Status run_drains(const Common& common, const DrainsArgs& args) {
  if (args.service.from.empty())
    return fail(Errc::value, {"--from"}, "no service is given",
                "name it with --from, or use --plan, which needs none");
  WEFT_TRY(const Request request, request_of(args));
  WEFT_TRY(ServiceClient service, ServiceClient::open(args.service));
  if (request.method.empty()) {
    WEFT_TRY(const std::string text, service.get("/v1/capacity"));
    WEFT_TRY(const JsonLine capacity, JsonLine::parse(text, {"the capacity"}));
    if (common.json)
      fmt::print("{}\n", text);
    else
      print_drains(capacity.node());
    return {};
  }
  WEFT_TRY(const std::string answer,
           service.send(request.method, std::string(request.path), request.body));
  fmt::print("{}\n", common.json ? answer : request.told);
  return {};
}

namespace devices = adapt::devices;

// `actuator:` of the file, which is that of weft serve.
Result<devices::Settings> read_switches(const DrainsArgs& args) {
  WEFT_TRY(Config config, load_yaml(args.config));
  const Config* found = args.section.empty() ? &config : config.find(args.section);
  if (found != nullptr) found = found->find("actuator");
  if (found == nullptr)
    return fail(Errc::unknown, {args.config, 0, 0}, "there is no section actuator",
                "give its parent key with --section, or add it");
  WEFT_TRY(const ActuatorSettings settings, read_actuator_settings(*found));
  if (const auto* switches = std::get_if<devices::Settings>(&settings)) return *switches;
  return fail(Errc::unsupported, found->where, "the actuator runs programs of your own",
              "--plan shows what is sent to the switches of actuator: {switches: FILE}");
}

JsonObject to_json(const devices::Plan& plan) {
  JsonList steps;
  for (const devices::Commands& step : plan.steps) steps.add(step);
  return JsonObject()
      .add("device", plan.device->name)
      .add("address", plan.device->address)
      .add("dialect", plan.device->dialect->name)
      .add("transport", plan.device->dialect->transport)
      .add("interface",
           plan.interface_name.empty() ? std::nullopt : std::optional(plan.interface_name))
      .add("steps", steps)
      .add("reads", plan.state);
}

void print_plan(const std::vector<devices::Plan>& plans, const devices::Settings& settings,
                port::ActionKind kind) {
  for (const devices::Plan& plan : plans) {
    fmt::print("{}{}{} at {}, {} by {}\n", plan.device->name,
               plan.interface_name.empty() ? "" : " ", plan.interface_name, plan.device->address,
               plan.device->dialect->name, to_text(plan.device->dialect->transport));
    for (const std::string& command : plan.state) fmt::print("  asks   {}\n", command);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
      if (i > 0)
        fmt::print("  waits  {}\n",
                   human_seconds(static_cast<double>(settings.settle.count()) / 1e3));
      for (const std::string& command : plan.steps[i]) fmt::print("  sends  {}\n", command);
    }
  }
  if (plans.size() > 1 && kind == port::ActionKind::drain)
    fmt::print("the second end only when it has lost its signal\n");
}

// Sends nothing; with --look it asks.
Status run_plan(const Common& common, const DrainsArgs& args) {
  WEFT_TRY(const devices::Settings settings, read_switches(args));
  WEFT_TRY(const model::Fabric fabric, load_fabric(common, args.fabric));
  WEFT_TRY(devices::DeviceActuator actuator, devices::DeviceActuator::create(fabric, settings));
  const auto kind = args.undrain ? port::ActionKind::undrain : port::ActionKind::drain;
  WEFT_TRY(const std::vector<devices::Plan> plans, actuator.plan(args.plan, kind));
  std::optional<port::Service> state;
  if (args.look) {
    WEFT_TRY(state, actuator.state(args.plan));
  }
  if (common.json) {
    JsonList items;
    for (const devices::Plan& plan : plans) items.add(to_json(plan));
    fmt::print("{}\n", JsonObject()
                           .add("part", args.plan)
                           .add("action", kind)
                           .add("settle_s", static_cast<double>(settings.settle.count()) / 1e3)
                           .add("devices", items)
                           .add("state", state)
                           .text());
    return {};
  }
  print_plan(plans, settings, kind);
  if (state) fmt::print("state: {}\n", port::to_text(*state));
  return {};
}

int drains_command(const Common& common, const DrainsArgs& args) {
  if (!args.plan.empty()) {
    const Status done = run_plan(common, args);
    return done ? weft::cli::done : report(done.error());
  }
  return service_status(run_drains(common, args), args.service);
}

}  // namespace

void add_drains(Commands& commands) {
  const auto [command, args] = commands.add<DrainsArgs>(
      "drains", "Drains of a service: what is out, and the switches that stop new ones",
      drains_command);
  add_service_options(command, args.service);
  command.add_option("--freeze", args.freeze,
                     "No new drains until this time, as 2026-12-01T06:00:00Z");
  command.add_flag("--thaw", args.thaw, "End the freezes set by hand");
  command.add_flag("--stop", args.stop, "Kill switch on: neither drains nor returns");
  command.add_flag("--resume", args.resume, "Kill switch off");
  command.add_option("--reason", args.reason, "Why, for the audit log");
  auto* const from = command.get_option("--from")->required(false);
  auto* const plan = command.add_option(
      "--plan", args.plan, "Part: print what its drain would send to which switch, send nothing");
  plan->excludes(from);
  auto* const fabric =
      command.add_option("--fabric", args.fabric, "With --plan: scenario or fabric file");
  auto* const config = command.add_option("--config", args.config,
                                          "With --plan: file with actuator:, as of weft serve");
  plan->needs(fabric)->needs(config);
  fabric->needs(plan);
  config->needs(plan);
  command.add_option("--section", args.section, "With --plan: key that holds actuator:")
      ->needs(plan);
  command.add_flag("--undrain", args.undrain, "With --plan: the way back")->needs(plan);
  command.add_flag("--look", args.look, "With --plan: read its state from the switches, too")
      ->needs(plan);
}

}  // namespace weft::cli
