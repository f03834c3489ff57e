#include "adapt/live/alertmanager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.hpp"

namespace weft::adapt::live {
namespace {

using nlohmann::json;

constexpr std::string_view api_path = "api/v2/alerts";
constexpr std::array<std::string_view, 6> critical{"switch", "rack_switch", "rack",
                                                   "power",  "zone",        "capacity"};
constexpr std::array<std::string_view, 2> informative{"port_flap", "unknown"};
constexpr std::int64_t ps_per_s = 1'000'000'000'000;

std::string text_at(const json& body, const char* pointer) {
  const json::json_pointer where(pointer);
  return body.contains(where) && body.at(where).is_string() ? body.at(where).get<std::string>()
                                                            : std::string();
}

std::string severity_of(const AlertmanagerSettings& settings, const std::string& kind) {
  if (const auto it = settings.severity.find(kind); it != settings.severity.end())
    return it->second;
  if (std::ranges::find(critical, kind) != critical.end()) return "critical";
  return std::ranges::find(informative, kind) != informative.end() ? "info" : "warning";
}

// "ctsw:5/Ethernet7" has an interface; "a--b", "a->b" a peer; anything else is a device.
void add_place(AlertLabels& labels, std::string_view entity) {
  for (const std::string_view joint : {std::string_view("--"), std::string_view("->")})
    if (const std::size_t at = entity.find(joint); at != std::string_view::npos) {
      labels["device"] = entity.substr(0, at);
      labels["peer"] = entity.substr(at + joint.size());
      return;
    }
  const std::size_t slash = entity.find('/');
  labels["device"] = entity.substr(0, slash);
  if (slash != std::string_view::npos) labels["interface"] = entity.substr(slash + 1);
}

json alert(const AlertmanagerSettings& settings, const AlertLabels& labels,
           const port::Notice& notice, std::int64_t end_ns) {
  const json body = json::parse(notice.body, nullptr, false);
  const std::string opened = text_at(body, "/opened");
  const auto begin = parse_timestamp({opened, {}});
  json out{{"labels", labels},
           {"annotations", {{"summary", notice.summary}, {"event", notice.event}}},
           {"startsAt", to_text(begin && *begin <= notice.t ? *begin : notice.t)},
           {"endsAt", to_text(Timestamp{end_ns})}};
  if (!settings.external_url.empty())
    out["generatorURL"] = fmt::format("{}/{}", settings.external_url, notice.case_id);
  return out;
}

void read_texts(Reader& reader, std::string_view key, std::map<std::string, std::string>& out) {
  const Config* config = reader.child(key);
  if (config == nullptr) return;
  for (const Config::Field& field : config->fields) {
    const bool fine = !field.key.empty() && std::ranges::all_of(field.key, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
    if (!fine || field.value.kind != Config::Kind::scalar)
      reader.error(Errc::value, field.where,
                   fmt::format("{} is not a valid name", quote(field.key)),
                   "use letters, digits and _");
    out[field.key] = field.value.text;
  }
}

}  // namespace

Result<AlertmanagerSettings> read_alertmanager_settings(const Config& config) {
  Errors errors;
  Reader reader(config, "alertmanager", errors);
  AlertmanagerSettings out;
  out.http = read_http_settings(reader);
  std::string& path = out.http.target.path;
  if (!path.ends_with(api_path)) path += (path.ends_with('/') ? "" : "/") + std::string(api_path);
  read_texts(reader, "labels", out.labels);
  read_texts(reader, "severity", out.severity);
  out.external_url = reader.text("external_url", "");
  out.hold_s = reader.duration("hold", Duration{out.hold_s * ps_per_s}).ps / ps_per_s;
  if (out.hold_s < 60) reader.error(Errc::value, reader.where("hold"), "the minimum is one minute");
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

AlertLabels alert_labels(const AlertmanagerSettings& settings, const port::Notice& notice) {
  const json body = json::parse(notice.body, nullptr, false);
  std::string kind = text_at(body, "/cause/kind");
  if (kind.empty()) kind = "unknown";
  AlertLabels out = settings.labels;
  out["alertname"] = "weft_" + kind;
  out["case"] = notice.case_id;
  out["severity"] = severity_of(settings, kind);
  add_place(out, text_at(body, "/cause/entity"));
  std::erase_if(out, [](const auto& label) { return label.second.empty(); });
  return out;
}

std::string alerts_json(const AlertmanagerSettings& settings, const port::Notice& notice,
                        const AlertLabels& former) {
  const AlertLabels labels = alert_labels(settings, notice);
  const bool closed = notice.event == "case_closed";
  const std::int64_t end = closed ? notice.t.ns : notice.t.ns + settings.hold_s * ns_per_s;
  json out = json::array({alert(settings, labels, notice, end)});
  if (!former.empty() && former != labels)
    out.push_back(alert(settings, former, notice, notice.t.ns));
  return out.dump(-1, ' ', false, json::error_handler_t::replace);
}

AlertmanagerNotifier::AlertmanagerNotifier(AlertmanagerSettings settings)
    : settings_(std::move(settings)) {}

Status AlertmanagerNotifier::notify(const port::Notice& notice) {
  // What is said of a repair after its case: the alert has ended.
  const json body = json::parse(notice.body, nullptr, false);
  const bool is_over = body.is_object() && body.contains("open") && body["open"] == false;
  if (is_over && notice.event != "case_closed") return {};
  const auto it = told_.find(notice.case_id);
  const AlertLabels former = it == told_.end() ? AlertLabels{} : it->second;
  WEFT_TRY_STATUS(post_json(settings_.http.target, settings_.http.retry,
                            alerts_json(settings_, notice, former), [] { return HttpHeaders{}; }));
  told_.erase(notice.case_id);
  if (notice.event == "case_closed") return {};
  // Ids of cases begin with their time, so that the first is an old one.
  if (told_.size() >= cases_max) told_.erase(told_.begin());
  told_[notice.case_id] = alert_labels(settings_, notice);
  return {};
}

}  // namespace weft::adapt::live
