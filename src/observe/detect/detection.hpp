// What a detector says: that something began or ended, and which records it is made of.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/timestamp.hpp"
#include "model/events/entity.hpp"
#include "model/events/record.hpp"
#include "observe/detect/rules.hpp"

namespace weft::observe::detect {

struct Detection {
  enum class Phase : std::uint8_t { began, ended };

  std::uint32_t rule = 0;  // in the rules
  Phase phase = Phase::began;
  model::Entity entity;  // that is told of
  model::Entity group;
  Timestamp t;     // when the condition became true, or was true for the last time
  Timestamp told;  // when all of it was known
  std::vector<std::uint64_t> members;  // serials, ascending; of an end those since it was told
  std::uint64_t member_count = 0;      // all so far, also where there are too many to name

  friend bool operator==(const Detection&, const Detection&) = default;
};

// Adds the record of a detection: of the rule's kind where it began; where it ended, of the kind
// that clears it, else info. Attributes: "detection" (the rule), "phase", "members" (ids, parted by
// blanks, at most 8 KiB of them), "member_count"; the value is the count, at least 1.
model::Record& add_record(model::RecordSet& set, const Detection& detection, const Rule& rule,
                          std::string id,
                          const std::function<std::string(std::uint64_t)>& id_of_serial);

}  // namespace weft::observe::detect
