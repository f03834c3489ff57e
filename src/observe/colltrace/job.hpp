// One event model for what ranks say of their collectives, whoever wrote it down.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"

namespace weft::observe::colltrace {

// Scheduled: called by the host. Started: the device is in it. Completed: the device is through.
enum class EntryState : std::uint8_t { scheduled, started, completed };

// One operation of one rank. Times are ns since 1970 by that rank's clock; 0: not known, or not
// yet.
struct Entry {
  std::int64_t created_ns = 0, started_ns = 0, ended_ns = 0;
  std::uint32_t group = 0;           // index into Job::groups
  std::uint32_t seq = 0;             // of the operation in its group, on all members
  float duration_us = 0;             // as the device measured it; 0: not known
  std::uint32_t signature : 29 = 0;  // index into Job::signatures
  EntryState state : 2 = EntryState::scheduled;
  // Stands for others beside it, e.g. the end of a batch: no member waits in it.
  std::uint32_t is_aside : 1 = 0;
};
static_assert(sizeof(Entry) == 40);

struct Group {
  std::string name, description;
  std::vector<std::uint32_t> members;  // ranks, in the group's order
  bool is_pair = false;                // made up for sends from the first member to the second
};

// What members of a group must agree on. `size` and `type` are empty where members may differ.
struct Signature {
  std::string operation, type, size;
};

struct RankTrace {
  std::uint32_t rank = 0;
  std::string file, host;          // "" where the trace does not say
  std::size_t begin = 0, end = 0;  // of its entries
  std::uint64_t first_record = 0;  // number of the first entry in all that the rank ever did
  bool is_gone = false;            // its process is known to have ended without an end in order
  std::span<const Entry> in(const std::vector<Entry>& entries) const {
    return std::span(entries).subspan(begin, end - begin);
  }
};

// How long a rank's network thread waits for what it has sent on one channel of a group.
struct EdgeWait {
  std::uint32_t group = 0, from = 0, to = 0;  // ranks of the job
  std::uint8_t channel = 0;
  std::uint32_t operations = 0;  // that it rests on: the latest third
  double over = 0;               // log of the wait per byte over the median of the same calls
  std::int64_t from_ns = 0;      // begin of the first of them
};

struct Job {
  std::vector<RankTrace> ranks;  // that have entries, by rank
  std::vector<Group> groups;
  std::vector<Signature> signatures;
  std::vector<Entry> entries;   // of a rank: in the order in which it called them
  std::vector<EdgeWait> edges;  // by group, from, to, channel; only rings of the plugin have them
  std::uint32_t world = 0;      // 1 + the largest rank that anything names
  // Times of starts and ends were measured, not found by a watchdog that looks now and then.
  bool has_measured_times = false;
  std::map<std::string, std::uint64_t> unknown_keys;  // of entries, with how often
  std::vector<std::string> notes;                     // what a reader left out or could not tell
};

// Collects the entries of one rank after the other, from files in any order.
class JobBuilder {
 public:
  // Bounds of what is believed: a larger rank or group is an error of the input.
  static constexpr std::uint32_t rank_max = 1u << 20;

  // The group of that name and those members. The same name with other members is another group.
  std::uint32_t group(std::string_view name, std::string_view description,
                      const std::vector<std::uint32_t>& members);
  // The same by what stands in a file, once it was worked out: every rank lists all of its groups.
  std::optional<std::uint32_t> known_group(const std::string& raw) const {
    const auto at = raw_groups_.find(raw);
    return at == raw_groups_.end() ? std::nullopt : std::optional(at->second);
  }
  void remember_group(const std::string& raw, std::uint32_t group) {
    raw_groups_.emplace(raw, group);
  }
  // Sends from `from` to `to` within a group.
  std::uint32_t pair(std::uint32_t group, std::uint32_t from, std::uint32_t to);
  // `text` is what members must agree on: operation, type and size, with '\t' between them.
  std::uint32_t signature(std::string_view text);
  // The same by what stands in a file, once it was worked out.
  std::optional<std::uint32_t> known_signature(const std::string& raw) const {
    const auto at = raw_signatures_.find(raw);
    return at == raw_signatures_.end() ? std::nullopt : std::optional(at->second);
  }
  void remember_signature(const std::string& raw, std::uint32_t signature) {
    raw_signatures_.emplace(raw, signature);
  }

  // Room for so many entries in all, so that their list need not move.
  void reserve(std::size_t entries) { job_.entries.reserve(entries); }
  // Entries in the order of their records. Sends get numbers that their two ends share.
  // Fails: Errc::value on a rank that was there already.
  Status add(RankTrace rank, std::span<Entry> entries);

  Job& job() { return job_; }
  // What a reader keeps from one file to the next, so as not to ask for the memory again.
  std::shared_ptr<void>& scratch() { return scratch_; }
  Job finish();  // its ranks in order

 private:
  Job job_;
  std::shared_ptr<void> scratch_;
  std::unordered_map<std::string, std::uint32_t> groups_, raw_groups_, signatures_, raw_signatures_;
  std::unordered_map<std::uint32_t, std::string> files_;
};

// "[0, 1, 2]" as a list. Fails: Errc::parse.
Result<std::vector<std::uint32_t>> parse_ranks(std::string_view text, const std::string& file);

}  // namespace weft::observe::colltrace
