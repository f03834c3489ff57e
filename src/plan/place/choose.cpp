#include "plan/place/choose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <optional>
#include <tuple>

#include "base/check.hpp"
#include "base/plural.hpp"

namespace weft::plan::place {
namespace {

using Within = HostRequest::Within;
using Share = HostChoice::Share;

constexpr std::uint32_t subset_zones_max = 12;
// What a split rack is worth in free racks of a zone: the best of those tried on the lists of
// docs/commands/place.md, where 0 costs 0.4 % more racks.
constexpr std::uint32_t split_racks = 8;

class ZoneChooser {
 public:
  ZoneChooser(const FreeHosts& free, std::uint32_t hosts) : free_(free), hosts_(hosts) {}

  // The free hosts of all zones must suffice.
  HostChoice choose(Within within) {
    if (!choose_one(within)) choose_several();
    return std::move(out_);
  }

 private:
  bool choose_one(Within within) {
    std::uint32_t fitting = 0, tightest = 0, fewest = UINT32_MAX;
    std::optional<std::uint32_t> best;
    for (std::uint32_t z = 0; z < free_.zone_count(); ++z) {
      if (free_.free_in_zone(z) < hosts_ || (within == Within::rack && !rack_fits(z))) continue;
      ++fitting;
      if (free_.free_in_zone(z) < fewest) fewest = free_.free_in_zone(tightest = z);
      if (!best || looseness(z) < looseness(*best)) best = z;
    }
    if (!best) return false;
    out_.zones.push_back({*best, hosts_});
    out_.why.push_back(
        fmt::format("zones: {} of {} can hold {}; {} has {} free, {}", fitting, free_.zone_count(),
                    counted(hosts_, "host"), free_.zone_name(*best), free_.free_in_zone(*best),
                    *best == tightest ? "the fewest" : "and no rack has to be split"));
    return true;
  }
  // Free hosts; more where the part of a rack that is left at the end would split a whole one.
  std::uint32_t looseness(std::uint32_t zone) const {
    const std::uint32_t rack = free_.rack_size_max(), rest = hosts_ % rack;
    bool splits = rest > 0;
    for (std::uint32_t f = rest; splits && f < rack; ++f) splits = free_.racks_with(zone, f) == 0;
    return free_.free_in_zone(zone) + (splits ? split_racks * rack : 0);
  }
  bool rack_fits(std::uint32_t zone) const {
    for (std::uint32_t f = hosts_; f <= free_.rack_size_max(); ++f)
      if (free_.racks_with(zone, f) > 0) return true;
    return false;
  }

  void choose_several() {
    std::vector<std::uint32_t> by_free(free_.zone_count());
    std::iota(by_free.begin(), by_free.end(), 0u);
    std::ranges::stable_sort(by_free, std::greater{},
                             [&](std::uint32_t z) { return free_.free_in_zone(z); });
    std::uint32_t count = 0, sum = 0;
    while (sum < hosts_) sum += free_.free_in_zone(by_free[count++]);
    out_.why.push_back(
        fmt::format("zones: none has {} free hosts, {} has the most, {}; {} are needed", hosts_,
                    free_.zone_name(by_free[0]), free_.free_in_zone(by_free[0]), count));
    if (free_.zone_count() <= subset_zones_max) return share_out(best_set(count));
    // The largest, and the tightest that holds the rest.
    std::vector<std::uint32_t> zones(by_free.begin(), by_free.begin() + count);
    std::uint32_t rest = hosts_;
    for (std::uint32_t i = 0; i + 1 < count; ++i) rest -= free_.free_in_zone(zones[i]);
    for (std::size_t i = count; i < by_free.size() && free_.free_in_zone(by_free[i]) >= rest; ++i)
      zones.back() = by_free[i];
    share_out(zones);
  }

  // The set of zones, the one that gives only the rest last.
  std::vector<std::uint32_t> best_set(std::uint32_t count) {
    std::uint32_t best = 0, rest_from = 0, sets = 0, enough = 0;
    std::tuple<bool, std::int64_t, std::uint32_t> least{true, 0, UINT32_MAX};
    const std::uint32_t end = 1u << free_.zone_count();
    for (std::uint32_t set = (1u << count) - 1; set < end;) {
      ++sets;
      const std::uint32_t sum = free_of(set);
      if (sum >= hosts_) {
        ++enough;
        const std::uint32_t left = sum - hosts_;
        for (std::uint32_t open = set; open != 0; open &= open - 1) {
          const auto zone = static_cast<std::uint32_t>(std::countr_zero(open));
          const std::uint32_t has = free_.free_in_zone(zone);
          const std::tuple now{left > 0, -static_cast<std::int64_t>(sum - has), left};
          if (has <= left || now >= least) continue;
          least = now;
          best = set;
          rest_from = zone;
        }
      }
      // The next number with as many bits (HAKMEM, item 175).
      const std::uint32_t low = set & -set, ripple = set + low;
      set = ((ripple ^ set) >> 2) / low | ripple;
    }
    out_.why.push_back(fmt::format(
        "zones: {} of {} sets of {} suffice; {}", enough, sets, count,
        std::get<0>(least) ? "none exactly; this one takes the largest whole and leaves least"
                           : "this one exactly"));
    std::vector<std::uint32_t> zones;
    for (best &= ~(1u << rest_from); best != 0; best &= best - 1)
      zones.push_back(static_cast<std::uint32_t>(std::countr_zero(best)));
    zones.push_back(rest_from);
    return zones;
  }
  std::uint32_t free_of(std::uint32_t set) const {
    std::uint32_t sum = 0;
    for (; set != 0; set &= set - 1)
      sum += free_.free_in_zone(static_cast<std::uint32_t>(std::countr_zero(set)));
    return sum;
  }

  // All of every zone, but of the last one only what is needed.
  void share_out(const std::vector<std::uint32_t>& zones) {
    std::uint32_t rest = hosts_;
    for (const std::uint32_t zone : zones) {
      const std::uint32_t hosts = std::min(rest, free_.free_in_zone(zone));
      out_.zones.push_back({zone, hosts});
      rest -= hosts;
      out_.why.push_back(fmt::format("zones: {} gives {} of {} free hosts", free_.zone_name(zone),
                                     hosts, free_.free_in_zone(zone)));
    }
    WEFT_CHECK(rest == 0);
  }

  const FreeHosts& free_;
  std::uint32_t hosts_;
  HostChoice out_;
};

// Spread over feeds: hosts are taken rack by rack while the feed of each has a share left.
class Spreader {
 public:
  Spreader(FreeHosts& free, const HostRequest& request)
      : free_(free),
        request_(request),
        share_((request.hosts + request.feeds - 1) / request.feeds) {}

  Result<HostChoice> choose() {
    std::vector<std::uint32_t> all(free_.zone_count());
    std::iota(all.begin(), all.end(), 0u);
    std::vector<std::uint32_t> fitting;
    for (const std::uint32_t z : all)
      if (usable(std::span(&z, 1)) >= request_.hosts) fitting.push_back(z);
    HostChoice out;
    out.why.push_back(fmt::format("feeds: at most {} of {} hosts on each of {}", share_,
                                  request_.hosts, request_.feeds));
    std::vector<std::uint32_t> zones;
    if (!fitting.empty()) {
      zones = {*std::ranges::min_element(fitting, {},
                                         [&](std::uint32_t z) { return free_.free_in_zone(z); })};
      out.why.push_back(
          fmt::format("zones: {} of {} can hold {} spread; {} has the fewest free, {}",
                      fitting.size(), free_.zone_count(), counted(request_.hosts, "host"),
                      free_.zone_name(zones[0]), free_.free_in_zone(zones[0])));
    } else {
      if (request_.within != Within::anywhere || usable(all) < request_.hosts) return refuse(all);
      zones = grown(std::move(all));
      out.why.push_back(fmt::format("zones: none can hold {} spread; {} are needed",
                                    counted(request_.hosts, "host"), zones.size()));
    }
    take(zones, out);
    return out;
  }

 private:
  std::vector<std::uint32_t> free_by_feed(std::span<const std::uint32_t> zones) const {
    std::vector<std::uint32_t> out(request_.feeds, 0);
    for (const std::uint32_t z : zones)
      for (const std::uint32_t rack : free_.racks_of_zone(z))
        for (const std::uint32_t host : free_.hosts_of_rack(rack))
          if (free_.is_free(host)) ++out[request_.feed_of[host]];
    return out;
  }
  std::uint32_t usable(std::span<const std::uint32_t> zones) const {
    std::uint32_t sum = 0;
    for (const std::uint32_t free : free_by_feed(zones)) sum += std::min(free, share_);
    return sum;
  }
  std::unexpected<Error> refuse(std::span<const std::uint32_t> zones) const {
    const std::vector<std::uint32_t> free = free_by_feed(zones);
    const auto least = std::ranges::min_element(free);
    std::uint32_t most = 0;
    for (const std::uint32_t z : zones) most = std::max(most, usable(std::span(&z, 1)));
    const bool one_zone = request_.within != Within::anywhere;
    return fail(
        Errc::infeasible, {},
        fmt::format("{} hosts spread over {} feeds are at most {} on each, which {} hosts allow{}; "
                    "feed {} has only {} free",
                    request_.hosts, request_.feeds, share_, one_zone ? most : usable(zones),
                    one_zone ? " in the best zone" : "", least - free.begin(), *least),
        "ask for fewer hosts, free some of that feed, or drop --spread");
  }
  // Zones with most usable hosts first, until they suffice.
  std::vector<std::uint32_t> grown(std::vector<std::uint32_t> zones) const {
    std::ranges::stable_sort(zones, std::greater{},
                             [&](std::uint32_t z) { return usable(std::span(&z, 1)); });
    std::size_t count = 1;
    while (usable(std::span(zones).first(count)) < request_.hosts) ++count;
    zones.resize(count);
    return zones;
  }
  void take(std::span<const std::uint32_t> zones, HostChoice& out) {
    std::vector<std::uint32_t> left(request_.feeds, share_);
    for (const std::uint32_t zone : zones) {
      std::vector<std::uint32_t> racks = free_.racks_of_zone(zone);
      std::ranges::stable_sort(racks, std::greater{},
                               [&](std::uint32_t r) { return free_.free_in_rack(r); });
      out.zones.push_back({zone, 0});
      for (const std::uint32_t rack : racks)
        for (const std::uint32_t host : free_.hosts_of_rack(rack)) {
          if (out.hosts.size() == request_.hosts) return;
          if (!free_.is_free(host) || left[request_.feed_of[host]] == 0) continue;
          --left[request_.feed_of[host]];
          free_.take(host);
          out.hosts.push_back(host);
          ++out.zones.back().hosts;
        }
    }
    WEFT_CHECK(out.hosts.size() == request_.hosts);
  }

  FreeHosts& free_;
  const HostRequest& request_;
  std::uint32_t share_;
};

// The largest number of free hosts that one zone or rack has.
std::uint32_t most_together(const FreeHosts& free, Within within) {
  std::uint32_t most = 0;
  for (std::uint32_t z = 0; z < free.zone_count(); ++z) {
    if (within == Within::zone) most = std::max(most, free.free_in_zone(z));
    if (within == Within::rack)
      for (std::uint32_t f = most + 1; f <= free.rack_size_max(); ++f)
        if (free.racks_with(z, f) > 0) most = f;
  }
  return most;
}

void take_whole_rack(FreeHosts& free, std::uint32_t rack, std::uint32_t hosts,
                     std::vector<std::uint32_t>& out) {
  for (const std::uint32_t host : free.hosts_of_rack(rack)) {
    if (hosts == 0) return;
    if (!free.is_free(host)) continue;
    free.take(host);
    out.push_back(host);
    --hosts;
  }
}

// The rack of the zone with the fewest free hosts that suffice.
std::optional<std::uint32_t> tightest_rack(const FreeHosts& free, std::uint32_t zone,
                                           std::uint32_t hosts) {
  for (std::uint32_t f = hosts; f <= free.rack_size_max(); ++f)
    if (free.racks_with(zone, f) > 0) return free.first_rack_with(zone, f);
  return std::nullopt;
}

// Hosts of one rack follow one another.
std::string racks_text(const FreeHosts& free, std::span<const std::uint32_t> hosts) {
  std::uint32_t racks = 0, whole = 0;
  for (std::size_t i = 0; i < hosts.size(); ++racks) {
    const std::uint32_t rack = free.rack_of(hosts[i]);
    const std::size_t first = i;
    while (i < hosts.size() && free.rack_of(hosts[i]) == rack) ++i;
    whole += i - first == free.hosts_of_rack(rack).size() ? 1 : 0;
  }
  return fmt::format("racks: {}, {} of them whole", racks, whole);
}

}  // namespace

Result<HostChoice> choose_zones(const FreeHosts& free, const HostRequest& request) {
  if (request.hosts > free.free_count())
    return fail(Errc::infeasible, {},
                fmt::format("{} hosts requested, but only {} of {} are free", request.hosts,
                            free.free_count(), free.host_count()),
                "request fewer, or free some");
  if (request.within != Within::anywhere)
    if (const std::uint32_t most = most_together(free, request.within); most < request.hosts)
      return fail(
          Errc::infeasible, {},
          fmt::format("{} hosts requested within one {}, but none has more than {} free",
                      request.hosts, request.within == Within::zone ? "zone" : "rack", most),
          "request fewer, or drop --within");
  return ZoneChooser(free, request.hosts).choose(request.within);
}

void take_racks(FreeHosts& free, std::uint32_t zone, std::uint32_t hosts,
                std::vector<std::uint32_t>& out) {
  for (std::uint32_t f = free.rack_size_max(); f > 0 && hosts > 0; --f) {
    for (; hosts >= f && free.racks_with(zone, f) > 0; hosts -= f)
      take_whole_rack(free, free.first_rack_with(zone, f), f, out);
    if (hosts == 0 || hosts >= f) continue;
    if (const auto rack = tightest_rack(free, zone, hosts)) {
      take_whole_rack(free, *rack, hosts, out);
      return;
    }
  }
  WEFT_CHECK(hosts == 0);
}

Result<HostChoice> choose_hosts(FreeHosts& free, const HostRequest& request) {
  if (!request.feed_of.empty() && request.hosts <= free.free_count())
    return Spreader(free, request).choose();
  WEFT_TRY(HostChoice out, choose_zones(free, request));
  for (const Share& share : out.zones)
    if (request.within == Within::rack)
      take_whole_rack(free, *tightest_rack(free, share.zone, share.hosts), share.hosts, out.hosts);
    else
      take_racks(free, share.zone, share.hosts, out.hosts);
  out.why.push_back(racks_text(free, out.hosts));
  return out;
}

}  // namespace weft::plan::place
