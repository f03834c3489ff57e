// Published rates of what stops training jobs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weft::plan::life {

// What an interruption takes: the host out of service, until it is repaired; nothing but the job
// (network, software); or an announced stop, before which the job writes a checkpoint.
enum class Group : std::uint8_t { host, network, software, planned };
inline constexpr std::size_t group_count = 4;
std::string_view to_text(Group group);

struct RateRow {
  std::string_view name;
  Group group;
  double per_1000_host_days;
};

struct RateTable {
  std::string_view name;
  std::string_view source;
  std::span<const RateRow> rows;
};

std::span<const RateTable> rate_tables();

}  // namespace weft::plan::life
