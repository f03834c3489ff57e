#include "plan/run/compute_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/csv.hpp"
#include "base/whole_number.hpp"

namespace weft::plan {
namespace {

constexpr double factor_max = 1e6;  // as that of slow GPUs (model/fabric/faults.hpp)

// The lower one of two in the middle would move a pair of ranks off 1; so their mean.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

std::optional<double> positive(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return {};
  return std::isfinite(value) && value > 0 ? std::optional(value) : std::nullopt;
}

}  // namespace

Result<std::vector<double>> read_compute_factors(std::string_view text, const std::string& file,
                                                 std::size_t ranks) {
  CsvReader csv(text, file);
  const std::array<std::string, 2> columns{"rank", "seconds"};
  const std::array<std::string, 1> others{"step"};
  WEFT_TRY_STATUS(csv.header(columns, others));
  std::vector<std::vector<double>> samples(ranks);
  while (csv.next()) {
    const Token rank = csv.cell(0), time = csv.cell(1);
    const auto number = whole_number<std::uint32_t>(trim(rank.text));
    if (!number || *number >= ranks)
      return fail(Errc::value, rank.where,
                  fmt::format("{} is not a rank of the job", quote(rank.text)),
                  fmt::format("write a number from 0 to {}", ranks - 1));
    const auto seconds = positive(trim(time.text));
    if (!seconds)
      return fail(Errc::value, time.where, fmt::format("{} is not a time", quote(time.text)),
                  "write seconds above 0, e.g. 0.182");
    samples[*number].push_back(*seconds);
  }
  if (csv.error() != nullptr) return std::unexpected(*csv.error());
  const auto without = std::ranges::find_if(samples, &std::vector<double>::empty);
  if (without != samples.end())
    return fail(
        Errc::value, {file, 0, 0},
        fmt::format("rank {} has no row; {} of {} ranks have none", without - samples.begin(),
                    std::ranges::count_if(samples, &std::vector<double>::empty), ranks),
        "give every rank of the job a row");
  std::vector<double> out;
  for (const std::vector<double>& of_rank : samples) out.push_back(median(of_rank));
  const double typical = median(out);
  for (double& factor : out)
    if (factor /= typical; factor > factor_max)
      return fail(
          Errc::value, {file, 0, 0},
          fmt::format("rank {} takes {:.3g} times as long as the median rank", &factor - out.data(),
                      factor),
          fmt::format("a factor must be at most {:.0e}; check the unit: seconds", factor_max));
  return out;
}

}  // namespace weft::plan
