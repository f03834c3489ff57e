#include "operate/te/flow_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"

namespace weft::operate::te {
namespace {

using route::Zone;

constexpr std::int64_t last_port = 65'535;
constexpr std::int64_t last_priority = 1'000'000;

Result<NodeId> read_end(const Fabric& fabric, const Token& cell) {
  WEFT_TRY(const NodeId nic, fabric.find_node(cell));
  if (fabric.kind(nic) == model::NodeKind::nic) return nic;
  return fail(Errc::value, cell.where, fmt::format("{} is not a NIC", fabric.name(nic)),
              "write e.g. nic:12");
}

Result<std::int64_t> read_up_to(const Token& cell, std::int64_t last, std::int64_t fallback) {
  if (cell.text.empty()) return fallback;
  WEFT_TRY(const std::int64_t number, parse_count(cell));
  if (number <= last) return number;
  return fail(Errc::value, cell.where, fmt::format("{} is above {}", number, last),
              fmt::format("write a number from 0 to {}", last));
}

// Whether a flow's second QP is a row of its own.
enum class SecondQp : std::uint8_t { in_its_flow, is_a_row };

// Reads rows; each is given to `more`, which may read the sixth column.
template <class More>
Result<std::vector<Flow>> read_rows(const Fabric& fabric, std::string_view text,
                                    const std::string& file, SecondQp second_qp, const More& more) {
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(
      csv.header(std::array<std::string, 2>{"src", "dst"},
                 std::array<std::string, 5>{"port", "weight", "priority", "uplink", "second"}));
  std::vector<Flow> out;
  std::set<std::tuple<NodeId, NodeId, std::uint16_t>> seen;
  while (csv.next()) {
    Flow flow;
    WEFT_TRY(flow.src, read_end(fabric, csv.cell(0)));
    WEFT_TRY(flow.dst, read_end(fabric, csv.cell(1)));
    WEFT_TRY(const std::int64_t port, read_up_to(csv.cell(2), last_port, flow.port));
    flow.port = static_cast<std::uint16_t>(port);
    if (const Token cell = csv.cell(3); !cell.text.empty()) {
      WEFT_TRY(flow.weight, parse_number(cell));
      if (!(flow.weight > 0) || !std::isfinite(flow.weight))
        return fail(Errc::value, cell.where, "the weight is not above 0",
                    "write bytes or bytes per second");
    }
    WEFT_TRY(const std::int64_t priority, read_up_to(csv.cell(4), last_priority, 0));
    flow.priority = static_cast<std::uint32_t>(priority);
    WEFT_TRY(const std::int64_t second, read_up_to(csv.cell(6), last_port, 0));
    flow.second = static_cast<std::uint16_t>(second);
    const bool is_known = flow.second != 0 && second_qp == SecondQp::in_its_flow &&
                          !seen.insert({flow.src, flow.dst, flow.second}).second;
    if (is_known || !seen.insert({flow.src, flow.dst, flow.port}).second)
      return fail(Errc::value, csv.where(),
                  fmt::format("{} to {} with port {} is there twice", fabric.name(flow.src),
                              fabric.name(flow.dst), flow.port),
                  "give each QP a source port of its own");
    WEFT_TRY_STATUS(more(flow, csv.cell(5)));
    out.push_back(flow);
  }
  if (const Error* error = csv.error()) return std::unexpected(*error);
  return out;
}

// A row that is the other half of a flow is that of one flow, and has no other half itself.
Status check_halves(const Fabric& fabric, std::span<const Flow> rows, const std::string& file) {
  std::map<std::tuple<NodeId, NodeId, std::uint16_t>, bool> is_free;  // by row; without `second`
  for (const Flow& row : rows) is_free[{row.src, row.dst, row.port}] = row.second == 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].second == 0) continue;
    const auto half = is_free.find({rows[r].src, rows[r].dst, rows[r].second});
    if (half == is_free.end() || !std::exchange(half->second, false))
      return fail(Errc::value, {file, static_cast<std::uint32_t>(r + 2), 1},
                  fmt::format("{} to {} has no row with port {} that could be the other half",
                              fabric.name(rows[r].src), fabric.name(rows[r].dst), rows[r].second),
                  "name the port of a row that has no second itself and that no other row names");
  }
  return {};
}

Result<std::uint32_t> column_of(const Fabric& fabric, const Zone& zone, const Flow& flow,
                                const Token& cell) {
  if (cell.text.empty()) return Zone::none;
  WEFT_TRY(const model::LinkId link, fabric.find_link(cell));
  const std::uint32_t rack = zone.rack_of[flow.src];
  for (std::uint32_t c = 0; rack != Zone::none && c < zone.columns; ++c)
    if (zone.uplink(rack, c) == link) return c;
  return fail(Errc::infeasible, cell.where,
              fmt::format("{} is not an uplink of the rack of {}", fabric.name(link),
                          fabric.name(flow.src)),
              "name the link from the source's rack switch to a spine");
}

}  // namespace

Result<std::vector<Flow>> read_flows_csv(const Fabric& fabric, std::string_view text,
                                         const std::string& file) {
  return read_rows(fabric, text, file, SecondQp::in_its_flow,
                   [](const Flow&, const Token&) -> Status { return {}; });
}

std::string marks_csv(const Fabric& fabric, const Zone& zone, std::span<const Flow> flows,
                      const Marks& marks) {
  const bool has_second = std::ranges::any_of(flows, [](const Flow& f) { return f.second != 0; });
  std::string out =
      fmt::format("src,dst,port,weight,priority,uplink{}\n", has_second ? ",second" : "");
  for (std::size_t f = 0; f < flows.size(); ++f) {
    const Flow& flow = flows[f];
    const std::string uplink =
        marks[f] == Zone::none ? "" : fabric.name(zone.uplink(zone.rack_of[flow.src], marks[f]));
    out += fmt::format("{},{},{},{},{},{}", csv_cell(fabric.name(flow.src)),
                       csv_cell(fabric.name(flow.dst)), flow.port, flow.weight, flow.priority,
                       csv_cell(uplink));
    if (has_second) out += flow.second == 0 ? "," : fmt::format(",{}", flow.second);
    out += '\n';
  }
  return out;
}

Result<MarkedFlows> read_marks_csv(const Fabric& fabric, const Zone& zone, std::string_view text,
                                   const std::string& file) {
  MarkedFlows out;
  WEFT_TRY(out.flows, read_rows(fabric, text, file, SecondQp::is_a_row,
                                [&](const Flow& flow, const Token& cell) -> Status {
                                  WEFT_TRY(const std::uint32_t column,
                                           column_of(fabric, zone, flow, cell));
                                  out.marks.push_back(column);
                                  return {};
                                }));
  WEFT_TRY_STATUS(check_halves(fabric, out.flows, file));
  return out;
}

}  // namespace weft::operate::te
