#include "plan/run/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "plan/run/placement.hpp"

namespace weft::plan {
namespace {

constexpr std::size_t job_count_max = 4096;
constexpr std::int64_t repeat_max = 1'000'000;

class JobReader {
 public:
  JobReader(const model::Fabric& fabric, std::uint64_t seed, Duration step_overhead)
      : fabric_(fabric),
        placer_(fabric),
        rng_(Rng(seed).stream("placement")),
        step_overhead_(step_overhead) {}

  Result<std::vector<PlacedJob>> read(const Config& jobs) {
    if (jobs.kind != Config::Kind::list)
      return fail(Errc::parse, jobs.where, "jobs must be a list",
                  "write \"jobs:\" and one \"- {name: ..., collective: ...}\" per job");
    if (jobs.items.empty() || jobs.items.size() > job_count_max)
      return fail(Errc::value, jobs.where,
                  fmt::format("{} jobs; 1 to {} can be run", jobs.items.size(), job_count_max));
    for (const Config& item : jobs.items) read_job(item);
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(jobs_);
  }

 private:
  void read_job(const Config& item) {
    const std::size_t errors_before = errors_.size();
    Reader reader(item, "job", errors_);
    PlacedJob placed;
    placed.job.name = reader.text("name", std::nullopt);
    if (reader.has("name") && placed.job.name.empty())
      reader.error(Errc::value, reader.where("name"), "the name is empty",
                   "give every job a name; reports are ordered by it");
    if (!names_.insert(placed.job.name).second)
      reader.error(Errc::value, reader.where("name"),
                   fmt::format("two jobs are called \"{}\"", placed.job.name),
                   "give every job a name of its own");
    for (const char* key : {"model", "workload"})
      if (const Config* child = reader.child(key))
        reader.error(Errc::unsupported, child->where,
                     fmt::format("jobs with \"{}:\" cannot be run by this version", key),
                     "describe the job by \"collective:\", \"gpus:\" and \"bytes:\"");
    const std::vector<std::string> ops = workload::op_names();
    placed.op = static_cast<workload::Op>(reader.choice("collective", ops, std::nullopt));
    workload::Request request{.op = placed.op};
    request.algorithm = reader.text("algorithm", "auto");
    request.channels = static_cast<std::uint32_t>(reader.count("channels", 0, 0, 1024));
    request.window = static_cast<std::uint32_t>(reader.count("window", 1, 1, 1'000'000));
    placed.bytes = static_cast<double>(reader.bytes("bytes", std::nullopt).count);
    request.bytes = placed.bytes;
    placed.job.iterations = static_cast<std::uint32_t>(reader.count("repeat", 1, 1, repeat_max));
    placed.job.start = Time{reader.duration("start", Duration{}).ps};
    placed.job.step_overhead = step_overhead_;
    read_placement(reader, placed);
    read_late(reader, placed);
    reader.finish();
    if (errors_.size() > errors_before) return;
    request.ranks = placed.job.ranks;
    auto traffic = workload::build_traffic(fabric_, request);
    if (!traffic) {
      Error error = std::move(traffic).error();
      if (error.where.line == 0) error.where = item.where;
      error.what = fmt::format("job \"{}\": {}", placed.job.name, error.what);
      errors_.push_back(std::move(error));
      return;
    }
    placed.job.traffic = *std::move(traffic);
    jobs_.push_back(std::move(placed));
  }

  void read_placement(Reader& reader, PlacedJob& placed) {
    const std::vector<std::string> names = placement_names();
    placed.placement = names[reader.choice("place", names, 0)];
    const std::vector<Token> ranks = reader.texts("ranks");
    const bool listed = placed.placement == "list";
    if (listed != !ranks.empty()) {
      reader.has("gpus");  // known, though it is not read any more
      reader.error(Errc::value, reader.where(listed ? "place" : "ranks"),
                   listed ? "place: list needs the GPUs in \"ranks:\""
                          : "\"ranks:\" is used only with place: list",
                   "write place: list and ranks: [0, 1, ...]");
      return;
    }
    const std::int64_t count = reader.count(
        "gpus", listed ? std::optional(static_cast<std::int64_t>(ranks.size())) : std::nullopt, 2,
        model_gpus_max);
    if (listed && count != static_cast<std::int64_t>(ranks.size()))
      reader.error(Errc::value, reader.where("gpus"),
                   fmt::format("gpus is {}, but {} ranks are listed", count, ranks.size()),
                   "leave out gpus, or list as many");
    if (!errors_.empty()) return;  // placing on wrong sizes would only add errors
    auto gpus = listed ? placer_.place_list(ranks)
                       : placer_.place(placed.placement, static_cast<std::size_t>(count),
                                       rng_.stream(placed.job.name), reader.where("gpus"));
    if (gpus) {
      placed.job.ranks = *std::move(gpus);
    } else {
      errors_.push_back(std::move(gpus).error());
    }
  }

  void read_late(Reader& reader, PlacedJob& placed) {
    const Config* late = reader.child("late");
    if (late == nullptr) return;
    if (late->kind != Config::Kind::list) {
      reader.error(Errc::parse, late->where, "late must be a list",
                   "write late: [{rank: 3, by: 1 ms}]");
      return;
    }
    placed.job.late.assign(placed.job.ranks.size(), Duration{});
    std::set<std::size_t> seen;
    for (const Config& item : late->items) {
      Reader entry(item, "late", errors_);
      const auto last = static_cast<std::int64_t>(placed.job.ranks.size()) - 1;
      const auto rank = static_cast<std::size_t>(entry.count("rank", std::nullopt, 0, last));
      const Duration by = entry.duration("by", std::nullopt);
      entry.finish();
      if (!seen.insert(rank).second)
        entry.error(Errc::value, entry.where("rank"), fmt::format("rank {} is late twice", rank),
                    "give every rank one entry");
      if (rank < placed.job.late.size()) placed.job.late[rank] = by;
    }
  }

  static constexpr std::int64_t model_gpus_max = 1'000'000;

  const model::Fabric& fabric_;
  Placer placer_;
  Rng rng_;
  Duration step_overhead_;
  Errors errors_;
  std::set<std::string> names_;
  std::vector<PlacedJob> jobs_;
};

}  // namespace

Result<std::vector<PlacedJob>> read_jobs(const model::Fabric& fabric, const Config& jobs,
                                         std::uint64_t seed, Duration step_overhead) {
  return JobReader(fabric, seed, step_overhead).read(jobs);
}

}  // namespace weft::plan
