#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "base/markup.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "plan/edge/measure.hpp"
#include "plan/edge/program.hpp"

namespace weft::plan::edge {
namespace {

constexpr double map_width = 1'000, map_margin = 60;

struct Spot {
  double x = 0, y = 0;
};

// Equirectangular, true at the middle latitude.
std::vector<Spot> spots_of(const std::vector<Place>& places, double& height) {
  double west = 180, east = -180, south = 90, north = -90;
  for (const Place& place : places) {
    west = std::min(west, place.longitude);
    east = std::max(east, place.longitude);
    south = std::min(south, place.latitude);
    north = std::max(north, place.latitude);
  }
  const double narrow = std::cos((south + north) / 2 * std::numbers::pi / 180);
  const double wide = std::max(1.0, (east - west) * narrow), high = std::max(1.0, north - south);
  const double scale = (map_width - 2 * map_margin) / std::max(wide, high);
  height = high * scale + 2 * map_margin;
  std::vector<Spot> out;
  for (const Place& place : places)
    out.push_back({map_margin + (place.longitude - west) * narrow * scale,
                   map_margin + (north - place.latitude) * scale});
  return out;
}

class Map {
 public:
  Map(const Problem& problem, const Plan& plan, std::optional<std::uint32_t> down)
      : problem_(problem), plan_(plan), down_(down), spots_(spots_of(problem.places, height_)) {}

  std::string text() const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {:.0f} {:.0f}\" "
               "role=\"img\">\n<style>svg{{background:#fff}}text{{font:12px sans-serif;fill:#222}}"
               "line{{stroke:#9db9d8;stroke-linecap:round;opacity:.8}}.u{{stroke:#8e8e8e}}"
               ".f{{stroke:#d32f2f}}.a{{fill:#1565c0}}.s{{fill:#1b5e20}}.d{{fill:#4a148c}}"
               ".o{{fill:#d32f2f}}@media(prefers-color-scheme:dark){{svg{{background:#161616}}"
               "text{{fill:#ddd}}line{{stroke:#3b5878}}.a{{fill:#64b5f6}}.s{{fill:#8bc34a}}"
               ".d{{fill:#ce93d8}}}}</style>\n",
               map_width, height_ + 30) +
           lines() + marks() +
           fmt::format(
               "<text x=\"{}\" y=\"{:.0f}\">blue: users; green: metros; purple: data "
               "centres; red: full or down. Lines: requests, grey: uplinks</text>\n</svg>\n",
               map_margin, height_ + 18);
  }

 private:
  std::size_t metro_at(std::size_t m) const { return problem_.areas.size() + m; }
  std::size_t centre_at(std::size_t d) const { return metro_at(problem_.metros.size()) + d; }

  std::string line(std::size_t from, std::size_t to, const char* kind, double part,
                   const std::string& title) const {
    return fmt::format(
        "<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" "
        "stroke-width=\"{:.1f}\"><title>{}</title></line>\n",
        kind, spots_[from].x, spots_[from].y, spots_[to].x, spots_[to].y, 0.8 + 9 * std::sqrt(part),
        escape_markup(title));
  }

  // Widths by the root of the share of all requests, and of the largest uplink's load.
  std::string lines() const {
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> requests, bits;
    double all = 0, most = 0;
    for (const Way& way : plan_.ways) {
      const double asked = problem_.areas[way.area].requests[way.service] * way.share;
      requests[{way.area, way.metro}] += asked;
      all += asked;
      if (way.centre == at_metro) continue;
      double& load = bits[{way.metro, way.centre}];
      load += way.share * use_of(problem_, plan_.caches, way).uplink_bps;
      most = std::max(most, load);
    }
    std::string out;
    for (const auto& [key, load] : bits) {
      const double share =
          plan_.uplink_used[key.first] / (problem_.metros[key.first].uplink_bps * problem_.use_max);
      out +=
          line(metro_at(key.first), centre_at(key.second), share > 0.999 ? "f" : "u",
               most > 0 ? load / most : 0,
               fmt::format("{} to {}: {}; uplink at {} of what may be used",
                           problem_.metros[key.first].name, problem_.data_centres[key.second].name,
                           human(Rate{static_cast<std::int64_t>(load)}), percent(share, 1)));
    }
    for (const auto& [key, asked] : requests)
      out += line(key.first, metro_at(key.second), "r", asked / all,
                  fmt::format("{} to {}: {:.0f} requests/s", problem_.areas[key.first].name,
                              problem_.metros[key.second].name, asked));
    return out;
  }

  std::string mark(std::size_t at, const char* kind, double size, const std::string& name,
                   const std::string& title) const {
    const Spot& spot = spots_[at];
    return fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" "
        "rx=\"{}\"><title>{}</title></rect>\n<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
        kind, spot.x - size / 2, spot.y - size / 2, size, size, *kind == 'a' ? size / 2 : 0,
        escape_markup(title), spot.x + size / 2 + 4, spot.y + 4, escape_markup(name));
  }

  std::string site(std::size_t at, const char* kind, const std::string& name, std::size_t row,
                   double gpus, bool is_down) const {
    const double share = plan_.gpus_used[row] / (gpus * problem_.use_max);
    return mark(
        at, is_down || share > 0.999 ? "o" : kind, 12, is_down ? name + " (down)" : name,
        fmt::format("{}: {:.0f} GPUs, {} of what may be used", name, gpus, percent(share, 1)));
  }

  std::string marks() const {
    std::string out;
    for (std::size_t a = 0; a < problem_.areas.size(); ++a)
      out += mark(a, "a", 8, problem_.areas[a].name, problem_.areas[a].name);
    const std::size_t metros = problem_.metros.size();
    for (std::size_t m = 0; m < metros; ++m)
      out +=
          site(metro_at(m), "s", problem_.metros[m].name, m, problem_.metros[m].gpus, down_ == m);
    for (std::size_t d = 0; d < problem_.data_centres.size(); ++d)
      out += site(centre_at(d), "d", problem_.data_centres[d].name, metros + d,
                  problem_.data_centres[d].gpus, false);
    return out;
  }

  const Problem& problem_;
  const Plan& plan_;
  const std::optional<std::uint32_t> down_;
  double height_ = 0;
  const std::vector<Spot> spots_;
};

}  // namespace

Result<std::string> to_svg(const Problem& problem, const Plan& plan, const Failure* failure) {
  if (problem.places.empty())
    return fail(Errc::value, {"--svg", 0, 0}, "a map needs the place of every site",
                "give at: [latitude, longitude] to all areas, metros and data centres");
  if (failure != nullptr) return Map(problem, failure->plan, failure->metro).text();
  return Map(problem, plan, {}).text();
}

}  // namespace weft::plan::edge
