// Measured values to records: what counters, sensors and sessions mean once they are compared with
// what they were and with what they may be.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/timestamp.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/inventory.hpp"
#include "observe/telemetry/metric_rules.hpp"
#include "observe/telemetry/name_table.hpp"
#include "port/sample.hpp"

namespace weft::observe::telemetry {

struct MetricCounts {
  std::uint64_t samples = 0;
  std::uint64_t unknown_devices = 0;  // samples of devices that the fabric does not have
  std::uint64_t unknown_parts = 0;    // of known devices: ports, sessions, cards
  std::uint64_t invalid = 0;          // no number, infinite, a counter below zero
  std::uint64_t late = 0;             // older than what is known already
  std::uint64_t duplicates = 0;       // of the time of one that is known
  std::uint64_t wrong_clocks = 0;     // stamped far from receipt, taken for of then
  std::uint64_t wraps = 0;            // counters that went on from zero
  std::uint64_t resets = 0;           // counters that began anew
  std::uint64_t restarts = 0;         // devices that did
  std::uint64_t gaps = 0;             // counters that were not heard of for too long
  std::uint64_t refused = 0;          // beyond the bounds on names and indexes
  // The first names that nobody knows ("device/part"), at most 4 of each kind.
  std::vector<std::pair<std::string, std::string>> samples_of;
};

// Keeps the last value of each (device, part, metric, index) and says when a rule's condition
// begins, lasts and ends. What comes in pairs (down, up) is told when it begins and ends, the rest
// when it begins and every MetricRules::repeat_ns while it lasts. A record's interval reaches from
// the last sample that was well to the one that was not: nobody knows when in between it happened.
// Of parts that the fabric does not have entity is none, with attribute "entity" = "device/part",
// and a state is told only after it was well once: cages may be empty. On hosts the kinds are those
// of NICs. A port that is set down (admin_up 0) has nothing to say of its oper_up.
//
// Counters: growth since the last evaluation; they may wrap at 32 and 64 bits, and begin anew with
// the device (uptime_s going back makes a device_boot or host_boot). As doubles they are exact to
// 2^53. Bounds: 200,000 devices, 1 M parts, 4 M series, 64 indexes; what is beyond is counted.
// Deterministic: equal calls make equal records.
class MetricReader {
 public:
  struct Options {
    model::Source source = model::Source::snmp;
    std::string id_prefix = "m";  // ids are this and the number of the record, from 1
  };
  // Both must outlive the reader.
  MetricReader(const Inventory& inventory, const MetricRules& rules, Options options);

  // What was measured together (one poll, one scrape): the order within does not matter. `received`
  // 0 s: nobody knows, stamps are believed.
  // Cost: a fraction of a microsecond a sample; no allocation but for what is new and for records.
  void take(std::span<const port::Sample> samples, Timestamp received);

  const MetricCounts& counts() const { return counts_; }
  const model::RecordSet& records() const { return set_; }
  model::RecordSet take_records();

 private:
  enum class Class : std::uint8_t { port, session, part };
  static constexpr std::uint32_t none = NameTable::none;

  struct Device {
    std::string name;
    model::NodeId node;              // invalid: unknown
    Timestamp boot{INT64_MIN};       // counters from before are of another life
    Timestamp uptime_at{INT64_MIN};  // of the last uptime_s
    double uptime_s = 0;
  };
  struct Part {
    model::Entity entity;
    std::uint32_t device = 0;
    std::string name;
    bool is_port = false;
    bool is_set_down = false;
    double packets_per_s = -1;                            // coming in; below 0: not known
    std::array<std::uint32_t, port::metric_count> first;  // series by metric, then by Series::next
  };
  struct Series {
    std::uint32_t part = 0, index = 0, next = none;
    std::uint32_t rule = none;
    Timestamp t;        // of the last sample
    double value = 0;   // of the last sample
    Timestamp base;     // counters: where the growth is counted from
    double growth = 0;  // counters: since `base`
    double mean = 0;    // levels with "drop"
    Timestamp began;    // levels with "drop": of the first sample
    Timestamp well;     // of the last sample before it was out of bounds
    Timestamp told;
    std::uint32_t streak = 0;  // samples out of bounds in a row
    bool is_raised = false, was_well = false;
  };
  // A measure that a rule can judge, and the time that it speaks of.
  struct Measure {
    double value = 0;
    Timestamp from;
    bool is_share = false;
  };

  static Class class_of(port::Metric metric);
  void take_one(const port::Sample& sample, Timestamp received);
  std::uint32_t device_of(std::string_view name);
  std::uint32_t part_of(std::uint32_t device, std::string_view name, Class of);
  model::Entity locate(const Device& device, std::string_view name, Class of) const;
  std::uint32_t series_of(std::uint32_t part, port::Metric metric, std::uint32_t index, Timestamp t,
                          double value, bool& is_new);
  std::uint32_t rule_of(port::Metric metric, std::string_view part) const;
  void note_unknown(std::string_view what, std::string name);

  void take_uptime(std::uint32_t device, Timestamp t, double uptime_s, Timestamp received);
  void take_counter(Series& series, port::Metric metric, Timestamp t, double value,
                    Timestamp received);
  void take_level(Series& series, port::Metric metric, Timestamp t, double value, bool is_new,
                  Timestamp received);
  std::optional<double> growth(const Series& series, double value);
  void learn(Series& series, double value, Timestamp t) const;
  void judge(Series& series, const MetricRule& rule, const Measure& measure, Timestamp t,
             Timestamp received);
  void pulse(const Series& series, const MetricRule& rule, const Measure& measure, Timestamp t,
             Timestamp received);
  void say(const Series& series, const MetricRule& rule, model::EventKind kind, double value,
           Timestamp from, Timestamp until, Timestamp received);
  model::Record& add(const Device& device, model::EventKind kind, Timestamp from, Timestamp until,
                     Timestamp received);

  const Inventory& inventory_;
  const MetricRules& rules_;
  Options options_;
  std::array<std::vector<std::uint32_t>, port::metric_count> rules_of_;
  MetricCounts counts_;
  model::RecordSet set_;
  std::uint64_t told_ = 0;

  NameTable device_names_;   // owner 0
  NameTable device_nodes_;   // owner: node, name "": the device that has it
  NameTable part_names_;     // owner: 4 * device + class
  NameTable part_entities_;  // owner: 4 * device + class; the entity as bytes
  std::vector<Device> devices_;
  std::vector<Part> parts_;
  std::vector<Series> series_;
  std::uint32_t last_device_ = none;  // samples come by device
  std::string last_device_name_;
};

// For people: what was read and what was not understood, one line each.
std::string to_text(const MetricCounts& counts);

}  // namespace weft::observe::telemetry
