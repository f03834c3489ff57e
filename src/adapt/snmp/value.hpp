// Object identifiers and values, as agents give them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::adapt::snmp {

using Oid = std::vector<std::uint32_t>;
// Columns of IF-MIB (RFC 2863) that polls ask for and traps carry.
inline const Oid if_descr{1, 3, 6, 1, 2, 1, 2, 2, 1, 2};
inline const Oid if_admin{1, 3, 6, 1, 2, 1, 2, 2, 1, 7};
inline const Oid if_name{1, 3, 6, 1, 2, 1, 31, 1, 1, 1, 1};

struct Value {
  enum class Kind : std::uint8_t { absent, integer, natural, text, oid, address };
  Kind kind = Kind::absent;
  std::int64_t integer = 0;
  std::uint64_t natural = 0;  // counters, gauges, ticks
  std::string text;           // also the four bytes of an address
  Oid oid;
};

// What was walked, in order of identifiers.
using Answers = std::map<Oid, Value>;

// "1.3.6.1.2.1.1.3.0"; nothing where that is no such text or longer than 128 parts.
std::optional<Oid> parse_oid(std::string_view text);
std::string to_text(const Oid& oid);
bool starts_with(std::span<const std::uint32_t> oid, std::span<const std::uint32_t> prefix);
// As a number; nothing of texts, identifiers and absent values.
std::optional<double> number(const Value& value);
// Printable text; other bytes as '?', at most 128 of them.
std::string shown(const Value& value);

}  // namespace weft::adapt::snmp
