// Episodes as causes: which of them may have lost the probes of a row.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "model/events/episode.hpp"
#include "model/events/evidence.hpp"
#include "model/fabric/fabric.hpp"
#include "observe/sli/objectives.hpp"

namespace weft::observe::sli {

using EpisodeIndex = std::uint32_t;

inline constexpr std::int64_t minutes_per_hour = 60;

// Whole minutes and hours since 1970, rounded down.
std::int64_t minute_of(Timestamp t);
std::int64_t hour_of(std::int64_t minute);
Timestamp start_of(std::int64_t minute);

class Causes {
 public:
  // Looks all entities up: nodes, links, cables, ports, scopes. Episodes are put in order of start
  // and id. Fails: Errc::unknown with up to 100 entities the fabric does not know.
  static Result<Causes> create(const model::Fabric& fabric, std::vector<model::Episode> episodes,
                               const Settings& settings);

  // Writes to `out`, ascending, the episodes that overlap the row's minute, give or take the slack,
  // and whose entity the row's probes may have met: one on its path; where the path is not known,
  // one whose scope lies on the way between the ends (in a scope that holds one of them, not above
  // the lowest that holds both).
  // Cost: O(path x entities of the episodes of that hour).
  void explain(const model::Evidence& row, std::span<const model::LinkId> path,
               std::vector<EpisodeIndex>& out) const;

  std::span<const model::Episode> episodes() const { return episodes_; }
  const model::Episode& episode(EpisodeIndex index) const { return episodes_[index]; }
  // Of a kind that was said to be planned, unless its attribute "planned" says "true" or "false".
  bool is_planned(EpisodeIndex index) const { return planned_[index] == Planned::yes; }

 private:
  enum class Planned : std::uint8_t { no, yes };
  struct Entity {
    std::vector<model::LinkId> links;  // one direction, both of a cable, or none
    model::NodeId node;                // or a node
    model::ScopeId scope;  // or a scope; of links and nodes the lowest scope that holds one end
  };

  explicit Causes(const model::Fabric& fabric) : fabric_(&fabric) {}
  Result<Entity> find_entity(const std::string& name, const std::string& id) const;
  void index_hours(std::int64_t slack_ns);
  bool is_inside(model::NodeId node, model::ScopeId scope) const;
  bool meets(const Entity& entity, model::NodeId node) const;
  bool is_crossed(const Entity& entity, const model::Evidence& row,
                  std::span<const model::LinkId> path) const;
  bool may_be_crossed(const Entity& entity, const model::Evidence& row) const;
  bool explains(EpisodeIndex index, const model::Evidence& row,
                std::span<const model::LinkId> path) const;

  const model::Fabric* fabric_;
  std::vector<model::Episode> episodes_;
  std::vector<std::vector<Entity>> entities_;  // by episode
  std::vector<Planned> planned_;
  std::vector<std::pair<std::int64_t, std::int64_t>> minutes_;  // [first, last], with the slack
  std::map<std::int64_t, std::vector<EpisodeIndex>> by_hour_;   // those of a few days at most
  std::vector<EpisodeIndex> lasting_;                           // the others
};

}  // namespace weft::observe::sli
