#include "plan/run/jobs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <utility>

#include "model/generate/generator.hpp"
#include "plan/run/compute_times.hpp"
#include "plan/run/placement.hpp"
#include "plan/run/recorded.hpp"
#include "workload/parallel/dispatch.hpp"
#include "workload/parallel/step_cost.hpp"

namespace weft::plan {
namespace {

constexpr std::size_t job_count_max = 4096;
constexpr std::int64_t repeat_max = 1'000'000;

enum class JobKind : std::uint8_t { collective, model, workload };
constexpr std::array<const char*, 3> kind_keys{"collective", "model", "workload"};

class JobReader {
 public:
  JobReader(const Setup& setup, std::uint64_t seed, Placer& placer)
      : setup_(setup), fabric_(setup.fabric), placer_(placer), seed_(seed) {}

  Result<Jobs> read(const Config& jobs) {
    if (jobs.kind != Config::Kind::list)
      return fail(Errc::parse, jobs.where, "jobs must be a list",
                  "write \"jobs:\" and one \"- {name: ..., collective: ...}\" per job");
    if (jobs.items.empty() || jobs.items.size() > job_count_max)
      return fail(Errc::value, jobs.where,
                  fmt::format("{} jobs; must be 1 to {}", jobs.items.size(), job_count_max));
    for (const Config& item : jobs.items) read_job(item);
    if (!errors_.empty()) return std::unexpected(combine(std::move(errors_)));
    return std::move(jobs_);
  }

 private:
  void read_job(const Config& item) {
    Reader reader(item, "job", errors_);
    const std::string name = read_name(reader);
    const std::optional<JobKind> kind = kind_of(reader);
    if (!kind) return;
    switch (*kind) {
      case JobKind::collective:
        return read_collective(item, reader, name);
      case JobKind::model:
        return read_model(item, reader, name);
      case JobKind::workload:
        return read_recorded(reader, name);
    }
  }

  std::string read_name(Reader& reader) {
    std::string name = reader.text("name", std::nullopt);
    if (reader.has("name") && name.empty())
      reader.error(Errc::value, reader.where("name"), "the name is empty",
                   "give every job a name; reports are sorted by it");
    if (!names_.insert(name).second)
      reader.error(Errc::value, reader.where("name"),
                   fmt::format("two jobs have the name \"{}\"", name),
                   "give every job a unique name");
    return name;
  }

  // A job is of the kind whose key it has.
  std::optional<JobKind> kind_of(Reader& reader) {
    std::optional<JobKind> kind;
    for (std::size_t k = 0; k < kind_keys.size(); ++k) {
      if (!reader.has(kind_keys[k])) continue;
      if (kind) {
        reader.error(Errc::value, reader.where(kind_keys[k]),
                     fmt::format("the job has both \"{}:\" and \"{}:\"",
                                 kind_keys[static_cast<std::size_t>(*kind)], kind_keys[k]),
                     "split it into two jobs");
        return std::nullopt;
      }
      kind = static_cast<JobKind>(k);
    }
    if (!kind)
      reader.error(Errc::parse, reader.where(), "the job has no workload",
                   "add \"collective:\", \"model:\" or \"workload:\"");
    return kind;
  }

  void read_collective(const Config& item, Reader& reader, const std::string& name) {
    const std::size_t errors_before = errors_.size();
    PlacedJob placed;
    placed.job.name = name;
    const std::vector<std::string> ops = workload::op_names();
    placed.op = static_cast<workload::Op>(reader.choice("collective", ops, std::nullopt));
    workload::Request request{.op = placed.op};
    request.algorithm = reader.text("algorithm", "auto");
    request.channels = static_cast<std::uint32_t>(reader.count("channels", 0, 0, 1024));
    request.window = static_cast<std::uint32_t>(reader.count("window", 1, 1, 1'000'000));
    request.matrix = read_matrix(reader);
    if (request.matrix.empty())
      placed.bytes = static_cast<double>(reader.bytes("bytes", std::nullopt).count);
    else
      placed.bytes = largest_sent(request.matrix);
    request.bytes = placed.bytes;
    placed.job.iterations = static_cast<std::uint32_t>(reader.count("repeat", 1, 1, repeat_max));
    placed.job.start = Time{reader.duration("start", Duration{}).ps};
    placed.job.step_overhead = setup_.step_overhead;
    place(reader, name, read_count(reader), placed.placement, placed.job.ranks);
    read_late(reader, placed);
    reader.finish();
    if (errors_.size() > errors_before || placed.job.ranks.empty()) return;
    request.ranks = placed.job.ranks;
    const std::string asked = request.algorithm;
    if (Status known = read_cost(placed, request); !known)
      return add_error(std::move(known).error(), item.where, name);
    auto traffic = workload::build_traffic(fabric_, request);
    if (!traffic) return add_error(std::move(traffic).error(), item.where, name);
    placed.job.traffic = *std::move(traffic);
    placed.job.adaptive = setup_.library.adaptive;
    if (placed.job.adaptive && asked == "auto") add_alternatives(placed, request);
    jobs_.order.push_back({Jobs::Entry::Kind::collective, jobs_.collectives.size()});
    jobs_.collectives.push_back(std::move(placed));
  }

  // all_to_all: what each rank sends to each, [[0, 1 MiB, ...], ...]; empty where nothing is said.
  std::vector<double> read_matrix(Reader& reader) {
    const Config* rows = reader.child("matrix");
    if (rows == nullptr) return {};
    if (reader.has("bytes"))
      reader.error(Errc::value, reader.where("bytes"),
                   "the job has both \"bytes:\" and \"matrix:\"",
                   "remove one: the matrix sets what every rank sends");
    std::vector<double> out;
    for (const Config& row : rows->items) {
      if (row.kind != Config::Kind::list || row.items.size() != rows->items.size()) {
        reader.error(Errc::value, row.where,
                     fmt::format("this row of the matrix has {} sizes, and there are {} rows",
                                 row.items.size(), rows->items.size()),
                     "write a row for each rank, with a size for each rank");
        return {};
      }
      for (const Config& cell : row.items) {
        const auto size = parse_bytes({cell.text, cell.where});
        if (!size) reader.error(size.error());
        out.push_back(size ? static_cast<double>(size->count) : 0);
      }
    }
    if (out.empty())
      reader.error(Errc::parse, rows->where, "the matrix has no rows",
                   "write matrix: [[0 B, 1 MiB], [2 MiB, 0 B]]");
    return out;
  }

  // Of one rank, to itself excluded.
  static double largest_sent(std::span<const double> matrix) {
    const auto ranks = static_cast<std::size_t>(std::lround(std::sqrt(matrix.size())));
    double most = 0;
    for (std::size_t from = 0; from < ranks; ++from) {
      double sent = 0;
      for (std::size_t to = 0; to < ranks; ++to)
        if (to != from) sent += matrix[from * ranks + to];
      most = std::max(most, sent);
    }
    return most;
  }

  // What the library needs for the collective; auto becomes its choice.
  Status read_cost(PlacedJob& placed, workload::Request& request) {
    if (setup_.library.cost == workload::Library::Cost::line_rate) return {};
    const auto machine = workload::machine_of(setup_.library, fabric_, request.ranks);
    if (!machine) {
      placed.notes.push_back(
          fmt::format("job {} runs at line rate: {}", placed.job.name, machine.error().what));
      return {};
    }
    WEFT_TRY(workload::PlannedCall call, workload::plan_call(*machine, request.op, request.bytes,
                                                             {.algorithm = request.algorithm}));
    request.algorithm = std::move(call.pick.algorithm);
    placed.job.cost = call.cost;
    return {};
  }

  // Algorithms that the library may turn to; what cannot serve the ranks is none.
  void add_alternatives(PlacedJob& placed, workload::Request request) const {
    const auto machine = workload::machine_of(setup_.library, fabric_, request.ranks);
    for (const std::string& name : workload::timed_algorithms()) {
      // No library turns to reduction in switches that nobody said can do it.
      if (name == placed.job.traffic.algorithm || name == "sharp") continue;
      request.algorithm = name;
      engine::Job::Alternative other;
      if (placed.job.cost) {
        const auto call =
            workload::plan_call(*machine, request.op, request.bytes, {.algorithm = name});
        if (!call) continue;
        other.cost = call->cost;
      }
      auto traffic = workload::build_traffic(fabric_, request);
      if (!traffic) continue;
      other.traffic = *std::move(traffic);
      placed.job.others.push_back(std::move(other));
    }
  }

  void add_error(Error error, const Where& where, const std::string& name) {
    if (error.where.line == 0) error.where = where;
    error.what = fmt::format("job \"{}\": {}", name, error.what);
    errors_.push_back(std::move(error));
  }

  void read_model(const Config& item, Reader& reader, const std::string& name) {
    const std::size_t errors_before = errors_.size();
    PlacedGraph placed;
    placed.name = name;
    std::optional<std::uint64_t> gpus;
    if (reader.has("gpus"))
      gpus = static_cast<std::uint64_t>(reader.count("gpus", std::nullopt, 1, model_gpus_max));
    placed.training = read_training(reader, fabric_, gpus);
    read_graph_keys(reader, placed);
    const std::uint64_t count = placed.training ? placed.training->plan.gpus() : 0;
    place(reader, name, count, placed.placement, placed.ranks, placed.training, &placed.notes);
    read_compute_times(reader, placed);
    reader.finish();
    if (errors_.size() > errors_before || placed.ranks.empty()) return;
    const TrainingSpec& spec = *placed.training;
    if (spec.plan.dispatcher != workload::Dispatcher::alltoall)
      placed.library.all_to_all = workload::Library::AllToAll::deepep;
    auto cost = workload::step_cost(spec.model, spec.plan, spec.gpu);
    if (!cost) return add_error(std::move(cost).error(), item.where, name);
    workload::send_once_per_host(
        *cost, [&](std::uint32_t rank) { return fabric_.domain_of(placed.ranks[rank]).value; });
    const model::StepCost before = *cost;
    const auto folded = fold_inside_hosts(*cost, fabric_, placed.ranks);
    add_folded_bytes(before, folded, placed.known);
    placed.overlap_slowdown = 1 / (1 - cost->interference);
    const bool may_differ = has_node_faults() || !placed.compute_factor.empty();
    auto graph = training_graph(*cost, fabric_, placed.ranks,
                                may_differ ? engine::fluid::NetworkOptions::Contention::on
                                           : setup_.fluid.options.contention);
    if (!graph) return add_error(std::move(graph).error(), item.where, name);
    placed.graph = std::make_shared<const model::OpGraph>(*std::move(graph));
    add_graph(std::move(placed));
  }

  void read_recorded(Reader& reader, const std::string& name) {
    const std::size_t errors_before = errors_.size();
    PlacedGraph placed;
    placed.name = name;
    read_graph_keys(reader, placed);
    auto recorded = read_recorded_workload(reader);
    const std::uint64_t count = recorded ? recorded->graph.rank_count : 0;
    place(reader, name, count, placed.placement, placed.ranks);
    read_compute_times(reader, placed);
    reader.finish();
    if (errors_.size() > errors_before || !recorded || placed.ranks.empty()) return;
    const auto of_job = std::exchange(placed.notes, summary_of(*recorded));
    placed.notes.insert(placed.notes.end(), of_job.begin(), of_job.end());
    if (recorded->system) {
      for (const auto& implementation : recorded->system->implementations) {
        std::string& chosen = placed.algorithms[static_cast<std::size_t>(implementation.op)];
        if (chosen.empty() && implementation.algorithm != "auto") chosen = implementation.algorithm;
      }
    }
    if (recorded->has_own_costs) placed.library.cost = workload::Library::Cost::line_rate;
    placed.known.model = recorded->format;
    placed.known.plan = fmt::format("{} ranks", count);
    placed.graph = std::make_shared<const model::OpGraph>(std::move(recorded->graph));
    add_graph(std::move(placed));
  }

  void read_graph_keys(Reader& reader, PlacedGraph& placed) {
    if (reader.has("repeat"))
      placed.repeat = static_cast<std::uint32_t>(reader.count("repeat", std::nullopt, 1, 10'000));
    placed.start = Time{reader.duration("start", Duration{}).ps};
    placed.library = setup_.library;
    read_checkpoint(reader, placed);
    read_ingest(reader, placed);
    if (setup_.engine_name == EngineName::packet)
      for (const char* key : {"checkpoint", "ingest", "bootstrap"})
        if (reader.has(key))
          reader.error(Errc::unsupported, reader.where(key),
                       fmt::format("the packet engine does not run \"{}:\"", key),
                       "remove the key, or use engine: fluid");
    read_algorithms(reader, placed);
    if (const Config* section = reader.child("bootstrap"))
      placed.bootstrap = workload::read_bootstrap(*section, errors_);
    placed.where = reader.where();
  }

  // BYTES, or {bytes, every, mode: sync | async, copy_rate}.
  void read_checkpoint(Reader& reader, PlacedGraph& placed) {
    const Config* section = reader.child("checkpoint");
    if (section == nullptr) return;
    PlacedGraph::Checkpoint& out = placed.checkpoint;
    if (section->kind != Config::Kind::map) {
      out.bytes = reader.bytes("checkpoint", Bytes{});
      return;
    }
    Reader keys(*section, "checkpoint", errors_);
    out.bytes = keys.bytes("bytes", std::nullopt);
    out.every = static_cast<std::uint32_t>(keys.count("every", 0, 0, 10'000));
    const std::array<std::string, 2> modes{"sync", "async"};
    out.asynchronous = keys.choice("mode", modes, 0) == 1;
    if (out.asynchronous) out.copy_rate = keys.rate("copy_rate", std::nullopt);
    if (out.asynchronous && keys.has("copy_rate") && out.copy_rate <= Rate{})
      keys.error(Errc::value, keys.where("copy_rate"), "checkpoint.copy_rate must be above 0",
                 "write e.g. \"25 GB/s\", what a GPU writes to its host");
    if (out.every > placed.repeat)
      keys.error(Errc::value, keys.where("every"),
                 fmt::format("a checkpoint every {} steps needs \"repeat:\" with as many at least",
                             out.every),
                 fmt::format("add repeat: {} to the job", out.every));
    keys.finish();
  }

  // BYTES, or {bytes, prefetch}.
  void read_ingest(Reader& reader, PlacedGraph& placed) {
    const Config* section = reader.child("ingest");
    if (section == nullptr) return;
    if (section->kind != Config::Kind::map) {
      placed.ingest.bytes = reader.bytes("ingest", Bytes{});
      return;
    }
    Reader keys(*section, "ingest", errors_);
    placed.ingest.bytes = keys.bytes("bytes", std::nullopt);
    placed.ingest.prefetch = static_cast<std::uint32_t>(keys.count("prefetch", 1, 1, 10'000));
    keys.finish();
  }

  void read_algorithms(Reader& reader, PlacedGraph& placed) {
    const Config* section = reader.child("algorithms");
    if (section == nullptr) return;
    Reader names(*section, "algorithms", errors_);
    const std::vector<std::string> known = workload::algorithm_names();
    const std::vector<std::string> ops = workload::op_names();
    for (std::size_t op = 0; op < ops.size(); ++op)
      if (names.has(ops[op]))
        placed.algorithms[op] = known[names.choice(ops[op], known, std::nullopt)];
    names.finish();
  }

  void add_graph(PlacedGraph placed) {
    jobs_.order.push_back({Jobs::Entry::Kind::graph, jobs_.graphs.size()});
    jobs_.graphs.push_back(std::move(placed));
  }

  // Faults of nodes may make GPUs slow, and then replicas differ.
  bool has_node_faults() const {
    return std::ranges::any_of(
        setup_.changes, [](const auto& change) { return !change.state.troubled_nodes().empty(); });
  }

  // How many GPUs a collective wants; nothing where a list of ranks says it.
  std::optional<std::uint64_t> read_count(Reader& reader) {
    const bool listed = !reader.texts("ranks").empty() || !reader.texts("rank_file").empty();
    if (listed && !reader.has("gpus")) return std::nullopt;
    return static_cast<std::uint64_t>(reader.count("gpus", std::nullopt, 2, model_gpus_max));
  }

  // `count` GPUs where the job says; a list of ranks must have as many. 0: the job is broken.
  void place(Reader& reader, const std::string& name, std::optional<std::uint64_t> count,
             std::string& placement, std::vector<NodeId>& out,
             const std::optional<TrainingSpec>& training = {},
             std::vector<std::string>* notes = nullptr) {
    const std::vector<std::string> names = placement_names();
    placement = names[reader.choice("place", names, 0)];
    const std::vector<Token> ranks = reader.texts("ranks");
    const std::optional<Token> file = named_file(reader, "rank_file");
    const bool listed = placement == "list";
    if (listed ? ranks.empty() != file.has_value() : !ranks.empty() || file) {
      reader.error(
          Errc::value,
          reader.where(listed          ? "place"
                       : ranks.empty() ? "rank_file"
                                       : "ranks"),
          listed ? "place: list needs the GPUs in \"ranks:\" or in \"rank_file:\""
                 : fmt::format("\"{}:\" is used only with place: list",
                               ranks.empty() ? "rank_file" : "ranks"),
          "write place: list, and ranks: [0, 1, ...], ranks: host[0-3], or rank_file: FILE");
      return;
    }
    if (!errors_.empty()) return;  // placing on wrong sizes would only add errors
    auto gpus =
        listed ? file ? place_file(*file) : placer_.place_list(ranks)
        : placement == "fitted"
            ? fit(*count, name, training, reader.where("place"), notes)
            : placer_.place(placement, *count, placement_stream(seed_, name), reader.where("gpus"));
    if (!gpus) {
      errors_.push_back(std::move(gpus).error());
    } else if (listed && count && *count > 0 && *count != gpus->size()) {
      reader.error(Errc::value, reader.where(file ? "rank_file" : "ranks"),
                   fmt::format("{} ranks are listed, but the job has {}", gpus->size(), *count),
                   "list one GPU per rank; a host means all of its GPUs");
    } else {
      out = *std::move(gpus);
    }
  }

  // A key that names one file; none where it is absent.
  static std::optional<Token> named_file(Reader& reader, std::string_view key) {
    const std::vector<Token> names = reader.texts(key);
    if (names.empty()) return std::nullopt;
    if (names.size() > 1)
      reader.error(Errc::value, names[1].where, fmt::format("job.{} must be one file", key),
                   "specify one");
    return names.front();
  }

  Result<std::vector<NodeId>> place_file(const Token& name) {
    const std::string path = model::resolve_path(name.where, std::string(name.text));
    WEFT_TRY(const std::string text, model::read_named_file(name.where, path));
    WEFT_TRY(const auto lines, place::read_rank_file(text, path));
    return placer_.place_lines(lines);
  }

  // `compute_times:` of the job: by rank, how many times as long as the median rank it computes.
  void read_compute_times(Reader& reader, PlacedGraph& placed) {
    const std::optional<Token> file = named_file(reader, "compute_times");
    if (!file || placed.ranks.empty()) return;
    auto factors = [&, &name = *file]() -> Result<std::vector<double>> {
      const std::string path = model::resolve_path(name.where, std::string(name.text));
      WEFT_TRY(const std::string text, model::read_named_file(name.where, path));
      return read_compute_factors(text, path, placed.ranks.size());
    }();
    if (!factors) return reader.error(std::move(factors).error());
    const auto [least, most] = std::ranges::minmax(*factors);
    placed.notes.push_back(
        fmt::format("job {}: ranks compute {:.3g} to {:.3g} times as long as the median one, by {}",
                    placed.name, least, most, file->text));
    placed.compute_factor = *std::move(factors);
  }

  Result<std::vector<NodeId>> fit(std::size_t count, const std::string& name,
                                  const std::optional<TrainingSpec>& training, const Where& where,
                                  std::vector<std::string>* notes) {
    std::optional<model::StepCost> cost;
    if (training)
      if (auto known = workload::step_cost(training->model, training->plan, training->gpu))
        cost = *std::move(known);
    std::string note;
    auto gpus = placer_.place_fitted(count, cost ? &*cost : nullptr, placement_stream(seed_, name),
                                     where, note);
    if (notes != nullptr && !note.empty()) notes->push_back(fmt::format("job {}: {}", name, note));
    return gpus;
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
        entry.error(Errc::value, entry.where("rank"),
                    fmt::format("duplicate entry for rank {} in late", rank),
                    "use one entry per rank");
      if (rank < placed.job.late.size()) placed.job.late[rank] = by;
    }
  }

  static constexpr std::int64_t model_gpus_max = 1'000'000;

  const Setup& setup_;
  const model::Fabric& fabric_;
  Placer& placer_;
  std::uint64_t seed_;
  Errors errors_;
  std::set<std::string> names_;
  Jobs jobs_;
};

}  // namespace

Result<Jobs> read_jobs(const Setup& setup, const Config& jobs, std::uint64_t seed) {
  Placer placer(setup.fabric);
  return read_jobs(setup, jobs, seed, placer);
}

Result<Jobs> read_jobs(const Setup& setup, const Config& jobs, std::uint64_t seed, Placer& placer) {
  return JobReader(setup, seed, placer).read(jobs);
}

}  // namespace weft::plan
