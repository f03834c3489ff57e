// For tests of this room: jobs as shapes, drawn or listed.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "plan/place/job_graph.hpp"

namespace weft::plan::place::testing {

struct Case {
  std::string name;
  std::uint32_t cp, pp, dp, ep;
  std::int64_t dp_bytes, pp_bytes, cp_bytes, ep_bytes;
  std::vector<std::uint32_t> free;  // hosts by zone

  JobShape shape() const {
    JobShape out;
    out.size = {1, cp, pp, dp};
    out.expert_hosts = ep;
    out.bytes.axis = {0, cp_bytes, pp_bytes, dp_bytes};
    out.bytes.expert_pair = ep_bytes;
    return out;
  }
  std::uint32_t hosts() const { return cp * pp * dp; }
  bool is_flat() const { return cp == 1 && ep == 1; }
};

// Shares of eight zones at most: equal, uneven, with an expert exchange, with spare hosts.
inline std::vector<Case> listed_cases() {
  const std::vector<std::uint32_t> uneven{100, 80, 70, 60, 60, 52, 50, 40};
  return {
      {"S01", 1, 16, 32, 1, 3, 1, 0, 0, std::vector<std::uint32_t>(8, 64)},
      {"S02", 1, 16, 32, 1, 3, 1, 0, 0, uneven},
      {"S03", 1, 8, 128, 1, 3, 1, 0, 0, {384, 300, 200, 100, 40}},
      {"S04", 1, 16, 32, 1, 3, 1, 0, 0, std::vector<std::uint32_t>(4, 128)},
      {"S05", 1, 16, 32, 1, 3, 1, 0, 0, {150, 130, 110, 90, 32}},
      {"S06", 1, 8, 64, 1, 3, 1, 0, 0, {384, 128}},
      {"S07", 1, 8, 64, 1, 3, 1, 0, 0, {200, 150, 100, 62}},
      {"S08", 1, 16, 128, 1, 3, 1, 0, 0, {384, 384, 384, 384, 384, 128}},
      {"S09", 1, 16, 128, 1, 3, 1, 0, 0, {384, 384, 380, 350, 300, 250}},
      {"S10", 1, 4, 96, 1, 3, 1, 0, 0, {192, 192}},
      {"S11", 1, 4, 96, 1, 3, 1, 0, 0, {150, 100, 80, 54}},
      {"S12", 1, 12, 40, 1, 3, 1, 0, 0, {300, 180}},
      {"S13", 1, 12, 40, 1, 3, 1, 0, 0, {100, 90, 80, 70, 60, 50, 30}},
      {"S14", 2, 8, 32, 1, 3, 1, 6, 0, {200, 160, 100, 52}},
      {"S15", 4, 8, 16, 1, 3, 1, 6, 0, {256, 256}},
      {"S16", 4, 8, 16, 1, 3, 1, 6, 0, {180, 170, 162}},
      {"S17", 16, 16, 8, 1, 3, 1, 6, 0, {384, 384, 384, 384, 384, 128}},
      {"S18", 16, 16, 4, 1, 3, 1, 6, 0, {384, 320, 200, 120}},
      {"S19", 1, 8, 64, 8, 3, 1, 0, 4, {200, 150, 100, 62}},
      {"S20", 1, 16, 32, 4, 3, 1, 0, 8, uneven},
      {"S21", 1, 4, 64, 16, 3, 1, 0, 2, {100, 80, 76}},
      {"S22", 1, 1, 512, 1, 3, 1, 0, 0, {300, 212}},
      {"S23", 1, 32, 16, 1, 1, 3, 0, 0, {118, 100, 99, 98, 97}},
      {"S24", 1, 16, 24, 1, 3, 1, 0, 0, {150, 120, 100, 80}},
  };
}

// Two to `zones` zones; two or three dimensions, expert groups, spare hosts.
inline Case draw_case(Rng& rng, std::uint32_t side, std::uint32_t hosts_max, std::uint32_t zones) {
  const auto up_to = [&](std::uint32_t n) { return 1 + static_cast<std::uint32_t>(rng.below(n)); };
  while (true) {
    Case out{"R", 1, up_to(side), up_to(2 * side), 1, up_to(5), up_to(3), 0, 0, {}};
    if (rng.below(3) == 0) {
      out.cp = 1 + up_to(3);
      out.cp_bytes = up_to(6);
    } else if (rng.below(3) == 0) {
      out.ep = out.dp % 2 == 0 ? (out.dp % 4 == 0 && rng.below(2) == 0 ? 4 : 2) : 1;
      out.ep_bytes = out.ep > 1 ? up_to(8) : 0;
    }
    if (out.hosts() < 4 || out.hosts() > hosts_max) continue;
    const auto count = std::min(out.hosts(), 1 + up_to(zones - 1));
    const std::uint32_t spare = rng.below(4) == 0 ? up_to(1 + out.hosts() / 4) : 0;
    out.free.assign(count, 1);
    for (std::uint32_t i = count; i < out.hosts() + spare; ++i)
      ++out.free[std::min(rng.below(count), rng.below(count))];
    return out;
  }
}

}  // namespace weft::plan::place::testing
