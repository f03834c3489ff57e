#include "plan/init/init.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/names.hpp"
#include "model/generate/host.hpp"
#include "plan/init/split.hpp"
#include "workload/parallel/memory.hpp"

namespace weft::plan::init {
namespace {

// What a generator's keys follow from.
struct Cluster {
  std::uint64_t hosts = 0, gpus_per_host = 0;
};

std::uint64_t largest_divisor(std::uint64_t of, std::uint64_t at_most) {
  for (std::uint64_t d = std::min(of, at_most); d > 1; --d)
    if (of % d == 0) return d;
  return 1;
}

using Lines = std::vector<std::string>;

Lines ai_zone(const Cluster& c) {
  const std::uint64_t a_rack = largest_divisor(c.hosts, 2);
  return {fmt::format("racks: {}  # RTSWs; {} hosts of {} GPUs", c.hosts / a_rack, c.hosts,
                      c.gpus_per_host),
          fmt::format("hosts_per_rack: {}", a_rack),
          fmt::format("spines: {}  # CTSWs; as many as a rack has NICs: not oversubscribed",
                      a_rack * c.gpus_per_host)};
}

Lines three_tier(const Cluster& c) {
  const std::uint64_t a_rack = largest_divisor(c.hosts, 2), racks = c.hosts / a_rack;
  // Pods of at most 192 racks, as Meta's zones.
  std::uint64_t pods =
      racks > 1 ? racks / largest_divisor(racks, std::min<std::uint64_t>(racks / 2, 192)) : 1;
  if (racks == 1) pods = 1;
  return {fmt::format("pods: {}", pods), fmt::format("racks: {}  # of each pod", racks / pods),
          fmt::format("hosts_per_rack: {}", a_rack),
          "# oversubscription: 7  # between pods, as Meta's; without it as many cables as defaults "
          "say"};
}

Lines hpn(const Cluster& c) {
  const std::uint64_t a_segment = largest_divisor(c.hosts, 128), segments = c.hosts / a_segment;
  const std::uint64_t a_pod = largest_divisor(segments, 15);
  Lines out{
      fmt::format("segments: {}  # of each pod; Alibaba has up to 15", a_pod),
      fmt::format("hosts_per_segment: {}  # that share a dual-plane ToR for each rail", a_segment)};
  if (segments > a_pod) out.insert(out.begin(), fmt::format("pods: {}", segments / a_pod));
  return out;
}

Lines rail_optimized(const Cluster& c) {
  const std::uint64_t a_group = largest_divisor(c.hosts, 32);
  return {fmt::format("groups: {}", c.hosts / a_group),
          fmt::format("hosts_per_group: {}  # on the same leaf of each rail", a_group)};
}

Lines rail_only(const Cluster& c) { return {fmt::format("hosts: {}", c.hosts)}; }

Lines multi_plane(const Cluster& c) {
  const std::uint64_t a_rack = largest_divisor(c.hosts, 2);
  return {"planes: 4  # each NIC has a port in every one",
          fmt::format("racks: {}", c.hosts / a_rack), fmt::format("hosts_per_rack: {}", a_rack)};
}

struct FabricRule {
  std::string_view name, what;
  Lines (*keys)(const Cluster&);
};
constexpr std::array fabric_rules{
    FabricRule{"ai_zone", "two-stage Clos of RTSWs and CTSWs (Meta)", ai_zone},
    FabricRule{"three_tier", "pods of such zones below a third tier", three_tier},
    FabricRule{"hpn", "dual-plane, rails in segments (Alibaba HPN)", hpn},
    FabricRule{"rail_optimized", "a leaf for each rail of a group of hosts", rail_optimized},
    FabricRule{"rail_only", "rails that meet nowhere", rail_only},
    FabricRule{"multi_plane", "four planes, a port of each NIC in every one", multi_plane}};

Result<Cluster> cluster_of(const Wish& wish) {
  const model::HostCounts counts = model::host_counts(wish.gpu);
  const auto per_host = static_cast<std::uint64_t>(counts.gpus);
  const std::uint64_t unit = per_host * static_cast<std::uint64_t>(counts.domain_hosts);
  if (wish.gpus == 0 || wish.gpus % unit != 0) {
    const std::uint64_t below = wish.gpus / unit * unit;
    return fail(
        Errc::infeasible, {"--gpus", 0, 0},
        fmt::format("{} GPUs are not a multiple of {}, the GPUs of {} of {}", wish.gpus, unit,
                    counts.domain_hosts > 1 ? "an NVLink domain" : "a host", wish.gpu),
        below > 0 ? fmt::format("take {} or {}", below, below + unit)
                  : fmt::format("take {}", unit));
  }
  return Cluster{wish.gpus / per_host, per_host};
}

// What a plan says, and why.
Lines job_lines(const workload::ModelSpec& model, const workload::TrainingPlan& plan,
                const workload::GpuSpec& gpu) {
  const auto memory =
      std::visit([&](const auto& spec) { return workload::memory_use(spec, plan); }, model);
  const auto* transformer = std::get_if<workload::TransformerSpec>(&model);
  std::string parallel = fmt::format("tp: {}, pp: {}, dp: {}", plan.tp, plan.pp, plan.dp);
  if (plan.ep > 1) parallel += fmt::format(", ep: {}", plan.ep);
  Lines out{fmt::format("# The fewest GPUs a replica that fit: {:.1f} of {:.0f} GB on the fullest.",
                        memory.total() / 1e9, gpu.memory_bytes / 1e9),
            fmt::format("parallel: {{{}}}", parallel)};
  if (transformer != nullptr)
    out.push_back(fmt::format(
        "batch: {}  # sequences a step; {} micro-batches a replica{}", plan.batch,
        plan.microbatches(),
        plan.pp > 1 ? fmt::format(": the pipeline idles {:.0f} %",
                                  100.0 * (plan.pp - 1) / static_cast<double>(plan.microbatches()))
                    : ""));
  else
    out.insert(out.end(), {fmt::format("batch: {}  # samples a step", plan.batch),
                           fmt::format("micro_batch: {}", plan.micro_batch)});
  return out;
}

std::string indented(const Lines& lines, std::string_view indent) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("{}{}\n", indent, line);
  return out;
}

}  // namespace

std::vector<std::string> gpu_choices() {
  const std::vector<std::string> hosts = model::host_preset_names();
  std::vector<std::string> out;
  for (const std::string& name : workload::gpu_names())
    if (std::ranges::count(hosts, name) > 0) out.push_back(name);
  return out;
}

std::vector<FabricChoice> fabric_choices() {
  std::vector<FabricChoice> out;
  for (const FabricRule& rule : fabric_rules)
    out.push_back({std::string(rule.name), std::string(rule.what)});
  return out;
}

Result<std::string> first_scenario(const Wish& wish) {
  std::vector<std::string_view> names;
  for (const FabricRule& rule : fabric_rules) names.push_back(rule.name);
  WEFT_TRY(const std::size_t fabric, find_name({wish.fabric, {"--fabric", 0, 0}}, names));
  const std::vector<std::string> gpus = gpu_choices();
  const std::vector<std::string_view> gpu_texts(gpus.begin(), gpus.end());
  WEFT_TRY_STATUS(find_name({wish.gpu, {"--gpu", 0, 0}}, gpu_texts));
  WEFT_TRY(const workload::GpuSpec gpu, workload::gpu_by_name({wish.gpu, {"--gpu", 0, 0}}));
  WEFT_TRY(const workload::ModelSpec model,
           workload::model_by_name({wish.model, {"--model", 0, 0}}));
  WEFT_TRY(const Cluster cluster, cluster_of(wish));
  const auto domain =
      cluster.gpus_per_host * static_cast<std::uint64_t>(model::host_counts(wish.gpu).domain_hosts);
  WEFT_TRY(const workload::TrainingPlan plan, split_model(model, gpu, wish.gpus, domain));
  return fmt::format(
      "# {0} on {1} GPUs ({2}). Run it: weft run FILE --out report; other fabrics: "
      "docs/fabrics.md\n"
      "name: {0} on {1} x {2}\n"
      "fabric:\n"
      "  generator: {3}  # {4}\n"
      "  host: {2}\n"
      "{5}"
      "routing: {{scheme: e_ecmp, qps: 4}}  # or ecmp, spray, te, ...: docs/routing.md\n"
      "jobs:\n"
      "  - name: train\n"
      "    model: {0}\n"
      "{6}"
      "    place: rack_order  # or random, fitted\n"
      "# What would another choice cost? Each line is a run of its own, compared with the first.\n"
      "compare:\n"
      "  as above: {{}}\n"
      "  plain ECMP: {{routing: {{scheme: ecmp, qps: 1}}}}\n"
      "  spray: {{routing: {{scheme: spray, qps: 1}}}}\n"
      "seed: 1  # of hashes and random choices: the same seed gives the same bytes\n",
      wish.model, wish.gpus, wish.gpu, wish.fabric, fabric_rules[fabric].what,
      indented(fabric_rules[fabric].keys(cluster), "  "),
      indented(job_lines(model, plan, gpu), "    "));
}

}  // namespace weft::plan::init
