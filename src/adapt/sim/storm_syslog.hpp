// The syslog lines of a storm as devices write them.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "adapt/sim/storm.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/telemetry/catalogue.hpp"

namespace weft::adapt::sim {

// Writes in the dialect of each device by the built-in catalogue. `fabric` must outlive it.
class StormScribe {
 public:
  StormScribe(const model::Fabric& fabric, const StormOptions& options);

  // Whether a device can say it: the catalogue has words for it.
  bool can_say(model::NodeId device, model::EventKind kind,
               observe::telemetry::Reason reason) const;
  // The message of a line whose source is syslog and which can be said, as it is sent.
  std::string message(const StormLine& line) const;
  // The same as a line of a capture: "@NS FROM MESSAGE".
  std::string captured(const StormLine& line) const;
  // CSV of the addresses that the messages use: address,device,interface.
  std::string inventory() const;

 private:
  using Key = std::pair<model::EventKind, observe::telemetry::Reason>;
  std::span<const observe::telemetry::MessageRow* const> sayings(
      observe::telemetry::Dialect dialect, const Key& key) const;
  std::string fill(const observe::telemetry::MessageRow& row, const StormLine& line) const;
  std::string slot(observe::telemetry::Slot slot, std::string_view before,
                   const StormLine& line) const;

  const model::Fabric& fabric_;
  observe::telemetry::Catalogue catalogue_;
  std::vector<observe::telemetry::Dialect> dialect_of_role_;
  std::array<std::map<Key, std::vector<const observe::telemetry::MessageRow*>>,
             observe::telemetry::dialect_names.size()>
      sayings_;
};

}  // namespace weft::adapt::sim
