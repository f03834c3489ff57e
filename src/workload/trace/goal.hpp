// GOAL schedules (Group Operation Assembly Language) in memory, as text and binary files give them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace weft::workload {

inline constexpr std::uint32_t goal_any = UINT32_MAX;  // any source, any tag
inline constexpr std::uint32_t goal_ranks_max = 1u << 20;
inline constexpr std::uint32_t goal_cpu_max = 254;  // streams of an actor are 8 bits, 0 is taken
inline constexpr std::uint64_t goal_operations_max = 100'000'000;
inline constexpr std::uint64_t goal_magic = 4223;

struct GoalOp {
  enum class Kind : std::uint8_t { send = 1, recv = 2, calc = 3 };  // as in the binary form
  std::uint64_t at = 0;                                             // byte of the file
  std::uint64_t size = 0;                                           // bytes; calc: ns
  std::uint32_t peer = 0;                                           // recv: may be goal_any
  std::uint32_t tag = 0;                                            // recv: may be goal_any
  std::uint8_t cpu = 0, nic = 0;
  Kind kind = Kind::calc;
};

// `after` starts once `before` has ended (requires) or has started (irequires).
struct GoalEdge {
  enum class When : std::uint8_t { end, start };
  std::uint32_t before = 0, after = 0;
  When when = When::end;
};

struct GoalRank {
  std::uint32_t rank = 0;
  std::vector<GoalOp> ops;
  std::vector<GoalEdge> edges;
};

struct GoalSchedule {
  std::uint32_t rank_count = 0;
  std::vector<GoalRank> ranks;  // rising; a text may leave ranks out, which then do nothing
};

bool is_goal_binary(std::string_view content);

// Fails: Errc::parse at line:column where the grammar is broken (then nothing more is read);
// Errc::value, all of them up to a hundred, on labels used before their definition or defined
// twice, ranks out of range or given twice. Memory: linear in the text.
// From: the grammar of spcl's LogGOPSim.
Result<GoalSchedule> parse_goal_text(std::string_view text, const std::string& file);

// Fails: Errc::parse with the byte offset where something points outside of what it may.
Result<GoalSchedule> parse_goal_binary(std::string_view content, const std::string& file);

struct GoalFault {
  Errc code = Errc::value;
  std::uint64_t at = 0;  // byte of the file
  std::string what, hint;
};
inline constexpr std::size_t goal_faults_max = 100;

// Gives every receive from any source or with any tag the one message that it can only get, and
// every receive the size of its message; returns how many receives had asked for another size.
// The k-th send of a source with a tag meets the k-th receive, in the order of the file.
// Appends to `faults`: Errc::value on sends and receives without counterpart, Errc::unsupported
// where the counterpart would depend on timing, and on messages of a rank to itself.
// Cost: O(messages log messages).
std::uint64_t match_goal(GoalSchedule& schedule, std::vector<GoalFault>& faults);

// Where byte `at` of a text is.
Where goal_where(std::string_view text, const std::string& file, std::uint64_t at);

}  // namespace weft::workload
