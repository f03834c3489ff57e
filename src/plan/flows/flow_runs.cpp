#include "plan/flows/flow_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "base/percentile.hpp"
#include "base/text.hpp"
#include "engine/fluid/flow_run.hpp"
#include "engine/packet/flow_messages.hpp"
#include "engine/packet_jobs/totals.hpp"
#include "plan/run/reduce.hpp"

namespace weft::plan {
namespace {

constexpr std::size_t unfinished_shown = 20;

double makespan_s(const std::vector<FlowSpan>& flows) {
  double us = 0;
  for (const FlowSpan& flow : flows)
    if (flow.finished()) us = std::max(us, flow.end_us);
  return us / 1e6;
}

// The ids of the flows that run as packets: all of a set, or those at `place` in it.
struct RunningIds {
  const model::FlowIds& ids;
  std::span<const std::uint32_t> place = {};

  std::string operator[](std::size_t flow) const { return ids[place.empty() ? flow : place[flow]]; }
};

// The engine says "message 17 (...": as one line a flow, with its id.
std::vector<std::string> lines_of_flows(const std::vector<std::string>& lines,
                                        const RunningIds& ids, std::size_t flow_count,
                                        std::uint32_t parts) {
  constexpr std::string_view head = "message ";
  std::vector<std::string> out;
  std::size_t last = flow_count;
  for (const std::string& line : lines) {
    const std::size_t end = std::min(line.find(' ', head.size()), line.size());
    if (!line.starts_with(head) || out.size() == unfinished_shown) break;
    const auto message = parse_count({line.substr(head.size(), end - head.size()), {}});
    if (!message) break;
    const std::size_t flow = static_cast<std::size_t>(*message) / parts;
    if (flow >= flow_count) break;  // joins stand behind all flows
    if (flow == last) continue;
    last = flow;
    const std::string part =
        parts > 1 ? fmt::format(", part {} of {}", *message % parts + 1, parts) : std::string();
    out.push_back(fmt::format("flow {}{}{}", ids[flow], part, line.substr(end)));
  }
  return out;
}

std::vector<std::string> unfinished_lines(const model::FlowSet& set, const model::Fabric& fabric,
                                          std::span<const engine::fluid::FlowEnd> ends) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < ends.size() && out.size() < unfinished_shown; ++i)
    if (!ends[i].finished)
      out.push_back(
          fmt::format("flow {} ({} to {}) did not finish: no live path, no bandwidth, or it waits "
                      "for a flow that did not finish",
                      set.ids[i], fabric.name(set.flows[i].src), fabric.name(set.flows[i].dst)));
  return out;
}

double payload_of(const model::FlowSet& set) {
  double bytes = 0;
  for (const model::FlowSet::Flow& flow : set.flows) bytes += static_cast<double>(flow.size.count);
  return bytes;
}

void set_times(std::span<const engine::packet::FlowTimes> times, std::vector<FlowSpan>& out) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    using engine::packet::never;
    if (times[i].start != never) out[i].start_us = static_cast<double>(times[i].start) / 1e6;
    if (times[i].end != never) out[i].end_us = static_cast<double>(times[i].end) / 1e6;
  }
}

}  // namespace

CompletionTimes completion_times(std::span<const FlowSpan> flows) {
  std::vector<double> times;
  times.reserve(flows.size());
  for (const FlowSpan& flow : flows)
    if (flow.finished()) times.push_back(flow.end_us - flow.start_us);
  CompletionTimes out{.finished = times.size(), .unfinished = flows.size() - times.size()};
  if (times.empty()) return out;
  std::ranges::sort(times);
  for (const double t : times) out.mean += t;
  out.mean /= static_cast<double>(times.size());
  out.min = times.front();
  out.p50 = percentile(std::span<const double>(times), 50);
  out.p99 = percentile(std::span<const double>(times), 99);
  out.max = times.back();
  return out;
}

namespace {

// The spans of a set before it runs, with what each flow takes alone.
std::vector<FlowSpan> spans_before(const model::FlowSet& set, const plan::Setup& setup,
                                   route::Router& router, const engine::packet::WireFormat* wire) {
  set_first_state(router, setup);
  const std::vector<double> ideal = ideal_times_us(set, router, wire);
  std::vector<FlowSpan> out(ideal.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i].ideal_us = ideal[i];
    out[i].bytes = static_cast<double>(set.flows[i].size.count);
  }
  return out;
}

void add_statistics(FlowsResult& result) {
  result.fct = completion_times(result.flows);
  result.slowdown = slowdowns(result.flows);
}

}  // namespace

void set_first_state(route::Router& router, const plan::Setup& setup) {
  for (const auto& change : setup.changes)
    if (change.at.ps <= 0) router.set_state(change.state);
}

FlowsResult run_fluid(const model::FlowSet& set, const plan::Setup& setup, route::Router& router) {
  std::vector<FlowSpan> spans = spans_before(set, setup, router, nullptr);
  const engine::fluid::FlowRunResult run =
      engine::fluid::run_flows(set, router, setup.changes, setup.fluid.options);
  FlowsResult out{
      .flows = std::move(spans),
      .makespan_s = run.makespan_s,
      .tiers = plan::tier_loads(setup.fabric, run.link_bytes, run.usable, run.makespan_s),
      .digest = run.digest,
      .unfinished = unfinished_lines(set, setup.fabric, run.flows),
      .rate_error = run.rate_error};
  for (std::size_t i = 0; i < run.flows.size(); ++i) {
    if (run.flows[i].started) out.flows[i].start_us = run.flows[i].start_s * 1e6;
    if (run.flows[i].finished) out.flows[i].end_us = run.flows[i].end_s * 1e6;
  }
  add_statistics(out);
  return out;
}

namespace {

// Where the fluid engine has left a flow set: its flows that are not over, and what they were.
struct Handover {
  model::FlowSet rest;
  std::vector<std::uint32_t> flow_of;  // in the whole set, by flow of the rest
  std::vector<double> rate;            // bytes per second, by flow of the rest
  std::vector<FlowSpan> spans;         // of the whole set, as far as the fluid engine knows them
};

Handover hand_over(const model::FlowSet& set, std::span<const engine::fluid::FlowMoment> moments,
                   std::vector<FlowSpan> spans, Time at) {
  Handover out;
  out.spans = std::move(spans);
  std::vector<std::uint32_t> place(moments.size(), model::FlowSet::none);
  for (std::uint32_t i = 0; i < moments.size(); ++i) {
    const engine::fluid::FlowMoment& moment = moments[i];
    if (moment.end.started) out.spans[i].start_us = moment.end.start_s * 1e6;
    if (moment.end.finished) out.spans[i].end_us = moment.end.end_s * 1e6;
    if (moment.end.finished) continue;
    model::FlowSet::Flow flow = set.flows[i];
    if (moment.end.started) {
      // All may be sent and still be on the wire: the last byte stands for it.
      flow.size = Bytes{std::max<std::int64_t>(1, std::llround(moment.bytes_left))};
      flow.start = at;
      flow.after = model::FlowSet::none;
    }
    flow.start = std::max(flow.start, at);
    place[i] = static_cast<std::uint32_t>(out.flow_of.size());
    out.flow_of.push_back(i);
    out.rate.push_back(moment.end.started ? moment.rate : 0);
    out.rest.flows.push_back(flow);
    if (!set.classes.empty()) out.rest.classes.push_back(set.class_of(i));
  }
  for (model::FlowSet::Flow& flow : out.rest.flows)
    if (flow.after != model::FlowSet::none) flow.after = place[flow.after];
  out.rest.via = set.via;
  out.rest.via_ends = set.via_ends;
  return out;
}

// Connections begin at the rates of the flows that they carry first.
void set_rates(engine::packet::MessageSet& messages, std::span<const double> rates,
               std::uint32_t parts, Time at) {
  messages.begin = static_cast<engine::packet::Ps>(at.ps);
  for (std::size_t i = rates.size() * parts; i-- > 0;)
    if (const double rate = rates[i / parts]; rate > 0)
      messages.connections[messages.messages[i].connection].initial_rate =
          static_cast<float>(rate / parts);
}

// A flow whose rate is to be sampled.
struct Watched {
  std::string id;
  std::size_t flow;  // of the set that runs as packets
};

// The flows that `transport: {series: {flows: [..]}}` names by their ids.
Result<std::vector<Watched>> watched_flows(const model::FlowIds& ids, std::size_t flow_count,
                                           const plan::Setup& setup) {
  std::vector<Watched> out;
  for (const std::string& id : setup.packet.options.series.flows) {
    std::size_t flow = 0;
    while (flow < flow_count && ids[flow] != id) ++flow;
    if (flow == flow_count)
      return fail(Errc::unknown, {"transport.series.flows", 0, 0},
                  fmt::format("flow {} does not exist", quote(id)), "use an id from the flow file");
    out.push_back({id, flow});
  }
  return out;
}

// The engine knows messages by number, one for each part of a flow.
void watch(engine::packet::SeriesOptions& series, std::span<const Watched> watched,
           std::uint32_t parts) {
  series.flows.clear();
  for (const Watched& w : watched)
    for (std::uint32_t part = 0; part < parts; ++part) {
      series.flows.push_back(std::to_string(w.flow * parts + part));
      series.flow_names.push_back(parts > 1
                                      ? fmt::format("flow {}, part {} of {}", w.id, part + 1, parts)
                                      : "flow " + w.id);
    }
}

// Of a flow in several parts the part stalled longest counts.
std::vector<model::PacketOutcome::PauseTree> pause_trees_of(
    std::span<const engine::packet::PauseTree> trees, const RunningIds& ids, std::uint32_t parts) {
  using Tree = model::PacketOutcome::PauseTree;
  std::vector<Tree> out;
  for (const engine::packet::PauseTree& tree : trees) {
    out.push_back({.paused_s = engine::packet::seconds(tree.paused_ps), .ports = {}});
    for (const engine::packet::PauseTree::Port& port : tree.ports) {
      std::map<std::uint32_t, engine::packet::Ps> longest;
      for (const auto& [message, ps] : port.held) {
        engine::packet::Ps& known = longest[message / parts];
        known = std::max(known, ps);
      }
      std::vector<Tree::Held> flows;
      for (const auto& [flow, ps] : longest)
        flows.push_back({ids[flow], engine::packet::seconds(ps)});
      std::ranges::stable_sort(flows, std::greater{}, &Tree::Held::stopped_s);
      out.back().ports.push_back({.name = port.name,
                                  .depth = port.depth,
                                  .circle = port.circle,
                                  .pauses = port.pauses,
                                  .paused_s = engine::packet::seconds(port.paused_ps),
                                  .flows = std::move(flows)});
    }
  }
  return out;
}

// What begins as packets: `rates`, by flow, are those that connections have at `begin`; none: as
// connections begin.
struct Beginning {
  std::span<const double> rates;
  Time begin;
  std::span<const Watched> watched;
  std::vector<FlowSpan> spans;  // of the flows, without their times
  RunningIds ids;
};

Result<FlowsResult> run_messages_of(model::FlowSet set, Beginning beginning,
                                    const plan::Setup& setup, route::Router& router,
                                    Progress::Show progress) {
  set_first_state(router, setup);
  const std::vector<bool> usable = engine::fluid::usable_links(set, router);
  WEFT_TRY(engine::packet::MessageSet messages, engine::packet::messages_of(set, router));
  const std::size_t flow_count = set.flows.size();
  const std::uint32_t parts = router.stream_count();
  set_rates(messages, beginning.rates, parts, beginning.begin);
  engine::packet::Options options = setup.packet.options;
  watch(options.series, beginning.watched, parts);
  Progress shown("packets", payload_of(set), progress);
  engine::packet::announce_hops(messages, router, options, 1, shown);
  set.flows = {};
  WEFT_TRY(engine::packet::PacketRunResult run,
           engine::packet::run_messages(messages, router, setup.changes, options, shown));
  shown.finish();
  messages = {};

  FlowsResult out{.flows = std::move(beginning.spans), .digest = run.digest};
  set_times(engine::packet::flow_times(run.messages, flow_count, parts), out.flows);
  run.messages = {};
  add_statistics(out);
  out.makespan_s = makespan_s(out.flows);
  engine::packet::PacketTotals totals(setup.fabric);
  totals.add(run, 0);
  out.packet = totals.outcome(setup.packet.options.transport);
  if (options.pause_trees)
    out.packet->pause_trees = pause_trees_of(run.pause_trees, beginning.ids, parts);
  const double span_s =
      out.fct.unfinished > 0 ? static_cast<double>(run.end) * 1e-12 : out.makespan_s;
  out.tiers = plan::tier_loads(setup.fabric, totals.link_bytes(), usable, span_s);
  out.links = std::move(run.links);
  out.class_links = std::move(run.class_links);
  out.unfinished = lines_of_flows(run.unfinished, beginning.ids, flow_count, parts);
  return out;
}

}  // namespace

Result<FlowsResult> run_packet_from(model::FlowSet set, const plan::Setup& setup,
                                    route::Router& router, Time at, Progress::Show progress) {
  std::vector<FlowSpan> spans = spans_before(set, setup, router, nullptr);
  const auto moments = engine::fluid::flows_at(set, router, setup.changes, setup.fluid.options, at);
  WEFT_TRY(std::vector<Watched> watched, watched_flows(set.ids, set.flows.size(), setup));
  Handover handover = hand_over(set, moments, std::move(spans), at);
  const model::FlowIds ids = std::move(set.ids);
  if (handover.rest.flows.empty()) {
    FlowsResult out{.flows = std::move(handover.spans), .digest = "-"};
    add_statistics(out);
    out.makespan_s = makespan_s(out.flows);
    return out;
  }
  for (Watched& w : watched) {
    const auto place = std::ranges::lower_bound(handover.flow_of, w.flow);
    if (place == handover.flow_of.end() || *place != w.flow)
      return fail(Errc::value, {"transport.series.flows", 0, 0},
                  fmt::format("flow {} ends before the packet engine starts", quote(w.id)),
                  "remove it, or start earlier with --from-fluid");
    w.flow = static_cast<std::size_t>(place - handover.flow_of.begin());
  }
  std::vector<FlowSpan> rest(handover.flow_of.size());
  WEFT_TRY(FlowsResult out,
           run_messages_of(std::move(handover.rest),
                           {handover.rate, at, watched, std::move(rest), {ids, handover.flow_of}},
                           setup, router, progress));
  for (std::size_t i = 0; i < handover.flow_of.size(); ++i) {
    FlowSpan& span = handover.spans[handover.flow_of[i]];
    if (span.start_us != span.start_us) span.start_us = out.flows[i].start_us;
    span.end_us = out.flows[i].end_us;
  }
  out.flows = std::move(handover.spans);
  add_statistics(out);
  return out;
}

Result<FlowsResult> run_packet(model::FlowSet set, const plan::Setup& setup, route::Router& router,
                               Progress::Show progress) {
  WEFT_TRY(const std::vector<Watched> watched, watched_flows(set.ids, set.flows.size(), setup));
  std::vector<FlowSpan> spans = spans_before(set, setup, router, &setup.packet.options.wire);
  const model::FlowIds ids = std::move(set.ids);
  return run_messages_of(std::move(set), {{}, Time{}, watched, std::move(spans), {ids}}, setup,
                         router, progress);
}

}  // namespace weft::plan
