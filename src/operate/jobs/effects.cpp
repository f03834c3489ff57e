#include "operate/jobs/effects.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "model/fabric/zones.hpp"
#include "operate/repair/reserve.hpp"

namespace weft::operate::jobs {
namespace {

using model::Fabric;
using model::NodeId;
using model::ScopeKind;
using repair::Gone;

// Slower by less is as fast: the engine's times repeat, hashes of other flows do not.
constexpr double slowdown_seen = 1.0005;

std::vector<NodeId> gpus_of(const Fabric& fabric, const RunningJob& job) {
  std::vector<NodeId> out;
  for (const std::uint32_t host : job.hosts) {
    const auto gpus = fabric.gpus_of(fabric.hosts()[host]);
    out.insert(out.end(), gpus.begin(), gpus.end());
  }
  return out;
}

// The described job of that name, where the running one stands.
std::optional<Config> described(const Cluster& cluster, const RunningJob& job) {
  if (cluster.described.kind != Config::Kind::list) return std::nullopt;
  for (const Config& item : cluster.described.items) {
    const Config* name = item.find("name");
    if (name == nullptr || name->text != job.name) continue;
    Config out = item;
    std::erase_if(out.fields, [](const Config::Field& field) { return field.key == "gpus"; });
    out.at_or_add("name") = Config::scalar(job.id);
    out.at_or_add("place") = Config::scalar("list");
    Config ranks = Config::list();
    for (const NodeId gpu : gpus_of(cluster.setup.fabric, job))
      ranks.items.push_back(Config::scalar(cluster.setup.fabric.name(gpu)));
    out.at_or_add("ranks") = std::move(ranks);
    return out;
  }
  return std::nullopt;
}

std::optional<plan::Jobs> known_jobs(const Cluster& cluster, std::span<const RunningJob> running) {
  Config list = Config::list();
  for (const RunningJob& job : running) {
    auto item = described(cluster, job);
    if (!item || !job.strangers.empty()) return std::nullopt;
    list.items.push_back(*std::move(item));
  }
  auto jobs = plan::read_jobs(cluster.setup, list, cluster.seed);
  if (!jobs || jobs->order.size() != running.size()) return std::nullopt;
  return *std::move(jobs);
}

// How much of a host is gone: nothing, a NIC or one of its cables, or all ways out.
enum class Loss : std::uint8_t { none, part, all };
Loss loss_of(const Fabric& fabric, const Gone& gone, NodeId host) {
  if (gone.node(host)) return Loss::all;
  std::size_t links = 0, lost = 0;
  for (const NodeId nic : fabric.nics_of(host))
    for (const model::LinkId link : fabric.out(nic)) {
      if (!fabric.on_wire(link)) continue;
      ++links;
      if (gone.node(nic) || gone.link(link)) ++lost;
    }
  if (lost == 0) return Loss::none;
  return lost == links ? Loss::all : Loss::part;
}

Gone gone_of(const Fabric& fabric, std::span<const model::Entity> parts) {
  Gone out(fabric);
  for (const model::Entity& part : parts) out.add(part);
  return out;
}

class Spares {
 public:
  Spares(const Fabric& fabric, std::span<const RunningJob> running, const Gone& bad)
      : fabric_(fabric), zone_(model::zone_kind(fabric)) {
    std::set<std::uint32_t> taken;
    for (const RunningJob& job : running) taken.insert(job.hosts.begin(), job.hosts.end());
    for (std::uint32_t host = 0; host < fabric.hosts().size(); ++host)
      if (!taken.contains(host) && loss_of(fabric, bad, fabric.hosts()[host]) == Loss::none)
        free_.push_back(host);
  }
  // As large as `host`, and no longer free.
  std::optional<std::uint32_t> take_near(std::uint32_t host) {
    const std::size_t gpus = fabric_.gpus_of(fabric_.hosts()[host]).size();
    auto best = free_.end();
    for (auto it = free_.begin(); it != free_.end(); ++it)
      if (fabric_.gpus_of(fabric_.hosts()[*it]).size() == gpus &&
          (best == free_.end() || distance(host, *it) < distance(host, *best)))
        best = it;
    if (best == free_.end()) return std::nullopt;
    const std::uint32_t out = *best;
    free_.erase(best);
    return out;
  }

 private:
  int distance(std::uint32_t a, std::uint32_t b) const {
    const auto same = [&](ScopeKind kind) {
      return fabric_.enclosing(fabric_.hosts()[a], kind) ==
             fabric_.enclosing(fabric_.hosts()[b], kind);
    };
    if (same(ScopeKind::rack)) return 0;
    return !zone_ || same(*zone_) ? 1 : 2;
  }

  const Fabric& fabric_;
  std::optional<ScopeKind> zone_;
  std::vector<std::uint32_t> free_;
};

}  // namespace

Work work_of(const Cluster& cluster, std::span<const RunningJob> running) {
  if (auto known = known_jobs(cluster, running)) return {*std::move(known), true};
  Work out;
  for (const RunningJob& job : running) {
    plan::PlacedJob placed;
    placed.job.name = job.id;
    placed.job.ranks = gpus_of(cluster.setup.fabric, job);
    out.jobs.order.push_back({plan::Jobs::Entry::Kind::collective, out.jobs.collectives.size()});
    out.jobs.collectives.push_back(std::move(placed));
  }
  return out;
}

Result<repair::Impact> predict(const Cluster& cluster, const Work& work,
                               std::span<const model::Entity> out, const model::Entity& part) {
  repair::WhatIf::Options options;
  if (!work.is_known) options.ranks_max = 0;  // nothing can be simulated: a bound
  const std::vector<model::Entity> drain{part};
  return repair::WhatIf(cluster.setup, work.jobs, cluster.seed, options).predict(out, drain);
}

Result<Effects> effects_of(const Cluster& cluster, std::span<const RunningJob> running,
                           std::span<const model::Entity> out,
                           std::span<const model::Entity> suspects, const model::Entity& part) {
  Effects effects;
  if (running.empty()) return effects;
  const Fabric& fabric = cluster.setup.fabric;
  WEFT_TRY(const repair::Impact impact, predict(cluster, work_of(cluster, running), out, part));
  effects.method = impact.method;
  std::map<std::string_view, const repair::JobImpact*> by_id;
  for (const repair::JobImpact& job : impact.jobs) by_id[job.name] = &job;

  const std::vector<model::Entity> parts{part};
  const Gone gone = gone_of(fabric, parts);
  std::vector<model::Entity> bad(out.begin(), out.end());
  bad.insert(bad.end(), suspects.begin(), suspects.end());
  bad.push_back(part);
  Spares spares(fabric, running, gone_of(fabric, bad));
  for (std::size_t i = 0; i < running.size(); ++i) {
    JobEffect effect{.job = i, .impact = {}, .at_part = {}, .spares = {}};
    if (const auto found = by_id.find(running[i].id); found != by_id.end())
      effect.impact = *found->second;
    for (const std::uint32_t host : running[i].hosts) {
      const Loss loss = loss_of(fabric, gone, fabric.hosts()[host]);
      if (loss != Loss::none) effect.at_part.push_back(host);
      if (loss == Loss::all) effect.impact.is_stalled = true;
    }
    const bool is_hit = effect.impact.is_stalled || effect.impact.slowdown >= slowdown_seen;
    if (!is_hit && effect.at_part.empty()) {
      ++effects.unaffected;
      continue;
    }
    if (effect.impact.is_stalled)
      for (const std::uint32_t host : effect.at_part)
        if (const auto spare = spares.take_near(host)) effect.spares.emplace_back(host, *spare);
    effects.jobs.push_back(std::move(effect));
  }
  std::ranges::stable_sort(effects.jobs, [](const JobEffect& a, const JobEffect& b) {
    if (a.impact.is_stalled != b.impact.is_stalled) return a.impact.is_stalled;
    return a.impact.slowdown > b.impact.slowdown;
  });
  return effects;
}

JsonObject to_json(const Effects& effects, std::span<const RunningJob> running,
                   const NodeNames& names) {
  JsonList jobs;
  for (const JobEffect& effect : effects.jobs) {
    std::vector<std::string> at;
    for (const std::uint32_t host : effect.at_part) at.push_back(names.name(host));
    JsonList spares;
    for (const auto& [host, spare] : effect.spares)
      spares.add(JsonObject().add("host", names.name(host)).add("spare", names.name(spare)));
    jobs.add(to_json(running[effect.job], names)
                 .add("stalled", effect.impact.is_stalled)
                 .add("slowdown", effect.impact.slowdown, digits(6))
                 .add("hosts_at_part", at)
                 .add("spares", spares));
  }
  const bool is_simulated = effects.method == repair::Impact::Method::simulated;
  return JsonObject()
      .add("method", is_simulated ? "simulated" : "bounded")
      .add("jobs", jobs)
      .add("unaffected", effects.unaffected);
}

}  // namespace weft::operate::jobs
