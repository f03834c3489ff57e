#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>

#include "base/csv.hpp"
#include "base/json_text.hpp"
#include "base/percent.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "plan/backbone/bulk.hpp"

namespace weft::plan::backbone {
namespace {

std::string bulk_rate(double gbps) { return human(Rate{static_cast<std::int64_t>(gbps * 1e9)}); }

double peak_of(const Loads& loads, std::size_t link, const Slots& slots) {
  const auto first = loads.begin() + static_cast<std::ptrdiff_t>(link * slots.count);
  return *std::max_element(first, first + slots.count);
}

// Without the transfers.
Loads loads_before(const BulkAnswer& answer, const Slots& slots) {
  Loads out = answer.load;
  for (const BulkAnswer::Send& one : answer.sends)
    for (const std::uint32_t l : one.links) out[l * slots.count + one.slot] -= one.gbps;
  return out;
}

JsonList rates_json(std::span<const double> gbps) {
  JsonList out;
  for (const double one : gbps) out.add(bps(one), digits(6));
  return out;
}

std::string value_text(const BulkAnswer& answer, const BulkOptions& options) {
  const bool is_mlu = options.objective == BulkObjective::mlu;
  const auto text = [&](double v) {
    return is_mlu ? fmt::format("{:.2f} %", 100 * v) : bulk_rate(v);
  };
  std::string out = fmt::format("{}: {}, {} against uniform ({}); background alone {}\n",
                                is_mlu ? "worst link and slot" : "sum of the links' peaks",
                                text(answer.value), percent_change(answer.value, answer.uniform, 1),
                                text(answer.uniform), text(answer.background));
  // What solvers leave above capacity is no shortage.
  const double least = 1e-6;
  const bool is_short = answer.over_gbps > least;
  if (is_short || answer.uniform_excess > least)
    out += fmt::format(
        "above capacity, over all links' peaks: {}, with uniform {}{}\n", bulk_rate(answer.excess),
        bulk_rate(answer.uniform_excess),
        is_short ? fmt::format("; the worst link by {}", bulk_rate(answer.over_gbps)) : "");
  return out + fmt::format("no plan{} below {} (gap {:.4f} %)\n",
                           is_short ? " with no more than that above capacity" : "",
                           text(answer.bound), 100 * answer.gap);
}

std::size_t late_count(const std::vector<Transfer>& transfers, const BulkAnswer& answer) {
  std::size_t out = 0;
  for (std::size_t i = 0; i < transfers.size(); ++i)
    out += answer.sent[i] < transfers[i].gbit * (1 - 1e-6) ? 1 : 0;
  return out;
}

}  // namespace

std::string to_table(const Wan& wan, const std::vector<Transfer>& transfers,
                     const BulkAnswer& answer, const BulkOptions& options, std::size_t rows) {
  Table table({{"link", Table::Align::left},
               {"capacity"},
               {"peak before"},
               {"with plan"},
               {"uniform"},
               {"use"}});
  std::vector<std::size_t> order(wan.link_count());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto use = [&](std::size_t l) {
    return peak_of(answer.load, l, options.slots) / wan.gbps(l);
  };
  std::ranges::stable_sort(order, std::greater<>{}, use);
  const Loads before = loads_before(answer, options.slots);
  for (std::size_t i = 0; i < std::min(rows, order.size()); ++i) {
    const std::size_t l = order[i];
    table.add({fmt::format("{}>{}", wan.sites[wan.from(l)], wan.sites[wan.to(l)]),
               bulk_rate(wan.gbps(l)), bulk_rate(peak_of(before, l, options.slots)),
               bulk_rate(peak_of(answer.load, l, options.slots)),
               bulk_rate(peak_of(answer.uniform_load, l, options.slots)),
               fmt::format("{:.1f} %", 100 * use(l))});
  }
  std::string out = table.text();
  if (rows < order.size())
    out += fmt::format("{} of {} links, by use; --rows shows more\n", rows, order.size());
  out += "\n" + value_text(answer, options);
  const std::size_t late = late_count(transfers, answer);
  out += fmt::format("{}, {} of them late; {}, ", counted(transfers.size(), "transfer"), late,
                     counted(answer.columns, "column"));
  if (options.store)
    out += fmt::format("{:.1f} % of the volume waits on its way, ", 100 * answer.waited);
  if (answer.replans > 0) out += fmt::format("planned {} times, ", answer.replans);
  return out +
         fmt::format("{}, {:.3f} s\n", counted(answer.iterations, "iteration"), answer.seconds);
}

std::string to_json(const Wan& wan, const std::vector<Transfer>& transfers,
                    const BulkAnswer& answer, const BulkOptions& options) {
  // Of values; of prices, per bit/s.
  const double unit = options.objective == BulkObjective::peaks ? bps(1) : 1;
  JsonList links, items;
  for (std::size_t l = 0; l < wan.link_count(); ++l) {
    const std::size_t first = l * options.slots.count, end = first + options.slots.count;
    JsonList load, price;
    for (std::size_t at = first; at < end; ++at) {
      load.add(bps(answer.load[at]));
      price.add(answer.price[at] * unit / bps(1));
    }
    links.add(JsonObject()
                  .add("src", wan.sites[wan.from(l)])
                  .add("dst", wan.sites[wan.to(l)])
                  .add("rate_bps", bps(wan.gbps(l)))
                  .add("load_bps", load)
                  .add("price", price));
  }
  for (std::size_t i = 0; i < transfers.size(); ++i)
    items.add(JsonObject()
                  .add("id", transfers[i].id)
                  .add("bytes", bytes_of(transfers[i].gbit))
                  .add("sent_bytes", bytes_of(answer.sent[i])));
  return JsonObject()
             .add("objective", options.objective)
             .add("value", unit * answer.value)
             .add("bound", unit * answer.bound)
             .add("gap", answer.gap)
             .add("background", unit * answer.background)
             .add("uniform", unit * answer.uniform)
             .add("excess_bps", bps(answer.excess))
             .add("uniform_excess_bps", bps(answer.uniform_excess))
             .add("excess_price", answer.excess_price)
             .add("over_bps", bps(answer.over_gbps))
             .add("late", late_count(transfers, answer))
             .add("waited", answer.waited)
             .add("columns", answer.columns)
             .add("replans", answer.replans)
             .add("iterations", answer.iterations)
             .add("seconds", answer.seconds)
             .add("transfers", items)
             .add("links", links)
             .text() +
         "\n";
}

std::string plan_json(const Wan& wan, const std::vector<Transfer>& transfers,
                      const BulkAnswer& answer, const BulkOptions& options) {
  const std::size_t slots = options.slots.count;
  Loads rates(transfers.size() * slots, 0.0);
  // A transfer to several sites counts each bit once, on however many links.
  for (const BulkAnswer::Send& one : answer.sends)
    if (one.stage == 0) rates[one.transfer * slots + one.slot] += one.gbps;
  const Loads before = loads_before(answer, options.slots);
  const auto row = [&](const Loads& loads, std::size_t at) {
    return rates_json(std::span(loads).subspan(at * slots, slots));
  };
  JsonList items, links;
  for (std::size_t i = 0; i < transfers.size(); ++i)
    items.add(JsonObject()
                  .add("release", transfers[i].release)
                  .add("deadline", transfers[i].deadline)
                  .add("rate_bps", row(rates, i)));
  for (std::size_t l = 0; l < wan.link_count(); ++l)
    links.add(JsonObject()
                  .add("before_bps", row(before, l))
                  .add("uniform_bps", row(answer.uniform_load, l)));
  return JsonObject()
      .add("slot_s", options.slots.seconds)
      .add("transfers", items)
      .add("links", links)
      .text();
}

std::string write_plan(const Wan& wan, const std::vector<Transfer>& transfers,
                       const BulkAnswer& answer) {
  std::string out = "id,slot,gbps,links,stage\n";
  for (const BulkAnswer::Send& one : answer.sends) {
    std::string links;
    for (const std::uint32_t l : one.links)
      links += fmt::format("{}{}>{}", links.empty() ? "" : ";", wan.sites[wan.from(l)],
                           wan.sites[wan.to(l)]);
    out += fmt::format("{},{},{},{},{}\n", csv_cell(transfers[one.transfer].id), one.slot, one.gbps,
                       csv_cell(links), one.stage);
  }
  return out;
}

}  // namespace weft::plan::backbone
