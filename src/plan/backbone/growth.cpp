#include "plan/backbone/growth.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/json_text.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "plan/backbone/paths.hpp"

namespace weft::plan::backbone {
namespace {

void add_demands(const Wan& wan, const std::vector<Demand>& demands, double Change::* when,
                 Growth& out) {
  const PathSet paths = find_paths(wan, demands, 1);
  for (std::size_t d = 0; d < demands.size(); ++d) {
    const auto cause = static_cast<std::size_t>(demands[d].cause);
    const double rate = std::round(bps(demands[d].gbps));
    out.traffic.of[cause].*when += rate;
    if (paths.first_path[d] == paths.first_path[d + 1])
      out.without_path.*when += rate;
    else
      for (const std::uint32_t link : paths.path(paths.first_path[d]))
        out.links[link].of[cause].*when += rate;
  }
}

std::string gbps_text(double rate_bps) { return fmt::format("{:.3f}", rate_bps * 1e-9); }

std::string cause_table(const Changes& traffic) {
  Table table(
      {{"Gbit/s", Table::Align::left}, {"before"}, {"now"}, {"change"}, {""}, {"of all change"}});
  const Change all = traffic.all();
  const auto add = [&](std::string name, const Change& c) {
    table.add({std::move(name), gbps_text(c.before), gbps_text(c.now),
               fmt::format("{:+.3f}", c.by() * 1e-9), percent_change(c.now, c.before, 1),
               percent(c.by() / all.by(), 1)});
  };
  for (std::size_t i = 0; i < cause_count; ++i)
    if (const Change& c = traffic.of[i]; c.before > 0 || c.now > 0)
      add(std::string(cause_names[i]), c);
  add("all", all);
  return table.text();
}

std::string link_table(const Wan& wan, const Growth& growth, std::size_t rows) {
  std::vector<std::size_t> order(wan.link_count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t link) {
    return std::abs(growth.links[link].all().by());
  });
  Table table({{"link", Table::Align::left},
               {"capacity"},
               {"before"},
               {"now"},
               {"use"},
               {"most of it", Table::Align::left},
               {"Gbit/s"}});
  for (std::size_t i = 0; i < std::min(rows, order.size()); ++i) {
    const std::size_t link = order[i];
    const Change all = growth.links[link].all();
    const Cause main = growth.links[link].main();
    const double most = growth.links[link].of[static_cast<std::size_t>(main)].by();
    table.add({fmt::format("{}>{}", wan.sites[wan.from(link)], wan.sites[wan.to(link)]),
               gbps_text(bps(wan.gbps(link))), gbps_text(all.before), gbps_text(all.now),
               percent(all.now / bps(wan.gbps(link)), 1),
               std::string(most == 0 ? "-" : to_text(main)), fmt::format("{:+.3f}", most * 1e-9)});
  }
  return table.text() + fmt::format("{} of {} links, by change; on paths of fewest links\n",
                                    std::min(rows, order.size()), order.size());
}

JsonObject change_json(const Change& c) {
  return JsonObject().add("before_bps", c.before).add("now_bps", c.now).add("change_bps", c.by());
}
JsonObject causes_json(const Changes& changes) {
  JsonObject out;
  for (std::size_t i = 0; i < cause_count; ++i) out.add(cause_names[i], change_json(changes.of[i]));
  return out;
}

}  // namespace

Change Changes::all() const {
  Change out;
  for (const Change& c : of) {
    out.before += c.before;
    out.now += c.now;
  }
  return out;
}

Cause Changes::main() const {
  const auto most =
      std::ranges::max_element(of, {}, [](const Change& c) { return std::abs(c.by()); });
  return static_cast<Cause>(most - of.begin());
}

Growth growth(const Wan& wan, const std::vector<Demand>& before, const std::vector<Demand>& now) {
  Growth out;
  out.links.resize(wan.link_count());
  add_demands(wan, before, &Change::before, out);
  add_demands(wan, now, &Change::now, out);
  return out;
}

std::string to_table(const Wan& wan, const Growth& growth, std::size_t rows) {
  std::string out = cause_table(growth.traffic) + "\n" + link_table(wan, growth, rows);
  if (const Change& c = growth.without_path; c.before > 0 || c.now > 0)
    out += fmt::format("without a path: {} Gbit/s before, {} now\n", gbps_text(c.before),
                       gbps_text(c.now));
  return out;
}

std::string to_json(const Wan& wan, const Growth& growth) {
  JsonList links;
  for (std::size_t l = 0; l < wan.link_count(); ++l)
    links.add(JsonObject()
                  .add("src", wan.sites[wan.from(l)])
                  .add("dst", wan.sites[wan.to(l)])
                  .add("rate_bps", bps(wan.gbps(l)))
                  .add("all", change_json(growth.links[l].all()))
                  .add("causes", causes_json(growth.links[l])));
  return JsonObject()
             .add("all", change_json(growth.traffic.all()))
             .add("causes", causes_json(growth.traffic))
             .add("without_path", change_json(growth.without_path))
             .add("links", links)
             .text() +
         "\n";
}

}  // namespace weft::plan::backbone
