// Who keeps a job waiting: from the entries of its ranks to verdicts.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "observe/colltrace/job.hpp"

namespace weft::observe::colltrace {

enum class Finding : std::uint8_t {
  stuck,            // has a dump, waits in nothing, and others wait for it
  dead,             // has no dump, and others wait for it
  dead_or_network,  // the same, where other dumps are missing too: it may be waiting with them
  operation,        // called another operation than the others of its group
  size,             // the same operation with another size
  type,             // ... with another data type
  order,            // called operations in another order
  skip,             // left one out
  order_or_skip,    // one of these two: the others have recorded nothing further
  network,          // all members are in it, and it does not end
  slow_rank,        // computes longer than its peers
  slow_host,        // all its ranks do
  slow_network,     // groups whose transfers take longer than those of the same kind
};
std::string to_text(Finding finding);
// One sentence: what it means.
std::string_view meaning(Finding finding);

struct Verdict {
  Finding finding = Finding::stuck;
  std::vector<std::uint32_t> ranks;   // named; none: a network
  std::vector<std::uint32_t> groups;  // where the others wait, or that are slow
  std::uint32_t seq = 0;              // of the operation in the first group
  std::string operation;              // that the others are in
  std::string expected, found;        // where they differ
  double factor = 0;                  // of time, against peers; 0: none
};

// How much longer a rank computes than its peers: log of the factor, and its standard deviation.
struct Pace {
  std::uint32_t rank = 0;
  double over = 0, deviation = 0;
};

// How long the calls of a group take without the wait for the last member; log of the factor
// against groups of its kind, and its standard deviation (0: too few of its kind).
struct Transfer {
  std::uint32_t group = 0, signature = 0;
  double us = 0, over = 0, deviation = 0;
};

// An operation that some member is in.
struct Blocked {
  std::uint32_t group = 0, seq = 0;
  std::vector<std::uint32_t> joined, absent;  // members' ranks; those that are through are in none
};

struct Report {
  std::vector<Verdict> verdicts;
  std::vector<Blocked> waits;  // by group and number
  std::vector<Pace> paces;     // by rank; of a job that runs, where times were measured
  std::vector<Transfer> transfers;
  bool is_hang = false;
  std::size_t rank_count = 0, missing_count = 0, entry_count = 0, waiting_count = 0;
  // Ranks that have moved on past what others had not begun: not one moment, so nothing stands
  // still.
  bool is_moving = false;
};

struct AnalysisOptions {
  std::uint32_t ranks_per_host = 8;  // where dumps name no hosts
  bool is_stalled = false;           // somebody knows that it is; else it is inferred
  // Whoever lives has left a dump, so that a rank without one may be called dead. Not so where
  // dumps come in from hosts while the job runs.
  bool has_all_dumps = true;
};

// Cost: a few passes over the entries. Deterministic.
Report analyse(const Job& job, const AnalysisOptions& options);

}  // namespace weft::observe::colltrace
