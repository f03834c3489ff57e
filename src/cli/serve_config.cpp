#include "cli/serve_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text.hpp"

namespace weft::cli {
namespace {

namespace live = adapt::live;
namespace repair = operate::repair;
namespace telemetry = observe::telemetry;
namespace triage = operate::triage;

template <class T>
void take(T& out, Result<T> result, Errors& errors) {
  if (result)
    out = *std::move(result);
  else
    errors.push_back(std::move(result).error());
}

// notify: a list of {webhook: {...}}, {alertmanager: {...}} and {tickets: {...}}.
void read_notify(const Config& config, ServeConfig& out, Errors& errors) {
  const bool is_absent = config.kind == Config::Kind::map && config.fields.empty();
  if (config.kind != Config::Kind::list && !is_absent)
    errors.push_back({Errc::value,
                      config.where,
                      "notify is not a list",
                      "begin each entry with \"- \", e.g. \"- webhook: {url: ...}\"",
                      {}});
  for (const Config& item : config.items) {
    Reader reader(item, "notify", errors);
    if (item.kind == Config::Kind::map && item.fields.empty())
      reader.error(Errc::value, item.where, "this entry has no recipient",
                   "write webhook, alertmanager or tickets, or remove it");
    if (const Config* webhook = reader.child("webhook")) {
      live::WebhookSettings settings;
      take(settings, live::read_webhook_settings(*webhook), errors);
      out.webhooks.push_back(std::move(settings));
    }
    if (const Config* alertmanager = reader.child("alertmanager")) {
      live::AlertmanagerSettings settings;
      take(settings, live::read_alertmanager_settings(*alertmanager), errors);
      out.alertmanagers.push_back(std::move(settings));
    }
    if (const Config* tickets = reader.child("tickets")) {
      live::TicketSettings settings;
      take(settings, live::read_ticket_settings(*tickets), errors);
      out.tickets.push_back(std::move(settings));
    }
    reader.finish();
  }
}

// relations: the file that weft triage --learn wrote.
Result<triage::LearnedRelations> load_relations(const Config& path, const triage::Rules& rules) {
  if (path.kind != Config::Kind::scalar)
    return fail(Errc::value, path.where, "relations is not a path",
                "give the file written by weft triage --learn");
  WEFT_TRY(const Config config, load_yaml(path.text));
  return triage::LearnedRelations::read(config, rules);
}

}  // namespace

Result<ServeConfig> read_serve_config(const std::string& path, const std::string& key) {
  Config config = Config::map();
  if (!path.empty()) {
    WEFT_TRY(config, load_yaml(path));
  }
  if (!key.empty()) {
    const Config* part = config.find(key);
    if (part == nullptr)
      return fail(Errc::unknown, {path, 0, 0}, fmt::format("there is no section {}", quote(key)),
                  "add it, or remove --section");
    config = Config(*part);
  }
  ServeConfig out;
  Errors errors;
  const auto section = [&](std::string_view key) {
    const auto at = std::ranges::find(config.fields, key, &Config::Field::key);
    Config found = at == config.fields.end() ? Config::map() : std::move(at->value);
    if (at != config.fields.end()) config.fields.erase(at);
    return found;
  };
  // One that may be left out.
  const auto mapping = [&](std::string_view key) {
    Config found = section(key);
    if (found.kind == Config::Kind::map || found.kind == Config::Kind::null) return found;
    errors.push_back({Errc::value,
                      found.where,
                      fmt::format("{} is not a mapping", key),
                      "write its keys below it, indented, or remove it",
                      {}});
    return Config::map();
  };
  take(out.rules, triage::read_rules(section("rules")), errors);
  if (config.find("relations") != nullptr)
    take(out.relations, load_relations(section("relations"), out.rules), errors);
  take(out.policy, repair::read_policy(section("policy")), errors);
  const Config objectives = mapping("objectives");
  out.objectives = observe::sli::default_settings();
  if (!objectives.fields.empty())
    take(out.objectives, observe::sli::read_settings(objectives), errors);
  read_notify(section("notify"), out, errors);
  if (const Config actuator = mapping("actuator"); !actuator.fields.empty())
    take(out.actuator.emplace(), read_actuator_settings(actuator), errors);
  if (const Config snapshots = mapping("snapshots"); !snapshots.fields.empty())
    take(out.devices.emplace(), live::read_device_commands(snapshots), errors);
  if (const Config vendor = mapping("vendor"); !vendor.fields.empty())
    take(out.vendor.emplace(), read_vendor_settings(vendor), errors);
  if (const Config te = mapping("te"); !te.fields.empty())
    take(out.te.emplace(), read_te_settings(te), errors);
  if (const Config nats = mapping("nats"); !nats.fields.empty())
    take(out.nats.emplace(), live::read_nats_feed(nats), errors);
  if (const Config jobs = mapping("jobs"); !jobs.fields.empty())
    take(out.jobs.emplace(), live::read_job_feed(jobs), errors);
  take(out.traces, read_trace_settings(section("traces")), errors);
  if (const Config alerts = mapping("alerts"); !alerts.fields.empty())
    take(out.alerts, telemetry::AlertMapping::from_yaml(alerts), errors);
  take(out.world, app::read_rehearse_model(section("world")), errors);
  take(out.controller, serve::read_controller_settings(config), errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::cli
