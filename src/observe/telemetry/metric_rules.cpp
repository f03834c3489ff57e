#include "observe/telemetry/metric_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace weft::observe::telemetry {
namespace {

using model::EventKind;
using port::Metric;

constexpr std::int64_t span_ns_max = std::int64_t{7} * 24 * 60 * ns_per_minute;
constexpr std::size_t rules_max = 1'000;
constexpr std::int64_t samples_in_row_max = 100;

std::int64_t read_ns(Reader& reader, std::string_view key) {
  const std::int64_t ns = reader.duration(key, {}).ps / ps_per_ns;
  if (ns >= 0 && ns <= span_ns_max) return ns;
  reader.error(Errc::value, reader.where(key), fmt::format("\"{}\" is outside 0 s to 7 d", key),
               "write e.g. \"30 s\"");
  return 0;
}

// "[BEGINS, ENDS]" or one number for both.
enum class Side : std::uint8_t { above, below };
Threshold read_threshold(Reader& reader, std::string_view key, Side bad) {
  Threshold out;
  if (!reader.has(key)) return out;
  const std::vector<Token> tokens = reader.texts(key);
  const auto refuse = [&](std::string what) {
    reader.error(Errc::value, reader.where(key), std::move(what),
                 "write [start threshold, end threshold]");
  };
  if (tokens.empty() || tokens.size() > 2) {
    refuse(fmt::format("\"{}\" is not one or two numbers", key));
    return out;
  }
  const auto begins = parse_number(tokens.front()), ends = parse_number(tokens.back());
  if (!begins) reader.error(begins.error());
  if (!ends && tokens.size() == 2) reader.error(ends.error());
  if (!begins || !ends) return out;
  if (bad == Side::above ? *ends > *begins : *ends < *begins)
    refuse(fmt::format("\"{}\" ends on the wrong side of its start threshold", key));
  return {*begins, *ends};
}

Metric read_metric(Reader& reader) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < port::metric_count; ++i)
    names.emplace_back(to_text(static_cast<Metric>(i)));
  return static_cast<Metric>(reader.choice("metric", names, {}));
}

void check_form(Reader& reader, const MetricRule& rule) {
  const bool is_level = rule.above.is_set() || rule.below.is_set() || rule.drop.is_set();
  const bool is_growth = rule.share.is_set() || rule.rate.is_set();
  const bool is_counter = port::is_counter(rule.metric);
  if (is_counter ? (is_level || !is_growth) : (is_growth || !is_level))
    reader.error(
        Errc::value, reader.where(),
        fmt::format("{} is a {}", to_text(rule.metric), is_counter ? "counter" : "level"),
        is_counter ? "use \"rate\", \"share\" or both" : "use \"above\", \"below\" or \"drop\"");
  if (rule.metric == Metric::uptime_s)
    reader.error(Errc::value, reader.where("metric"), "restarts are detected without a rule",
                 "remove this rule");
  if (rule.kind == EventKind::info)
    reader.error(Errc::value, reader.where("kind"), "kind info has no effect", "use another kind");
}

MetricRule read_rule(const Config& config, const std::string& name, Errors& errors) {
  Reader reader(config, name, errors);
  MetricRule out;
  out.name = name;
  out.metric = read_metric(reader);
  out.component = reader.text("component", "");
  out.kind = static_cast<EventKind>(reader.choice("kind", model::event_kind_names(), {}));
  out.above = read_threshold(reader, "above", Side::above);
  out.below = read_threshold(reader, "below", Side::below);
  out.drop = read_threshold(reader, "drop", Side::above);
  out.share = read_threshold(reader, "share", Side::above);
  out.rate = read_threshold(reader, "rate", Side::above);
  out.least = reader.number("least", 1, 0, 1e18);
  out.samples = static_cast<std::uint32_t>(reader.count("samples", 1, 1, samples_in_row_max));
  const std::size_t known = errors.size();
  reader.finish();
  if (known == errors.size()) check_form(reader, out);
  return out;
}

Result<MetricRules> read(const Config& config) {
  Errors errors;
  Reader reader(config, "metric rules", errors);
  MetricRules out;
  out.repeat_ns = read_ns(reader, "repeat");
  out.spacing_ns = read_ns(reader, "spacing");
  out.gap_ns = read_ns(reader, "gap");
  out.clock_ns = read_ns(reader, "clock");
  out.baseline_ns = read_ns(reader, "baseline");
  out.settle_ns = read_ns(reader, "settle");
  if (const Config* rules = reader.child("rules"); rules != nullptr) {
    if (rules->kind != Config::Kind::map && rules->kind != Config::Kind::null)
      reader.error(Errc::parse, rules->where, "\"rules\" is not a map", "give each rule a name");
    else if (rules->fields.size() > rules_max)
      reader.error(Errc::value, rules->where, fmt::format("more than {} rules", rules_max),
                   "use patterns for components");
    else
      for (const Config::Field& field : rules->fields)
        out.rules.push_back(read_rule(field.value, field.key, errors));
  }
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace

bool matches_glob(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

MetricRules default_metric_rules() {
  auto rules = read_metric_rules(Config{});
  WEFT_CHECK(rules.has_value());
  return *std::move(rules);
}

Result<MetricRules> read_metric_rules(const Config& config) {
  return read(laid_over(default_metric_rules_text(), config));
}

}  // namespace weft::observe::telemetry
