#include "observe/telemetry/inventory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "base/timestamp.hpp"

namespace weft::observe::telemetry {

using model::LinkId;
using model::NodeId;
using model::NodeKind;

namespace {

constexpr std::uint32_t anybody = 0;

std::string_view bytes_of(const std::array<char, 4>& bytes) { return {bytes.data(), bytes.size()}; }

// How devices shorten the types of their interfaces: EOS, NX-OS, IOS-XR.
constexpr std::pair<std::string_view, std::string_view> interface_types[] = {
    {"Et", "Ethernet"},       {"Eth", "Ethernet"},          {"Gi", "GigabitEthernet"},
    {"Te", "TenGigE"},        {"Te", "TenGigabitEthernet"}, {"TF", "TwentyFiveGigE"},
    {"Fo", "FortyGigE"},      {"Fi", "FiftyGigE"},          {"Hu", "HundredGigE"},
    {"TH", "TwoHundredGigE"}, {"FH", "FourHundredGigE"},    {"EH", "EightHundredGigE"},
    {"Po", "Port-Channel"},   {"Po", "port-channel"},       {"BE", "Bundle-Ether"}};

// A name without what stands around it: a description in parentheses, or a driver's words before.
std::string_view bare_name(std::string_view name) {
  name = name.substr(0, name.find(" ("));
  while (name.ends_with('.') || name.ends_with(',') || name.ends_with(':')) name.remove_suffix(1);
  return name.substr(name.rfind(' ') + 1);  // npos + 1 is 0
}

// "+01:00", "-0330", "Z".
Result<std::int64_t> parse_zone(const Token& token) {
  const std::string_view text = trim(token.text);
  if (text.empty() || text == "Z" || text == "UTC") return 0;
  std::string digits;
  for (const char c : text.substr(1))
    if (c != ':') digits += c;
  const bool formed = (text[0] == '+' || text[0] == '-') && digits.size() == 4 &&
                      std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  const auto two = [&](std::size_t i) { return (digits[i] - '0') * 10 + (digits[i + 1] - '0'); };
  if (!formed || two(0) > 14 || two(2) > 59)
    return fail(Errc::parse, token.where, fmt::format("{} is not a time zone", quote(text)),
                "write e.g. +01:00");
  const std::int64_t minutes = std::int64_t{two(0)} * 60 + two(2);
  return (text[0] == '-' ? -minutes : minutes) * ns_per_minute;
}

}  // namespace

Inventory::Inventory(const model::Fabric& fabric)
    : fabric_(&fabric), zone_ns_(fabric.node_count(), 0) {
  for (const NodeId node : fabric.nodes()) {
    const NodeKind kind = fabric.kind(node);
    if (kind != NodeKind::fabric_switch && kind != NodeKind::host) continue;
    std::string name = fabric.name(node);
    devices_.add(anybody, name, node.value);
    std::ranges::replace(name, ':', '-');
    devices_.add(anybody, name, node.value);
    for (const LinkId link : fabric.out(node)) {
      if (!fabric.on_wire(link)) continue;
      ports_.add(node.value, fabric.interface_name(link), link.value);
      links_.add(node.value, bytes_of(std::bit_cast<std::array<char, 4>>(fabric.to(link).value)),
                 link.value);
    }
  }
  for (const NodeId host : fabric.hosts()) {
    std::uint32_t index = 0;
    for (const NodeId nic : fabric.nics_of(host)) {
      nics_.add(host.value, fmt::format("eth{}", index), nic.value);
      nics_.add(host.value, fmt::format("mlx5_{}", index), nic.value);
      ++index;
    }
  }
}

NodeId Inventory::find_name(std::string_view name) const {
  const std::uint32_t found = devices_.find(anybody, name);
  return found == NameTable::none ? NodeId{} : NodeId(found);
}

NodeId Inventory::device(std::string_view name) const {
  const NodeId exact = find_name(name);
  const std::size_t dot = name.find('.');
  return exact.valid() || dot == std::string_view::npos ? exact : find_name(name.substr(0, dot));
}

std::uint32_t Inventory::find_port(NodeId device, std::string_view name) const {
  if (const std::uint32_t found = ports_.find(device.value, name); found != NameTable::none)
    return found;
  if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
    if (const std::uint32_t found = ports_.find(device.value, name.substr(0, dot));
        found != NameTable::none)
      return found;
  const auto is_letter = [](char c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; };
  const std::string_view numbers(std::ranges::find_if_not(name, is_letter), name.end());
  const std::string_view type = name.substr(0, name.size() - numbers.size());
  if (type.empty()) return NameTable::none;
  for (const auto& [shorter, longer] : interface_types)
    for (const auto& [from, to] : {std::pair(shorter, longer), std::pair(longer, shorter)}) {
      if (type != from) continue;
      const std::uint32_t found =
          ports_.find(device.value, std::string(to).append(numbers.substr(0, numbers.find('.'))));
      if (found != NameTable::none) return found;
    }
  return NameTable::none;
}

LinkId Inventory::port(NodeId device, std::string_view interface_name) const {
  std::uint32_t found = find_port(device, interface_name);
  if (found == NameTable::none)
    if (const std::string_view bare = bare_name(interface_name); bare != interface_name)
      found = find_port(device, bare);
  return found == NameTable::none ? LinkId{} : LinkId(found);
}

NodeId Inventory::nic(NodeId host, std::string_view name) const {
  std::uint32_t found = nics_.find(host.value, name);
  if (found == NameTable::none && name.contains(' '))
    found = nics_.find(host.value, bare_name(name));
  return found == NameTable::none ? NodeId{} : NodeId(found);
}

LinkId Inventory::find_neighbour(NodeId device, std::string_view neighbour) const {
  // Before the ports, which are looked for under many names.
  if (const std::uint32_t end = ends_.find(anybody, neighbour); end != NameTable::none) {
    const LinkId theirs(end);
    return fabric_->to(theirs) == device ? model::reverse(theirs) : LinkId{};
  }
  if (const LinkId own = port(device, neighbour); own.valid()) return own;
  const NodeId peer = this->device(neighbour);
  if (!peer.valid()) return {};
  const std::uint32_t link =
      links_.find(device.value, bytes_of(std::bit_cast<std::array<char, 4>>(peer.value)));
  return link == NameTable::none ? LinkId{} : LinkId(link);
}

LinkId Inventory::towards(NodeId device, std::string_view neighbour) const {
  if (const LinkId link = find_neighbour(device, neighbour); link.valid()) return link;
  const std::size_t end = neighbour.find_first_of(" (+%");
  if (end == std::string_view::npos) return {};
  const LinkId link = find_neighbour(device, neighbour.substr(0, end));
  return link.valid() || neighbour[end] != '%' ? link : port(device, neighbour.substr(end + 1));
}

Status Inventory::add_address(std::string_view address, NodeId device,
                              std::string_view interface_name, const Where& where) {
  if (!devices_.add(anybody, address, device.value) && find_name(address) != device)
    return fail(Errc::value, where,
                fmt::format("{} is already the address of {}", quote(address),
                            fabric_->name(find_name(address))),
                "assign each address to one device");
  if (interface_name.empty()) return {};
  if (const LinkId link = port(device, interface_name); link.valid()) {
    ends_.add(anybody, address, link.value);
    return {};
  }
  if (nic(device, interface_name).valid()) return {};
  return fail(Errc::unknown, where,
              fmt::format("{} has no interface {}", fabric_->name(device), quote(interface_name)),
              "use an interface name from the fabric");
}

Status Inventory::add_csv(std::string_view text, const std::string& file) {
  const std::vector<std::string> required{"address", "device"}, optional{"interface", "zone"};
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(required, optional));
  Errors errors;
  while (errors.size() < errors_max && csv.next()) {
    const NodeId device = find_name(trim(csv.cell(1).text));
    if (!device.valid()) {
      errors.push_back({Errc::unknown,
                        csv.cell(1).where,
                        fmt::format("the fabric has no switch or host {}", quote(csv.cell(1).text)),
                        "use a device name from the fabric",
                        {}});
      continue;
    }
    const std::string_view address = trim(csv.cell(0).text);
    if (!address.empty())
      if (auto added = add_address(address, device, trim(csv.cell(2).text), csv.cell(0).where);
          !added)
        errors.push_back(std::move(added).error());
    const Token zone = csv.cell(3);
    if (trim(zone.text).empty()) continue;
    if (const auto offset = parse_zone(zone))
      zone_ns_[device] = *offset;
    else
      errors.push_back(offset.error());
  }
  if (csv.error() != nullptr) errors.push_back(*csv.error());
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

}  // namespace weft::observe::telemetry
