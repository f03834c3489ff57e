#include "workload/serving/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/csv.hpp"
#include "base/text.hpp"

namespace weft::workload {
namespace {

constexpr std::int64_t tokens_max = std::int64_t{1} << 24;
constexpr double time_us_max = 1e9;
constexpr std::size_t grid_cells_max = std::size_t{1} << 18;

// One file; errors go to the common list.
class ProfileCsv {
 public:
  ProfileCsv(const ProfileText& file, const std::vector<std::string>& columns, Errors& errors)
      : csv_(file.text, file.file), file_(file.file), columns_(columns), errors_(errors) {
    if (const Status ok = csv_.header(columns, {}); !ok) stop(ok.error());
  }

  bool next() {
    if (stopped_ || errors_.size() >= errors_max) return false;
    if (csv_.next()) return ++rows_ > 0;
    if (csv_.error() != nullptr)
      stop(*csv_.error());
    else if (rows_ == 0)
      stop({Errc::value, {file_, 0, 0}, "there are no rows", "profile the kernels first", {}});
    return false;
  }
  std::string text(std::size_t column) const { return std::string(trim(csv_.cell(column).text)); }
  std::uint32_t count(std::size_t column, std::int64_t least) {
    const auto value = parse_count(csv_.cell(column));
    if (!value) return add(value.error()), 0;
    if (*value >= least && *value <= tokens_max) return static_cast<std::uint32_t>(*value);
    add({Errc::value,
         csv_.cell(column).where,
         fmt::format("{} is {}, and must be {} to {}", columns_[column], *value, least, tokens_max),
         "",
         {}});
    return 0;
  }
  // Seconds.
  double time(std::size_t column) {
    const auto value = parse_number(csv_.cell(column));
    if (!value) return add(value.error()), 0;
    if (*value > 0 && *value <= time_us_max) return *value * 1e-6;
    add({Errc::value,
         csv_.cell(column).where,
         fmt::format("time_us is {}, and must be above 0 and at most {}", *value, time_us_max),
         "remove the row, or measure it again",
         {}});
    return 0;
  }
  void repeated(const std::string& what) {
    add({Errc::value, csv_.where(), what + " is listed a second time", "keep one of the rows", {}});
  }
  void add(Error error) { errors_.push_back(std::move(error)); }

 private:
  void stop(Error error) {
    add(std::move(error));
    stopped_ = true;
  }

  CsvReader csv_;
  std::string file_;
  std::vector<std::string> columns_;
  Errors& errors_;
  std::size_t rows_ = 0;
  bool stopped_ = false;
};

std::vector<KernelProfile::Layer> read_lines(const ProfileText& file, const char* by,
                                             Errors& errors) {
  ProfileCsv csv(file, {"layer", by, "time_us"}, errors);
  std::map<std::string, std::map<double, double>> layers;
  while (csv.next()) {
    const std::string layer = csv.text(0);
    const std::uint32_t x = csv.count(1, 1);
    const double seconds = csv.time(2);
    if (x > 0 && !layers[layer].emplace(x, seconds).second)
      csv.repeated(fmt::format("{} of {} {}", quote(layer), x, by));
  }
  std::vector<KernelProfile::Layer> out;
  for (const auto& [name, points] : layers) {
    std::vector<double> x, y;
    for (const auto& [at, seconds] : points) x.push_back(at), y.push_back(seconds);
    if (!x.empty()) out.push_back({name, LineTable(std::move(x), std::move(y))});
  }
  return out;
}

std::vector<GridTable::Row> read_grid(const ProfileText& file, Errors& errors) {
  ProfileCsv csv(file, {"prefill_chunk", "kv_prefill", "n_decode", "kv_decode", "time_us"}, errors);
  std::vector<GridTable::Row> rows;
  std::set<GridPoint> known;
  std::array<std::set<std::uint32_t>, grid_axes> axes;
  while (csv.next()) {
    GridTable::Row row{};
    for (std::size_t a = 0; a < grid_axes; ++a) axes[a].insert(row.at[a] = csv.count(a, 0));
    row.value = csv.time(4);
    if (!known.insert(row.at).second) csv.repeated("this point");
    rows.push_back(row);
  }
  std::size_t cells = 1;
  for (const auto& axis : axes) cells *= std::min(axis.size() + 1, grid_cells_max);
  if (cells > grid_cells_max)
    errors.push_back({Errc::value,
                      {file.file, 0, 0},
                      fmt::format("the grid has {} cells, and may have {}", cells, grid_cells_max),
                      "measure at fewer different values of each column",
                      {}});
  return rows;
}

double times_per_step(const std::string& layer, std::uint32_t layers) {
  if (layer == "embedding" || layer == "final_layernorm") return 1;
  return (layer == "layernorm" ? 2.0 : 1.0) * layers;
}

}  // namespace

double KernelProfile::dense_seconds(double tokens, std::uint32_t layers) const {
  double sum = 0;
  for (const Layer& layer : dense)
    sum += times_per_step(layer.name, layers) * layer.seconds.at(tokens);
  return sum;
}

double KernelProfile::per_sequence_seconds(double sequences) const {
  double sum = 0;
  for (const Layer& layer : per_sequence) sum += layer.seconds.at(sequences);
  return sum;
}

Result<KernelProfile> read_profile(const ProfileText& dense, const ProfileText& per_sequence,
                                   const ProfileText& attention) {
  Errors errors;
  auto by_tokens = read_lines(dense, "tokens", errors);
  auto by_sequences = read_lines(per_sequence, "sequences", errors);
  const auto rows = read_grid(attention, errors);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return KernelProfile{std::move(by_tokens), std::move(by_sequences), GridTable(rows)};
}

}  // namespace weft::workload
