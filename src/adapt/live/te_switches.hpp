// The switches of a network as the controller of traffic engineering has them: by what their agents
// report, and what these are told to install.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/fabric/fabric.hpp"
#include "operate/te/switch_messages.hpp"
#include "port/clock.hpp"
#include "port/link_feed.hpp"
#include "port/route_sink.hpp"
#include "route/zone.hpp"

namespace weft::adapt::live {

// Switches pull: an agent's request is held until there is something to install, a renewal, or its
// time is over. What a switch should have is kept here and what it has is known from its agent;
// orders are the difference. So apply() waits for nobody: a switch that is silent falls back on the
// routes beneath when its lease ends, and is told what it missed when its agent is back.
class TeSwitches final : public port::LinkFeed, public port::RouteSink {
 public:
  using Answer = std::function<void(Result<std::string> orders)>;
  struct Parts {
    const model::Fabric& fabric;                       // must outlive it
    route::Zone zone;                                  // its
    std::map<model::NodeId, std::uint32_t> addresses;  // of NICs, as packets have them
    std::string epoch;                                 // no other start of a service has it
    port::Clock& clock;                                // must outlive it
    std::int64_t lease_ns;                             // of the switches' marks
    // That the controller should take its turn. Any thread; it must not call back.
    std::function<void()> wake;
  };
  explicit TeSwitches(Parts parts);

  // A report of the agent on `name`, and its request for orders if it is one. `answer` is called
  // exactly once, from any thread, at once or within `wait_ns`; it must not call back. Any thread.
  void report(std::string_view name, std::string_view body, std::int64_t wait_ns, Answer answer);
  // Answers requests that were held for so long. Returns when that is next due.
  std::optional<port::Instant> answer_late();
  // Answers all, and from now on at once.
  void close();
  std::size_t count() const { return switches_.size(); }
  // Whether all agents have reported what is installed.
  bool all_known() const;
  // Parts out of service. What is returned to service drains until it has its routes.
  void set_drained(model::State drained);

  // Counts of apply(), and when all switches that were heard of within a lease had what it asked
  // for; none: not yet, or long ago.
  std::uint64_t applied() const;
  std::optional<port::Instant> settled(std::uint64_t applied) const;

  struct SwitchState {
    std::string name;
    bool is_rack = false;
    std::optional<std::int64_t> heard_ns;  // ago
    bool is_silent = true;                 // for longer than a lease: its marks hold no more
    std::size_t marks = 0, wanted = 0;
    std::vector<std::string> without_hop;  // uplinks with carrier and no known next hop
    std::string trouble;
  };
  std::vector<SwitchState> switches() const;
  std::vector<std::string> cables_down() const;

  std::vector<port::LinkNews> news() override;
  std::vector<model::CableId> routed(std::span<const model::CableId> cables) override;
  model::State drained() override;
  // Fails: Errc::unknown for a mark of no uplink of the source's rack.
  Status apply(std::span<const port::RouteMark> changes) override;
  Result<std::vector<port::RouteMark>> installed() override;
  Status renew() override;
  // Agents write the routes of a cable themselves when it has carrier again.
  Status restore(std::span<const model::CableId> /*cables*/) override { return {}; }

 private:
  using Key = std::tuple<model::NodeId, model::NodeId, std::uint16_t>;
  using Table = std::map<Key, model::LinkId>;
  struct Held {
    Answer answer;
    port::Instant until;
  };
  struct InFlight {
    std::uint64_t version = 0;
    Table table;
  };
  struct Switch {
    std::string name;
    model::NodeId node;
    bool is_rack = false;
    std::optional<port::Instant> heard;
    std::string agent;
    std::uint64_t serial = 0;
    bool is_synced = false;  // `has` is what its agent reported
    Table has, wanted;
    std::vector<operate::te::SwitchMark> strange;  // installed, and not of this fabric
    std::uint64_t version = 0, version_last = 0;   // of `has`; the last that was sent
    std::optional<InFlight> in_flight;
    std::optional<Held> held;
    std::uint64_t renewals_told = 0;
    std::set<model::LinkId> watch, watch_told;
    std::string trouble;
  };
  using Answers = std::vector<std::pair<Answer, Result<std::string>>>;

  Status take(Switch& of, const operate::te::SwitchReport& report);
  Status take_ports(Switch& of, const operate::te::SwitchReport& report);
  void take_place(Switch& of, const operate::te::SwitchReport& report);
  Result<model::LinkId> link_of(const Switch& of, const std::string& name) const;
  bool is_due(const Switch& of) const;
  operate::te::SwitchOrders orders(Switch& of);
  void answer_due(Answers& out);
  void answer(Switch& of, Answers& out);
  bool is_silent(const Switch& of) const;
  bool is_routed(model::CableId cable);
  bool has_routes(const Switch& of, model::LinkId link);
  void watch(Switch& of, model::LinkId link, bool is_wanted);
  void settle();
  operate::te::SwitchMark mark_of(const Key& key, model::LinkId uplink) const;

  Parts parts_;
  std::map<std::uint32_t, model::NodeId> nic_of_;  // by address
  mutable std::mutex mutex_;                       // of all that follows
  std::map<std::string, Switch, std::less<>> switches_;
  std::map<model::NodeId, Switch*> by_node_;
  std::set<model::LinkId> no_hop_;  // of racks: with carrier, and no known next hop
  std::set<model::LinkId> dark_;    // ends of cables that are of no use, by the link that leaves
  std::map<model::LinkId, std::vector<std::string>> missing_;  // racks, by the link that leaves
  std::vector<port::LinkNews> news_;
  model::State drained_;
  std::set<model::CableId> undrained_;  // and not yet with routes
  bool is_started_ = false, is_closed_ = false;
  std::uint64_t renewals_ = 0, applied_ = 0, settled_ = 0;
  std::deque<std::pair<std::uint64_t, port::Instant>> settled_at_;
};

}  // namespace weft::adapt::live
