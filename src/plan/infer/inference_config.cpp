#include "plan/infer/inference_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <span>

#include "base/file.hpp"
#include "base/json_line.hpp"
#include "base/plural.hpp"
#include "model/generate/generator.hpp"
#include "workload/collective/timing.hpp"
#include "workload/parallel/gpu.hpp"
#include "workload/parallel/model_spec.hpp"
#include "workload/serving/roofline.hpp"

namespace weft::plan {
namespace {

using namespace workload;

constexpr std::int64_t count_max = 1 << 24, arrivals_max = 10'000'000;
constexpr std::size_t poisson_max = 64;
constexpr std::uint64_t unpacked_max = std::uint64_t{1} << 30;

// The bytes of a file that the section names, unpacked where they are gzip.
Result<ProfileText> named_file(const Where& where, const std::string& path) {
  const std::string full = model::resolve_path(where, path);
  WEFT_TRY(std::string text, model::read_named_file(where, full));
  if (text.starts_with("\x1f\x8b")) {
    WEFT_TRY(text, gunzip(text, full, unpacked_max));
  }
  return ProfileText{full, std::move(text)};
}

struct ProfileFiles {
  Where where;
  std::string dense, per_sequence, attention;
};

// A prefix stands for PREFIX_dense.csv and so on, or for a folder, also with .gz.
std::string with_prefix(const Where& where, const std::string& prefix, const std::string& what) {
  for (const char* joint : {"_", "/", "_profile_"})
    for (const char* end : {".csv", ".csv.gz"})
      if (std::string path = fmt::format("{}{}{}{}", prefix, joint, what, end);
          std::filesystem::exists(model::resolve_path(where, path)))
        return path;
  return prefix + "_" + what + ".csv";
}

ProfileFiles read_profile_files(const Config& value, Errors& errors) {
  ProfileFiles out{.where = value.where, .dense = {}, .per_sequence = {}, .attention = {}};
  if (value.kind == Config::Kind::scalar) {
    out.dense = with_prefix(value.where, value.text, "dense");
    out.per_sequence = with_prefix(value.where, value.text, "per_sequence");
    out.attention = with_prefix(value.where, value.text, "attention");
    return out;
  }
  Reader reader(value, "inference.profile", errors);
  out.dense = reader.text("dense", std::nullopt);
  out.per_sequence = reader.text("per_sequence", std::nullopt);
  out.attention = reader.text("attention", std::nullopt);
  reader.finish();
  return out;
}

std::uint32_t small(Reader& reader, std::string_view key, std::optional<std::int64_t> otherwise,
                    std::int64_t least = 1, std::int64_t most = count_max) {
  return static_cast<std::uint32_t>(reader.count(key, otherwise, least, most));
}

// The items of a list, or the one thing that stands there alone.
std::span<const Config> listed(const Config& value) {
  if (value.kind == Config::Kind::list) return value.items;
  return {&value, 1};
}

// What the section says; the files that it names are read once it is without errors.
class Section {
 public:
  Section(const Config& section, Errors& errors)
      : reader_(section, "inference", errors), errors_(errors) {}

  void read(InferenceConfig& out) {
    read_model(out);
    read_engine(out.cluster.limits);
    read_parallel(out);
    read_replicas(out.cluster);
    if (const Config* link = reader_.child("link")) out.link = read_link(*link, "inference.link");
    if (const Config* link = reader_.child("kv_link"))
      out.kv_link = read_link(*link, "inference.kv_link");
    const std::vector<std::string> routes(route_policy_names.begin(), route_policy_names.end());
    out.cluster.route = static_cast<RoutePolicy>(reader_.choice("route", routes, 0));
    read_requests_key();
    read_objectives(out);
    if (reader_.has("gpu_hour")) out.gpu_hour = reader_.number("gpu_hour", std::nullopt, 0, 1e6);
    if (out.link && (out.all_reduce.algorithm != "auto" || out.all_reduce.protocol))
      reader_.error(Errc::unsupported, out.all_reduce_where,
                    "a stated link has a ring's bytes and one latency, whatever the algorithm",
                    "remove the link, and give a fabric");
    reader_.child("run");  // laid under the section before
    reader_.finish();
  }

  std::optional<TransformerSpec> spec;
  std::optional<GpuSpec> gpu;
  std::optional<ProfileFiles> profile;
  std::optional<Token> requests;
  std::vector<PoissonArrivals> poisson;

 private:
  // One map for all requests, or a list of maps by class.
  void read_objectives(InferenceConfig& out) {
    const Config* slo = reader_.child("slo");
    if (slo == nullptr) return;
    for (const Config& one : listed(*slo)) {
      Reader reader(one, "inference.slo", errors_);
      Objective objective;
      objective.request_class = reader.text("class", "");
      if (reader.has("ttft")) objective.ttft = reader.duration("ttft", std::nullopt);
      if (reader.has("tpot")) objective.tpot = reader.duration("tpot", std::nullopt);
      objective.percentile = reader.number("percentile", 99, 1, 100);
      if (!objective.ttft && !objective.tpot)
        reader.error(Errc::parse, one.where, "an objective without ttft and tpot",
                     "write e.g. {ttft: 500 ms, tpot: 50 ms, percentile: 99}");
      if (std::ranges::find(out.objectives, objective.request_class, &Objective::request_class) !=
          out.objectives.end())
        reader.error(Errc::value, one.where,
                     objective.request_class.empty()
                         ? std::string("two objectives for all requests")
                         : fmt::format("two objectives for class {}", objective.request_class),
                     "write both in one entry");
      reader.finish();
      out.objectives.push_back(std::move(objective));
    }
  }
  void read_model(InferenceConfig& out) {
    if (const Config* value = reader_.child("profile"))
      profile = read_profile_files(*value, errors_);
    const Config* model = reader_.child("model");
    if (model == nullptr)
      reader_.error(Errc::parse, reader_.where(), "\"model\" is missing",
                    "name a model (llama3-8b), or write its layers, hidden, kv_heads, head_dim");
    else if (model->kind == Config::Kind::map && model->find("head_dim") != nullptr)
      read_shape(*model, out.model);
    else
      read_spec(*model, out.model);
    if (reader_.has("gpu")) {
      const std::string name = reader_.text("gpu", std::nullopt);
      if (auto known = gpu_by_name({name, reader_.where("gpu")}))
        gpu = *std::move(known);
      else
        reader_.error(known.error());
    }
    if (profile) return;
    if (!gpu || !spec)
      reader_.error(Errc::parse, reader_.where(), "kernel times are unknown without a profile",
                    "give profile: PREFIX, or a model by name and gpu: h100 for its roofline");
  }
  void read_shape(const Config& value, ServedModel& model) {
    Reader reader(value, "inference.model", errors_);
    model.layers = small(reader, "layers", std::nullopt, 1, 1024);
    model.hidden = small(reader, "hidden", std::nullopt, 1, 1 << 20);
    model.kv_heads = small(reader, "kv_heads", std::nullopt, 1, 4096);
    model.head_dim = small(reader, "head_dim", std::nullopt, 1, 4096);
    model.bytes = small(reader, "bytes", 2, 1, 8);
    reader.finish();
  }
  void read_spec(const Config& value, ServedModel& model) {
    auto known = workload::read_model(value);
    if (!known) return reader_.error(known.error());
    if (!std::holds_alternative<TransformerSpec>(*known))
      return reader_.error(Errc::unsupported, value.where, "only transformers generate tokens",
                           "name another model");
    spec = std::get<TransformerSpec>(*std::move(known));
    model = served_model(*spec);
  }
  void read_engine(ServingLimits& limits) {
    const Config* value = reader_.child("engine");
    if (value == nullptr) return;
    Reader reader(*value, "inference.engine", errors_);
    limits.max_seqs = small(reader, "max_seqs", limits.max_seqs, 1, 1 << 16);
    limits.token_budget = small(reader, "token_budget", limits.token_budget, 1, 1 << 20);
    limits.block = small(reader, "block", limits.block, 1, 4096);
    limits.kv_blocks = small(reader, "kv_blocks", 0, 0, static_cast<std::int64_t>(kv_blocks_max));
    limits.asynchronous = reader.flag("asynchronous", limits.asynchronous);
    limits.prefix_cache = reader.flag("prefix_cache", limits.prefix_cache);
    limits.step_gap = reader.duration("step_gap", limits.step_gap);
    if (limits.step_gap.seconds() > 10)
      reader.error(Errc::value, reader.where("step_gap"), "a step_gap above 10 s",
                   "write what launching a step costs, e.g. 500 us");
    reader.finish();
  }
  void read_parallel(InferenceConfig& out) {
    const Config* value = reader_.child("parallel");
    if (value == nullptr) return;
    Reader reader(*value, "inference.parallel", errors_);
    out.tp = small(reader, "tp", 1, 1, 1024);
    out.cluster.limits.stages = small(reader, "pp", 1, 1, 128);
    out.all_reduce.algorithm = reader.text("algorithm", "auto");
    out.all_reduce_where = reader.where("algorithm");
    if (reader.has("protocol")) {
      const std::string name = reader.text("protocol", std::nullopt);
      auto protocol = parse_protocol(name);
      if (protocol) {
        out.all_reduce.protocol = *protocol;
      } else {
        protocol.error().where = reader.where("protocol");
        reader.error(protocol.error());
      }
    }
    if (reader.has("up_to")) {
      out.all_reduce_up_to = reader.bytes("up_to", std::nullopt);
      if (out.all_reduce.algorithm == "auto" && !out.all_reduce.protocol)
        reader.error(Errc::value, reader.where("up_to"), "up_to without algorithm or protocol",
                     "set what AllReduces up to this size use, e.g. algorithm: flat");
    }
    const std::uint32_t ep = small(reader, "ep", 1, 1, 1024);
    if (ep != 1 && ep != out.tp)
      reader.error(Errc::unsupported, reader.where("ep"),
                   fmt::format("experts over {} ranks of a replica that has {}", ep, out.tp),
                   "ep is 1, or equal to tp: the replica's ranks share out its experts");
    if (spec && (spec->heads % out.tp != 0))
      reader.error(Errc::infeasible, reader.where("tp"),
                   fmt::format("{} heads do not divide by tp {}", spec->heads, out.tp),
                   "choose a divisor");
    reader.finish();
  }
  void read_replicas(Cluster& cluster) {
    const Config* value = reader_.child("replicas");
    if (value == nullptr) return;
    if (value->kind != Config::Kind::map) {
      cluster.replicas = small(reader_, "replicas", 1, 1, 4096);
      return;
    }
    Reader reader(*value, "inference.replicas", errors_);
    cluster.replicas = small(reader, "prefill", std::nullopt, 1, 4096);
    cluster.decode_replicas = small(reader, "decode", std::nullopt, 1, 4096);
    reader.finish();
  }
  StatedLink read_link(const Config& value, const char* what) {
    Reader reader(value, what, errors_);
    StatedLink out;
    out.rate = reader.rate("rate", std::nullopt);
    out.latency = reader.duration("latency", Duration{});
    reader.finish();
    return out;
  }
  // A class without a count lasts as long as the first one.
  void read_poisson(const Config& law) {
    Reader reader(law, "inference.requests.poisson", errors_);
    PoissonArrivals out;
    out.name = reader.text("class", "");
    out.per_second = reader.number("rate", std::nullopt, 1e-3, 1e6);
    const double span =
        poisson.empty() ? 0 : static_cast<double>(poisson[0].count) / poisson[0].per_second;
    const std::int64_t as_long =
        std::clamp<std::int64_t>(std::llround(span * out.per_second), 1, arrivals_max);
    out.count = static_cast<std::uint64_t>(
        reader.count("count", poisson.empty() ? 1000 : as_long, 1, arrivals_max));
    out.input = small(reader, "input", 1024);
    out.output = small(reader, "output", 128);
    reader.finish();
    if (static_cast<double>(out.count) / out.per_second > 4e6)
      reader.error(Errc::value, reader.where("rate"), "so many arrivals last more than 46 days",
                   "raise the rate, or lower the count");
    if (std::ranges::find(poisson, out.name, &PoissonArrivals::name) != poisson.end())
      reader.error(Errc::value, law.where, "two laws of arrivals for one class",
                   "give each its class: a name");
    if (poisson.size() < poisson_max)
      poisson.push_back(std::move(out));
    else
      reader.error(Errc::value, law.where, fmt::format("more than {} classes", poisson_max),
                   "draw fewer, or record a trace");
  }
  void read_requests_key() {
    const Config* value = reader_.child("requests");
    if (value == nullptr)
      return reader_.error(Errc::parse, reader_.where(), "\"requests\" is missing",
                           "name a trace, or write {poisson: {rate: 5, count: 1000}}");
    if (value->kind == Config::Kind::scalar) {
      requests = token_of(*value);
      return;
    }
    Reader outer(*value, "inference.requests", errors_);
    if (const Config* laws = outer.child("poisson")) {
      for (const Config& law : listed(*laws)) read_poisson(law);
      if (listed(*laws).empty())
        outer.error(Errc::value, laws->where, "no requests are drawn", "write {rate: 5}");
    } else {
      outer.error(Errc::parse, value->where, "\"requests\" names neither a file nor \"poisson\"",
                  "write requests: FILE, or requests: {poisson: {rate: 5}}");
    }
    outer.finish();
  }

  Reader reader_;
  Errors& errors_;
};

void set(Config& config, const std::string& path, std::int64_t value, const std::string& file) {
  static_cast<void>(set_path(config, path, Config::scalar(std::to_string(value), {file, 0, 0})));
}

Status load_files(const Section& section, std::uint64_t seed, InferenceConfig& out) {
  if (section.profile) {
    const ProfileFiles& files = *section.profile;
    WEFT_TRY(const ProfileText dense, named_file(files.where, files.dense));
    WEFT_TRY(const ProfileText per_sequence, named_file(files.where, files.per_sequence));
    WEFT_TRY(const ProfileText attention, named_file(files.where, files.attention));
    WEFT_TRY(out.profile, read_profile(dense, per_sequence, attention));
  } else {
    out.profile = roofline_profile(*section.spec, *section.gpu, out.tp);
    out.is_roofline = true;
  }
  if (!section.poisson.empty()) {
    std::vector<PoissonArrivals> laws = section.poisson;
    for (PoissonArrivals& law : laws) law.seed = seed;
    out.trace = poisson_requests(laws);
    return {};
  }
  WEFT_TRY(const ProfileText trace,
           named_file(section.requests->where, std::string(section.requests->text)));
  WEFT_TRY(out.trace, read_requests(trace.text, trace.file));
  return {};
}

// Weights, and the KV cache where its size is given, in the memory of each GPU of a replica.
Status check_memory(const Config& section, const Section& read, const InferenceConfig& config) {
  if (!read.gpu || !read.spec) return {};
  const ServingLimits& limits = config.cluster.limits;
  const double ranks = double{1} * config.tp * limits.stages, memory = read.gpu->memory_bytes;
  const double weights = read.spec->parameters() * config.model.bytes;
  const double block =
      double{1} * limits.block * static_cast<double>(config.cluster.kv_bytes_per_token);
  constexpr double gb = 1e9;
  if (weights > memory * ranks)
    return fail(
        Errc::infeasible, section.where,
        fmt::format("{:.0f} GB of weights on {} are {:.1f} GB each, and one {} has {:.0f} GB",
                    weights / gb, counted(static_cast<std::uint64_t>(ranks), "GPU"),
                    weights / ranks / gb, read.gpu->name, memory / gb),
        fmt::format("set inference.parallel to tp x pp of {:.0f} GPUs or more",
                    std::ceil(weights / memory)));
  if (weights + limits.kv_blocks * block > memory * ranks)
    return fail(
        Errc::infeasible, section.where,
        fmt::format("{} KV blocks of {:.1f} MB need {:.1f} GB on each GPU, and the weights leave "
                    "{:.1f} of its {:.0f} GB",
                    limits.kv_blocks, block / 1e6, limits.kv_blocks * block / ranks / gb,
                    memory / gb - weights / ranks / gb, memory / gb),
        fmt::format("set inference.engine.kv_blocks to at most {:.0f}",
                    std::floor((memory * ranks - weights) / block)));
  return {};
}

// Objectives of classes that no request has would be kept by nobody.
Status check_classes(const Config& section, const InferenceConfig& config) {
  for (const Objective& one : config.objectives)
    if (std::ranges::find(config.trace.classes, one.request_class) == config.trace.classes.end())
      return fail(
          Errc::unknown, section.find("slo")->where,
          fmt::format("no request is of class {}", quote(one.request_class)),
          config.trace.classes.size() > 1
              ? fmt::format("the requests have: {}", fmt::join(config.trace.classes.begin() + 1,
                                                               config.trace.classes.end(), ", "))
              : "give requests a Class column, a \"class\" key, or class: in poisson");
  return {};
}

}  // namespace

Result<Config> read_run_record(std::string_view text, const std::string& file) {
  WEFT_TRY(const JsonLine record, JsonLine::parse(text, {file, 0, 0}));
  Errors errors;
  Config out = Config::map({file, 0, 0});
  const auto take = [&](const std::optional<JsonLine>& from, const char* key, const char* path) {
    if (!from || !from->has(key)) return;
    set(out, path, from->count(key, std::nullopt, 1, count_max, errors), file);
  };
  const auto engine = record.object("engine_kwargs", errors);
  take(engine, "max_num_seqs", "engine.max_seqs");
  take(engine, "max_num_batched_tokens", "engine.token_budget");
  take(engine, "tensor_parallel_size", "parallel.tp");
  take(engine, "pipeline_parallel_size", "parallel.pp");
  const auto shape = record.object("model_shape", errors);
  for (const char* key : {"layers", "hidden", "kv_heads", "head_dim", "bytes"})
    take(shape, key, (std::string("model.") + key).c_str());
  if (record.has("num_gpu_blocks"))
    set(out, "engine.kv_blocks", record.count("num_gpu_blocks", std::nullopt, 1, count_max, errors),
        file);
  if (record.has("block_size"))
    set(out, "engine.block", record.count("block_size", std::nullopt, 1, 4096, errors), file);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<InferenceConfig> read_inference(const model::Scenario& scenario) {
  Config section = scenario.section("inference");
  if (section.kind == Config::Kind::null)
    return fail(
        Errc::parse, scenario.root.where, "\"inference:\" is missing",
        "add e.g. inference: {model: llama3-8b, gpu: h100, requests: {poisson: {rate: 5}}}");
  if (const Config* run = section.find("run")) {
    WEFT_TRY(const ProfileText record, named_file(run->where, run->text));
    WEFT_TRY(Config under, read_run_record(record.text, record.file));
    overlay(under, section);
    section = std::move(under);
  }
  Errors errors;
  InferenceConfig out;
  Section reader(section, errors);
  reader.read(out);
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  out.cluster.kv_bytes_per_token = out.model.kv_bytes_per_token();
  WEFT_TRY_STATUS(check_memory(section, reader, out));
  WEFT_TRY_STATUS(load_files(reader, scenario.seed, out));
  WEFT_TRY_STATUS(check_classes(section, out));
  const GridHoles& holes = out.profile.attention.holes();
  if (!out.is_roofline && holes.interpolated + holes.extrapolated + holes.unknown > 0)
    out.notes.push_back(fmt::format(
        "attention's profile: {} points measured, {} interpolated, {} extrapolated, {} left at 0",
        holes.measured, holes.interpolated, holes.extrapolated, holes.unknown));
  if (out.cluster.limits.kv_blocks == 0)
    out.notes.emplace_back("engine.kv_blocks is not given: the KV cache never fills");
  return out;
}

}  // namespace weft::plan
