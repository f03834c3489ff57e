#include "adapt/sim/world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "base/check.hpp"
#include "base/text.hpp"
#include "route/hash.hpp"

namespace weft::adapt::sim {
namespace {

constexpr std::int64_t plan_window_ns = 10 * ns_per_s;
constexpr double queued_packet_bytes = 4'096, load_max = 0.99;
// The wait of M/D/1 is exponential from its mean on: median and 99th percentile, in means.
constexpr double wait_p50 = 0.6931471805599453, wait_p99 = 4.605170185988092;

std::string key_of(const model::State& state, std::span<const port::RouteMark> marks) {
  std::string out;
  for (const auto& [link, condition] : state.troubled_links())
    out += fmt::format("{}:{}:{} ", link.value, static_cast<int>(condition.health),
                       condition.rate_factor);
  for (const port::RouteMark& mark : marks)
    out +=
        fmt::format("{}>{}@{}={} ", mark.src.value, mark.dst.value, mark.port, mark.uplink.value);
  return out;
}

}  // namespace

port::Instant WorldClock::now() {
  return {std::chrono::steady_clock::now().time_since_epoch().count()};
}

double mean_wait_ns(double load, double bytes_per_s) {
  const double busy = std::clamp(load, 0.0, load_max);
  return busy / (2 * (1 - busy)) * queued_packet_bytes / bytes_per_s * 1e9;
}

World::World(const Fabric& fabric, const WorldSettings& settings, Timestamp start,
             route::Router router)
    : fabric_(fabric),
      settings_(settings),
      net_(fabric, settings.operations, start),
      clock_(start),
      router_(std::move(router)),
      twin_(fabric, 1, settings.operations.seed),
      changed_(start),
      window_(start),
      edge_(start) {}

Result<std::unique_ptr<World>> World::create(const Fabric& fabric,
                                             const route::RoutingConfig& routing,
                                             const WorldSettings& settings, Timestamp start) {
  WorldSettings drawn = settings;
  drawn.operations.tells_probes = false;
  route::RoutingConfig config = routing;
  config.convergence.reset();  // time passes here
  if (drawn.notice_ns) config.convergence.emplace(route::RoutingConfig::Convergence{});
  WEFT_TRY(route::Router router, route::Router::create(fabric, config, settings.operations.seed));
  auto out = std::make_unique<World>(fabric, drawn, start, std::move(router));
  WEFT_TRY_STATUS(out->plan_probes());
  if (drawn.te) {
    WEFT_TRY(out->te_, WorldTe::create(fabric, out->net_, *drawn.te));
    out->dark_.resize(drawn.te->flows.size(), 0);
  }
  out->routed_ = out->noticed_ = out->net_.routing();
  WEFT_TRY_STATUS(out->find_paths());
  for (const TwinFlow& flow : out->plan_.flows)
    if (flow.forward_size == 0 || flow.back_size == 0)
      return fail(Errc::infeasible, {},
                  fmt::format("no path joins {} and {}, which a probe needs", fabric.name(flow.src),
                              fabric.name(flow.dst)),
                  "leave the flow out of the plan");
  for (const LinkId link : fabric.links()) out->twin_.set_loss(link, out->loss_with_good(link, 0));
  out->edge_ = {start.ns + drawn.quiet_window_ns};
  return out;
}

Status World::plan_probes() {
  namespace probe = observe::probe;
  plan_.flows = settings_.flows;
  if (!plan_.flows.empty()) return {};
  const double crossings = settings_.crossings_per_s * plan_window_ns / ns_per_s;
  WEFT_TRY(const probe::Plan found,
           probe::make_plan(router_, {},
                            {.crossings = static_cast<std::uint64_t>(std::max(1.0, crossings)),
                             .flows_each = settings_.flows_each,
                             .routes_each = settings_.routes_each,
                             .window_ns = plan_window_ns,
                             .seed = settings_.operations.seed}));
  for (const probe::PlannedFlow& flow : found.flows) {
    TwinFlow out{.src = flow.src, .dst = flow.dst, .sport = flow.source_port};
    out.per_s = static_cast<double>(found.probes) * ns_per_s / plan_window_ns;
    plan_.flows.push_back(out);
  }
  return {};
}

// ---- time ----

Timestamp World::next_due() const {
  if (!records_.empty() || !evidence_.empty()) return now();
  Timestamp out = edge_;
  for (const auto& due : {reroute_, notice_, te_ ? te_->next_change() : std::nullopt})
    if (due) out = std::min(out, *due);
  if (const auto due = net_.next_due()) out = std::min(out, *due);
  return out;
}

Status World::advance(Timestamp to) {
  while (net_.now() < to) {
    Timestamp t = std::min(to, edge_);
    for (const auto& due : {reroute_, notice_})
      if (due) t = std::min(t, *due);
    if (te_) t = std::min(t, std::max(te_->next_due(), net_.now()));
    if (const auto due = net_.next_due()) t = std::min(t, std::max(*due, net_.now()));
    net_.advance(t);
    for (Operations::Line& line : net_.lines()) records_.push_back(std::move(line.text));
    WEFT_TRY_STATUS(settle());
  }
  clock_.set(to);
  return {};
}

void World::end_window() {
  close_window();
  window_ = now();
}

// Ends the window where something changed, or where it is long enough.
Status World::settle() {
  const auto is_due = [&](std::optional<Timestamp>& at) {
    if (!at || *at > now()) return false;
    at.reset();
    return true;
  };
  const bool has_changed = net_.version() != version_;
  const bool is_rerouted = is_due(reroute_), is_noticed = is_due(notice_);
  if (is_rerouted) routed_ = net_.routing();
  bool is_marked = false;
  if (te_ && (has_changed || is_rerouted || te_->next_due() <= now())) {
    WEFT_TRY(is_marked, te_->advance(routed_));
  }
  if (!has_changed && !is_rerouted && !is_noticed && !is_marked && now() < edge_) return {};
  close_window();
  if (has_changed) note_change();
  const bool is_moved = is_rerouted || is_noticed || is_marked;
  if (is_moved) {
    changed_ = now();
    if (is_noticed) noticed_ = net_.routing();
    WEFT_TRY_STATUS(find_paths());
  }
  if (te_ && (has_changed || is_moved)) find_blackouts();
  window_ = now();
  const std::int64_t length = window_length();
  edge_ = {(now().ns / length + 1) * length};
  return {};
}

// What follows of it later: switches turn from links of their own, then routes.
void World::note_change() {
  version_ = net_.version();
  changed_ = now();
  set_losses();
  const model::State state = net_.routing();
  // Paths are found anew after each drain, also of what carried nothing any more: who judges probes
  // cannot know that no path is another one.
  if (!reroute_ &&
      (state.troubled_links() != routed_.troubled_links() || net_.drained() != drained_))
    reroute_ = Timestamp{now().ns + settings_.converge_ns};
  if (settings_.notice_ns && !notice_ && state.troubled_links() != noticed_.troubled_links())
    notice_ = Timestamp{now().ns + *settings_.notice_ns};
}

// Long where no probe suffers; short after a change, and longer while it stays as it is, but less
// than what a service looks back on.
std::int64_t World::window_length() const {
  const bool suffers =
      reroute_ || !net_.black_holes().empty() ||
      std::ranges::any_of(plan_.links, [&](LinkId link) { return troubles_.contains(link); });
  if (!suffers) return settings_.quiet_window_ns;
  const std::int64_t age_ns = now().ns - changed_.ns;
  return age_ns < ns_per_minute ? settings_.window_ns : settings_.steady_window_ns;
}

Status World::act(const port::Action& action) {
  WEFT_TRY_STATUS(net_.act(action));
  return settle();
}

// ---- routes and what they cost ----

Status World::find_paths() {
  drained_ = net_.drained();
  model::State state = routed_;
  if (settings_.notice_ns) state.set_noticed(std::make_shared<const model::State>(noticed_));
  router_.set_state(state);
  const TwinPlan before = plan_;
  plan_.links.clear();
  for (TwinFlow& flow : plan_.flows) {
    const auto there = before.forward(flow), back = before.back(flow);
    const std::vector<LinkId> old_there(there.begin(), there.end());
    const std::vector<LinkId> old_back(back.begin(), back.end());
    const route::UdpPorts ports{flow.sport, flow.dport};
    add_path(flow.src, flow.dst, ports, old_there, flow.forward_first, flow.forward_size);
    add_path(flow.dst, flow.src, {ports.dst, ports.src}, old_back, flow.back_first, flow.back_size);
  }
  wait_ns_.clear();
  if (!settings_.loads) return {};
  const std::vector<port::RouteMark> marks = te_ ? te_->marks() : std::vector<port::RouteMark>();
  const auto [at, is_new] = waits_.try_emplace(key_of(routed_, marks));
  if (is_new) {
    WEFT_TRY(const std::vector<double> loads, settings_.loads(routed_, te_ ? &marks : nullptr));
    for (std::size_t i = 0; i < loads.size(); ++i) {
      const LinkId link(static_cast<std::uint32_t>(i));
      const double left = router_.capacity(link);
      at->second.push_back(left > 0 ? mean_wait_ns(loads[i], left) : 0);
    }
  }
  wait_ns_ = at->second;
  return {};
}

// As switches send packets. A mark over an uplink that its switch knows to be down is passed over.
bool World::packet_path(NodeId src, NodeId dst, const route::UdpPorts& ports, route::Path& out) {
  const LinkId uplink = te_ ? te_->uplink_of(src, dst, ports.src) : LinkId{};
  const model::State& known = settings_.notice_ns ? noticed_ : routed_;
  const auto is_known_dark = [&] {
    return !net_.has_carrier(model::cable_of(uplink)) &&
           known.link(uplink).health == model::Health::down;
  };
  if (uplink.valid() && !is_known_dark()) out = te_->path_of(src, dst, uplink);
  return !out.empty() || router_.append_udp_path(src, dst, ports, out);
}

// Where no way is left, probes go on as before and are lost.
void World::add_path(NodeId src, NodeId dst, const route::UdpPorts& ports,
                     const std::vector<LinkId>& before, std::uint32_t& first, std::uint16_t& size) {
  route::Path path;
  if (!packet_path(src, dst, ports, path)) path = before;
  first = static_cast<std::uint32_t>(plan_.links.size());
  size = static_cast<std::uint16_t>(path.size());
  plan_.links.insert(plan_.links.end(), path.begin(), path.end());
}

void World::find_blackouts() {
  for (std::uint32_t f = 0; f < dark_.size(); ++f) {
    const operate::te::Flow& flow = te_->flows()[f];
    route::Path path;
    const bool has_path = packet_path(flow.src, flow.dst, {flow.port, route::roce_port}, path) &&
                          std::ranges::none_of(path, [&](LinkId link) {
                            const auto trouble = troubles_.find(link);
                            return !net_.has_carrier(model::cable_of(link)) ||
                                   (trouble != troubles_.end() && trouble->second.loss >= 1);
                          });
    if (has_path && dark_[f] > 0) {
      blackouts_[dark_[f] - 1].to = now();
      dark_[f] = 0;
    } else if (!has_path && dark_[f] == 0) {
      blackouts_.push_back({f, now(), {}});
      dark_[f] = static_cast<std::uint32_t>(blackouts_.size());
    }
  }
}

double World::loss_with_good(LinkId link, double loss) const {
  if (settings_.good_loss_max <= 0) return loss;
  const double good =
      Rng(settings_.operations.seed).stream("good links").stream(link.value).uniform() *
      settings_.good_loss_max;
  return 1 - (1 - good) * (1 - loss);
}

void World::set_losses() {
  for (const auto& [link, trouble] : troubles_) {
    twin_.set_loss(link, loss_with_good(link, 0));
    twin_.set_damage(link, 0);
    twin_.set_duplicates(link, 0);
  }
  troubles_ = net_.troubles();
  for (const auto& [link, trouble] : troubles_) {
    twin_.set_loss(link, loss_with_good(link, trouble.loss));
    twin_.set_damage(link, trouble.damage);
    twin_.set_duplicates(link, trouble.duplicates);
  }
  twin_.set_black_holes(net_.black_holes());
  for (const NodeId host : fabric_.hosts()) twin_.set_dead(host, net_.is_silent(host));
}

// ---- what probes meet ----

void World::close_window() {
  if (now() <= window_) return;
  const Duration length{(now().ns - window_.ns) * ps_per_ns};
  const Observation seen = twin_.observe(plan_, window_, length);
  std::size_t row = 0;
  for (const TwinFlow& flow : plan_.flows) {
    const std::size_t first = row;
    row += flow.back_size > 0 ? 2 : 1;
    say_flow(seen.evidence, first, row, flow);
  }
  WEFT_CHECK(row == seen.evidence.rows.size());
}

// Sequence numbers in answers tell on which way a probe was lost; where no answer came, nobody
// knows.
void World::say_flow(const EvidenceSet& seen, std::size_t first, std::size_t last,
                     const TwinFlow& flow) {
  const model::Evidence& there = seen.rows[first];
  if (there.sent == 0) return;
  std::uint32_t lost = 0, damaged = 0;
  for (std::size_t i = first; i < last; ++i) {
    lost += seen.rows[i].lost;
    damaged += seen.rows[i].damaged;
  }
  EvidenceSet out;
  out.classes = seen.classes;
  const auto forward = plan_.forward(flow), back = plan_.back(flow);
  const auto say = [&](model::Evidence row, std::span<const LinkId> path) {
    if (row.sent == 0) return;
    row.path_t = row.t;  // each window has paths of its own
    out.set_path(row, path);
    if (lost + damaged < there.sent) {
      row.rtt_p50_us =
          static_cast<float>((leg_ns(forward, wait_p50, 0.5) + leg_ns(back, wait_p50, 0.5)) / 1e3);
      row.rtt_p99_us = static_cast<float>(
          (leg_ns(forward, wait_p99, 0.99) + leg_ns(back, wait_p99, 0.99)) / 1e3);
    }
    evidence_.push_back(model::to_json(fabric_, out, row));
    if (!probes_) return;
    probes_->classes = out.classes;
    probes_->set_path(row, path);
    probes_->rows.push_back(row);
  };
  if (lost + damaged == there.sent) {
    // Nor did anybody say what came damaged to the responder.
    model::Evidence row = there;
    row.leg = model::Leg::round_trip;
    row.lost = lost + there.damaged;
    row.damaged = damaged - there.damaged;
    std::vector<LinkId> path(forward.begin(), forward.end());
    path.insert(path.end(), back.begin(), back.end());
    return say(row, path);
  }
  for (std::size_t i = first; i < last; ++i)
    say(seen.rows[i], seen.rows[i].leg == model::Leg::back ? back : forward);
}

model::EvidenceSet World::take_probes() {
  model::EvidenceSet out;
  if (probes_) out = *std::move(probes_);
  probes_.emplace();
  return out;
}

route::Path World::path(NodeId src_nic, NodeId dst_nic, const route::UdpPorts& ports) {
  route::Path out;
  router_.append_udp_path(src_nic, dst_nic, ports, out);
  return out;
}

World::Way World::way(std::span<const LinkId> path) const {
  Way out{.bytes_per_s = path.empty() ? 0 : router_.capacity(path.front())};
  double comes = 1;
  for (const LinkId link : path) {
    out.bytes_per_s = std::min(out.bytes_per_s, router_.capacity(link));
    out.delay_ns += static_cast<double>(fabric_.latency(link).ps) / ps_per_ns;
    const auto at = troubles_.find(link);
    if (at == troubles_.end()) continue;
    comes *= (1 - at->second.loss) * (1 - at->second.damage);
    out.delay_ns += static_cast<double>(at->second.delay_ns);
  }
  out.loss = 1 - comes;
  return out;
}

double World::leg_ns(std::span<const LinkId> path, double waits, double jitter) const {
  double out = 0;
  for (const LinkId link : path) {
    out += static_cast<double>(fabric_.latency(link).ps) / ps_per_ns;
    if (link.index() < wait_ns_.size()) out += waits * wait_ns_[link.index()];
    if (const auto at = troubles_.find(link); at != troubles_.end())
      out += static_cast<double>(at->second.delay_ns) +
             jitter * static_cast<double>(at->second.jitter_ns);
  }
  return out;
}

// ---- devices ----

Result<std::vector<port::StatePiece>> World::collect(std::string_view device,
                                                     std::chrono::milliseconds patience,
                                                     std::size_t bytes_max) {
  static_cast<void>(patience);
  WEFT_TRY(const NodeId node, fabric_.find_node({device, {}}));
  port::StatePiece ports{.name = "interfaces", .text = {}, .error = {}};
  if (net_.is_silent(node)) {
    ports.error = "no answer from the device";
    return std::vector{std::move(ports)};
  }
  for (const LinkId link : fabric_.out(node)) {
    if (!fabric_.on_wire(link)) continue;
    const model::CableId cable = model::cable_of(link);
    ports.text += fmt::format(
        "{} to {}: {}, session {}, {}\n", name(fabric_, model::port_of(link)),
        fabric_.name(fabric_.to(link)), net_.has_carrier(cable) ? "carrier" : "no carrier",
        net_.has_session(cable) ? "up" : "down", net_.is_drained(cable) ? "drained" : "in service");
  }
  cut(ports, bytes_max, Keep::begin);
  return std::vector{std::move(ports)};
}

}  // namespace weft::adapt::sim
