// Makes parts of a world like new again. Internal to the room.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/packet/phase_classes.hpp"
#include "engine/packet/world.hpp"

namespace weft::engine::packet {

// What connections and links are before anything was sent. Those that a phase used are set back to
// it; nothing may be under way on them any more, or everything is given up.
class Pristine {
 public:
  // Of a world that has just been built.
  explicit Pristine(const World& world);
  // Cost: O(connections and resources).
  void restore(World& world, const PhaseClasses::Class& used, std::uint32_t cables) const;
  void restore_messages(World& world, const Phase& phase) const;

 private:
  void restore_connection(World& world, std::uint32_t connection) const;
  void restore_node(World& world, NodeBuffer& node) const;

  std::vector<Sender> senders_;
  std::vector<transport::NsccSender> nscc_;
  std::vector<transport::HpccSender> hpcc_;
  std::vector<transport::DcqcnSender> dcqcn_;
};

}  // namespace weft::engine::packet
