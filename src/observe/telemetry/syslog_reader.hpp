// Raw syslog to records: whose message it is, what it says, of which port or session.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/timestamp.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/catalogue.hpp"
#include "observe/telemetry/inventory.hpp"
#include "observe/telemetry/syslog.hpp"
#include "observe/telemetry/syslog_framing.hpp"

namespace weft::observe::telemetry {

class MessageMiner;

struct SyslogCounts {
  std::uint64_t lines = 0;
  std::uint64_t known = 0;   // messages of the catalogue with a meaning
  std::uint64_t benign = 0;  // messages of the catalogue without one
  std::uint64_t unknown_messages = 0, unknown_devices = 0;
  std::uint64_t unknown_ports = 0;  // of known devices: ports, sessions, cards, NICs
  std::uint64_t malformed = 0;      // no syslog at all
  std::uint64_t binary = 0;         // of these and the unknown: with bytes that are no text
  std::uint64_t cut = 0;            // longer than syslog_bytes_max
  std::uint64_t without_time = 0;   // no stamp, or none that exists: time of receipt
  std::uint64_t wrong_clocks = 0;   // stamped more than five minutes away from receipt
  // The first of each trouble, by name of the count, at most 4 of each and 200 bytes.
  std::vector<std::pair<std::string, std::string>> samples;
};

// One line makes one record. Of what is not understood the record is of kind info with the text as
// attribute "message" (its first 8 KiB; then "message_bytes" says how long it was). A port that
// the fabric does not have makes entity none and an attribute "entity" = "device/name".
class SyslogReader {
 public:
  struct Options {
    std::string id_prefix = "s";  // ids are this and the number of the line, from 1
    Timestamp reference;          // year of stamps without one, where no time of receipt is known
    // Takes the messages of no catalogue; then read_syslog_file keeps no records.
    MessageMiner* unknown = nullptr;
  };
  // All must outlive the reader.
  SyslogReader(const Inventory& inventory, const Catalogue& catalogue, Options options);

  // A message that was received then from that address ("" where nobody knows).
  // Cost: a fraction of a microsecond; no allocation for known and benign messages but what the
  // record set grows by.
  void take(std::string_view message, Timestamp received, std::string_view from);
  // A line of a file: a message, or "@NS FROM MESSAGE" with the time of receipt in ns since 1970
  // and the source address ("-" for none).
  void take_captured(std::string_view line);

  const SyslogCounts& counts() const { return counts_; }
  SyslogCounts& counts() { return counts_; }
  const model::RecordSet& records() const { return set_; }
  model::RecordSet take_records();
  bool is_mining() const { return options_.unknown != nullptr; }

 private:
  struct Origin {
    Timestamp received;
    bool is_received = false;  // else a guess
    std::string_view from;
  };
  void read(std::string_view message, const Origin& origin);
  void stamp(const SyslogMessage& message, const Origin& origin, model::NodeId device,
             model::Record& row);
  void apply(const MessageRow& saying, const Captures& found, model::NodeId device,
             std::string_view line, model::Record& row);
  model::Entity locate(const MessageRow& saying, const Captures& found, model::NodeId device,
                       std::string_view& unknown) const;
  void keep_text(std::string_view line, std::string_view why, model::Record& row);
  void sample(std::string_view what, std::string_view line);
  std::uint32_t intern(std::string_view key, std::string_view value);

  const Inventory& inventory_;
  const Catalogue& catalogue_;
  Options options_;
  SyslogCounts counts_;
  model::RecordSet set_;
  NameTable attributes_;  // owner: hash of the key; value -> row of set_.attrs
  std::string scratch_;
  Timestamp latest_;  // newest stamp of what has no time of receipt
};

// All of a file ("-" is standard input), in captured lines. Fails: Errc::io.
Status read_syslog_file(const std::string& path, SyslogReader& reader);

// For people: what was read and what was not understood, one line each.
std::string to_text(const SyslogCounts& counts);

}  // namespace weft::observe::telemetry
