#include "adapt/snmp/tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.hpp"

namespace weft::adapt::snmp {

using port::Metric;
using port::Sample;

namespace {

// IF-MIB (RFC 2863).
const Oid if_oper{1, 3, 6, 1, 2, 1, 2, 2, 1, 8};
const Oid if_in_octets{1, 3, 6, 1, 2, 1, 2, 2, 1, 10};
const Oid if_in_packets{1, 3, 6, 1, 2, 1, 2, 2, 1, 11};
const Oid if_in_discards{1, 3, 6, 1, 2, 1, 2, 2, 1, 13};
const Oid if_in_errors{1, 3, 6, 1, 2, 1, 2, 2, 1, 14};
const Oid if_out_octets{1, 3, 6, 1, 2, 1, 2, 2, 1, 16};
const Oid if_out_discards{1, 3, 6, 1, 2, 1, 2, 2, 1, 19};
const Oid if_hc_in_octets{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 6};
const Oid if_hc_in_packets{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 7};
const Oid if_hc_out_octets{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 10};
// ENTITY-MIB (RFC 6933), ENTITY-STATE-MIB (RFC 4268), ENTITY-SENSOR-MIB (RFC 3433).
const Oid part_descr{1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 2};
const Oid part_inside{1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 4};
const Oid part_class{1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 5};
const Oid part_name{1, 3, 6, 1, 2, 1, 47, 1, 1, 1, 1, 7};
const Oid part_alias{1, 3, 6, 1, 2, 1, 47, 1, 3, 2, 1, 2};
const Oid part_state{1, 3, 6, 1, 2, 1, 131, 1, 1, 1, 3};
const Oid sensor_type{1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 1};
const Oid sensor_scale{1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 2};
const Oid sensor_precision{1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 3};
const Oid sensor_value{1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 4};
const Oid sensor_status{1, 3, 6, 1, 2, 1, 99, 1, 1, 1, 5};
// BGP4-MIB (RFC 4273).
const Oid peer_state{1, 3, 6, 1, 2, 1, 15, 3, 1, 2};
const Oid peer_admin{1, 3, 6, 1, 2, 1, 15, 3, 1, 3};
// HOST-RESOURCES-MIB (RFC 2790), UCD-SNMP-MIB, SNMPv2-MIB.
const Oid processor_load{1, 3, 6, 1, 2, 1, 25, 3, 3, 1, 2};
const Oid storage_type{1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 2};
const Oid storage_descr{1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 3};
const Oid storage_size{1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 5};
const Oid storage_used{1, 3, 6, 1, 2, 1, 25, 2, 3, 1, 6};
const Oid type_ram{1, 3, 6, 1, 2, 1, 25, 2, 1, 2};
const Oid type_disk{1, 3, 6, 1, 2, 1, 25, 2, 1, 4};
const Oid agent_uptime{1, 3, 6, 1, 2, 1, 1, 3, 0};
const Oid system_uptime{1, 3, 6, 1, 2, 1, 25, 1, 1, 0};
const Oid memory_total{1, 3, 6, 1, 4, 1, 2021, 4, 5, 0};
const Oid memory_free{1, 3, 6, 1, 4, 1, 2021, 4, 6, 0};
const Oid memory_buffers{1, 3, 6, 1, 4, 1, 2021, 4, 14, 0};
const Oid memory_cached{1, 3, 6, 1, 4, 1, 2021, 4, 15, 0};

enum class PartClass : std::uint8_t { other, supply = 6, fan = 7, module = 9 };
enum class SensorType : std::uint8_t { watts = 6, celsius = 8, rpm = 10, truth = 12, dbm = 14 };
constexpr double no_light_dbm = -40;
constexpr std::size_t depth_max = 16;  // of parts within parts

std::optional<double> number_at(const Answers& answers, const Oid& column, const Oid& row) {
  Oid oid = column;
  oid.insert(oid.end(), row.begin(), row.end());
  const auto at = answers.find(oid);
  return at == answers.end() ? std::nullopt : number(at->second);
}

std::string text_at(const Answers& answers, const Oid& column, const Oid& row) {
  Oid oid = column;
  oid.insert(oid.end(), row.begin(), row.end());
  const auto at = answers.find(oid);
  return at == answers.end() ? std::string() : shown(at->second);
}

// The rows of a column: what stands behind it, and its value.
template <class Use>
void each(const Answers& answers, const Oid& column, Use use) {
  for (auto at = answers.lower_bound(column); at != answers.end(); ++at) {
    if (!starts_with(at->first, column)) return;
    use(Oid(at->first.begin() + static_cast<std::ptrdiff_t>(column.size()), at->first.end()),
        at->second);
  }
}

bool is_word_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/';
}

// "ethernet1/1" stands in "Ethernet1/1 Rx power", not in "Ethernet1/10 Rx power".
bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_word_char(text[at - 1])) &&
        (end == text.size() || !is_word_char(text[end])))
      return true;
  }
  return false;
}

// "lane 3", "channel 2", "lane3"; 0 where there is none.
std::uint32_t lane_of(std::string_view text) {
  for (const std::string_view word : {std::string_view("lane"), std::string_view("channel")}) {
    std::size_t at = text.find(word);
    if (at == std::string_view::npos) continue;
    at += word.size();
    while (at < text.size() && (text[at] == ' ' || text[at] == '-')) ++at;
    std::uint32_t lane = 0;
    std::from_chars(text.data() + at, text.data() + text.size(), lane);
    return lane;
  }
  return 0;
}

class Measurer {
 public:
  Measurer(std::string_view device, const std::vector<Answered>& answers, Memory& memory)
      : device_(device), memory_(memory) {
    for (const Answered& part : answers) {
      t_ = std::max(t_, part.t);
      all_.insert(part.values.begin(), part.values.end());
    }
    // Samples of a group are of its own time; what spans groups is of the last.
    times_.reserve(answers.size());
    for (const Answered& part : answers) times_.push_back(part.t.ns != 0 ? part.t : t_);
  }

  std::vector<Sample> run() {
    machine();
    interfaces();
    states();
    sensors();
    sessions();
    return std::move(out_);
  }

 private:
  void add(std::size_t group, std::string component, Metric metric, double value,
           std::uint32_t index = 0) {
    out_.push_back({group < times_.size() ? times_[group] : t_, std::string(device_),
                    std::move(component), metric, index, value});
  }

  void machine() {
    const std::size_t group = groups().size();  // the scalars
    const auto whole = number_at(all_, system_uptime, {});
    memory_.has_system_uptime |= whole.has_value();
    const auto uptime = memory_.has_system_uptime ? whole : number_at(all_, agent_uptime, {});
    if (uptime) add(group, "", Metric::uptime_s, *uptime / 100);

    double load = 0;
    std::size_t processors = 0;
    each(all_, processor_load, [&](const Oid&, const Value& value) {
      load += number(value).value_or(0);
      ++processors;
    });
    if (processors > 0) add(4, "", Metric::cpu_share, load / 100 / static_cast<double>(processors));
    const auto total = number_at(all_, memory_total, {}), left = number_at(all_, memory_free, {});
    const bool has_memory = total && left && *total > 0;
    if (has_memory) {
      const double idle = *left + number_at(all_, memory_buffers, {}).value_or(0) +
                          number_at(all_, memory_cached, {}).value_or(0);
      add(group, "", Metric::memory_share, std::clamp(1 - idle / *total, 0.0, 1.0));
    }
    each(all_, storage_type, [&](const Oid& row, const Value& type) {
      const auto size = number_at(all_, storage_size, row),
                 used = number_at(all_, storage_used, row);
      if (!size || !used || *size <= 0) return;
      if (type.oid == type_disk)
        add(5, text_at(all_, storage_descr, row), Metric::storage_share, *used / *size);
      else if (type.oid == type_ram && !has_memory)
        add(5, "", Metric::memory_share, *used / *size);
    });
  }

  void interfaces() {
    const auto name = [&](const Oid& row, const Value& value) {
      if (row.size() == 1 && !shown(value).empty()) memory_.interfaces[row[0]] = shown(value);
    };
    each(all_, if_descr, name);
    each(all_, if_name, name);  // the better one, where there are both
    struct Column {
      const Oid& wide;
      const Oid& narrow;
      Metric metric;
    };
    const std::array columns{Column{if_hc_in_octets, if_in_octets, Metric::in_octets},
                             Column{if_hc_out_octets, if_out_octets, Metric::out_octets},
                             Column{if_hc_in_packets, if_in_packets, Metric::in_packets},
                             Column{if_in_errors, if_in_errors, Metric::in_errors},
                             Column{if_in_discards, if_in_discards, Metric::in_discards},
                             Column{if_out_discards, if_out_discards, Metric::out_discards}};
    for (const auto& [index, interface] : memory_.interfaces) {
      const Oid row{index};
      if (const auto admin = number_at(all_, if_admin, row))
        add(0, interface, Metric::admin_up, *admin == 1 ? 1 : 0);
      // up(1); unknown(4) and testing(3) say neither; dormant(5) waits for something outside.
      if (const auto oper = number_at(all_, if_oper, row); oper && *oper != 3 && *oper != 4)
        add(0, interface, Metric::oper_up, *oper == 1 || *oper == 5 ? 1 : 0);
      for (const Column& column : columns) {
        auto value = number_at(all_, column.wide, row);
        if (!value) value = number_at(all_, column.narrow, row);
        if (value) add(0, interface, column.metric, *value);
      }
    }
  }

  PartClass class_of(const Oid& part) const {
    const auto number = number_at(all_, part_class, part);
    if (number == 6.0) return PartClass::supply;
    if (number == 7.0) return PartClass::fan;
    return number == 9.0 ? PartClass::module : PartClass::other;
  }
  std::string name_of(const Oid& part) const {
    std::string name = text_at(all_, part_name, part);
    if (name.empty()) name = text_at(all_, part_descr, part);
    return name.empty() ? to_text(part) : name;
  }
  std::optional<Oid> holder_of(const Oid& part) const {
    const auto inside = number_at(all_, part_inside, part);
    if (!inside || *inside < 1 || *inside > 4e9) return std::nullopt;
    return Oid{static_cast<std::uint32_t>(*inside)};
  }

  void states() {
    each(all_, part_state, [&](const Oid& part, const Value& value) {
      const auto state = number(value);  // disabled(2), enabled(3)
      if (state != 2.0 && state != 3.0) return;
      add_health(part, class_of(part), *state == 3);
    });
  }
  // Of a fan, a supply, or a module that is a card; others have no metric.
  void add_health(const Oid& part, PartClass of, bool is_well) {
    const double value = is_well ? 1 : 0;
    if (of == PartClass::fan) add(1, name_of(part), Metric::fan_ok, value);
    if (of == PartClass::supply) add(1, name_of(part), Metric::psu_ok, value);
    if (of == PartClass::module && !interface_of(part))
      add(1, name_of(part), Metric::card_ok, value);
  }

  // The interface that the part or one that holds it belongs to, by mapping or by name.
  std::optional<std::string> interface_of(const Oid& sensor) const {
    Oid part = sensor;
    for (std::size_t depth = 0; depth < depth_max; ++depth) {
      std::optional<std::string> found;
      Oid column = part_alias;
      column.insert(column.end(), part.begin(), part.end());
      each(all_, column, [&](const Oid&, const Value& value) {
        if (value.oid.empty()) return;
        const auto at = memory_.interfaces.find(value.oid.back());
        if (at != memory_.interfaces.end()) found = at->second;
      });
      if (found) return found;
      const auto holder = holder_of(part);
      if (!holder || *holder == part) break;
      part = *holder;
    }
    const std::string text =
        lower_case(text_at(all_, part_name, sensor) + " " + text_at(all_, part_descr, sensor));
    std::optional<std::string> best;
    for (const auto& [index, name] : memory_.interfaces)
      if (has_word(text, lower_case(name)) && (!best || name.size() > best->size())) best = name;
    return best;
  }

  void sensors() {
    each(all_, sensor_value, [&](const Oid& part, const Value& raw) {
      const auto value = scaled(part, raw);
      const auto type = number_at(all_, sensor_type, part);
      const auto status = number_at(all_, sensor_status, part).value_or(1);
      if (!value || !type || status == 2) return;  // unavailable: nobody knows
      const auto kind = static_cast<SensorType>(*type >= 0 && *type < 256 ? *type : 0);
      const bool is_broken = status != 1;
      if (kind == SensorType::rpm || kind == SensorType::truth)
        return turning(part, kind, is_broken ? 0 : *value);
      if (!is_broken) sense(part, kind, *value);
    });
  }
  // value * 10^(3 (scale - 9)) / 10^precision.
  std::optional<double> scaled(const Oid& part, const Value& raw) const {
    const auto value = number(raw);
    const double scale = number_at(all_, sensor_scale, part).value_or(9);
    const double precision = number_at(all_, sensor_precision, part).value_or(0);
    if (!value || scale < 1 || scale > 17 || precision < -8 || precision > 9) return std::nullopt;
    return *value * std::pow(10, 3 * (scale - 9) - std::max(precision, 0.0));
  }
  void turning(const Oid& part, SensorType kind, double value) {
    PartClass of = class_of(part);
    Oid subject = part;
    for (std::size_t depth = 0; depth < depth_max && of == PartClass::other; ++depth) {
      const auto holder = holder_of(subject);
      if (!holder) break;
      subject = *holder;
      of = class_of(subject);
    }
    // A tachometer in a supply is that of the supply's fan.
    if (kind == SensorType::rpm) return add(2, name_of(part), Metric::fan_ok, value > 0 ? 1 : 0);
    if (of == PartClass::fan || of == PartClass::supply)
      add(2, name_of(part), of == PartClass::fan ? Metric::fan_ok : Metric::psu_ok,
          value == 1 ? 1 : 0);
  }
  void sense(const Oid& part, SensorType kind, double value) {
    const std::string name = name_of(part);
    const std::string text = lower_case(name + " " + text_at(all_, part_descr, part));
    const auto interface = interface_of(part);
    if (kind == SensorType::celsius) {
      if (interface)
        add(2, *interface, Metric::optic_celsius, value, 0);
      else
        add(2, name, Metric::celsius, value);
      return;
    }
    if (kind != SensorType::dbm && (kind != SensorType::watts || !interface)) return;
    const auto says = [&](std::string_view a, std::string_view b) {
      return text.find(a) != std::string::npos || text.find(b) != std::string::npos;
    };
    const bool is_in = says("rx", "receive"), is_out = says("tx", "transmit");
    if (is_in == is_out) return;  // current, or what nobody can tell
    if (kind == SensorType::watts)
      value = value > 0 ? std::max(10 * std::log10(value * 1e3), no_light_dbm) : no_light_dbm;
    add(2, interface.value_or(name), is_in ? Metric::rx_power_dbm : Metric::tx_power_dbm, value,
        lane_of(text));
  }

  void sessions() {
    each(all_, peer_state, [&](const Oid& row, const Value& state) {
      const auto admin = number_at(all_, peer_admin, row);
      if (row.size() != 4 || !number(state) || admin == 1.0) return;  // stop(1)
      add(3, to_text(row), Metric::bgp_established, number(state) == 6.0 ? 1 : 0);
    });
  }

  std::string_view device_;
  Memory& memory_;
  Answers all_;
  std::vector<Timestamp> times_;
  Timestamp t_;
  std::vector<Sample> out_;
};

}  // namespace

const std::vector<Group>& groups() {
  static const std::vector<Group> all{
      {"interfaces",
       {if_descr, if_admin, if_oper, if_in_octets, if_in_packets, if_in_discards, if_in_errors,
        if_out_octets, if_out_discards, if_name, if_hc_in_octets, if_hc_in_packets,
        if_hc_out_octets}},
      {"parts", {part_descr, part_inside, part_class, part_name, part_alias, part_state}},
      {"sensors", {sensor_type, sensor_scale, sensor_precision, sensor_value, sensor_status}},
      {"sessions", {peer_state, peer_admin}},
      {"processors", {processor_load}},
      {"storage", {storage_type, storage_descr, storage_size, storage_used}}};
  return all;
}

const std::vector<Oid>& scalars() {
  static const std::vector<Oid> all{agent_uptime, system_uptime,  memory_total,
                                    memory_free,  memory_buffers, memory_cached};
  return all;
}

std::vector<Sample> measure(std::string_view device, const std::vector<Answered>& answers,
                            Memory& memory) {
  return Measurer(device, answers, memory).run();
}

}  // namespace weft::adapt::snmp
