#include "operate/triage/rules.hpp"

#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "base/check.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace weft::operate::triage {
namespace {

using model::EventKind;

constexpr std::int64_t span_ns_max = std::int64_t{7} * 24 * 3600 * ns_per_s;
constexpr double weight_max = 1e6;
constexpr std::uint32_t count_max = 1'000'000;
constexpr std::array<std::string_view, meaning_count> meanings{
    "nothing", "down",    "session", "clear",  "soft",       "light",
    "loss",    "silence", "fault",   "change", "congestion", "planned"};

using Groups = std::map<std::string, KindMask, std::less<>>;

std::int64_t read_ns(Reader& reader, std::string_view key, std::int64_t least = 0) {
  const std::int64_t ns = reader.duration(key, Duration{0}).ps / ps_per_ns;
  if (ns >= least && ns <= span_ns_max) return ns;
  reader.error(Errc::value, reader.where(key),
               fmt::format("\"{}\" is outside {} to 7 d", key, least == 0 ? "0 s" : "1 s"),
               "write e.g. \"30 s\"");
  return least;
}

Rules::Timing read_timing(const Config& config, Errors& errors) {
  Reader reader(config, "timing", errors);
  Rules::Timing out;
  out.lateness_ns = read_ns(reader, "lateness");
  out.together_ns = read_ns(reader, "together");
  out.at_once_ns = read_ns(reader, "at_once");
  out.spread_ns = read_ns(reader, "spread");
  out.lesser_ns = read_ns(reader, "lesser");
  out.reboot_ns = read_ns(reader, "reboot");
  out.blip_ns = read_ns(reader, "blip");
  out.soft_ns = read_ns(reader, "soft");
  out.cleared_ns = read_ns(reader, "cleared", ns_per_s);
  out.relapse_ns = read_ns(reader, "relapse", ns_per_s);
  out.silent_ns = read_ns(reader, "silent", ns_per_s);
  out.unrepaired_ns = read_ns(reader, "unrepaired", ns_per_s);
  out.congested_ns = read_ns(reader, "congested", ns_per_s);
  out.change_ns = read_ns(reader, "change");
  reader.finish();
  return out;
}

Rules::Clock read_clock(const Config& config, Errors& errors) {
  Reader reader(config, "clock", errors);
  Rules::Clock out{read_ns(reader, "behind"), read_ns(reader, "ahead"), read_ns(reader, "delay")};
  reader.finish();
  return out;
}

std::uint32_t read_count(Reader& reader, std::string_view key) {
  return static_cast<std::uint32_t>(reader.count(key, {}, 1, count_max));
}

Rules::Cards read_cards(const Config& config, Errors& errors) {
  Reader reader(config, "cards", errors);
  Rules::Cards out{read_count(reader, "ports")};
  reader.finish();
  return out;
}

Rules::Counts read_counts(const Config& config, Errors& errors) {
  Reader reader(config, "counts", errors);
  Rules::Counts out{read_count(reader, "flaps"),  read_count(reader, "soft"),
                    read_count(reader, "losses"), read_count(reader, "silences"),
                    read_count(reader, "faults"), read_count(reader, "congestion"),
                    read_count(reader, "part"),   read_count(reader, "racks")};
  reader.finish();
  return out;
}

// Names of kinds and groups, as one mask.
KindMask read_kinds(Reader& reader, std::string_view key, const Groups& groups) {
  KindMask out = 0;
  for (const Token& name : reader.texts(key)) {
    if (const auto group = groups.find(name.text); group != groups.end()) {
      out |= group->second;
    } else if (const auto kind = model::event_kind(name.text)) {
      out |= bit(*kind);
    } else {
      std::vector<std::string> known = model::event_kind_names();
      for (const auto& [known_group, mask] : groups) known.push_back(known_group);
      reader.error(
          Errc::unknown, name.where,
          fmt::format("unknown event kind {}{}", quote(name.text), did_you_mean(name.text, known)),
          "use a kind or one of the groups");
    }
  }
  return out;
}

Groups read_groups(const Config& config, Errors& errors) {
  Reader reader(config, "groups", errors);
  Groups out;
  for (const Config::Field& field : config.fields)
    out[field.key] = read_kinds(reader, field.key, {});
  reader.finish();
  return out;
}

EventRule read_event(const Config& config, const std::string& name, Errors& errors) {
  static const std::vector<std::string> names(meanings.begin(), meanings.end());
  Reader reader(config, name, errors);
  EventRule out;
  out.meaning = static_cast<Meaning>(reader.choice("says", names, {}));
  out.wait_ns = read_ns(reader, "wait");
  out.spread_ns = read_ns(reader, "spread");
  reader.finish();
  return out;
}

void read_direct(const Config& config, CauseRule& rule, Errors& errors) {
  Reader reader(config, "direct", errors);
  for (const std::string& kind : model::event_kind_names())
    if (reader.has(kind))
      rule.direct[static_cast<std::size_t>(*model::event_kind(kind))] =
          reader.number(kind, {}, 0, weight_max);
  reader.finish();
}

CauseRule read_cause(const Config& config, const std::string& name, const Groups& groups,
                     Errors& errors) {
  Reader reader(config, name, errors);
  CauseRule out;
  out.price = reader.number("price", {}, 0, weight_max);
  out.silent = reader.number("silent", 0, 0, weight_max);
  out.expects = read_kinds(reader, "expects", groups);
  out.explains = read_kinds(reader, "explains", groups);
  out.doubts = read_kinds(reader, "doubts", groups);
  if (const Config* direct = reader.child("direct")) read_direct(*direct, out, errors);
  reader.finish();
  return out;
}

const Config& section(Reader& reader, std::string_view key, const Config& none) {
  const Config* child = reader.child(key);
  return child == nullptr ? none : *child;
}

// What a table says of each of `names`; what is not named there is not changed.
template <class Read>
void read_table(Reader& reader, std::string_view key, const std::vector<std::string>& names,
                Errors& errors, Read read) {
  const Config none;
  Reader table(section(reader, key, none), std::string(key), errors);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const Config* row = table.child(names[i])) read(i, *row, names[i]);
  table.finish();
}

Result<Rules> read(const Config& config) {
  const Config none;
  Errors errors;
  Reader reader(config, "rules", errors);
  Rules out;
  out.gain = reader.number("gain", {}, 0.001, weight_max);
  out.timing = read_timing(section(reader, "timing", none), errors);
  out.clock = read_clock(section(reader, "clock", none), errors);
  out.cards = read_cards(section(reader, "cards", none), errors);
  out.counts = read_counts(section(reader, "counts", none), errors);
  const Groups groups = read_groups(section(reader, "groups", none), errors);
  read_table(reader, "events", model::event_kind_names(), errors,
             [&](std::size_t i, const Config& row, const std::string& name) {
               out.events[i] = read_event(row, name, errors);
             });
  read_table(reader, "causes", model::cause_kind_names(), errors,
             [&](std::size_t i, const Config& row, const std::string& name) {
               out.causes[i] = read_cause(row, name, groups, errors);
             });
  reader.finish();
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace

KindMask Rules::kinds(Meaning meaning) const {
  KindMask out = 0;
  for (std::size_t i = 0; i < events.size(); ++i)
    if (events[i].meaning == meaning) out |= KindMask{1} << i;
  return out;
}

Rules default_rules() {
  auto rules = read_rules(Config{});
  WEFT_CHECK(rules.has_value());
  return *std::move(rules);
}

Result<Rules> read_rules(const Config& config) {
  return read(laid_over(default_rules_text(), config));
}

}  // namespace weft::operate::triage
