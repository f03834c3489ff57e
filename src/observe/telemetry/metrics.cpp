#include "observe/telemetry/metrics.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "base/json_text.hpp"
#include "observe/telemetry/host_kind.hpp"

namespace weft::observe::telemetry {

using model::EntityKind;
using model::EventKind;
using model::LinkId;
using model::NodeId;
using port::Metric;

namespace {

constexpr std::size_t devices_max = 200'000, parts_max = 1'000'000, series_max = 4'000'000;
constexpr std::uint32_t indexes_max = 64;
constexpr std::size_t name_bytes_max = 256, names_kept = 4;
constexpr double ns_of_s = 1e9;
// SNMP's TimeTicks are hundredths of a second in 32 bits: 497 days.
constexpr double uptime_wraps_at_s = 4'294'967'296.0 / 100;
constexpr double uptime_slack_s = 60;
// A mean follows a trouble that stays so much slower.
constexpr double slow_learner = 24;

double seconds(Timestamp from, Timestamp to) {
  return static_cast<double>(to.ns - from.ns) / ns_of_s;
}

// The others are judged with these, wherever in the poll they stand.
bool is_context(Metric metric) {
  return metric == Metric::uptime_s || metric == Metric::admin_up || metric == Metric::in_packets;
}

std::optional<std::uint32_t> trailing_number(std::string_view text) {
  std::size_t first = text.size();
  while (first > 0 && text[first - 1] >= '0' && text[first - 1] <= '9') --first;
  std::uint32_t out = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + first, last, out);
  if (first == text.size() || error != std::errc{} || end != last) return std::nullopt;
  return out;
}

std::string bytes_of(const model::Entity& entity) {
  return fmt::format("{}.{}.{}", static_cast<int>(entity.kind), entity.id, entity.card);
}

}  // namespace

MetricReader::MetricReader(const Inventory& inventory, const MetricRules& rules, Options options)
    : inventory_(inventory), rules_(rules), options_(std::move(options)) {
  // Those for some parts before those for all.
  for (const bool is_special : {true, false})
    for (std::uint32_t i = 0; i < rules.rules.size(); ++i)
      if (rules.rules[i].component.empty() != is_special)
        rules_of_[static_cast<std::size_t>(rules.rules[i].metric)].push_back(i);
}

model::RecordSet MetricReader::take_records() { return std::exchange(set_, {}); }

MetricReader::Class MetricReader::class_of(Metric metric) {
  if (metric <= Metric::prefec_ber) return Class::port;
  return metric <= Metric::bfd_up ? Class::session : Class::part;
}

void MetricReader::note_unknown(std::string_view what, std::string name) {
  const auto same =
      std::ranges::count(counts_.samples_of, what, &std::pair<std::string, std::string>::first);
  if (static_cast<std::size_t>(same) < names_kept)
    counts_.samples_of.emplace_back(what, std::move(name));
}

std::uint32_t MetricReader::device_of(std::string_view name) {
  if (last_device_ != none && name == last_device_name_) return last_device_;
  std::uint32_t found = device_names_.find(0, name);
  if (found == none) {
    if (device_names_.size() >= devices_max || name.size() > name_bytes_max) return none;
    const NodeId node = inventory_.device(name);
    if (node.valid()) found = device_nodes_.find(node.value, "");
    if (found == none) {
      found = static_cast<std::uint32_t>(devices_.size());
      devices_.push_back({.name = std::string(name), .node = node});
      if (node.valid())
        device_nodes_.add(node.value, "", found);
      else
        note_unknown("unknown_devices", std::string(name));
    }
    device_names_.add(0, name, found);
  }
  last_device_ = found;
  last_device_name_ = name;
  return found;
}

model::Entity MetricReader::locate(const Device& device, std::string_view name, Class of) const {
  if (!device.node.valid()) return {};
  LinkId link;
  switch (of) {
    case Class::part:
      return model::entity(device.node);
    case Class::session:
      link = inventory_.towards(device.node, name);
      break;
    case Class::port:
      link = inventory_.port(device.node, name);
      if (!link.valid())
        if (const NodeId nic = inventory_.nic(device.node, name); nic.valid())
          return model::entity(nic);
      break;
  }
  return link.valid() ? model::port_of(link) : model::Entity{};
}

std::uint32_t MetricReader::part_of(std::uint32_t device, std::string_view name, Class of) {
  const std::uint32_t owner = 4 * device + static_cast<std::uint32_t>(of);
  std::uint32_t found = part_names_.find(owner, name);
  if (found != none) return found;
  if (part_names_.size() >= parts_max || name.size() > name_bytes_max) return none;
  const model::Entity entity = locate(devices_[device], name, of);
  // Two names of one port are one part; parts within a device have nothing but their name.
  const bool is_shared = entity.kind != EntityKind::none && of != Class::part;
  if (is_shared) found = part_entities_.find(owner, bytes_of(entity));
  if (found == none) {
    found = static_cast<std::uint32_t>(parts_.size());
    Part part{.entity = entity,
              .device = device,
              .name = std::string(name),
              .is_port = of == Class::port,
              .first = {}};
    part.first.fill(none);
    parts_.push_back(std::move(part));
    if (is_shared) part_entities_.add(owner, bytes_of(entity), found);
    if (entity.kind == EntityKind::none && devices_[device].node.valid())
      note_unknown("unknown_parts", fmt::format("{}/{}", devices_[device].name, name));
  }
  part_names_.add(owner, name, found);
  return found;
}

std::uint32_t MetricReader::rule_of(Metric metric, std::string_view part) const {
  for (const std::uint32_t i : rules_of_[static_cast<std::size_t>(metric)]) {
    const std::string& component = rules_.rules[i].component;
    if (component.empty() || matches_glob(component, part)) return i;
  }
  return none;
}

std::uint32_t MetricReader::series_of(std::uint32_t part, Metric metric, std::uint32_t index,
                                      Timestamp t, double value, bool& is_new) {
  std::uint32_t* at = &parts_[part].first[static_cast<std::size_t>(metric)];
  std::uint32_t seen = 0;
  for (; *at != none; at = &series_[*at].next, ++seen)
    if (series_[*at].index == index) return *at;
  if (seen >= indexes_max || series_.size() >= series_max) return none;
  is_new = true;
  const auto made = static_cast<std::uint32_t>(series_.size());
  *at = made;
  series_.push_back({.part = part,
                     .index = index,
                     .rule = rule_of(metric, parts_[part].name),
                     .t = t,
                     .value = value,
                     .base = t,
                     .mean = value,
                     .began = t,
                     .well = t});
  return made;
}

void MetricReader::take(std::span<const port::Sample> samples, Timestamp received) {
  for (const port::Sample& sample : samples)
    if (is_context(sample.metric)) take_one(sample, received);
  for (const port::Sample& sample : samples)
    if (!is_context(sample.metric)) take_one(sample, received);
}

void MetricReader::take_one(const port::Sample& sample, Timestamp received) {
  ++counts_.samples;
  const bool is_counter = port::is_counter(sample.metric);
  if (!std::isfinite(sample.value) ||
      (sample.value < 0 && (is_counter || sample.metric == Metric::uptime_s))) {
    ++counts_.invalid;
    return;
  }
  Timestamp t = sample.t;
  // In unsigned numbers, for a stamp may be anything.
  if (received.ns != 0) {
    const auto a = static_cast<std::uint64_t>(std::max(t.ns, received.ns));
    const auto b = static_cast<std::uint64_t>(std::min(t.ns, received.ns));
    if (a - b > static_cast<std::uint64_t>(rules_.clock_ns)) {
      ++counts_.wrong_clocks;
      t = received;
    }
  }
  if (std::abs(static_cast<double>(t.ns)) > static_cast<double>(timestamp_ns_max) / 2) {
    ++counts_.invalid;
    return;
  }
  const std::uint32_t device = device_of(sample.device);
  if (device == none) {
    ++counts_.refused;
    return;
  }
  if (!devices_[device].node.valid()) ++counts_.unknown_devices;
  if (sample.metric == Metric::uptime_s) return take_uptime(device, t, sample.value, received);
  const std::uint32_t part = part_of(device, sample.component, class_of(sample.metric));
  bool is_new = false;
  const std::uint32_t at =
      part == none ? none : series_of(part, sample.metric, sample.index, t, sample.value, is_new);
  if (at == none) {
    ++counts_.refused;
    return;
  }
  if (parts_[part].entity.kind == EntityKind::none && devices_[device].node.valid())
    ++counts_.unknown_parts;
  Series& series = series_[at];
  if (!is_new && t <= series.t) {
    ++(t == series.t ? counts_.duplicates : counts_.late);
    return;
  }
  if (!is_counter) {
    take_level(series, sample.metric, t, sample.value, is_new, received);
  } else if (!is_new) {
    take_counter(series, sample.metric, t, sample.value, received);
  }
}

// A device started anew where its uptime went back, or is shorter than the time since it was last
// asked; not where it ran over, nor where our own clock was set.
void MetricReader::take_uptime(std::uint32_t at, Timestamp t, double uptime_s, Timestamp received) {
  Device& device = devices_[at];
  if (device.uptime_at.ns != INT64_MIN) {
    if (t <= device.uptime_at) {
      ++(t == device.uptime_at ? counts_.duplicates : counts_.late);
      return;
    }
    const double since = seconds(device.uptime_at, t);
    const double ran_over = device.uptime_s + since - uptime_wraps_at_s;
    const bool went_back = uptime_s + 1 < device.uptime_s;
    const bool is_wrap = went_back && std::abs(ran_over - uptime_s) < uptime_slack_s;
    if (!is_wrap && (went_back || uptime_s + uptime_slack_s < since)) {
      ++counts_.restarts;
      const double ago = std::min(uptime_s, since);
      device.boot = {t.ns - static_cast<std::int64_t>(ago * ns_of_s)};
      const bool is_host =
          device.node.valid() && inventory_.fabric().kind(device.node) == model::NodeKind::host;
      add(device, is_host ? EventKind::host_boot : EventKind::device_boot, device.boot, device.boot,
          received);
    }
  }
  device.uptime_at = t;
  device.uptime_s = uptime_s;
}

// Growth since the last sample; nothing where the counter began anew in between.
std::optional<double> MetricReader::growth(const Series& series, double value) {
  if (series.t <= devices_[parts_[series.part].device].boot) return std::nullopt;
  if (value >= series.value) return value - series.value;
  for (const double limit : {4'294'967'296.0, 18'446'744'073'709'551'616.0}) {
    // More than a quarter of the range at once is no growth but a new beginning.
    const double grown = limit - series.value + value;
    if (series.value < limit && grown < limit / 4) {
      ++counts_.wraps;
      return grown;
    }
  }
  ++counts_.resets;
  return std::nullopt;
}

void MetricReader::take_counter(Series& series, Metric metric, Timestamp t, double value,
                                Timestamp received) {
  const bool is_gap = t.ns - series.t.ns > rules_.gap_ns;
  counts_.gaps += is_gap ? 1 : 0;
  const std::optional<double> grown = is_gap ? std::nullopt : growth(series, value);
  if (!grown) {
    series.base = t;
    series.growth = 0;
  } else {
    series.growth += *grown;
  }
  series.t = t;
  series.value = value;
  if (!grown || t.ns - series.base.ns < rules_.spacing_ns) return;
  const double per_s = series.growth / seconds(series.base, t);
  Part& part = parts_[series.part];
  if (metric == Metric::in_packets) part.packets_per_s = per_s;
  if (series.rule != none) {
    const MetricRule& rule = rules_.rules[series.rule];
    Measure measure{per_s, series.base};
    const bool has_packets = metric <= Metric::prefec_ber && part.packets_per_s >= 0;
    if (rule.share.is_set() && (has_packets || !rule.rate.is_set())) {
      // Bad frames are not counted as packets: a link may pass nothing but those.
      const double all = std::max(part.packets_per_s, 0.0) + per_s;
      measure.value = all > 0 ? per_s / all : 0;
      measure.is_share = true;
    }
    if (clears(rule.kind) != EventKind::info)
      pulse(series, rule, measure, t, received);
    else
      judge(series, rule, measure, t, received);
  }
  series.base = t;
  series.growth = 0;
}

void MetricReader::take_level(Series& series, Metric metric, Timestamp t, double value, bool is_new,
                              Timestamp received) {
  Part& part = parts_[series.part];
  if (metric == Metric::admin_up) part.is_set_down = value < 0.5;
  const Timestamp before = series.t;
  series.t = t;
  series.value = value;
  if (series.rule == none) return;
  const MetricRule& rule = rules_.rules[series.rule];
  if (rule.drop.is_set() && !is_new) learn(series, value, before);
  if (metric == Metric::oper_up && part.is_set_down) {
    // Whoever set it down knows. What it is once it is set up again, is told anew.
    series.is_raised = false;
    series.streak = 0;
    series.well = t;
    return;
  }
  judge(series, rule, {value, before}, t, received);
}

void MetricReader::learn(Series& series, double value, Timestamp before) const {
  const double constant = static_cast<double>(std::max<std::int64_t>(rules_.baseline_ns, 1)) /
                          ns_of_s * (series.is_raised ? slow_learner : 1);
  series.mean += (value - series.mean) * std::min(1.0, seconds(before, series.t) / constant);
}

void MetricReader::judge(Series& series, const MetricRule& rule, const Measure& measure,
                         Timestamp t, Timestamp received) {
  const double value = measure.value;
  bool begins = false, lasts = false;
  const auto over = [&](const Threshold& threshold, double x) {
    begins |= threshold.is_set() && x > threshold.begins;
    lasts |= threshold.is_set() && x > threshold.ends;
  };
  const auto under = [&](const Threshold& threshold) {
    begins |= threshold.is_set() && value < threshold.begins;
    lasts |= threshold.is_set() && value < threshold.ends;
  };
  if (port::is_counter(rule.metric)) {
    over(measure.is_share ? rule.share : rule.rate, value);
    // Few events prove nothing, however few packets there were.
    begins = begins && series.growth >= rule.least;
  } else {
    over(rule.above, value);
    under(rule.below);
    if (t.ns - series.began.ns >= rules_.settle_ns) over(rule.drop, series.mean - value);
  }

  const bool is_pair = clears(rule.kind) != EventKind::info;
  if (series.is_raised) {
    if (lasts || begins) {
      if (!is_pair && t.ns - series.told.ns >= rules_.repeat_ns) {
        say(series, rule, rule.kind, value, measure.from, t, received);
        series.told = t;
      }
      return;
    }
    series.is_raised = false;
    if (is_pair) say(series, rule, clears(rule.kind), 1, measure.from, t, received);
  }
  if (!begins) {
    series.streak = 0;
    series.well = t;
    series.was_well = true;
    return;
  }
  ++series.streak;
  const bool is_known = parts_[series.part].entity.kind != EntityKind::none;
  if (series.streak < rule.samples || (!is_known && !series.was_well)) return;
  series.is_raised = true;
  series.told = t;
  // A counter's growth is of its interval; a level was well until then.
  const Timestamp from = port::is_counter(rule.metric) ? measure.from : series.well;
  say(series, rule, rule.kind, is_pair ? 1 : value, from, t, received);
}

// A counter of changes: it happened, and was over by the end of the interval.
void MetricReader::pulse(const Series& series, const MetricRule& rule, const Measure& measure,
                         Timestamp t, Timestamp received) {
  const Threshold& threshold = measure.is_share ? rule.share : rule.rate;
  if (parts_[series.part].is_set_down || !(measure.value > threshold.begins) ||
      series.growth < rule.least)
    return;
  say(series, rule, rule.kind, series.growth, measure.from, t, received);
  say(series, rule, clears(rule.kind), series.growth, measure.from, t, received);
}

model::Record& MetricReader::add(const Device& device, EventKind kind, Timestamp from,
                                 Timestamp until, Timestamp received) {
  model::Record row;
  row.t = from;
  row.until = until;
  row.received = received.ns != 0 ? received : until;
  row.kind = kind;
  row.source = options_.source;
  row.id = set_.add_id(fmt::format("{}{}", options_.id_prefix, ++told_));
  if (device.node.valid())
    row.entity = model::entity(device.node);
  else
    row.attrs = set_.add_attributes({{"entity", device.name}});
  set_.rows.push_back(row);
  return set_.rows.back();
}

void MetricReader::say(const Series& series, const MetricRule& rule, EventKind kind, double value,
                       Timestamp from, Timestamp until, Timestamp received) {
  const Part& part = parts_[series.part];
  const Device& device = devices_[part.device];
  const bool is_host =
      device.node.valid() && inventory_.fabric().kind(device.node) == model::NodeKind::host;
  model::Record& row =
      add(device, part.is_port && is_host ? on_host(kind) : kind, from, until, received);
  row.value = value;
  row.entity = part.entity;
  model::Attributes attributes;
  if (rule.metric == Metric::card_ok && device.node.valid()) {
    const std::uint32_t card = trailing_number(part.name).value_or(series.index);
    row.entity = card < inventory_.fabric().out(device.node).size()
                     ? model::card_of(device.node, card)
                     : model::Entity{};
  }
  if (row.entity.kind == EntityKind::none)
    attributes.emplace_back(
        "entity", part.name.empty() ? device.name : fmt::format("{}/{}", device.name, part.name));
  if (class_of(rule.metric) == Class::part && !part.name.empty())
    attributes.emplace_back("index", part.name);
  else if (series.index != 0)
    attributes.emplace_back("index", fmt::format("{}", series.index));
  row.attrs = set_.add_attributes(std::move(attributes));
}

std::string to_text(const MetricCounts& c) {
  std::string out = fmt::format("{} samples\n", c.samples);
  const std::pair<std::string_view, std::uint64_t> troubles[] = {
      {"unknown_devices", c.unknown_devices},
      {"unknown_parts", c.unknown_parts},
      {"invalid", c.invalid},
      {"late", c.late},
      {"duplicates", c.duplicates},
      {"wrong_clocks", c.wrong_clocks},
      {"wraps", c.wraps},
      {"resets", c.resets},
      {"restarts", c.restarts},
      {"gaps", c.gaps},
      {"refused", c.refused}};
  for (const auto& [what, count] : troubles) {
    if (count == 0) continue;
    out += fmt::format("{}: {}\n", what, count);
    for (const auto& [of, text] : c.samples_of)
      if (of == what) out += fmt::format("  e.g. {}\n", json_string(text));
  }
  return out;
}

}  // namespace weft::observe::telemetry
