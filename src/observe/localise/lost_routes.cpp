#include "observe/localise/lost_routes.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "base/hash.hpp"

namespace weft::observe::localise {
namespace {

using model::Evidence;
using model::EvidenceSet;
using model::Fabric;
using model::Leg;
using model::LinkId;
using model::NodeId;

constexpr std::size_t flows_min = 4;
// Of a row's probes, lost: what a fault that has just begun takes. Fewer than three a row may be an
// outage so short that it met the flows to one end alone, whose probes leave one behind the other.
constexpr std::uint32_t losses_min = 3;
constexpr double hit_share = 0.05;
constexpr double accept = 12;  // a chance of one in 160,000, and as many routes

using Route = std::pair<NodeId, NodeId>;  // switch; NIC, or host with several
using FlowKey = std::tuple<NodeId, NodeId, std::uint16_t, std::uint8_t, Leg>;
using Rows = std::vector<const Evidence*>;

FlowKey key_of(const Evidence& row) {
  return {row.src, row.dst, row.sport, row.traffic_class, row.leg};
}

bool is_hit(const Evidence& row) {
  return row.lost >= losses_min && row.lost >= hit_share * row.sent;
}

// Rows, and how many of them lost anything.
struct Count {
  std::uint64_t rows = 0, hit = 0;
  void add(const Evidence& row) {
    ++rows;
    hit += row.lost > 0 ? 1 : 0;
  }
  // The share of hit ones, were one more hit: 1 where there are no rows.
  double share() const { return static_cast<double>(hit + 1) / static_cast<double>(rows + 1); }
};

// A route over which rows were hit.
struct Suspect {
  Rows hit;
  std::vector<Timestamp> good;  // starts of the rows over it that were not

  // Leaves of the hit rows those of the time in which most flows were hit and no row was good; of
  // two such times the later one.
  void keep_longest() {
    std::ranges::sort(hit, {}, &Evidence::t);
    std::ranges::sort(good);
    std::span<const Evidence*> best;
    std::size_t most = 0;
    for (std::span<const Evidence*> left(hit); !left.empty();) {
      const auto next = std::ranges::lower_bound(good, left.front()->t);
      const Timestamp end = next == good.end() ? Timestamp{INT64_MAX} : *next;
      const auto run_end = std::ranges::lower_bound(left, end, {}, &Evidence::t);
      const auto run = left.first(static_cast<std::size_t>(run_end - left.begin()));
      if (const std::size_t count = flows(run); count > 0 && count >= most) {
        best = run;
        most = count;
      }
      // Those beside a good one tell nothing.
      const auto rest = std::ranges::upper_bound(left, end, {}, &Evidence::t);
      left = left.subspan(static_cast<std::size_t>(rest - left.begin()));
    }
    hit = Rows(best.begin(), best.end());
  }
  Timestamp begin() const { return hit.front()->t; }
  Timestamp last() const { return hit.back()->t; }
  // Where of other rows this share is hit.
  double score(double usual) const { return -static_cast<double>(flows(hit)) * std::log(usual); }

  static std::size_t flows(std::span<const Evidence* const> rows) {
    std::vector<FlowKey> out;
    for (const Evidence* row : rows) out.push_back(key_of(*row));
    std::ranges::sort(out);
    return out.size() - std::ranges::unique(out).size();
  }
};
using Suspects = std::map<Route, Suspect>;

class Judge {
 public:
  Judge(const Fabric& fabric, const EvidenceSet& evidence, const model::State* believed)
      : fabric_(fabric), evidence_(evidence) {
    if (believed != nullptr) live_.emplace(fabric, *believed);
  }

  // Routes with enough flows that lost probes, and nothing but that, for some time.
  Suspects suspects() const {
    Suspects out;
    // Few routes are hit more than once or twice: those that are not need no entry.
    std::vector<std::uint8_t> hits(std::size_t{1} << 18, 0);
    const auto at = [&](const Route& route) {
      return mix64(std::uint64_t{route.first.value} << 32 | route.second.value) % hits.size();
    };
    Rows hit;
    for (const Evidence& row : evidence_.rows)
      if (is_hit(row) && tells(row)) {
        hit.push_back(&row);
        each_route(row, [&](const Route& route) {
          std::uint8_t& count = hits[at(route)];
          count = static_cast<std::uint8_t>(std::min<std::size_t>(count + 1u, flows_min));
        });
      }
    for (const Evidence* row : hit)
      each_route(*row, [&](const Route& route) {
        if (hits[at(route)] == flows_min) out[route].hit.push_back(row);
      });
    const auto has_few = [](const auto& one) { return Suspect::flows(one.second.hit) < flows_min; };
    std::erase_if(out, has_few);
    if (out.empty()) return out;
    const EndRows to_ends = note_good(out);
    for (auto& [route, suspect] : out) suspect.keep_longest();
    std::erase_if(out, has_few);
    std::erase_if(out, [&](const auto& one) { return is_common(one.first, one.second, to_ends); });
    return out;
  }

  LostRoute judge(const Route& route, const Suspect& suspect) const {
    const auto [device, end] = route;
    LostRoute out{.device = device, .to = end};
    std::set<LinkId> in_links, out_links;
    for (const Evidence* row : suspect.hit) {
      out.probes += row->sent;
      out.lost += row->lost;
      each_hop(*row, [&](LinkId in, LinkId next, NodeId to) {
        if (fabric_.to(in) != device || !is_at(to, end)) return;
        in_links.insert(in);
        out_links.insert(next);
      });
    }
    Count by_switch, by_in, by_out, to_end;
    for (const Evidence& row : evidence_.rows) {
      if (row.t < suspect.begin() || row.t > suspect.last() || !tells(row)) continue;
      if (goes_over(row, route)) continue;
      bool is_to_end = false, is_by_switch = false, is_by_in = false, is_by_out = false;
      each_hop(row, [&, end = end, device = device](LinkId in, LinkId next, NodeId to) {
        is_to_end |= is_at(to, end);
        is_by_switch |= fabric_.to(in) == device;
        is_by_in |= in_links.contains(in);
        is_by_out |= out_links.contains(next);
      });
      if (is_to_end) to_end.add(row);
      if (is_by_switch) by_switch.add(row);
      if (is_by_in) by_in.add(row);
      if (is_by_out) by_out.add(row);
    }
    const double usual =
        std::max({by_switch.share(), by_in.share(), by_out.share(), to_end.share()});
    out.score = suspect.score(usual);
    return out;
  }

  // A row that says something of its path, and goes over the route.
  bool goes_over(const Evidence& row, const Route& route) const {
    bool out = false;
    each_hop(row, [&](LinkId in, LinkId, NodeId end) {
      out |= fabric_.to(in) == route.first && is_at(end, route.second);
    });
    return out && tells(row);
  }

 private:
  bool tells(const Evidence& row) const {
    if (row.sent == 0 || row.path_size == 0) return false;
    return !live_ || std::ranges::all_of(evidence_.path(row), [this](LinkId link) {
      return live_->health[link.index()] == model::Health::up;
    });
  }
  // The NIC itself, or its host.
  bool is_at(NodeId nic, NodeId end) const { return nic == end || fabric_.host_of(nic) == end; }

  // Calls visit(link in, link out, end) for each switch that the row's packets pass, on their way
  // to that end, but the last before it.
  template <class Visit>
  void each_hop(const Evidence& row, Visit visit) const {
    const std::span<const LinkId> path = evidence_.path(row);
    NodeId end = row.leg == Leg::back ? row.src : row.dst;
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      const NodeId at = fabric_.to(path[i]), next = fabric_.to(path[i + 1]);
      if (!fabric_.is_switch(at))
        end = row.src;  // the way back of a round trip begins
      else if (fabric_.is_switch(next))
        visit(path[i], path[i + 1], end);
    }
  }
  template <class Visit>
  void each_route(const Evidence& row, Visit visit) const {
    each_hop(row, [&](LinkId in, LinkId, NodeId end) {
      visit(Route(fabric_.to(in), end));
      if (const NodeId host = fabric_.host_of(end);
          host.valid() && host != end && fabric_.nics_of(host).size() > 1)
        visit(Route(fabric_.to(in), host));
    });
  }

  // When rows over the routes were good; and all rows to their ends.
  using EndRows = std::map<NodeId, Rows>;
  EndRows note_good(Suspects& suspects) const {
    std::vector<bool> is_end(fabric_.node_count());
    for (const auto& [route, suspect] : suspects) {
      is_end[route.second.index()] = true;
      for (const NodeId nic : fabric_.nics_of(route.second)) is_end[nic.index()] = true;
    }
    EndRows out;
    for (const Evidence& row : evidence_.rows) {
      if ((!is_end[row.src.index()] && !is_end[row.dst.index()]) || !tells(row)) continue;
      each_route(row, [&](const Route& route) {
        if (!is_end[route.second.index()]) return;
        out[route.second].push_back(&row);
        if (is_hit(row)) return;
        if (const auto at = suspects.find(route); at != suspects.end())
          at->second.good.push_back(row.t);
      });
    }
    return out;
  }

  // Whether its end loses as much by other ways.
  bool is_common(const Route& route, const Suspect& suspect, const EndRows& to_ends) const {
    Count others;
    for (const Evidence* row : to_ends.at(route.second))
      if (row->t >= suspect.begin() && row->t <= suspect.last() && !goes_over(*row, route))
        others.add(*row);
    return suspect.score(others.share()) < accept;
  }

  const Fabric& fabric_;
  const EvidenceSet& evidence_;
  std::optional<model::LiveView> live_;
};

}  // namespace

bool may_have_lost_routes(const Fabric& fabric, const EvidenceSet& evidence,
                          const model::State* believed) {
  if (std::ranges::count_if(evidence.rows, is_hit) < std::ptrdiff_t{flows_min}) return false;
  return !Judge(fabric, evidence, believed).suspects().empty();
}

std::vector<LostRoute> take_lost_routes(const Fabric& fabric, EvidenceSet& evidence,
                                        const model::State* believed) {
  std::vector<LostRoute> out;
  for (;;) {
    const Judge judge(fabric, evidence, believed);
    LostRoute best;
    for (const auto& [route, suspect] : judge.suspects())
      if (const LostRoute found = judge.judge(route, suspect); found.score > best.score)
        best = found;
    if (best.score < accept) return out;
    std::erase_if(evidence.rows, [&](const Evidence& row) {
      return judge.goes_over(row, {best.device, best.to});
    });
    out.push_back(best);
  }
}

}  // namespace weft::observe::localise
