// What the service of one zone says now.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "app/zones/zone_list.hpp"
#include "base/result.hpp"
#include "base/timestamp.hpp"

namespace weft::app {

enum class ZoneState : std::uint8_t {
  ready,
  refused,  // it answers, but not to us
  silent,   // no service of the zone answers, or none that can take lines
};
inline constexpr auto zone_state_names =
    std::to_array<std::string_view>({"ready", "refused", "silent"});
constexpr std::span<const std::string_view> names_of(ZoneState) { return zone_state_names; }
constexpr std::string_view to_text(ZoneState state) { return zone_state_names[std::size_t(state)]; }

struct ZoneCase {
  std::string id, kind, entity, standing, opened;
  std::string stage;  // of its repair; "": none
  std::string owner;  // "": nobody
};

struct ZoneView {
  std::string name, console;
  ZoneState state = ZoneState::silent;
  std::string why;      // where it is not ready
  std::string service;  // that answered last
  Timestamp heard;      // all below is as of then; 0: never heard
  std::uint64_t cases = 0;
  std::map<std::string, std::uint64_t> kinds;  // open cases by kind of cause
  // Repairs under way, and those of them that wait for a person: to approve, to repair, to decide.
  std::uint64_t repairs = 0, waiting = 0;
  std::uint64_t parts_out = 0;
  double uplinks = 1;  // what is left of the uplinks of the rack that lost most
  bool kill_switch = false;
  std::vector<ZoneCase> latest;  // cases opened last, at most latest_cases
};
inline constexpr std::size_t latest_cases = 50;

class ZoneClient {
 public:
  ZoneClient(Zone zone, std::chrono::milliseconds timeout);
  // Asks the service that answered last, and then the others. What goes wrong is in the view, which
  // keeps what was heard before. Takes `timeout` for each url that does not answer.
  const ZoneView& ask(Timestamp now);

 private:
  Zone zone_;
  std::chrono::milliseconds timeout_;
  ZoneView view_;
  std::size_t at_work_ = 0;  // among its urls
};

}  // namespace weft::app
