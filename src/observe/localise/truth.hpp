// How verdicts compare with what was really wrong.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "model/events/episode.hpp"
#include "observe/localise/localise.hpp"

namespace weft::observe::localise {

struct Comparison {
  std::vector<std::string> right, wrong, missed;  // "link a->b", "switch ctsw:3", each once

  double precision() const { return share(wrong.size()); }
  double recall() const { return share(missed.size()); }

 private:
  // 1 where there is nothing to judge.
  double share(std::size_t bad) const {
    const std::size_t all = right.size() + bad;
    return all == 0 ? 1 : static_cast<double>(right.size()) / static_cast<double>(all);
  }
};

struct Comparisons {
  Comparison fabric;      // links, cards, switches; a cable counts as its two directions
  Comparison congestion;  // episodes whose kind has "congestion" in it
  Comparison hosts;
};

// Compares with the episodes that overlap the report's windows. Fails: Errc::unknown for an entity
// that the fabric does not have.
Result<Comparisons> compare(const Fabric& fabric, const Report& report,
                            std::span<const model::Episode> truth);

}  // namespace weft::observe::localise
