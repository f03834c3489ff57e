// How a service drains: the section `actuator` of its configuration.
#pragma once

#include <memory>
#include <string>
#include <variant>

#include "adapt/devices/device_file.hpp"
#include "adapt/live/command_actuator.hpp"
#include "base/config.hpp"
#include "base/result.hpp"
#include "model/fabric/fabric.hpp"
#include "port/actuator.hpp"

namespace weft::cli {

// An operator's programs, or with the key `switches` the switches' own commands.
using ActuatorSettings = std::variant<adapt::live::CommandSettings, adapt::devices::Settings>;
// Fails: every error found.
Result<ActuatorSettings> read_actuator_settings(const Config& config);

// `fabric` must outlive it. Fails: Errc::unknown for switches that the fabric does not have.
Result<std::unique_ptr<port::Actuator>> make_actuator(const model::Fabric& fabric,
                                                      const ActuatorSettings& settings);
// Fails: as LabActuator::create.
Result<std::unique_ptr<port::Actuator>> make_lab_actuator(const std::string& lab);

}  // namespace weft::cli
