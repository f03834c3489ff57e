#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/csv.hpp"
#include "base/text.hpp"
#include "base/whole_number.hpp"
#include "plan/backbone/wan.hpp"

namespace weft::plan::backbone {
namespace {

// The rows of a file, each with the number of its time.
struct TimedDemands {
  std::vector<std::string> times;  // one, "", where the file has no times
  std::vector<Demand> demands;
  std::vector<std::uint32_t> time;

  bool has_times() const { return times.size() > 1 || (times.size() == 1 && !times[0].empty()); }
};

class DemandReader {
 public:
  explicit DemandReader(const Wan& wan) : names_(wan) {}

  Result<TimedDemands> read(CsvReader& csv) {
    const std::vector<std::string> required{"src", "dst", "rate"},
        optional{"class", "cause", "time"};
    WEFT_TRY_STATUS(csv.header(required, optional));
    while (csv.next() && errors_.size() < errors_max) read_row(csv);
    if (csv.error() != nullptr) errors_.push_back(*csv.error());
    if (errors_.empty() && out_.times.size() > 1 && numbers_.contains(""))
      keep(Errc::value, timeless_, "a demand without a time", "give all of them one, or none");
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(out_);
  }

 private:
  void keep(Errc code, const Where& where, std::string what, std::string hint) {
    errors_.push_back({code, where, std::move(what), std::move(hint), {}});
  }
  template <class T>
  std::optional<T> take(Result<T> result) {
    if (result) return std::move(*result);
    errors_.push_back(std::move(result.error()));
    return std::nullopt;
  }

  void read_row(const CsvReader& csv) {
    const std::size_t before = errors_.size();
    const auto from = take(names_.find(csv.cell(0).text, csv.cell(0).where));
    const auto to = take(names_.find(csv.cell(1).text, csv.cell(1).where));
    const auto rate = take(parse_rate(csv.cell(2)));
    const Token priority = csv.cell(3), cause = csv.cell(4);
    const auto number = priority.text.empty() ? std::optional<unsigned>(class_count)
                                              : whole_number<unsigned>(priority.text);
    if (!number || *number < 1 || *number > class_count)
      keep(Errc::value, priority.where, fmt::format("{} is not a class", quote(priority.text)),
           "write 1 (served first) to 4");
    const auto why = cause.text.empty() ? Cause::other : take(from_name<Cause>(cause));
    if (errors_.size() == before && *from == *to)
      keep(Errc::value, csv.where(), "a demand to its own site", "remove it");
    const std::uint32_t time = time_of(csv.cell(5));
    if (errors_.size() > before) return;
    out_.demands.push_back({*from, *to, static_cast<double>(rate->bps) * 1e-9,
                            static_cast<std::uint8_t>(*number - 1), *why});
    out_.time.push_back(time);
  }

  std::uint32_t time_of(const Token& token) {
    const auto [at, is_new] = numbers_.emplace(token.text, out_.times.size());
    if (is_new) out_.times.emplace_back(token.text);
    if (is_new && token.text.empty()) timeless_ = token.where;
    return at->second;
  }

  const SiteNames names_;
  TimedDemands out_;
  std::map<std::string, std::uint32_t, std::less<>> numbers_;  // of each time
  Where timeless_;
  Errors errors_;
};

// The number of the time asked for, or of that with the largest sum.
Result<std::uint32_t> choose_time(const TimedDemands& file, const std::string& time) {
  if (!time.empty()) {
    const auto at = std::ranges::find(file.times, time);
    if (at != file.times.end()) return static_cast<std::uint32_t>(at - file.times.begin());
    if (!file.has_times())
      return fail(Errc::unknown, {"--at", 0, 0}, "the demands have no times",
                  "leave it out, or add the column time");
    return fail(Errc::unknown, {"--at", 0, 0}, fmt::format("no interval {}", quote(time)),
                fmt::format("use {} to {}", file.times.front(), file.times.back()));
  }
  std::vector<double> sums(std::max<std::size_t>(file.times.size(), 1), 0);
  for (std::size_t i = 0; i < file.demands.size(); ++i) sums[file.time[i]] += file.demands[i].gbps;
  return static_cast<std::uint32_t>(std::ranges::max_element(sums) - sums.begin());
}

}  // namespace

Result<std::vector<Demand>> read_demands(std::string_view text, const std::string& file,
                                         const Wan& wan, const std::string& time) {
  CsvReader csv(text, file);
  WEFT_TRY(const TimedDemands all, DemandReader(wan).read(csv));
  WEFT_TRY(const std::uint32_t chosen, choose_time(all, time));
  std::vector<Demand> out;
  for (std::size_t i = 0; i < all.demands.size(); ++i)
    if (all.time[i] == chosen && all.demands[i].gbps > 0) out.push_back(all.demands[i]);
  return out;
}

Result<Series> read_demand_series(std::string_view text, const std::string& file, const Wan& wan) {
  CsvReader csv(text, file);
  WEFT_TRY(TimedDemands all, DemandReader(wan).read(csv));
  if (!all.has_times())
    return fail(Errc::parse, {file, 1, 1}, "no matrices, and no demands with times",
                "name the columns time and SRC>DST, or src, dst, rate and time");
  Series out{.pairs = {}, .times = std::move(all.times), .mbps = {}};
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> columns;
  for (const Demand& d : all.demands)
    if (columns.try_emplace({d.from, d.to}, out.pairs.size()).second)
      out.pairs.push_back({d.from, d.to});
  // As many times as rows at most, and as many pairs.
  if (out.times.size() * out.pairs.size() > series_cells_max)
    return fail(Errc::unsupported, {file, 1, 1},
                fmt::format("{} times of {} pairs", out.times.size(), out.pairs.size()),
                "split the file by time");
  std::vector<double> sums(out.times.size() * out.pairs.size(), 0);
  for (std::size_t i = 0; i < all.demands.size(); ++i) {
    const Demand& d = all.demands[i];
    sums[all.time[i] * out.pairs.size() + columns.at({d.from, d.to})] += 1e3 * d.gbps;
  }
  for (const double mbps : sums) out.mbps.push_back(static_cast<float>(mbps));
  return out;
}

std::string write_demands(const Wan& wan, const std::vector<Demand>& demands) {
  const bool has_cause =
      std::ranges::any_of(demands, [](const Demand& d) { return d.cause != Cause::other; });
  std::string out = has_cause ? "src,dst,rate,class,cause\n" : "src,dst,rate,class\n";
  for (const Demand& d : demands)
    out += fmt::format("{},{},{} bps,{}{}{}\n", csv_cell(wan.sites[d.from]),
                       csv_cell(wan.sites[d.to]), std::llround(d.gbps * 1e9), d.priority + 1,
                       has_cause ? "," : "", has_cause ? to_text(d.cause) : "");
  return out;
}

}  // namespace weft::plan::backbone
