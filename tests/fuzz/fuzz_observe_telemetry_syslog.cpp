// Raw syslog: no bytes crash, each message makes exactly one record that reads back from its JSON,
// a stream gives the same messages in whatever pieces it comes; what is proposed for the unknown is
// a catalogue.
#include <algorithm>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "base/line_reader.hpp"
#include "fuzz_fabric.hpp"
#include "model/events/record.hpp"
#include "observe/telemetry/message_miner.hpp"
#include "observe/telemetry/syslog_framing.hpp"
#include "observe/telemetry/syslog_reader.hpp"

namespace {

namespace telemetry = weft::observe::telemetry;
using telemetry::SyslogFraming;

struct Bed {
  weft::model::Fabric fabric = weft::fuzz::make_fabric(
      "{generator: ai_zone, racks: 2, hosts_per_rack: 1, spines: 2, link: 400 Gbps}");
  telemetry::Inventory inventory{fabric};
  telemetry::Catalogue catalogue = telemetry::Catalogue::built_in();
};

std::vector<std::string> split(std::string_view bytes, std::size_t step, SyslogFraming::Mode mode) {
  SyslogFraming framing(mode);
  std::vector<std::string> out;
  const auto take = [&](std::string_view message) {
    WEFT_CHECK(!message.empty() && message.size() <= telemetry::syslog_bytes_max);
    out.emplace_back(message);
  };
  for (std::size_t i = 0; i < bytes.size(); i += step) framing.feed(bytes.substr(i, step), take);
  framing.finish(take);
  WEFT_CHECK(framing.counts().messages == out.size());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Bed bed;
  const std::string_view bytes = weft::fuzz::text_of(data, size);
  for (const auto mode : {SyslogFraming::Mode::stream, SyslogFraming::Mode::lines})
    WEFT_CHECK(split(bytes, 3, mode) == split(bytes, bytes.size() + 1, mode));

  telemetry::MessageMiner miner;
  telemetry::SyslogReader reader(bed.inventory, bed.catalogue, {.unknown = &miner});
  const auto lines = split(bytes, bytes.size() + 1, SyslogFraming::Mode::lines);
  std::string written;
  for (const std::string& line : lines) reader.take_captured(line);
  const weft::model::RecordSet& set = reader.records();
  WEFT_CHECK(set.rows.size() == lines.size());
  for (const weft::model::Record& row : set.rows) {
    const std::string json = to_json(bed.fabric, set, row);
    if (json.size() < weft::line_bytes_max) written += json + "\n";
  }
  weft::LineReader again(written, "records");
  weft::model::RecordCounts counts;
  WEFT_CHECK(weft::model::read_records(bed.fabric, again, counts).has_value());

  const auto proposed = weft::parse_yaml(to_yaml(miner.proposals()), "proposed");
  WEFT_CHECK(proposed.has_value() && telemetry::Catalogue::from_yaml(*proposed).has_value());
  return 0;
}
