// Switches of several makers, taken out of service and back by their own commands.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "adapt/devices/device_file.hpp"
#include "adapt/devices/session.hpp"
#include "base/result.hpp"
#include "model/events/entity.hpp"
#include "model/fabric/fabric.hpp"
#include "port/actuator.hpp"

namespace weft::adapt::devices {

// What one switch is sent for a part, and what it is asked about it.
struct Plan {
  const Device* device = nullptr;
  std::string interface_name;   // "": the whole switch
  std::vector<Commands> steps;  // with Settings::settle between them
  Commands state;
};
// One line: "rtsw:1 (sonic, 10.0.0.1): sudo -n TSA"; steps and commands separated by "; ".
std::string to_text(const Plan& plan);

class DeviceActuator : public port::Actuator {
 public:
  // `fabric` must outlive it. Fails: Errc::unknown for devices that are no switches of the fabric.
  static Result<DeviceActuator> create(const model::Fabric& fabric, Settings settings,
                                       OpenSession open = open_session);

  // A switch, or both ends of a cable. Fails: Errc::unknown for what the fabric does not know,
  // Errc::unsupported for parts of switches that are not listed, or whose dialect has no commands
  // for it, Errc::value for names that are not sent.
  Result<std::vector<Plan>> plan(std::string_view entity, port::ActionKind kind) const;

  // Reads first, and sends only to what is not as it should be yet. A cable is shut at both ends,
  // one after the other: the second end must lose its signal by the first, or the cabling is not as
  // the fabric has it. An end that does not answer may stay open if the other is shut. Whatever a
  // switch refuses is taken back. Fails: as plan(); Errc::infeasible in a dry run, with what would
  // be sent; Errc::unsupported where a switch refuses, and nothing has changed; Errc::io where
  // nobody knows, or something could not be taken back.
  Status act(const port::Action& action) override;
  // Of a switch: as its mode, or its sessions, say. Of a cable: drained where an end is shut and no
  // end has a signal, in service where both are open (it may be broken), draining where an end is
  // shut and the other still has a signal, else unknown. Fails: Errc::io, and as plan().
  Result<port::Service> state(std::string_view entity) override;
  // Errc::unsupported: switches send no test traffic.
  Result<port::Check> check(std::string_view entity) override;

 private:
  DeviceActuator(const model::Fabric& fabric, Settings settings, OpenSession open);
  Result<Plan> plan_of(model::NodeId node, std::string_view interface_name,
                       port::ActionKind kind) const;
  Result<PortState> read_port(const Plan& end);
  Result<port::Service> read_switch(const Plan& plan);
  Status send(const Plan& plan, const Commands& step);
  Status act_on_switch(const Plan& plan, const Plan& back, port::ActionKind kind);
  Status act_on_cable(const std::vector<Plan>& ends, const std::vector<Plan>& back,
                      port::ActionKind kind);
  Status await_no_signal(const Plan& end);

  const model::Fabric& fabric_;
  Settings settings_;
  OpenSession open_;
  std::map<model::NodeId, const Device*> by_node_;
};

}  // namespace weft::adapt::devices
