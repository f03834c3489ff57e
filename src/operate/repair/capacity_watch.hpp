// Racks that several faults together leave with less than their reserve of uplinks.
//
// Each of the faults is a case, is repaired, and is perhaps harmless alone. That together they cost
// a rack, or one plane of it, more than the policy's guards ever would (rack_share, plane_share,
// demand_share) is told apart, as a record that makes a case.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/events/event_kind.hpp"
#include "operate/repair/policy.hpp"
#include "operate/repair/reserve.hpp"

namespace weft::operate::repair {

struct CapacityNews {
  model::Entity at;  // rack; first switch where there are no racks
  model::EventKind kind = model::EventKind::capacity_low;  // or capacity_ok
  double share = 1;                                        // of its uplinks that is left
  std::string words;
};

class CapacityWatch {
 public:
  // What is low is told again so often, so that its case does not end by silence.
  static constexpr std::int64_t again_ns = 1'800'000'000'000;
  // What changes is looked at no more often: in a storm, parts come and go by the hundred.
  static constexpr std::int64_t look_ns = 1'000'000'000;

  // All must outlive the watch.
  CapacityWatch(const model::Fabric& fabric, const Reserve& reserve, const Policy& policy)
      : fabric_(fabric), reserve_(reserve), policy_(policy) {}

  // `gone`: every part that counts as out of service (Repair::held(), suspected()). A place is low
  // once at least two parts cost it uplinks, none of them enough alone, for timing.short; and then
  // until it has its reserve again. Ascending by place.
  // Cost: O(parts) when nothing changed, else O(links); while a place is short as much again for
  // each part of such a place or above the racks.
  std::vector<CapacityNews> look(std::vector<model::Entity> gone, Timestamp now);
  // When look() has something to do though `gone` stays as it is; none: never.
  std::optional<Timestamp> next_due() const;

  // A record of before, as look() gave it (others are passed over): a new life goes on from there.
  void recall(const model::Entity& at, model::EventKind kind, Timestamp t);

 private:
  struct Low {
    Timestamp since;
    std::optional<Timestamp> told;
    double share = 1;
    std::string words;
  };

  void weigh(Timestamp now);
  // By place, of the parts those that cost its row uplinks; none if one of them alone is enough.
  std::map<model::Entity, std::vector<model::Entity>> independent_parts(
      const std::map<model::Entity, std::size_t>& rows) const;
  std::string words_of(const Uplinks& row, std::span<const model::Entity> parts) const;

  const model::Fabric& fabric_;
  const Reserve& reserve_;
  const Policy& policy_;
  std::vector<model::Entity> gone_;  // ascending
  bool is_weighed_ = true;           // low_ follows from gone_
  Timestamp weighed_;
  std::map<model::Entity, Low> low_;
};

}  // namespace weft::operate::repair
