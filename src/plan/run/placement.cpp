#include "plan/run/placement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "model/formats/hostlist.hpp"
#include "plan/place/place_job.hpp"

namespace weft::plan {

std::vector<std::string> placement_names() {
  return {"topology", "rack_order", "fragmented", "random", "scattered", "fitted", "list"};
}

Placer::Placer(const Fabric& fabric)
    : fabric_(fabric), free_(fabric.gpus().size(), true), free_count_(fabric.gpus().size()) {}

void Placer::take(NodeId gpu) {
  WEFT_CHECK(is_free(gpu));
  free_[fabric_.role_index(gpu)] = false;
  --free_count_;
}

std::size_t Placer::free_on(NodeId host) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(fabric_.gpus_of(host), [&](NodeId gpu) { return is_free(gpu); }));
}

std::vector<NodeId> Placer::take_hosts(const std::vector<NodeId>& hosts, std::size_t count) {
  std::vector<NodeId> out;
  for (const NodeId host : hosts)
    for (const NodeId gpu : fabric_.gpus_of(host)) {
      if (out.size() == count) return out;
      if (!is_free(gpu)) continue;
      take(gpu);
      out.push_back(gpu);
    }
  return out;
}

// Emptiest racks first; racks of one fullness, and hosts of one rack, in fabric order.
std::vector<NodeId> Placer::hosts_by_free_racks() const {
  std::map<model::ScopeId, std::size_t> free_in_rack;
  std::vector<NodeId> hosts(fabric_.hosts().begin(), fabric_.hosts().end());
  const auto rack = [&](NodeId host) { return fabric_.enclosing(host, model::ScopeKind::rack); };
  for (const NodeId host : hosts) free_in_rack[rack(host)] += free_on(host);
  std::ranges::sort(hosts, {}, [&](NodeId host) {
    return std::pair(SIZE_MAX - free_in_rack.at(rack(host)), host);
  });
  return hosts;
}

// Random hosts, as many as have `count` free GPUs between them.
std::vector<NodeId> Placer::draw_hosts(std::size_t count, Rng& rng) const {
  std::vector<NodeId> hosts(fabric_.hosts().begin(), fabric_.hosts().end());
  rng.shuffle(std::span(hosts));
  std::size_t enough = 0;
  std::size_t used = 0;
  while (enough < count) enough += free_on(hosts[used++]);
  hosts.resize(used);
  return hosts;
}

Result<std::vector<NodeId>> Placer::place(std::string_view placement, std::size_t count, Rng rng,
                                          const Where& where) {
  if (count > free_count_)
    return fail(Errc::infeasible, where,
                fmt::format("{} GPUs requested, but only {} of {} are free", count, free_count_,
                            free_.size()),
                "request fewer, or make the fabric larger");
  if (placement == "topology") return take_hosts(hosts_by_free_racks(), count);
  if (placement == "rack_order")
    return take_hosts({fabric_.hosts().begin(), fabric_.hosts().end()}, count);
  if (placement == "fragmented" || placement == "random") {
    std::vector<NodeId> hosts = draw_hosts(count, rng);
    if (placement == "fragmented") std::ranges::sort(hosts);
    return take_hosts(hosts, count);
  }
  if (placement == "fitted") {
    std::string note;
    return place_fitted(count, nullptr, rng, where, note);
  }
  WEFT_CHECK(placement == "scattered");
  std::vector<NodeId> gpus;
  for (const NodeId gpu : fabric_.gpus())
    if (is_free(gpu)) gpus.push_back(gpu);
  rng.shuffle(std::span(gpus));
  gpus.resize(count);
  for (const NodeId gpu : gpus) take(gpu);
  return gpus;
}

Result<std::vector<NodeId>> Placer::place_fitted(std::size_t count, const model::StepCost* cost,
                                                 const Rng& rng, const Where& where,
                                                 std::string& note) {
  place::FreeHosts hosts(fabric_);
  const auto refuse = [&](const std::string& what) {
    return fail(Errc::infeasible, where, "place: fitted: " + what, "use another place:");
  };
  if (fabric_.hosts().empty() || fabric_.gpus_of(fabric_.hosts().front()).empty())
    return refuse("the fabric has no hosts with GPUs");
  const std::size_t gpus = fabric_.gpus_of(fabric_.hosts().front()).size();
  for (std::uint32_t i = 0; i < hosts.host_count(); ++i) {
    const NodeId host = fabric_.hosts()[i];
    if (fabric_.gpus_of(host).size() != gpus)
      return refuse(fmt::format("the fabric has hosts of {} and of {} GPUs", gpus,
                                fabric_.gpus_of(host).size()));
    if (free_on(host) < gpus) hosts.take(i);
  }
  const auto needed = static_cast<std::uint32_t>((count + gpus - 1) / gpus);
  const auto grid = cost != nullptr && count % gpus == 0
                        ? place::host_grid(*cost, static_cast<std::uint32_t>(gpus))
                        : std::nullopt;
  auto placed = place::place_job(hosts, {.hosts = needed, .feed_of = {}}, grid ? &*grid : nullptr,
                                 rng.stream("order"));
  if (!placed) return refuse(placed.error().what);
  if (placed->order && placed->zones.size() > 1) note = place::order_text(*placed->order);
  std::vector<NodeId> out;
  for (const std::uint32_t host : placed->hosts) out.push_back(fabric_.hosts()[host]);
  return take_hosts(out, count);
}

const place::HostNames& Placer::host_names() {
  if (!host_names_) host_names_.emplace(fabric_);
  return *host_names_;
}

void Placer::take_listed(NodeId gpu, const Where& where, std::vector<NodeId>& out, Errors& errors) {
  if (is_free(gpu)) {
    take(gpu);
    out.push_back(gpu);
  } else if (errors.size() < errors_max) {
    errors.push_back({Errc::infeasible,
                      where,
                      fmt::format("{} is already in use", fabric_.name(gpu)),
                      "assign each GPU once, to one job",
                      {}});
  }
}

// Of one name of a list.
Result<std::vector<NodeId>> Placer::gpus_named(const Token& name) {
  const Result<NodeId> node = fabric_.find_node(name);
  if (node && fabric_.kind(*node) == model::NodeKind::gpu) return std::vector{*node};
  std::vector<NodeId> out;
  if (const auto host = host_names().find(trim(name.text))) {
    const auto gpus = fabric_.gpus_of(fabric_.hosts()[*host]);
    out.assign(gpus.begin(), gpus.end());
  } else if (const auto scope = fabric_.find_scope(name)) {
    const model::ScopeKind kind = fabric_.scopes()[*scope].kind;
    for (const NodeId gpu : fabric_.gpus())
      if (fabric_.enclosing(gpu, kind) == *scope) out.push_back(gpu);
  } else if (!node) {
    return std::unexpected(node.error());
  }
  if (out.empty())
    return fail(Errc::value, name.where, fmt::format("\"{}\" is not a GPU", name.text),
                "list GPU indices, names such as gpu:17, or hosts: tux[0-3,9]");
  return out;
}

Result<std::vector<NodeId>> Placer::place_list(std::span<const Token> names) {
  Errors errors;
  std::vector<NodeId> out;
  for (const Token& name : names) {
    std::vector<std::string> expanded{std::string(name.text)};
    if (name.text.find_first_of("[,") != name.text.npos) {
      auto list = model::expand_hostlist(name, fabric_.gpus().size());
      if (!list) {
        errors.push_back(std::move(list).error());
        continue;
      }
      expanded = *std::move(list);
    }
    for (const std::string& one : expanded) {
      if (errors.size() == errors_max) break;
      const auto gpus = gpus_named({one, name.where});
      if (!gpus)
        errors.push_back(gpus.error());
      else
        for (const NodeId gpu : *gpus) take_listed(gpu, name.where, out, errors);
    }
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

Result<std::vector<NodeId>> Placer::place_lines(std::span<const place::RankLine> lines) {
  using Gpus = place::RankLine::Gpus;
  Errors errors;
  std::vector<NodeId> out;
  std::map<std::uint32_t, std::size_t> used;  // GPUs of a host that lines without a slot took
  for (const place::RankLine& line : lines) {
    if (errors.size() == errors_max) break;
    const auto hosts = host_names().read({line.host, line.where});
    if (!hosts) {
      errors.push_back(hosts.error());
      continue;
    }
    for (const std::uint32_t host : *hosts) {
      const auto gpus = fabric_.gpus_of(fabric_.hosts()[host]);
      std::size_t first = 0, count = gpus.size();
      if (line.gpus != Gpus::whole) {
        first = line.gpus == Gpus::slot ? line.number : used[host];
        count = line.gpus == Gpus::slot ? 1 : line.number;
        if (line.gpus == Gpus::next) used[host] += count;
      }
      if (first + count > gpus.size()) {
        errors.push_back({Errc::value,
                          line.where,
                          fmt::format("{} has {} GPUs, and GPU {} of it is listed",
                                      host_names().name(host), gpus.size(), first + count - 1),
                          "list as many ranks on a host as it has GPUs; slots begin at 0",
                          {}});
        continue;
      }
      for (const NodeId gpu : gpus.subspan(first, count)) take_listed(gpu, line.where, out, errors);
    }
  }
  if (!errors.empty()) return std::unexpected(combine(std::move(errors)));
  return out;
}

}  // namespace weft::plan
