// weft place: hosts and rank order for a job, or for a list of jobs.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "base/file.hpp"
#include "base/json_text.hpp"
#include "base/percentile.hpp"
#include "base/plural.hpp"
#include "cli/cli.hpp"
#include "cli/commands.hpp"
#include "model/formats/hostlist.hpp"
#include "plan/explain/fabric_map.hpp"
#include "plan/place/host_names.hpp"
#include "plan/place/job_list.hpp"
#include "plan/place/place_job.hpp"
#include "plan/place/rank_file.hpp"
#include "plan/report/report.hpp"
#include "plan/run/training.hpp"
#include "workload/parallel/step_cost.hpp"

namespace weft::cli {
namespace {

using namespace plan::place;
using Within = HostRequest::Within;

struct PlaceArgs {
  std::string fabric, jobs, free, exclude, within, spread, feeds, order, model, gpu, rankfile, svg,
      page;
  std::vector<std::string> busy;
  std::uint64_t gpus = 0, batch = 0;
  std::string out = "-";
  bool explain = false;
};

// What the options say of the fabric's hosts.
struct Ground {
  const model::Fabric& fabric;
  HostNames names;
  FreeHosts free;
  HostNames::Feeds feeds;
  HostRequest request;
  std::uint32_t gpus_per_host;
  plan::HostOwners owners;  // for a drawing

  void set_owner(const std::string& name, std::span<const std::uint32_t> hosts) {
    for (const std::uint32_t host : hosts)
      owners.of[host] = static_cast<std::uint32_t>(owners.names.size());
    owners.names.push_back(name);
  }
};

Where option(const char* name) { return {name, 0, 0}; }

// Free hosts that the file's faults have down from the start.
void take_down(Ground& ground, const model::State& state, const Common& common) {
  constexpr std::size_t shown = 8;
  std::vector<std::uint32_t> down;
  for (std::uint32_t host = 0; host < ground.free.host_count(); ++host)
    if (ground.free.is_free(host) &&
        state.node(ground.fabric.hosts()[host]).health == model::Health::down)
      down.push_back(host);
  for (const std::uint32_t host : down) ground.free.take(host);
  if (down.empty()) return;
  ground.set_owner("down", down);
  std::vector<std::string> names;
  for (const std::uint32_t host : down | std::views::take(shown))
    names.push_back(ground.names.name(host));
  if (!common.quiet)
    fmt::print(stderr, "weft: note: {} down from the start by the file's faults: {}{}\n",
               counted(down.size(), "host"), fmt::join(names, ", "),
               down.size() > shown ? ", ..." : "");
}

// Running jobs, as "host[0-3]" or "NAME=host[0-3]"; no two on one host.
Status take_busy(Ground& ground, const std::vector<std::string>& busy) {
  std::map<std::uint32_t, std::string> job_of;
  Errors errors;
  for (std::size_t i = 0; i < busy.size(); ++i) {
    const std::size_t at = busy[i].find('=');
    const std::string job =
        at == std::string::npos ? fmt::format("--busy {}", i + 1) : busy[i].substr(0, at);
    const std::string list = at == std::string::npos ? busy[i] : busy[i].substr(at + 1);
    const auto hosts = ground.names.read({list, option("--busy")});
    if (!hosts) {
      errors.push_back(hosts.error());
      continue;
    }
    ground.set_owner(job, *hosts);
    for (const std::uint32_t host : *hosts) {
      const auto [it, is_new] = job_of.emplace(host, job);
      if (is_new) {
        if (ground.free.is_free(host)) ground.free.take(host);
      } else if (errors.size() < errors_max) {
        errors.push_back({Errc::infeasible,
                          option("--busy"),
                          fmt::format("{} is in use by {} and by {}", ground.names.name(host),
                                      quote(it->second), quote(job)),
                          "list each host once",
                          {}});
      }
    }
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return {};
}

Status read_free(Ground& ground, const PlaceArgs& args) {
  if (!args.free.empty()) {
    WEFT_TRY(const auto hosts, ground.names.read({args.free, option("--free")}));
    std::vector<bool> listed(ground.free.host_count(), false);
    for (const std::uint32_t host : hosts) listed[host] = true;
    for (std::uint32_t host = 0; host < listed.size(); ++host)
      if (!listed[host]) ground.free.take(host);
    Errors errors;
    for (const std::string& busy : args.busy) {
      const auto taken = ground.names.read({busy.substr(busy.find('=') + 1), option("--busy")});
      for (const std::uint32_t host : taken.value_or(std::vector<std::uint32_t>{}))
        if (listed[host] && errors.size() < errors_max)
          errors.push_back(
              {Errc::infeasible,
               option("--busy"),
               fmt::format("{} is listed as free and as busy", ground.names.name(host)),
               "remove it from one list",
               {}});
    }
    if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  }
  std::vector<std::uint32_t> out;
  for (std::uint32_t host = 0; host < ground.free.host_count(); ++host)
    if (!ground.free.is_free(host)) out.push_back(host);
  if (!out.empty()) ground.set_owner("not free", out);
  WEFT_TRY_STATUS(take_busy(ground, args.busy));
  WEFT_TRY(const auto excluded, ground.names.read({args.exclude, option("--exclude")}));
  for (const std::uint32_t host : excluded)
    if (ground.free.is_free(host)) ground.free.take(host);
  if (!excluded.empty()) ground.set_owner("excluded", excluded);
  return {};
}

Status read_constraints(Ground& ground, const PlaceArgs& args) {
  if (!args.within.empty() && args.within != "zone" && args.within != "rack")
    return fail(Errc::unknown, option("--within"),
                fmt::format("unknown place {}", quote(args.within)),
                "write --within zone or --within rack");
  ground.request.within = args.within == "zone"   ? Within::zone
                          : args.within == "rack" ? Within::rack
                                                  : Within::anywhere;
  if (!args.spread.empty() && args.spread != "power")
    return fail(Errc::unknown, option("--spread"), fmt::format("unknown {}", quote(args.spread)),
                "write --spread power, and the feeds with --feeds FILE");
  if (args.spread.empty() != args.feeds.empty())
    return fail(Errc::value, option(args.spread.empty() ? "--feeds" : "--spread"),
                "spreading over power feeds needs to know them",
                "write --spread power --feeds FILE; a CSV of name,feed with hosts or racks");
  if (args.spread.empty()) return {};
  if (ground.request.within == Within::rack)
    return fail(Errc::infeasible, option("--within"), "a job cannot stay in a rack and be spread",
                "drop --within rack or --spread");
  WEFT_TRY(const std::string text, read_file(args.feeds));
  WEFT_TRY(ground.feeds, ground.names.read_feeds(text, args.feeds));
  ground.request.feed_of = ground.feeds.of;
  ground.request.feeds = static_cast<std::uint32_t>(ground.feeds.names.size());
  return {};
}

// "tp=8,pp=4,dp=2" and the model as the job of a scenario; its step in hosts.
Result<std::optional<HostGrid>> read_grid(const Ground& ground, const PlaceArgs& args) {
  if (args.order.empty() != args.model.empty())
    return fail(Errc::value, option(args.order.empty() ? "--model" : "--order"),
                "the order of ranks needs the model and how it is spread",
                "write --model llama3-8b --order tp=8,pp=2,dp=4");
  if (args.order.empty()) return std::nullopt;
  std::string parallel = args.order;
  for (std::size_t at = 0; (at = parallel.find('=', at)) != std::string::npos; at += 2)
    parallel.replace(at, 1, ": ");
  std::string job = fmt::format("model: {}\nparallel: {{{}}}\n", args.model, parallel);
  if (!args.gpu.empty()) job += fmt::format("gpu: {}\n", args.gpu);
  if (args.batch > 0) job += fmt::format("batch: {}\n", args.batch);
  WEFT_TRY(const Config config, parse_yaml(job, "--order"));
  Errors errors;
  Reader reader(config, "job", errors);
  const auto training = plan::read_training(reader, ground.fabric, args.gpus);
  reader.finish();
  if (!errors.empty() || !training) return std::unexpected(combine(std::move(errors)));
  WEFT_TRY(const model::StepCost cost,
           workload::step_cost(training->model, training->plan, training->gpu));
  auto grid = host_grid(cost, ground.gpus_per_host);
  if (!grid)
    return fail(Errc::unsupported, option("--order"),
                fmt::format("hosts of {} GPUs do not divide {} into equal blocks",
                            ground.gpus_per_host, training->plan.text()),
                "let the inner dimensions fill whole hosts");
  return grid;
}

std::string host_list(const Ground& ground, std::span<const std::uint32_t> hosts) {
  std::vector<std::string> names;
  for (const std::uint32_t host : hosts) names.push_back(ground.names.name(host));
  return fmt::format("{}", fmt::join(names, ","));
}

std::string zones_text(const Ground& ground, std::span<const HostChoice::Share> zones) {
  std::vector<std::string> out;
  for (const auto& share : zones)
    out.push_back(fmt::format("{} {}", ground.free.zone_name(share.zone), share.hosts));
  return fmt::format("{}", fmt::join(out, ", "));
}

JsonList zones_json(const Ground& ground, std::span<const HostChoice::Share> zones) {
  JsonList out;
  for (const auto& share : zones)
    out.add(JsonObject().add("zone", ground.free.zone_name(share.zone)).add("hosts", share.hosts));
  return out;
}

JsonObject order_json(const JobPlacement::Order& order) {
  return JsonObject()
      .add("zone_bytes", order.cost)
      .add("zone_bytes_bound", order.bound)
      .add("gap_bytes", order.gap())
      .add("best_plain_bytes", order.plain_cost)
      .add("best_plain", order.plain_name)
      .add("rack_bytes", order.rack_cost);
}

std::string placement_json(const Ground& ground, const JobPlacement& placed) {
  std::vector<std::string> hosts;
  for (const std::uint32_t host : placed.hosts) hosts.push_back(ground.names.name(host));
  JsonObject out;
  out.add("hosts", hosts).add("zones", zones_json(ground, placed.zones)).add("why", placed.why);
  if (placed.order) out.add("order", order_json(*placed.order));
  return std::move(out).text();
}

// All hosts, and those of the job in the order of its ranks.
std::string page_json(const Ground& ground, const JobPlacement& placed) {
  JsonList hosts;
  std::vector<std::string> zones;
  for (std::uint32_t zone = 0; zone < ground.free.zone_count(); ++zone)
    zones.push_back(ground.free.zone_name(zone));
  for (std::uint32_t host = 0; host < ground.free.host_count(); ++host) {
    const std::uint32_t owner = ground.owners.of[host];
    hosts.add(JsonObject()
                  .add("name", ground.names.name(host))
                  .add("zone", ground.free.zone_of(host))
                  .add("rack", ground.free.rack_of(host))
                  .add("owner",
                       owner == plan::HostOwners::free ? std::optional<std::uint32_t>() : owner));
  }
  std::optional<JsonObject> bytes;
  if (placed.order) bytes = order_json(*placed.order);
  return JsonObject()
      .add("hosts", hosts)
      .add("zones", zones)
      .add("owners", ground.owners.names)
      .add("order", placed.hosts)
      .add("gpus_per_host", ground.gpus_per_host)
      .add("why", placed.why)
      .add("bytes", bytes)
      .text();
}

Status write_drawings(Ground& ground, const PlaceArgs& args, const JobPlacement& placed) {
  if (args.svg.empty() && args.page.empty()) return {};
  ground.set_owner("the job", placed.hosts);
  const std::string title =
      fmt::format("{}: {}", counted(placed.hosts.size(), "host"), zones_text(ground, placed.zones));
  if (!args.svg.empty()) {
    const auto map = plan::fabric_map(ground.fabric, {}, ground.owners);
    WEFT_TRY_STATUS(write_file(args.svg, plan::to_svg(map, title)));
  }
  if (args.page.empty()) return {};
  return write_file(args.page,
                    plan::report::page_text({.title = title,
                                             .command = "place",
                                             .table = host_list(ground, placed.hosts),
                                             .data = {{"place-data", page_json(ground, placed)}}}));
}

Status place_one(Ground& ground, const Common& common, const PlaceArgs& args) {
  WEFT_TRY(const auto grid, read_grid(ground, args));
  ground.request.hosts =
      static_cast<std::uint32_t>((args.gpus + ground.gpus_per_host - 1) / ground.gpus_per_host);
  WEFT_TRY(const JobPlacement placed,
           place_job(ground.free, ground.request, grid ? &*grid : nullptr,
                     Rng(common.seed.value_or(1)).stream("place")));
  WEFT_TRY_STATUS(write_drawings(ground, args, placed));
  if (!args.rankfile.empty()) {
    std::vector<std::string> hosts;
    for (const std::uint32_t host : placed.hosts) hosts.push_back(ground.names.name(host));
    WEFT_TRY_STATUS(
        write_file(args.out, rank_file(args.rankfile, hosts, ground.gpus_per_host, args.gpus)));
    if (args.out == "-") return {};
  }
  if (common.json) {
    fmt::print("{}\n", placement_json(ground, placed));
    return {};
  }
  fmt::print("{}: {}\n", counted(placed.hosts.size(), "host"), zones_text(ground, placed.zones));
  for (const std::string& line : placed.why) fmt::print("  {}\n", line);
  if (placed.order) {
    fmt::print("order: {}\n", order_text(*placed.order));
    fmt::print("order: {} of a step cross racks\n", human(Bytes(placed.order->rack_cost)));
  }
  fmt::print("hosts in rank order: {}\n", host_list(ground, placed.hosts));
  return {};
}

double ratio(std::uint64_t a, std::uint64_t b) {
  return b == 0 ? 1 : static_cast<double>(a) / static_cast<double>(b);
}

std::string replay_json(const Ground& ground, const ReplayResult& result, std::int64_t p50,
                        std::int64_t p99) {
  JsonList decisions;
  for (const auto& decision : result.decisions)
    decisions.add(JsonObject()
                      .add("job", decision.job)
                      .add_if("zones", zones_json(ground, decision.zones))
                      .add_if("why", decision.why)
                      .add_if("refused", decision.refused));
  return JsonObject()
      .add("started", result.started)
      .add("refused", result.refused)
      .add("jobs_of_several_hosts", result.wide_jobs)
      .add("zones", result.zones)
      .add("zones_least", result.zones_least)
      .add("racks", result.racks)
      .add("racks_least", result.racks_least)
      .add("decision_p50_s", static_cast<double>(p50) / 1e9)
      .add("decision_p99_s", static_cast<double>(p99) / 1e9)
      .add("decisions", decisions)
      .text();
}

Status place_list(Ground& ground, const Common& common, const PlaceArgs& args) {
  WEFT_TRY(std::string text, read_file(args.jobs));
  if (args.jobs.ends_with(".gz")) {
    WEFT_TRY(text, gunzip(text, args.jobs));
  }
  WEFT_TRY(const std::vector<JobEvent> events, parse_job_list(text, args.jobs));
  const ReplayResult result = replay(ground.free, events, ground.request, [] {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  });
  const auto& times = result.decision_ns;
  const std::span<const std::int64_t> ns = times;
  const std::int64_t p50 = ns.empty() ? 0 : percentile(ns, 50);
  const std::int64_t p99 = ns.empty() ? 0 : percentile(ns, 99);
  if (common.json) {
    fmt::print("{}\n", replay_json(ground, result, p50, p99));
    return {};
  }
  if (args.explain)
    for (const auto& decision : result.decisions) {
      fmt::print("{}: {}\n", decision.job,
                 decision.refused.empty() ? zones_text(ground, decision.zones)
                                          : "refused: " + decision.refused);
      for (const std::string& line : decision.why) fmt::print("  {}\n", line);
    }
  fmt::print("{} jobs started, {} refused; of {} with several hosts:\n", result.started,
             result.refused, result.wide_jobs);
  fmt::print("zones {}, at least {} ({:.3f})\n", result.zones, result.zones_least,
             ratio(result.zones, result.zones_least));
  fmt::print("racks {}, at least {} ({:.4f})\n", result.racks, result.racks_least,
             ratio(result.racks, result.racks_least));
  fmt::print("a decision took {:.1f} us (p50), {:.1f} us (p99)\n", static_cast<double>(p50) / 1e3,
             static_cast<double>(p99) / 1e3);
  return {};
}

Status place_command(const Common& common, const PlaceArgs& args) {
  if (args.jobs.empty() == (args.gpus == 0))
    return fail(Errc::parse, option("weft place"), "specify either --gpus or --jobs",
                "write --gpus N for one job, or --jobs FILE for a list");
  const std::vector<std::string> formats = rank_file_formats();
  if (!args.rankfile.empty() && std::ranges::find(formats, args.rankfile) == formats.end())
    return fail(Errc::unknown, option("--rankfile"),
                fmt::format("unknown format {}{}", quote(args.rankfile),
                            did_you_mean(args.rankfile, formats)),
                fmt::format("choose one of: {}", fmt::join(formats, ", ")));
  if (!args.jobs.empty() &&
      (!args.rankfile.empty() || !args.order.empty() || !args.svg.empty() || !args.page.empty()))
    return fail(Errc::unsupported, option("--jobs"), "a list of jobs has no rank order, no drawing",
                "place one job with --gpus, --model and --order");
  WEFT_TRY(const FabricFile file, load_fabric_file(common, args.fabric));
  const model::Fabric& fabric = file.fabric;
  if (fabric.hosts().empty() || fabric.gpus().empty())
    return fail(Errc::infeasible, {args.fabric, 0, 0}, "the fabric has no hosts with GPUs",
                "use a fabric with hosts");
  const std::size_t gpus = fabric.gpus_of(fabric.hosts().front()).size();
  for (const model::NodeId host : fabric.hosts())
    if (gpus == 0 || fabric.gpus_of(host).size() != gpus)
      return fail(
          Errc::unsupported, {args.fabric, 0, 0},
          fmt::format("{} has {} GPUs, {} has {}", fabric.name(host), fabric.gpus_of(host).size(),
                      fabric.name(fabric.hosts().front()), gpus),
          "use a fabric whose hosts are alike");
  Ground ground{.fabric = fabric,
                .names = HostNames(fabric),
                .free = FreeHosts(fabric),
                .feeds = {},
                .request = {},
                .gpus_per_host = static_cast<std::uint32_t>(gpus),
                .owners = {}};
  ground.owners.of.assign(ground.free.host_count(), plan::HostOwners::free);
  if (args.gpus > fabric.gpus().size())
    return fail(
        Errc::infeasible, option("--gpus"),
        fmt::format("{} GPUs requested, but the fabric has {}", args.gpus, fabric.gpus().size()),
        "request fewer");
  WEFT_TRY_STATUS(read_free(ground, args));
  take_down(ground, file.state, common);
  WEFT_TRY_STATUS(read_constraints(ground, args));
  return args.jobs.empty() ? place_one(ground, common, args) : place_list(ground, common, args);
}

}  // namespace

void add_place(Commands& commands) {
  const auto at_least_one = [](const std::string& text) {
    const bool is_zero = !text.empty() && text.find_first_not_of('0') == std::string::npos;
    return is_zero ? text + " is too few; write at least 1" : std::string();
  };
  const auto [c, args] = commands.add<PlaceArgs>(
      "place", "Choose hosts and the order of ranks for a job, or replay a list of jobs",
      place_command);
  c.add_option("--fabric", args.fabric, "Scenario or fabric file")->required();
  c.add_option("--gpus", args.gpus, "GPUs of the job: whole hosts")->check(at_least_one);
  c.add_option("--jobs", args.jobs, "List of jobs: start,JOB,HOSTS and stop,JOB; may be gzipped");
  c.add_option("--free", args.free, "Hosts that are free; all others are not: host[0-63],rack:40");
  c.add_option("--busy", args.busy, "Hosts of a running job, [NAME=]LIST; may be repeated");
  c.add_option("--exclude", args.exclude, "Hosts that must not be used");
  c.add_option("--within", args.within, "zone or rack: the job must stay in one");
  c.add_option("--spread", args.spread, "power: an equal share of the hosts on every feed");
  c.add_option("--feeds", args.feeds, "CSV of name,feed: power feeds of hosts, racks or pods");
  CLI::Option* model =
      c.add_option("--model", args.model, "Model whose ranks are ordered: llama3-8b");
  c.add_option("--order", args.order, "How it is spread: tp=8,pp=4,dp=16, also cp, ep, vp");
  c.add_option("--batch", args.batch, "Sequences of a step")->check(at_least_one)->needs(model);
  c.add_option("--gpu", args.gpu, "Rates of its GPUs, where the fabric does not say: h100")
      ->needs(model);
  CLI::Option* rankfile =
      c.add_option("--rankfile", args.rankfile, "Write the order for slurm, openmpi or pytorch");
  c.add_option("-o,--out", args.out, "File for it; - for standard output")->needs(rankfile);
  c.add_option("--svg", args.svg, "File: draw the fabric, hosts coloured by job");
  c.add_option("--page", args.page, "HTML file: hosts by rank and zone, the fabric by owner");
  c.add_flag("--explain", args.explain, "With --jobs: the reasons of every choice");
}

}  // namespace weft::cli
