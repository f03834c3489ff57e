#include "serve/probe_monitor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>

#include "base/json_text.hpp"
#include "model/events/entity.hpp"
#include "serve/failing_flows.hpp"

namespace weft::serve {

namespace localise = observe::localise;
using localise::EntityKind;
using localise::Finding;

namespace {

std::string_view kind_of(Finding finding) {
  switch (finding) {
    case Finding::loss:
    case Finding::class_loss:
    case Finding::tuple_loss:
      return "probe_loss";
    case Finding::congestion:
      return "probe_latency";
    case Finding::dead:
      return "probe_host";
    case Finding::corruption:
      return "probe_corruption";
    case Finding::duplicates:
      return "probe_duplicates";
    case Finding::delay:
      return "probe_delay";
    case Finding::route:
      return "probe_route";
    case Finding::starved:
    case Finding::unused:
    case Finding::unexpected:
      return "info";
  }
  return "info";
}

// What one part may do beside losing.
bool is_apart(Finding finding) {
  return finding == Finding::corruption || finding == Finding::duplicates ||
         finding == Finding::delay || finding == Finding::route;
}

constexpr std::size_t epochs_max = 64;           // that paths may be learned in
constexpr std::size_t flows_max = 16;            // that a verdict names
constexpr std::size_t links_shown_max = 20'000;  // in a view

bool has_same_troubles(const model::State& a, const model::State& b) {
  return a.troubled_links() == b.troubled_links() && a.troubled_nodes() == b.troubled_nodes();
}

// Whether the link is the entity, or one of it.
bool is_of(const model::Fabric& fabric, const localise::Entity& entity, model::LinkId link) {
  const auto is_at = [&](model::LinkId out, model::NodeId node) {
    if (fabric.from(out) != node) return false;
    if (entity.kind != EntityKind::card) return true;
    const std::uint32_t port = fabric.port(out);
    return port >= entity.port_first && port <= entity.port_last;
  };
  switch (entity.kind) {
    case EntityKind::link:
      return link == model::LinkId(entity.id);
    case EntityKind::cable:
      return cable_of(link) == model::CableId(entity.id);
    case EntityKind::nic:
    case EntityKind::card:
    case EntityKind::fabric_switch:
    case EntityKind::host:
      return is_at(link, model::NodeId(entity.id)) ||
             is_at(model::reverse(link), model::NodeId(entity.id));
  }
  return false;
}

// In the grammar that records use: a card by its number, where its ports are one card.
std::string entity_name(const model::Fabric& fabric, const localise::Entity& entity) {
  if (entity.kind != EntityKind::card) return name(fabric, entity);
  const std::uint32_t ports = entity.port_last - entity.port_first + 1;
  const model::NodeId device(entity.id);
  return entity.port_first % ports == 0
             ? model::name(fabric, model::card_of(device, entity.port_first / ports))
             : std::string(fabric.name(device));
}

}  // namespace

ProbeMonitor::ProbeMonitor(const model::Fabric& fabric, const ProbeMonitorSettings& settings)
    : fabric_(fabric),
      settings_(settings),
      localiser_(fabric, {.card_ports = settings.card_ports, .delay_us = settings.delay_us}) {
  epochs_.push_back({.since = {INT64_MIN}, .routes = {{}}, .ages = {}});
}

void ProbeMonitor::add(const model::EvidenceSet& rows) {
  if (rows.rows.empty()) return;
  model::EvidenceSet names;
  names.classes = classes_;
  for (model::Evidence row : rows.rows) {
    row.traffic_class = names.class_index(rows.classes[row.traffic_class]);
    const auto path = rows.path(row);
    rows_.push_back({row, {path.begin(), path.end()}});
  }
  classes_ = std::move(names.classes);
  counts_.rows += rows.rows.size();
  for (; rows_.size() > settings_.rows_max; ++counts_.dropped) rows_.pop_front();
  has_new_ = true;
}

void ProbeMonitor::set_out_of_service(const model::State& out, const model::State& or_only,
                                      Timestamp now) {
  const bool is_same = has_same_troubles(out, out_);
  if (is_same && has_same_troubles(or_only, or_only_)) return;
  out_ = out;
  or_only_ = or_only;
  note_routes(now);
  if (is_same) return;
  out_since_ = epochs_.back().since;
  std::erase_if(rows_, [&](const Row& row) { return row.evidence.t < out_since_; });
}

void ProbeMonitor::set_down(const std::set<model::LinkId>& links, Timestamp now) {
  if (links == down_) return;
  down_ = links;
  note_routes(now);
}

void ProbeMonitor::note_routes(Timestamp now) {
  for (Epoch& epoch : epochs_) epoch.ages.clear();  // most are of no use any more
  epochs_.push_back({std::max(now, epochs_.back().since), {out_}, {}});
  if (!has_same_troubles(out_, or_only_)) epochs_.back().routes.push_back(or_only_);
  for (model::State& routes : epochs_.back().routes)
    for (const model::LinkId link : down_) routes.set(link, {.health = model::Health::down});
  if (epochs_.size() > epochs_max) {
    epochs_.pop_front();
    ++epochs_gone_;
  }
}

void ProbeMonitor::drop_old_paths() {
  for (Row& row : rows_) {
    if (!is_old(row)) continue;
    row.path.clear();
    row.lost_its_path = true;
    ++counts_.old_paths;
  }
}

bool ProbeMonitor::is_old(const Row& row) {
  const std::optional<Timestamp> learned = row.evidence.path_t;
  if (!learned || row.path.empty()) return false;
  // Of before the first epoch: what was out then is not known, and the first one stands for it.
  const auto after = std::ranges::upper_bound(epochs_, *learned, {}, &Epoch::since);
  const std::size_t from =
      after == epochs_.begin() ? 0 : static_cast<std::size_t>(after - epochs_.begin()) - 1;
  for (std::size_t i = from; i < epochs_.size(); ++i) {
    const bool had_ended = i + 1 < epochs_.size() && epochs_[i + 1].since <= row.evidence.t;
    if (had_ended && epochs_[i].since.ns >= learned->ns + sweep_ns) continue;
    if (!holds(epochs_[from], i, row.path)) return true;
  }
  return false;
}

bool ProbeMonitor::holds(Epoch& then, std::size_t later, std::span<const model::LinkId> path) {
  const Epoch& now = epochs_[later];
  for (std::size_t i = 0; i < then.routes.size(); ++i)
    for (std::size_t k = 0; k < now.routes.size(); ++k) {
      if (&then == &now && i == k) continue;
      const auto age = then.ages.try_emplace({epochs_gone_ + later, {i, k}}, fabric_,
                                             then.routes[i], now.routes[k]);
      if (!age.first->second.holds(path)) return false;
    }
  return true;
}

std::vector<std::string> ProbeMonitor::look(Timestamp now) {
  std::vector<std::string> out;
  if (now < next_ || !has_new_) return out;
  next_ = {now.ns + settings_.every_ns};
  has_new_ = false;
  const Timestamp oldest = std::max(Timestamp{now.ns - settings_.keep_ns}, out_since_);
  std::erase_if(rows_, [&](const Row& row) { return row.evidence.t < oldest; });
  if (rows_.empty()) return out;
  drop_old_paths();
  ++counts_.runs;
  const localise::Report report = localiser_.run(recent(), {}, &out_);
  // What crosses a part that is out has an old path: of interest to nobody who repairs.
  for (const localise::Verdict& verdict : report.verdicts)
    if (verdict.probability >= settings_.probability && verdict.finding != Finding::unexpected)
      out.push_back(line(verdict, report, now));
  counts_.verdicts += out.size();
  return out;
}

model::EvidenceSet ProbeMonitor::recent() const {
  // By NIC: whether anything of it came to anybody, and anything to it.
  std::vector<bool> sends(fabric_.node_count()), receives(fabric_.node_count());
  // By prober: whether it knows paths at all.
  std::vector<bool> knows(fabric_.node_count());
  for (const Row& row : rows_) {
    const model::Evidence& e = row.evidence;
    if (!row.path.empty()) knows[e.src.index()] = true;
    if (e.lost == e.sent) continue;
    if (e.leg != model::Leg::back) sends[e.src.index()] = receives[e.dst.index()] = true;
    if (e.leg != model::Leg::forward) sends[e.dst.index()] = receives[e.src.index()] = true;
  }
  const auto is_end_dead = [&](const model::Evidence& e) {
    const bool there = sends[e.src.index()] && receives[e.dst.index()];
    const bool back = sends[e.dst.index()] && receives[e.src.index()];
    return !((there || e.leg == model::Leg::back) && (back || e.leg == model::Leg::forward));
  };
  model::EvidenceSet out;
  out.classes = classes_;
  for (const Row& row : rows_) {
    model::Evidence copy = row.evidence;
    const bool is_lost = row.lost_its_path || (row.path.empty() && knows[copy.src.index()]);
    // Nobody knows what lost or delayed them. Those that came would speak for all ways there are.
    if (is_lost && !(copy.lost == copy.sent && is_end_dead(copy))) continue;
    out.set_path(copy, row.path);
    out.rows.push_back(copy);
  }
  return out;
}

std::string ProbeMonitor::line(const localise::Verdict& verdict, const localise::Report& report,
                               Timestamp now) const {
  const std::string entity = entity_name(fabric_, verdict.entity);
  JsonObject attrs;
  attrs.add("finding", localise::to_text(verdict.finding))
      .add("probability", fmt::format("{:.4f}", verdict.probability))
      .add("probes", fmt::format("{}", verdict.probes))
      .add("lost", fmt::format("{:.0f}", verdict.lost))
      .add("since", report.begin)
      .add_if("class", verdict.traffic_class);
  if (verdict.destination.valid()) attrs.add("to", fabric_.name(verdict.destination));
  const std::string_view kind = kind_of(verdict.finding);
  if (kind == "probe_loss" || kind == "probe_corruption")
    if (const auto flows = failing(verdict.entity); !flows.empty())
      attrs.add("flows", to_text(flows));
  std::string id = fmt::format("localise-{}-{}", now.ns, entity);
  if (is_apart(verdict.finding)) id += fmt::format("-{}", localise::to_text(verdict.finding));
  if (verdict.destination.valid()) id += fmt::format("-{}", fabric_.name(verdict.destination));
  return JsonObject()
      .add("id", id)
      .add("t", now)
      .add("source", "probe")
      .add("entity", entity)
      .add("kind", kind)
      .add("value", verdict.loss, digits(6))
      .add("attrs", attrs)
      .text();
}

// The flows that lost most over links of the entity, worst first.
std::vector<port::Flow> ProbeMonitor::failing(const localise::Entity& entity) const {
  struct Count {
    std::uint64_t sent = 0, lost = 0;
  };
  std::map<port::Flow, Count> flows;
  for (const Row& row : rows_) {
    const model::Evidence& e = row.evidence;
    if (e.lost + e.damaged == 0) continue;
    bool is_answer = e.leg == model::Leg::back;
    for (const model::LinkId link : row.path) {
      if (is_of(fabric_, entity, link)) {
        port::Flow flow{.link = name(fabric_, model::entity(link)),
                        .src = std::string(fabric_.name(is_answer ? e.dst : e.src)),
                        .dst = std::string(fabric_.name(is_answer ? e.src : e.dst)),
                        .traffic_class = classes_[e.traffic_class]};
        (is_answer ? flow.dport : flow.sport) = e.sport;
        Count& count = flows[std::move(flow)];
        count.sent += e.sent;
        count.lost += e.lost + e.damaged;
      }
      // A round trip's path goes on with the way back.
      const model::NodeId to = fabric_.to(link);
      is_answer |= to == e.dst || fabric_.host_of(to) == e.dst;
    }
  }
  std::vector<std::pair<double, port::Flow>> worst;
  for (const auto& [flow, count] : flows)
    worst.emplace_back(-static_cast<double>(count.lost) / static_cast<double>(count.sent), flow);
  std::ranges::sort(worst);
  std::vector<port::Flow> out;
  for (std::size_t i = 0; i < worst.size() && i < flows_max; ++i)
    out.push_back(std::move(worst[i].second));
  return out;
}

ProbeView ProbeMonitor::view(Timestamp now) const {
  ProbeView out;
  std::map<model::ScopeId, std::uint32_t> racks;
  const auto rack_of = [&](model::NodeId node) {
    const model::ScopeId rack = fabric_.enclosing(node, model::ScopeKind::rack);
    const auto [at, is_new] = racks.emplace(rack, static_cast<std::uint32_t>(racks.size()));
    if (is_new) out.racks.push_back(rack.valid() ? fabric_.name(rack) : "no rack");
    return at->second;
  };
  std::vector<ProbeCount> links(fabric_.link_count());
  for (const Row& row : rows_) {
    const model::Evidence& e = row.evidence;
    if (e.t.ns < now.ns - settings_.keep_ns) continue;
    ++out.rows;
    if (out.from.ns == 0 || e.t < out.from) out.from = e.t;
    out.to = std::max(out.to, e.t);
    if (row.path.empty()) ++out.rows_without_path;
    const auto ends =
        e.leg == model::Leg::back ? std::array{e.dst, e.src} : std::array{e.src, e.dst};
    const std::uint32_t from = rack_of(ends[0]), to = rack_of(ends[1]);
    out.pairs[{from, to}].add(e.sent, e.lost, e.rtt_p99_us);
    for (const model::LinkId link : row.path) links[link.index()].add(e.sent, e.lost, e.rtt_p99_us);
  }
  for (const model::LinkId link : fabric_.links()) {
    if (!fabric_.on_wire(link)) continue;
    ++out.links_all;
    if (links[link.index()].sent == 0) continue;
    ++out.links_probed;
    out.links.push_back({fabric_.name(link), links[link.index()]});
  }
  std::ranges::stable_sort(out.links, std::ranges::greater(),
                           [](const ProbeView::Link& link) { return link.count.lost; });
  out.links.resize(std::min(out.links.size(), links_shown_max));
  return out;
}

}  // namespace weft::serve
