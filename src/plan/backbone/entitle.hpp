// Entitlements: which contracts for rates a backbone can promise, for which share of the time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "plan/backbone/wan.hpp"

namespace weft::plan::backbone {

// A rate from one site to another (a pipe); or out of one site to any mix of others, or into one
// from any mix (a hose).
struct Contract {
  std::string name;
  std::uint8_t priority = 0;  // 0 is promised first; below class_count
  std::uint32_t site = 0;     // from which, or of a hose `into` to which
  std::vector<std::uint32_t> peers;
  bool is_hose = false, into = false;
  double gbps = 0;
  double availability = 0;  // share of the time in which all of it has to fit
};

// CSV: name, src, dst, rate ("40 Gbps"), availability ("99.9 %" or 0.999) and perhaps class (1 to
// 4; 4 where it is empty). One of src and dst may be "a;b;c" or "*", all other sites: a hose.
// Fails with every error.
Result<std::vector<Contract>> read_contracts(std::string_view text, const std::string& file,
                                             const Wan& wan);

struct EntitleOptions {
  double unavailability = 0.001;  // of a cable or group that states none: share of the time
  std::uint32_t order = 2;        // failures at a time that are looked at
  std::uint32_t threads = 1;
};

// What became of a contract. Of one that is refused: the likeliest scenario in which it does not
// fit beside those before it, and the link that is short then (no link: no way there).
struct Verdict {
  double availability = 0;
  bool granted = false;
  std::string scenario, link;
  double scenario_share = 0;  // of the time
};

struct Entitlements {
  std::vector<std::uint32_t> order;  // contracts, as they were promised
  std::vector<Verdict> verdicts;     // of each contract
  std::uint64_t scenarios = 0;
  double covered = 0;  // share of the time that they stand for; the rest counts as unavailable
  std::uint64_t programs = 0;
};

// In order of class, then of the list, each contract is promised if it fits, with those promised
// before it, in scenarios that make up its availability. In each scenario traffic is routed anew,
// over any paths: fractions of a pipe over paths, of a hose over trees, whose every link holds the
// hose's whole share, since all of it may go one way. Risks (cables, or groups that fail together)
// are independent; a scenario has at most `order` of them down. A contract that was promised is not
// touched by those after it.
//
// Whether a set fits is a linear program with columns made on demand: paths, and cheapest trees
// that span all sites (Edmonds 1967) or unions of shortest paths to some. A link may be
// over its capacity by 0.01 %. Cost: a program per scenario, and some for each that is short.
// Fails: Errc::value where more than `scenarios_max` scenarios would have to be looked at.
Result<Entitlements> entitle(const Wan& wan, const std::vector<Contract>& contracts,
                             const EntitleOptions& options);
inline constexpr std::uint64_t scenarios_max = 2'000'000;

// Whether all these contracts fit while cables are dead (by number; 1 is dead); else what is short.
struct Fit {
  bool fits = false;
  std::uint32_t link = UINT32_MAX;  // that is short; none: some site cannot be reached
};
Fit fits(const Wan& wan, const std::vector<Contract>& contracts,
         const std::vector<std::uint32_t>& which, const std::vector<char>& dead);

std::string to_table(const Wan& wan, const std::vector<Contract>& contracts,
                     const Entitlements& answer);
std::string to_json(const Wan& wan, const std::vector<Contract>& contracts,
                    const Entitlements& answer);

}  // namespace weft::plan::backbone
