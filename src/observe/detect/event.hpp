// What a detector sees, and how the parts lie in each other that events speak of.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <string_view>

#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/events/event_kind.hpp"
#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "port/sample.hpp"

namespace weft::observe::detect {

// A kind of event or a metric, in one numbering.
enum class Signal : std::uint8_t {};
inline constexpr std::size_t signal_count = model::event_kind_count + port::metric_count;
using Signals = std::bitset<signal_count>;
using Kinds = std::bitset<model::event_kind_count>;
using Sources = std::bitset<model::source_count>;

constexpr Signal signal(model::EventKind kind) { return Signal(static_cast<std::uint8_t>(kind)); }
constexpr Signal signal(port::Metric metric) {
  return Signal(
      static_cast<std::uint8_t>(model::event_kind_count + static_cast<std::size_t>(metric)));
}
constexpr std::size_t index(Signal signal) { return static_cast<std::size_t>(signal); }
constexpr bool is_metric(Signal signal) { return index(signal) >= model::event_kind_count; }

struct Event {
  Timestamp t;
  model::Entity entity;
  Signal signal{};
  model::Source source = model::Source::agent;
  std::uint64_t series = 0;  // of a metric: which of several of the entity (sensor, lane, class)
  double value = 1;
  std::uint64_t serial = 0;  // of a record: its number with whoever keeps it, used once
};
Event event_of(const model::Record& record, std::uint64_t serial);
// The entity is what device and component of the sample mean.
Event event_of(const port::Sample& sample, const model::Entity& entity);

// What a rule looks at one by one.
enum class Part : std::uint8_t { port, card, nic, device, host };
inline constexpr std::array<std::string_view, 5> part_names{"port", "card", "nic", "device",
                                                            "host"};
constexpr std::string_view to_text(Part part) { return part_names[static_cast<std::size_t>(part)]; }

class Context {
 public:
  // Switches with more wired ports than `ports_per_card` have line cards; the fabric must outlive
  // this.
  Context(const model::Fabric& fabric, std::uint32_t ports_per_card);

  const model::Fabric& fabric() const { return *fabric_; }
  // The part that holds the entity, or none. A link counts for its sender, a NIC with one cable
  // for its port, what is in a host for the host. Cost: O(1).
  model::Entity part_of(const model::Entity& entity, Part part) const;
  // Ports to the network of a device or card, NICs of a host; 1 for anything smaller.
  std::uint32_t ports(const model::Entity& part) const;

 private:
  model::NodeId node_of(const model::Entity& entity) const;
  model::Entity port_part(const model::Entity& entity) const;
  model::Entity card_part(const model::Entity& entity) const;

  const model::Fabric* fabric_;
  std::uint32_t ports_per_card_;
  Column<model::NodeId, std::uint32_t> wired_ports_;
};

}  // namespace weft::observe::detect
