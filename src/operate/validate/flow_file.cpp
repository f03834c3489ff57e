#include "operate/validate/flow_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/csv.hpp"
#include "base/text.hpp"

namespace weft::operate::validate {
namespace {

using model::Fabric;
using model::LinkId;
using model::NodeId;

// Links that follow one another from a NIC to a NIC.
Status read_path(const Fabric& fabric, const Token& cell, Rounds& out, Flow& flow) {
  flow.path_first = static_cast<std::uint32_t>(out.links.size());
  for (const std::string_view name : split(cell.text, ' ')) {
    WEFT_TRY(const LinkId link, fabric.find_link({std::string(name), cell.where}));
    const NodeId at = flow.path_size == 0 ? flow.src : fabric.to(out.links.back());
    if (fabric.from(link) != at)
      return fail(Errc::infeasible, cell.where,
                  fmt::format("{} does not begin at {}", fabric.name(link), fabric.name(at)),
                  "list the links from the source to the destination");
    out.links.push_back(link);
    ++flow.path_size;
  }
  if (flow.path_size == 0 || fabric.to(out.links.back()) != flow.dst)
    return fail(Errc::infeasible, cell.where,
                fmt::format("the path does not end at {}", fabric.name(flow.dst)),
                "list the links from the source to the destination");
  return {};
}

Result<NodeId> read_nic(const Fabric& fabric, const Token& cell) {
  WEFT_TRY(const NodeId nic, fabric.find_node(cell));
  if (fabric.kind(nic) == model::NodeKind::nic && fabric.host_of(nic).valid()) return nic;
  return fail(Errc::value, cell.where, fmt::format("{} is not a NIC", fabric.name(nic)),
              "write e.g. nic:12");
}

}  // namespace

End end_of(const Fabric& fabric, NodeId nic) {
  const NodeId host = fabric.host_of(nic);
  std::string name = fabric.name(host);
  std::ranges::replace(name, ':', '-');
  const auto nics = fabric.nics_of(host);
  return {std::move(name), static_cast<std::size_t>(std::ranges::find(nics, nic) - nics.begin())};
}

std::string to_csv(const Fabric& fabric, const Rounds& rounds) {
  std::string out = "flow,round,src,dst,gbps,port,path\n";
  for (std::size_t f = 0; f < rounds.flows.size(); ++f) {
    const Flow& flow = rounds.flows[f];
    std::string path;
    for (const LinkId link : rounds.path(flow))
      path += (path.empty() ? "" : " ") + fabric.name(link);
    out +=
        fmt::format("{},{},{},{},{:g},{},{}\n", f, flow.round, fabric.name(flow.src),
                    fabric.name(flow.dst), planned_gbps(fabric, rounds.path(flow)),
                    flow.source_port == 0 ? "" : std::to_string(flow.source_port), csv_cell(path));
  }
  return out;
}

Result<Rounds> read_csv(const Fabric& fabric, std::string_view text, const std::string& file) {
  const std::array<std::string, 5> required{"flow", "round", "src", "dst", "path"};
  const std::array<std::string, 2> optional{"gbps", "port"};
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(required, optional));
  Rounds out;
  while (csv.next()) {
    WEFT_TRY(const std::int64_t number, parse_count(csv.cell(0)));
    WEFT_TRY(const std::int64_t round, parse_count(csv.cell(1)));
    if (number != static_cast<std::int64_t>(out.flows.size()) || round > 1'000'000)
      return fail(Errc::value, csv.cell(0).where, "flows are not numbered 0, 1, ... in order",
                  "use the file as weft validate plan wrote it");
    Flow flow{.round = static_cast<std::uint32_t>(round), .src = {}, .dst = {}};
    WEFT_TRY(flow.src, read_nic(fabric, csv.cell(2)));
    WEFT_TRY(flow.dst, read_nic(fabric, csv.cell(3)));
    WEFT_TRY_STATUS(read_path(fabric, csv.cell(4), out, flow));
    out.count = std::max(out.count, flow.round + 1);
    out.flows.push_back(flow);
  }
  if (const Error* error = csv.error()) return std::unexpected(*error);
  return out;
}

std::string script(const Fabric& fabric, const Rounds& rounds, Tool tool) {
  std::string out =
      "#!/bin/sh\n# Devices are mlx5_0, mlx5_1, ... in the order of NICs; set DEV otherwise.\n"
      "DEV=${DEV:-mlx5_}\nmkdir -p out\n";
  for (std::size_t f = 0; f < rounds.flows.size(); ++f) {
    const Flow& flow = rounds.flows[f];
    if (f == 0 || flow.round != rounds.flows[f - 1].round)
      out += fmt::format("{}# round {}\n", f == 0 ? "" : "wait\n", flow.round);
    const End src = end_of(fabric, flow.src), dst = end_of(fabric, flow.dst);
    if (tool == Tool::nccl_tests) {
      const auto side = [&](const End& end) {
        return fmt::format("-np 1 -H {} -x NCCL_IB_HCA==${{DEV}}{} sendrecv_perf -b 1G -e 1G -g 1",
                           end.host, end.nic);
      };
      out += fmt::format("mpirun {} : {} > out/{}.txt &\n", side(src), side(dst), f);
      continue;
    }
    // RoCE makes UDP source ports from 0xC000 on of the lower 14 bits of the label.
    const std::string port =
        flow.source_port == 0 ? "" : fmt::format(" --flow_label={}", flow.source_port & 0x3FFF);
    out += fmt::format(
        "(ssh {1} ib_write_bw -d ${{DEV}}{3} -p {4} -D 10 --report_gbits > /dev/null & sleep 1; "
        "ssh {0} ib_write_bw -d ${{DEV}}{2} -p {4} -D 10 --report_gbits{5} {1} > out/{6}.txt; "
        "wait) "
        "&\n",
        src.host, dst.host, src.nic, dst.nic, 18515 + dst.nic, port, f);
  }
  return out + "wait\n";
}

Result<Measured> read_measured_csv(std::string_view text, const std::string& file) {
  const std::array<std::string, 2> required{"flow", "gbps"};
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(required, {}));
  Measured out;
  while (csv.next()) {
    WEFT_TRY(const std::int64_t flow, parse_count(csv.cell(0)));
    WEFT_TRY(const double gbps, parse_number(csv.cell(1)));
    if (gbps < 0 || flow > UINT32_MAX)
      return fail(Errc::value, csv.where(), "a rate below 0, or a flow that no plan has",
                  "write the number of a flow and its rate in Gbps");
    if (!out.emplace(static_cast<std::uint32_t>(flow), gbps).second)
      return fail(Errc::value, csv.where(), fmt::format("flow {} is there twice", flow),
                  "keep one result");
  }
  if (const Error* error = csv.error()) return std::unexpected(*error);
  return out;
}

// perftest: a line of five numbers under "#bytes", of which the fourth is the mean in Gbps.
// nccl-tests: lines of a size, of which the last numbers are those in place; busbw in GB/s.
Result<double> read_measured(std::string_view text, const std::string& file) {
  double found = -1;
  bool is_perftest = false, is_gbps = true;
  for (const std::string_view line : split(text, '\n')) {
    if (line.find("#bytes") != std::string_view::npos) {
      is_perftest = true;
      is_gbps = line.find("[Gb/sec]") != std::string_view::npos;
    }
    std::vector<std::string_view> words;
    for (const std::string_view word : split(trim(line), ' '))
      if (!word.empty()) words.push_back(word);
    if (words.size() < 5 || words[0].find_first_not_of("0123456789") != std::string_view::npos)
      continue;
    const std::size_t at = is_perftest ? 3 : words.size() >= 8 ? 7 : words.size();
    if (at >= words.size()) continue;
    double value = 0;
    const auto [end, error] =
        std::from_chars(words[at].data(), words[at].data() + words[at].size(), value);
    if (error == std::errc() && end == words[at].data() + words[at].size() &&
        std::isfinite(value) && value >= 0)
      found = is_perftest ? value : 8 * value;
  }
  if (found >= 0 && !is_gbps)
    return fail(Errc::value, {file, 0, 0}, "ib_write_bw printed another unit than Gb/sec",
                "run it with --report_gbits");
  if (found >= 0) return found;
  return fail(Errc::parse, {file, 0, 0}, "neither ib_write_bw nor sendrecv_perf printed a result",
              "look at the file for the tool's error, and run that flow again");
}

}  // namespace weft::operate::validate
