// Measured times on a grid of four axes that has holes, and along a line.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace weft::workload {

// A function of one variable: linear between points, linear on beyond the last, constant before the
// first.
class LineTable {
 public:
  // x ascends, without repeats; at least one point.
  LineTable(std::vector<double> x, std::vector<double> y);
  double at(double x) const;

 private:
  std::vector<double> x_, y_;
};

inline constexpr std::size_t grid_axes = 4;
using GridPoint = std::array<std::uint32_t, grid_axes>;

// How the points of a grid came about that were not measured.
struct GridHoles {
  std::uint64_t measured = 0;
  std::uint64_t interpolated = 0;  // between two known points of one axis
  std::uint64_t extrapolated = 0;  // beyond the last two known points of one axis
  std::uint64_t unknown = 0;       // left at zero: no line through it had two known points
};

// Attention: prefill tokens, their history, decodes, their mean history. Between points it is
// linear in each axis; beyond the last it goes on as in the last interval.
class GridTable {
 public:
  struct Row {
    GridPoint at;
    double value;
  };
  // Without prefills (decodes) the history of prefills (decodes) means nothing: rows with 0 in the
  // first (third) axis hold for every value of the second (fourth).
  // Holes are filled along one axis at a time, interpolated first and only then extrapolated:
  // decode history, prefill history, prefill tokens, decodes. A step without prefills is a
  // neighbour of none with them, for it runs other kernels. Rows must not repeat.
  explicit GridTable(std::span<const Row> rows = {});

  double at(const std::array<double, grid_axes>& point) const;
  const GridHoles& holes() const { return holes_; }
  const std::vector<std::uint32_t>& axis(std::size_t i) const { return axes_[i]; }

 private:
  using Index = std::array<std::size_t, grid_axes>;
  struct Fill {
    std::size_t cell;
    double value;
  };
  enum class How : std::uint8_t { between, beyond };

  std::size_t cell(const Index& i) const;
  bool known(const Index& i) const { return known_[cell(i)]; }
  template <class Visit>
  void each(const Visit& visit) const;
  void put(const Index& i, double value);
  void spread_planes();
  std::uint64_t fill_along(std::size_t axis, How how);
  bool fill_value(Index i, std::size_t axis, How how, double& value) const;

  std::array<std::vector<std::uint32_t>, grid_axes> axes_;
  std::vector<double> values_;
  std::vector<bool> known_;
  GridHoles holes_;
};

}  // namespace weft::workload
