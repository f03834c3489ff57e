#include "observe/probe/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/json_line.hpp"
#include "base/text.hpp"

namespace weft::observe::probe {
namespace {

std::string micros(double ns) { return ns < 0 ? "-" : fmt::format("{:.1f}", ns / 1000); }
std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.4g}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string json_list(std::span<const std::string> names, std::span<const std::string> more) {
  if (names.empty()) return "null";
  std::string out = "[";
  for (const auto& part : {names, more})
    for (const std::string& name : part) out += json_string(name) + ",";
  out.back() = ']';
  return out;
}

struct Leg {
  std::string_view name;
  std::uint64_t sent, lost, late;
  std::span<const std::string> path, more;
};

std::string json_line(const WindowReport& window, const FlowInfo& info, const FlowCounts& counts,
                      const Leg& leg) {
  std::string out = fmt::format(
      R"({{"t":"{}","src":{},"dst":{},"sport":{},"class":{},"leg":"{}","path":{},"sent":{},)"
      R"("lost":{},"late":{})",
      weft::to_text(window.start), json_string(info.src), json_string(info.dst), info.source_port,
      json_string(info.traffic_class), leg.name, json_list(leg.path, leg.more), leg.sent, leg.lost,
      leg.late);
  if (counts.rtt.total() > 0)
    out += fmt::format(
        R"(,"rtt_us":{{"p50":{},"p99":{}}},"latency":{{"count":{},"p90_us":{},"p999_us":{}}})",
        counts.rtt.quantile_ns(0.5) / 1000, counts.rtt.quantile_ns(0.99) / 1000, counts.rtt.total(),
        counts.rtt.quantile_ns(0.9) / 1000, counts.rtt.quantile_ns(0.999) / 1000);
  if (!info.scope.empty()) out += fmt::format(R"(,"scope":{})", json_string(info.scope));
  if (counts.duplicates > 0) out += fmt::format(R"(,"duplicates":{})", counts.duplicates);
  if (counts.overflows > 0) out += fmt::format(R"(,"target_overflows":{})", counts.overflows);
  return out + "}\n";
}

std::string lines_of(const WindowReport& window, const FlowInfo& info, const FlowCounts& counts,
                     Direction direction) {
  const std::uint64_t known = counts.sent - counts.unknown;
  if (direction == Direction::one_way)
    return json_line(window, info, counts, {"forward", known, counts.lost, 0, info.forward, {}});
  // A path is all of it or nothing: half of a round trip would stand for losses on the other half.
  const bool half_known = info.forward.empty() != info.back.empty();
  if (!counts.lost_forward || (counts.lost == 0 && !half_known)) {
    Leg leg{"round_trip", counts.sent, counts.lost, counts.late, info.forward, info.back};
    if (half_known) leg.path = leg.more = {};
    return json_line(window, info, counts, leg);
  }
  const std::uint64_t there = *counts.lost_forward;
  return json_line(window, info, counts, {"forward", counts.sent, there, 0, info.forward, {}}) +
         json_line(window, info, counts,
                   {"back", counts.sent - there, counts.lost - there, counts.late, info.back, {}});
}

// Rows of one kind: by scope and class, or by target.
class Rows {
 public:
  explicit Rows(Direction direction) : direction_(direction) {}

  static Table table_of(std::vector<Table::Head> first) {
    for (const char* title : {"sent", "lost", "loss %", "there", "back", "late", "twice", "p50 us",
                              "p90 us", "p99 us", "max us"})
      first.push_back({title});
    return Table(std::move(first));
  }
  void add(Table& table, std::vector<std::string> cells, const FlowCounts& counts) const {
    const std::uint64_t known = counts.sent - counts.unknown;
    cells.push_back(fmt::format("{}", counts.sent));
    cells.push_back(fmt::format("{}", counts.lost));
    cells.push_back(percent(counts.lost, known));
    cells.push_back(counts.lost_forward ? fmt::format("{}", *counts.lost_forward) : "?");
    cells.push_back(direction_ == Direction::one_way ? "-"
                    : counts.lost_forward ? fmt::format("{}", counts.lost - *counts.lost_forward)
                                          : "?");
    cells.push_back(fmt::format("{}", counts.late));
    cells.push_back(fmt::format("{}", counts.duplicates));
    for (const double share : {0.5, 0.9, 0.99, 1.0})
      cells.push_back(micros(counts.rtt.quantile_ns(share)));
    table.add(std::move(cells));
  }

 private:
  Direction direction_;
};

// Sums of the flows by what `key` makes of them, in its order.
template <class Key>
auto sums_by(std::span<const FlowCounts> counts, std::span<const FlowInfo> infos, Key key) {
  std::map<decltype(key(infos[0])), FlowCounts> sums;
  for (std::size_t i = 0; i < counts.size(); ++i) sums[key(infos[i])].merge(counts[i]);
  return sums;
}

}  // namespace

Suppressed find_suppressed(std::span<const FlowCounts> counts, std::span<const FlowInfo> infos,
                           const SuppressOptions& options) {
  std::map<std::string, HostCounts> hosts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    HostCounts& host = hosts[infos[i].host];
    host.host = infos[i].host;
    host.rack = infos[i].rack;
    host.sent += counts[i].sent;
    host.lost += counts[i].lost + counts[i].unknown;
  }
  std::vector<HostCounts> list;
  for (const auto& [name, host] : hosts) list.push_back(host);
  const std::vector<HostVerdict> verdicts = judge_hosts(list, options);
  std::map<std::string, HostVerdict> by_name;
  Suppressed out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    by_name[list[i].host] = verdicts[i];
    if (verdicts[i] == HostVerdict::dead_host) out.hosts.push_back(list[i].host);
  }
  for (const FlowInfo& info : infos) out.flows.push_back(by_name[info.host]);
  return out;
}

std::string to_json_lines(const WindowReport& window, std::span<const FlowInfo> infos,
                          const Suppressed& suppressed, Direction direction) {
  std::string out;
  if (window.self == WindowReport::Self::starved) return out;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const FlowCounts& counts = window.flows[i];
    if (counts.sent == counts.unknown || suppressed.flows[i] == HostVerdict::dead_host) continue;
    out += lines_of(window, infos[i], counts, direction);
  }
  return out;
}

void Results::add(const WindowReport& window) {
  ++windows_;
  if (window.self == WindowReport::Self::starved) ++starved_windows_;
  for (std::size_t i = 0; i < totals_.size(); ++i) totals_[i].merge(window.flows[i]);
}

FlowCounts Results::sum() const {
  FlowCounts out;
  for (const FlowCounts& counts : totals_) out.merge(counts);
  return out;
}

std::string Results::table(Direction direction, std::size_t targets_max) const {
  using Align = Table::Align;
  const Rows rows(direction);
  Table by_scope = Rows::table_of({{"scope", Align::left}, {"class", Align::left}});
  const auto scopes = sums_by(totals_, infos_, [](const FlowInfo& info) {
    return std::pair(info.scope.empty() ? std::string("all") : info.scope, info.traffic_class);
  });
  for (const auto& [key, counts] : scopes) rows.add(by_scope, {key.first, key.second}, counts);

  const auto targets = sums_by(totals_, infos_, [](const FlowInfo& info) {
    return std::tuple(info.src, info.dst, info.traffic_class);
  });
  std::vector<std::pair<std::tuple<std::string, std::string, std::string>, FlowCounts>> worst(
      targets.begin(), targets.end());
  std::ranges::stable_sort(worst, std::ranges::greater{},
                           [](const auto& row) { return row.second.lost + row.second.unknown; });
  Table by_target =
      Rows::table_of({{"from", Align::left}, {"to", Align::left}, {"class", Align::left}});
  for (const auto& [key, counts] : worst) {
    if (by_target.row_count() == targets_max) break;
    rows.add(by_target, {std::get<0>(key), std::get<1>(key), std::get<2>(key)}, counts);
  }
  std::string out = by_scope.text() + "\n" + by_target.text();
  if (worst.size() > targets_max)
    out += fmt::format("and {} more with fewer losses\n", worst.size() - targets_max);
  if (starved_windows_ > 0)
    out += fmt::format("{} of {} windows tell nothing, as this host was too busy itself\n",
                       starved_windows_, windows_);
  return out;
}

std::string to_text(const ProberCounts& counts) {
  const std::array<std::pair<std::string_view, std::uint64_t>, 11> list{{
      {"truncated", counts.truncated},
      {"oversized", counts.oversized},
      {"foreign", counts.foreign},
      {"forged", counts.forged},
      {"no answers", counts.requests},
      {"answers to what was not sent yet", counts.future},
      {"answers after the end", counts.stale},
      {"answers that fit no probe", counts.misplaced},
      {"with impossible times", counts.implausible},
      {"slots skipped", counts.skipped},
      {"refused by our own full queues", counts.dropped},
  }};
  std::string out;
  for (const auto& [what, count] : list)
    if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
  return out;
}

}  // namespace weft::observe::probe
