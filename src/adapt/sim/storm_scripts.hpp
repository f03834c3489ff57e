// What each type of fault makes the sources say. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "adapt/sim/storm_plan.hpp"
#include "adapt/sim/storm_voice.hpp"

namespace weft::adapt::sim {

// Reasons and sources of the constants: docs/storm.md, "Faults".
class StormScripts {
 public:
  StormScripts(const StormContext& context, const std::vector<StormFault>& faults,
               StormVoice& voice);

  // Says all that fault `index` makes known.
  void tell(std::size_t index);

  // A cable is without carrier in [from, to): both ends say so, as far as they can.
  struct Outage {
    std::int64_t from, to;
    // What of the session over it is told: nothing, its end, its return, both.
    enum class Depth : std::uint8_t { link, lost, back, sessions } depth = Depth::sessions;
  };
  void tell_outage(model::CableId cable, const Outage& outage);

 private:
  void tell_flap(const StormFault& fault);
  void tell_optic(const StormFault& fault);
  void tell_fading(const StormFault& fault, model::LinkId in, std::int64_t until);
  void tell_cable(const StormFault& fault);
  void tell_black_hole(const StormFault& fault);
  void tell_grey(const StormFault& fault);
  void tell_card(const StormFault& fault);
  void tell_device(const StormFault& fault);
  void tell_hosts_behind(const StormFault& fault);
  void tell_control_plane(const StormFault& fault);
  void tell_power(const StormFault& fault);
  void tell_dark_racks(const StormFault& fault);
  void tell_nic(const StormFault& fault);
  void tell_host(const StormFault& fault);
  void tell_push(const StormFault& fault);
  void tell_congestion(const StormFault& fault);

  void tell_end(model::LinkId out, const Outage& outage);
  void tell_switch_end(model::LinkId out, const Outage& outage);
  void tell_nic_end(model::LinkId out, const Outage& outage);
  void tell_all_down(const StormFault& fault, double spread_s);
  void tell_unreachable(model::NodeId device, std::int64_t from, std::int64_t to);
  void tell_host_gone(model::NodeId host, std::int64_t from, std::int64_t to);
  void tell_boot(model::NodeId node, std::int64_t t);
  void tell_session_end(model::LinkId out, std::int64_t t, observe::telemetry::Reason reason);
  void tell_session_return(model::LinkId out, std::int64_t t);

  bool talks(model::NodeId node) const;
  // Whether another fault has it at `t`.
  bool is_held(model::CableId cable, std::int64_t t) const;
  // Until when a cable stays down that several faults hold; 0: another one began it.
  std::int64_t up_again(model::CableId cable, std::int64_t to) const;
  std::int64_t ns_between(double low_s, double high_s) {
    return static_cast<std::int64_t>(voice_.between(low_s, high_s) * 1e9);
  }
  double log_between(double low, double high);
  model::LinkId either_way(model::CableId cable);

  const StormContext& context_;
  const model::Fabric& fabric_;
  const std::vector<StormFault>& faults_;
  StormVoice& voice_;
  std::vector<std::vector<std::uint32_t>> of_circuit_;  // faults by cable
  std::uint32_t current_ = 0;                           // the fault that is told
  std::vector<model::NodeId> mute_;  // who cannot speak while it lasts, ascending
};

}  // namespace weft::adapt::sim
