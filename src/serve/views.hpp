// What the service knows of the network at this moment, as the console and metrics show it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/timestamp.hpp"
#include "model/events/evidence.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/telemetry/catalogue.hpp"
#include "observe/telemetry/inventory.hpp"
#include "operate/health/book.hpp"
#include "operate/repair/repair.hpp"
#include "port/store.hpp"
#include "serve/past.hpp"
#include "serve/service.hpp"

namespace weft::serve {

// Switches and the cables between them, by pair of roles. The same for the life of a fabric.
// Cost: O(links).
std::string fabric_view(const model::Fabric& fabric);

// Uplinks of a first switch, rack, or rack in a plane: what is left now, and what if all suspected
// parts went too.
struct CapacityRow {
  std::string name;
  std::uint32_t cables = 0, live = 0;
  double share = 1, share_without_suspects = 1;
};
struct CapacityView {
  Timestamp now;
  bool kill_switch = false;
  double rack_share = 0, plane_share = 0, demand_share = 0;  // that the policy keeps in reserve
  std::uint32_t out_max = 0;
  // Parts; of those that are out, `moving` are those whose drain or return is under way.
  std::vector<std::string> out, moving, suspected;
  std::vector<operate::repair::Freeze> frozen;  // not over yet
  std::vector<CapacityRow> groups;              // that lack something, least first
  std::size_t groups_whole = 0;                 // the others
};
// Cost: O(links).
CapacityView capacity_view(const operate::repair::Repair& repair, Timestamp now);
std::string to_json(const CapacityView& view);

// What the log says of the network at an instant: the same whether it is read then or later.
struct NetworkView {
  // Ordered out by weft and not ordered back, or taken out by others who said so.
  struct Out {
    std::string part, by;  // "weft", "others"
    std::optional<Timestamp> since;
  };
  struct Open {
    std::string id, kind, entity, standing;
  };
  Timestamp at;
  std::vector<Out> out;
  std::vector<Open> cases;            // that are not over
  operate::health::Conditions links;  // that are not well, by what feeds said
};
// `past`: of an instant that is over.
std::string to_json(const model::Fabric& fabric, const NetworkView& view, const PastFacts* past);

// Probes of a few seconds. One that is lost counts for all links of its path.
struct ProbeCount {
  std::uint64_t sent = 0, lost = 0;
  double p99_us = -1;  // the largest p99 of a flow; -1: not measured
  void add(std::uint64_t more, std::uint64_t of_them_lost, double p99);
};
struct ProbeView {
  struct Link {
    std::string name;
    ProbeCount count;
  };
  Timestamp from, to;  // windows that began then
  std::size_t rows = 0, rows_without_path = 0;
  std::size_t links_all = 0, links_probed = 0;  // of the network
  std::vector<std::string> racks;
  std::map<std::array<std::uint32_t, 2>, ProbeCount> pairs;  // rack from, rack to, in `racks`
  std::vector<Link> links;                                   // most losses first
};
std::string to_json(const ProbeView& view);

// Who spoke when, and what was not understood.
class FeedLog {
 public:
  explicit FeedLog(const model::Fabric& fabric) : fabric_(fabric) {}
  void add(const model::RecordSet& records);
  void add_prober(model::NodeId node, Timestamp received);
  // A row that is stamped later than it came.
  void add_ignored(const model::Evidence& row, Timestamp received);
  std::string json() const;

 private:
  struct Speaker {
    std::uint64_t lines = 0;
    Timestamp last;
  };
  struct Unknown {
    std::string device, text;  // the text that came last
    Speaker count;
  };
  void add_unknown(std::string device, std::string_view text, Timestamp received);

  const model::Fabric& fabric_;
  std::map<std::array<std::uint32_t, 2>, Speaker> speakers_;  // node, source
  std::map<std::string, Unknown, std::less<>> unknown_;       // by text without its numbers
  std::uint64_t unknown_left_out_ = 0;
};

// Loss, latency and state of the network, cases by kind, capacity: Prometheus text. Links are
// listed where they lose, groups and parts where something is missing.
std::string network_metrics(const ProbeView& probes, const CapacityView& capacity,
                            const std::map<std::string, std::uint64_t>& cases_by_kind);

// The records with these ids, with the line that was said, as {"items": [...], "missing": [ids]}.
// Reads events from number `event` on, at most 500,000. Any thread. Fails: Errc::io.
struct RecordReaders {
  const model::Fabric& fabric;
  const observe::telemetry::Inventory& inventory;
  const observe::telemetry::Catalogue& catalogue;
};
Result<std::string> records_view(const RecordReaders& readers, port::Store& store,
                                 const RecordWish& wish, std::uint64_t event);

}  // namespace weft::serve
