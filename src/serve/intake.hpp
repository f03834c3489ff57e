// Lines of feeds as the service takes them: checked before they are kept, and read the same way
// when they come back from the store.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "model/events/evidence.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/syslog_reader.hpp"
#include "port/store.hpp"
#include "serve/recent_ids.hpp"
#include "serve/service.hpp"

namespace weft::serve {

// "record": JSON lines of records. "syslog": raw messages, kept with the time and address they came
// from. "captured": the same by somebody who noted both, as "@NS FROM MESSAGE". "evidence": JSON
// lines of what probes met.
enum class Feed : std::uint8_t { record, syslog, evidence, captured };
// Fails: Errc::unknown.
Result<Feed> find_feed(std::string_view name);

// Records with the number of the event that each came from.
struct Numbered {
  model::RecordSet records;
  std::vector<std::uint64_t> numbers;  // by row
};

class Intake {
 public:
  struct Counts {
    std::uint64_t lines = 0, refused = 0, known = 0;
    std::uint64_t unreadable = 0;                           // kept once, and no longer understood
    std::uint64_t unknown_kinds = 0, unknown_entities = 0;  // of records
  };

  // All must outlive the intake.
  Intake(const model::Fabric& fabric, const observe::telemetry::Inventory& inventory,
         const observe::telemetry::Catalogue& catalogue);

  // What is to be kept of a batch: appends to `events` and tells what became of each line. Lines
  // that are no lines of the feed are refused; records whose id came lately, and blank lines, are
  // acknowledged and not kept again. `sender` is an address, or "".
  // Nothing is remembered of the batch before keep() says that it was kept.
  // Cost: some microseconds a line.
  Receipt check(Feed feed, const std::vector<std::string>& lines, std::string_view sender,
                Timestamp received, std::vector<port::StoredEvent>& events);

  // What kept events say, in their order; remembers their ids. Events that cannot be read (of an
  // older version, or damaged) are counted.
  void keep(std::span<const port::StoredEvent> events, Numbered& records,
            model::EvidenceSet& evidence);

  // None of the ids since the last keep() are known yet: the store refused them.
  void forget_checked() { checked_.clear(); }

  const Counts& counts() const { return counts_; }
  const observe::telemetry::SyslogCounts& syslog_counts() const { return syslog_.counts(); }

 private:
  static constexpr std::size_t ids_max = 1'000'000;

  struct Checked {
    std::string kept = {};  // as it will be stored
    std::string why = {};   // it is refused
    bool is_known = false;
  };
  Checked check_line(Feed feed, const std::string& line, std::string_view sender,
                     Timestamp received);
  void keep_evidence(const port::StoredEvent& event, model::EvidenceSet& evidence);
  static void merge(const Numbered& messages, Numbered& records);
  void keep_record(const port::StoredEvent& event, Numbered& records);

  const model::Fabric& fabric_;
  model::RecordLines lines_;
  observe::telemetry::SyslogReader syslog_;
  RecentIds known_{ids_max};
  std::unordered_set<std::uint64_t> checked_;
  Counts counts_;
};

}  // namespace weft::serve
