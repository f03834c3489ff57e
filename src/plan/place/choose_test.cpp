#include "plan/place/choose.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.hpp"
#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "base/test_skip.hpp"
#include "model/formats/test_fabric.hpp"
#include "plan/place/host_names.hpp"
#include "plan/place/job_list.hpp"
#include "plan/place/place_job.hpp"

namespace weft::plan::place {
namespace {

using model::Fabric;
using model::testing::make_fabric;

Fabric pods(std::uint32_t count, std::uint32_t racks, std::uint32_t hosts = 2) {
  return make_fabric(fmt::format(
      "{{generator: three_tier, pods: {}, racks: {}, hosts_per_rack: {}, gpus_per_host: 1}}", count,
      racks, hosts));
}

std::uint32_t zones_of(const FreeHosts& free, const std::vector<std::uint32_t>& hosts) {
  std::set<std::uint32_t> zones;
  for (const std::uint32_t host : hosts) zones.insert(free.zone_of(host));
  return static_cast<std::uint32_t>(zones.size());
}

// Counted again from scratch.
void check_counts(const FreeHosts& free) {
  std::map<std::uint32_t, std::uint32_t> in_rack, in_zone;
  std::uint32_t all = 0;
  for (std::uint32_t h = 0; h < free.host_count(); ++h) {
    const std::uint32_t one = free.is_free(h) ? 1 : 0;
    all += one;
    in_rack[free.rack_of(h)] += one;
    in_zone[free.zone_of(h)] += one;
  }
  CHECK(all == free.free_count());
  for (const auto& [zone, count] : in_zone) {
    CHECK(free.free_in_zone(zone) == count);
    for (std::uint32_t f = 1; f <= free.rack_size_max(); ++f) {
      const auto& racks = free.racks_of_zone(zone);
      const auto with = std::ranges::count_if(racks, [&](auto r) { return in_rack[r] == f; });
      CHECK(free.racks_with(zone, f) == with);
      if (with > 0) {
        const auto first = std::ranges::find_if(racks, [&](auto r) { return in_rack[r] == f; });
        CHECK(free.first_rack_with(zone, f) == *first);
      }
    }
  }
}

std::string error_of(FreeHosts& free, const HostRequest& request) {
  const auto choice = choose_hosts(free, request);
  return choice ? "" : choice.error().what;
}

// 1,500 jobs of 1 to 600 hosts, which stop at random; as full as it gets.
std::string made_list() {
  Rng rng(21);
  std::string out;
  std::vector<std::pair<int, std::uint32_t>> running;
  std::uint32_t busy = 0;
  for (int job = 0; job < 1500; ++job) {
    const auto hosts = static_cast<std::uint32_t>(1 + rng.below(1u << (2 + rng.below(8))));
    while (busy + hosts > 3072) {
      const std::size_t i = rng.below(running.size());
      out += fmt::format("stop,{}\n", running[i].first);
      busy -= running[i].second;
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
    }
    out += fmt::format("start,{},{}\n", job, hosts);
    running.emplace_back(job, hosts);
    busy += hosts;
  }
  return out;
}

ReplayResult replay_text(std::string_view text) {
  const Fabric fabric = pods(8, 192);
  FreeHosts free(fabric);
  const auto events = parse_job_list(text, "jobs.csv");
  REQUIRE(events.has_value());
  return replay(free, *events, {.feed_of = {}}, [] { return 0; });
}

std::optional<ReplayResult> replay_file(const std::string& name) {
  const std::string path = std::string(WEFT_JOB_LISTS) + "/" + name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return replay_text(gunzip(read_file(path).value(), path).value());
}

}  // namespace

TEST_CASE(
    "jobs that start and stop: no host twice, counters right, as few zones as the state allows") {
  const Fabric fabric = pods(5, 7, 3);
  FreeHosts free(fabric);
  Rng rng(3);
  std::vector<std::vector<std::uint32_t>> jobs;
  for (std::uint64_t i = 0; i < test_effort(400); ++i) {
    if (!jobs.empty() && rng.below(2) == 0) {
      const std::size_t j = rng.below(jobs.size());
      for (const std::uint32_t host : jobs[j]) free.release(host);
      jobs.erase(jobs.begin() + static_cast<std::ptrdiff_t>(j));
    }
    const auto hosts = static_cast<std::uint32_t>(1 + rng.below(40));
    std::vector<std::uint32_t> by_free;
    for (std::uint32_t z = 0; z < free.zone_count(); ++z) by_free.push_back(free.free_in_zone(z));
    std::ranges::sort(by_free, std::greater{});
    const std::uint32_t all = free.free_count();
    const auto choice = choose_hosts(free, {.hosts = hosts, .feed_of = {}});
    CHECK(choice.has_value() == (hosts <= all));
    if (!choice) continue;
    CHECK(std::set(choice->hosts.begin(), choice->hosts.end()).size() == hosts);
    CHECK(free.free_count() == all - hosts);
    std::uint32_t needed = 0, sum = 0;
    while (sum < hosts) sum += by_free[needed++];
    CHECK(zones_of(free, choice->hosts) == needed);
    check_counts(free);
    jobs.push_back(choice->hosts);
  }
}

TEST_CASE("best fit, an exact set, racks whole before parts") {
  const Fabric fabric = pods(3, 4);  // 8 hosts each
  FreeHosts free(fabric);
  for (const std::uint32_t host : {0u, 1u, 8u, 10u, 12u}) free.take(host);  // 6, 5, 8 are free
  FreeHosts other = free;
  const auto five = choose_hosts(free, {.hosts = 5, .feed_of = {}});
  REQUIRE(five.has_value());
  CHECK(five->hosts == std::vector<std::uint32_t>{14, 15, 9, 11, 13});
  CHECK(five->why[0] == "zones: 3 of 3 can hold 5 hosts; pod:1 has 5 free, the fewest");
  CHECK(five->why[1] == "racks: 4, 1 of them whole");
  const auto eleven = choose_hosts(other, {.hosts = 11, .feed_of = {}});
  REQUIRE(eleven.has_value());
  CHECK(zones_of(other, eleven->hosts) == 2);
  CHECK(other.free_in_zone(2) == 8);
  CHECK(eleven->why[1] == "zones: 3 of 3 sets of 2 suffice; this one exactly");
}

TEST_CASE("constraints hold, and errors name what cannot") {
  const Fabric fabric = pods(2, 4, 4);  // 16 hosts each
  FreeHosts free(fabric);
  CHECK(error_of(free, {.hosts = 33, .feed_of = {}}) ==
        "33 hosts requested, but only 32 of 32 are free");
  CHECK(error_of(free, {.hosts = 17, .within = HostRequest::Within::zone, .feed_of = {}}) ==
        "17 hosts requested within one zone, but none has more than 16 free");
  CHECK(error_of(free, {.hosts = 5, .within = HostRequest::Within::rack, .feed_of = {}}) ==
        "5 hosts requested within one rack, but none has more than 4 free");
  free.take(0);
  const auto rack =
      choose_hosts(free, {.hosts = 3, .within = HostRequest::Within::rack, .feed_of = {}});
  CHECK(rack->hosts == std::vector<std::uint32_t>{1, 2, 3});
  // Rack r is on feed r % 4: 8 hosts on each, of which feed 0 has lost 4.
  std::vector<std::uint32_t> feeds;
  for (std::uint32_t h = 0; h < free.host_count(); ++h) feeds.push_back(h / 4 % 4);
  FreeHosts spread = free;
  const auto eight = choose_hosts(spread, {.hosts = 14, .feed_of = feeds, .feeds = 4});
  REQUIRE(eight.has_value());
  CHECK(zones_of(spread, eight->hosts) == 1);
  std::map<std::uint32_t, int> on;
  for (const std::uint32_t host : eight->hosts) ++on[feeds[host]];
  for (const auto& [feed, count] : on) CHECK(count <= 4);
  CHECK(error_of(free, {.hosts = 24, .feed_of = feeds, .feeds = 4}) ==
        "24 hosts spread over 4 feeds are at most 6 on each, which 22 hosts allow; feed 0 has only "
        "4 free");
}

TEST_CASE("hosts by name, and who is unknown") {
  const Fabric fabric = pods(2, 2);
  const HostNames names(fabric);
  CHECK(names.read({"host[0-2],host:7,rack:2", {}}).value() ==
        std::vector<std::uint32_t>{0, 1, 2, 7, 4, 5});
  CHECK(names.read({"pod:1", {}}).value() == std::vector<std::uint32_t>{4, 5, 6, 7});
  CHECK(
      names.read({"host8", {"--free", 0, 0}}).error().text() ==
      "--free: unknown host \"host8\" (did you mean \"host0\"?); name hosts, racks or pods of the "
      "fabric: host[0-3], rack:7");
  const auto feeds = names.read_feeds("name,feed\npod:0,a\npod:1,b\n", "f.csv");
  CHECK(feeds->of == std::vector<std::uint32_t>{0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(names.read_feeds("name,feed\npod:0,a\nhost3,b\npod:1,b\n", "f.csv").error().text() ==
        "f.csv:3:1: host3 is on feed \"a\" and on feed \"b\"; give every host one feed");
  CHECK(names.read_feeds("name,feed\npod:0,a\n", "f.csv").error().text() ==
        "f.csv: host4 has no feed; name every host, or its rack or pod");
}

TEST_CASE("lists of jobs: every mistake with its line") {
  const auto wrong = parse_job_list("start,a,3\nstart,a,2\nstop,b\nbegin,c\nstart,d,x\n", "j.csv");
  REQUIRE(!wrong.has_value());
  const std::string text = wrong.error().text();
  CHECK(text.contains("j.csv:2:1: job \"a\" starts, but runs since j.csv:1:1; stop it first"));
  CHECK(text.contains("j.csv:3:1: job \"b\" stops, but does not run"));
  CHECK(text.contains("j.csv:4:1: \"begin,c\" is not an event of a job"));
  CHECK(text.contains("j.csv:5:1: "));
}

TEST_CASE("a made list of 1,500 jobs: all placed, racks at their least but for 2 %") {
  const ReplayResult result = replay_text(made_list());
  CHECK(result.started == 1500);
  CHECK(result.refused == 0);
  MESSAGE("zones ", result.zones, " of ", result.zones_least, ", racks ", result.racks, " of ",
          result.racks_least);
  CHECK(result.racks * 100 <= result.racks_least * 102);
  CHECK(result.zones <= 2200);  // what the rule needs today; a better one needs fewer
}

TEST_CASE("zones and racks of two lists from practice" * doctest::test_suite("needs joblists")) {
  const auto mixed = replay_file("placement_events_mixed.csv.gz");
  const auto philly = replay_file("placement_events_philly4000.csv.gz");
  if (!mixed || !philly) return skip_test("no job lists; configure with -DWEFT_JOB_LISTS=FOLDER");
  CHECK(mixed->refused + philly->refused == 0);
  CHECK(mixed->zones <= 1590);
  CHECK(philly->zones <= 662);
  CHECK(static_cast<double>(mixed->racks) <= 1.0125 * static_cast<double>(mixed->racks_least));
  CHECK(static_cast<double>(philly->racks) <= 1.0125 * static_cast<double>(philly->racks_least));
}

TEST_CASE("a job over zones and racks: every host once, racks filled, what it costs as counted") {
  const Fabric fabric = pods(3, 8);  // 16 hosts each
  FreeHosts free(fabric);
  for (const std::uint32_t host : {0u, 3u, 17u, 20u, 21u, 40u}) free.take(host);
  HostGrid grid;
  grid.shape.size = {1, 1, 4, 8};
  grid.shape.bytes.axis = {0, 0, 1, 3};
  for (std::uint32_t k = 0; k < 32; ++k) grid.place_of_node.push_back(31 - k);
  const auto placed = place_job(free, {.hosts = 32, .feed_of = {}}, &grid, Rng(1));
  REQUIRE(placed.has_value());
  CHECK(std::set(placed->hosts.begin(), placed->hosts.end()).size() == 32);
  CHECK(free.free_count() == 48 - 6 - 32);
  check_counts(free);
  std::vector<std::uint32_t> zone(32), rack(32);
  for (std::uint32_t k = 0; k < 32; ++k) {
    zone[31 - k] = free.zone_of(placed->hosts[k]);
    rack[31 - k] = free.rack_of(placed->hosts[k]);
  }
  const JobGraph graph(grid.shape);
  CHECK(graph.crossing(zone) == placed->order->cost);
  CHECK(graph.crossing(rack) == placed->order->rack_cost);
  CHECK(placed->order->bound <= placed->order->cost);
  CHECK(placed->order->cost <= placed->order->plain_cost);
}

}  // namespace weft::plan::place
