#include "observe/telemetry/syslog_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <iterator>
#include <utility>

#include "base/file_stream.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "model/events/entity.hpp"
#include "observe/telemetry/message_miner.hpp"

namespace weft::observe::telemetry {

using model::EntityKind;
using model::EventKind;
using model::LinkId;
using model::NodeId;

namespace {

constexpr std::size_t text_bytes_max = 8'192;
constexpr std::size_t samples_max = 4, sample_bytes_max = 200;
constexpr std::int64_t clock_slack_ns = 5 * ns_per_minute;

// A stamp of whole seconds names a second: the latest moment of it that had come when the message
// did. Its beginning would make every such message up to a second late.
Timestamp within_second(Timestamp stamp, Timestamp received) {
  if (stamp.ns % ns_per_s != 0 || received < stamp) return stamp;
  return {std::min(received.ns, stamp.ns + ns_per_s - 1)};
}

// Ports of hosts are NICs, and NICs of switches ports.
EventKind kind_at(EventKind kind, model::NodeKind device) {
  using enum EventKind;
  constexpr std::pair<EventKind, EventKind> pairs[] = {
      {link_down, nic_down}, {link_up, nic_up}, {crc_errors, nic_errors}, {device_boot, host_boot}};
  for (const auto& [at_switch, at_host] : pairs)
    if (kind == at_switch || kind == at_host)
      return device == model::NodeKind::host ? at_host : at_switch;
  return kind;
}

}  // namespace

SyslogReader::SyslogReader(const Inventory& inventory, const Catalogue& catalogue, Options options)
    : inventory_(inventory), catalogue_(catalogue), options_(std::move(options)) {}

model::RecordSet SyslogReader::take_records() {
  attributes_ = {};
  return std::exchange(set_, {});
}

std::uint32_t SyslogReader::intern(std::string_view key, std::string_view value) {
  const auto owner = static_cast<std::uint32_t>(hash_text(key));
  if (const std::uint32_t known = attributes_.find(owner, value); known != NameTable::none)
    return known;
  const std::uint32_t made = set_.add_attributes({{std::string(key), std::string(value)}});
  attributes_.add(owner, value, made);
  return made;
}

void SyslogReader::sample(std::string_view what, std::string_view line) {
  const auto same =
      std::ranges::count(counts_.samples, what, &std::pair<std::string, std::string>::first);
  if (static_cast<std::size_t>(same) < samples_max)
    counts_.samples.emplace_back(what, line.substr(0, sample_bytes_max));
}

void SyslogReader::keep_text(std::string_view line, std::string_view why, model::Record& row) {
  sample(why, line);
  if (find_not_text(line) != std::string_view::npos) ++counts_.binary;
  model::Attributes attributes{{"message", std::string(line.substr(0, text_bytes_max))}};
  if (line.size() > text_bytes_max)
    attributes.emplace_back("message_bytes", fmt::format("{}", line.size()));
  row.attrs = set_.add_attributes(std::move(attributes));
}

void SyslogReader::stamp(const SyslogMessage& message, const Origin& origin, NodeId device,
                         model::Record& row) {
  row.received = origin.received;
  if (message.stamp == SyslogMessage::Stamp::none) {
    ++counts_.without_time;
    row.t = row.until = origin.received;
    return;
  }
  row.t = message.t;
  if (message.stamp == SyslogMessage::Stamp::civil && device.valid())
    row.t.ns -= inventory_.zone_ns(device);
  if (origin.is_received) row.t = within_second(row.t, origin.received);
  row.until = row.t;
  if (!origin.is_received) {
    row.received = row.t;
    latest_ = std::max(latest_, row.t);
  } else if (std::abs(row.t.ns - row.received.ns) > clock_slack_ns) {
    ++counts_.wrong_clocks;
  }
}

// The first part of the device that a slot names; where there is no such part, the first name.
model::Entity SyslogReader::locate(const MessageRow& saying, const Captures& found, NodeId device,
                                   std::string_view& unknown) const {
  bool is_named = false;
  for (const Slot slot : saying.pattern.slots) {
    const std::string_view name = found[slot];
    LinkId link;
    switch (slot) {
      case Slot::port:
      case Slot::nic: {  // a driver does not know whether it runs on a switch
        if (inventory_.fabric().is_switch(device)) {
          link = inventory_.port(device, name);
          break;
        }
        if (const NodeId nic = inventory_.nic(device, name); nic.valid()) return model::entity(nic);
        break;
      }
      case Slot::peer:
        link = inventory_.towards(device, name);
        break;
      case Slot::card: {
        std::uint32_t index = 0;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
        if (error == std::errc{} && end == name.data() + name.size() &&
            index < inventory_.fabric().out(device).size())
          return model::card_of(device, index);
        break;
      }
      default:
        continue;
    }
    if (link.valid()) return model::port_of(link);
    if (unknown.empty()) unknown = name;
    is_named = true;
  }
  return is_named ? model::Entity{} : model::entity(device);
}

void SyslogReader::apply(const MessageRow& saying, const Captures& found, NodeId device,
                         std::string_view line, model::Record& row) {
  row.kind = saying.kind;
  if (saying.kind == EventKind::info) {
    ++counts_.benign;
    row.entity = model::entity(device);
    return;
  }
  ++counts_.known;
  row.kind = kind_at(row.kind, inventory_.fabric().kind(device));
  std::string_view unknown;
  row.entity = locate(saying, found, device, unknown);
  if (row.entity.kind == EntityKind::none) {
    ++counts_.unknown_ports;
    scratch_.clear();
    fmt::format_to(std::back_inserter(scratch_), "{}/{}", inventory_.fabric().name(device),
                   unknown.substr(0, sample_bytes_max));
    row.attrs = intern("entity", scratch_);
    sample("unknown_ports", line);
    return;
  }
  if (const std::string_view value = found[Slot::value]; !value.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (error == std::errc{} && number >= -1e300 && number <= 1e300) row.value = number;
  }
  if (saying.reason != Reason::none) row.attrs = intern("reason", to_text(saying.reason));
  if (const std::string_view change = found[Slot::change]; !change.empty())
    row.attrs = intern("change", change.substr(0, sample_bytes_max));
}

void SyslogReader::read(std::string_view line, const Origin& origin) {
  ++counts_.lines;
  model::Record row;
  row.source = model::Source::syslog;
  row.id = set_.add_id(fmt::format("{}{}", options_.id_prefix, counts_.lines));
  SyslogMessage message;
  if (parse_syslog(line, origin.received, message) != SyslogFault::none) {
    ++counts_.malformed;
    row.t = row.until = row.received = origin.received;
    keep_text(line, "malformed", row);
    set_.rows.push_back(row);
    return;
  }
  NodeId device = inventory_.device(message.host);
  if (!device.valid() && !origin.from.empty()) device = inventory_.device(origin.from);
  stamp(message, origin, device, row);
  if (!device.valid()) {
    ++counts_.unknown_devices;
    keep_text(line, "unknown_devices", row);
    set_.rows.push_back(row);
    return;
  }
  row.entity = model::entity(device);
  Captures found;
  if (const MessageRow* saying = catalogue_.find(message.key, message.text, found)) {
    apply(*saying, found, device, line, row);
  } else {
    ++counts_.unknown_messages;
    if (options_.unknown != nullptr) options_.unknown->add(inventory_, device, message, line);
    keep_text(line, "unknown_messages", row);
  }
  set_.rows.push_back(row);
}

void SyslogReader::take(std::string_view message, Timestamp received, std::string_view from) {
  read(message, {received, true, from});
}

void SyslogReader::take_captured(std::string_view line) {
  if (line.starts_with('@')) {
    std::int64_t ns = 0;
    const char* const last = line.data() + line.size();
    const auto [end, error] = std::from_chars(line.data() + 1, last, ns);
    const auto used = static_cast<std::size_t>(end - line.data());
    const std::size_t behind = line.find(' ', used + 1);
    if (error == std::errc{} && end != last && *end == ' ' && behind != std::string_view::npos &&
        ns >= 0 && ns <= timestamp_ns_max) {
      const std::string_view from = line.substr(used + 1, behind - used - 1);
      return read(line.substr(behind + 1), {{ns}, true, from == "-" ? std::string_view{} : from});
    }
  }
  read(line, {latest_.ns != 0 ? latest_ : options_.reference, false, {}});
}

Status read_syslog_file(const std::string& path, SyslogReader& reader) {
  WEFT_TRY(const File file, open_file(path));
  SyslogFraming framing(SyslogFraming::Mode::lines);
  const auto take = [&](std::string_view line) { reader.take_captured(line); };
  std::vector<char> block(std::size_t{1} << 20);
  for (std::size_t got = block.size(); got == block.size();) {
    got = std::fread(block.data(), 1, block.size(), file.get());
    framing.feed({block.data(), got}, take);
    if (reader.is_mining()) reader.take_records();
  }
  if (std::ferror(file.get()) != 0) return io_error(path, "read");
  framing.finish(take);
  reader.counts().cut += framing.counts().cut;
  return {};
}

std::string to_text(const SyslogCounts& c) {
  std::string out = fmt::format("{} lines: {} recognized, {} benign\n", c.lines, c.known, c.benign);
  const std::pair<std::string_view, std::uint64_t> troubles[] = {
      {"unknown_messages", c.unknown_messages},
      {"unknown_devices", c.unknown_devices},
      {"unknown_ports", c.unknown_ports},
      {"malformed", c.malformed},
      {"binary", c.binary},
      {"cut", c.cut},
      {"without_time", c.without_time},
      {"wrong_clocks", c.wrong_clocks}};
  for (const auto& [what, count] : troubles) {
    if (count == 0) continue;
    out += fmt::format("{}: {}\n", what, count);
    for (const auto& [of, text] : c.samples)
      if (of == what) out += fmt::format("  e.g. {}\n", json_string(text));
  }
  return out;
}

}  // namespace weft::observe::telemetry
