#include "plan/backbone/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include "base/csv.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"

namespace weft::plan::backbone {
namespace {

constexpr double gbps_of_bps = 1e9;

std::vector<double> loads_of(const Wan& wan, const std::vector<Demand>& demands,
                             const PathSet& paths) {
  std::vector<double> out(wan.link_count(), 0);
  for (std::size_t d = 0; d < demands.size(); ++d)
    if (paths.first_path[d] < paths.first_path[d + 1])
      for (const std::uint32_t link : paths.path(paths.first_path[d])) out[link] += demands[d].gbps;
  return out;
}

// What `worst` is measured against: the counter, or where it is 0 the mean of all.
std::vector<double> scales_of(const std::vector<Counter>& counters) {
  double mean = 0;
  for (const Counter& c : counters) mean += c.gbps / static_cast<double>(counters.size());
  std::vector<double> out;
  for (const Counter& c : counters) out.push_back(c.gbps > 0 ? c.gbps : std::max(mean, 1e-12));
  return out;
}

std::pair<double, std::uint32_t> worst_of(const std::vector<Counter>& counters,
                                          const std::vector<double>& scales,
                                          const std::vector<double>& loads) {
  std::pair<double, std::uint32_t> out{0, 0};
  for (std::uint32_t c = 0; c < counters.size(); ++c) {
    const double off = std::abs(loads[counters[c].link] - counters[c].gbps) / scales[c];
    if (off > out.first) out = {off, c};
  }
  return out;
}

std::string link_name(const Wan& wan, std::uint32_t link) {
  return fmt::format("{}>{}", wan.sites[wan.from(link)], wan.sites[wan.to(link)]);
}

}  // namespace

Result<std::vector<Counter>> read_counters(std::string_view text, const std::string& file,
                                           const Wan& wan) {
  static const std::array<std::string, 3> columns{"src", "dst", "rate"};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> links;
  for (std::uint32_t link = 0; link < wan.link_count(); ++link)
    links[{wan.from(link), wan.to(link)}].push_back(link);
  const SiteNames names(wan);
  CsvReader csv(text, file);
  WEFT_TRY_STATUS(csv.header(columns, {}));
  std::vector<Counter> out;
  while (csv.next()) {
    WEFT_TRY(const std::uint32_t from, names.find(csv.cell(0).text, csv.cell(0).where));
    WEFT_TRY(const std::uint32_t to, names.find(csv.cell(1).text, csv.cell(1).where));
    WEFT_TRY(const Rate rate, parse_rate(csv.cell(2)));
    const auto at = links.find({from, to});
    if (at == links.end())
      return fail(Errc::value, csv.where(),
                  fmt::format("no cable from {} to {}, or its counter is listed twice",
                              quote(csv.cell(0).text), quote(csv.cell(1).text)),
                  "give each link of the topology once");
    for (const std::uint32_t link : at->second)
      out.push_back({link, static_cast<double>(rate.bps) / gbps_of_bps /
                               static_cast<double>(at->second.size())});
    links.erase(at);
  }
  if (csv.error() != nullptr) return std::unexpected(*csv.error());
  if (out.empty()) return fail(Errc::value, {file}, "no counters", "give src,dst,rate");
  return out;
}

CounterFit fit_demands(const Wan& wan, const std::vector<Demand>& demands, const PathSet& paths,
                       const std::vector<Counter>& counters, const FitOptions& options) {
  CounterFit out{.demands = demands, .loads = loads_of(wan, demands, paths)};
  const std::vector<double> scales = scales_of(counters);
  std::vector<bool> is_counted(wan.link_count(), false);
  for (const Counter& c : counters) is_counted[c.link] = true;
  // Steps are over the most counters that a demand crosses, which is what SMART converges with.
  std::size_t most = 1;
  for (std::size_t d = 0; d < demands.size(); ++d) {
    if (paths.first_path[d] == paths.first_path[d + 1]) continue;
    const auto path = paths.path(paths.first_path[d]);
    most = std::max(most, static_cast<std::size_t>(std::ranges::count_if(
                              path, [&](std::uint32_t link) { return is_counted[link]; })));
  }
  std::vector<double> push(wan.link_count(), 0);  // log of counter over load
  std::tie(out.worst, out.worst_counter) = worst_of(counters, scales, out.loads);
  out.worst_before = out.worst;
  for (; out.worst > options.tolerance && out.rounds < options.rounds_max; ++out.rounds) {
    for (std::size_t c = 0; c < counters.size(); ++c) {
      const double load = out.loads[counters[c].link];
      // A counter of 0 takes its demands towards 0 without a logarithm of it.
      push[counters[c].link] =
          load > 0 ? std::log(std::max(counters[c].gbps, 1e-3 * load) / load) : 0;
    }
    for (std::size_t d = 0; d < demands.size(); ++d) {
      if (paths.first_path[d] == paths.first_path[d + 1]) continue;
      double sum = 0;
      for (const std::uint32_t link : paths.path(paths.first_path[d])) sum += push[link];
      out.demands[d].gbps *= std::exp(sum / static_cast<double>(most));
    }
    out.loads = loads_of(wan, out.demands, paths);
    std::tie(out.worst, out.worst_counter) = worst_of(counters, scales, out.loads);
  }
  return out;
}

std::string to_table(const Wan& wan, const std::vector<Counter>& counters, const CounterFit& fit,
                     std::size_t rows) {
  const std::vector<double> scales = scales_of(counters);
  std::vector<std::size_t> order(counters.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto off = [&](std::size_t c) {
    return (fit.loads[counters[c].link] - counters[c].gbps) / scales[c];
  };
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t c) { return std::abs(off(c)); });
  Table table({{"link", Table::Align::left}, {"counter"}, {"fitted"}, {"off"}});
  for (std::size_t i = 0; i < std::min(rows, order.size()); ++i) {
    const Counter& c = counters[order[i]];
    table.add({link_name(wan, c.link), fmt::format("{:.4g} Gbps", c.gbps),
               fmt::format("{:.4g} Gbps", fit.loads[c.link]),
               fmt::format("{:+.4f} %", 100 * off(order[i]))});
  }
  const auto total = [](const std::vector<Demand>& demands) {
    double sum = 0;
    for (const Demand& d : demands) sum += d.gbps;
    return sum;
  };
  return table.text() +
         fmt::format(
             "{} of {} counters, by distance\n\n{} demands, {:.4g} Gbps; worst counter off "
             "by {:.4f} %, by {:.3g} % before the fit; {} rounds\n{}",
             std::min(rows, order.size()), counters.size(), fit.demands.size(), total(fit.demands),
             100 * fit.worst, 100 * fit.worst_before, fit.rounds,
             fit.worst > 0.01 ? "more than 1 %: no demands on these paths agree with all "
                                "counters, or a demand is missing\n"
                              : "");
}

std::string to_json(const Wan& wan, const std::vector<Counter>& counters, const CounterFit& fit) {
  JsonList rows;
  for (const Counter& c : counters)
    rows.add(JsonObject()
                 .add("link", link_name(wan, c.link))
                 .add("counter_bps", bps(c.gbps))
                 .add("fitted_bps", bps(fit.loads[c.link])));
  return JsonObject()
             .add("worst", fit.worst)
             .add("worst_before", fit.worst_before)
             .add("worst_link", link_name(wan, counters[fit.worst_counter].link))
             .add("rounds", fit.rounds)
             .add("counters", rows)
             .text() +
         "\n";
}

}  // namespace weft::plan::backbone
