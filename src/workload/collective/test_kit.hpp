// For tests of this room: systems, groups of hosts, and what a message says.
#pragma once

#include <cstdint>
#include <string_view>

#include "workload/collective/system.hpp"

namespace weft::workload::test {

inline System preset(std::string_view name) { return system_by_name(name).value(); }

inline GroupShape hosts_of(std::uint32_t hosts, std::uint32_t gpus, std::uint32_t nics = 8) {
  return {.ranks = hosts * gpus, .hosts = hosts, .gpus_per_host = gpus, .nics_per_host = nics};
}

inline bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace weft::workload::test
