// Scenarios whose settings are drawn at random, most of which make sense: whatever they say, a run
// ends in a report that keeps to what links allow, or in an error that names the place.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.hpp"
#include "base/test_effort.hpp"
#include "plan/run/run.hpp"

namespace weft::plan {
namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : rng_(seed) {}

  std::string scenario();

 private:
  bool once_in(std::uint64_t n) { return rng_.below(n) == 0; }
  template <std::size_t n>
  std::string_view any(const std::array<std::string_view, n>& items) {
    return items[rng_.below(n)];
  }
  std::string transport();
  std::string routing();
  std::string faults(std::string_view lower, std::string_view upper);

  Rng rng_;
};

// "a, b, c": what was drawn of the keys.
std::string listed(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string Draw::transport() {
  static constexpr std::array<std::string_view, 6> names{"roce", "roce", "nscc",
                                                         "eqds", "cts",  "hpcc"};
  std::vector<std::string> keys{fmt::format("name: {}", any(names))};
  struct Key {
    std::string_view name;
    std::array<std::string_view, 4> values;
  };
  static constexpr Key all[] = {
      {"pfc", {"true", "false", "{xoff: 30 kB}", "{xoff: 100 kB, xon: 50 kB}"}},
      {"cc", {"none", "dcqcn", "nscc", "dcqcn"}},
      {"reliability", {"selective", "selective", "selective", "go_back_n"}},
      {"buffers", {"64 MB", "1 MB", "{others: {shared: 8 MB, per_port: 200 kB}}", "16 MB"}},
      {"overflow", {"drop", "drop", "trim", "trim"}},
      {"window", {"8 KiB", "64 KiB", "64 KiB", "1 MiB"}},
      {"ack_every", {"1", "2", "4", "64"}},
      {"ack_delay", {"0 us", "3 us", "25 us", "25 us"}},
      {"mtu", {"1024 B", "4096 B", "8192 B", "9000 B"}},
      {"receive_rate", {"0.5", "0.9", "1", "0.25"}},
      {"message_rate", {"1e6", "1e6", "1e5", "1e7"}},
      {"last_packet", {"exact", "full", "exact", "full"}},
      {"ack_timeout", {"50 us", "200 us", "1 ms", "10 us"}},
      {"ecn", {"true", "{kmin: 20 kB, kmax: 80 kB, pmax: 0.5}", "true", "false"}},
      {"classes",
       {"{weights: [10 kB, 10 kB, 0], data: 0, ack: 1, control: 2}",
        "{weights: [0, 10 kB], control: 0, data: 1}", "{weights: [10 kB]}", "{weights: [0]}"}},
  };
  for (const Key& key : all)
    if (once_in(5)) keys.push_back(fmt::format("{}: {}", key.name, any(key.values)));
  return listed(keys);
}

std::string Draw::routing() {
  static constexpr std::array<std::string_view, 12> schemes{
      "ecmp",     "e_ecmp", "e_ecmp",    "spray", "spray",   "flowlet",
      "adaptive", "reps",   "multipath", "te",    "minimal", "ugal"};
  static constexpr std::array<std::string_view, 4> qps{"1", "2", "3", "8"},
      entropies{"1", "2", "3", "64"};
  std::vector<std::string> keys{fmt::format("scheme: {}", any(schemes)),
                                fmt::format("qps: {}", any(qps))};
  if (once_in(5)) keys.emplace_back("message_mode: round_robin");
  if (once_in(5)) keys.push_back(fmt::format("entropies: {}", any(entropies)));
  return listed(keys);
}

std::string Draw::faults(std::string_view lower, std::string_view upper) {
  std::vector<std::string> out;
  const auto tier = [&] { return once_in(2) ? lower : upper; };
  static constexpr std::array<std::string_view, 3> losses{"0.001", "0.05", "0.5"},
      times{"0 us", "20 us", "20 us, until: 60 us"};
  if (once_in(3))
    out.push_back(fmt::format("{{kind: link_lossy, tier: {}, count: {}, pick: random, loss: {}}}",
                              tier(), 1 + rng_.below(2), any(losses)));
  if (once_in(3))
    out.push_back(fmt::format("{{kind: link_down, tier: {}, count: {}, pick: random, at: {}}}",
                              tier(), 1 + rng_.below(2), any(times)));
  if (once_in(6))
    out.push_back(
        fmt::format("{{kind: link_degraded, tier: {}, pick: random, factor: 0.3}}", tier()));
  return listed(out);
}

std::string Draw::scenario() {
  struct Shape {
    std::string_view fabric, lower, upper;
  };
  static constexpr std::array<Shape, 7> shapes{{
      {"multi_plane, racks: 4, hosts_per_rack: 2, gpus_per_host: 1, planes: 4, spines: 2",
       "nic->leaf", "leaf->spine"},
      {"hpn, segments: 2, hosts_per_segment: 4, gpus_per_host: 2, tors: 2, aggs: 4", "nic->tor",
       "tor->agg"},
      {"ai_zone, racks: 4, hosts_per_rack: 2, gpus_per_host: 2, spines: 3", "nic->rtsw",
       "rtsw->ctsw"},
      {"fat_tree, k: 4", "nic->edge", "edge->agg"},
      {"rail_optimized, groups: 2, hosts_per_group: 4, gpus_per_host: 2", "nic->leaf",
       "leaf->spine"},
      {"dragonfly, p: 2, a: 4, h: 2, g: 5, gpus_per_host: 1", "nic->router", "router->router"},
      {"three_tier, pods: 2, racks: 2, hosts_per_rack: 2, gpus_per_host: 1", "nic->rtsw",
       "rtsw->ftsw"},
  }};
  static constexpr std::array<std::string_view, 6> collectives{
      "all_reduce", "all_to_all", "all_gather", "reduce_scatter", "broadcast", "send_recv"};
  static constexpr std::array<std::string_view, 3> sizes{"1 KiB", "64 KiB", "1 MiB"};
  const Shape& shape = shapes[rng_.below(shapes.size())];
  return fmt::format(
      "fabric: {{generator: {}}}\nrouting: {{{}}}\ntransport: {{{}}}\nfaults: [{}]\nseed: {}\n"
      "engine: {}\njobs: [{{name: x, collective: {}, gpus: {}, bytes: {}, repeat: {}}}]\n",
      shape.fabric, routing(), transport(), faults(shape.lower, shape.upper), rng_.below(100),
      once_in(8) ? "fluid" : "packet", any(collectives), 1u << (1 + rng_.below(3)), any(sizes),
      1 + rng_.below(3));
}

void check_report(const model::Outcome& outcome) {
  for (const model::VariantOutcome& variant : outcome.variants)
    for (const model::JobOutcome& job : variant.jobs)
      if (!std::isnan(job.time_mean_s)) CHECK(job.time_mean_s >= 0.999 * job.roofline_s);
}

TEST_CASE("settings drawn at random: a report, or an error that names the place") {
  const std::uint64_t count = test_effort(1600);
  std::uint64_t ran = 0;
  for (std::uint64_t seed = 1; seed <= count; ++seed) {
    const std::string yaml = Draw(seed).scenario();
    CAPTURE(yaml);
    const auto file = model::parse_scenario(yaml, "test.yaml", {});
    REQUIRE(file.has_value());
    const auto outcome = run_scenario(*file, {});
    if (outcome) {
      ++ran;
      check_report(*outcome);
    } else {
      CHECK(outcome.error().text().find("test.yaml:") != std::string::npos);
    }
  }
  MESSAGE(ran << " of " << count << " ran");
  CHECK(ran >= count / 5);
}

}  // namespace
}  // namespace weft::plan
