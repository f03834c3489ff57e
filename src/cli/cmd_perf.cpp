#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/formats/build_fabric.hpp"
#include "plan/run/lone.hpp"
#include "plan/run/placement.hpp"
#include "plan/run/setup.hpp"
#include "workload/collective/perf_table.hpp"

namespace weft::cli {
namespace {

struct PerfArgs {
  std::string op;
  std::string fabric;
  std::uint32_t gpus = 0;      // 0: all
  std::uint32_t channels = 0;  // 0: as the algorithm does
  std::string begin = "32M", end = "32M", step_bytes, system, compare;
  std::optional<std::string> factor;
  std::string algorithm = "auto", protocol = "auto", place = "topology", transport;
  std::string calibrate;  // empty: as published
};

using workload::Op;
using workload::PerfRequest;

constexpr std::uint64_t measured_bytes_max = 64 << 20;

// The fabric with its ranks; without --fabric one host of eight GPUs.
struct Place {
  plan::Setup setup;
  std::uint64_t seed = 1;
  std::vector<model::NodeId> ranks;
};

Token argument(std::string_view option, std::string_view text) {
  return {text, {std::string(option), 0, 0}};
}

template <class Names>
Status check_name(std::string_view option, const std::string& name, const Names& names) {
  if (std::ranges::find(names, name) != names.end()) return {};
  return fail(Errc::unknown, {std::string(option), 0, 0},
              fmt::format("unknown name \"{}\"{}", name, did_you_mean(name, names)),
              fmt::format("choose one of: {}", fmt::join(names, ", ")));
}

Result<Place> read_place(const Common& common, const PerfArgs& args) {
  WEFT_TRY(const model::LoadOptions options, common.load_options(collective_file_keys()));
  constexpr std::string_view one_host =
      "fabric: {generator: ai_zone, racks: 1, hosts_per_rack: 1, spines: 1}\n";
  WEFT_TRY(const model::ScenarioFile file,
           args.fabric.empty() ? model::parse_scenario(one_host, "<one host>", options)
                               : model::load_scenario(args.fabric, options));
  const model::Scenario& scenario = file.variants.front();
  Place place{.setup = {}, .seed = scenario.seed};
  WEFT_TRY(place.setup, plan::read_setup(scenario));
  WEFT_TRY_STATUS(plan::require_fluid(place.setup, "weft perf"));
  if (place.setup.library.adaptive)
    return fail(Errc::unsupported, scenario.section("collectives").where,
                "weft perf does not adapt a collective to the state of its paths",
                "use weft run, or add --set collectives.adaptive=false");
  std::vector<std::string> names = plan::placement_names();
  std::erase(names, "list");
  WEFT_TRY_STATUS(check_name("--place", args.place, names));
  const std::size_t gpus = args.gpus > 0 ? args.gpus : place.setup.fabric.gpus().size();
  plan::Placer placer(place.setup.fabric);
  WEFT_TRY(place.ranks,
           placer.place(args.place, gpus, plan::placement_stream(scenario.seed, "perf"),
                        {"--gpus", 0, 0}));
  return place;
}

Result<workload::Sweep> read_sweep(const PerfArgs& args) {
  workload::Sweep sweep;
  WEFT_TRY(sweep.begin, parse_nccl_size(argument("-b", args.begin)));
  WEFT_TRY(sweep.end, parse_nccl_size(argument("-e", args.end)));
  if (args.factor) {
    WEFT_TRY(sweep.factor, parse_count(argument("-f", *args.factor)));
  } else {
    WEFT_TRY(sweep.step,
             parse_nccl_size(argument("-i", args.step_bytes.empty() ? "1M" : args.step_bytes)));
    if (sweep.step.count == 0)
      return fail(Errc::value, {"-i", 0, 0}, "a step of 0 bytes makes no progress",
                  "write e.g. -i 1M");
  }
  return sweep;
}

// The scenario's library, with what the options say instead.
Result<workload::Library> read_library(const PerfArgs& args, const Place& place) {
  workload::Library library = place.setup.library;
  library.system = args.system.empty() ? library.system : args.system;
  if (args.transport.empty()) return library;
  const std::vector<std::string> names = workload::transport_names();
  WEFT_TRY_STATUS(check_name("--transport", args.transport, names));
  library.transport =
      static_cast<workload::Transport>(std::ranges::find(names, args.transport) - names.begin());
  return library;
}

// What asks a library cannot be asked where there is none.
Status check_line_rate(const PerfArgs& args) {
  const std::array<std::pair<const char*, bool>, 4> given{
      {{"--protocol", args.protocol != "auto"},
       {"--system", !args.system.empty()},
       {"--transport", !args.transport.empty()},
       {"--calibrate", !args.calibrate.empty()}}};
  for (const auto& [option, is_given] : given)
    if (is_given)
      return fail(Errc::value, {option, 0, 0}, "has no effect with collectives.cost line_rate",
                  "remove it, or add --set collectives.cost=nccl");
  return {};
}

// The request refers to `place`, which must outlive it.
Result<PerfRequest> read_request(const Common& common, const PerfArgs& args, Place& place) {
  PerfRequest request;
  const std::vector<std::string> ops = workload::op_names();
  // As nccl-tests spell them.
  const std::string name = args.op == "alltoall"   ? "all_to_all"
                           : args.op == "sendrecv" ? "send_recv"
                                                   : args.op;
  WEFT_TRY_STATUS(check_name("OP", name, ops));
  request.op = static_cast<Op>(std::ranges::find(ops, name) - ops.begin());
  WEFT_TRY(request.sweep, read_sweep(args));
  request.rules.algorithm = args.algorithm;
  if (args.protocol != "auto") {
    WEFT_TRY(request.rules.protocol, workload::parse_protocol(args.protocol));
  }
  WEFT_TRY(place, read_place(common, args));
  WEFT_TRY(const workload::Library library, read_library(args, place));
  const bool line_rate = library.cost == workload::Library::Cost::line_rate;
  if (line_rate) WEFT_TRY_STATUS(check_line_rate(args));
  WEFT_TRY(request.machine, workload::machine_of(library, place.setup.fabric, place.ranks));
  const workload::GroupShape& shape = request.machine.shape;
  if (args.channels > 0 && shape.hosts == 1)
    return fail(Errc::value, {"--channels", 0, 0}, "channels have no effect inside one host",
                "remove them, or use a --fabric with several hosts");
  plan::LoneCollectives runs(place.setup, place.seed,
                             {.op = request.op,
                              .algorithm = args.algorithm,
                              .ranks = place.ranks,
                              .channels = args.channels});
  if (line_rate) {
    const std::uint32_t channels = shape.hosts == 1 ? 1 : shape.nics_per_host;
    request.at_line_rate = [runs, channels, algorithm = args.algorithm](
                               double bytes) mutable -> Result<PerfRequest::LineRate> {
      PerfRequest::LineRate out{.algorithm = algorithm, .channels = channels};
      if (algorithm == "auto") {
        WEFT_TRY(out.algorithm, runs.default_algorithm(bytes));
      }
      WEFT_TRY(const plan::LoneCollective* lone, runs.by(out.algorithm));
      out.seconds = lone->line_rate_seconds(bytes);
      return out;
    };
    return request;
  }
  if (args.fabric.empty() && !library.system.empty()) return request;  // a host of that system
  request.on_fabric = [runs](const workload::PlannedCall& call,
                             double bytes) mutable -> Result<double> {
    WEFT_TRY(const plan::LoneCollective* lone, runs.by(call.pick.algorithm));
    return lone->seconds(call.cost, bytes);
  };
  return request;
}

int print(const Common& common, const PerfArgs& args, const PerfRequest& request) {
  auto rows = workload::perf_rows(request);
  if (!rows) return report(rows.error());
  if (args.channels > 0)
    for (workload::PerfRow& row : *rows) row.channels = args.channels;
  std::vector<workload::Compared> compared;
  if (!args.compare.empty()) {
    const auto text = read_file(args.compare, measured_bytes_max);
    if (!text) return report(text.error());
    const auto measured = workload::read_nccl_table(*text, args.compare);
    if (!measured) return report(measured.error());
    if (const Status same = workload::check_run(request, *measured); !same)
      return report(same.error());
    compared = workload::compare(*rows, *measured);
    if (compared.empty())
      return report({Errc::value,
                     {args.compare, 0, 0},
                     "no size of this run was predicted",
                     "predict its sizes: -b, -e and -f as it had",
                     {}});
    for (const std::string& line : workload::other_choices(*rows, *measured))
      fmt::print(stderr, "weft: note: {}\n", line);
  }
  if (common.json) {
    fmt::print("{}", workload::perf_json(request, *rows, compared));
    return done;
  }
  fmt::print("{}", workload::nccl_table(request, *rows));
  if (!compared.empty()) fmt::print("\n{}", workload::comparison_table(compared));
  return done;
}

int perf_command(const Common& common, const PerfArgs& args) {
  Place place;
  auto request = read_request(common, args, place);
  if (!request) return report(request.error());
  for (const std::string& note : place.setup.notes) fmt::print(stderr, "weft: note: {}\n", note);
  if (!args.calibrate.empty()) {
    const auto anchor = workload::parse_anchor(argument("--calibrate", args.calibrate));
    if (!anchor) return report(anchor.error());
    request = workload::calibrate(*std::move(request), *anchor);
    if (!request) return report(request.error());
  }
  return print(common, args, *request);
}

}  // namespace

void add_perf(Commands& commands) {
  const auto [c, args] = commands.add<PerfArgs>(
      "perf", "Predict a collective for a range of sizes, in nccl-tests format", perf_command);
  c.add_option("op", args.op,
               "all_reduce, all_gather, reduce_scatter, broadcast, all_to_all, "
               "send_recv")
      ->required();
  c.add_option("--fabric", args.fabric, "Scenario or fabric file; default: one h100 host");
  c.add_option("--gpus,-n", args.gpus, "Number of ranks; default: all GPUs of the fabric")
      ->check(CLI::Range(2, 1'000'000));
  c.add_option("-b,--minbytes", args.begin, "Smallest size (32M)");
  c.add_option("-e,--maxbytes", args.end, "Largest size (32M)");
  CLI::Option* factor = c.add_option("-f,--stepfactor", args.factor, "Factor between sizes");
  c.add_option("-i,--stepbytes", args.step_bytes, "Step between sizes (1M)")->excludes(factor);
  c.add_option("--algorithm", args.algorithm, "Algorithm to use instead of the tuner's choice");
  c.add_option("--protocol", args.protocol, "LL, LL128 or Simple, instead of the tuner's choice");
  c.add_option("--channels", args.channels, "Number of parallel rings or trees")
      ->check(CLI::Range(1, 1024));
  c.add_option("--place", args.place,
               "topology, rack_order, fragmented, random, scattered, fitted");
  c.add_option("--system", args.system, "Machine preset (p5, h200-torch, ...)");
  c.add_option("--transport", args.transport, "infiniband, roce or efa");
  c.add_option("--calibrate", args.calibrate,
               "SIZE=GB/s: one measured row (size and busbw) from the machine");
  c.add_option("--compare", args.compare, "nccl-tests output to print alongside");
}

}  // namespace weft::cli
