// Cases as alerts of Prometheus' Alertmanager, by its API v2.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/http_post.hpp"
#include "base/config.hpp"
#include "base/result.hpp"
#include "port/notifier.hpp"

namespace weft::adapt::live {

struct AlertmanagerSettings {
  HttpSettings http;                            // path: that of the API, "/api/v2/alerts"
  std::map<std::string, std::string> labels;    // on every alert: {"zone": "z1"}
  std::map<std::string, std::string> severity;  // by kind of cause; else as told below
  std::string external_url;                     // where people look a case up; "": none
  std::int64_t hold_s = 86'400;  // an alert ends by itself so long after its last word
};

// YAML: url (of Alertmanager), http settings, labels, severity: {switch: critical}, external_url,
// hold. Fails: every error found.
Result<AlertmanagerSettings> read_alertmanager_settings(const Config& config);

using AlertLabels = std::map<std::string, std::string>;

// alertname ("weft_" and the kind of cause), case, device and interface of what it is traced back
// to (of a cable also peer), severity: critical for whole switches, racks, power, zones and
// capacity, info for flaps and what is unknown, warning else. From the notice's body: {"cause":
// {"kind", "entity"}}.
AlertLabels alert_labels(const AlertmanagerSettings& settings, const port::Notice& notice);

class AlertmanagerNotifier : public port::Notifier {
 public:
  static constexpr std::size_t cases_max = 10'000;

  explicit AlertmanagerNotifier(AlertmanagerSettings settings);
  // Starts the case's alert, or says it anew; "case_closed" ends it, and what is said of a repair
  // after that ("open": false in the body) is left out. Where the cause has become another, the
  // alert of the former ends, which this knows of the last cases_max cases since it was made.
  // Fails: as post_json().
  Status notify(const port::Notice& notice) override;

 private:
  AlertmanagerSettings settings_;
  std::map<std::string, AlertLabels> told_;  // by case
};

// The body of the request. `former`: labels under which the case was told before; none: none.
std::string alerts_json(const AlertmanagerSettings& settings, const port::Notice& notice,
                        const AlertLabels& former);

}  // namespace weft::adapt::live
