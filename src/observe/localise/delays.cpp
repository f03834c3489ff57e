#include "observe/localise/delays.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

namespace weft::observe::localise {
namespace {

using model::Evidence;
using model::EvidenceSet;
using model::Leg;
using model::LinkId;

struct Trip {
  const Evidence* row;  // of the way there, or of both
  std::vector<LinkId> path;
  double over_us = 0;  // what the links do not explain
};

auto flow_of(const Evidence& row) {
  return std::tuple(row.t, row.src, row.dst, row.sport, row.traffic_class);
}

// A round trip is one row, or one for each way, which have the same times.
std::vector<Trip> trips_in(const EvidenceSet& evidence) {
  std::vector<const Evidence*> timed;
  for (const Evidence& row : evidence.rows)
    if (row.path_size > 0 && row.rtt_p50_us >= 0) timed.push_back(&row);
  std::ranges::stable_sort(timed, {}, [](const Evidence* row) {
    return std::tuple_cat(flow_of(*row), std::tuple(row->leg));
  });
  std::vector<Trip> out;
  for (std::size_t i = 0; i < timed.size(); ++i) {
    const Evidence& row = *timed[i];
    const auto path = evidence.path(row);
    Trip trip{&row, {path.begin(), path.end()}};
    if (row.leg != Leg::round_trip) {
      if (row.leg == Leg::back || i + 1 == timed.size() || timed[i + 1]->leg != Leg::back ||
          flow_of(*timed[i + 1]) != flow_of(row))
        continue;
      const auto back = evidence.path(*timed[++i]);
      trip.path.insert(trip.path.end(), back.begin(), back.end());
    }
    out.push_back(std::move(trip));
  }
  return out;
}

}  // namespace

EvidenceSet delays_in(const model::Fabric& fabric, const EvidenceSet& evidence, double excess_us) {
  EvidenceSet out;
  // Who is slower than others by so much takes longer than that.
  if (std::ranges::none_of(evidence.rows,
                           [&](const Evidence& row) { return row.rtt_p50_us > excess_us; }))
    return out;
  std::vector<Trip> trips = trips_in(evidence);
  std::map<std::size_t, std::vector<double>> by_length;
  for (Trip& trip : trips) {
    double links_us = 0;
    for (const LinkId link : trip.path) links_us += fabric.latency(link).us();
    trip.over_us = trip.row->rtt_p50_us - links_us;
    by_length[trip.path.size()].push_back(trip.over_us);
  }
  std::map<std::size_t, double> usual_us;
  for (auto& [length, over_us] : by_length) {
    const auto middle = over_us.begin() + static_cast<std::ptrdiff_t>(over_us.size() / 2);
    std::ranges::nth_element(over_us, middle);
    usual_us[length] = *middle;
  }
  out.classes = evidence.classes;
  bool is_any_slow = false;
  for (const Trip& trip : trips) {
    const bool is_slow = trip.over_us - usual_us[trip.path.size()] > excess_us;
    is_any_slow = is_any_slow || is_slow;
    Evidence row = *trip.row;
    row.leg = Leg::round_trip;
    row.sent = 1;
    row.lost = is_slow ? 1 : 0;
    row.late = row.damaged = row.duplicates = 0;
    out.set_path(row, trip.path);
    out.rows.push_back(row);
  }
  if (!is_any_slow) out = {};
  return out;
}

}  // namespace weft::observe::localise
