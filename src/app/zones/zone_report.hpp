// The zones of a region, for people and programs.
#pragma once

#include <span>
#include <string>

#include "app/zones/zone_view.hpp"
#include "base/json_text.hpp"
#include "serve/http.hpp"

namespace weft::app {

// Causes that are open in more than one zone: a change or a batch may be behind them.
std::string common_causes(std::span<const ZoneView> zones);

std::string to_table(std::span<const ZoneView> zones);
JsonObject to_json(std::span<const ZoneView> zones, Timestamp now);
// Prometheus text.
std::string zone_metrics(std::span<const ZoneView> zones);
// One page of HTML without a script; the browser reads it again every `refresh_s` seconds.
serve::Reply zone_page(std::span<const ZoneView> zones, std::int64_t refresh_s);

}  // namespace weft::app
