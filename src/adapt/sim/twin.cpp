#include "adapt/sim/twin.hpp"

#include <algorithm>
#include <cmath>

#include "adapt/sim/sample.hpp"
#include "base/check.hpp"
#include "base/hash.hpp"

namespace weft::adapt::sim {
namespace {

constexpr double intensity_max = 40;   // nothing passes
constexpr double packets_per_s = 1e5;  // of other traffic on a link and class
constexpr double marks_share = 1e-5;   // of packets, where nothing is wrong

double intensity_of(double loss) {
  return loss >= 1 ? intensity_max : std::min(intensity_max, -std::log1p(-loss));
}

}  // namespace

// What is drawn once for all probes of a window.
struct Twin::Window {
  Timestamp t;
  double seconds;
  std::vector<double> intensity;   // as Twin::intensity_, with bursts
  Column<NodeId, double> stalled;  // by host: share of the window
  std::vector<double> burst_loss;  // by Twin::bursts_: mean over the window
};

Twin::Twin(const Fabric& fabric, std::size_t class_count, std::uint64_t seed)
    : fabric_(fabric),
      class_count_(class_count),
      rng_(Rng(seed).stream("twin")),
      intensity_(class_count * fabric.link_count(), 0),
      dead_(fabric.node_count(), false) {
  WEFT_CHECK(class_count > 0);
}

void Twin::set_loss(LinkId link, std::uint8_t traffic_class, double loss) {
  intensity_[traffic_class * fabric_.link_count() + link.index()] = intensity_of(loss);
}

void Twin::set_loss(LinkId link, double loss) {
  for (std::size_t k = 0; k < class_count_; ++k) set_loss(link, static_cast<std::uint8_t>(k), loss);
}

double Twin::loss(LinkId link, std::uint8_t traffic_class) const {
  return -std::expm1(-intensity_[traffic_class * fabric_.link_count() + link.index()]);
}

void Twin::set_damage(LinkId link, double share) { set_share(damage_, link, share); }
void Twin::set_duplicates(LinkId link, double share) { set_share(duplicates_, link, share); }

void Twin::set_share(Shares& shares, LinkId link, double share) {
  if (share > 0)
    shares[link] = intensity_of(share);
  else
    shares.erase(link);
}

double Twin::share_over(const Shares& shares, std::span<const LinkId> path) {
  double sum = 0;
  for (const LinkId link : path)
    if (const auto at = shares.find(link); at != shares.end()) sum += at->second;
  return -std::expm1(-sum);
}

void Twin::begin(Window& window) {
  window.intensity = intensity_;
  window.stalled.resize(fabric_.node_count(), 0);
  for (const auto& [host, stalls] : stalls_) {
    const double count = draw_poisson(rng_, stalls.per_s * window.seconds);
    window.stalled[host] = std::min(0.9, count * stalls.length.seconds() / window.seconds);
  }
  for (const Bursts& bursts : bursts_) {
    const double count = draw_poisson(rng_, bursts.per_s * window.seconds);
    const double share = std::min(1.0, count * bursts.length.seconds() / window.seconds);
    window.burst_loss.push_back(share * bursts.loss);
    window.intensity[bursts.traffic_class * fabric_.link_count() + bursts.link.index()] +=
        intensity_of(window.burst_loss.back());
  }
}

bool Twin::hits(const TupleFault& fault, std::span<const LinkId> path, const TwinFlow& flow) const {
  const std::uint64_t tuple =
      mix64(mix64((std::uint64_t{flow.src.value} << 32) ^ flow.dst.value) ^ flow.sport);
  if (mix64(tuple ^ fault.salt) % fault.buckets != 0) return false;
  return std::ranges::any_of(
      path, [&](LinkId link) { return std::ranges::binary_search(fault.links, link); });
}

bool Twin::is_eaten(std::span<const LinkId> path) const {
  return std::ranges::any_of(holes_, [&](const Operations::BlackHole& hole) {
    return fabric_.host_of(fabric_.to(path.back())) == hole.victim &&
           std::ranges::any_of(path, [&](LinkId link) { return fabric_.from(link) == hole.at; });
  });
}

double Twin::leg_loss(std::span<const LinkId> path, const TwinFlow& flow,
                      const Window& window) const {
  if (!holes_.empty() && is_eaten(path)) return 1;
  const double* const of_class =
      window.intensity.data() + flow.traffic_class * fabric_.link_count();
  double sum = 0;
  for (const LinkId link : path) sum += of_class[link.index()];
  for (const TupleFault& fault : tuple_faults_)
    if (hits(fault, path, flow)) sum += intensity_of(fault.loss);
  return -std::expm1(-sum);
}

void Twin::probe(const TwinPlan& plan, const TwinFlow& flow, Window& window, Observation& out) {
  const NodeId src = fabric_.host_of(flow.src), dst = fabric_.host_of(flow.dst);
  const auto planned = flow.per_s * window.seconds;
  const auto whole = static_cast<std::uint32_t>(planned);
  const bool one_more = planned > whole && rng_.uniform() < planned - whole;
  std::uint32_t sent = dead_[src] ? 0 : whole + (one_more ? 1 : 0);
  const auto cross = [&](model::Leg leg, std::span<const LinkId> path, std::uint32_t first,
                         NodeId host) {
    model::Evidence row{.t = window.t, .src = flow.src, .dst = flow.dst};
    row.sport = flow.sport;
    row.traffic_class = flow.traffic_class;
    row.leg = leg;
    row.path_first = first;
    row.path_size = static_cast<std::uint16_t>(path.size());
    row.sent = sent;
    row.lost = draw_binomial(rng_, sent, leg_loss(path, flow, window));
    if (const double share = window.stalled[host]; share > 0) {
      const std::uint32_t met = draw_binomial(rng_, sent - row.lost, share);
      row.late = draw_binomial(rng_, met, stalls_.at(host).late_share);
      row.lost += met - row.late;
    }
    if (dead_[host]) {
      row.lost = sent;
      row.late = 0;
    }
    if (!damage_.empty())
      row.damaged = draw_binomial(rng_, sent - row.lost - row.late, share_over(damage_, path));
    sent -= row.lost + row.damaged;
    // Responders refuse what comes twice, so that it shows on the way back alone.
    if (!duplicates_.empty() && leg == model::Leg::back)
      row.duplicates = draw_binomial(rng_, sent, share_over(duplicates_, path));
    out.evidence.rows.push_back(row);
  };
  cross(model::Leg::forward, plan.forward(flow), flow.forward_first, dst);
  if (flow.back_size > 0) cross(model::Leg::back, plan.back(flow), flow.back_first, src);
}

void Twin::count(const TwinPlan& plan, const Window& window, Observation& out) {
  std::map<std::pair<LinkId, std::size_t>, double> dropping;
  for (std::size_t i = 0; i < bursts_.size(); ++i)
    dropping[{bursts_[i].link, bursts_[i].traffic_class}] += window.burst_loss[i];
  const auto packets = static_cast<std::uint32_t>(packets_per_s * std::min(window.seconds, 1e3));
  for (const LinkId link : fabric_.links()) {
    if (!fabric_.on_wire(link)) continue;
    for (std::size_t k = 0; k < class_count_; ++k) {
      LinkCounters row{.t = window.t, .link = link, .traffic_class = plan.classes[k]};
      row.packets = packets;
      const auto found = dropping.find({link, k});
      const double drops = found == dropping.end() ? 0 : found->second;
      row.drops = draw_binomial(rng_, packets, drops);
      row.marks = std::min<std::uint64_t>(packets - row.drops,
                                          draw_binomial(rng_, packets, marks_share + 10 * drops));
      out.counters.push_back(std::move(row));
    }
  }
}

Observation Twin::observe(const TwinPlan& plan, Timestamp t, Duration length, Counters counters) {
  WEFT_CHECK(plan.classes.size() == class_count_);
  Window window{
      .t = t, .seconds = length.seconds(), .intensity = {}, .stalled = {}, .burst_loss = {}};
  begin(window);
  Observation out;
  out.evidence.classes = plan.classes;
  out.evidence.links = plan.links;
  out.evidence.rows.reserve(2 * plan.flows.size());
  for (const TwinFlow& flow : plan.flows) probe(plan, flow, window, out);
  if (counters == Counters::all_links) count(plan, window, out);
  return out;
}

}  // namespace weft::adapt::sim
