#include "adapt/lab/fault_means.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <ctime>
#include <utility>
#include <vector>

#include "adapt/lab/build.hpp"
#include "adapt/lab/fault_worker.hpp"
#include "adapt/lab/wire.hpp"
#include "base/file.hpp"
#include "base/text.hpp"

namespace weft::adapt::lab {
namespace {

constexpr std::chrono::milliseconds worker_patience{2'000};
constexpr std::array<std::string_view, 4> daemon_order{"zebra", "bfdd", "bgpd", "snmpd"};
// Destination unreachable, source quench, time exceeded, parameter problem: the kernel's default.
constexpr std::string_view limited_icmp = "6168";

std::string table_of(const FaultRecord& record) { return "weft_" + record.id; }
std::string worker_of(const FaultRecord& record) { return "weft-" + record.id; }
std::uint32_t number_of(const FaultRecord& record) {
  const auto number = parse_count({std::string_view(record.id).substr(1), {}});
  return static_cast<std::uint32_t>(number.value_or(0));
}
std::string count_file(const Lab& lab, const FaultRecord& record, std::size_t site) {
  return fmt::format("{}/fault-{}-{}.count", lab.directory, record.id, site);
}

// Keeps the first failure. That a namespace is gone is none: what was in it is gone too.
void note(Status& first, Status status) {
  if (first && !status && status.error().code != Errc::unknown) first = std::move(status);
}

// The sites of one namespace after another, as (namespace, interfaces). A dead link is cut at one
// end, both ways.
std::map<std::string, std::vector<std::string>> filtered(const FaultTarget& target,
                                                         FaultKind kind) {
  std::map<std::string, std::vector<std::string>> out;
  for (const FaultSite& site : target.sites) {
    out[site.netns].push_back(site.interface);
    if (kind == FaultKind::dead_link) break;
  }
  return out;
}

Status apply_filter(const FaultTarget& target, const FaultRecord& record) {
  using enum FaultKind;
  const FaultSpec& spec = record.spec;
  const FilterSpec filter{
      .action = spec.kind == ecn_mark ? FilterSpec::Action::mark_ce : FilterSpec::Action::drop,
      .directions =
          spec.kind == dead_link ? FilterSpec::Directions::both : FilterSpec::Directions::egress,
      .share = spec.share,
      .bucket = spec.bucket,
      .dscp = spec.dscp,
      .seed = spec.seed};
  for (const auto& [netns, interfaces] : filtered(target, spec.kind))
    WEFT_TRY_STATUS(add_filter(netns, table_of(record), interfaces, filter));
  return {};
}

WireModel model_of(const FaultSpec& spec) {
  using enum FaultKind;
  const auto share_if = [&](FaultKind kind) { return spec.kind == kind ? spec.share : 0.0; };
  return {.delay = spec.kind == reorder ? Duration{} : spec.delay,
          .jitter = spec.jitter,
          .corrupt = share_if(corrupt),
          .duplicate = share_if(duplicate),
          .reorder = share_if(reorder),
          .hold = spec.kind == reorder ? spec.delay : Duration{},
          .rate = spec.rate,
          .queue = spec.queue,
          .ecn = spec.ecn_threshold.value_or(Bytes{-1}),
          .seed = spec.seed};
}

Status apply_wires(const Lab& lab, const FaultTarget& target, const FaultRecord& record) {
  for (std::size_t i = 0; i < target.sites.size(); ++i) {
    const FaultSite& site = target.sites[i];
    WireModel model = model_of(record.spec);
    model.seed += i;  // the two directions of a cable draw differently
    WEFT_TRY_STATUS(start_wire({.netns = site.netns,
                                .interface = site.interface,
                                .node = lab.plan.node_of(site.end).name,
                                .name = worker_of(record),
                                .index = record.wire_index,
                                .count_file = count_file(lab, record, i),
                                .model = model},
                               lab.journal()));
  }
  return {};
}

FaultSite site_at(const Lab& lab, EndId end) {
  return {end, lab.plan.node_of(end).netns, lab.plan.end(end).interface};
}

// Sets interfaces of one node up and gives them back what the kernel forgot. It takes no route with
// a leg that is down: where static routes come back, legs that other faults hold down are lent for
// a moment.
Status set_up_again(const Lab& lab, LabNodeId node, std::span<const FaultSite> sites,
                    const HeldDown& held_down) {
  std::vector<FaultSite> held;
  for (const EndId end : lab.plan.nodes[node].ends)
    if (FaultSite site = site_at(lab, end); held_down(site)) held.push_back(std::move(site));
  Status first;
  if (lab.options.routing == Routing::static_routes)
    for (const FaultSite& site : held)
      note(first, set_link(site.netns, site.interface, AdminState::up));
  std::vector<FaultSite> free;
  for (const FaultSite& site : sites)
    if (!held_down(site)) free.push_back(site);
  for (const FaultSite& site : free)
    note(first, set_link(site.netns, site.interface, AdminState::up));
  for (const FaultSite& site : free) note(first, restore_interface(lab, site.end));
  for (const FaultSite& site : held)
    note(first, set_link(site.netns, site.interface, AdminState::down));
  return first;
}

// Sleeps; true when SIGTERM came.
bool told_to_stop(std::chrono::nanoseconds span) {
  sigset_t mask;
  sigemptyset(&mask);
  sigaddset(&mask, SIGTERM);
  const timespec time{.tv_sec = span.count() / 1'000'000'000,
                      .tv_nsec = span.count() % 1'000'000'000};
  return sigtimedwait(&mask, nullptr, &time) == SIGTERM;
}

// Ends with the link up, whatever happens on the way.
void flap(const Lab& lab, const FaultSite& site, const FaultSpec& spec, const std::string& file) {
  const LabNodeId node = lab.plan.end(site.end).node;
  const std::chrono::nanoseconds half(spec.period.ps / 2'000);
  for (std::uint32_t i = 0; i < spec.count; ++i) {
    if (!set_link(site.netns, site.interface, AdminState::down)) return;
    static_cast<void>(write_file(file, fmt::format("{}", i + 1)));
    const bool stop = told_to_stop(half);
    // Where another fault holds a leg down, its healing brings the rest.
    static_cast<void>(
        set_up_again(lab, node, std::span(&site, 1), [](const FaultSite&) { return false; }));
    if (stop || told_to_stop(half)) return;
  }
}

Status apply_flapper(const Lab& lab, const FaultTarget& target, const FaultRecord& record) {
  const FaultSite& site = target.sites.front();
  const auto worker = start_worker(
      {.role = worker_of(record),
       .node = lab.plan.node_of(site.end).name,
       .journal = lab.journal()},
      [&]() -> Result<WorkerBody> {
        return WorkerBody([&] { flap(lab, site, record.spec, count_file(lab, record, 0)); });
      });
  if (!worker) return std::unexpected(worker.error());
  return {};
}

Status apply_daemon(const Lab& lab, const FaultTarget& target, const FaultSpec& spec) {
  WEFT_TRY(const LabProcess process, find_process(lab, target.node, spec.daemon));
  if (spec.kind == FaultKind::daemon_hang) return send_signal(process.id, SIGSTOP);
  const bool crash = spec.kind == FaultKind::daemon_kill;
  return end_processes(std::span(&process, 1),
                       crash ? std::chrono::milliseconds(0) : worker_patience);
}

bool runs(const Lab& lab, LabNodeId node, std::string_view role) {
  const auto process = find_process(lab, node, role);
  return process && is_alive(process->id);
}

Status undo_daemon(const Lab& lab, const FaultTarget& target, const FaultSpec& spec) {
  if (const auto process = find_process(lab, target.node, spec.daemon);
      process && is_alive(process->id))
    return send_signal(process->id, SIGCONT);  // does nothing to one that is not stopped
  return start_daemon(lab, target.node, spec.daemon);
}

// The switch loses power: its neighbours see the carrier go, and nothing says good-bye.
Status apply_power(const Lab& lab, const FaultTarget& target, const FaultRecord& record) {
  std::vector<LabProcess> victims;
  for (const std::string& role : record.daemons) {
    WEFT_TRY(LabProcess process, find_process(lab, target.node, role));
    victims.push_back(std::move(process));
  }
  for (const FaultSite& site : target.sites)
    WEFT_TRY_STATUS(set_link(site.netns, site.interface, AdminState::down));
  return end_processes(victims, std::chrono::milliseconds(0));
}

Status undo_power(const Lab& lab, const FaultTarget& target, const FaultRecord& record,
                  const HeldDown& held_down) {
  Status first;
  note(first, set_up_again(lab, target.node, target.sites, held_down));
  for (const std::string_view role : daemon_order)
    if (std::ranges::find(record.daemons, role) != record.daemons.end() &&
        !runs(lab, target.node, role))
      note(first, start_daemon(lab, target.node, role));
  return first;
}

Status apply_icmp(const Lab& lab, const FaultTarget& target, const FaultSpec& spec) {
  return set_icmp_limit(lab.plan.nodes[target.node].netns,
                        {std::string(limited_icmp), fmt::format("{}", spec.interval)});
}

Status end_workers(const Lab& lab, const FaultRecord& record) {
  std::vector<LabProcess> workers;
  for (LabProcess& process : read_journal(lab.journal()))
    if (process.role == worker_of(record)) workers.push_back(std::move(process));
  return end_processes(workers, worker_patience);
}

}  // namespace

Means means_of(const FaultSpec& spec) {
  switch (spec.kind) {
    using enum FaultKind;
    case link_lossy:
    case switch_lossy:
    case dead_link:
    case ecn_mark:
      return Means::filter;
    case delay:
    case jitter:
    case corrupt:
    case reorder:
    case duplicate:
      return Means::wire;
    case link_degraded:
      return spec.ecn_threshold ? Means::wire : Means::shaper;
    case link_down:
      return Means::carrier;
    case port_flap:
      return Means::flapper;
    case blackhole:
      return Means::route;
    case daemon_kill:
    case daemon_stop:
    case daemon_hang:
      return Means::daemon;
    case switch_down:
      return Means::power;
    case icmp_ratelimit:
      return Means::icmp;
  }
  return Means::filter;
}

// What must be known before the first change is found out here, so that it can be written down.
Status prepare(const Lab& lab, const FaultTarget& target, FaultRecord& record) {
  if (record.spec.kind == FaultKind::icmp_ratelimit) {
    WEFT_TRY(record.icmp_before, icmp_limit(lab.plan.nodes[target.node].netns));
  }
  if (means_of(record.spec) == Means::daemon) {
    WEFT_TRY(const LabProcess process, find_process(lab, target.node, record.spec.daemon));
    if (!is_alive(process.id))
      return fail(Errc::infeasible, {},
                  fmt::format("{} of {} is not running", record.spec.daemon, record.spec.target));
  }
  if (record.spec.kind == FaultKind::switch_down)
    for (const std::string_view role : daemon_order)
      if (runs(lab, target.node, role)) record.daemons.emplace_back(role);
  return {};
}

Status apply(const Lab& lab, const FaultTarget& target, const FaultRecord& record) {
  const FaultSpec& spec = record.spec;
  switch (means_of(spec)) {
    case Means::filter:
      return apply_filter(target, record);
    case Means::wire:
      return apply_wires(lab, target, record);
    case Means::shaper:
      for (const FaultSite& site : target.sites)
        WEFT_TRY_STATUS(
            add_rate_limit(site.netns, site.interface, number_of(record), spec.rate, spec.queue));
      return {};
    case Means::carrier: {
      const FaultSite& site = target.sites.front();
      return set_link(site.netns, site.interface, AdminState::down);
    }
    case Means::flapper:
      return apply_flapper(lab, target, record);
    case Means::route:
      return add_blackhole(lab.plan.nodes[target.node].netns, target.destination,
                           target.prefix_length);
    case Means::daemon:
      return apply_daemon(lab, target, spec);
    case Means::power:
      return apply_power(lab, target, record);
    case Means::icmp:
      return apply_icmp(lab, target, spec);
  }
  return {};
}

Status undo(const Lab& lab, const FaultTarget& target, const FaultRecord& record,
            const HeldDown& held_down) {
  Status first;
  switch (means_of(record.spec)) {
    case Means::filter:
      for (const auto& [netns, interfaces] : filtered(target, record.spec.kind))
        note(first, remove_filter(netns, table_of(record)));
      break;
    case Means::shaper:
      for (const FaultSite& site : target.sites)
        note(first, remove_rate_limit(site.netns, site.interface, number_of(record)));
      break;
    case Means::wire:
      note(first, end_workers(lab, record));
      break;
    case Means::flapper:
    case Means::carrier: {
      note(first, end_workers(lab, record));
      const std::span site = std::span(target.sites).first(1);
      note(first, set_up_again(lab, lab.plan.end(site.front().end).node, site, held_down));
      break;
    }
    case Means::route:
      note(first, remove_blackhole(lab.plan.nodes[target.node].netns, target.destination,
                                   target.prefix_length));
      break;
    case Means::daemon:
      note(first, undo_daemon(lab, target, record.spec));
      break;
    case Means::power:
      note(first, undo_power(lab, target, record, held_down));
      break;
    case Means::icmp:
      note(first, set_icmp_limit(lab.plan.nodes[target.node].netns, record.icmp_before));
      break;
  }
  return first;
}

namespace {

using Hits = std::map<std::string, std::uint64_t>;

void count_wire(const std::string& file, Hits& hits) {
  const auto count = read_wire_count(file);
  if (!count) return;
  const auto add = [&](const char* name, std::uint64_t n) {
    if (n > 0) hits[name] += n;
  };
  hits["packets"] += count->received;
  add("corrupted", count->corrupted);
  add("duplicated", count->duplicated);
  add("reordered", count->reordered);
  add("marked", count->marked);
  add("dropped", count->overflowed);
  add("unread", count->unread);
  add("unsent", count->unsent);
  hits["late_ns_max"] = std::max(hits["late_ns_max"], count->late_ns_max);
}

}  // namespace

Hits count_hits(const Lab& lab, const FaultTarget& target, const FaultRecord& record) {
  Hits hits;
  const Means means = means_of(record.spec);
  if (means == Means::filter)
    for (const auto& [netns, interfaces] : filtered(target, record.spec.kind))
      if (const auto count = filter_count(netns, table_of(record))) {
        hits["packets"] += count->packets;
        hits["bytes"] += count->bytes;
      }
  for (std::size_t i = 0; i < target.sites.size(); ++i) {
    const FaultSite& site = target.sites[i];
    if (means == Means::wire) count_wire(count_file(lab, record, i), hits);
    if (means == Means::shaper)
      if (const auto drops = rate_limit_drops(site.netns, site.interface, number_of(record)))
        hits["dropped"] += *drops;
  }
  if (means == Means::flapper)
    if (const auto text = read_file(count_file(lab, record, 0), 64))
      hits["flaps"] = static_cast<std::uint64_t>(parse_count({*text, {}}).value_or(0));
  return hits;
}

bool has_process(const Lab& lab, const FaultRecord& record) {
  return std::ranges::any_of(read_journal(lab.journal()), [&](const LabProcess& process) {
    return process.role == worker_of(record) && is_alive(process.id);
  });
}

}  // namespace weft::adapt::lab
