// Storms: what the sources of a fabric say while known faults come and go, with the truth beside.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "adapt/sim/problem_type.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/episode.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/telemetry/dialect.hpp"

namespace weft::adapt::sim {

struct StormOptions {
  std::uint32_t faults = 400;
  std::uint64_t lines = 200'000;  // faults and background together; 0: twice what the faults say
  double hours = 6;
  double adjacent = 0;  // share of the faults that start with, and beside, another one
  std::uint64_t seed = 1;
  std::vector<ProblemType> types;             // only these; empty: all that the fabric can have
  std::uint32_t ports_per_card = 36;          // a switch with more ports has cards
  std::uint32_t wrong_clocks = 2;             // switches whose clock is hours off
  double lost = 0.03;                         // of syslog lines and streamed updates
  double doubled = 0.02;                      // lines that come twice
  double starved = 0.01;                      // share of the hosts that stall now and then
  Timestamp start{1'772'323'200 * ns_per_s};  // 2026-03-01T00:00:00Z
  std::map<std::string, observe::telemetry::Dialect> dialects;  // by role; others as by default
};

// One thing said by one source, once.
struct StormLine {
  std::int64_t received = 0, t = 0, until = 0;  // ns since 1970
  model::Entity entity;                         // none: `stray` says what
  model::NodeId speaker;                        // who logged it; none: a collector's own
  std::uint32_t stray = 0;                      // port number of `speaker` without a cable
  std::uint32_t change = 0;                     // id of a configuration change; 0: none
  std::uint32_t fault = 0;                      // index in the truth, from 1; 0: background
  std::uint32_t salt = 0;                       // for what a text is filled up with
  double value = 1;
  model::EventKind kind = model::EventKind::info;
  model::Source source = model::Source::syslog;
  observe::telemetry::Reason reason = observe::telemetry::Reason::none;
};

struct Storm {
  std::vector<StormLine> lines;       // as they are received
  std::vector<model::Episode> truth;  // by start; "f1" is the first
  std::uint64_t fault_lines = 0;
  Timestamp end;
};

// Fails: Errc::infeasible when the faults cannot be placed by the rules of docs/storm.md, when the
// fabric has no place for a type that was asked for, or when the faults alone say more than
// `lines`; Errc::value for options out of range.
// Cost: some microseconds a line; memory 80 bytes a line. Deterministic.
Result<Storm> generate_storm(const model::Fabric& fabric, const StormOptions& options);

enum class StormFormat : std::uint8_t { records, syslog };

// The lines as records. Their ids are "r" and the number of the line, from 1; of the syslog format,
// where raw lines stand in a file of their own, these have "s" and their number in that file.
model::RecordSet to_records(const model::Fabric& fabric, const Storm& storm,
                            StormFormat format = StormFormat::records);

// The dialect that devices of each role speak: as the options say, hosts "host", and the roles of
// switches SONiC, EOS, FRR, Junos, NX-OS and Cumulus in turn.
std::map<std::string, observe::telemetry::Dialect> storm_dialects(const model::Fabric& fabric,
                                                                  const StormOptions& options);

}  // namespace weft::adapt::sim
