// What probing found: windows added up, and written for people, programs and Prometheus.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observe/probe/prober.hpp"
#include "observe/probe/suppress.hpp"

namespace weft::observe::probe {

// Who a flow joins, by name. Names of fabric links, nodes and scopes where the fabric is known,
// else addresses.
struct FlowInfo {
  std::string src, dst;
  std::string host, rack;  // of dst; rack "": not known
  std::string scope;       // the smallest that holds both ends: "rack", "pod", ...; "": not known
  std::string traffic_class = "0";
  std::uint16_t source_port = 0;
  std::vector<std::string> forward, back;  // links crossed; empty: not known
  std::optional<Timestamp> path_t;         // when that was found out, where that is said
};

// What a window's losses are not to be blamed on the network for.
struct Suppressed {
  std::vector<HostVerdict> flows;  // verdict on each flow's target
  std::vector<std::string> hosts;  // dead ones, sorted
};
// Both of the same flows, in order.
Suppressed find_suppressed(std::span<const FlowCounts> counts, std::span<const FlowInfo> infos,
                           const SuppressOptions& options = {});

// JSON lines as model/evidence.hpp has them, with "latency", "duplicates" and "scope" besides: a
// flow with damage, or losses of known direction, gives a line for each leg, else one for the round
// trip.
// Every flow has a line. Where nothing is known of its probes (dead hosts, windows in which we were
// too busy ourselves, counts that nobody told us, nothing sent) "sent" and "lost" are 0, "unknown"
// says how many probes there were, and "why" why.
// `windows` are reports of the same flows.
std::string to_json_lines(const WindowReport& window, std::span<const FlowInfo> infos,
                          const Suppressed& suppressed, Direction direction);

class Results {
 public:
  explicit Results(std::vector<FlowInfo> infos)
      : infos_(std::move(infos)), totals_(infos_.size()) {}

  void add(const WindowReport& window);
  const std::vector<FlowInfo>& infos() const { return infos_; }
  std::span<const FlowCounts> totals() const { return totals_; }
  FlowCounts sum() const;

  // Rows by scope and class, then the targets with most losses, at most `targets_max`.
  std::string table(Direction direction, std::size_t targets_max = 20) const;
  // Counts of all windows and buckets of network time, by pair, class and scope.
  std::string to_prometheus(const ProberCounts& counts) const;

 private:
  std::vector<FlowInfo> infos_;
  std::vector<FlowCounts> totals_;
  std::uint64_t starved_windows_ = 0, windows_ = 0;
};

// For people: what happened around the probes; "" when nothing did.
std::string to_text(const ProberCounts& counts);

}  // namespace weft::observe::probe
