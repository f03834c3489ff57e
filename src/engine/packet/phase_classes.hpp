// Which phases are alike, and what they touch. Internal to the room.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/packet/phases.hpp"
#include "engine/packet/world.hpp"

namespace weft::engine::packet {

// Phases of one class have the same messages on the same connections, wait for each other alike,
// and have others wait for the same of their events.
class PhaseClasses {
 public:
  // The world must be built. Cost: O(messages), and for each class its paths.
  PhaseClasses(const World& world, std::span<const Phase> phases);

  struct Class {
    std::uint32_t exemplar;                  // a phase
    std::vector<std::uint32_t> connections;  // each once
    // Cables (their first link / 2), then nodes (cables of the fabric + node) with memory to share.
    std::vector<std::uint32_t> resources;
  };
  std::uint32_t class_of(std::uint32_t phase) const { return class_of_[phase]; }
  const Class& of(std::uint32_t phase) const { return classes_[class_of_[phase]]; }
  // Of a message; `none` of one outside.
  std::uint32_t phase_of(std::uint32_t message) const { return phase_of_[message]; }
  const std::vector<std::uint32_t>& phase_by_message() const { return phase_of_; }
  std::uint32_t cables() const { return cables_; }
  std::uint32_t resource_count() const {
    return cables_ + static_cast<std::uint32_t>(world_.nodes.size());
  }

 private:
  std::uint64_t hash_of(const Phase& phase) const;
  bool alike(const Phase& a, const Phase& b) const;
  void add_class(std::uint32_t phase);
  void add_links(std::uint32_t connection, std::vector<std::uint32_t>& links) const;
  void add_ways(std::uint32_t from, std::uint32_t to, std::uint32_t target,
                std::vector<std::uint32_t>& links) const;

  const World& world_;
  const MessageSet& set_;
  std::span<const Phase> phases_;
  std::uint32_t cables_;
  std::vector<std::uint32_t> phase_of_, class_of_;
  std::vector<Class> classes_;
};

}  // namespace weft::engine::packet
