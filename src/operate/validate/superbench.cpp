#include "operate/validate/superbench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "base/json_line.hpp"
#include "base/text.hpp"

namespace weft::operate::validate {
namespace {

using Lines = std::vector<std::vector<std::uint32_t>>;  // flows of a line, which run at once

// By NIC; a line for each round that has flows of this NIC.
std::map<std::size_t, Lines> lines_of(const model::Fabric& fabric, const Rounds& rounds) {
  std::map<std::size_t, Lines> out;
  std::map<std::size_t, std::uint32_t> last;  // round of a NIC's last line
  for (std::uint32_t f = 0; f < rounds.flows.size(); ++f) {
    const Flow& flow = rounds.flows[f];
    const std::size_t nic = end_of(fabric, flow.src).nic;
    if (end_of(fabric, flow.dst).nic != nic) continue;
    Lines& lines = out[nic];
    if (lines.empty() || last[nic] != flow.round) lines.emplace_back();
    last[nic] = flow.round;
    lines.back().push_back(f);
  }
  return out;
}

// In the order of their names, which SuperBench's own list of nodes has, too.
std::vector<std::string> hosts_of(const model::Fabric& fabric, const Rounds& rounds) {
  std::set<std::string> out;
  for (const Flow& flow : rounds.flows)
    for (const model::NodeId nic : {flow.src, flow.dst}) out.insert(end_of(fabric, nic).host);
  return {out.begin(), out.end()};
}

// "ib-traffic:nic2/ib_write_bw_8388608_cpu-to-cpu_3_7:host-4_host-0:0" has line 3, pair 7; behind
// it may be the number of the run.
struct Metric {
  std::size_t nic = 0, line = 0, pair = 0;
  std::string hosts;
};
constexpr std::string_view metric_begin = "ib-traffic:nic";

std::optional<Metric> read_metric(std::string_view key) {
  Metric out;
  const auto number = [](std::string_view text, std::size_t& to) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
    return error == std::errc() && end == text.data() + text.size();
  };
  key.remove_prefix(metric_begin.size());
  const std::size_t slash = key.rfind('/'), colon = key.find(':', slash + 1);
  if (slash == std::string_view::npos || colon == std::string_view::npos) return {};
  const auto words = split(key.substr(slash + 1, colon - slash - 1), '_');
  if (words.size() < 3 || !key.substr(slash + 1).starts_with("ib_write_bw_") ||
      !number(key.substr(0, key.find('/')), out.nic) || !number(words.end()[-2], out.line) ||
      !number(words.end()[-1], out.pair))
    return {};
  const std::string_view rest = key.substr(colon + 1);
  out.hosts = rest.substr(0, rest.find(':'));
  return out;
}

}  // namespace

std::size_t left_out_of_superbench(const model::Fabric& fabric, const Rounds& rounds) {
  std::size_t listed = 0;
  for (const auto& [nic, lines] : lines_of(fabric, rounds))
    for (const auto& line : lines) listed += line.size();
  return rounds.flows.size() - listed;
}

std::string superbench_script(const model::Fabric& fabric, const Rounds& rounds) {
  const std::vector<std::string> hosts = hosts_of(fabric, rounds);
  const auto number = [&](model::NodeId nic) {
    return std::ranges::lower_bound(hosts, end_of(fabric, nic).host) - hosts.begin();
  };
  std::string out = fmt::format(
      "#!/bin/sh\n"
      "# Devices are mlx5_0, mlx5_1, ... in the order of NICs; set DEV otherwise. DIR must be the\n"
      "# same on all hosts and in SuperBench's container.\n"
      "set -e\nDEV=${{DEV:-mlx5_}}\nDIR=${{DIR:-/tmp/weft-validate}}\n"
      "mkdir -p \"$DIR\"\ncd \"$DIR\"\n"
      "cat > hosts.ini << 'END'\n[all]\n{}\nEND\n",
      fmt::join(hosts, "\n"));
  std::string benchmarks;
  for (const auto& [nic, lines] : lines_of(fabric, rounds)) {
    out += fmt::format("cat > nic{}.txt << 'END'\n", nic);
    for (const auto& line : lines) {
      std::string pairs;
      for (const std::uint32_t f : line)
        pairs += fmt::format("{}{},{}", pairs.empty() ? "" : ";", number(rounds.flows[f].dst),
                             number(rounds.flows[f].src));  // server, client
      out += pairs + "\n";
    }
    out += "END\n";
    benchmarks += fmt::format(
        "    ib-traffic:nic{0}:\n"
        "      enable: true\n"
        "      modes: [{{name: mpi, proc_num: 1}}]\n"
        "      parameters: {{ib_dev: ${{DEV}}{0}, direction: cpu-to-cpu, msg_size: 8388608, "
        "config: $DIR/nic{0}.txt}}\n",
        nic);
  }
  return out + fmt::format(
                   "cat > superbench.yaml << END\nversion: v0.12\nsuperbench:\n  enable: null\n"
                   "  benchmarks:\n{}END\n"
                   "tail -n +2 hosts.ini | while read -r host; do\n"
                   "  ssh -n \"$host\" mkdir -p \"$DIR\"\n"
                   "  scp -q nic*.txt \"$host:$DIR/\"\ndone\n"
                   "sb run -f hosts.ini -c superbench.yaml --output-dir \"$DIR/out\"\n",
                   benchmarks);
}

Result<Measured> read_superbench(const model::Fabric& fabric, const Rounds& rounds,
                                 std::string_view text, const std::string& file) {
  const auto lines = lines_of(fabric, rounds);
  Measured out;
  std::uint32_t row = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++row;
    if (trim(line).empty()) continue;
    const Where where{file, row, 0};
    WEFT_TRY(const JsonLine object, JsonLine::parse(line, where));
    for (const auto& [key, shown] : object.members()) {
      if (!key.starts_with(metric_begin)) continue;
      const auto metric = read_metric(key);
      const auto of_nic = lines.find(metric ? metric->nic : SIZE_MAX);
      if (!metric || of_nic == lines.end() || metric->line >= of_nic->second.size() ||
          metric->pair >= of_nic->second[metric->line].size())
        return fail(Errc::unknown, where, fmt::format("the plan has no flow for {}", quote(key)),
                    "give the plan that the script was made of");
      const std::uint32_t f = of_nic->second[metric->line][metric->pair];
      const std::string src = end_of(fabric, rounds.flows[f].src).host,
                        dst = end_of(fabric, rounds.flows[f].dst).host;
      if (metric->hosts != fmt::format("{}_{}", dst, src))
        return fail(Errc::infeasible, where,
                    fmt::format("{} ran from {}, flow {} of the plan goes {} -> {}", quote(key),
                                quote(metric->hosts), f, src, dst),
                    "let SuperBench have the hosts in the order of hosts.ini");
      Errors errors;
      const double rate = object.number(key, std::nullopt, -1, 1e6, errors);
      if (!errors.empty()) return std::unexpected(errors.front());
      if (rate >= 0) out[f] = 8 * rate;
    }
  }
  if (!out.empty()) return out;
  return fail(Errc::value, {file, 0, 0}, "no result of ib-traffic:nic0, nic1, ...",
              "give SuperBench's results-summary.jsonl of a run of the script");
}

}  // namespace weft::operate::validate
