// Values of leaves as numbers and texts.
#pragma once

#include <expected>
#include <optional>
#include <string_view>

#include "adapt/gnmi/leaf.hpp"
#include "adapt/gnmi/mapping.hpp"
#include "adapt/gnmi/misread.hpp"
#include "base/timestamp.hpp"

namespace weft::adapt::gnmi {

// A finite number, also one that is written as a text; none where it is not one.
std::optional<double> to_number(const Value& value);
// The text without the module before an identity's name; none where the value is no text.
std::optional<std::string_view> to_name(const Value& value);
// The number at the end of a text: 3 of "UC3" or "Ethernet0:3". None where there is none.
std::optional<std::uint32_t> trailing_number(std::string_view text);

// A value as the metric has it, at time `t`. For rows that have a metric of their own.
std::expected<double, Misread> read_value(Reading reading, const Value& value, Timestamp t);

}  // namespace weft::adapt::gnmi
