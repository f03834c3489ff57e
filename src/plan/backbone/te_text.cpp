#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/csv.hpp"
#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "plan/backbone/te.hpp"

namespace weft::plan::backbone {
namespace {

std::string link_name(const Wan& wan, std::size_t l) {
  return fmt::format("{}>{}", wan.sites[wan.from(l)], wan.sites[wan.to(l)]);
}
std::string rate_text(double gbps) { return human(Rate{static_cast<std::int64_t>(gbps * 1e9)}); }

// By use, from high to low.
std::vector<std::size_t> busiest(const Wan& wan, const TeAnswer& answer) {
  std::vector<std::size_t> out(wan.link_count());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::ranges::stable_sort(out, std::greater<>{},
                           [&](std::size_t l) { return answer.load_gbps[l] / wan.gbps(l); });
  return out;
}

std::string summary(const ClassAnswer& one, const TeOptions& options) {
  const bool is_mlu = options.objective == Objective::mlu;
  const auto text = [&](double value) {
    return is_mlu ? fmt::format("{:.2f} %", 100 * value) : rate_text(value);
  };
  std::string out = options.by_class ? fmt::format("class {}: ", one.priority + 1) : "";
  out += is_mlu ? fmt::format("worst link at {}, no routing below {}", text(one.value),
                              text(one.bound))
                : fmt::format("{} sent of {}, no routing above {}", text(one.value),
                              rate_text(one.asked_gbps), text(one.bound));
  out += fmt::format(" (gap {:.4f} %; {} on any paths)\n", 100 * one.gap, text(one.all_paths));
  if (one.unroutable > 0)
    out += fmt::format("{} of {} {} no path: {}\n", one.unroutable, counted(one.demands, "demand"),
                       one.unroutable == 1 ? "has" : "have", rate_text(one.unroutable_gbps));
  out += fmt::format("{}, {}, {}, {:.3f} s\n", counted(one.demands, "demand"),
                     counted(one.paths, "path"), counted(one.iterations, "iteration"), one.seconds);
  return out;
}

double median_seconds(const TeAnswer& answer) {
  std::vector<double> seconds;
  for (const FailureAnswer& one : answer.failures) seconds.push_back(one.seconds);
  if (seconds.empty()) return 0;
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

std::string failure_table(const TeAnswer& answer, const TeOptions& options, std::size_t rows) {
  const bool is_mlu = options.objective == Objective::mlu;
  Table table({{"failure", Table::Align::left},
               {"cables"},
               {is_mlu ? "worst link" : "sent"},
               {"gap"},
               {"without a path"}});
  for (std::size_t i = 0; i < std::min(rows, answer.failures.size()); ++i) {
    const FailureAnswer& one = answer.failures[i];
    table.add({one.name, std::to_string(one.cables.size()),
               is_mlu ? fmt::format("{:.2f} %", 100 * one.value) : rate_text(one.value),
               fmt::format("{:.2f} %", 100 * one.gap),
               one.unroutable_gbps > 0 ? rate_text(one.unroutable_gbps) : "-"});
  }
  return "\n" + table.text() +
         fmt::format("{} failures, {} shown; median {:.1f} ms each\n", answer.failures.size(),
                     table.row_count(), 1e3 * median_seconds(answer));
}

// What an objective's value is in: bits per second, or a share. Prices are such units per bit/s.
double unit_of(const TeOptions& options) {
  return options.objective == Objective::throughput ? bps(1) : 1;
}

JsonObject class_json(const ClassAnswer& one, double unit) {
  return JsonObject()
      .add("class", one.priority + 1)
      .add("demands", one.demands)
      .add("paths", one.paths)
      .add("unroutable", one.unroutable)
      .add("asked_bps", bps(one.asked_gbps))
      .add("unroutable_bps", bps(one.unroutable_gbps))
      .add("sent_bps", bps(one.sent_gbps))
      .add("value", unit * one.value)
      .add("bound", unit * one.bound)
      .add("bound_all_paths", unit * one.all_paths)
      .add("gap", one.gap)
      .add("iterations", one.iterations)
      .add("seconds", one.seconds);
}

}  // namespace

std::string to_table(const Wan& wan, const TeAnswer& answer, const TeOptions& options,
                     std::size_t rows) {
  Table table({{"link", Table::Align::left}, {"capacity"}, {"load"}, {"use"}, {"price"}});
  const std::vector<std::size_t> order = busiest(wan, answer);
  for (std::size_t i = 0; i < std::min(rows, order.size()); ++i) {
    const std::size_t l = order[i];
    const double price = answer.classes.empty() ? 0 : answer.classes.back().price[l];
    table.add({link_name(wan, l), rate_text(wan.gbps(l)), rate_text(answer.load_gbps[l]),
               fmt::format("{:.1f} %", 100 * answer.load_gbps[l] / wan.gbps(l)),
               fmt::format("{:.4f}", price)});
  }
  std::string out = table.text();
  if (rows < order.size())
    out += fmt::format("{} of {} links, by use; --rows shows more\n", rows, order.size());
  out += "\n";
  for (const ClassAnswer& one : answer.classes) out += summary(one, options);
  if (options.failures) out += failure_table(answer, options, rows);
  return out;
}

std::string to_json(const Wan& wan, const TeAnswer& answer, const TeOptions& options) {
  const double unit = unit_of(options);
  JsonList classes, links, failures;
  for (const ClassAnswer& one : answer.classes) classes.add(class_json(one, unit));
  for (std::size_t l = 0; l < wan.link_count(); ++l) {
    JsonList price;
    for (const ClassAnswer& one : answer.classes) price.add(one.price[l] * unit / bps(1));
    links.add(JsonObject()
                  .add("src", wan.sites[wan.from(l)])
                  .add("dst", wan.sites[wan.to(l)])
                  .add("rate_bps", bps(wan.gbps(l)))
                  .add("load_bps", bps(answer.load_gbps[l]))
                  .add("price", price));
  }
  for (const FailureAnswer& one : answer.failures)
    failures.add(JsonObject()
                     .add("name", one.name)
                     .add("cables", one.cables)
                     .add("value", unit * one.value)
                     .add("gap", one.gap)
                     .add("unroutable_bps", bps(one.unroutable_gbps))
                     .add("seconds", one.seconds));
  JsonObject out;
  out.add("objective", options.objective)
      .add("k", options.paths)
      .add("path_seconds", answer.path_seconds)
      .add("classes", classes)
      .add("links", links);
  if (options.failures) out.add("failures", failures);
  return out.text() + "\n";
}

std::string write_prices(const Wan& wan, const TeAnswer& answer) {
  std::string out = "src,dst,gbps,class,price\n";
  for (const ClassAnswer& one : answer.classes)
    for (std::size_t l = 0; l < wan.link_count(); ++l)
      out +=
          fmt::format("{},{},{},{},{}\n", csv_cell(wan.sites[wan.from(l)]),
                      csv_cell(wan.sites[wan.to(l)]), wan.gbps(l), one.priority + 1, one.price[l]);
  return out;
}

}  // namespace weft::plan::backbone
