#include "workload/collective/perf_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace weft::workload {
namespace {

constexpr std::uint64_t type_bytes = 4;  // float

// What one rank counts: of its own part where the result is the sum of the parts.
std::uint64_t count_of(Op op, std::uint64_t bytes, std::uint32_t ranks) {
  const bool is_part = op == Op::all_gather || op == Op::reduce_scatter || op == Op::all_to_all;
  return bytes / type_bytes / (is_part ? ranks : 1);
}

std::string_view redop_of(Op op) {
  return op == Op::all_reduce || op == Op::reduce_scatter ? "sum" : "none";
}

double average_busbw(std::span<const PerfRow> rows) {
  double sum = 0;
  for (const PerfRow& row : rows) sum += row.busbw_GBps;
  return rows.empty() ? 0 : sum / static_cast<double>(rows.size());
}

}  // namespace

Result<std::vector<Bytes>> sizes_of(const Sweep& sweep) {
  if (sweep.begin.count < 1 || sweep.begin > sweep.end ||
      static_cast<double>(sweep.end.count) > collective_bytes_max)
    return fail(Errc::value, {},
                fmt::format("no sizes between {} and {}", to_text(sweep.begin), to_text(sweep.end)),
                "start at 1 B or more, and end at or above the start");
  if (sweep.step.count < 0 || (sweep.step.count == 0 && sweep.factor < 2))
    return fail(Errc::value, {}, "the sizes do not increase",
                "use a factor of 2 or more, or a step");
  std::vector<Bytes> sizes;
  for (std::int64_t size = sweep.begin.count; size <= sweep.end.count;) {
    if (sizes.size() == perf_row_count_max)
      return fail(Errc::value, {}, fmt::format("more than {} sizes", perf_row_count_max),
                  "use a larger step");
    sizes.push_back({size});
    const std::int64_t room = INT64_MAX - size;
    if (sweep.step.count > 0 ? sweep.step.count > room : size > INT64_MAX / sweep.factor) break;
    size = sweep.step.count > 0 ? size + sweep.step.count : size * sweep.factor;
  }
  return sizes;
}

Result<std::vector<PerfRow>> perf_rows(const PerfRequest& request) {
  WEFT_TRY(const std::vector<Bytes> sizes, sizes_of(request.sweep));
  std::vector<PerfRow> rows;
  rows.reserve(sizes.size());
  for (const Bytes size : sizes) {
    const auto bytes = static_cast<double>(size.count);
    PerfRow row;
    double seconds = 0;
    if (request.at_line_rate) {
      WEFT_TRY(PerfRequest::LineRate call, request.at_line_rate(bytes));
      seconds = call.seconds;
      row.algorithm = std::move(call.algorithm);
      row.channels = call.channels;
      row.why = "line rate: the rule of the operation";
    } else {
      WEFT_TRY(PlannedCall call, plan_call(request.machine, request.op, bytes, request.rules));
      seconds = call.cost.seconds();
      if (request.on_fabric) {
        WEFT_TRY(seconds, request.on_fabric(call, bytes));
      }
      row.algorithm = std::move(call.pick.algorithm);
      row.protocol = call.pick.protocol;
      row.channels = call.pick.channels;
      row.why = std::move(call.pick.why);
    }
    row.size_bytes = static_cast<std::uint64_t>(size.count);
    row.time_us = seconds * 1e6;
    row.algbw_GBps = bytes / seconds / 1e9;
    row.busbw_GBps = row.algbw_GBps * busbw_factor(request.op, request.machine.shape.ranks);
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<Anchor> parse_anchor(const Token& token) {
  const auto parts = split(token.text, '=');
  if (parts.size() != 2)
    return fail(Errc::parse, token.where, fmt::format("\"{}\" is not SIZE=BUSBW", token.text),
                "write an nccl-tests row as, e.g., 4M=132.41 (GB/s)");
  WEFT_TRY(const Bytes size, parse_nccl_size({parts[0], token.where}));
  WEFT_TRY(const double busbw, parse_number({parts[1], token.where}));
  if (size.count < 1 || !(busbw > 0))
    return fail(Errc::value, token.where,
                fmt::format("\"{}\": size and bandwidth must be positive", token.text));
  return Anchor{size, busbw};
}

Result<PerfRequest> calibrate(PerfRequest request, const Anchor& anchor) {
  const auto bytes = static_cast<double>(anchor.size.count);
  Machine& machine = request.machine;
  WEFT_TRY(const Pick chosen,
           pick(machine.system, machine.shape, request.op, bytes, request.rules));
  const double algbw = anchor.busbw_GBps * 1e9 / busbw_factor(request.op, machine.shape.ranks);
  WEFT_TRY(machine.system,
           calibrate(machine.system, machine.shape,
                     {request.op, chosen.algorithm, chosen.protocol, bytes}, bytes / algbw));
  return request;
}

namespace {

// nccl-tests print times with about four digits in seven places.
std::string time_cell(double us) {
  const int decimals = us >= 9999.95 ? 0 : us >= 99.995 ? 1 : 2;
  return fmt::format("{:7.{}f}", us, decimals);
}

}  // namespace

std::string nccl_table(const PerfRequest& request, std::span<const PerfRow> rows) {
  const auto column_heads = [](std::string_view a, std::string_view b, std::string_view c,
                               std::string_view d, std::string_view e, std::string_view time,
                               std::string_view rate, std::string_view wrong) {
    const std::string half = fmt::format("  {:>7}  {:>6}  {:>6}  {:>6}", time, rate,
                                         rate == "algbw" ? "busbw" : rate, wrong);
    return fmt::format("# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", a, b, c, d, e, half, half);
  };
  const GroupShape& shape = request.machine.shape;
  std::string out = fmt::format(
      "# weft perf {}: predicted by a model, nothing was run\n"
      "# system {}: {} ranks, {} host(s) with {} GPUs and {} NICs each\n#\n",
      to_text(request.op), request.machine.system.name, shape.ranks, shape.hosts,
      shape.gpus_per_host, shape.nics_per_host);
  out += fmt::format(
      "# {:>10}  {:>12}  {:>8}  {:>6}  {:>6}           out-of-place"
      "                       in-place          \n",
      "", "", "", "", "");
  out += column_heads("size", "count", "type", "redop", "root", "time", "algbw", "#wrong");
  out += column_heads("(B)", "(elements)", "", "", "", "(us)", "(GB/s)", "");
  const int root = request.op == Op::broadcast ? 0 : -1;
  for (const PerfRow& row : rows) {
    const std::string half = fmt::format("  {}  {:6.2f}  {:6.2f}    N/A", time_cell(row.time_us),
                                         row.algbw_GBps, row.busbw_GBps);
    out += fmt::format("{:>12}  {:>12}  {:>8}  {:>6}  {:>6}{}{}\n", row.size_bytes,
                       count_of(request.op, row.size_bytes, shape.ranks), "float",
                       redop_of(request.op), root, half, half);
  }
  out += fmt::format("# {:<20} : N/A\n# {:<20} : {:g} \n#\n", "Out of bounds values",
                     "Avg bus bandwidth", average_busbw(rows));
  return out;
}

std::vector<Compared> compare(std::span<const PerfRow> rows, const MeasuredTable& measured) {
  std::map<std::uint64_t, double> ours;
  for (const PerfRow& row : rows) ours[row.size_bytes] = row.busbw_GBps;
  std::vector<Compared> pairs;
  for (const MeasuredRow& row : measured.rows) {
    const auto found = ours.find(row.size_bytes);
    // Small rows round to 0.00 GB/s; their time says more.
    const double busbw = row.time_us > 0 && row.algbw_GBps > 0 && row.busbw_GBps > 0
                             ? static_cast<double>(row.size_bytes) / row.time_us / 1e3 *
                                   (row.busbw_GBps / row.algbw_GBps)
                             : row.busbw_GBps;
    if (found != ours.end() && busbw > 0) pairs.push_back({row.size_bytes, busbw, found->second});
  }
  return pairs;
}

std::vector<BandError> errors_by_band(std::span<const Compared> rows) {
  struct Band {
    std::string_view name;
    std::uint64_t end;  // first size beyond
  };
  constexpr std::uint64_t mib = 1 << 20;
  constexpr std::array<Band, 4> bands{{{"<= 1 MiB", 2 * mib},
                                       {"2-32 MiB", 64 * mib},
                                       {"64-512 MiB", 1024 * mib},
                                       {">= 1 GiB", UINT64_MAX}}};
  std::vector<BandError> out;
  std::uint64_t begin = 0;
  for (const Band& band : bands) {
    std::vector<double> errors;
    for (const Compared& row : rows)
      if (row.size_bytes >= begin && row.size_bytes < band.end)
        errors.push_back(std::abs(row.error()));
    begin = band.end;
    if (errors.empty()) continue;
    std::ranges::sort(errors);
    const std::size_t n = errors.size();
    const double median = (errors[(n - 1) / 2] + errors[n / 2]) / 2;
    out.push_back({band.name, n, median, errors.back()});
  }
  return out;
}

std::span<const BandError> published_errors() {
  static constexpr std::array<BandError, 4> known{{{"<= 1 MiB", 9, 0.047, 0.148},
                                                   {"2-32 MiB", 10, 0.037, 0.145},
                                                   {"64-512 MiB", 13, 0.024, 0.124},
                                                   {">= 1 GiB", 49, 0.014, 0.096}}};
  return known;
}

std::string comparison_table(std::span<const Compared> rows) {
  Table table({{"size"}, {"measured GB/s"}, {"model GB/s"}, {"error"}});
  for (const Compared& row : rows)
    table.add({human(Bytes{static_cast<std::int64_t>(row.size_bytes)}),
               fmt::format("{:.2f}", row.measured_GBps), fmt::format("{:.2f}", row.model_GBps),
               fmt::format("{:+.1f} %", row.error() * 100)});
  // "+7.9 %" alone does not say whether that is usual.
  Table bands({{"band", Table::Align::left},
               {"rows"},
               {"median"},
               {"worst"},
               {"published median"},
               {"published worst"}});
  for (const BandError& band : errors_by_band(rows)) {
    const BandError& known = *std::ranges::find(published_errors(), band.band, &BandError::band);
    bands.add(
        {std::string(band.band), std::to_string(band.rows),
         fmt::format("{:.1f} %", band.median * 100), fmt::format("{:.1f} %", band.worst * 100),
         fmt::format("{:.1f} %", known.median * 100), fmt::format("{:.1f} %", known.worst * 100)});
  }
  return table.text() + "\n" + bands.text();
}

std::string perf_json(const PerfRequest& request, std::span<const PerfRow> rows,
                      std::span<const Compared> compared) {
  using nlohmann::ordered_json;
  ordered_json out;
  out["op"] = to_text(request.op);
  out["system"] = request.machine.system.name;
  out["ranks"] = request.machine.shape.ranks;
  out["hosts"] = request.machine.shape.hosts;
  out["rows"] = ordered_json::array();
  for (const PerfRow& row : rows) {
    ordered_json one{{"size_bytes", row.size_bytes},
                     {"time_s", row.time_us / 1e6},
                     {"algbw_GBps", row.algbw_GBps},
                     {"busbw_GBps", row.busbw_GBps},
                     {"algorithm", row.algorithm}};
    if (row.protocol) one["protocol"] = to_text(*row.protocol);
    one["channels"] = row.channels;
    one["why"] = row.why;
    out["rows"].push_back(std::move(one));
  }
  out["avg_busbw_GBps"] = average_busbw(rows);
  for (const Compared& row : compared)
    out["compared"].push_back({{"size_bytes", row.size_bytes},
                               {"measured_busbw_GBps", row.measured_GBps},
                               {"model_busbw_GBps", row.model_GBps},
                               {"error", row.error()}});
  for (const BandError& band : errors_by_band(compared))
    out["bands"].push_back(
        {{"band", band.band}, {"rows", band.rows}, {"median", band.median}, {"worst", band.worst}});
  return out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace weft::workload
