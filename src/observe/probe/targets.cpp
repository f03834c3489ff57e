#include "observe/probe/targets.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <optional>

#include "base/csv.hpp"
#include "base/file.hpp"

namespace weft::observe::probe {
namespace {

std::optional<std::uint32_t> number(std::string_view text, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value > most)
    return std::nullopt;
  return value;
}

std::unexpected<Error> bad(const Token& token, std::string_view what, std::string hint) {
  return fail(Errc::parse, token.where, fmt::format("{} is not {}", quote(token.text), what),
              std::move(hint));
}

}  // namespace

Result<std::uint32_t> parse_address(const Token& token) {
  const auto parts = split(trim(token.text), '.');
  std::uint32_t address = 0;
  bool good = parts.size() == 4;
  for (const std::string_view part : parts) {
    const auto byte = number(part, 255);
    good = good && byte && part.size() <= 3;
    address = address << 8 | byte.value_or(0);
  }
  if (!good)
    return bad(token, "an IPv4 address",
               "write e.g. \"10.0.0.1\"; names and IPv6 are not looked up");
  return address;
}

Result<std::vector<std::pair<model::NodeId, std::uint32_t>>> read_address_rows(
    const model::Fabric& fabric, const std::string& path) {
  WEFT_TRY(const std::string text, read_file(path));
  CsvReader csv(text, path);
  const std::array<std::string, 2> columns{"node", "address"};
  WEFT_TRY_STATUS(csv.header(columns, {}));
  std::vector<std::pair<model::NodeId, std::uint32_t>> out;
  while (csv.next()) {
    WEFT_TRY(const model::NodeId node, fabric.find_node(csv.cell(0)));
    WEFT_TRY(const std::uint32_t address, parse_address(csv.cell(1)));
    out.emplace_back(node, address);
  }
  if (csv.error() != nullptr) return std::unexpected(*csv.error());
  return out;
}

Result<port::Endpoint> parse_endpoint(const Token& token, std::uint16_t port) {
  const std::string_view text = trim(token.text);
  const std::size_t colon = text.find(':');
  WEFT_TRY(const std::uint32_t address, parse_address({text.substr(0, colon), token.where}));
  if (colon == std::string_view::npos) return port::Endpoint{address, port};
  const auto given = number(text.substr(colon + 1), UINT16_MAX);
  if (!given || *given == 0) return bad(token, "an address with a port", "write \"10.0.0.1:8620\"");
  return port::Endpoint{address, static_cast<std::uint16_t>(*given)};
}

Result<PortRange> parse_ports(const Token& token) {
  const std::string_view text = trim(token.text);
  const std::size_t dash = text.find('-');
  const auto first = number(text.substr(0, dash), UINT16_MAX);
  const auto last =
      dash == std::string_view::npos ? first : number(text.substr(dash + 1), UINT16_MAX);
  if (!first || !last || *first == 0 || *last < *first)
    return bad(token, "a range of ports", "write e.g. \"49152-49215\"");
  const PortRange range{static_cast<std::uint16_t>(*first), static_cast<std::uint16_t>(*last)};
  if (range.count() > port_count_max)
    return bad(token, "a small enough range", fmt::format("give at most {} ports", port_count_max));
  return range;
}

Result<std::vector<port::Endpoint>> parse_listen(const Token& token) {
  const std::string_view text = trim(token.text);
  const std::size_t colon = text.find(':');
  WEFT_TRY(const std::uint32_t address, parse_address({text.substr(0, colon), token.where}));
  PortRange range{default_port, default_port};
  if (colon != std::string_view::npos) {
    WEFT_TRY(range, parse_ports({text.substr(colon + 1), token.where}));
  }
  std::vector<port::Endpoint> out;
  for (std::uint32_t port = range.first; port <= range.last; ++port)
    out.push_back({address, static_cast<std::uint16_t>(port)});
  return out;
}

Result<TrafficClass> parse_class(const Token& token) {
  const std::string_view text = trim(token.text);
  const std::size_t sign = text.find('=');
  const std::string_view code = sign == std::string_view::npos ? text : text.substr(sign + 1);
  const auto dscp = number(code, 63);
  const std::string_view name = sign == std::string_view::npos ? code : text.substr(0, sign);
  if (!dscp || name.empty() || find_not_text(name) != std::string_view::npos)
    return bad(token, "a traffic class", "write a DSCP of 0 to 63, or a name: \"lossy=26\"");
  return TrafficClass{std::string(name), static_cast<std::uint8_t>(*dscp)};
}

std::string to_text(const port::Endpoint& endpoint) {
  return fmt::format("{}:{}", ipv4_text(endpoint.address), endpoint.port);
}

}  // namespace weft::observe::probe
