// A scenario over the cartesian product of some of its keys.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.hpp"
#include "base/progress.hpp"
#include "model/scenario/scenario.hpp"
#include "model/work/outcome.hpp"

namespace weft::plan {

struct Prices;

inline constexpr std::size_t sweep_points_max = 100'000;

// One combination of values.
struct SweepPoint {
  std::vector<std::pair<std::string, std::string>> values;  // key path, value as written
  model::ScenarioFile scenario;
};

// `sweep: {fabric.spines: [16, 18], routing.qps: [1, 4]}`; the last key varies fastest. The values
// hold in every variant. Fails: Errc::parse on keys without a list, Errc::value on an empty list
// or more than sweep_points_max points, and on keys that no scenario has at its top level.
Result<std::vector<SweepPoint>> sweep_points(const model::ScenarioFile& file);

// Of the fabric of one variant, by a price table.
struct SweepCost {
  double price = 0, watts = 0;
};

// Builds the fabric. Fails: as model::build_fabric() and plan::bill_of().
Result<SweepCost> cost_of(const Config& fabric, const Prices& prices);

// What one job of one variant made of one point; an error in its place where the point cannot run,
// beside it where transfers of the variant could not finish. Numbers that it does not have are
// none: training jobs alone have those from mfu on, services those from ttft_p99_s on, and a price
// table gives price and watts.
struct SweepRow {
  std::vector<std::string> values;  // by key
  std::string variant, job;
  std::optional<double> time_s, algbw_gbyte_s, busbw_gbyte_s, roofline_s, ratio, worst_mmr;
  std::optional<double> mfu, tflops_per_gpu, tokens_per_s_per_gpu, bubble;
  std::optional<double> ttft_p99_s, tpot_p99_s, e2e_p99_s, output_tokens_per_s;
  std::optional<double> goodput_per_s, kept, token_cost;  // of a million output tokens
  std::optional<double> price, watts;
  std::optional<model::Estimate> estimate;  // where times are extrapolated from a part
  std::string error;                        // one line; empty when it ran
  // Among the rows of the same job and work: no other is at least as good in time, price and power
  // and better in one of them; and of those, the first with the most iterations per price.
  bool on_front = false, is_best = false;
};

// As a journal keeps it (plan/sweep/journal.hpp): without the front, which needs all rows.
template <class Archive, Of<SweepRow> T>
void fields(Archive& ar, T& row) {
  ar("values", row.values);
  ar.if_set("variant", row.variant);
  ar.if_set("job", row.job);
  for (const auto& [name, value] :
       {std::pair{"time_s", &row.time_s}, std::pair{"algbw_GBps", &row.algbw_gbyte_s},
        std::pair{"busbw_GBps", &row.busbw_gbyte_s}, std::pair{"roofline_s", &row.roofline_s},
        std::pair{"ratio", &row.ratio}, std::pair{"worst_mmr", &row.worst_mmr},
        std::pair{"mfu", &row.mfu}, std::pair{"tflops_per_gpu", &row.tflops_per_gpu},
        std::pair{"tokens_per_s_per_gpu", &row.tokens_per_s_per_gpu},
        std::pair{"bubble", &row.bubble}, std::pair{"ttft_p99_s", &row.ttft_p99_s},
        std::pair{"tpot_p99_s", &row.tpot_p99_s}, std::pair{"e2e_p99_s", &row.e2e_p99_s},
        std::pair{"output_tokens_per_s", &row.output_tokens_per_s},
        std::pair{"goodput_per_s", &row.goodput_per_s}, std::pair{"kept", &row.kept},
        std::pair{"token_cost", &row.token_cost}, std::pair{"cost", &row.price},
        std::pair{"watts", &row.watts}})
    ar.if_set(name, *value);
  ar.if_set("estimate", row.estimate);
  ar.if_set("error", row.error);
}

// By point; none: it did not run yet.
using PointRows = std::vector<std::optional<std::vector<SweepRow>>>;

// Whether rows with different values of the key do different work, so that their times say nothing
// about a design: a seed, and what jobs are (bytes, model, batch), not how they run (parallel,
// place, algorithm, ...).
bool changes_work(std::string_view key);

struct SweepResult {
  std::vector<std::string> keys;
  std::vector<std::string> work_keys;  // those of them that change the work
  std::vector<SweepRow> rows;          // in order of points, whatever thread ran them
  std::size_t failed_points = 0;
  std::vector<std::size_t> missing_points;  // not run, in order
  std::string currency;                     // of the costs; empty: no prices were asked for
};

// Rows without the values of the keys, and without costs.
using RunPoint = std::function<Result<std::vector<SweepRow>>(const model::ScenarioFile&)>;
// One for each job of each variant.
std::vector<SweepRow> rows_of_run(const model::Outcome& outcome);
// Each variant of a scenario with `inference:`, as `weft infer` has it: the service, then the jobs
// beside it. Fails: as infer().
Result<std::vector<SweepRow>> run_services(const model::ScenarioFile& file);
// Serves scenarios with `inference:`, and has the others run.
RunPoint run_or_serve(std::function<Result<model::Outcome>(const model::ScenarioFile&)> run);
using PriceVariant = std::function<Result<SweepCost>(const model::Scenario&)>;

// The part of a sweep that one of several machines runs: every `of`-th point.
struct SweepShard {
  std::uint32_t number = 1, of = 1;  // 1 to `of`
  bool has(std::size_t point) const { return point % of == number - 1; }
  bool is_whole() const { return of == 1; }
};
// "3/8". Fails: Errc::parse.
Result<SweepShard> read_shard(const std::string& text);

struct SweepOptions {
  std::uint32_t threads = 1;
  Progress::Show progress = Progress::Show::never;
  SweepShard shard = {};
  PriceVariant price = {};
  // Asked before every point: true leaves the rest out.
  std::function<bool()> is_stopped = {};
  // Called with each point that ended and all rows so far, by one thread at a time.
  std::function<void(std::size_t point, const PointRows& rows)> point_ended = {};
};

// Runs every point of the shard that `rows` lack, on several threads; `run` must be safe to call
// from several at once. A point that fails becomes a row with its error, and the others go on; so
// does a variant that `price` refuses.
void run_points(const std::vector<SweepPoint>& points, const RunPoint& run,
                const SweepOptions& options, PointRows& rows);

// All rows in order, with the Pareto front of each job.
SweepResult sweep_result(std::vector<std::string> keys, const PointRows& rows,
                         std::string currency = {});

std::string to_table(const SweepResult& result);
std::string to_csv(const SweepResult& result);
std::string to_json(const SweepResult& result);
// What is drawn: the column of that name in the CSV, over the values of that key. Empty: goodput,
// or TTFT, of services and the time of jobs; the first key.
struct SweepPlot {
  std::string column, key;
};
// Fails: Errc::unknown on a name that is no column or no key of the sweep.
Status check_plot(const std::vector<std::string>& keys, const SweepPlot& plot);
// A line for each combination of the other keys, the variants and the jobs that have the column;
// rows that failed are left out. Numbers with one unit are at their place, others side by side.
// Fails: as check_plot(); Errc::value where no row has a value.
Result<std::string> to_svg(const SweepResult& result, const SweepPlot& plot);
// The first line of to_csv() and one of the others; the front stands in it once it is known.
std::string csv_head(const std::vector<std::string>& keys, bool priced);
std::string csv_row(const SweepRow& row, bool priced);

}  // namespace weft::plan
