// P-23: on placements as in production, Meta's simulation has 4 QPs per connection some 40 % over
// the roofline on average (Gangidi et al., "RDMA over Ethernet for Distributed AI Training at Meta
// Scale", SIGCOMM 2024, as quoted). The placements are not published. Ours: 30 jobs of 32 to 512
// GPUs, ring collectives, that fill 240 of 252 racks, placed rack by rack, as Meta's scheduler is
// said to do; the mean of time over roofline, of all jobs and 3 seeds.
// Tolerance: 0.25 of 1.40. One seed gives 1.32 to 1.48 here, and the job sizes are our choice.
// Where jobs are differs more than that: with hosts drawn at random from the whole zone it is 2.2,
// as rings then leave a rack twice as often. So this test says that 1.4 fits packed jobs, not that
// our simulation is right to 10 %.
#include <array>
#include <cmath>

#include "kit.hpp"

namespace weft::paper {
namespace {

std::string placed_jobs(std::string_view place) {
  constexpr std::array ops{"all_reduce", "all_gather", "reduce_scatter"};
  std::string out = "jobs:\n";
  std::size_t count = 0;
  const auto add = [&](int times, int gpus) {
    for (int i = 0; i < times; ++i, ++count)
      out += "  - {name: j" + std::to_string(count) + ", collective: " + ops[count % 3] +
             ", gpus: " + std::to_string(gpus) + ", bytes: 256 MiB, place: " + std::string(place) +
             "}\n";
  };
  add(2, 512);
  add(4, 256);
  add(8, 128);
  add(8, 64);
  add(8, 32);
  return out;
}

// Over three seeds.
double ratio_of(std::string_view place, int qps) {
  const std::string scenario =
      "fabric: {generator: ai_zone, racks: 252}\nrouting: {scheme: e_ecmp, qps: " +
      std::to_string(qps) + "}\n" + placed_jobs(place);
  double sum = 0;
  for (const std::uint64_t seed : {1u, 2u, 3u}) sum += mean_ratio(run(scenario, seed), "base");
  return sum / 3;
}

TEST_CASE("P-23: 4 QPs on a production-like mix come out some 40 % over the roofline") {
  const double one = ratio_of("topology", 1), four = ratio_of("topology", 4),
               sixteen = ratio_of("topology", 16), fragmented = ratio_of("fragmented", 4);
  MESSAGE("time over roofline: 1 QP ", one, ", 4 QPs ", four, " (1.4), 16 QPs ", sixteen,
          ", 4 QPs fragmented ", fragmented);
  CHECK(std::abs(four - 1.40) < 0.25);
  CHECK(one > four);
  CHECK(four > sixteen);
  CHECK(fragmented > four);
}

}  // namespace
}  // namespace weft::paper
