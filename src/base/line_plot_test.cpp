#include "base/line_plot.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace weft {
namespace {

bool has(const std::string& svg, const std::string& part) {
  return svg.find(part) != std::string::npos;
}

TEST_CASE("points stand where their values say, and names are text") {
  LinePlot plot{.x_title = "asked", .y_title = "kept", .lines = {}};
  plot.lines.push_back({"a<b", {{0, 0}, {50, 5, false}, {100, 10, true, "top & end"}}});
  const std::string svg = to_svg(plot);
  CHECK(has(svg, "M70.0,360.0L405.0,200.0L740.0,40.0"));
  CHECK(has(svg, "cx=\"405.0\" cy=\"200.0\" r=\"3\" stroke=\"#1565c0\" fill=\"none\""));
  CHECK(has(svg, "a&lt;b"));
  CHECK(has(svg, "<title>top &amp; end</title>"));
  CHECK(has(svg, "<title>50: 5</title>"));
}

TEST_CASE("a logarithmic axis, places, and values that are none") {
  LinePlot plot{.x_title = "", .y_title = "", .lines = {}, .log_x = true};
  plot.lines.push_back({"a", {{1, 1}, {10, NAN}, {100, INFINITY}, {10, 2}, {100, 4}}});
  const std::string svg = to_svg(plot);
  CHECK(has(svg, "M70.0,280.0L405.0,200.0L740.0,40.0"));
  CHECK(!has(svg, "nan"));
  CHECK(!has(svg, "inf"));
  plot.log_y = true;
  CHECK(has(to_svg(plot), "M70.0,360.0L405.0,200.0L740.0,40.0"));
  plot = {.x_title = "", .y_title = "", .lines = {{"a", {{0, 1}, {1, 1}}}}, .places = {"x", "y"}};
  CHECK(has(to_svg(plot), "<text x=\"740.0\" y=\"378.0\" text-anchor=\"middle\">y</text>"));
  // Nothing at all, and one value only, are drawn too.
  CHECK(has(to_svg({}), "</svg>"));
  CHECK(has(to_svg({.x_title = "", .y_title = "", .lines = {{"a", {{3, 0}}}}, .log_x = true}),
            "</svg>"));
}

}  // namespace
}  // namespace weft
