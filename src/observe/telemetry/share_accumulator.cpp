#include "observe/telemetry/share_accumulator.hpp"

#include <algorithm>
#include <utility>

namespace weft::observe::telemetry {
namespace {

constexpr std::size_t remembered_max = 200'000;

}  // namespace

ShareAccumulator::Amount& ShareAccumulator::Sum::of_part(SharePart part) {
  return part == SharePart::left ? left : part == SharePart::used ? used : total;
}

double ShareAccumulator::whole_of(const Sum& sum) {
  return sum.total.series > 0 ? sum.total.value : sum.used.value + sum.left.value;
}

void ShareAccumulator::add(const Key& key, SharePart part, ShareOf of, double value, Timestamp t) {
  Sum& sum = page_[key];
  sum.of = of;
  sum.t = std::max(sum.t, t);
  Amount& amount = sum.of_part(part);
  amount.value += value;
  ++amount.series;
}

// The sums become what they grew by since the page before. False where nobody can say.
bool ShareAccumulator::to_growth(const Key& key, Sum& sum) {
  auto at = before_.find(key);
  if (at == before_.end()) {
    if (before_.size() >= remembered_max) {
      ++counts_.refused;
      return false;
    }
    at = before_.emplace(key, Sum{}).first;
  }
  const Sum now = sum;
  const Sum before = std::exchange(at->second, now);
  bool is_same = before.t < now.t;
  for (const auto part : {&Sum::left, &Sum::used, &Sum::total}) {
    is_same &= (before.*part).series == (now.*part).series;
    (sum.*part).value -= (before.*part).value;
  }
  if (is_same && whole_of(sum) > 0) return true;
  ++counts_.unsteady;
  return false;
}

void ShareAccumulator::end_page(std::vector<port::Sample>& out) {
  for (auto& [key, sum] : page_) {
    const bool has_used = sum.used.series > 0, has_left = sum.left.series > 0;
    if (int{has_used} + int{has_left} + int{sum.total.series > 0} < 2) {
      ++counts_.incomplete;
      continue;
    }
    if (sum.of == ShareOf::growth && !to_growth(key, sum)) continue;
    const double whole = whole_of(sum);
    const double used = has_used ? sum.used.value : whole - sum.left.value;
    if (!(whole > 0)) continue;  // a file system of nothing
    out.push_back({sum.t, key.device, key.component, key.metric, key.index,
                   std::clamp(used / whole, 0.0, 1.0)});
  }
  page_.clear();
}

}  // namespace weft::observe::telemetry
