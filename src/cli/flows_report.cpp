#include "cli/flows_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <span>

#include "base/json_text.hpp"
#include "base/plural.hpp"
#include "base/text.hpp"
#include "cli/cli.hpp"
#include "plan/report/report.hpp"

namespace weft::cli {
namespace {

using Json = nlohmann::ordered_json;
using model::PacketOutcome;

std::string dumped(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// `"key": value` with the lines of the value moved in by one level.
void print_member(std::string_view key, const Json& value) {
  std::string text = dumped(value, 2);
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    text.insert(at + 1, "  ");
  fmt::print("  {}: {}", dumped(Json(key)), text);
}

Json to_json(const plan::CompletionTimes& fct) {
  return {{"min", fct.min / us_per_s},
          {"mean", fct.mean / us_per_s},
          {"p50", fct.p50 / us_per_s},
          {"p99", fct.p99 / us_per_s},
          {"max", fct.max / us_per_s}};
}

Json to_json(const std::vector<model::TierOutcome>& tiers) {
  Json out = Json::object();
  for (const model::TierOutcome& tier : tiers)
    out[tier.name] = {{"links", tier.links},
                      {"mean_load", tier.mean_load},
                      {"max_load", tier.max_load},
                      {"mmr", tier.mean_load > 0 ? Json(tier.mmr) : Json()}};
  return out;
}

Json to_json(const plan::Slowdowns::Class& one) {
  return {{"bytes_max", one.bytes_max},
          {"flows", one.flows},
          {"p50", one.p50},
          {"p99", one.p99},
          {"max", one.max}};
}

Json to_json(const plan::Slowdowns& slowdown) {
  Json out = Json::array();
  for (const auto& one : slowdown.by_size) out.push_back(to_json(one));
  return out;
}

// One flow a line.
void print_flows(const model::FlowIds& ids, std::span<const plan::FlowSpan> flows) {
  fmt::print("  {}: [", json_string("flows"));
  for (std::size_t i = 0; i < flows.size(); ++i)
    fmt::print("{}\n    {}", i > 0 ? "," : "",
               JsonObject()
                   .add("id", ids[i])
                   .add("start_s", flows[i].start_us / us_per_s)
                   .add("end_s", flows[i].end_us / us_per_s)
                   .add("ideal_s", flows[i].ideal_us / us_per_s)
                   .text());
  fmt::print("{}]", flows.empty() ? "" : "\n  ");
}

void print_tiers(const std::vector<model::TierOutcome>& tiers) {
  Table table({{"tier", Table::Align::left}, {"links"}, {"mean load"}, {"max load"}, {"MMR"}});
  for (const model::TierOutcome& tier : tiers)
    table.add({tier.name, std::to_string(tier.links), fmt::format("{:.4f}", tier.mean_load),
               fmt::format("{:.4f}", tier.max_load),
               tier.mean_load > 0 ? fmt::format("{:.3f}", tier.mmr) : "-"});
  fmt::print("{}", table.text());
}

// 10 KB, 100 KB, 1 MB, ...
std::string decade_text(double bytes) {
  constexpr std::array units{"KB", "MB", "GB", "TB", "PB", "EB"};
  double count = bytes / 1e3;
  std::size_t unit = 0;
  for (; count > 999 && unit + 1 < units.size(); ++unit) count /= 1e3;
  return fmt::format("{:.0f} {}", count, units[unit]);
}

void print_slowdowns(const plan::Slowdowns& slowdown) {
  Table table({{"flows of up to"}, {"flows"}, {"slowdown p50"}, {"p99"}, {"max"}});
  const auto add = [&](const std::string& name, const plan::Slowdowns::Class& one) {
    table.add({name, std::to_string(one.flows), fmt::format("{:.3f}", one.p50),
               fmt::format("{:.3f}", one.p99), fmt::format("{:.3f}", one.max)});
  };
  for (const auto& one : slowdown.by_size) add(decade_text(one.bytes_max), one);
  if (slowdown.by_size.size() > 1) add("all", slowdown.all);
  if (slowdown.all.flows > 0) fmt::print("\n{}", table.text());
}

std::string bytes_text(double bytes) {
  if (std::isnan(bytes)) return "-";
  return human(Bytes{static_cast<std::int64_t>(bytes)});
}

void print_queues(const PacketOutcome& packet) {
  Table table({{"queues", Table::Align::left},
               {"p50 <="},
               {"p99 <="},
               {"max"},
               {"pauses"},
               {"paused"},
               {"pause p99 <="},
               {"drops"},
               {"ECN marks"}});
  for (const PacketOutcome::Tier& tier : packet.tiers)
    table.add({tier.name, bytes_text(tier.queue_p50_bytes), bytes_text(tier.queue_p99_bytes),
               bytes_text(tier.queue_max_bytes), std::to_string(tier.pauses),
               tier.pauses > 0 ? human_seconds(tier.paused_total_s) : "-",
               std::isnan(tier.pause_p99_s) ? "-" : human_seconds(tier.pause_p99_s),
               std::to_string(tier.drops), std::to_string(tier.ecn_marks)});
  fmt::print("\n{}", table.text());
}

void print_counters(const PacketOutcome& packet) {
  fmt::print(
      "\n{}: {} packet hops, {} drops ({} beyond headroom, {} on links), {} control packets lost, "
      "{} trims\n",
      packet.transport, packet.hops, packet.drops, packet.drops_headroom, packet.drops_link,
      packet.drops_control, packet.trims);
  fmt::print("{} ECN marks, {} CNPs, {} pause frames, {} retransmissions, {} timeouts\n",
             packet.ecn_marks, packet.cnps, packet.pause_frames, packet.retransmissions,
             packet.timeouts);
  fmt::print("payload: {:.0f} B sent = {:.0f} received + {:.0f} dropped + {:.0f} in flight\n",
             packet.sent_bytes, packet.received_bytes, packet.dropped_bytes,
             packet.in_flight_bytes);
  for (const std::string& line : packet.storms) fmt::print("pause storm: {}\n", line);
}

// "a 12.5 us, b 3 us, 5 more"
std::string held_text(const std::vector<PacketOutcome::PauseTree::Held>& flows) {
  constexpr std::size_t shown = 3;
  std::string out;
  for (std::size_t i = 0; i < std::min(flows.size(), shown); ++i)
    out +=
        fmt::format("{}{} {}", i > 0 ? ", " : "", flows[i].flow, human_seconds(flows[i].stopped_s));
  if (flows.size() > shown) out += fmt::format(", {} more", flows.size() - shown);
  return out;
}

// Of each port, the time that it and all below it were paused.
std::vector<double> sums_of(const PacketOutcome::PauseTree& tree) {
  std::vector<double> out(tree.ports.size());
  std::vector<std::size_t> above;  // the port, and those over it
  for (std::size_t i = 0; i < tree.ports.size(); ++i) {
    above.resize(tree.ports[i].depth);
    above.push_back(i);
    for (const std::size_t port : above) out[port] += tree.ports[i].paused_s;
  }
  return out;
}

// The trees that matter, with their first ports; what is left out is counted.
void print_pauses(const std::vector<PacketOutcome::PauseTree>& trees) {
  constexpr std::size_t trees_shown = 3, ports_shown = 16;
  constexpr double share_shown = 0.01;
  double all = 0;
  for (const auto& tree : trees) all += tree.paused_s;
  fmt::print("\npaused by PFC, all links: {}\n", human_seconds(all));
  Table table({{"port, and below it what it paused", Table::Align::left},
               {"pauses"},
               {"paused"},
               {"with all below"},
               {"stalled flows", Table::Align::left}});
  std::size_t shown = 0;
  double left = all;
  for (; shown < std::min(trees.size(), trees_shown); ++shown) {
    const auto& ports = trees[shown].ports;
    if (trees[shown].paused_s < share_shown * all) break;
    left -= trees[shown].paused_s;
    const std::vector<double> sums = sums_of(trees[shown]);
    for (std::size_t i = 0; i < std::min(ports.size(), ports_shown); ++i) {
      const PacketOutcome::PauseTree::Port& port = ports[i];
      const bool paused = port.paused_s > 0;
      table.add({std::string(2 * port.depth, ' ') + port.name + (port.circle ? " (circle)" : ""),
                 paused ? std::to_string(port.pauses) : "-",
                 paused ? human_seconds(port.paused_s) : "-", human_seconds(sums[i]),
                 held_text(port.flows)});
    }
    if (ports.size() > ports_shown)
      table.add({fmt::format("  and {} more", ports.size() - ports_shown), "", "", "", ""});
  }
  if (shown > 0) fmt::print("{}", table.text());
  if (shown < trees.size())
    fmt::print("other trees: {}, with {} (--json has all)\n", trees.size() - shown,
               human_seconds(left));
}

using engine::packet::LinkCounters;

// The frames by which the device at a link's start stopped the one at its end.
std::uint64_t pauses_sent(const std::vector<LinkCounters>& links, model::LinkId id) {
  return links[model::reverse(id).index()].pauses;
}

// The links that counted anything.
std::vector<model::LinkId> counting_ports(const model::Fabric& fabric,
                                          const std::vector<LinkCounters>& links) {
  std::vector<model::LinkId> out;
  for (const model::LinkId id : fabric.links()) {
    const LinkCounters& c = links[id.index()];
    if (c.bytes > 0 || c.dropped > 0 || c.pauses > 0 || pauses_sent(links, id) > 0)
      out.push_back(id);
  }
  return out;
}

Json to_json(const LinkCounters& c) {
  return {{"bytes", c.bytes},
          {"packets", c.packets},
          {"control", c.control},
          {"ecn_marked", c.ecn_marked},
          {"dropped", c.dropped},
          {"trimmed", c.trimmed},
          {"pauses", c.pauses},
          {"paused_s", engine::packet::seconds(c.paused_ps)},
          {"queue_max_bytes", c.queue_max}};
}

// The counts of each class of a port; none where there is one.
std::span<const LinkCounters> classes_of(const plan::FlowsResult& result, model::LinkId id) {
  if (result.class_links.empty()) return {};
  const std::size_t count = result.class_links.size() / result.links.size();
  return std::span(result.class_links).subspan(id.index() * count, count);
}

Json ports_json(const model::Fabric& fabric, const plan::FlowsResult& result) {
  Json out = Json::array();
  for (const model::LinkId id : counting_ports(fabric, result.links)) {
    Json port = {{"port", fabric.name(id)}};
    port.update(to_json(result.links[id.index()]));
    port["pauses_sent"] = pauses_sent(result.links, id);
    const auto classes = classes_of(result, id);
    for (std::size_t c = 0; c < classes.size(); ++c) {
      Json one = {{"class", c}};
      one.update(to_json(classes[c]));
      port["classes"].push_back(std::move(one));
    }
    out.push_back(std::move(port));
  }
  return out;
}

// Those with the longest queues.
void print_ports(const model::Fabric& fabric, const plan::FlowsResult& result) {
  constexpr std::size_t shown = 20;
  const std::vector<LinkCounters>& links = result.links;
  std::vector<model::LinkId> ports = counting_ports(fabric, links);
  std::ranges::stable_sort(ports, std::greater{},
                           [&](model::LinkId id) { return links[id.index()].queue_max; });
  Table table({{"port", Table::Align::left},
               {"queue max"},
               {"sent"},
               {"packets"},
               {"control"},
               {"ECN marks"},
               {"drops"},
               {"trims"},
               {"pauses"},
               {"paused"},
               {"pauses sent"}});
  const auto add = [&](std::string name, const LinkCounters& c, std::string sent) {
    table.add({std::move(name), bytes_text(c.queue_max), bytes_text(static_cast<double>(c.bytes)),
               std::to_string(c.packets), std::to_string(c.control), std::to_string(c.ecn_marked),
               std::to_string(c.dropped), std::to_string(c.trimmed), std::to_string(c.pauses),
               c.pauses > 0 ? human_seconds(engine::packet::seconds(c.paused_ps)) : "-",
               std::move(sent)});
  };
  for (const model::LinkId id : std::span(ports).first(std::min(ports.size(), shown))) {
    add(fabric.name(id), links[id.index()], std::to_string(pauses_sent(links, id)));
    const auto classes = classes_of(result, id);
    for (std::size_t c = 0; c < classes.size(); ++c)
      if (classes[c] != LinkCounters{}) add(fmt::format("  class {}", c), classes[c], "");
  }
  fmt::print("\n{}", table.text());
  if (ports.size() > shown)
    fmt::print("{} more ports with shorter queues (--json has all)\n", ports.size() - shown);
}

}  // namespace

void print_json(const model::FlowIds& ids, const plan::FlowsResult& result,
                const model::Fabric* ports_of) {
  fmt::print("{{\n");
  print_member("makespan_s", result.makespan_s);
  fmt::print(",\n");
  print_member("fct_s", to_json(result.fct));
  fmt::print(",\n");
  print_member("slowdown", to_json(result.slowdown));
  fmt::print(",\n");
  print_flows(ids, result.flows);
  fmt::print(",\n");
  print_member("tiers", to_json(result.tiers));
  fmt::print(",\n");
  print_member("unfinished", result.fct.unfinished);
  fmt::print(",\n");
  if (result.packet) {
    if (ports_of != nullptr) {
      print_member("ports", ports_json(*ports_of, result));
      fmt::print(",\n");
    }
    print_member("packet", Json::parse(plan::report::json_text(*result.packet)));
  } else {
    print_member("rate_error", result.rate_error.value_or(0));
  }
  fmt::print(",\n");
  print_member("digest", result.digest);
  fmt::print("\n}}\n");
}

void print_text(const plan::FlowsResult& result, const model::Fabric* ports_of) {
  const plan::CompletionTimes& fct = result.fct;
  fmt::print("{}, {} finished, makespan {:.9f} s, digest {}\n",
             counted(result.flows.size(), "flow"), fct.finished, result.makespan_s, result.digest);
  fmt::print("completion time: min {}, mean {}, p50 {}, p99 {}, max {}\n\n",
             human_seconds(fct.min * 1e-6), human_seconds(fct.mean * 1e-6),
             human_seconds(fct.p50 * 1e-6), human_seconds(fct.p99 * 1e-6),
             human_seconds(fct.max * 1e-6));
  print_tiers(result.tiers);
  print_slowdowns(result.slowdown);
  if (!result.packet) return;
  print_queues(*result.packet);
  print_counters(*result.packet);
  if (ports_of != nullptr) print_ports(*ports_of, result);
  if (result.packet->pause_trees) print_pauses(*result.packet->pause_trees);
}

int print_troubles(const plan::FlowsResult& result) {
  for (const std::string& line : result.unfinished) fmt::print(stderr, "weft: {}\n", line);
  if (result.fct.unfinished > result.unfinished.size())
    fmt::print(stderr, "weft: ... and {} more unfinished flows\n",
               result.fct.unfinished - result.unfinished.size());
  bool fine = result.fct.unfinished == 0;
  if (result.packet) {
    const PacketOutcome& p = *result.packet;
    for (const std::string& line : p.deadlocks) fmt::print(stderr, "weft: {}\n", line);
    const bool conserved = p.sent_bytes == p.received_bytes + p.dropped_bytes + p.in_flight_bytes;
    if (!conserved)
      fmt::print(stderr, "weft: error: payload is not conserved; please report this run\n");
    for (const std::string& line : p.lossless_drops)
      fmt::print(stderr, "weft: warning: {}\n", line);
    fine = fine && conserved && p.deadlocks.empty() && p.lossless_drops.empty();
  }
  return fine ? done : work_failed;
}

}  // namespace weft::cli
