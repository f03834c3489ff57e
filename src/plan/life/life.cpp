#include "plan/life/life.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/life/closed_form.hpp"

namespace weft::plan::life {
namespace {

constexpr std::int64_t hosts_max = 1'000'000;
constexpr double strikes_max = 1e9;  // to be simulated
constexpr double every_least_s = 1;
constexpr double seconds_most = 100 * seconds_per_day;
constexpr std::size_t causes_max = 1000;
constexpr double per_1000_max = 1e6;

class LifeReader {
 public:
  LifeReader(const Config& section, Measured& measured, Errors& errors)
      : reader_(section, "life", errors), measured_(measured), errors_(errors) {}

  Life read() {
    const std::size_t before = errors_.size();
    for (const char* key : {"what_if", "surface"}) reader_.child(key);  // others read them
    read_cluster();
    read_stops();
    read_causes();
    read_repair();
    reader_.finish();
    if (errors_.size() == before) check();
    return std::move(life_);
  }

 private:
  double seconds(std::string_view key, Reader& reader, std::optional<Duration> fallback = {}) {
    const Config* value = reader.child(key);
    if (value == nullptr || value->kind != Config::Kind::map)
      return reader.duration(key, fallback).seconds();
    const double found = measured_.seconds(*value).value_or(0);
    if (found > seconds_most)
      reader.error(Errc::value, value->where,
                   fmt::format("{:g} s is longer than weft counts", found),
                   "give a time of at most 100 d");
    return std::min(found, seconds_most);
  }
  std::uint32_t hosts(std::string_view key, std::optional<std::int64_t> fallback,
                      std::int64_t least = 0) {
    return static_cast<std::uint32_t>(reader_.count(key, fallback, least, hosts_max));
  }

  void read_cluster() {
    life_.hosts = hosts("hosts", std::nullopt, 1);
    life_.spares = hosts("spares", std::nullopt);
    life_.crews = hosts("crews", 0);
    life_.days = reader_.number("days", 54, 0.01, 3660);
    life_.runs = static_cast<std::uint32_t>(reader_.count("runs", 1000, 2, 100'000));
    if (reader_.has("calibrate")) {
      life_.calibrate_at = reader_.where("calibrate");
      life_.calibrate = reader_.number("calibrate", std::nullopt, 1e-3, strikes_max);
    }
    if (const Config* shrink = reader_.child("shrink")) read_shrink(*shrink);
  }
  void read_shrink(const Config& section) {
    Reader reader(section, "life.shrink", errors_);
    const std::int64_t hosts = std::max(1u, life_.hosts);
    life_.shrink_by = static_cast<std::uint32_t>(reader.count("by", std::nullopt, 1, hosts));
    life_.least = static_cast<std::uint32_t>(reader.count("least", life_.shrink_by, 1, hosts));
    if (life_.shrink_by > 0 && life_.hosts % life_.shrink_by != 0)
      reader.error(Errc::value, reader.where("by"),
                   fmt::format("\"hosts\" is {}, which is not a multiple of \"shrink.by\" {}",
                               life_.hosts, life_.shrink_by),
                   "\"by\" is the hosts of one data-parallel replica");
    reader.finish();
  }

  void read_stops() {
    if (const Config* checkpoint = required("checkpoint", "{every: 15 min, stall: 15 s}")) {
      Reader reader(*checkpoint, "life.checkpoint", errors_);
      const Config* every = reader.child("every");
      if (every == nullptr || every->text != "best") {
        life_.every_s = seconds("every", reader);
        if (every != nullptr && *life_.every_s < every_least_s)
          reader.error(Errc::value, every->where, "a checkpoint interval is at least 1 s",
                       "give e.g. 15 min, or \"best\"");
      }
      life_.stall_s = seconds("stall", reader);
      reader.finish();
    }
    if (const Config* detect = required("detect", "{crash: 30 s, hang: 10 min, hang_share: 0.1}")) {
      Reader reader(*detect, "life.detect", errors_);
      life_.crash_s = seconds("crash", reader);
      has_hang_ = reader.has("hang");
      life_.hang_s = seconds("hang", reader, Duration{});
      hang_share_ = reader.number("hang_share", 0, 0, 1);
      if (hang_share_ > 0) need_hang(reader.where("hang_share"));
      reader.finish();
    }
    life_.localise_s = seconds("localise", reader_);
    life_.swap_s = seconds("swap", reader_, Duration{});
    life_.restart_s = seconds("restart", reader_);
    life_.planned_s = seconds("planned_stop", reader_, Duration{});
    if (const Config* manual = reader_.child("manual")) {
      Reader reader(*manual, "life.manual", errors_);
      life_.manual_share = reader.number("share", std::nullopt, 0, 1);
      life_.manual_s = seconds("takes", reader);
      reader.finish();
    }
  }
  void need_hang(const Where& where) {
    if (!has_hang_)
      reader_.error(Errc::value, where, "a \"hang_share\" needs \"detect.hang\"",
                    "add detect: {hang: 10 min}: the time-out by which a hang is noticed");
  }
  const Config* required(std::string_view key, std::string_view example) {
    const Config* child = reader_.child(key);
    if (child == nullptr)
      reader_.error(Errc::parse, reader_.where(), fmt::format("\"life\" has no \"{}\"", key),
                    fmt::format("add e.g. {}: {}", key, example));
    return child;
  }

  void read_causes() {
    if (reader_.has("rates")) {
      std::vector<std::string> names;
      for (const RateTable& table : rate_tables()) names.emplace_back(table.name);
      const RateTable& table = rate_tables()[reader_.choice("rates", names, 0)];
      life_.source = table.source;
      for (const RateRow& row : table.rows) {
        life_.causes.push_back({.name = std::string(row.name),
                                .group = row.group,
                                .per_host_day = row.per_1000_host_days / 1000,
                                .hang_share = row.group == Group::planned ? 0 : hang_share_});
        names_.insert(life_.causes.back().name);
      }
    }
    if (const Config* causes = reader_.child("causes")) {
      if (causes->kind != Config::Kind::list)
        reader_.error(Errc::parse, causes->where, "\"causes\" is a list",
                      "e.g. [{name: dead spine, group: network, per_1000_host_days: 0.01}]");
      if (causes->items.size() > causes_max)
        reader_.error(Errc::value, causes->where,
                      fmt::format("{} causes; weft takes {}", causes->items.size(), causes_max),
                      "put together what strikes alike");
      else
        for (const Config& cause : causes->items) read_cause(cause);
    }
    if (!reader_.has("rates") && !reader_.has("causes"))
      reader_.error(Errc::parse, reader_.where(), "\"life\" has neither \"rates\" nor \"causes\"",
                    "add \"rates: llama3\", or a list of causes of your own");
    if (const Config* scale = reader_.child("scale")) read_scale(*scale);
  }
  void read_cause(const Config& section) {
    Reader reader(section, "life.causes", errors_);
    Cause cause;
    cause.name = reader.text("name", std::nullopt);
    if (!names_.insert(cause.name).second)
      reader.error(Errc::value, reader.where("name"),
                   fmt::format("there are two causes named \"{}\"", cause.name),
                   "give each a name of its own; \"scale\" changes the rate of a shipped one");
    static const std::vector<std::string> groups{"host", "network", "software", "planned"};
    cause.group = static_cast<Group>(reader.choice("group", groups, std::nullopt));
    cause.per_host_day = reader.number("per_1000_host_days", std::nullopt, 0, per_1000_max) / 1000;
    cause.stops = reader.flag("stops", true);
    const bool hangs = cause.stops && cause.group != Group::planned;
    cause.hang_share = reader.number("hang_share", hangs ? hang_share_ : 0, 0, 1);
    if (reader.has("hang_share") && cause.hang_share > 0) need_hang(reader.where("hang_share"));
    if (reader.has("hang_share") && !hangs)
      reader.error(Errc::value, reader.where("hang_share"),
                   "a cause that is planned or does not stop the job does not hang it",
                   "remove \"hang_share\"");
    const Config* factor = reader.child("factor");
    if (factor != nullptr && factor->kind == Config::Kind::map)
      cause.factor = measured_.step_factor(*factor).value_or(1);
    else
      cause.factor = reader.number("factor", 1, 1, 1000);
    cause.lasts_s = seconds("lasts", reader, Duration{});
    if (reader.has("factor") != reader.has("lasts"))
      reader.error(Errc::value, reader.where(),
                   "\"factor\" and \"lasts\" belong together: slower steps, until the repair",
                   "give both, e.g. factor: 1.2, lasts: 3 h");
    if (!cause.stops && (cause.group == Group::host || cause.group == Group::planned))
      reader.error(Errc::value, reader.where("stops"),
                   fmt::format("a cause of group {} stops the job", to_text(cause.group)),
                   "what only slows it down is of group network or software");
    if (!cause.stops && !reader.has("factor"))
      reader.error(Errc::value, reader.where("stops"),
                   "a cause that neither stops the job nor slows it down has no effect",
                   "add factor: 1.2, lasts: 3 h");
    reader.finish();
    life_.causes.push_back(std::move(cause));
  }
  // By group or by cause; both may apply.
  void read_scale(const Config& section) {
    if (section.kind != Config::Kind::map)
      return reader_.error(Errc::parse, section.where, "\"scale\" is a map from causes to factors",
                           "e.g. {network: 2}");
    Reader reader(section, "life.scale", errors_);
    for (const Config::Field& field : section.fields) {
      const double by = reader.number(field.key, std::nullopt, 0, 1000);
      bool found = false;
      for (Cause& cause : life_.causes)
        if (cause.name == field.key || to_text(cause.group) == field.key) {
          cause.per_host_day *= by;
          found = true;
        }
      if (!found)
        reader.error(Errc::unknown, field.where,
                     fmt::format("there is no cause or group of causes \"{}\"", field.key),
                     "groups: host, network, software, planned; causes: those of \"rates\" and "
                     "\"causes\"");
    }
  }

  void read_repair() {
    if (const Config* repair = required("repair", "{takes: 24 h}")) {
      Reader reader(*repair, "life.repair", errors_);
      life_.repair_s = seconds("takes", reader);
      static const std::vector<std::string> shapes{"constant", "exponential", "lognormal"};
      life_.repair_shape = static_cast<Shape>(reader.choice("shape", shapes, 2));
      reader.finish();
    }
    if (const Config* lemons = reader_.child("lemons")) {
      Reader reader(*lemons, "life.lemons", errors_);
      life_.lemon_share = reader.number("share", std::nullopt, 0, 0.5);
      life_.lemon_times = reader.number("times", std::nullopt, 1, 1000);
      life_.retire_after = static_cast<std::uint32_t>(reader.count("retire_after", 0, 0, 1000));
      reader.finish();
    }
  }

  void check() {
    const auto scale = life_.calibrate ? calibration(life_, *life_.calibrate) : 1.0;
    if (life_.calibrate && life_.stops_per_host_day() <= 0)
      reader_.error(Errc::value, reader_.where("calibrate"),
                    "\"calibrate\" needs interruptions, but no cause has a rate",
                    "give a cause with a rate, or remove \"calibrate\"");
    else if (life_.calibrate && !scale)
      reader_.error(Errc::value, reader_.where("calibrate"),
                    fmt::format("{:g} interruptions of {:.0f} s each take all of {:g} days",
                                *life_.calibrate, stops_of(life_, 1).dead, life_.days),
                    "fewer interruptions, or shorter \"detect\", \"localise\" and \"swap\"");
    double strikes = scale.value_or(0) * life_.days * life_.runs;
    double per_host_day = 0;
    for (const Cause& cause : life_.causes) per_host_day += cause.per_host_day;
    strikes *= per_host_day * (1.0 * life_.hosts + life_.spares);
    if (strikes > strikes_max)
      reader_.error(Errc::value, reader_.where(),
                    fmt::format("causes would strike {:.2g} times in {} runs of {:g} days, and "
                                "weft simulates at most {:g}",
                                strikes, life_.runs, life_.days, strikes_max),
                    "fewer runs, fewer days or lower rates");
  }

  Reader reader_;
  Measured& measured_;
  Errors& errors_;
  Life life_;
  double hang_share_ = 0;
  bool has_hang_ = false;
  std::set<std::string> names_;
};

void read_what_if(const Config& base, const Config& section, Measured& measured, LifePlan& plan,
                  Errors& errors) {
  Config changes = section;
  const Config* name = section.find("name");
  const auto refuse = [&](const Where& where, std::string what, std::string hint) {
    errors.push_back({Errc::value, where, std::move(what), std::move(hint)});
  };
  if (section.kind != Config::Kind::map || name == nullptr || name->kind != Config::Kind::scalar ||
      section.fields.size() < 2)
    return refuse(section.where, "a what-if has a name and keys of \"life\" that it changes",
                  "e.g. {name: twice the spares, spares: 48}");
  for (const WhatIf& other : plan.what_ifs)
    if (other.name == name->text)
      return refuse(name->where, fmt::format("there are two what-ifs named \"{}\"", name->text),
                    "give each a name of its own");
  for (const char* fixed : {"days", "runs", "calibrate", "what_if", "surface"})
    if (const Config* value = section.find(fixed))
      return refuse(value->where, fmt::format("a what-if cannot change \"{}\"", fixed),
                    "it is compared run by run with the base, from the same random numbers");
  std::erase_if(changes.fields, [](const Config::Field& field) { return field.key == "name"; });
  Config config = base;
  std::erase_if(config.fields, [](const Config::Field& field) { return field.key == "calibrate"; });
  overlay(config, changes);
  plan.what_ifs.push_back({name->text, LifeReader(config, measured, errors).read()});
}

std::vector<double> spans(Reader& reader, std::string_view key, Errors& errors) {
  std::vector<double> out;
  for (const Token& token : reader.texts(key)) {
    const auto span = parse_duration(token);
    if (!span)
      errors.push_back(span.error());
    else
      out.push_back(span->seconds());
  }
  return out;
}

}  // namespace

double Life::stops_per_host_day() const {
  double sum = 0;
  for (const Cause& cause : causes)
    if (cause.stops) sum += cause.per_host_day;
  return sum;
}

LifePlan read_life(const Config& section, Errors& errors, LoadFile load) {
  LifePlan plan;
  Measured measured(std::move(load), errors);
  plan.base = LifeReader(section, measured, errors).read();
  const bool is_sound = errors.empty();
  const auto given = [&](std::string_view key) -> const Config* {
    const Config* found = section.find(key);
    return found != nullptr && found->kind != Config::Kind::null ? found : nullptr;
  };
  if (const Config* what_if = given("what_if")) {
    if (what_if->kind != Config::Kind::list)
      errors.push_back({Errc::parse, what_if->where, "\"what_if\" is a list",
                        "e.g. [{name: no spares, spares: 0}]"});
    else if (is_sound)  // else each would repeat the errors
      for (const Config& item : what_if->items) read_what_if(section, item, measured, plan, errors);
  }
  if (const Config* surface = given("surface")) {
    Reader reader(*surface, "life.surface", errors);
    plan.surface.emplace();
    plan.surface->goodput = reader.number("goodput", std::nullopt, 0.01, 0.999);
    plan.surface->stalls_s = spans(reader, "stall", errors);
    plan.surface->every_s = spans(reader, "every", errors);
    if (plan.surface->stalls_s.empty() && errors.empty())
      reader.error(Errc::parse, reader.where(), "\"surface\" has no list \"stall\"",
                   "add e.g. stall: [5 s, 15 s, 30 s]");
    for (const double every : plan.surface->every_s)
      if (every < every_least_s)
        reader.error(Errc::value, reader.where("every"), "a checkpoint interval is at least 1 s",
                     "e.g. [5 min, 15 min]");
    reader.finish();
  }
  return plan;
}

}  // namespace weft::plan::life
