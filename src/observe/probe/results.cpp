#include "observe/probe/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::observe::probe {
namespace {

std::string micros(double ns) { return ns < 0 ? "-" : fmt::format("{:.1f}", ns / 1000); }
std::string percent(std::uint64_t part, std::uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.4g}", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

struct Leg {
  std::string_view name;
  std::uint64_t sent, lost, late, damaged, duplicates;
  std::span<const std::string> path, more;
};

// A path is all of it or nothing: half of a round trip would stand for losses on the other half.
bool half_known(const FlowInfo& info) { return info.forward.empty() != info.back.empty(); }

Leg whole_leg(const FlowInfo& info, const FlowCounts& counts, Direction direction) {
  if (direction == Direction::one_way)
    return {"forward", counts.sent, counts.lost, 0, counts.damaged(), 0, info.forward, {}};
  Leg leg{"round_trip",     counts.sent,       counts.lost,  counts.late,
          counts.damaged(), counts.duplicates, info.forward, info.back};
  if (half_known(info)) leg.path = leg.more = {};
  return leg;
}

// Unknown::none where the flow's counts are evidence.
Unknown why_unknown(const WindowReport& window, const FlowCounts& counts, HostVerdict host) {
  if (counts.sent == 0) return Unknown::not_sent;
  if (window.self == WindowReport::Self::starved) return Unknown::prober_busy;
  if (counts.unknown > 0) return counts.why;
  return host == HostVerdict::dead_host ? Unknown::responder_silent : Unknown::none;
}

std::optional<JsonList> path_of(const Leg& leg) {
  if (leg.path.empty()) return std::nullopt;
  JsonList out;
  for (const auto& part : {leg.path, leg.more})
    for (const std::string& name : part) out.add(name);
  return out;
}

JsonObject head_of(const WindowReport& window, const FlowInfo& info, const Leg& leg) {
  JsonObject out;
  out.add("t", window.start)
      .add("src", info.src)
      .add("dst", info.dst)
      .add("sport", info.source_port)
      .add("class", info.traffic_class)
      .add("leg", leg.name)
      .add("path", path_of(leg));
  if (!leg.path.empty()) out.add_if("path_t", info.path_t);
  out.add("sent", leg.sent).add("lost", leg.lost).add("late", leg.late);
  out.add_if("damaged", leg.damaged).add_if("duplicates", leg.duplicates);
  return out;
}

std::string finished(JsonObject line, const FlowInfo& info, const FlowCounts& counts) {
  return line.add_if("scope", info.scope)
             .add_if("target_overflows", counts.overflows)
             .add_if("refused", counts.refused)
             .text() +
         "\n";
}

// No probe counts as sent of which nobody knows whether it was lost.
std::string unknown_line(const WindowReport& window, const FlowInfo& info, const FlowCounts& counts,
                         Direction direction, Unknown why) {
  Leg leg = whole_leg(info, counts, direction);
  leg.sent = leg.lost = leg.late = leg.damaged = 0;
  JsonObject line = head_of(window, info, leg);
  line.add("unknown", counts.sent).add("why", to_text(why));
  return finished(std::move(line), info, counts);
}

std::string json_line(const WindowReport& window, const FlowInfo& info, const FlowCounts& counts,
                      const Leg& leg) {
  JsonObject line = head_of(window, info, leg);
  const auto us = [&](double share) { return counts.rtt.quantile_ns(share) / 1000; };
  if (counts.rtt.total() > 0)
    line.add("rtt_us", JsonObject().add("p50", us(0.5)).add("p99", us(0.99)))
        .add("latency", JsonObject()
                            .add("count", counts.rtt.total())
                            .add("p90_us", us(0.9))
                            .add("p999_us", us(0.999)));
  return finished(std::move(line), info, counts);
}

std::string lines_of(const WindowReport& window, const FlowInfo& info, const FlowCounts& counts,
                     Direction direction) {
  if (direction == Direction::one_way || !counts.lost_forward ||
      (counts.lost == 0 && counts.damaged() == 0 && counts.duplicates == 0 && !half_known(info)))
    return json_line(window, info, counts, whole_leg(info, counts, direction));
  const std::uint64_t there = *counts.lost_forward;
  const std::uint64_t came = counts.sent - there - counts.damaged_forward;
  return json_line(
             window, info, counts,
             {"forward", counts.sent, there, 0, counts.damaged_forward, 0, info.forward, {}}) +
         json_line(window, info, counts,
                   {"back",
                    came,
                    counts.lost - there,
                    counts.late,
                    counts.damaged_back,
                    counts.duplicates,
                    info.back,
                    {}});
}

// Rows of one kind: by scope and class, or by target.
class Rows {
 public:
  explicit Rows(Direction direction) : direction_(direction) {}

  // One-way probes have no way back, and windows of which nothing is known.
  Table table_of(std::vector<Table::Head> first) const {
    const bool one_way = direction_ == Direction::one_way;
    for (const char* title : {"sent", "lost", "loss %", "there", one_way ? "unknown" : "back",
                              "late", "twice", "p50 us", "p90 us", "p99 us", "max us"})
      first.push_back({title});
    return Table(std::move(first));
  }
  void add(Table& table, std::vector<std::string> cells, const FlowCounts& counts) const {
    const std::uint64_t known = counts.sent - counts.unknown;
    cells.push_back(fmt::format("{}", counts.sent));
    cells.push_back(fmt::format("{}", counts.lost));
    cells.push_back(percent(counts.lost, known));
    cells.push_back(counts.lost_forward ? fmt::format("{}", *counts.lost_forward) : "?");
    cells.push_back(direction_ == Direction::one_way ? fmt::format("{}", counts.unknown)
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
    host.heard = host.heard || counts[i].heard;
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
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const FlowCounts& counts = window.flows[i];
    const Unknown why = why_unknown(window, counts, suppressed.flows[i]);
    out += why == Unknown::none ? lines_of(window, infos[i], counts, direction)
                                : unknown_line(window, infos[i], counts, direction, why);
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
  Table by_scope = rows.table_of({{"scope", Align::left}, {"class", Align::left}});
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
      rows.table_of({{"from", Align::left}, {"to", Align::left}, {"class", Align::left}});
  for (const auto& [key, counts] : worst) {
    if (by_target.row_count() == targets_max) break;
    rows.add(by_target, {std::get<0>(key), std::get<1>(key), std::get<2>(key)}, counts);
  }
  std::string out = by_scope.text() + "\n" + by_target.text();
  if (worst.size() > targets_max)
    out += fmt::format("and {} more with fewer losses\n", worst.size() - targets_max);
  if (const FlowCounts all = sum(); all.damaged() > 0)
    out += fmt::format("{} came with a wrong payload: {} there, {} back\n", all.damaged(),
                       all.damaged_forward, all.damaged_back);
  if (starved_windows_ > 0)
    out += fmt::format("{} of {} windows are not usable because this host was too busy\n",
                       starved_windows_, windows_);
  return out;
}

std::string to_text(const ProberCounts& counts) {
  const std::array<std::pair<std::string_view, std::uint64_t>, 12> list{{
      {"truncated", counts.truncated},
      {"oversized", counts.oversized},
      {"foreign", counts.foreign},
      {"damaged", counts.damaged},
      {"forged", counts.forged},
      {"no answers", counts.requests},
      {"answers to probes not sent yet", counts.future},
      {"answers after the end", counts.stale},
      {"answers that match no probe", counts.misplaced},
      {"with impossible times", counts.implausible},
      {"slots skipped", counts.skipped},
      {"dropped by our own full queues", counts.dropped},
  }};
  std::string out;
  for (const auto& [what, count] : list)
    if (count > 0) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, what);
  return out;
}

}  // namespace weft::observe::probe
