// What traffic grew by, by cause: in all, and on each link.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "plan/backbone/wan.hpp"

namespace weft::plan::backbone {

// Whole bits per second: sums are exact below 2^53 (9 Pbit/s).
struct Change {
  double before = 0, now = 0;
  double by() const { return now - before; }
};
// By cause; the sum of all is the whole.
struct Changes {
  std::array<Change, cause_count> of{};
  Change all() const;
  // The one that changed most, up or down.
  Cause main() const;
};
struct Growth {
  Changes traffic;
  std::vector<Changes> links;  // of each link, every demand on its path of fewest links
  Change without_path;         // part of the traffic that is on no link
};

// Cost: a search for each pair. Deterministic.
Growth growth(const Wan& wan, const std::vector<Demand>& before, const std::vector<Demand>& now);

// Causes, then links by change, `rows` of them.
std::string to_table(const Wan& wan, const Growth& growth, std::size_t rows);
std::string to_json(const Wan& wan, const Growth& growth);

}  // namespace weft::plan::backbone
