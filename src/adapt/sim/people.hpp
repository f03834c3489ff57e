// The people around a simulated network: they hear notices, go and repair, approve, and say so.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapt/sim/operations.hpp"
#include "base/rng.hpp"
#include "port/notifier.hpp"

namespace weft::adapt::sim {

struct PeopleSettings {
  std::uint64_t seed = 1;
  std::int64_t approve_mean_ns = 10 * ns_per_minute;  // until a proposal is answered, exponential
};

// From one thread. Somebody is sent to a part that was drained, failed its test, cannot be drained,
// or has to be replaced; proposals are approved after a while. Who repairs a part says so to all
// open repairs of it that they were told of; who finds nothing is sent again, as long as one is
// open.
class People final : public port::Notifier {
 public:
  struct Word {
    enum class Kind : std::uint8_t { approve, repaired } kind = Kind::approve;
    std::string repair;  // its id
  };

  // `net` must outlive it.
  People(Operations& net, const PeopleSettings& settings) : net_(net), settings_(settings) {}

  // Of a case or a repair; other notices are for others. Fails: Errc::parse for a body without a
  // repair.
  Status notify(const port::Notice& notice) override;
  // What they say to the service by now.
  std::vector<Word> words();
  // When somebody says something that is not the end of a visit; none: never.
  std::optional<Timestamp> next_due() const;
  // Parts that they were told to replace so far.
  const std::set<std::string>& replaced() const { return replaced_; }

 private:
  struct Answer {
    Timestamp t;
    std::string repair;
  };
  struct Open {
    std::string part;
    bool is_offender = false;  // it must be replaced
  };
  void visit(const Operations::Visit& visit, std::vector<Word>& out);

  Operations& net_;
  PeopleSettings settings_;
  std::map<std::string, Open> open_;  // repairs, by id
  std::set<std::string> replaced_;
  std::map<std::string, std::uint64_t> asked_;  // proposals, by part
  std::vector<Answer> answers_;
};

}  // namespace weft::adapt::sim
