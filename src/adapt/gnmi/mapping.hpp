// Which paths become which metrics. This table is data: docs/gnmi.md shows it, tests walk it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "port/sample.hpp"

namespace weft::adapt::gnmi {

// How a value is to be read.
enum class Reading : std::uint8_t {
  count,        // whole, not negative
  up,           // UP is 1; DOWN, TESTING, ... are 0
  established,  // ESTABLISHED is 1, other states are 0
  decibel_milliwatt,
  error_ratio,     // 0 to 1
  percent,         // 0 to 100
  percent_of_all,  // the same, of the entry ALL of a list
  nanoseconds,     // a span
  boot_time,       // ns since 1970
  share_used,      // its share in what share_whole says
  share_whole,
  part_status,   // ACTIVE is 1; the metric is by the component's type
  part_celsius,  // the metric is by the component's type
  part_type,     // no metric: FAN, POWER_SUPPLY, TRANSCEIVER, ... of a component
  optic_name,    // no metric: the component which is this interface's transceiver
};

struct Row {
  std::string_view path;
  Reading reading;
  port::Metric metric;
  // Keys whose values become the sample's component and index; "": none. The index is the number
  // at the end of the value.
  std::string_view component_key, index_key;
  // Of several rows that mean the same series, only the lowest that a target has is used.
  std::uint8_t rank = 0;
  bool is_ranked = false;
};

// Ascending by path.
std::span<const Row> mapping();
// The row of a path without keys and modules; nullptr where there is none. Cost: log(rows).
const Row* find_row(std::string_view path);

// What a port's field in SONiC's COUNTERS table means; `index` is the priority of a PFC counter.
struct SaiField {
  port::Metric metric;
  std::uint32_t index = 0;
  bool is_known = false;
};
SaiField sai_field(std::string_view name);

}  // namespace weft::adapt::gnmi
