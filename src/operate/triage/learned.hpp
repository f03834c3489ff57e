// Relations between kinds of events that were learned from history, for use beside the written
// rules: what they hold, how they are written down, and where they apply.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config.hpp"
#include "base/result.hpp"
#include "model/events/event_kind.hpp"
#include "operate/triage/parts.hpp"
#include "operate/triage/rules.hpp"

namespace weft::operate::triage {

// How near the place of an event is to that of what led to it; the nearest that is true counts.
enum class Nearness : std::uint8_t {
  port,       // the same port, or the other end of its cable
  device,     // the same device, or host with its NICs
  neighbour,  // a device at the other end of a cable
};
inline constexpr std::uint32_t nearness_count = 3;

// Where something was said: of which part, by which device.
struct Spot {
  PartId part;
  model::NodeId device;  // none: said of a scope

  friend bool operator==(const Spot&, const Spot&) = default;
};
// `end` as in Evidence. Cost: O(1).
Spot spot_of(const Parts& parts, PartId part, std::uint8_t end);
// The nearness of two spots whose devices are the same or joined by a cable; else nothing of use.
std::optional<Nearness> nearness_of_joined(const Parts& parts, const Spot& a, const Spot& b);

struct LearnedRelation {
  model::EventKind from{}, to{};
  Nearness at = Nearness::device;
  std::int64_t least_ns = 0, most_ns = 0;  // the delay
  std::uint64_t support = 0;               // events of history that it accounts for
  double confidence = 0;  // of `to` events that have a `from` so near before them: due to it
};

class LearnedRelations {
 public:
  LearnedRelations() = default;  // none
  // Reads {relations: [{from, to, at, after: [least, most], support, confidence}]}.
  // Fails: every error found, each with its position; unknown keys and kinds, kinds that are no
  // trouble by these rules and relations said twice are errors.
  static Result<LearnedRelations> read(const Config& config, const Rules& rules);
  explicit LearnedRelations(std::vector<LearnedRelation> rows);

  bool empty() const { return rows_.empty(); }
  const std::vector<LearnedRelation>& rows() const { return rows_; }
  // Those that lead to `kind`.
  std::span<const LearnedRelation> leading_to(model::EventKind kind) const {
    const auto [first, count] = by_to_[static_cast<std::size_t>(kind)];
    return std::span(rows_).subspan(first, count);
  }
  bool is_reason(model::EventKind kind) const { return (reasons_ & bit(kind)) != 0; }
  std::int64_t most_ns() const { return most_ns_; }

 private:
  std::vector<LearnedRelation> rows_;  // by `to`
  // Where in `rows_`, and how many.
  std::array<std::pair<std::size_t, std::size_t>, model::event_kind_count> by_to_{};
  KindMask reasons_ = 0;
  std::int64_t most_ns_ = 0;
};

// Kinds that relations are learned of and used for: trouble, as far as the rules say what it is.
bool is_trouble(const Rules& rules, model::EventKind kind);

// As a file that LearnedRelations::read takes; each line of `remark` becomes a comment.
std::string to_yaml(const std::vector<LearnedRelation>& relations, std::string_view remark);

}  // namespace weft::operate::triage
