#include "cli/serve_actuator.hpp"

#include <utility>

#include "adapt/devices/actuator.hpp"
#include "adapt/lab/actuator.hpp"

namespace weft::cli {
namespace {

namespace devices = adapt::devices;
namespace live = adapt::live;

template <class T>
Result<std::unique_ptr<port::Actuator>> owned(Result<T> made) {
  if (!made) return std::unexpected(std::move(made).error());
  return std::make_unique<T>(*std::move(made));
}

}  // namespace

Result<ActuatorSettings> read_actuator_settings(const Config& config) {
  if (config.find("switches") != nullptr) return devices::read_settings(config);
  return live::read_command_settings(config);
}

Result<std::unique_ptr<port::Actuator>> make_actuator(const model::Fabric& fabric,
                                                      const ActuatorSettings& settings) {
  if (const auto* switches = std::get_if<devices::Settings>(&settings))
    return owned(devices::DeviceActuator::create(fabric, *switches));
  return std::make_unique<live::CommandActuator>(fabric, std::get<live::CommandSettings>(settings),
                                                 live::CommandActuator::Log{});
}

Result<std::unique_ptr<port::Actuator>> make_lab_actuator(const std::string& lab) {
  return owned(adapt::lab::LabActuator::create(lab));
}

}  // namespace weft::cli
