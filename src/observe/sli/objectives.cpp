#include "observe/sli/objectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace weft::observe::sli {
namespace {

constexpr std::array<std::string_view, 7> span_names{
    "rack-internal", "cross-rack", "pod", "cross-pod", "zone", "cross-zone", "all"};
constexpr std::int64_t ps_per_minute = 60'000'000'000'000;
constexpr std::int64_t window_minutes_max = std::int64_t{100} * 24 * 60;
constexpr std::size_t objectives_max = 100;
constexpr std::size_t name_bytes_max = 40;

bool is_name(std::string_view text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= name_bytes_max && std::ranges::all_of(text, fits) &&
         text.front() != '-' && text.back() != '-';
}

std::string read_name(Reader& reader, std::set<std::string>& taken) {
  std::string name = reader.text("name", {});
  if (name.empty()) return name;
  if (!is_name(name))
    reader.error(Errc::value, reader.where("name"),
                 fmt::format("{} is not a valid name", quote(name)),
                 "use up to 40 lower-case letters, digits and \"-\" between them");
  else if (!taken.insert(name).second)
    reader.error(Errc::value, reader.where("name"),
                 fmt::format("duplicate objective {}", quote(name)), "give each a unique name");
  return name;
}

Share read_share(Reader& reader, std::string_view key, Share fallback) {
  if (!reader.has(key)) return fallback;
  const std::string text = reader.text(key, {});
  if (text.empty()) return fallback;
  auto share = parse_share({text, reader.where(key)});
  if (!share) {
    reader.error(std::move(share).error());
    return fallback;
  }
  if (share->ppb > 0 && share->ppb < whole_ppb) return *share;
  reader.error(Errc::value, reader.where(key), fmt::format("\"{}\" is {}", key, text),
               "use a share above 0 % and below 100 %");
  return fallback;
}

std::int64_t read_minutes(Reader& reader, std::string_view key, std::int64_t fallback) {
  const Duration span = reader.duration(key, Duration{fallback * ps_per_minute});
  const std::int64_t minutes = span.ps / ps_per_minute;
  if (span.ps % ps_per_minute == 0 && minutes >= 1 && minutes <= window_minutes_max) return minutes;
  reader.error(Errc::value, reader.where(key),
               fmt::format("\"{}\" is not a whole number of minutes from 1 min to 100 d", key),
               "write e.g. \"30 d\"");
  return fallback;
}

Objective read_objective(const Config& config, std::set<std::string>& names, Errors& errors) {
  Reader reader(config, "objective", errors);
  Objective out;
  const std::vector<std::string> spans(span_names.begin(), span_names.end());
  out.name = read_name(reader, names);
  out.span = static_cast<Span>(reader.choice("scope", spans, {}));
  out.traffic_class = reader.text("class", "");
  out.loss = read_share(reader, "loss", out.loss);
  out.corruption = read_share(reader, "corruption", out.corruption);
  out.latency_p99_us = reader.duration("latency_p99", Duration{0}).us();
  if (reader.has("minimum_probes"))
    out.minimum_probes =
        static_cast<std::uint64_t>(reader.count("minimum_probes", {}, 1, UINT32_MAX));
  out.target = read_share(reader, "target", out.target);
  out.window_minutes = read_minutes(reader, "window", out.window_minutes);
  reader.finish();
  return out;
}

Alert read_alert(const Config& config, std::set<std::string>& names, Errors& errors) {
  Reader reader(config, "alert", errors);
  Alert out;
  out.name = read_name(reader, names);
  out.factor_milli = std::llround(reader.number("factor", {}, 0.001, 1e6) * 1000);
  out.long_minutes = read_minutes(reader, "long", out.long_minutes);
  out.short_minutes = read_minutes(reader, "short", out.short_minutes);
  if (out.short_minutes > out.long_minutes)
    reader.error(Errc::value, reader.where("short"), "\"short\" is longer than \"long\"",
                 "swap the two");
  reader.finish();
  return out;
}

// A list of maps; `fallback` where the key is absent.
template <class T, class Read>
std::vector<T> read_list(Reader& reader, std::string_view key, std::vector<T> fallback, Read read) {
  const Config* list = reader.child(key);
  if (list == nullptr || list->kind == Config::Kind::null) return fallback;
  if (list->kind != Config::Kind::list || list->items.size() > objectives_max) {
    reader.error(Errc::value, list->where, fmt::format("\"{}\" is not a list of at most 100", key),
                 "write \"- {name: ...}\" for each");
    return fallback;
  }
  std::vector<T> out;
  out.reserve(list->items.size());
  for (const Config& item : list->items) out.push_back(read(item));
  return out;
}

Objective default_objective(Span span) {
  Objective out;
  out.name = std::string(to_text(span));
  out.span = span;
  out.latency_p99_us = 1000;
  return out;
}

}  // namespace

std::string_view to_text(Span span) { return span_names[static_cast<std::size_t>(span)]; }

Result<Share> parse_share(const Token& token) {
  std::string_view text = trim(token.text);
  const auto wrong = [&](std::string_view what) {
    return fail(Errc::parse, token.where, fmt::format("{} {}", quote(token.text), what),
                "write e.g. \"99.9 %\" or 0.999");
  };
  // Decimals that still count: of a percentage two less.
  int decimals = 9;
  if (text.ends_with('%')) {
    text = trim(text.substr(0, text.size() - 1));
    decimals = 7;
  }
  std::int64_t ppb = 0;
  bool seen_point = false, seen_digit = false;
  for (const char c : text) {
    if (c == '.' && !seen_point) {
      seen_point = true;
      continue;
    }
    if (c < '0' || c > '9') return wrong("is not a share");
    if (seen_point && --decimals < 0) return wrong("has too many decimals");
    seen_digit = true;
    ppb = ppb * 10 + (c - '0');
    if (ppb > 10 * whole_ppb) return wrong("is more than 100 %");
  }
  if (!seen_digit) return wrong("is not a share");
  for (; decimals > 0 && ppb <= whole_ppb; --decimals) ppb *= 10;
  if (ppb > whole_ppb) return wrong("is more than 100 %");
  return Share{ppb};
}

std::string to_text(Share share) {
  std::string digits = fmt::format("{}.{:07}", share.ppb / 10'000'000, share.ppb % 10'000'000);
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits + " %";
}

std::string window_text(std::int64_t minutes) {
  constexpr std::int64_t day = 1440;
  if (minutes % day == 0) return fmt::format("{}d", minutes / day);
  return minutes % 60 == 0 ? fmt::format("{}h", minutes / 60) : fmt::format("{}m", minutes);
}

std::uint64_t probes_needed(const Objective& objective, int scale_percent) {
  if (objective.minimum_probes) return *objective.minimum_probes;
  const auto ppb = static_cast<std::uint64_t>(objective.loss.ppb);
  const std::uint64_t losses = losses_needed * whole_ppb * 100;
  const std::uint64_t threshold = ppb * static_cast<std::uint64_t>(scale_percent);
  return (losses + threshold - 1) / threshold;
}

std::vector<Alert> default_alerts() {
  return {{"page-fast", 14'400, 60, 5},
          {"page-slow", 6'000, std::int64_t{6} * 60, 30},
          {"ticket", 1'000, std::int64_t{3} * 24 * 60, std::int64_t{6} * 60}};
}

Settings default_settings() {
  Settings out;
  for (const Span span : {Span::rack_internal, Span::cross_rack, Span::zone, Span::cross_zone})
    out.objectives.push_back(default_objective(span));
  out.alerts = default_alerts();
  return out;
}

Result<Settings> read_settings(const Config& config) {
  Errors errors;
  Settings out = default_settings();
  if (config.kind != Config::Kind::map && config.kind != Config::Kind::null)
    return fail(Errc::parse, config.where, "not a map of settings", "begin with \"objectives:\"");
  Reader reader(config, "objectives file", errors);
  std::set<std::string> names, alert_names;
  out.objectives =
      read_list(reader, "objectives", std::move(out.objectives),
                [&](const Config& item) { return read_objective(item, names, errors); });
  out.alerts = read_list(reader, "alerts", std::move(out.alerts),
                         [&](const Config& item) { return read_alert(item, alert_names, errors); });
  if (out.objectives.empty())
    reader.error(Errc::value, reader.where("objectives"), "no objectives",
                 "remove the key to use the defaults");
  out.slack_ns = reader.duration("slack", Duration{out.slack_ns * 1000}).ps / 1000;
  if (out.slack_ns < 0 || out.slack_ns > 86'400 * ns_per_s)
    reader.error(Errc::value, reader.where("slack"), "\"slack\" is not within 0 to 1 d",
                 "write e.g. \"1 min\"");
  if (reader.has("planned")) {
    out.planned.clear();
    for (const Token& kind : reader.texts("planned")) out.planned.emplace_back(kind.text);
  }
  out.confidence = reader.number("confidence", out.confidence, 0.5, 0.999999);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::observe::sli
