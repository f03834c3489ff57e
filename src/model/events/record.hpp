// The one event type of the house: what feeds, probers and engines say, and triage and SLI read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/line_reader.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/events/event_kind.hpp"

namespace weft::model {

struct Record {
  Timestamp t;         // when it happened, by the source's clock; of an interval, its start
  Timestamp until;     // end of the interval it speaks of (a probe window, a poll); else t
  Timestamp received;  // by our clock; t where nobody said
  Entity entity;       // none: of something the fabric does not know (attribute "entity")
  EventKind kind = EventKind::info;
  Source source = Source::syslog;
  std::uint32_t id = 0;  // in RecordSet::ids; ids are unique in a set
  double value = 1;
  std::uint32_t attrs = 0;  // in RecordSet::attrs; 0: none
};

using Attributes = std::vector<std::pair<std::string, std::string>>;

// Attributes with a meaning of their own: "reason" of a session's end (interface, hold_timer,
// policy, reset, graceful), "change" (id of a configuration change), "peer" (the other end),
// "message" (the raw text), "entity" (a name that is not known), "index" (which of several).
struct RecordSet {
  std::vector<Record> rows;
  std::vector<std::string> ids;
  std::vector<Attributes> attrs{{}};

  // The attribute's text, or "".
  std::string_view attribute(const Record& record, std::string_view key) const;
  std::uint32_t add_id(std::string id);
  std::uint32_t add_attributes(Attributes attributes);  // 0 for none
};

// Reads JSON lines {"id", "t", "until", "received", "source", "entity", "kind", "value",
// "attrs": {}}; blank lines are skipped, other keys allowed. Needed are t, source and kind; an id
// that is missing is the line's number. An entity or kind that is not known does not fail: the
// entity becomes none with its name in the attributes, the kind info with attribute "kind", and
// both are counted. Fails with up to 100 errors by line, also for ids that repeat with different
// content (equal lines are duplicates and kept once).
// Cost: some microseconds a line.
struct RecordCounts {
  std::uint64_t lines = 0, unknown_entities = 0, unknown_kinds = 0, duplicates = 0;
  std::uint64_t malformed = 0;  // of a RecordStream: lines that are no records, beside `lines`
};
Result<RecordSet> read_records(const Fabric& fabric, LineReader& lines, RecordCounts& counts);

// The same in pieces, for input of any length. Ids are known to repeat as long as they do so within
// some hundred thousand lines of each other.
class RecordStream {
 public:
  RecordStream(const Fabric& fabric, LineReader& lines);  // which must both outlive this
  RecordStream(RecordStream&&) noexcept;
  RecordStream& operator=(RecordStream&&) noexcept;
  ~RecordStream();

  // The next records, up to `rows_max`; none at the end. Lines that are no records are counted and
  // passed over, as are lines of more than line_bytes_max. Fails: Errc::io.
  Result<RecordSet> next(std::size_t rows_max);
  // What was wrong with the first of them.
  const Errors& refused() const;
  const RecordCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The same line by line, where one bad line must not take others with it.
class RecordLines {
 public:
  explicit RecordLines(const Fabric& fabric);  // which must outlive this
  RecordLines(RecordLines&&) noexcept;
  RecordLines& operator=(RecordLines&&) noexcept;
  ~RecordLines();

  // Adds the line's record to those that take() gives. Ids are not compared; one that is missing
  // is "". Fails as read_records does, and adds nothing then.
  Status add(std::string_view line, const Where& where);
  RecordSet take();
  // `lines` counts the bad ones too; duplicates are not looked for.
  const RecordCounts& counts() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The record as one such line, without the line end.
std::string to_json(const Fabric& fabric, const RecordSet& set, const Record& record);

}  // namespace weft::model
