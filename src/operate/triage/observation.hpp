// What is kept of evidence, and counted of it.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>

#include "model/events/record.hpp"
#include "operate/triage/evidence.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

// Evidence as it is held: enough to think it over once more.
struct Observation {
  std::int64_t at;
  std::uint64_t serial;
  PartId part;
  model::EventKind kind;
  model::Source source;
  std::uint8_t end : 1, is_policy : 1, has_reason : 1, is_indirect : 1, is_window : 1,
      is_repeat : 1;

  Observation(const Evidence& e, bool repeats)
      : at(e.at),
        serial(e.serial),
        part(e.part),
        kind(e.kind),
        source(e.source),
        end(e.end & 1U),
        is_policy(e.is_policy),
        has_reason(e.has_reason),
        is_indirect(e.is_indirect),
        is_window(e.begin < e.at),
        is_repeat(repeats) {}
  // Without the length of its window, and what only congestion has.
  Evidence evidence() const;
};
static_assert(sizeof(Observation) == 24);

// Observations that differ in time alone have the same stream.
using Stream = std::tuple<PartId, model::EventKind, model::Source, unsigned>;
Stream stream_of(const Observation& said);

// Counts by what was seen where; small, because every part with evidence has one.
struct Tally {
  std::array<std::uint8_t, 2 * model::source_count> downs{};  // by end and source
  KindMask kinds = 0;
  std::uint32_t records = 0, soft = 0, losses = 0, ups = 0, policies = 0, reasons = 0;
  std::uint32_t light = 0;  // of `soft`: what the optic itself says
  std::uint32_t full = 0;   // queues and pauses at the switch itself
  // The cable to a NIC that most of these are about, by majority vote (Boyer and Moore, 1981).
  PartId focus;
  std::uint32_t votes = 0;

  void add(const Evidence& evidence, Meaning meaning);
  void add(const Tally& other);
  void vote(PartId cable, std::uint32_t count);
  bool has(KindMask any) const { return (kinds & any) != 0; }
  std::uint32_t downs_max() const;
  std::uint32_t observers() const;  // ends and sources that saw it go down
};

}  // namespace weft::operate::triage
