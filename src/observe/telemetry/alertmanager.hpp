// Alertmanager's webhook to records: other people's alerts as evidence like any other.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/inventory.hpp"
#include "observe/telemetry/label_patterns.hpp"

namespace weft::observe::telemetry {

struct AlertRow {
  std::string alert;  // pattern of the alert's name, with '*'
  LabelPatterns where;
  model::EventKind kind = model::EventKind::info;  // info: known to say nothing
};

// Which alert means what, and which labels may name the device and its part: of each list the first
// one that the fabric knows counts. Of the rows the first that fits, those of a file before the
// built-in ones.
struct AlertMapping {
  std::vector<AlertRow> rows;
  std::vector<std::string> device_labels, part_labels;

  static AlertMapping built_in();
  // Laid over the built-in labels; its rows stand before the built-in ones, alone with
  // `builtin: false`. Fails with every error of the file, each with its position.
  static Result<AlertMapping> from_yaml(const Config& config);
};
std::string_view builtin_alerts_text();

struct AlertCounts {
  std::uint64_t payloads = 0, alerts = 0, firing = 0, resolved = 0;
  std::uint64_t refused = 0;         // payloads that are none of version 4
  std::uint64_t malformed = 0;       // alerts within them that are none
  std::uint64_t repeated = 0;        // told before
  std::uint64_t unknown_alerts = 0;  // of no row: info
  std::uint64_t unknown_devices = 0, unknown_parts = 0;
  std::uint64_t without_time = 0;  // taken for of their receipt
  std::uint64_t truncated = 0;     // that Alertmanager itself left out (truncatedAlerts)
};

// One alert makes one record, with attributes "alert" (its name) and "fingerprint": a firing one of
// its row's kind at startsAt, a resolved one of what clears that kind at endsAt, or info where
// nothing does. What is repeated while it fires makes a record at its receipt; ends, and the
// beginnings of pairs (down, up), come again with the id that they had, so that whoever keeps
// records by id counts them once, and gets them if he could not keep them before.
// Of unknown alerts the record is info with all labels as "message"; of unknown devices and parts
// entity is none, with attribute "entity".
class AlertReader {
 public:
  // Both must outlive the reader.
  AlertReader(const Inventory& inventory, const AlertMapping& mapping,
              std::string id_prefix = "alert");

  // The body of one POST, at most 16 MiB and 10,000 alerts. Fails: Errc::parse when it is no
  // payload of version 4; then nothing of it was taken.
  Status read(std::string_view json, Timestamp received);
  const AlertCounts& counts() const { return counts_; }
  const model::RecordSet& records() const { return set_; }
  model::RecordSet take_records();

 private:
  struct Alert;
  void take(const Alert& alert, Timestamp received);
  const AlertRow* row_of(const Alert& alert) const;
  model::NodeId device_of(const Alert& alert) const;
  void place(const Alert& alert, model::Record& row, model::Attributes& attributes);
  bool is_news(const std::string& key);

  const Inventory& inventory_;
  const AlertMapping& mapping_;
  std::string id_prefix_;
  AlertCounts counts_;
  model::RecordSet set_;
  std::set<std::string, std::less<>> told_;  // keys of beginnings and ends
  std::deque<std::string> told_order_;
};

}  // namespace weft::observe::telemetry
