#include "plan/place/place_job.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.hpp"
#include "base/percent.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "plan/place/rack_match.hpp"
#include "plan/place/zone_split.hpp"

namespace weft::plan::place {
namespace {

class Orderer {
 public:
  Orderer(FreeHosts& free, const HostGrid& grid, const Rng& rng)
      : free_(free), grid_(grid), graph_(grid.shape), rng_(rng) {}

  // `choice` has zones, and where it has hosts, these and no others.
  JobPlacement order(HostChoice choice) {
    std::vector<std::uint32_t> counts;
    const bool chosen = !choice.hosts.empty();
    for (const HostChoice::Share& share : choice.zones)
      counts.push_back(chosen ? share.hosts : free_.free_in_zone(share.zone));
    ZoneSplit split = split_zones(grid_.shape, graph_, counts, rng_.stream("zones"));
    host_.resize(graph_.size());
    rack_.resize(graph_.size());
    std::size_t first = 0;
    for (std::uint32_t z = 0; z < counts.size(); ++z) {
      std::vector<std::uint32_t> places;
      for (std::uint32_t v = 0; v < graph_.size(); ++v)
        if (split.zone[v] == z) places.push_back(v);
      std::vector<std::uint32_t> hosts;
      if (chosen)
        hosts.assign(choice.hosts.begin() + static_cast<std::ptrdiff_t>(first),
                     choice.hosts.begin() + static_cast<std::ptrdiff_t>(first + counts[z]));
      else
        take_racks(free_, choice.zones[z].zone, static_cast<std::uint32_t>(places.size()), hosts);
      first += counts[z];
      choice.zones[z].hosts = static_cast<std::uint32_t>(places.size());
      fill_zone(places, hosts, z);
    }
    std::erase_if(choice.zones, [](const HostChoice::Share& share) { return share.hosts == 0; });
    JobPlacement out{
        .hosts = {}, .zones = std::move(choice.zones), .why = std::move(choice.why), .order = {}};
    for (const std::uint32_t place : grid_.place_of_node) out.hosts.push_back(host_[place]);
    out.order = {.cost = split.cost,
                 .bound = split.bound,
                 .plain_cost = split.plain_cost,
                 .plain_name = std::move(split.plain_name),
                 .rack_cost = graph_.crossing(rack_)};
    return out;
  }

 private:
  // `hosts` stand rack by rack.
  void fill_zone(std::span<const std::uint32_t> places, std::vector<std::uint32_t> hosts,
                 std::uint32_t zone) {
    std::ranges::stable_sort(hosts, {}, [&](std::uint32_t h) { return free_.rack_of(h); });
    std::vector<std::uint32_t> sizes, start;
    for (std::size_t i = 0; i < hosts.size(); ++i) {
      if (i == 0 || free_.rack_of(hosts[i]) != free_.rack_of(hosts[i - 1])) {
        sizes.push_back(0);
        start.push_back(static_cast<std::uint32_t>(i));
      }
      ++sizes.back();
    }
    const std::vector<std::uint32_t> racks =
        match_racks(graph_, places, sizes, rng_.stream("racks").stream(zone));
    for (std::size_t i = 0; i < places.size(); ++i) {
      const std::uint32_t host = hosts[start[racks[i]]++];
      host_[places[i]] = host;
      rack_[places[i]] = free_.rack_of(host);
    }
  }

  FreeHosts& free_;
  const HostGrid& grid_;
  JobGraph graph_;
  Rng rng_;
  std::vector<std::uint32_t> host_, rack_;  // by host place
};

std::string bytes_text(std::int64_t bytes) { return human(Bytes{bytes}); }

}  // namespace

std::string order_text(const JobPlacement::Order& order) {
  std::string gap = "gap 0 %";
  if (order.bound > 0)
    gap = "gap " + percent(static_cast<double>(order.gap()) / static_cast<double>(order.bound), 1);
  else if (order.cost > 0)
    gap = "no bound is known";
  return fmt::format(
      "{} of a step cross zones, in any order at least {} ({}); best plain order: {} ({})",
      bytes_text(order.cost), bytes_text(order.bound), gap, bytes_text(order.plain_cost),
      order.plain_name);
}

Result<JobPlacement> place_job(FreeHosts& free, const HostRequest& request, const HostGrid* grid,
                               const Rng& rng) {
  const bool in_one_go =
      grid == nullptr || !request.feed_of.empty() || request.within == HostRequest::Within::rack;
  WEFT_TRY(HostChoice choice,
           in_one_go ? choose_hosts(free, request) : choose_zones(free, request));
  if (grid != nullptr) {
    WEFT_CHECK(grid->place_of_node.size() == request.hosts);
    return Orderer(free, *grid, rng).order(std::move(choice));
  }
  return JobPlacement{.hosts = std::move(choice.hosts),
                      .zones = std::move(choice.zones),
                      .why = std::move(choice.why),
                      .order = {}};
}

}  // namespace weft::plan::place
