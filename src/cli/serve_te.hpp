// Traffic engineering as `weft serve` runs it, on what the agents of switches report.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "adapt/live/system_clock.hpp"
#include "adapt/live/te_switches.hpp"
#include "base/config.hpp"
#include "operate/te/controller.hpp"
#include "os/log.hpp"

namespace weft::cli {

struct TeSettings {
  std::string flows;      // CSV
  std::string addresses;  // CSV with node,address of NICs; "": 10.0.0.1 + number
  bool split = false, only_hit = false;
  operate::te::Damping damping;
};
// YAML: te: {flows, addresses, split, only_hit, hold, hold_max, forget}. Fails with every error
// found.
Result<TeSettings> read_te_settings(const Config& config);

// By NIC. Columns node and address; "": as Fabric::address(). Fails: Errc::io, Errc::parse,
// Errc::unknown, Errc::value with NICs that have none.
Result<std::map<model::NodeId, std::uint32_t>> read_nic_addresses(const model::Fabric& fabric,
                                                                  const std::string& path);

// A thread with a te::Controller on TeSwitches. It begins when all agents have reported what is
// installed, which is adopted, or after a lease: marks of agents that come later are adjusted then.
class ServedTe {
 public:
  struct Parts {
    const model::Fabric& fabric;  // must outlive it
    TeSettings settings;
    std::function<std::vector<model::Entity>()> out_of_service;
    LogSink say;
  };
  struct Inputs {
    route::Zone zone;
    std::map<model::NodeId, std::uint32_t> addresses;
    std::vector<operate::te::Flow> flows;
  };
  // Fails: as read_flows_csv, read_nic_addresses and route::find_zone.
  static Result<Inputs> read(const model::Fabric& fabric, const TeSettings& settings);
  // Fails: as read().
  static Result<std::unique_ptr<ServedTe>> open(Parts parts);
  ServedTe(Parts parts, Inputs inputs);  // for open()
  ~ServedTe();

  // As serve::ApiOptions::TrafficEngineering has them. Any thread.
  void report(std::string_view name, std::string_view body, std::int64_t wait_ns,
              adapt::live::TeSwitches::Answer answer) {
    switches_.report(name, body, wait_ns, std::move(answer));
  }
  std::size_t switch_count() const { return switches_.count(); }
  std::string state() const;
  std::string metrics() const;
  // Reads the flows again; those of before stay where that fails. Any thread.
  void reload();
  // Answers all requests that are held. Before the API stops.
  void close() { switches_.close(); }

 private:
  struct Done {
    Timestamp wall;
    port::Instant at;
    operate::te::Event event;
    std::uint64_t applied = 0;  // TeSwitches::applied() behind it
  };
  void run(const std::stop_token& stop);
  Status start();
  void read_flows();
  void take_drains();
  void keep(operate::te::Event event);
  void tell_silent();
  Time now();
  void rest(const std::stop_token& stop);

  Parts parts_;
  adapt::live::SystemClock clock_;
  adapt::live::TeSwitches switches_;
  std::vector<operate::te::Flow> flows_;
  // Of the thread.
  port::Instant begin_;
  std::optional<operate::te::Controller> controller_;
  std::optional<port::Instant> drains_read_;
  std::vector<std::string> silent_;  // as said last
  // Of all threads.
  std::mutex wake_mutex_;  // of the next two; no other is taken while it is held
  std::condition_variable_any changed_;
  bool is_woken_ = false, is_reload_ = false;
  mutable std::mutex mutex_;  // of all that follows
  bool is_started_ = false;
  std::size_t flow_count_ = 0;
  std::string error_;
  std::deque<Done> done_;
  std::uint64_t decisions_ = 0, refused_ = 0;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace weft::cli
