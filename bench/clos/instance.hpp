// The two-stage Clos with random flows that weft and SimGrid are compared on.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>

namespace weft::bench {

struct ClosInstance {
  int hosts = 4096, hosts_per_rack = 32, spines = 64, flows = 8000;
  std::uint64_t seed = 1;
};

// Every flow runs from a random host to one of another rack (no pair twice) through a random spine;
// sizes are (1..64) x 16 MB. The draw order is fixed, so that every solver gets the same instance.
// From: the usual random-permutation-free load of fluid solvers; std::mt19937_64 and % are the same
// on every machine.
template <class Visit>  // visit(src, dst, spine, bytes)
void for_each_flow(const ClosInstance& in, Visit visit) {
  std::mt19937_64 draw(in.seed);
  const auto below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  std::set<std::pair<int, int>> used;
  for (int count = 0; count < in.flows;) {
    const int src = below(in.hosts);
    const int dst = below(in.hosts);
    if (src / in.hosts_per_rack == dst / in.hosts_per_rack) continue;
    if (!used.emplace(src, dst).second) continue;
    const int spine = below(in.spines);
    visit(src, dst, spine, (1 + below(64)) * 16'000'000LL);
    ++count;
  }
}

// Host links 400 Gb/s, uplinks such that racks are not oversubscribed, no latency.
inline std::string fabric_yaml(const ClosInstance& in) {
  const double uplink = 400.0 * in.hosts_per_rack / in.spines;
  return "fabric: {generator: ai_zone, racks: " + std::to_string(in.hosts / in.hosts_per_rack) +
         ", hosts_per_rack: " + std::to_string(in.hosts_per_rack) +
         ", gpus_per_host: 1, spines: " + std::to_string(in.spines) +
         ", link: 400 Gbps, uplink: " + std::to_string(uplink) + " Gbps, latency: 0 s}\n";
}

inline std::string flows_csv(const ClosInstance& in) {
  std::string out = "id,src,dst,bytes,via\n";
  int id = 0;
  for_each_flow(in, [&](int src, int dst, int spine, long long bytes) {
    out += std::to_string(id++) + "," + std::to_string(src) + "," + std::to_string(dst) + "," +
           std::to_string(bytes) + " B,ctsw:" + std::to_string(spine) + "\n";
  });
  return out;
}

}  // namespace weft::bench
