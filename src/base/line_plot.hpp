// Lines over a common axis, as SVG that stands alone.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace weft {
inline namespace base {

struct LinePlot {
  struct Point {
    double x = 0, y = 0;
    bool filled = true;  // the dot
    std::string title;   // shown on hovering; empty: the two values
  };
  struct Line {
    std::string name;
    std::vector<Point> points;  // in the order in which they are joined
  };
  std::string x_title, y_title;
  std::vector<Line> lines;
  bool diagonal = false;              // where y equals x, dashed
  bool log_x = false, log_y = false;  // all values of it are above 0 then
  // Names in place of numbers under the axis: of x = 0, 1, 2, ...
  std::vector<std::string> places;
};

// Axes begin at 0, but logarithmic ones. Points that are not finite are left out.
// Cost: O(points).
std::string to_svg(const LinePlot& plot);

}  // namespace base
}  // namespace weft
