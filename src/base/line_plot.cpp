#include "base/line_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/markup.hpp"

namespace weft {
inline namespace base {
namespace {

constexpr double plot_width = 760, plot_left = 70, plot_right = 20, plot_top = 40;
constexpr double plot_height = 320, names_height = 20, below_axis = 56;
constexpr double character_width = 6.8;
constexpr std::array line_colours{"#1565c0", "#e65100", "#2e7d32", "#6a1b9a",
                                  "#ad1457", "#00838f", "#5d4037", "#546e7a"};

bool is_drawn(const LinePlot::Point& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

// 1, 2 or 5 times a power of ten: about five of them in `most`.
double tick_of(double most) {
  const double raw = most / 5, power = std::pow(10, std::floor(std::log10(raw)));
  for (const double step : {1.0, 2.0, 5.0})
    if (raw <= step * power) return step * power;
  return 10 * power;
}

class Axes {
 public:
  explicit Axes(const LinePlot& plot) : plot_(plot) {
    for (const LinePlot::Line& line : plot.lines)
      for (const LinePlot::Point& point : line.points) {
        if (!is_drawn(point)) continue;
        x_least_ = std::min(x_least_, point.x);
        x_most_ = std::max(x_most_, point.x);
        y_least_ = std::min(y_least_, point.y);
        y_most_ = std::max(y_most_, point.y);
      }
    if (!plot.places.empty()) x_most_ = static_cast<double>(plot.places.size() - 1);
    if (x_most_ <= 0) x_most_ = 1;
    if (y_most_ <= 0) y_most_ = 1;
  }

  double x(double value) const {
    const double share = plot_.log_x ? log_share(value, x_least_, x_most_) : value / x_most_;
    return plot_left + (plot_width - plot_left - plot_right) * share;
  }
  double y(double value) const {
    const double share = plot_.log_y ? log_share(value, y_least_, y_most_) : value / y_most_;
    return bottom - plot_height * share;
  }

  std::string text() const {
    std::string out;
    for (const auto& [at, name] : x_ticks())
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                         x(at), bottom + 18, escape_markup(name));
    for (const double at : y_ticks())
      out += fmt::format(
          "<path class=\"g\" d=\"M{:.1f},{:.1f}H{:.1f}\"/><text x=\"{:.1f}\" y=\"{:.1f}\" "
          "text-anchor=\"end\">{:g}</text>\n",
          plot_left, y(at), plot_width - plot_right, plot_left - 6, y(at) + 4, at);
    out += fmt::format(
        "<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n"
        "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        (plot_left + plot_width - plot_right) / 2, bottom + 38, escape_markup(plot_.x_title),
        plot_left, plot_top - 16, escape_markup(plot_.y_title));
    const double end = std::min(x_most_, y_most_);
    if (plot_.diagonal)
      out += fmt::format("<path class=\"i\" d=\"M{:.1f},{:.1f}L{:.1f},{:.1f}\"/>\n", x(0), y(0),
                         x(end), y(end));
    return out;
  }

 private:
  static constexpr double bottom = plot_top + plot_height;

  static double log_share(double value, double least, double most) {
    return most > least ? std::log(value / least) / std::log(most / least) : 0;
  }
  static std::vector<double> steps_to(double most) {
    std::vector<double> out;
    const double step = tick_of(most);
    for (int i = 0; i * step <= most * 1.0001; ++i) out.push_back(i * step);
    return out;
  }
  // From 0, or 1, 2 and 5 times the powers of ten.
  std::vector<double> y_ticks() const {
    if (!plot_.log_y) return steps_to(y_most_);
    std::vector<double> out;
    for (double power = std::pow(10, std::floor(std::log10(y_least_))); power <= y_most_;
         power *= 10)
      for (const double step : {1.0, 2.0, 5.0})
        if (step * power >= y_least_ && step * power <= y_most_) out.push_back(step * power);
    return out;
  }
  // Places, steps from 0, or the values themselves where they are far enough apart.
  std::vector<std::pair<double, std::string>> x_ticks() const {
    std::vector<std::pair<double, std::string>> out;
    for (std::size_t i = 0; i < plot_.places.size(); ++i)
      out.emplace_back(static_cast<double>(i), plot_.places[i]);
    if (!out.empty()) return out;
    std::vector<double> values;
    if (!plot_.log_x) values = steps_to(x_most_);
    for (const LinePlot::Line& line : plot_.lines)
      for (const LinePlot::Point& point : line.points)
        if (plot_.log_x && is_drawn(point)) values.push_back(point.x);
    std::ranges::sort(values);
    for (const double value : values)
      if (out.empty() || x(value) - x(out.back().first) > 40)
        out.emplace_back(value, fmt::format("{:g}", value));
    return out;
  }

  const LinePlot& plot_;
  double x_least_ = INFINITY, x_most_ = 0, y_least_ = INFINITY, y_most_ = 0;
};

std::string line_text(const LinePlot::Line& line, const Axes& axes, const char* colour) {
  std::string path, dots;
  for (const LinePlot::Point& point : line.points) {
    if (!is_drawn(point)) continue;
    path +=
        fmt::format("{}{:.1f},{:.1f}", path.empty() ? "M" : "L", axes.x(point.x), axes.y(point.y));
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" stroke=\"{}\" fill=\"{}\">"
        "<title>{}</title></circle>\n",
        axes.x(point.x), axes.y(point.y), colour, point.filled ? colour : "none",
        escape_markup(point.title.empty() ? fmt::format("{:.4g}: {:.4g}", point.x, point.y)
                                          : point.title));
  }
  return fmt::format("<path fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" d=\"{}\"/>\n{}",
                     colour, path, dots);
}

// As many names as fit beside each other.
std::size_t names_a_row(const LinePlot& plot) {
  std::size_t longest = 1;
  for (const LinePlot::Line& line : plot.lines) longest = std::max(longest, line.name.size());
  const double each = character_width * static_cast<double>(longest) + 30;
  return static_cast<std::size_t>(std::clamp((plot_width - plot_left) / each, 1.0, 6.0));
}

std::string name_text(const std::string& name, std::size_t index, std::size_t a_row,
                      const char* colour) {
  const double column = (plot_width - plot_left) / static_cast<double>(a_row);
  const double x = plot_left + column * static_cast<double>(index % a_row);
  const std::size_t row = index / a_row;
  const double y = plot_top + plot_height + below_axis + names_height * static_cast<double>(row);
  return fmt::format(
      "<circle cx=\"{:.0f}\" cy=\"{:.0f}\" r=\"4\" fill=\"{}\"/><text x=\"{:.0f}\" "
      "y=\"{:.0f}\">{}</text>\n",
      x, y, colour, x + 9, y + 4, escape_markup(name));
}

}  // namespace

std::string to_svg(const LinePlot& plot) {
  const std::size_t a_row = names_a_row(plot);
  const std::size_t rows = (plot.lines.size() + a_row - 1) / a_row;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" role=\"img\">\n"
      "<style>svg{{background:#fff}}text{{font:12px sans-serif;fill:#222}}"
      ".g{{stroke:#ddd}}.i{{stroke:#999;stroke-dasharray:4 4}}</style>\n",
      plot_width, plot_top + plot_height + below_axis + names_height * static_cast<double>(rows));
  const Axes axes(plot);
  out += axes.text();
  for (std::size_t i = 0; i < plot.lines.size(); ++i) {
    const char* const colour = line_colours[i % line_colours.size()];
    out += line_text(plot.lines[i], axes, colour) + name_text(plot.lines[i].name, i, a_row, colour);
  }
  return out + "</svg>\n";
}

}  // namespace base
}  // namespace weft
