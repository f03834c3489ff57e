// P-10: what each feature of HPN adds (Qian et al., SIGCOMM 2024): GPUs of tier 1 go from 64 to 128
// by two ToRs per NIC, and to 1,024 by rails; of tier 2 to 8K by two planes, and to 15K by 15:1
// towards the core. Tolerance: none. Switches have 128 ports of 400 Gbps, or twice as many of 200.
// The first two rows of tier 2 (2K, and 4K with two ToRs per NIC in one plane) have no generator.
#include "kit.hpp"

namespace weft::paper {
namespace {

TEST_CASE("P-10: tier 1 grows from 64 to 128 to 1,024 GPUs") {
  const FabricFacts one_tor = facts_of(
      "{generator: hpn, segments: 1, planes: 1, gpus_per_host: 1, hosts_per_segment: 64, aggs: "
      "60}");
  CHECK(one_tor.gpus == 64);
  CHECK(role_of(one_tor, "tor").count == 1);
  CHECK(role_of(one_tor, "tor").ports_max <= 128);
  const FabricFacts two_tors = facts_of("{generator: hpn, segments: 1, gpus_per_host: 1}");
  CHECK(two_tors.gpus == 128);
  CHECK(role_of(two_tors, "tor").count == 2);
  CHECK(facts_of("{generator: hpn, segments: 1}").gpus == 1'024);
  // The same silicon: 51.2 Tbps a ToR, less the four spare ports up and eight down.
  CHECK(role_of(one_tor, "tor").capacity_max == 49'600_Gbps);
  CHECK(role_of(two_tors, "tor").capacity_max == 49'600_Gbps);
}

// GPUs where half of an agg's 128 ports lead down, and where 120 do (15:1).
TEST_CASE("P-10: tier 2 grows from 8K to 15K GPUs") {
  const FabricFacts half = facts_of("{generator: hpn, segments: 8}");
  CHECK(half.gpus == 8'192);
  CHECK(role_of(half, "agg").ports_max == 64);
  const FabricFacts full = facts_of("{generator: hpn, segments: 15}");
  CHECK(full.gpus == 15'360);
  CHECK(role_of(full, "agg").ports_max == 120);
  CHECK(switches_of(facts_of("{generator: hpn, pods: 2}"), "agg").worst == plan::Ratio{15, 1});
}

}  // namespace
}  // namespace weft::paper
