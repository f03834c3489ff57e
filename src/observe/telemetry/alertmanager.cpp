#include "observe/telemetry/alertmanager.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "model/events/entity.hpp"
#include "observe/telemetry/host_kind.hpp"
#include "observe/telemetry/metric_rules.hpp"

namespace weft::observe::telemetry {

using model::EventKind;
using model::NodeId;

namespace {

using Json = nlohmann::json;
using Labels = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t bytes_max = 16u << 20, alerts_max = 10'000, told_max = 100'000;
constexpr std::size_t text_max = 1'024, message_max = 8'192;
constexpr int depth_max = 16;

// Every name of a built-in alert that this knows from the node_exporter mixin, and patterns of what
// people call theirs.
constexpr std::string_view alerts_yaml = R"yaml(
device_labels: [instance, host, hostname, node, device, target, source, switch]
part_labels: [interface, ifName, device, port, nic, peer, neighbor, bgpPeerRemoteAddr]
alerts:
  - {alert: Watchdog, kind: info}
  - {alert: InfoInhibitor, kind: info}
  - {alert: NodeNetworkInterfaceFlapping, kind: link_down}
  - {alert: NodeNetworkReceiveErrs, kind: crc_errors}
  - {alert: NodeFilesystem*, kind: storage_error}
  - {alert: NodeRAID*, kind: storage_error}
  - {alert: NodeMemoryHighUtilization, kind: memory_error}
  - {alert: NodeCPUHighUsage, kind: cpu_high}
  - {alert: TargetDown, kind: device_unreachable}
  - {alert: InstanceDown, kind: device_unreachable}
  - {alert: HostDown, kind: device_unreachable}
  - {alert: SwitchDown, kind: device_unreachable}
  - {alert: "*Unreachable*", kind: device_unreachable}
  - {alert: "*BGP*", kind: bgp_down}
  - {alert: "*Bgp*", kind: bgp_down}
  - {alert: "*BFD*", kind: bfd_down}
  - {alert: "*LinkDown*", kind: link_down}
  - {alert: "*PortDown*", kind: link_down}
  - {alert: "*InterfaceDown*", kind: link_down}
  - {alert: "*CRC*", kind: crc_errors}
  - {alert: "*InterfaceErrors*", kind: crc_errors}
  - {alert: "*Discards*", kind: discards}
  - {alert: "*PFC*", kind: pfc_pauses}
  - {alert: "*RxPower*", kind: rx_power}
  - {alert: "*TxPower*", kind: tx_power}
  - {alert: "*OpticTemperature*", kind: optic_temperature}
  - {alert: "*Temperature*", kind: temperature_high}
  - {alert: "*Fan*", kind: fan_fail}
  - {alert: "*PSU*", kind: psu_fail}
  - {alert: "*PowerSupply*", kind: psu_fail}
  - {alert: "*HighCPU*", kind: cpu_high}
)yaml";

AlertRow read_alert_row(const Config& config, Errors& errors) {
  AlertRow out;
  Reader reader(config, "alert", errors);
  out.alert = reader.text("alert", {});
  out.kind = static_cast<EventKind>(reader.choice("kind", model::event_kind_names(), {}));
  out.where = read_label_patterns(reader, errors);
  reader.finish();
  return out;
}

Status add(const Config& config, AlertMapping& out) {
  Errors errors;
  Reader reader(config, "alerts", errors);
  reader.flag("builtin", true);
  for (const auto& [key, labels] : {std::pair{"device_labels", &out.device_labels},
                                    std::pair{"part_labels", &out.part_labels}}) {
    if (!reader.has(key)) continue;
    labels->clear();
    for (const Token& label : reader.texts(key)) labels->emplace_back(label.text);
  }
  std::vector<AlertRow> rows;
  if (const Config* const list = reader.child("alerts"); list != nullptr) {
    if (list->kind != Config::Kind::list && list->kind != Config::Kind::null)
      reader.error(Errc::parse, list->where, "\"alerts\" is not a list", "write one row per alert");
    for (const Config& row : list->items) rows.push_back(read_alert_row(row, errors));
  }
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  out.rows.insert(out.rows.begin(), rows.begin(), rows.end());
  return {};
}

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>().substr(0, text_max)
                                               : std::string();
}

Labels labels_of(const Json& alert) {
  Labels out;
  const auto labels = alert.find("labels");
  if (labels == alert.end() || !labels->is_object()) return out;
  for (const auto& [key, value] : labels->items())
    if (value.is_string())
      out.emplace_back(key.substr(0, text_max), value.get<std::string>().substr(0, text_max));
  return out;
}

// The year 1 is how Go writes that there is none.
std::optional<Timestamp> time_of(const Json& alert, const char* key) {
  const std::string text = text_of(alert, key);
  if (text.empty() || text.starts_with("0001-")) return std::nullopt;
  const auto t = parse_timestamp({text, {}});
  return t ? std::optional(*t) : std::nullopt;
}

bool is_of_port(EventKind kind) {
  using enum EventKind;
  switch (kind) {
    case link_down:
    case interface_down:
    case crc_errors:
    case discards:
    case prefec_ber:
    case rx_power:
    case tx_power:
    case optic_temperature:
    case bgp_down:
    case bfd_down:
    case nic_down:
    case nic_errors:
    case pfc_pauses:
    case ecn_marks:
    case queue_depth:
      return true;
    default:
      return false;
  }
}

// "10.0.0.1:9100" without its port.
std::string_view without_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == text.size()) return text;
  const bool is_port = std::ranges::all_of(text.substr(colon + 1), is_digit);
  return is_port ? text.substr(0, colon) : text;
}

}  // namespace

struct AlertReader::Alert {
  bool is_firing = false;
  std::string name, fingerprint;
  Labels labels;
  std::optional<Timestamp> starts, ends;
  const AlertRow* row = nullptr;

  std::string_view label(std::string_view key) const {
    const auto at = std::ranges::find(labels, key, &Labels::value_type::first);
    return at == labels.end() ? std::string_view() : std::string_view(at->second);
  }
  // Of this beginning or end; without a time that tells one from the next, of each receipt.
  std::string key(Timestamp received) const {
    std::string out = fingerprint;
    if (out.empty())
      for (const auto& [label, value] : labels) out += fmt::format("{}={},", label, value);
    return out + fmt::format("@{}{}", starts.value_or(received).ns, is_firing ? '+' : '-');
  }
};

std::string_view builtin_alerts_text() { return alerts_yaml; }

AlertMapping AlertMapping::built_in() {
  AlertMapping out;
  const auto config = parse_yaml(alerts_yaml, "built-in alerts");
  WEFT_CHECK(config.has_value());
  WEFT_CHECK(add(*config, out).has_value());
  return out;
}

Result<AlertMapping> AlertMapping::from_yaml(const Config& config) {
  AlertMapping out = built_in();
  const Config* const flag = config.find("builtin");
  if (flag != nullptr && flag->text == "false") out.rows.clear();
  WEFT_TRY_STATUS(add(config, out));
  return out;
}

AlertReader::AlertReader(const Inventory& inventory, const AlertMapping& mapping,
                         std::string id_prefix)
    : inventory_(inventory), mapping_(mapping), id_prefix_(std::move(id_prefix)) {}

model::RecordSet AlertReader::take_records() { return std::exchange(set_, {}); }

Status AlertReader::read(std::string_view json, Timestamp received) {
  ++counts_.payloads;
  const auto refuse = [&](std::string what) {
    ++counts_.refused;
    return fail(Errc::parse, {"webhook", 0, 0}, std::move(what),
                "send Alertmanager's webhook payload, version 4");
  };
  if (json.size() > bytes_max) return refuse("more than 16 MiB");
  bool is_deep = false;
  const Json body = Json::parse(
      json,
      [&](int depth, Json::parse_event_t, const Json&) {
        is_deep |= depth > depth_max;
        return depth <= depth_max;
      },
      /*allow_exceptions=*/false);
  if (is_deep) return refuse("nested too deeply");
  if (body.is_discarded() || !body.is_object()) return refuse("not a JSON object");
  const auto alerts = body.find("alerts");
  if (text_of(body, "version") != "4" || alerts == body.end() || !alerts->is_array())
    return refuse("not \"version\" \"4\" with a list of \"alerts\"");
  if (alerts->size() > alerts_max) return refuse("more than 10,000 alerts");
  if (const auto left = body.find("truncatedAlerts"); left != body.end())
    if (left->is_number_unsigned()) counts_.truncated += left->get<std::uint64_t>();
  for (const Json& one : *alerts) {
    ++counts_.alerts;
    const std::string status = one.is_object() ? text_of(one, "status") : std::string();
    if (status != "firing" && status != "resolved") {
      ++counts_.malformed;
      continue;
    }
    Alert alert{status == "firing",          {},
                text_of(one, "fingerprint"), labels_of(one),
                time_of(one, "startsAt"),    time_of(one, "endsAt")};
    alert.name = alert.label("alertname");
    alert.row = row_of(alert);
    take(alert, received);
  }
  return {};
}

const AlertRow* AlertReader::row_of(const Alert& alert) const {
  for (const AlertRow& row : mapping_.rows) {
    const bool fits = matches_glob(row.alert, alert.name) &&
                      fit(row.where, [&](std::string_view label) { return alert.label(label); });
    if (fits) return &row;
  }
  return nullptr;
}

NodeId AlertReader::device_of(const Alert& alert) const {
  for (const std::string& label : mapping_.device_labels) {
    const std::string_view value = alert.label(label);
    if (value.empty()) continue;
    if (const NodeId exact = inventory_.device(value); exact.valid()) return exact;
    if (const NodeId bare = inventory_.device(without_port(value)); bare.valid()) return bare;
  }
  return {};
}

void AlertReader::place(const Alert& alert, model::Record& row, model::Attributes& attributes) {
  const NodeId device = device_of(alert);
  if (!device.valid()) {
    ++counts_.unknown_devices;
    for (const std::string& label : mapping_.device_labels)
      if (const std::string_view value = alert.label(label); !value.empty()) {
        attributes.emplace_back("entity", value);
        return;
      }
    attributes.emplace_back("entity", alert.name);
    return;
  }
  row.entity = model::entity(device);
  if (alert.row == nullptr || !is_of_port(alert.row->kind)) return;
  const bool is_host = inventory_.fabric().kind(device) == model::NodeKind::host;
  if (is_host) row.kind = on_host(row.kind);
  std::string_view unknown;
  for (const std::string& label : mapping_.part_labels) {
    const std::string_view value = alert.label(label);
    // A label that names the device itself names no part of it.
    if (value.empty() || inventory_.device(value) == device) continue;
    if (const NodeId nic = inventory_.nic(device, value); is_host && nic.valid()) {
      row.entity = model::entity(nic);
      return;
    }
    if (const model::LinkId link = inventory_.towards(device, value); link.valid()) {
      row.entity = model::port_of(link);
      return;
    }
    if (unknown.empty()) unknown = value;
  }
  ++counts_.unknown_parts;
  row.entity = {};
  attributes.emplace_back("entity",
                          fmt::format("{}/{}", inventory_.fabric().name(device), unknown));
}

// Whether this beginning or end was not told yet. The oldest are forgotten.
bool AlertReader::is_news(const std::string& key) {
  if (!told_.insert(key).second) return false;
  told_order_.push_back(key);
  if (told_order_.size() > told_max) {
    told_.erase(told_order_.front());
    told_order_.pop_front();
  }
  return true;
}

void AlertReader::take(const Alert& alert, Timestamp received) {
  ++(alert.is_firing ? counts_.firing : counts_.resolved);
  const EventKind kind = alert.row == nullptr ? EventKind::info : alert.row->kind;
  const bool is_pair = clears(kind) != EventKind::info;
  const std::string key = alert.key(received);
  const bool is_first = is_news(key);
  if (!is_first) ++counts_.repeated;
  const bool is_once = is_first || is_pair || !alert.is_firing;
  const auto when = alert.is_firing ? alert.starts : alert.ends;
  if (!when) ++counts_.without_time;
  model::Record row;
  row.t = row.until = is_once ? when.value_or(received) : received;
  row.received = received;
  row.source = model::Source::alertmanager;
  row.kind = alert.is_firing ? kind : clears(kind);
  row.id = set_.add_id(is_once ? fmt::format("alert-{:016x}", hash_text(key))
                               : fmt::format("{}{}", id_prefix_, counts_.alerts));
  model::Attributes attributes{{"alert", alert.name}};
  if (!alert.fingerprint.empty()) attributes.emplace_back("fingerprint", alert.fingerprint);
  place(alert, row, attributes);
  if (alert.row == nullptr) {
    ++counts_.unknown_alerts;
    std::string message;
    for (const auto& [name, value] : alert.labels)
      message += fmt::format("{}{}={}", message.empty() ? "" : " ", name, value);
    attributes.emplace_back("message", message.substr(0, message_max));
  }
  if (!alert.is_firing && !is_pair) attributes.emplace_back("resolved", std::string(to_text(kind)));
  row.attrs = set_.add_attributes(std::move(attributes));
  set_.rows.push_back(row);
}

}  // namespace weft::observe::telemetry
