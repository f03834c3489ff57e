#include "adapt/sim/storm_syslog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.hpp"
#include "base/csv.hpp"

namespace weft::adapt::sim {

using model::EntityKind;
using model::EventKind;
using model::LinkId;
using model::NodeId;
using observe::telemetry::Dialect;
using observe::telemetry::MessageRow;
using observe::telemetry::Reason;
using observe::telemetry::Slot;

namespace {

constexpr unsigned local_daemon = 3;  // facility

// A stamp's parts in UTC, from the text that base makes of it: "2026-11-21T04:05:06.123456789Z".
struct Stamp {
  std::string year, month, day, clock, decimals;
};
Stamp parts_of(std::int64_t ns) {
  constexpr std::string_view names = "JanFebMarAprMayJunJulAugSepOctNovDec";
  const std::string text = to_text(Timestamp{ns});
  const auto month = static_cast<std::size_t>((text[5] - '0') * 10 + (text[6] - '0') - 1);
  Stamp out{text.substr(0, 4), std::string(names.substr(3 * month, 3)), text.substr(8, 2),
            text.substr(11, 8), ""};
  if (text[19] == '.') out.decimals = text.substr(20, text.size() - 21);
  out.decimals.resize(9, '0');
  if (out.day[0] == '0') out.day[0] = ' ';
  return out;
}

std::string_view level(unsigned severity) {
  constexpr std::array<std::string_view, 8> names{"EMERG",   "ALERT",  "CRIT", "ERR",
                                                  "WARNING", "NOTICE", "INFO", "DEBUG"};
  return names[severity & 7u];
}

// Of the end of a cable: 100.64.0.0/10, and IPv6 in fabrics that are larger.
std::string address_of(LinkId out) {
  constexpr std::uint32_t first = 100u << 24 | 64u << 16, count = 1u << 22;
  if (out.value >= count)
    return fmt::format("fd00::{:x}:{:x}", out.value >> 16, out.value & 0xFFFFu);
  const std::uint32_t ip = first + out.value;
  return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 255u, ip >> 8 & 255u, ip & 255u);
}
// Of a device's management port: 172.16.0.0/12.
std::string address_of(NodeId node) {
  const std::uint32_t ip = (172u << 24 | 16u << 16) + (node.value & 0xFFFFFu);
  return fmt::format("{}.{}.{}.{}", ip >> 24, ip >> 16 & 255u, ip >> 8 & 255u, ip & 255u);
}

// Those who number no links name neighbours by their own interface.
bool is_unnumbered(Dialect dialect) {
  return dialect == Dialect::frr || dialect == Dialect::sonic || dialect == Dialect::cumulus;
}

}  // namespace

StormScribe::StormScribe(const model::Fabric& fabric, const StormOptions& options)
    : fabric_(fabric), catalogue_(observe::telemetry::Catalogue::built_in()) {
  const auto names = storm_dialects(fabric, options);
  for (const auto& role : fabric.roles()) dialect_of_role_.push_back(names.at(role.name));
  for (const MessageRow& row : catalogue_.rows()) {
    // Rows that take anything, and changes without their number, are for reading.
    const bool is_change =
        row.kind == EventKind::config_commit || row.kind == EventKind::config_error;
    const bool vague = (row.kind == EventKind::info &&
                        std::ranges::all_of(row.pattern.words, &std::string::empty)) ||
                       (is_change && std::ranges::find(row.pattern.slots, Slot::change) ==
                                         row.pattern.slots.end());
    for (std::size_t i = 0; i < sayings_.size() && !vague; ++i)
      if (row.is_of(static_cast<Dialect>(i))) sayings_[i][{row.kind, row.reason}].push_back(&row);
  }
}

std::span<const MessageRow* const> StormScribe::sayings(Dialect dialect, const Key& key) const {
  const auto& all = sayings_[static_cast<std::size_t>(dialect)];
  const auto at = all.find(key);
  if (at == all.end()) return {};
  return at->second;
}

bool StormScribe::can_say(NodeId device, EventKind kind, Reason reason) const {
  return !sayings(dialect_of_role_[fabric_.role_id(device).index()], {kind, reason}).empty();
}

std::string StormScribe::slot(Slot slot, std::string_view before, const StormLine& line) const {
  const bool at_port = line.entity.kind == EntityKind::port;
  switch (slot) {
    case Slot::port:
      return at_port ? fabric_.interface_name(LinkId(line.entity.id))
                     : fmt::format("Ethernet1/{}", line.stray);
    case Slot::peer: {
      if (!at_port) return "192.0.2.1";  // of nobody
      const LinkId out(line.entity.id);
      const bool own = is_unnumbered(dialect_of_role_[fabric_.role_id(line.speaker).index()]);
      return own ? fabric_.interface_name(out) : address_of(model::reverse(out));
    }
    case Slot::nic:
      return "eth0";
    case Slot::card:
      return fmt::format("{}", line.entity.card);
    case Slot::value:
      return fmt::format("{}", line.value);
    case Slot::change:
      return fmt::format("CHG{}", line.change);
    case Slot::any:
      break;
  }
  if (before.ends_with("vrf ") || before.ends_with("VRF ") || before.ends_with("instance "))
    return "default";
  return fmt::format("{}", 1 + line.salt % 9973);
}

std::string StormScribe::fill(const MessageRow& row, const StormLine& line) const {
  std::string out = row.pattern.words.front();
  for (std::size_t i = 0; i < row.pattern.slots.size(); ++i)
    out += slot(row.pattern.slots[i], row.pattern.words[i], line) + row.pattern.words[i + 1];
  return out;
}

std::string StormScribe::message(const StormLine& line) const {
  const Dialect dialect = dialect_of_role_[fabric_.role_id(line.speaker).index()];
  const auto rows = sayings(dialect, {line.kind, line.reason});
  WEFT_CHECK(!rows.empty());
  const MessageRow& row = *rows[line.salt % rows.size()];
  const unsigned priority = local_daemon * 8 + row.severity;
  std::string host = fabric_.name(line.speaker);
  std::ranges::replace(host, ':', '-');
  const std::string text = fill(row, line);
  const std::string key = row.mnemonic.empty() ? "" : fmt::format("%{}: ", row.mnemonic);
  const Stamp at = parts_of(line.t);
  const unsigned pid = 300 + line.salt % 30'000;
  switch (dialect) {
    case Dialect::sonic:
      return fmt::format("<{}>{} {} {}.{} {} {} {}[{}]: {}{}", priority, at.month, at.day, at.clock,
                         at.decimals.substr(0, 6), host, level(row.severity), row.program, pid, key,
                         text);
    case Dialect::eos:
      return fmt::format("<{}>{} {} {} {} {}: {}{}", priority, at.month, at.day, at.clock, host,
                         row.program, key, text);
    case Dialect::junos:
      return fmt::format("<{}>1 {} {} {} {} {} {} {}", priority, to_text(Timestamp{line.t}), host,
                         row.program, pid, row.mnemonic.empty() ? "-" : row.mnemonic,
                         row.mnemonic.empty() ? "-" : R"([junos@2636.1.1.1.2.29 unit="[1]"])",
                         text);
    case Dialect::nxos:
      return fmt::format("<{}>{}: {} {} {} {}.{} UTC: {}{}", priority, host, at.year, at.month,
                         at.day, at.clock, at.decimals.substr(0, 3), key, text);
    case Dialect::frr:
      return fmt::format("<{}>{} {} {} {} {}[{}]: [M59KS-A3ZXZ] {}{}", priority, at.month, at.day,
                         at.clock, host, row.program, pid, key, text);
    case Dialect::cumulus:
    case Dialect::host:
      return fmt::format("<{}>{} {} {} {} {}[{}]: {}{}", priority, at.month, at.day, at.clock, host,
                         row.program, pid, key, text);
  }
  return {};
}

std::string StormScribe::captured(const StormLine& line) const {
  return fmt::format("@{} {} {}", line.received, address_of(line.speaker), message(line));
}

std::string StormScribe::inventory() const {
  std::string out = "address,device,interface\n";
  for (const NodeId node : fabric_.nodes()) {
    if (!fabric_.is_switch(node) && fabric_.kind(node) != model::NodeKind::host) continue;
    const std::string name = csv_cell(fabric_.name(node));
    out += fmt::format("{},{},\n", address_of(node), name);
    for (const LinkId link : fabric_.out(node))
      if (fabric_.is_switch(node) && fabric_.is_switch(fabric_.to(link)))
        out += fmt::format("{},{},{}\n", address_of(link), name,
                           csv_cell(fabric_.interface_name(link)));
  }
  return out;
}

}  // namespace weft::adapt::sim
