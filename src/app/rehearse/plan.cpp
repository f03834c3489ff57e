#include "app/rehearse/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/hash.hpp"
#include "base/rng.hpp"

namespace weft::app {
namespace {

using adapt::sim::FaultKind;
using model::Entity;

constexpr double month_days = 30;
constexpr std::string_view blips = "blips";  // single losses of carrier
constexpr std::uint32_t lemon_days = 10;     // of a long rehearsal: lemons begin within them

class Planner {
 public:
  Planner(const model::Fabric& fabric, const RehearseOptions& options)
      : fabric_(fabric), options_(options), model_(options.model), rng_(options.seed) {}

  // Faults of each part at a constant rate. As points in the plane of time and rate: those of a day
  // in order of their rate, of which the ones below `per_day` take place. So a raised rate adds
  // faults and moves none.
  void add(std::string_view stream, FaultKind kind, std::span<const Entity> parts, double per_day) {
    const Rng of_kind = rng_.stream(stream);
    for (const Entity& part : parts) {
      const Rng of_part = of_kind.stream(name(fabric_, part));
      for (std::uint64_t day = 0; day < options_.days; ++day) {
        Rng of_day = of_part.stream(day);
        std::uint64_t count = 0;
        for (double rate = gap(of_day); rate < per_day; rate += gap(of_day)) {
          Rng own = of_day.stream(count++);
          const Timestamp t = time(own, static_cast<std::int64_t>(day), 1);
          out_.push_back({t, start(stream, kind, part, own)});
        }
      }
    }
  }

  // Each begins early, so that it can be found out. One more leaves the others as they are.
  void add_lemons(std::span<const Entity> cables) {
    std::vector<std::pair<std::uint64_t, Entity>> order;
    const Rng all = rng_.stream("lemons");
    for (const Entity& cable : cables)
      order.emplace_back(all.stream(name(fabric_, cable)).next(), cable);
    std::ranges::sort(order);
    const std::size_t count = std::min<std::size_t>(model_.lemons, order.size());
    const double days = std::min(options_.days / 3.0, static_cast<double>(lemon_days));
    constexpr std::array<FaultKind, 3> kinds{FaultKind::grey, FaultKind::optic, FaultKind::cable};
    for (std::size_t i = 0; i < count; ++i) {
      Rng own = all.stream(name(fabric_, order[i].second)).stream(1);
      const Timestamp t = time(own, 0, days);
      out_.push_back({t, start("lemons", kinds[i % kinds.size()], order[i].second, own)});
      out_.back().start.again_mean_ns = model_.lemon_again_ns;
    }
  }

  std::vector<PlannedFault> plan() && {
    std::ranges::sort(out_, {}, [](const PlannedFault& f) { return std::pair(f.t, f.start.key); });
    return std::move(out_);
  }

 private:
  static double gap(Rng& rng) { return -std::log1p(-rng.uniform()); }
  static std::int64_t around(Rng& rng, std::int64_t mean_ns) {
    return static_cast<std::int64_t>(gap(rng) * static_cast<double>(mean_ns));
  }
  static Timestamp time(Rng& rng, std::int64_t day, double days) {
    const double share = rng.uniform() * days;
    return {rehearse_start.ns + day * rehearse_day_ns +
            static_cast<std::int64_t>(share * static_cast<double>(rehearse_day_ns))};
  }
  adapt::sim::Operations::Start start(std::string_view stream, FaultKind kind, const Entity& part,
                                      Rng& own) const {
    adapt::sim::Operations::Start out{.kind = kind, .part = part, .key = own.next()};
    if (kind == FaultKind::optic) out.loss = model_.optic_loss;
    if (kind == FaultKind::grey)
      out.loss = model_.grey_least * std::pow(model_.grey_most / model_.grey_least, own.uniform());
    if (kind == FaultKind::control_plane)
      out.lasts_ns = around(own, model_.control_plane_ns) + ns_per_s;
    if (stream == blips) out.lasts_ns = ns_per_s / 5 + around(own, ns_per_s / 2);
    return out;
  }

  const model::Fabric& fabric_;
  const RehearseOptions& options_;
  const RehearseModel& model_;
  Rng rng_;
  std::vector<PlannedFault> out_;
};

}  // namespace

RehearseParts::RehearseParts(const model::Fabric& fabric, std::uint32_t ports_per_card) {
  for (const model::LinkId link : fabric.links()) {
    if (!fabric.on_wire(link) || link != model::forward(model::cable_of(link))) continue;
    const bool is_trunk = fabric.is_switch(fabric.from(link)) && fabric.is_switch(fabric.to(link));
    (is_trunk ? trunks : leaves).push_back(model::entity(model::cable_of(link)));
  }
  for (const model::NodeId node : fabric.nodes()) {
    if (!fabric.is_switch(node)) continue;
    const auto out = fabric.out(node);
    const bool has_hosts = std::ranges::any_of(
        out, [&](model::LinkId link) { return !fabric.is_switch(fabric.to(link)); });
    (has_hosts ? rack_switches : others).push_back(model::entity(node));
    switches.push_back(model::entity(node));
    if (out.size() <= ports_per_card) continue;
    for (std::uint32_t i = 0; std::size_t{i} * ports_per_card < out.size(); ++i)
      cards.push_back(model::card_of(node, i));
  }
  for (const model::NodeId nic : fabric.nics()) nics.push_back(model::entity(nic));
  for (const model::NodeId host : fabric.hosts()) hosts.push_back(model::entity(host));
}

namespace {

// Faults of one kind: `stream` names what is drawn for them.
struct FaultRow {
  std::string_view stream;
  FaultKind kind;
  const std::vector<Entity>* parts;
  double per_day;  // of each part
};

std::vector<FaultRow> rows_of(const RehearseParts& parts, const RehearseModel::Rates& r) {
  const auto row = [](std::string_view stream, FaultKind kind, const std::vector<Entity>& of,
                      double per_month) {
    return FaultRow{stream, kind, &of, per_month / month_days};
  };
  return {row("cable", FaultKind::cable, parts.leaves, r.host_cable),
          row("cable", FaultKind::cable, parts.trunks, r.trunk_cable),
          row("switch", FaultKind::device, parts.rack_switches, r.rack_switch),
          row("switch", FaultKind::device, parts.others, r.other_switch),
          row("line_card", FaultKind::card, parts.cards, r.line_card),
          row("control_plane", FaultKind::control_plane, parts.switches, r.control_plane),
          row("grey_loss", FaultKind::grey, parts.trunks, r.grey),
          row("optic", FaultKind::optic, parts.trunks, r.optic),
          row("port_flap", FaultKind::flap, parts.trunks, r.flap),
          row("host_nic", FaultKind::nic, parts.nics, r.host_nic),
          row("host", FaultKind::host, parts.hosts, r.host),
          {blips, FaultKind::flap, &parts.leaves, r.blips},
          {blips, FaultKind::flap, &parts.trunks, r.blips}};
}

}  // namespace

double expected_faults(const model::Fabric& fabric, const RehearseOptions& options) {
  const RehearseParts parts(fabric, options.model.operations.ports_per_card);
  double per_day = 0;
  for (const FaultRow& row : rows_of(parts, options.model.rates))
    per_day += row.per_day * static_cast<double>(row.parts->size());
  return per_day * options.days;
}

std::vector<PlannedFault> plan_faults(const model::Fabric& fabric, const RehearseParts& parts,
                                      const RehearseOptions& options) {
  Planner planner(fabric, options);
  for (const FaultRow& row : rows_of(parts, options.model.rates))
    planner.add(row.stream, row.kind, *row.parts, row.per_day);
  planner.add_lemons(parts.trunks);
  return std::move(planner).plan();
}

}  // namespace weft::app
