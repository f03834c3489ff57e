// Sets of links that an ideal balancer uses as one. Internal to the room.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "route/live_links.hpp"

namespace weft::route {

class Pools {
 public:
  Pools(const Fabric& fabric, const LiveLinks& live) : fabric_(fabric), live_(live) {}

  // The resource for a set of links: the link itself, or a pool, made when new. Sorts `links`,
  // which must hold at least one, without repeats.
  LinkId resource_of(std::vector<LinkId>& links);

  std::size_t resource_count() const { return fabric_.link_count() + pools_.size(); }
  double capacity(LinkId resource) const;
  std::span<const LinkId> members(LinkId resource) const;
  // To be called after `live` has changed.
  void on_change();

 private:
  struct Hash {
    std::size_t operator()(const std::vector<LinkId>& links) const;
  };
  struct Pool {
    std::vector<LinkId> links;
    double bytes_per_s;
  };
  double sum(std::span<const LinkId> links) const;

  const Fabric& fabric_;
  const LiveLinks& live_;
  std::vector<Pool> pools_;
  std::unordered_map<std::vector<LinkId>, LinkId, Hash> known_;  // never iterated
};

}  // namespace weft::route
