// Which port made which others wait by PFC. Internal to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "engine/packet/shard.hpp"

namespace weft::engine::packet {

// Builds PauseTrees out of what shards have recorded. A paused link hangs below the port at fault:
// below where that port stands in a tree itself if it is or was paused, else below a root. A port
// that is paused later takes along what hangs below it, from then on. Cost: O(log n) a pause, and
// some 100 bytes for each different path from a link to a root.
class PauseForest {
 public:
  explicit PauseForest(std::uint32_t link_count) : links_(link_count) {}

  // Takes all records of the shards; between windows, so that none of an earlier time comes later.
  void take(const std::vector<std::unique_ptr<Shard>>& shards);
  std::vector<PauseTree> trees(const World& world) const;

 private:
  struct Node {
    std::uint32_t link, parent;
    bool circle = false;
    std::uint64_t pauses = 0;
    Ps paused = 0;
    std::map<std::uint32_t, Ps> held;  // by message
  };
  struct Decision {
    std::uint32_t fault = none;  // the port for which packets of a link wait
    bool passed_on = false;
  };
  struct LinkPauses {
    std::deque<Decision> decided;  // pauses whose frames are under way
    Decision present;
    // Where it has hung since when in its present pause; the last one stays when it has ended.
    std::vector<std::pair<std::uint32_t, Ps>> nodes;
    bool paused = false;
    std::vector<std::uint32_t> blocked;  // links that are paused because of this port
  };
  std::uint32_t node_below(std::uint32_t parent, std::uint32_t link);
  void add(const PauseRecord& record);
  void begin(std::uint32_t id, Ps t);
  void hang(std::uint32_t id, Ps t);
  void end(std::uint32_t id, Ps t);
  template <class Add>
  void divide(const LinkPauses& link, Ps from, Ps to, Add add);

  std::vector<PauseRecord> batch_;
  std::vector<Node> nodes_;  // parents first
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> by_parent_and_link_;
  std::vector<LinkPauses> links_;
};

}  // namespace weft::engine::packet
