// Learns from recorded events which kinds lead to which, where and how soon.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "operate/triage/evidence.hpp"
#include "operate/triage/learned.hpp"
#include "operate/triage/relations.hpp"

namespace weft::operate::triage {

struct LearnOptions {
  RelationOptions fit;
  std::uint64_t support_min = 10;  // events that a relation must account for
  double confidence_min = 0.5;
};

// Holds an entry of 24 bytes for each event of trouble.
class Learner {
 public:
  // Both must outlive this.
  Learner(const Parts& parts, const Rules& rules)
      : parts_(parts), rules_(rules), interpreter_(parts, rules) {}

  void add(const model::RecordSet& set, const model::Record& record);
  // By nearness the relations of learn_relations(), with the delays that were seen; by support.
  // An event counts once until it was not said for as long as `fit.memory_s`; of several reasons of
  // one kind that are equally near the last one counts.
  // Cost: that of learn_relations(). Deterministic; the order of add() does not matter.
  std::vector<LearnedRelation> learn(const LearnOptions& options = {}) const;

  std::uint64_t event_count() const { return events_.size(); }
  const Interpreter::Counts& counts() const { return interpreter_.counts(); }

 private:
  struct Event {
    std::int64_t at = 0;
    std::uint32_t spot = 0;
    model::EventKind kind{};
  };
  class History;

  const Parts& parts_;
  const Rules& rules_;
  Interpreter interpreter_;
  std::vector<Event> events_;
  std::vector<Spot> spots_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> spot_number_;
};

}  // namespace weft::operate::triage
