// Which flows were lost on a part, as the localiser's verdicts name them: test traffic repeats
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/events/record.hpp"
#include "model/fabric/fabric.hpp"
#include "port/actuator.hpp"

namespace weft::serve {

// As an attribute of a record: "nic:3>nic:6 49153>0 0 ctsw:2->rtsw:3;...", source and destination,
// their ports (0: that of responders), class, and the direction in which it crossed the part.
std::string to_text(const std::vector<port::Flow>& flows);
// What is not of this form is left out.
std::vector<port::Flow> read_flows(std::string_view text);

class FailingFlows {
 public:
  // `fabric` must outlive it.
  explicit FailingFlows(const model::Fabric& fabric) : fabric_(fabric) {}

  // Remembers the attribute "flows" of records about cables and switches.
  void add(const model::RecordSet& records);
  // Those of the part last named, a cable or a switch; a switch's include those of its cables.
  std::vector<port::Flow> of(std::string_view part) const;

  static constexpr std::size_t flows_max = 32;     // of one part: the newest
  static constexpr std::size_t parts_max = 4'096;  // the part named last stays longest

 private:
  std::string key_of(const model::Entity& entity) const;

  const model::Fabric& fabric_;
  struct Known {
    std::uint64_t named = 0;  // when, by count
    std::deque<port::Flow> flows;
  };
  std::map<std::string, Known, std::less<>> parts_;
  std::uint64_t count_ = 0;
};

}  // namespace weft::serve
