// Where secrets stand in a line of a configuration, log or answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace weft::operate::snapshot {

enum class LineContext : std::uint8_t { any, snmp };  // snmp: within a stanza of that name

// Bytes [begin, end) of a line that are a secret, and of which kind.
struct Secret {
  std::size_t begin = 0, end = 0;
  std::string_view kind;  // "password", "key", "token", "hash", "snmp"
};

// Begins what stands for something that was taken out: "<removed:password>".
inline constexpr std::string_view removed_mark = "<removed:";

// Ascending and apart. What is already a mark is none. Cost: O(bytes of the line).
std::vector<Secret> find_secrets(std::string_view line, LineContext context);

}  // namespace weft::operate::snapshot
