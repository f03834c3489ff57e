// What an agent must find again after a crash, and the records whose fate is open.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/live/log_tail.hpp"
#include "base/timestamp.hpp"

namespace weft::app {

// As the mark of the spool, in JSON. Numbers start from the time of day, so that an agent that lost
// its spool does not use one twice.
struct AgentState {
  std::string origin;            // of ids: begins the boot id of when it began
  std::uint64_t sequence = 0;    // the last used of the agent's own records
  std::uint64_t generation = 0;  // the last used of log files
  std::map<std::string, std::deque<adapt::live::LogPlace>> logs;  // where to go on, by path
  std::map<double, double> speeds = {};  // the most seen, by nominal rate; bits per second

  static AgentState fresh(std::string origin, Timestamp now);
  // None where the text is no such state.
  static std::optional<AgentState> read(std::string_view text);
  std::string text() const;
};

// Records of log lines, from their reading until they are handed over or folded away. Until then
// the log counts as read only up to them: after a crash the line is read again, and gets the same
// id again.
class OpenRecords {
 public:
  explicit OpenRecords(std::size_t logs) : open_(logs) {}

  // Returns the record's serial.
  std::uint64_t add(std::size_t log, const adapt::live::LogPlace& place, std::string id,
                    std::string json);
  // It is told now: gives its JSON.
  std::string take(std::uint64_t serial);
  // It became a member: what tells so is on its way until then.
  void fold(std::uint64_t serial, std::int64_t until_ns);
  void forget_folded(std::int64_t now_ns);
  // The id of one of the latest records; "" of older ones.
  std::string id_of(std::uint64_t serial) const;
  // Where to go on reading, when all handed over so far is safe.
  std::deque<adapt::live::LogPlace> places(std::size_t log, const adapt::live::LogTail& tail) const;
  std::size_t size() const { return rows_.size(); }

 private:
  static constexpr std::size_t ids_max = 65'536;
  struct Row {
    std::size_t log = 0;
    adapt::live::LogPlace place;
    std::string json;
  };
  struct Folded {
    std::int64_t until_ns = 0;
    std::uint64_t serial = 0;
  };
  using Key = std::pair<std::uint64_t, std::uint64_t>;  // generation, offset

  std::uint64_t last_ = 0;
  std::map<std::uint64_t, Row> rows_;
  std::vector<std::map<Key, adapt::live::LogPlace>> open_;
  std::deque<Folded> folded_;
  std::deque<std::string> ids_;  // of the latest serials
};

}  // namespace weft::app
