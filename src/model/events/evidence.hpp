// What probing said about paths: the stream that probers write and the localiser reads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/line_reader.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/fabric/fabric.hpp"

namespace weft::model {

// Which part of a probe's way a row speaks of. Sequence numbers tell on which leg a probe was lost;
// a prober then writes a row for each. Without them the way there and back is one row.
enum class Leg : std::uint8_t { round_trip, forward, back };
std::string_view to_text(Leg leg);

// Probes of one flow (ends, source port, class) in one window.
struct Evidence {
  Timestamp t;                      // start of the window
  std::optional<Timestamp> path_t;  // when the path was found out, where that is said
  NodeId src, dst;                  // who probed, who answered: NICs or hosts
  // The links crossed, in order, in EvidenceSet::links: of a round trip the way there, then the way
  // back; of Leg::back the way back alone. None: the path is not known.
  std::uint32_t path_first = 0;
  std::uint16_t path_size = 0;
  std::uint16_t sport = 0;         // UDP source port
  std::uint8_t traffic_class = 0;  // index in EvidenceSet::classes
  Leg leg = Leg::round_trip;
  std::uint32_t sent = 0;        // entered this leg
  std::uint32_t lost = 0;        // of those, never seen again
  std::uint32_t late = 0;        // of those, came after the timeout; not among `lost`
  std::uint32_t damaged = 0;     // of those, came with a wrong payload; among neither of them
  std::uint32_t duplicates = 0;  // answers that came once more, on the way back
  float rtt_p50_us = -1, rtt_p99_us = -1;  // network time alone; -1: not measured
};

struct EvidenceSet {
  std::vector<Evidence> rows;
  std::vector<LinkId> links;
  std::vector<std::string> classes;  // names, such as "0" or "lossy"; at most 256

  std::span<const LinkId> path(const Evidence& row) const {
    return {links.data() + row.path_first, row.path_size};
  }
  // The class's index; it is added when it is new. There must be fewer than 256.
  std::uint8_t class_index(std::string_view name);
  // Appends links and notes them as the row's path.
  void set_path(Evidence& row, std::span<const LinkId> path);
};

// Reads JSON lines: {"t", "src", "dst", "sport", "class", "leg", "path": ["a->b", ...] or null,
// "path_t", "sent", "lost", "late", "damaged", "duplicates", "rtt_us": {"p50", "p99"}}; blank lines
// are skipped, other keys allowed. Needed are t, src, dst, sent and lost. Fails with up to 100
// errors by line: unknown names, lost + late + damaged > sent, links of a path that do not join,
// more than 64 links, more than 256 classes. Cost: some microseconds a line.
Result<EvidenceSet> read_evidence(const Fabric& fabric, LineReader& lines);

// The same for streams of any length: `take` gets some thousand rows at a time, in order; classes
// keep their index from one call to the next. After an error nothing more is taken.
Status scan_evidence(const Fabric& fabric, LineReader& lines,
                     const std::function<void(const EvidenceSet&)>& take);

// The row as one such line, without the line end.
std::string to_json(const Fabric& fabric, const EvidenceSet& set, const Evidence& row);

}  // namespace weft::model
