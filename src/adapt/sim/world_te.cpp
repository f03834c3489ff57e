#include "adapt/sim/world_te.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"

namespace weft::adapt::sim {
namespace {

namespace te = operate::te;

constexpr std::int64_t te_days_max = 100;

port::RouteMark key_of(port::RouteMark mark) {
  mark.uplink = {};
  return mark;
}

}  // namespace

WorldTe::WorldTe(const model::Fabric& fabric, const Operations& net,
                 const WorldTeSettings& settings, route::Zone zone)
    : fabric_(fabric),
      net_(net),
      settings_(settings),
      zone_(std::move(zone)),
      start_(net.now()),
      lease_end_(net.now()),
      carrier_(fabric.cable_count(), true) {}

Result<std::unique_ptr<WorldTe>> WorldTe::create(const model::Fabric& fabric, const Operations& net,
                                                 const WorldTeSettings& settings) {
  WEFT_TRY(route::Zone zone, route::find_zone(fabric));
  auto out = std::make_unique<WorldTe>(fabric, net, settings, std::move(zone));
  WEFT_TRY_STATUS(out->start_controller());
  // What it found before anything happened is there from the start.
  for (Coming& coming : out->coming_) coming.at = net.now();
  out->install();
  out->held_ = true;
  return out;
}

Status WorldTe::start_controller() {
  WEFT_TRY(te::Controller controller,
           te::Controller::create(fabric_, *this, *this, 1, settings_.loop));
  heard_.clear();  // it sees for itself what has no carrier
  for (std::uint32_t i = 0; i < carrier_.size(); ++i) {
    carrier_[i] = net_.has_carrier(model::CableId(i));
    if (!carrier_[i]) heard_.push_back({net_.now(), {model::CableId(i), false}});
  }
  WEFT_TRY(te::Event first, controller.start(settings_.flows, time()));
  events_.push_back(std::move(first));
  controller_ = std::move(controller);
  return {};
}

// ---- time ----

Result<bool> WorldTe::advance(const model::State& routes) {
  if (net_.now().ns - start_.ns > te_days_max * 24 * 60 * ns_per_minute)
    return fail(Errc::unsupported, {},
                "a simulated network with traffic engineering runs for 100 days at most",
                "end it earlier with --for");
  routes_ = routes;
  if (net_.version() != version_) {
    version_ = net_.version();
    watch_carriers();
  }
  if (controller_)
    if (auto event = controller_->turn(time())) events_.push_back(*std::move(event));
  const bool is_new = install();
  return std::exchange(held_, holds()) != holds() || is_new;
}

Timestamp WorldTe::next_due() const {
  Timestamp out{INT64_MAX};
  if (controller_) out = wall_of(controller_->next_turn());
  if (const auto change = next_change()) out = std::min(out, *change);
  return out;
}

std::optional<Timestamp> WorldTe::next_change() const {
  std::optional<Timestamp> out;
  const auto add = [&](Timestamp t) { out = out ? std::min(*out, t) : t; };
  if (!heard_.empty() && controller_) add(heard_.front().at);
  if (!coming_.empty()) add(coming_.front().at);
  if (held_ && !controller_) add(lease_end_);
  return out;
}

void WorldTe::watch_carriers() {
  for (std::uint32_t i = 0; i < carrier_.size(); ++i) {
    const bool is_up = net_.has_carrier(model::CableId(i));
    if (carrier_[i] == is_up) continue;
    carrier_[i] = is_up;
    heard_.push_back({after(settings_.heard), {model::CableId(i), is_up}});
  }
}

bool WorldTe::install() {
  bool is_new = false;
  while (!coming_.empty() && coming_.front().at <= net_.now()) {
    for (const port::RouteMark& mark : coming_.front().changes) {
      if (mark.uplink.valid())
        marks_[key_of(mark)] = mark.uplink;
      else
        marks_.erase(key_of(mark));
    }
    is_new = true;
    coming_.erase(coming_.begin());
  }
  return is_new;
}

// ---- what packets meet ----

model::LinkId WorldTe::uplink_of(model::NodeId src, model::NodeId dst, std::uint16_t port) const {
  if (!holds()) return {};
  const auto mark = marks_.find({src, dst, port, {}});
  return mark == marks_.end() ? model::LinkId{} : mark->second;
}

std::vector<model::LinkId> WorldTe::path_of(model::NodeId src, model::NodeId dst,
                                            model::LinkId uplink) const {
  const std::uint32_t column = zone_.column_of(src, uplink), rack = zone_.rack_of[dst];
  if (column == route::Zone::none || rack == route::Zone::none || rack == zone_.rack_of[src] ||
      !zone_.uplink(rack, column).valid())
    return {};
  const auto path = zone_.path(src, dst, column);
  return {path.begin(), path.end()};
}

std::vector<port::RouteMark> WorldTe::marks() const {
  std::vector<port::RouteMark> out;
  if (!holds()) return out;
  for (const auto& [key, uplink] : marks_) {
    out.push_back(key);
    out.back().uplink = uplink;
  }
  return out;
}

// ---- the ports of the controller ----

std::vector<port::LinkNews> WorldTe::news() {
  std::vector<port::LinkNews> out;
  const auto later =
      std::ranges::find_if(heard_, [&](const Heard& heard) { return heard.at > net_.now(); });
  for (auto it = heard_.begin(); it != later; ++it) out.push_back(it->news);
  heard_.erase(heard_.begin(), later);
  return out;
}

std::vector<model::CableId> WorldTe::routed(std::span<const model::CableId> cables) {
  std::vector<model::CableId> out;
  for (const model::CableId cable : cables)
    if (net_.has_session(cable) &&
        routes_.link(model::forward(cable)).health != model::Health::down)
      out.push_back(cable);
  return out;
}

model::State WorldTe::drained() {
  model::State out;
  for (std::uint32_t i = 0; i < carrier_.size(); ++i) {
    const model::CableId cable(i);
    if (!net_.is_drained(cable)) continue;
    out.set(model::forward(cable), {.health = model::Health::draining});
    out.set(model::reverse(model::forward(cable)), {.health = model::Health::draining});
  }
  return out;
}

Status WorldTe::apply(std::span<const port::RouteMark> changes) {
  coming_.push_back({after(settings_.installed), {changes.begin(), changes.end()}});
  return {};
}

Result<std::vector<port::RouteMark>> WorldTe::installed() {
  std::map<Key, model::LinkId> there = marks_;
  for (const Coming& coming : coming_)
    for (const port::RouteMark& mark : coming.changes) there[key_of(mark)] = mark.uplink;
  std::vector<port::RouteMark> out;
  for (const auto& [key, uplink] : there) {
    if (!uplink.valid()) continue;
    out.push_back(key);
    out.back().uplink = uplink;
  }
  return out;
}

Status WorldTe::renew() {
  lease_end_ = after(settings_.lease);
  return {};
}

}  // namespace weft::adapt::sim
