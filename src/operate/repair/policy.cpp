#include "operate/repair/policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"

namespace weft::operate::repair {
namespace {

constexpr std::int64_t span_ns_max = std::int64_t{90} * 24 * 3600 * ns_per_s;
constexpr std::int64_t count_max = 1'000'000;

constexpr std::array<std::string_view, 4> modes{"observe", "propose", "approve", "auto"};
constexpr std::array<std::string_view, ttr_part_count> parts{"detect", "triage", "drain",
                                                             "repair", "verify", "rma"};

// In [least, 90 d].
std::int64_t read_ns(Reader& reader, std::string_view key, std::int64_t least = 0) {
  const std::int64_t ns = reader.duration(key, {}).ps / ps_per_ns;
  if (ns >= least && ns <= span_ns_max) return ns;
  reader.error(Errc::value, reader.where(key),
               fmt::format("\"{}\" is outside {} to 90 d", key, least == 0 ? "0 s" : "1 ms"),
               "write e.g. \"30 s\"");
  return least;
}

constexpr std::int64_t ns_per_ms = 1'000'000;

std::uint32_t read_count(Reader& reader, std::string_view key, std::int64_t least = 0) {
  return static_cast<std::uint32_t>(reader.count(key, {}, least, count_max));
}

template <class Enum>
Enum read_choice(Reader& reader, std::string_view key, const std::vector<std::string>& names) {
  return static_cast<Enum>(reader.choice(key, names, {}));
}

const Config& section(Reader& reader, std::string_view key) {
  static const Config none;
  const Config* found = reader.child(key);
  return found == nullptr ? none : *found;
}

void read_verify(const Config& config, Problem& out, Errors& errors) {
  Reader reader(config, "verify", errors);
  out.packets = static_cast<std::uint64_t>(reader.count("packets", {}, 1, 1'000'000'000));
  out.lost_max = static_cast<std::uint64_t>(reader.count("lost", {}, 0, 1'000'000));
  out.rate_min = reader.number("rate", {}, 0, 1);
  out.quiet_ns = read_ns(reader, "quiet");
  reader.finish();
}

void read_slo(const Config& config, Problem& out, Errors& errors) {
  Reader reader(config, "slo", errors);
  for (std::size_t i = 0; i < ttr_part_count; ++i) out.slo_ns[i] = read_ns(reader, parts[i]);
  reader.finish();
}

Problem read_problem(const Config& config, const std::string& name, Errors& errors) {
  Reader reader(config, name, errors);
  Problem out;
  out.mode = read_choice<Mode>(reader, "mode", {modes.begin(), modes.end()});
  out.confidence = reader.number("confidence", {}, 0, 1);
  out.acts_early = reader.flag("acts_early", {});
  out.counts_as_gone = reader.flag("counts_as_gone", {});
  out.drain = read_choice<DrainTarget>(reader, "drain", {"none", "cable", "switch"});
  out.forecast = read_choice<Forecasting>(reader, "forecast", {"none", "advisory", "required"});
  out.soak_ns = read_ns(reader, "soak");
  out.checks_first = reader.flag("checks_first", {});
  read_verify(section(reader, "verify"), out, errors);
  read_slo(section(reader, "slo"), out, errors);
  reader.finish();
  return out;
}

void read_problems(const Config& defaults, const Config& config, Policy& out, Errors& errors) {
  Reader reader(config, "problems", errors);
  const std::vector<std::string> names = model::cause_kind_names();
  for (std::size_t i = 0; i < names.size(); ++i) {
    Config whole = defaults;
    if (const Config* own = reader.child(names[i]); own && own->kind != Config::Kind::null)
      overlay(whole, *own);
    // A wrong default is told once, not for each problem type that takes it over.
    Errors found;
    out.problems[i] = read_problem(whole, names[i], found);
    for (Error& error : found)
      if (std::ranges::none_of(errors, [&](const Error& e) {
            return e.code == error.code && e.where.text() == error.where.text();
          }))
        errors.push_back(std::move(error));
  }
  reader.finish();
}

GuardPolicy read_guards(const Config& config, Errors& errors) {
  Reader reader(config, "guards", errors);
  GuardPolicy out;
  out.rack_share = reader.number("rack_share", {}, 0, 1);
  out.plane_share = reader.number("plane_share", {}, 0, 1);
  out.demand_share = reader.number("demand_share", {}, 0, 1);
  out.total_max = read_count(reader, "total");
  out.zone_max = read_count(reader, "zone");
  out.rack_max = read_count(reader, "rack");
  out.role_max = read_count(reader, "role");
  out.drains_per_hour = read_count(reader, "drains_per_hour");
  out.part_drains_per_hour = read_count(reader, "part_drains_per_hour", 1);
  out.slowdown_max = reader.number("slowdown", {}, 1, 1e6);
  out.stalled_max = read_count(reader, "stalled_jobs");
  out.undrain_when_killed = reader.flag("undrain_when_killed", {});
  out.undrain_when_frozen = reader.flag("undrain_when_frozen", {});
  Reader offender(section(reader, "offender"), "offender", errors);
  out.offender_repairs = read_count(offender, "repairs", 1);
  out.offender_ns = read_ns(offender, "within", ns_per_ms);
  offender.finish();
  reader.finish();
  return out;
}

Timing read_timing(const Config& config, Errors& errors) {
  Reader reader(config, "timing", errors);
  Timing out;
  out.confirm_every_ns = read_ns(reader, "confirm_every", ns_per_ms);
  out.confirm_ns = read_ns(reader, "confirm", ns_per_ms);
  out.order_ns = read_ns(reader, "order", ns_per_ms);
  out.blocked_ns = read_ns(reader, "blocked", ns_per_ms);
  out.snapshot_ns = read_ns(reader, "snapshot");
  out.recheck_ns = read_ns(reader, "recheck", ns_per_ms);
  out.recheck_max_ns = read_ns(reader, "recheck_max", ns_per_ms);
  out.failed_look_ns = read_ns(reader, "failed_look", ns_per_ms);
  out.notice_ns = read_ns(reader, "notice", ns_per_ms);
  out.early_ns = read_ns(reader, "early");
  out.short_ns = read_ns(reader, "short");
  out.grace_ns = read_ns(reader, "grace");
  out.again_ns = read_ns(reader, "again");
  out.hold_ns = read_ns(reader, "hold");
  out.hold_max_ns = read_ns(reader, "hold_max");
  out.remember_ns = read_ns(reader, "remember", ns_per_ms);
  reader.finish();
  return out;
}

Retries read_retries(const Config& config, Errors& errors) {
  Reader reader(config, "retries", errors);
  Retries out{.acts = read_count(reader, "acts", 1),
              .notices = read_count(reader, "notices", 1),
              .checks = read_count(reader, "checks", 1),
              .rollbacks = read_count(reader, "rollbacks")};
  reader.finish();
  return out;
}

Timestamp read_time(Reader& reader, std::string_view key) {
  const std::string text = reader.text(key, {});
  if (text.empty()) return {};  // told already
  auto t = parse_timestamp({text, reader.where(key)});
  Status fits = t ? check_range(*t, reader.where(key)) : std::unexpected(std::move(t.error()));
  if (fits) return *t;
  reader.error(std::move(fits.error()));
  return {};
}

std::vector<Freeze> read_freezes(const Config& config, Errors& errors) {
  std::vector<Freeze> out;
  if (config.kind != Config::Kind::list && config.kind != Config::Kind::null)
    errors.push_back({Errc::parse,
                      config.where,
                      "\"freezes\" is not a list",
                      "write \"- {from: 2026-12-23T00:00:00Z, until: ..., why: holidays}\"",
                      {}});
  if (config.items.size() > freezes_max)
    errors.push_back({Errc::value,
                      config.where,
                      fmt::format("{} freezes, {} at most", config.items.size(), freezes_max),
                      "merge windows",
                      {}});
  for (std::size_t i = 0; i < config.items.size() && i < freezes_max; ++i) {
    Reader reader(config.items[i], "freeze", errors);
    Freeze row{
        .from = read_time(reader, "from"), .until = read_time(reader, "until"), .who = "policy"};
    row.why = reader.text("why", "");
    if (row.until <= row.from)
      reader.error(Errc::value, reader.where("until"), "the freeze ends before it begins");
    reader.finish();
    out.push_back(std::move(row));
  }
  return out;
}

Result<Policy> read(const Config& config) {
  Errors errors;
  Reader reader(config, "policy", errors);
  Policy out;
  read_problems(section(reader, "defaults"), section(reader, "problems"), out, errors);
  out.guards = read_guards(section(reader, "guards"), errors);
  out.timing = read_timing(section(reader, "timing"), errors);
  out.retries = read_retries(section(reader, "retries"), errors);
  out.freezes = read_freezes(section(reader, "freezes"), errors);
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace

std::string_view to_text(TtrPart part) { return parts[static_cast<std::size_t>(part)]; }
std::string_view to_text(Mode mode) { return modes[static_cast<std::size_t>(mode)]; }

Status check_range(Timestamp t, const Where& where) {
  if (t.ns <= time_ns_max && t.ns >= -time_ns_max) return {};
  return fail(Errc::value, where, fmt::format("{} is out of range", weft::to_text(t)),
              fmt::format("specify a time from {} to {}", weft::to_text(Timestamp{-time_ns_max}),
                          weft::to_text(Timestamp{time_ns_max})));
}

Policy default_policy() {
  auto policy = read_policy(Config{});
  WEFT_CHECK(policy.has_value());
  return *std::move(policy);
}

Result<Policy> read_policy(const Config& config) {
  return read(laid_over(default_policy_text(), config));
}

}  // namespace weft::operate::repair
