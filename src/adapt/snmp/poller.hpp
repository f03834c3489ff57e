// Asks many agents over and over, a bounded number of them at once, and never waits for one.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/snmp/credentials.hpp"
#include "base/result.hpp"
#include "model/formats/neighbours.hpp"
#include "port/clock.hpp"
#include "port/sample.hpp"

namespace weft::adapt::snmp {

struct PollerOptions {
  std::optional<model::NeighbourProtocol> neighbours;  // asked for in place of measurements
  std::chrono::milliseconds every{30'000};   // between the starts of two polls of one agent
  std::chrono::milliseconds timeout{1'000};  // before each retry
  int retries = 2;
  std::chrono::milliseconds patience{20'000};  // for all of one poll
  std::size_t in_flight = 64;                  // agents asked at once; a socket each
  int repetitions = 20;                        // rows of a GETBULK
  std::size_t rows_max = 4'096;                // of a column
  std::size_t requests_max = 2'000;            // of a poll
  std::chrono::milliseconds soon{1'000};       // between two polls that poll_soon() asked for
  // After such a poll once more: agents answer from tables that are some seconds old.
  std::chrono::milliseconds again{5'000};
};

struct PollerCounts {
  std::uint64_t polls = 0, complete = 0;
  std::uint64_t silent = 0;   // agents that did not answer at all: reachable 0
  std::uint64_t partial = 0;  // polls that ended early: silence, or patience at its end
  std::uint64_t refused = 0;  // user, password or level
  std::uint64_t loops = 0;    // columns whose identifiers did not grow
  std::uint64_t garbage = 0;  // answers without values, or with an error
  std::uint64_t cut = 0;      // columns longer than rows_max
  std::uint64_t requests = 0, skipped = 0;  // polls that were due while one still ran
  std::uint64_t early = 0;                  // polls because of poll_soon()
};

// One agent's poll, done.
struct Poll {
  std::string device;
  Timestamp received;
  std::vector<port::Sample> samples;  // always `reachable`, and what was measured
  std::string error;                  // of a refusal
  model::Neighbours neighbours = {};  // where they were asked for
  bool is_complete = false;
};

// A table whose identifiers do not grow is left at that point and counted, as is one that is too
// long; what was read before counts. A poll that is due while the last one still runs is skipped.
class SnmpPoller {
 public:
  // The clock must outlive the poller. Fails: Errc::value for options or targets that make no
  // sense.
  static Result<SnmpPoller> create(std::vector<Target> targets, const PollerOptions& options,
                                   port::Clock& clock);
  SnmpPoller(SnmpPoller&&) noexcept;
  SnmpPoller& operator=(SnmpPoller&&) noexcept;
  ~SnmpPoller();

  // Begins what is due, takes answers, gives up what is too late. Does not wait.
  void step();
  // Waits until an answer may be there, something is due or `other`, a file descriptor, can be
  // read; at most until `until`.
  void wait(port::Instant until, int other = -1);
  // Polls that are done, in the order in which they ended.
  std::optional<Poll> take();

  // A trap came from a device: asks it at once, but no more often than PollerOptions::soon; after
  // the poll that is under way, for that may have read the table already. False where there is none
  // of that name.
  bool poll_soon(std::string_view device);
  // The name of an interface, as its device's last poll had it; "" where nobody knows.
  std::string interface_name(std::string_view device, std::uint32_t if_index) const;
  const PollerCounts& counts() const;

 private:
  struct Impl;
  explicit SnmpPoller(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft::adapt::snmp
