#include "workload/serving/grid_table.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/check.hpp"

namespace weft::workload {
namespace {

double on_line(double x, double x0, double y0, double x1, double y1) {
  return y0 + (y1 - y0) * (x - x0) / (x1 - x0);
}

}  // namespace

LineTable::LineTable(std::vector<double> x, std::vector<double> y)
    : x_(std::move(x)), y_(std::move(y)) {
  WEFT_CHECK(!x_.empty() && x_.size() == y_.size());
}

double LineTable::at(double x) const {
  if (x <= x_.front() || x_.size() == 1) return y_.front();
  const auto above = std::ranges::lower_bound(x_, x) - x_.begin();
  const std::size_t i = std::min(static_cast<std::size_t>(above), x_.size() - 1);
  return std::max(0.0, on_line(x, x_[i - 1], y_[i - 1], x_[i], y_[i]));
}

GridTable::GridTable(std::span<const Row> rows) {
  std::size_t cells = 1;
  for (std::size_t a = 0; a < grid_axes; ++a) {
    axes_[a].push_back(0);
    for (const Row& row : rows) axes_[a].push_back(row.at[a]);
    std::ranges::sort(axes_[a]);
    const auto repeats = std::ranges::unique(axes_[a]);
    axes_[a].erase(repeats.begin(), repeats.end());
    cells *= axes_[a].size();
  }
  values_.assign(cells, 0);
  known_.assign(cells, false);
  for (const Row& row : rows) {
    Index i{};
    for (std::size_t a = 0; a < grid_axes; ++a)
      i[a] = static_cast<std::size_t>(std::ranges::lower_bound(axes_[a], row.at[a]) -
                                      axes_[a].begin());
    put(i, row.value);
    ++holes_.measured;
  }
  spread_planes();
  constexpr std::array<std::size_t, grid_axes> inner_first{3, 1, 0, 2}, outwards{3, 2, 1, 0};
  for (const std::size_t axis : inner_first) holes_.interpolated += fill_along(axis, How::between);
  for (int pass = 0; pass < 2; ++pass)
    for (const std::size_t axis : outwards) holes_.extrapolated += fill_along(axis, How::beyond);
  holes_.unknown = static_cast<std::uint64_t>(std::ranges::count(known_, false));
}

std::size_t GridTable::cell(const Index& i) const {
  std::size_t at = 0;
  for (std::size_t a = 0; a < grid_axes; ++a) at = at * axes_[a].size() + i[a];
  return at;
}

void GridTable::put(const Index& i, double value) {
  values_[cell(i)] = value;
  known_[cell(i)] = true;
}

template <class Visit>
void GridTable::each(const Visit& visit) const {
  Index i{};
  for (i[0] = 0; i[0] < axes_[0].size(); ++i[0])
    for (i[1] = 0; i[1] < axes_[1].size(); ++i[1])
      for (i[2] = 0; i[2] < axes_[2].size(); ++i[2])
        for (i[3] = 0; i[3] < axes_[3].size(); ++i[3]) visit(i);
}

// What holds by the meaning of the axes: no tokens take no time; without tokens their history makes
// no difference; decodes without a history cost what those with the shortest do.
void GridTable::spread_planes() {
  each([&](const Index& i) {
    if (known(i)) return;
    const Index no_prefill{0, 0, i[2], i[3]};
    const Index no_decode{i[0], i[1], 0, 0};
    if (i[0] == 0 && i[2] == 0)
      put(i, 0);
    else if (i[0] == 0 && known(no_prefill))
      put(i, values_[cell(no_prefill)]);
    else if (i[2] == 0 && known(no_decode))
      put(i, values_[cell(no_decode)]);
  });
  if (axes_[3].size() < 2) return;
  each([&](const Index& i) {
    const Index shortest{i[0], i[1], i[2], 1};
    if (i[2] > 0 && i[3] == 0 && !known(i) && known(shortest)) put(i, values_[cell(shortest)]);
  });
}

bool GridTable::fill_value(Index i, std::size_t axis, How how, double& value) const {
  const std::vector<std::uint32_t>& x = axes_[axis];
  const auto me = i[axis];
  // The plane of no tokens, and that of no history of decodes, which was set by its neighbour.
  const std::size_t first = axis == 1 ? 0 : 1;
  const auto next_known = [&](std::size_t from, bool up) -> std::optional<std::size_t> {
    for (std::size_t k = from; up ? k < x.size() : k-- > first; k += up ? 1 : 0) {
      i[axis] = k;
      if (known(i)) return k;
    }
    return std::nullopt;
  };
  const auto value_at = [&](std::size_t k) {
    i[axis] = k;
    return values_[cell(i)];
  };
  if (me < first) return false;
  const auto low = next_known(me, false);
  if (!low) return false;
  if (how == How::between) {
    const auto high = next_known(me + 1, true);
    if (high) value = on_line(x[me], x[*low], value_at(*low), x[*high], value_at(*high));
    return high.has_value();
  }
  const auto lower = next_known(*low, false);
  if (!lower) return false;
  const double at_low = value_at(*low);
  // More work never takes less time: measured noise must not grow with the distance.
  value = std::max(at_low, on_line(x[me], x[*lower], value_at(*lower), x[*low], at_low));
  return true;
}

std::uint64_t GridTable::fill_along(std::size_t axis, How how) {
  std::vector<Fill> fills;  // from what was known before this pass, whatever the order of visits
  each([&](const Index& i) {
    double value = 0;
    if (!known(i) && fill_value(i, axis, how, value)) fills.push_back({cell(i), value});
  });
  for (const Fill& fill : fills) {
    values_[fill.cell] = fill.value;
    known_[fill.cell] = true;
  }
  return fills.size();
}

double GridTable::at(const std::array<double, grid_axes>& point) const {
  std::array<std::size_t, grid_axes> base{}, stride{};
  std::array<double, grid_axes> share{};
  std::size_t step = 1;
  for (std::size_t a = grid_axes; a-- > 0;) {
    stride[a] = step;
    step *= axes_[a].size();
    const std::vector<std::uint32_t>& x = axes_[a];
    if (x.size() < 2 || point[a] <= x[0]) continue;
    const auto above = std::ranges::upper_bound(x, point[a]) - x.begin();
    base[a] = std::min(static_cast<std::size_t>(above) - 1, x.size() - 2);
    share[a] = (point[a] - x[base[a]]) / (x[base[a] + 1] - x[base[a]]);
  }
  double sum = 0;
  for (unsigned corner = 0; corner < 1U << grid_axes; ++corner) {
    double weight = 1;
    std::size_t at = 0;
    for (std::size_t a = 0; a < grid_axes; ++a) {
      const bool upper = (corner >> a & 1U) != 0;
      weight *= upper ? share[a] : 1 - share[a];
      at += (base[a] + (upper ? 1 : 0)) * stride[a];
      if (weight == 0) break;
    }
    if (weight != 0) sum += weight * values_[at];
  }
  return std::max(0.0, sum);
}

}  // namespace weft::workload
